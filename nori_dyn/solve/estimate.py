"""The result of a solver, by the names of the field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nori_dyn.algebra.arrays import checked_out
from nori_dyn.errors import InputError, NotRequestedError
from nori_dyn.model.closure import gaps
from nori_dyn.model.kinematics import positions
from nori_dyn.planning.outputs import Output
from nori_dyn.program.compiled import Solved
from nori_dyn.program.layout import output_parts
from nori_dyn.system.builder import System
from nori_dyn.system.variables import Kind
from nori_dyn.tables import Shown
from nori_dyn.typing import Booleans, Floats, Indices


class Estimate(Shown):
    """The dynamic variables of one state, or of N states with a leading N in every array.

    Attributes:
        residual: largest |D d + b| of any equation, relative to the largest of |D| |d| + |b| in the same equation; nan
            where it is not checked, or where the plan does not compute all of d.
        backend: name of the backend that ran.
        fell_back: whether the planned order was given up for a freshly pivoted factorisation.
        rcond: how far to trust it: one over the condition, by which the relative error of the entries may be magnified
            in an unknown, where a factorisation found one; nan where the planned order held.

    Args:
        layout: where the outputs lie.
        found: the computed values, of one state or of N; the estimate keeps the arrays.
        backend: see above.
        turned: whether outputs in the coordinates of a frame are turned already; they are turned in place otherwise.
        q: the configurations (..., nq), of a robot with loops or couplings; None otherwise.

    Example:
        >>> plan = nd.plan(nd.System(nd.autotree(2), "forward_dynamics"), outputs=["qdd", "a:link2"])
        >>> estimate = plan.solver().solve(np.zeros(2), np.zeros(2), np.ones(2))
        >>> print(np.round(estimate.qdd, 2), estimate["a:link2"].shape)
        [-2.54  9.33] (6,)
    """

    __slots__ = ("_found", "_layout", "_q", "_values", "backend")

    def __init__(
        self, layout: OutputLayout, found: Solved, backend: str, turned: bool = False, q: Floats | None = None
    ) -> None:
        self._layout = layout
        self._found = found
        self._values: Mapping[str, Floats] | None = layout.read(found[0]) if layout.turns and not turned else None
        self.backend = backend
        self._q = q

    def become(self, found: Solved, q: Floats | None) -> Estimate:
        """Take the values of other states, whose outputs have the same layout; return itself."""
        self._found, self._q = found, q
        self._values = self._layout.read(found[0]) if self._layout.turns else None
        return self

    def __repr__(self) -> str:
        n = np.count_nonzero(self.singular)
        found = f", {n} of {np.size(self.singular)} states singular" if n else ""
        return f"Estimate({', '.join(self.values)}; backend='{self.backend}'{found})"

    @property
    def system(self) -> System:
        """The system that was solved."""
        return self._layout.system

    @property
    def outputs(self) -> tuple[Output, ...]:
        """The requested outputs."""
        return self._layout.outputs

    @property
    def residual(self) -> Floats | float:
        """See `Estimate`."""
        return self._each[1]

    @property
    def fell_back(self) -> Booleans | bool:
        """See `Estimate`."""
        return self._each[2]

    @property
    def rcond(self) -> Floats | float:
        """See `Estimate`."""
        rcond = np.asarray(self._each[3])
        found: Floats | float = np.where(rcond == 1.0, np.nan, rcond)[()]  # 1 where no factorisation found any
        return found

    @property
    def _each(self) -> Solved:
        """The computed values, repeated for each of N states where there is one for all; of one state as they are."""
        values, residual, fell_back, rcond = self._found
        if values.ndim == 1:
            return self._found
        residual, fell_back, rcond = (np.array(np.broadcast_to(x, len(values))) for x in (residual, fell_back, rcond))
        return values, residual, fell_back, rcond

    @property
    def singular(self) -> Booleans | np.bool_:
        """Whether there is no unique solution (...): all outputs are nan then; see `Solver.solve_batch`."""
        found: Booleans | np.bool_ = np.isnan(self._found[0]).any(axis=-1)
        return found

    @property
    def gap(self) -> Floats | float:
        """The gap of loops and couplings (...) [m or rad]: the estimate presumes that they are closed.

        Zero for robots without any.
        """
        tree = self.system.tree
        Q = np.zeros((*np.shape(self.singular), tree.nq)) if self._q is None else self._q
        found: Floats | float = np.abs(gaps(positions(tree, Q.T))).max(axis=0, initial=0.0)[()]
        return found

    def without(self, which: Booleans) -> Estimate:
        """The estimate of the same states, with all outputs of some of them (N,) nan."""
        if not which.any():
            return self
        values, residual, fell_back, rcond = self._found
        found = np.where(which[:, None], np.nan, values), residual, fell_back, rcond
        return Estimate(self._layout, found, self.backend, turned=True, q=self._q)

    @staticmethod
    def joined(parts: Sequence[Estimate], places: Sequence[Indices] | None = None) -> Estimate:
        """The estimate of N states, of which each part has some.

        Args:
            parts: estimates with a leading axis, of the same outputs.
            places: for each part the numbers of its states; all of them together are 0..N-1. In order when None.
        """
        columns = [*zip(*(part._each for part in parts), strict=True)]
        if all(part._q is not None for part in parts):
            columns.append(tuple(part._q for part in parts))
        whole = [np.concatenate(own) for own in columns]
        if places is not None:
            order = np.argsort(np.concatenate(places))
            whole = [own[order] for own in whole]
        values, residual, fell_back, rcond, *q = whole
        found = values, residual, fell_back, rcond
        return Estimate(parts[0]._layout, found, parts[0].backend, turned=True, q=q[0] if q else None)

    @property
    def values(self) -> Mapping[str, Floats]:
        """The requested outputs by name."""
        if self._values is None:
            self._values = self._layout.views(self._found[0])
        return self._values

    @property
    def kinds(self) -> Mapping[str, Kind]:
        """Which of the five kinds of variables each requested output is, by its name."""
        return self._layout.kinds

    def __getitem__(self, name: str) -> Floats:
        """A requested output by name, such as "fx:l_sole".

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        try:
            return self._layout.view(name, self._found[0]) if self._values is None else self._values[name]
        except KeyError:
            known = ", ".join(f"'{key}'" for key in self.values)
            raise NotRequestedError(
                f"'{name}' was not requested: the plan's outputs are {known}. Plan with it among `outputs`."
            ) from None

    @property
    def tau(self) -> Floats:
        """The motor torques at the joints (nv,) [N m or N]; "tau_J" is the torque behind rotor and friction."""
        return self["tau"]

    @property
    def qdd(self) -> Floats:
        """Joint accelerations (nv,) [rad/s^2 or m/s^2]."""
        return self["qdd"]

    @property
    def a(self) -> Floats:
        """Link accelerations (n_links, 6), angular first, link coordinates, gravity included as in Nori (3a)."""
        return self["a"]

    @property
    def f(self) -> Floats:
        """Wrenches transmitted to each link through its joint (n_links, 6), couple first, link coordinates."""
        return self["f"]

    @property
    def fx(self) -> Floats:
        """External wrenches on each link (n_links, 6), couple first, link coordinates."""
        return self["fx"]


class OutputLayout:
    """Where the outputs lie in the unknowns that a backend returns, one after the other.

    Attributes:
        system: the system.
        outputs: the outputs wanted.
        parts: where each output lies, by its name.
        size: number of unknowns.
        kinds: which kind of variable each output is, by its name.
        turns: whether some output is in the coordinates of a frame, and so must be turned.

    Args:
        system: the system.
        outputs: the outputs wanted.
    """

    def __init__(self, system: System, outputs: tuple[Output, ...]) -> None:
        self.system, self.outputs = system, outputs
        self.parts = {part.output.name: part for part in output_parts(system, outputs)}
        self.size = max(part.slice.stop for part in self.parts.values())
        self.kinds = {name: part.output.kind for name, part in self.parts.items()}
        self.turns = any(part.matrix is not None for part in self.parts.values())

    def memory_of(self, out: object) -> object:
        """The memory of an `out`, unchecked; the very `out` where it is no estimate of this layout."""
        return out._found[0] if type(out) is Estimate and out._layout is self else out

    def values_of(self, out: object, N: int, read: Mapping[str, object], dtype: np.dtype[Any]) -> Floats:
        """The array of an `out`, an estimate of N states or the array itself.

        Args:
            out: the array to write.
            N: number of states.
            read: objects that are read meanwhile, by name.
            dtype: type of its numbers.

        Raises:
            InputError: it is of other outputs or another number of states, cannot be written, or shares memory with
                an input.
        """
        if not isinstance(out, Estimate):
            values: object = out
        elif self.is_like(out._layout):
            values = out._found[0]
        else:
            raise InputError(
                f"out is an estimate of {', '.join(out.kinds)} of '{out.system.tree.name}', and here are "
                f"{', '.join(self.kinds)} of '{self.system.tree.name}': give one that this solver has returned."
            )
        return checked_out("out", values, (N, self.size), read, dtype)

    def is_like(self, other: OutputLayout) -> bool:
        """Whether another layout is of the same outputs of the same system."""
        return self is other or (
            [output.name for output in self.outputs] == [output.name for output in other.outputs]
            and self.system.fingerprint == other.system.fingerprint
        )

    def view(self, name: str, values: Floats) -> Floats:
        """One output as `views` does."""
        part = self.parts[name]
        own = values[..., part.slice]
        return own.reshape(values.shape[:-1] + part.shape) if len(part.shape) > 1 else own

    def views(self, values: Floats) -> dict[str, Floats]:
        """The outputs by name as views of the unknowns (size,) or (N, size); frames are not turned yet."""
        return {name: self.view(name, values) for name in self.parts}

    def turn(self, outputs: Mapping[str, Floats]) -> None:
        """Turn, in place, the outputs that were requested in the coordinates of a frame."""
        for name, part in self.parts.items():
            if part.matrix is not None:
                outputs[name][:] = outputs[name] @ part.matrix.T

    def read(self, values: Floats) -> dict[str, Floats]:
        """The outputs by name of unknowns (size,) or (N, size)."""
        outputs = self.views(values)
        self.turn(outputs)
        return outputs

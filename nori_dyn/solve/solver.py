"""The online solver: a plan, a backend, and the arrays that a control loop reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.arrays import checked, shaped
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.planning.diagnosis import singular_at
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import RCOND_LIMIT, Solution, Status
from nori_dyn.program.backends.registry import make_backend
from nori_dyn.solve.estimate import Estimate, Layout
from nori_dyn.system.builder import System

Floats = NDArray[np.float64]

Missing: TypeAlias = Literal["refuse", "drop"]
"""What to do with readings that are not numbers."""

MISSING: tuple[Missing, ...] = get_args(Missing)


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The arrays that `tick` reads: write into them, as in `inputs.q[:] = ...`.

    Attributes:
        q: configuration (nq,).
        qd: velocity (nv,).
        y: readings (ny,), in the order of `system.measurement_names`.
        weights: 1 / sigma^2 (n_weights,), in the order of `system.weight_names`; 0 leaves a sensor out. They begin as
            the sensors have it; empty where all rows hold exactly.
    """

    q: Floats
    qd: Floats
    y: Floats
    weights: Floats


class Solver:
    """Runs a plan on states. Cheap to make; not to be shared between threads.

    Attributes:
        plan: the plan.
        backend: name of the backend.
        inputs: the arrays that `tick` reads.
        outputs: the arrays that `tick` writes, by the names of the outputs: `outputs.tau`.
        tick: solves the state in `inputs`, writes `outputs`, and returns a status. It checks nothing of what it is
            given; quaternions in q must be of unit length. With the native backend it is one foreign call.

    Args:
        plan: the plan.
        backend: "auto", or a backend by name.
        check_residual: whether `solve` and `solve_batch` check, and report, the residual where all of d is computed; a
            state with a large one falls back. `tick` never does: its guard is that on the pivots.

    Raises:
        BackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.
    """

    def __init__(self, plan: EliminationPlan, backend: str = "auto", check_residual: bool = True) -> None:
        self.plan = plan
        self._backend = make_backend(backend, plan, check_residual)
        self._weights = (plan.system.weights,) if plan.system.is_weighted else ()
        self._quick, self._name = self._backend.quick, self._backend.name
        self._layout = Layout(plan.system, plan.outputs)
        tree = plan.system.tree
        zeros, weights = np.zeros(tree.nv + plan.system.ny), plan.system.weights
        state = np.concatenate([tree.neutral_configuration(), zeros, weights])
        self.inputs = Inputs(*np.split(state, np.cumsum([tree.nq, tree.nv, plan.system.ny])))
        values = np.full(self._layout.size, np.nan)
        self._outputs = self._layout.views(values)
        self.outputs = SimpleNamespace(**self._outputs)
        self._run = self._backend.ticker(state, values)
        self.tick: Callable[[], Status] = self._turning if self._layout.turns else self._run

    def __repr__(self) -> str:
        return f"Solver({self.plan!r}, backend='{self.backend}')"

    @property
    def system(self) -> System:
        """The system that is solved."""
        return self.plan.system

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self._name

    def _turning(self) -> Status:
        status = self._run()
        self._layout.turn(self._outputs)
        return status

    def solve(
        self,
        q: Floats,
        qd: Floats,
        y: Floats | Mapping[str, Any],
        weights: Floats | Mapping[str, float] | None = None,
        missing: Missing = "refuse",
    ) -> Estimate:
        """Solve one state.

        Args:
            q: configuration (nq,) [rad, m; quaternions (x, y, z, w)].
            qd: velocity (nv,) [rad/s, m/s].
            y: readings (ny,) in the order of `system.measurement_names`, or {measurement name: value}.
            weights: 1 / sigma^2 (n_weights,) in the order of `system.weight_names`, or {name: value}; as the sensors
                have it when None. 0 leaves a sensor out.
            missing: what to do with a reading that is not a number: "refuse" it, or "drop" the sensor, whose weight is
                then 0.

        Raises:
            InputError: a wrong shape or name, a value that is not finite, a weight below zero.
            SingularSystemError: no unique solution at this state; names what is not determined.
        """
        system = self.system
        if weights is None and missing == "refuse":
            found = self._quick(q, qd, y, *self._weights)
            if found is not None:
                return Estimate(self._layout, found[0], found[1], self._name, False)
        q = system.tree.normalised(checked("q", q, (system.tree.nq,)))
        qd = checked("qd", qd, (system.tree.nv,))
        flat = system.reading(y) if isinstance(y, Mapping) else y
        state = q, qd, *self._readings("y", flat, "weights", system.weighting(weights), (), missing)
        solution = self._backend.solve(*state)
        if not solution.rcond >= RCOND_LIMIT:
            raise singular_at(system, q, float(solution.rcond), weights=state[-1] if system.is_weighted else None)
        return self._estimate(solution)

    def solve_batch(
        self,
        Q: Floats,
        Qd: Floats,
        Y: Floats,
        weights: Floats | Mapping[str, float] | None = None,
        missing: Missing = "refuse",
        threads: int = 1,
    ) -> Estimate:
        """Solve N states.

        Args:
            Q: configurations (N, nq).
            Qd: velocities (N, nv).
            Y: readings (N, ny) in the order of `system.measurement_names`.
            weights: see `solve`; for all states, or (N, n_weights).
            missing: see `solve`.
            threads: number of threads, where the backend can use them.

        Returns:
            The same names as `solve`, each with a leading N.

        Raises:
            InputError: a wrong shape, a value that is not finite.
            SingularSystemError: no unique solution at one of the states; names the first.
        """
        tree, system = self.system.tree, self.system
        if np.ndim(Q) != 2 or len(Q) == 0:
            raise InputError(f"Q has shape {np.shape(Q)}, expected (N, {tree.nq}) with N at least 1.")
        N = len(Q)
        if self._backend.sees_bad_input and not tree.quaternions and not system.is_weighted:
            Q, Qd = shaped("Q", Q, (N, tree.nq)), shaped("Qd", Qd, (N, tree.nv))  # one pass over the memory less
            states: Sequence[Floats] = (Q, Qd, shaped("Y", Y, (N, system.ny)))
        else:
            states = self._checked_batch(Q, Qd, Y, weights, missing)
        solution = self._backend.solve_batch(*states, threads=threads)
        singular = np.flatnonzero(~(solution.rcond >= RCOND_LIMIT))
        if len(singular):
            self._checked_batch(Q, Qd, Y, weights, missing)
            k = int(singular[0])
            heavy = states[-1][k] if system.is_weighted else None
            raise singular_at(system, states[0][k], float(solution.rcond[k]), f"state {k} of {N}", heavy)
        return self._estimate(solution)

    def _checked_batch(
        self, Q: Floats, Qd: Floats, Y: Floats, weights: Floats | Mapping[str, float] | None, missing: Missing
    ) -> Sequence[Floats]:
        tree, system, N = self.system.tree, self.system, len(Q)
        heavy = system.weighting(weights)
        if heavy.ndim == 1:
            heavy = np.broadcast_to(heavy, (N, len(heavy)))
        return (
            tree.normalised(checked("Q", Q, (N, tree.nq))),
            checked("Qd", Qd, (N, tree.nv)),
            *self._readings("Y", Y, "weights", heavy, (N,), missing),
        )

    def _readings(
        self, name: str, y: Floats, of: str, weights: Floats, batch: tuple[int, ...], missing: Missing
    ) -> Sequence[Floats]:
        """Return readings (..., ny), and weights (..., n_weights) where there are any, checked."""
        system = self.system
        if missing not in MISSING:
            raise UnknownNameError("way to treat missing readings", missing, MISSING)
        if not system.is_weighted:
            if weights.shape[-1:] != (0,):
                raise InputError(f"sensors '{system.sensors.name}' hold exactly: they have no weights.")
            return (checked(name, y, (*batch, system.ny), system.measurement_names),)
        weights = checked(of, weights, (*batch, system.n_weights), system.weight_names)
        wrong = np.argwhere(weights < 0)
        if len(wrong):
            at = tuple(wrong[0].tolist())
            raise InputError(f"{of} of '{system.weight_names[at[-1]]}' is {weights[at]:g}: it must not be below zero.")
        if missing == "drop":
            y, weights = dropped(system, shaped(name, y, (*batch, system.ny)), weights)
        return checked(name, y, (*batch, system.ny), system.measurement_names), weights

    def _estimate(self, solution: Solution) -> Estimate:
        # [()] takes the number out of an array of one state, and leaves that of a batch as it is
        return Estimate(self._layout, solution.values, solution.residual[()], self._name, solution.fell_back[()])


def dropped(system: System, y: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return readings (..., ny) and weights (..., n_weights) without the sensors whose readings are not numbers.

    Rows that share a weight are dropped together.
    """
    y, weights = y.copy(), weights.copy()
    lost = ~np.isfinite(y)
    y[lost] = 0.0
    for row in system.measurements:
        if not row.is_exact:
            for k, weight in zip(range(row.y.start, row.y.stop), row.weight_of_rows, strict=True):
                weights[..., weight] = np.where(lost[..., k], 0.0, weights[..., weight])
                lost[..., k] = False
    y[lost] = np.nan  # what holds exactly cannot be dropped
    return y, weights

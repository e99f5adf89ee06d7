"""What a solver returns, by the names of the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nori_dyn.errors import InputError
from nori_dyn.planning.outputs import Output
from nori_dyn.system.builder import System
from nori_dyn.system.variables import KINDS

Floats = NDArray[np.float64]


class NotRequestedError(InputError):
    """A value that the plan was not asked to compute."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The dynamic variables of one state, or of N states with a leading N in every array.

    Attributes:
        values: the requested outputs by name.
        residual: largest row of |D d + b| relative to the largest of |D| |d| + |b|; nan where the backend does not
            compute all of d.
        backend: name of the backend that ran.
        fell_back: whether the planned order was given up for a freshly pivoted factorisation.
    """

    values: Mapping[str, Floats]
    residual: Floats
    backend: str
    fell_back: NDArray[np.bool_]

    def __getitem__(self, name: str) -> Floats:
        """Return a requested output by name, such as "fx:l_sole".

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        if name not in self.values:
            known = ", ".join(f"'{key}'" for key in self.values)
            raise NotRequestedError(f"'{name}' was not requested: the plan's outputs are {known}.")
        return self.values[name]

    @property
    def tau(self) -> Floats:
        """Joint torques (nv,) [N m or N]."""
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


class Layout:
    """Where the outputs lie in d, worked out once.

    Args:
        system: the system.
        outputs: the outputs wanted.
    """

    def __init__(self, system: System, outputs: tuple[Output, ...]) -> None:
        tree = system.tree
        columns: dict[str, NDArray[np.intp]] = {}
        for kind in KINDS:
            parts = [system.column(kind, i) for i in range(tree.n_links)]
            flat = np.concatenate([np.arange(part.start, part.stop) for part in parts])
            columns[kind] = flat if kind in ("tau", "qdd") else flat.reshape(tree.n_links, 6)
        self._index: dict[str, NDArray[np.intp]] = {}
        self._turn: dict[str, Floats] = {}
        for output in outputs:
            if output.body is None:
                self._index[output.name] = columns[output.kind]
            else:
                part = system.column(output.kind, output.body)
                self._index[output.name] = np.arange(part.start, part.stop)
            if output.X is not None:
                matrix = output.X.motion_matrix() if output.kind == "a" else output.X.force_matrix()
                self._turn[output.name] = np.ascontiguousarray(matrix)

    def empty(self) -> dict[str, Floats]:
        """Return arrays for the outputs of one state, filled with nan."""
        return {name: np.full(index.shape, np.nan) for name, index in self._index.items()}

    def write(self, d: Floats, arrays: Mapping[str, Floats]) -> None:
        """Write the outputs of one state d (n,) into arrays made by `empty`."""
        for name, index in self._index.items():
            np.take(d, index, out=arrays[name])
            if name in self._turn:
                arrays[name][:] = self._turn[name] @ arrays[name]

    def read(self, d: Floats) -> dict[str, Floats]:
        """Return the outputs of d (n,) or (N, n), with a leading N in the latter."""
        values = {name: d[..., index] for name, index in self._index.items()}
        for name, matrix in self._turn.items():
            values[name] = values[name] @ matrix.T
        return values

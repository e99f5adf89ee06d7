"""What a solver returns, by the names of the field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nori_dyn.errors import InputError
from nori_dyn.planning.outputs import Output
from nori_dyn.program.layout import output_parts
from nori_dyn.system.builder import System

Floats = NDArray[np.float64]


class NotRequestedError(InputError):
    """A value that the plan was not asked to compute."""


@dataclass(frozen=True, slots=True, eq=False)
class Estimate:
    """The dynamic variables of one state, or of N states with a leading N in every array.

    Attributes:
        values: the requested outputs by name.
        residual: largest |D d + b| of any equation, relative to the largest of |D| |d| + |b| in the same equation; nan
            where the plan does not compute all of d.
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
    """Where the outputs lie in the unknowns that a backend returns, one after the other.

    Args:
        system: the system.
        outputs: the outputs wanted.
    """

    def __init__(self, system: System, outputs: tuple[Output, ...]) -> None:
        parts = tuple(output_parts(system, outputs))
        self.size = parts[-1].slice.stop
        self._parts = {part.output.name: (part.slice, part.shape) for part in parts}
        self._turns = {part.output.name: part.matrix for part in parts if part.matrix is not None}

    @property
    def turns(self) -> bool:
        """Whether some output is in the coordinates of a frame, and so must be turned."""
        return bool(self._turns)

    def views(self, values: Floats) -> dict[str, Floats]:
        """Return the outputs by name as views of the unknowns (size,) or (N, size); frames are not turned yet."""
        leading = values.shape[:-1]
        return {name: values[..., part].reshape(leading + shape) for name, (part, shape) in self._parts.items()}

    def turn(self, outputs: Mapping[str, Floats]) -> None:
        """Turn, in place, what was asked for in the coordinates of a frame."""
        for name, matrix in self._turns.items():
            outputs[name][:] = outputs[name] @ matrix.T

    def read(self, values: Floats) -> dict[str, Floats]:
        """Return the outputs by name of unknowns (size,) or (N, size)."""
        outputs = self.views(values)
        self.turn(outputs)
        return outputs

"""A system: the equations of a robot and its sensors, bound to named rows and variables."""

from __future__ import annotations

import builtins
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.algebra.spatial import Array
from nori_dyn.errors import InputError, SensorConfigError, UnknownNameError
from nori_dyn.model.kinematics import Kinematics, positions, velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation, Sensors
from nori_dyn.system.newton_euler import newton_euler
from nori_dyn.system.variables import Variable, VariableKey, component_names, tree_variables


@dataclass(frozen=True, slots=True)
class RowBlock:
    """The rows of one equation.

    Attributes:
        name: the equation's name.
        equation: the equation.
        slice: its rows of D and b.
        y: its part of y; empty where it takes no reading.
    """

    name: str
    equation: Equation
    slice: builtins.slice
    y: builtins.slice


class System:
    """D(q) d + b(q, qd, y) = 0 for a robot and a set of sensors; every name is checked when it is built.

    Attributes:
        tree: the robot.
        sensors: the set of sensors.
        variables: the blocks of d, in the order of the columns.
        rows: the blocks of equations, in the order of the rows: the dynamics first, then the measurements.

    Args:
        tree: the robot.
        sensors: the set of sensors, as `nori_dyn.sensors` or `load_sensors` return it.

    Raises:
        SensorConfigError: sensors that name what the robot does not have.

    Source: Nori (5), (9), (15), (16).
    """

    def __init__(self, tree: KinematicTree, sensors: Sensors) -> None:
        self.tree = tree
        self.sensors = sensors
        self.variables: tuple[Variable, ...] = tuple(tree_variables(tree))
        self._columns = {VariableKey(v.kind, v.body): v.slice for v in self.variables}
        dynamics = list(newton_euler(tree))
        if sum(len(e.components) for e in dynamics) != 12 * tree.n_links + tree.nv:
            raise AssertionError("the dynamics of a tree have 12 rows a body and one a freedom")
        self.rows: tuple[RowBlock, ...] = tuple(self._row_blocks([*dynamics, *sensors.equations(tree)]))

    def _row_blocks(self, equations: list[Equation]) -> Iterator[RowBlock]:
        start = y = 0
        names: set[str] = set()
        for equation in equations:
            for name in component_names(equation.name, equation.components):
                if name in names:
                    raise SensorConfigError(
                        f"sensors '{self.sensors.name}': '{name}' is given twice. Remove one of the two."
                    )
                names.add(name)
            n = len(equation.components)
            n_y = n if equation.is_measured else 0
            yield RowBlock(equation.name, equation, slice(start, start + n), slice(y, y + n_y))
            start, y = start + n, y + n_y

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"System('{self.tree.name}' with '{self.sensors.name}', {rows} rows, {columns} variables)"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of scalar equations and unknowns."""
        return self.rows[-1].slice.stop, self.variables[-1].slice.stop

    @cached_property
    def variable_names(self) -> tuple[str, ...]:
        """The name of each number of d."""
        return tuple(name for variable in self.variables for name in variable.component_names)

    @cached_property
    def measurements(self) -> tuple[RowBlock, ...]:
        """The rows that take a reading, in the order of y."""
        return tuple(row for row in self.rows if row.equation.is_measured)

    @cached_property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y (ny)."""
        return tuple(name for row in self.measurements for name in component_names(row.name, row.equation.components))

    @property
    def ny(self) -> int:
        """Length of y."""
        return len(self.measurement_names)

    def column(self, kind: str, body: int) -> slice:
        """Return where a variable lies in d."""
        return self._columns[VariableKey(kind, body)]  # type: ignore[arg-type]

    def blocks(self, at: Kinematics) -> Iterator[tuple[slice, slice, Array]]:
        """Yield the blocks of D as (rows, columns, values), over the scalar of the kinematics."""
        for row in self.rows:
            for key, block in row.equation.blocks(at).items():
                yield row.slice, self._columns[key], block

    def bias(self, at: Kinematics, y: Array) -> list[Array]:
        """Return b block by block, over the scalar of the kinematics and of y (ny, ...)."""
        return [row.equation.bias(at, y[row.y]) for row in self.rows]

    def D(self, q: NDArray[np.float64]) -> sp.csc_array:
        """Return the matrix D(q), sparse (rows, columns), at a configuration q (nq,).

        Source: Nori (4), (8), (16).
        """
        q = self.tree.normalised(self._checked("q", q, self.tree.nq))
        rows, columns, values = [], [], []
        for row, column, block in self.blocks(positions(self.tree, q)):
            r, c = np.nonzero(block)
            rows.append(r + row.start)
            columns.append(c + column.start)
            values.append(block[r, c])
        index = (np.concatenate(rows), np.concatenate(columns))
        return sp.csc_array((np.concatenate(values).astype(float), index), shape=self.shape)

    def b(self, q: NDArray[np.float64], qd: NDArray[np.float64], y: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return b (rows,) at a state q (nq,), qd (nv,) and readings y (ny,) or {measurement name: value}."""
        q = self.tree.normalised(self._checked("q", q, self.tree.nq))
        qd = self._checked("qd", qd, self.tree.nv)
        y = self._checked("y", self.reading(y), self.ny)
        return np.concatenate(self.bias(velocities(self.tree, q, qd), y)).astype(float)

    def reading(self, y: NDArray[np.float64] | Mapping[str, Any]) -> NDArray[np.float64]:
        """Return y as a flat array (ny,), from one or from {measurement name: value}.

        A name is that of a number ("fx:l_sole.mz") or of a block ("fx:l_sole", with as many values).

        Raises:
            InputError: a measurement that is missing, unknown, or of the wrong length.
        """
        if not isinstance(y, Mapping):
            return np.asarray(y, dtype=float)
        flat = np.full(self.ny, np.nan)
        given = np.zeros(self.ny, dtype=bool)
        where = {name: [k] for k, name in enumerate(self.measurement_names)}
        blocks: dict[str, list[int]] = {}
        for row in self.measurements:  # two may share a name, with different components
            blocks.setdefault(row.name, []).extend(range(row.y.start, row.y.stop))
        where |= blocks
        for name, value in y.items():
            if name not in where:
                raise UnknownReadingError("measurement", name, where, f"y of sensors '{self.sensors.name}'")
            part = where[name]
            try:
                values = np.atleast_1d(np.asarray(value, dtype=float))
            except (TypeError, ValueError):
                raise InputError(f"y['{name}'] is {value!r}: it must be a number, or an array of them.") from None
            if values.shape != (len(part),):
                raise InputError(f"y['{name}'] has shape {np.shape(value)}, expected {len(part)} numbers.")
            flat[part] = values
            given[part] = True
        if not given.all():
            missing = [name for name, there in zip(self.measurement_names, given, strict=True) if not there]
            raise InputError(f"y lacks {len(missing)} of {self.ny} measurements: {', '.join(missing[:8])}.")
        return flat

    def _checked(self, name: str, value: Any, size: int) -> NDArray[np.float64]:
        array = np.asarray(value, dtype=float)
        if array.shape != (size,):
            raise InputError(f"{name} has shape {array.shape}, expected ({size},).")
        wrong = np.flatnonzero(~np.isfinite(array))
        if wrong.size:
            raise InputError(f"{name}[{wrong[0]}] is {array[wrong[0]]}: every number of {name} must be finite.")
        return array

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the robot and its sensors: two systems with equal ones have the same equations."""
        parts = f"{self.tree.fingerprint} {self.sensors.fingerprint}"
        return hashlib.sha256(parts.encode()).hexdigest()


class UnknownReadingError(UnknownNameError, InputError):
    """A reading by a name that no measurement has."""

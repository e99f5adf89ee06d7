"""A system: the equations of a robot and its sensors, bound to named rows and variables."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import checked, numeric, shaped
from nori_dyn.algebra.ranges import numbers_in, width
from nori_dyn.algebra.spatial import spread, zeros
from nori_dyn.errors import InputError, SensorConfigError, UnknownReadingError
from nori_dyn.model.kinematics import Kinematics, positions, velocities
from nori_dyn.model.paths import path
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.assembly import Nonzeros, assemble, check_bias, check_sigma, columns_of
from nori_dyn.system.equation import Equation, NoisyDynamics, Sensors
from nori_dyn.system.memory import Remembered, WithMemory, lasting_parts
from nori_dyn.system.newton_euler import exact, newton_euler
from nori_dyn.system.parts import OfAccelerations, act_on_joints, added_unknowns, parts_of, readings_of
from nori_dyn.system.repeats import ComponentRows, Repeat
from nori_dyn.system.rows import GIVEN, ComponentRow, NewtonEuler, RowBlock, RowKey, SensorRow
from nori_dyn.system.variables import (
    KINDS,
    OFFSET,
    Kind,
    Variable,
    VariableKey,
    component_names,
    tree_variables,
)
from nori_dyn.tables import Shown, listed
from nori_dyn.typing import Array, Booleans, Floats, Indices

Weights: TypeAlias = Floats | Mapping[str, float] | None

MOST_OFFSETS = 4
"""Offsets that a note names."""


class System(Shown):
    """D(q) d + b(q, qd, y) = 0 for a robot and sensors as they are bound to it.

    Users meet it as `nori_dyn.System`, which documents its attributes, and takes names of sensors too.

    Args:
        tree: the robot.
        sensors: the set of sensors.
        repeats: rows of components that repeat others wherever the robot is closed, and are left out.

    Raises:
        SensorConfigError: sensors that name links or joints that the robot does not have.
    """

    def __init__(self, tree: KinematicTree, sensors: Sensors, repeats: Sequence[Repeat] = ()) -> None:
        self.tree = tree
        self.sensors = sensors
        self.parts = parts_of(tree)
        self.of_components = ComponentRows.of(self.parts, repeats)
        of_sensors = list(sensors.equations(tree))
        given = {equation.name for equation in of_sensors}  # sensors made of the rows of a system have them
        of_parts = [equation for equation in readings_of(self.parts) if equation.name not in given]
        of_sensors += of_parts
        variables = tuple(tree_variables(tree, act_on_joints(self.parts), added_unknowns(self.parts, of_sensors)))
        self.variables: tuple[Variable, ...] = tuple(v for v in variables if v.components)  # a fixed joint has no tau
        self._columns = {v.key: v.slice for v in variables}
        self.memory: tuple[Remembered, ...] = (
            tuple(sensors.remembered(self.variables, of_sensors)) if isinstance(sensors, WithMemory) else ()
        )
        if self.memory:
            self.memory = tuple(self._with_lasting(self.memory))
        sigma = sensors.dynamics_sigma if isinstance(sensors, NoisyDynamics) else exact
        motion = newton_euler(tree, self.parts, sigma)
        equations: dict[RowKey, Equation] = {equation.key: equation for equation in motion}
        equations |= {ComponentRow(k): equation for k, equation in enumerate(self.of_components.left)}
        equations |= {SensorRow(k): equation for k, equation in enumerate(of_sensors)}
        n_rows = sum(len(equation.components) for equation in equations.values())
        sigmas = [equation.sigma for equation in equations.values()]
        if n_rows > self.variables[-1].slice.stop and not any(sigmas):
            sigmas = [
                (1.0,) * len(e.components) if e.is_measured and e not in of_parts else None for e in equations.values()
            ]
        self.rows: tuple[RowBlock, ...] = tuple(self._row_blocks(equations, sigmas))
        self._rows = {row.key: row for row in self.rows}
        weights = [np.array(s)[: width(row.weights)] ** -2.0 for row, s in zip(self.rows, sigmas, strict=True) if s]
        self.weights: Floats = np.concatenate([np.zeros(0), *weights])
        self.weights.flags.writeable = False

    def without(self, repeats: Sequence[Repeat]) -> Self:
        """The system without rows of components that repeat others."""
        return type(self)(self.tree, self.sensors, repeats)

    def replace(self, tree: KinematicTree | None = None, sensors: Sensors | None = None) -> System:
        """The system of another robot with the same loops and couplings, or of other sensors."""
        of, by = self.tree if tree is None else tree, self.sensors if sensors is None else sensors
        return System(of, by, self.of_components.repeats)

    def _with_lasting(self, memory: Iterable[Remembered]) -> Iterator[Remembered]:
        """Yield state variables and, of components, those that always are."""
        lasting, entries = lasting_parts(self.parts), {each.variable.key: each for each in memory}
        yield from (each for key, each in entries.items() if key not in lasting)
        for v in self.variables:
            if v.key in lasting:
                entry = entries.get(v.key)
                name, jump = (v.kind, ()) if entry is None else (entry.memory, entry.jump)
                yield Remembered.lasting(name, v, lasting[v.key], jump)

    def _row_blocks(
        self, equations: Mapping[RowKey, Equation], sigmas: Sequence[tuple[float, ...] | None]
    ) -> Iterator[RowBlock]:
        """Yield the rows of equations, with their standard deviations."""
        start = y = weight = 0
        names: set[str] = set()
        for (key, equation), sigma in zip(equations.items(), sigmas, strict=True):
            for name in component_names(equation.name, equation.components):
                if name in names:
                    raise SensorConfigError(
                        f"sensors '{self.sensors.name}': '{name}' is given twice. Remove one of the two."
                    )
                names.add(name)
            check_sigma(self.sensors.name, equation, sigma)
            n = len(equation.components)
            n_y = n if equation.is_measured else 0
            n_weights = 0 if sigma is None else 1 if len(set(sigma)) == 1 else n
            parts = slice(start, start + n), slice(y, y + n_y), slice(weight, weight + n_weights)
            yield RowBlock(key, equation, *parts)
            start, y, weight = start + n, y + n_y, weight + n_weights

    def __repr__(self) -> str:
        rows, columns = self.shape
        return f"System('{self.tree.name}' with '{self.sensors.name}', {rows} rows, {columns} variables)"

    @property
    def shape(self) -> tuple[int, int]:
        """Number of scalar equations and unknowns."""
        return self.rows[-1].slice.stop, self.variables[-1].slice.stop

    @cached_property
    def kinds(self) -> tuple[Kind, ...]:
        """The kinds of its variables: `KINDS`, and those that components add."""
        return tuple(dict.fromkeys((*KINDS, *(v.kind for v in self.variables))))

    @cached_property
    def variable_names(self) -> tuple[str, ...]:
        """The name of each number of d."""
        return tuple(name for variable in self.variables for name in variable.component_names)

    @cached_property
    def sensor_rows(self) -> tuple[RowBlock, ...]:
        """The rows of sensors and components, readings and known values alike: all but the equations of motion."""
        return tuple(row for row in self.rows if not row.is_dynamic)

    @cached_property
    def measurements(self) -> tuple[RowBlock, ...]:
        """The rows that take a reading, in the order of y."""
        return tuple(row for row in self.rows if row.equation.is_measured)

    @cached_property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y (ny)."""
        return tuple(name for row in self.measurements for name in row.component_names)

    @cached_property
    def stateless_offsets(self) -> tuple[str, ...]:
        """The offsets of sensors that have no state: each tick estimates them from their prior alone."""
        lasting = {one.variable.key for one in self.memory}
        return tuple(v.name for v in self.variables if v.kind == OFFSET and v.key not in lasting)

    @property
    def note_on_offsets(self) -> str:
        """A note on stateless offsets; "" where there are none."""
        if not self.stateless_offsets:
            return ""
        return (
            f"{listed(self.stateless_offsets, MOST_OFFSETS)}: estimated at each tick from the `sigma` alone. A "
            "constant one is estimated over time by nd.Tracker if the sensors have `memory: {offsets: {of: offset}}`."
        )

    @property
    def ny(self) -> int:
        """Length of y."""
        return len(self.measurement_names)

    @cached_property
    def ranges(self) -> Floats | None:
        """The readings between which the sensors work (2, ny), infinite where they have no range; None if none has."""
        if not any(row.ranges for row in self.measurements):
            return None
        free = (-np.inf, np.inf)
        pairs = [pair for row in self.measurements for pair in row.ranges or [free] * width(row.y)]
        ranges = np.ascontiguousarray(np.array(pairs).T)
        ranges.flags.writeable = False
        return ranges

    def saturated(self, y: Floats) -> Booleans:
        """Whether each reading (..., ny) is at an end of its sensor's range, or beyond."""
        if self.ranges is None:
            return np.zeros(y.shape, dtype=bool)
        low, high = self.ranges
        found: Booleans = (y <= low) | (y >= high)
        return found

    @cached_property
    def exact_rows(self) -> Booleans:
        """Which rows of D hold exactly (rows,); others are weighed."""
        return np.repeat([row.is_exact for row in self.rows], [width(row.slice) for row in self.rows])

    @cached_property
    def noisy_rows(self) -> Indices:
        """The rows of D that are equations of motion with noise."""
        return numbers_in(row.slice for row in self.rows if row.is_dynamic and not row.is_exact)

    @cached_property
    def weight_of_rows(self) -> Indices:
        """For each row of D that is weighed the number of its weight."""
        return np.array([k for row in self.rows if not row.is_exact for k in row.weight_of_rows], dtype=np.intp)

    @cached_property
    def weight_of_readings(self) -> Indices:
        """For each reading the number of its weight (ny,), -1 where it holds exactly."""
        numbers = [(-1,) * width(row.y) if row.is_exact else row.weight_of_rows for row in self.measurements]
        return np.array([k for part in numbers for k in part], dtype=np.intp)

    @cached_property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight (n_weights): that of an equation whose rows share one, or of a row."""
        names: list[str] = []
        for row in self.rows:
            if width(row.weights) == 1:
                names.append(row.name)
            elif not row.is_exact:
                names.extend(row.component_names)
        return tuple(names)

    @property
    def n_weights(self) -> int:
        """Number of weights."""
        return len(self.weights)

    @cached_property
    def n_noise_weights(self) -> int:
        """Number of weights of equations of motion, which come first."""
        return sum(width(row.weights) for row in self.rows if row.is_dynamic)

    @property
    def is_weighted(self) -> bool:
        """Whether some rows are weighed; otherwise all hold exactly."""
        return self.n_weights > 0

    @property
    def input_sizes(self) -> dict[str, int]:
        """Length of each array of a state, in the order in which one is given; weights only where there are any."""
        sizes = {"q": self.tree.nq, "qd": self.tree.nv, "y": self.ny}
        return {**sizes, "weights": self.n_weights} if self.is_weighted else sizes

    @cached_property
    def n_inputs(self) -> int:
        """Numbers of a state."""
        return sum(self.input_sizes.values())

    def split(self, state: Floats) -> list[Floats]:
        """The arrays of a state, q, qd, y and weights, of one that has them one after the other."""
        return np.split(state, np.cumsum([*self.input_sizes.values()])[:-1])

    @cached_property
    def motion_keys(self) -> tuple[NewtonEuler, ...]:
        """The equations of motion in the order of forward substitution: each yields its variable from earlier ones.

        Source: Nori, Property 1.
        """
        keys = [row.key for row in self.rows if isinstance(row.key, NewtonEuler)]
        up = {gives: [key for key in keys if key.gives == gives] for gives in GIVEN}
        return tuple(key for gives in GIVEN for key in (reversed(up[gives]) if gives == "f" else up[gives]))

    def column(self, kind: str, body: int, component: str = "") -> slice:
        """Where a variable of a body, or of a component there, lies in d."""
        return self._columns[VariableKey(kind, body, component)]

    def multiplier_column(self, equation: int, row: int) -> int:
        """The column of the force along a row of a loop or coupling: row of an equation of the components."""
        key = self.of_components.forces[equation]
        assert key is not None
        start: int = self._columns[key].start
        return start + row

    def constraint_rows(self) -> dict[int, int]:
        """The row of D of each force of a loop or coupling, by its column, without forces that are zero."""
        repeats = {(repeat.equation, repeat.row): repeat for repeat in self.of_components.repeats}
        first = {block.key.number: block.slice.start for block in self.rows if isinstance(block.key, ComponentRow)}
        found: dict[int, int] = {}
        for equation, row in self.of_components.closing:
            repeat = repeats.get((equation, row))
            if repeat is None:
                found[self.multiplier_column(equation, row)] = first[equation]
            if repeat is None or repeat.is_zero:
                first[equation] += 1
        return found

    def row(self, key: RowKey) -> RowBlock:
        """The rows of an equation."""
        return self._rows[key]

    def at(self, q: Array, qd: Array, y: Array) -> Kinematics:
        """The state as the equations need it, over any scalar: with accelerations where a component asks for them.

        Args:
            q: configuration (nq, ...).
            qd: velocity (nv, ...).
            y: readings (ny, ...), of which exact ones of joints tell accelerations.
        """
        at, tree = velocities(self.tree, q, qd), self.tree
        asking = [part for part in self.parts if isinstance(part, OfAccelerations) and part.unknowns]
        if not asking:
            return at
        qdd, given = zeros((tree.nv,), qd), set[int]()
        for row in self.rows:
            found = row.equation.blocks(at) if row.is_sensor and row.is_exact else {}
            for key, block in found.items():
                if len(found) == 1 and key.kind == "qdd" and np.array_equal(block, np.eye(len(block))):
                    qdd[tree.v_slices[key.body]] = -row.equation.bias(at, y[row.y])
                    given.add(key.body)
        for part in asking:
            lacking = [i for i in path(tree.parents, part.accelerated) if tree.joints[i].nv and i not in given]
            if lacking:
                names = listed([f"qdd:{tree.joint_names[i]}" for i in reversed(lacking)], MOST_OFFSETS)
                raise SensorConfigError(
                    f"'{part.name}' moves as {names} say, and sensors '{self.sensors.name}' do not read these exactly: "
                    "{type: joint_acceleration, joints: all}, without a sigma."
                )
        return replace(at, qdd=qdd)

    def blocks(self, at: Kinematics) -> Iterator[tuple[slice, slice, Array]]:
        """Yield the blocks of D as (rows, columns, values), over the scalar of the kinematics.

        Raises:
            SensorConfigError: a block that does not fit the sensor's rows, or its variable.
        """
        for row in self.rows:
            for key, block in row.equation.blocks(at).items():
                yield row.slice, columns_of(self.sensors.name, row.equation, key, block, self._columns), block

    def entries(self, at: Kinematics, batch: tuple[int, ...] = ()) -> Nonzeros:
        """The numbers of D that are not zero, over the scalar and the batch axes of the kinematics."""
        return assemble(self.blocks(at), self.shape, batch)

    def bias(self, at: Kinematics, y: Array) -> list[Array]:
        """The vector b block by block, over the scalar of the kinematics and of y (ny, ...).

        Raises:
            SensorConfigError: a part that does not fit the sensor's rows.
        """
        parts = []
        for row in self.rows:
            parts.append(row.equation.bias(at, y[row.y]))
            check_bias(self.sensors.name, row.equation, parts[-1])
        return parts

    def D(self, q: ArrayLike, qd: ArrayLike | None = None, y: Floats | None = None) -> sp.csc_array:
        """The matrix D(q), sparse (rows, columns), at a configuration q (nq,).

        Only friction and payloads make it depend on qd (nv,), and payloads on accelerations that are read, in y (ny,):
        at rest when None.

        Source: Nori (4), (8), (16).

        Example:
            >>> D = nd.System(nd.autotree(2), "inverse_dynamics").D(np.zeros(2))
            >>> D.shape, D.nnz
            ((40, 40), 92)
        """
        q = self.tree.checked_configuration(q)
        if qd is None:
            return self.entries(positions(self.tree, q)).matrix()
        qd = checked("qd", qd, (self.tree.nv,))
        return self.entries(self.at(q, qd, np.zeros(self.ny) if y is None else y)).matrix()

    def D_each(self, Q: Floats) -> Iterator[sp.csc_array]:
        """Yield D at each of some configurations (N, nq), assembled together: quicker than one by one."""
        Q = self.tree.normalised(checked("Q", Q, (len(Q), self.tree.nq)))
        return self.entries(positions(self.tree, Q.T), (len(Q),)).matrices()

    def each(self, Q: Floats, Qd: Floats, Y: Floats) -> Iterator[tuple[sp.csc_array, Floats]]:
        """Yield D and b at each of some states (N, nq), (N, nv) with their readings (N, ny), assembled together."""
        at, batch = self.at(self.tree.normalised(Q).T, Qd.T, Y.T), (len(Q),)
        b = np.concatenate([spread(part, part.shape[:1], batch) for part in self.bias(at, Y.T)]).astype(float)
        yield from zip(self.entries(at, batch).matrices(), b.T, strict=True)

    def b(self, q: ArrayLike, qd: ArrayLike, y: ArrayLike | Mapping[str, Any]) -> Floats:
        """The vector b (rows,) at a state q (nq,), qd (nv,) and readings y (ny,) or {measurement name: value}.

        Example:
            >>> system = nd.System(nd.autotree(2), "inverse_dynamics")
            >>> b = system.b(np.zeros(2), np.zeros(2), {"qdd:joint1": 1.0, "qdd:joint2": 2.0})
            >>> d = np.linalg.solve(system.D(np.zeros(2)).toarray(), -b)
            >>> print(np.round(d[system.column("tau", 0)], 2))
            [4.34]
        """
        q, qd = self.tree.checked_configuration(q), checked("qd", qd, (self.tree.nv,))
        y = checked("y", self.flat_reading(y), (self.ny,), self.measurement_names)
        return np.concatenate(self.bias(velocities(self.tree, q, qd), y)).astype(float)

    def reading(self, y: ArrayLike | Mapping[str, Any]) -> Floats:
        """The readings y as a flat array (ny,), from one or from {measurement name: value}.

        A name is that of a number ("fx:l_sole.mz") or of a block ("fx:l_sole", with as many values).

        Raises:
            InputError: a measurement that is missing, unknown, of the wrong length, or not a number.
        """
        return shaped("y", self.flat_reading(y), (self.ny,))

    def flat_reading(self, y: ArrayLike | Mapping[str, Any]) -> ArrayLike:
        """The readings y as they are, or as a flat array where they are by name; see `reading`."""
        if not isinstance(y, Mapping):
            return y
        flat = np.full(self.ny, np.nan)
        is_given = np.zeros(self.ny, dtype=bool)
        blocks: dict[str, list[int]] = {}
        for row in self.measurements:  # two may share a name, with different components
            blocks.setdefault(row.name, []).extend(range(row.y.start, row.y.stop))
        where = {name: [k] for k, name in enumerate(self.measurement_names)} | blocks
        for part, values in self._by_name("y", "measurement", y, where):
            flat[part] = values
            is_given[part] = True
        if not is_given.all():
            missing = [name for name, there in zip(self.measurement_names, is_given, strict=True) if not there]
            raise InputError(f"y lacks {len(missing)} of {self.ny} measurements: {', '.join(missing[:8])}.")
        return flat

    def weighting(self, weights: Weights) -> Floats:
        """The weights (n_weights,) from a flat array, or from {name: 1 / sigma^2}; the rest as configured.

        A name is one of `weight_names`, or that of a sensor whose components have a weight each.

        Raises:
            InputError: an unknown name, a wrong number of weights, a value that is not a number.
        """
        if weights is None:
            return self.weights
        if not isinstance(weights, Mapping):
            return numeric("weights", weights)
        flat = self.weights.copy()
        where = {name: [k] for k, name in enumerate(self.weight_names)}
        where |= {row.name: list(range(row.weights.start, row.weights.stop)) for row in self.rows if not row.is_exact}
        for part, values in self._by_name("weights", "weight", weights, where):
            flat[part] = values
        return flat

    def _by_name(
        self, what: str, kind: str, given: Mapping[str, Any], where: Mapping[str, list[int]]
    ) -> Iterator[tuple[list[int], Floats]]:
        """Yield the indices and values of numbers that are given by name."""
        for name, value in given.items():
            if name not in where:
                raise UnknownReadingError(kind, name, where, f"{what} of sensors '{self.sensors.name}'")
            part = where[name]
            values = np.atleast_1d(numeric(f"{what}['{name}']", value))
            if values.shape != (len(part),):
                raise InputError(f"{what}['{name}'] has shape {np.shape(value)}, expected {len(part)} numbers.")
            yield part, values

    @cached_property
    def fingerprint(self) -> str:
        """A hash of the robot and its sensors: two systems with equal ones have the same equations."""
        parts = f"{self.tree.fingerprint} {self.sensors.fingerprint}"
        return hashlib.sha256(parts.encode()).hexdigest()

"""Readings as rows times parameters: the equations of a system where the motion is known, over expressions.

Accelerations given, the equations of motion give a, f and tau one after the other (Nori, Property 1), and what a sensor
reads is

    W(q, qd, qdd) phi + N(q) w + c(q, qd, qdd, y) = 0

with parameters phi and those wrenches w, of contacts, loops and tendons, that no row gives by itself. W and N are the
derivatives of the system's own equations, so that they are written once.

Source: Nori (3); Atkeson, An and Hollerbach (1986) for the linearity in inertias; docs/design.md, 4.11.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from nori_dyn.algebra.derivatives import depends_on, directional
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.algebra.ranges import width
from nori_dyn.algebra.scalars import is_zero
from nori_dyn.algebra.spatial import matvec
from nori_dyn.components.friction import with_frictions
from nori_dyn.errors import InputError
from nori_dyn.identification.parameters import Parameters
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.binding import scalar_rows
from nori_dyn.model.kinematics import Kinematics, moving, positions
from nori_dyn.model.tree import KinematicTree, RobotComponent
from nori_dyn.observe.exact import ExactTree, exact_positions
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import Traced
from nori_dyn.system.builder import System
from nori_dyn.system.rows import ComponentRow, RowBlock, SensorRow
from nori_dyn.system.trace import configuration_inputs
from nori_dyn.system.variables import DEFLECTION, LOAD, OFFSET, VariableKey
from nori_dyn.tables import listed, spaced
from nori_dyn.typing import Array, Floats, Indices

MOST_NAMES = 5
"""Most names of parameters in an error."""

MOTIONS = "a", "qdd", DEFLECTION
"""The variables that a known motion gives."""


@dataclass(frozen=True, eq=False)
class ParametricTree(ExactTree):
    """A tree whose inertias and components are expressions of parameters.

    Attributes:
        parametric_inertias: the spatial inertias (n_links, 6, 6).
        parametric_components: the components.
        taken_at: the robot in numbers whose weight friction depends on, so that all stays linear.
    """

    parametric_inertias: Array = field(kw_only=True)
    parametric_components: tuple[RobotComponent, ...] = field(kw_only=True)
    taken_at: KinematicTree = field(kw_only=True)

    @property
    def nominal_I(self) -> Floats:
        return self.taken_at.I

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "I", self.parametric_inertias)
        object.__setattr__(self, "components", self.parametric_components)

    @staticmethod
    def over(parameters: Parameters, values: Array, graph: Graph, taken_at: KinematicTree) -> ParametricTree:
        """The tree of parameters whose values (n,) are expressions; of what is not linear in them, to first order.

        Friction is as its law says, without stiction.
        """
        tree = parameters.tree
        known: dict[str, Any] = {part.name: getattr(tree, part.name) for part in fields(tree)}
        changed: dict[str, Any] = {
            "parametric_inertias": parameters.inertias(values),
            "parametric_components": with_frictions(parameters.components(values, taken_at), stiction=None),
            "taken_at": taken_at,
        }
        return ParametricTree(**known, arena=graph, **changed)


@dataclass(frozen=True, eq=False)
class Regression:
    """W phi + N w + c = 0 over expressions, for the rows of a system that depend on parameters.

    Attributes:
        system: whose rows.
        parameters: phi, the columns of W.
        graph: the expressions.
        inputs: q, qd, qdd, y as expressions.
        row_names: the name of each row.
        reads: for each row the number of its reading among y, -1 where it takes none.
        is_exact: for each row whether it holds exactly; others are noisy.
        unknowns: the name of each w that some row feels.
        W: the entries that are not zero for all motions, by row and parameter.
        N: those, by row and w.
        c: for each row.
        closing: what loops and couplings say of accelerations: zero in every motion.
        total: W phi + N w + c as one expression, of phi, w and the inputs.
        phi: as inputs of `total`.
        w: as inputs of `total`.
    """

    system: System
    parameters: Parameters
    graph: Graph
    inputs: Mapping[str, Array]
    row_names: tuple[str, ...]
    reads: tuple[int, ...]
    is_exact: tuple[bool, ...]
    unknowns: tuple[str, ...]
    W: Mapping[tuple[int, int], Expr]
    N: Mapping[tuple[int, int], Expr]
    c: tuple[Expr, ...]
    closing: tuple[Expr, ...]
    total: tuple[Expr, ...]
    phi: tuple[Expr, ...]
    w: tuple[Expr, ...]

    @staticmethod
    def of(
        system: System,
        wanted: Sequence[str],
        seed: int = 0,
        taken_at: KinematicTree | None = None,
        readings: Mapping[str, str] | None = None,
    ) -> Regression:
        """Regress a system's readings on parameters, where the motion is known.

        Args:
            system: the robot and its sensors. Equations of motion are taken to hold exactly.
            wanted: the parameters, see `Parameters.of`. Offsets that the sensors declare are among them by themselves.
            seed: seed of the random point of the fingerprints.
            taken_at: the robot whose weight friction depends on, and about which equations that are not linear in a
                parameter are expanded; that of the system when None.
            readings: those of forces that may have an offset and a gain, with their units; those of the system when
                None.

        Raises:
            UnknownNameError: a parameter that does not exist.
            InputError: no sensor of the system says anything of forces; a sensor that is not linear in a parameter.
        """
        wanted = [wanted] if isinstance(wanted, str) else list(wanted)
        declared = [name for v in system.variables if v.kind == OFFSET for name in v.component_names]
        own = force_readings(system) if readings is None else readings
        parameters = Parameters.of(system.tree, [*wanted, *declared], own)
        graph = Graph(seed)
        arrays = {
            "q": np.array(configuration_inputs(graph, system.tree), dtype=object),
            **{name: _inputs(graph, name, system.tree.nv) for name in ("qd", "qdd")},
            "y": _inputs(graph, "y", system.ny),
        }

        forward = partial(_Forward, system, parameters, graph, arrays, system.tree if taken_at is None else taken_at)
        none = np.array([graph.zero] * len(parameters), dtype=object)
        # First, so that what cancels later is found among what depends on no parameter, such as m v x v of a moment.
        without = [row for *_, row in forward(none, are_known=True).rows()]
        return forward(_inputs(graph, "phi", len(parameters)), are_known=False).regression(without)

    @property
    def n_rows(self) -> int:
        """Number of rows of a sample."""
        return len(self.row_names)

    def without_gains(self) -> Regression:
        """The regression with all gains taken as known, though still among the parameters."""
        gains = set(self.parameters.of_kinds("gain"))
        return replace(self, W={(row, k): entry for (row, k), entry in self.W.items() if k not in gains})

    def program(self, columns: Sequence[int], backend: str) -> tuple[CompiledFunction, RegressorLayout]:
        """Compile the numbers of some columns of W, of N and of c, as a function of q, qd, qdd and y; and their layout.

        Args:
            columns: the parameters wanted, by their places.
            backend: as for `compile`.

        Raises:
            CompilerError: as for `compile`.
        """
        layout, entries = self.entries(columns)
        return CompiledFunction(self.traced(entries, self.inputs), backend), layout

    def entries(self, columns: Sequence[int]) -> tuple[RegressorLayout, list[Expr]]:
        """What is not zero of some columns of W, by their places, then of N and c; and where it belongs."""
        place = {column: k for k, column in enumerate(columns)}
        of_W = {(row, place[k]): entry for (row, k), entry in self.W.items() if k in place}
        shape = self.n_rows, len(columns), len(self.unknowns)
        return RegressorLayout(tuple(of_W), tuple(self.N), shape), [*of_W.values(), *self.N.values(), *self.c]

    def traced(self, entries: Sequence[Expr], inputs: Iterable[str]) -> Traced:
        """Entries as a function of some inputs."""
        own, outputs = {name: self.inputs[name] for name in inputs}, {"entries": np.array(entries, dtype=object)}
        return Traced("regressor", self.system.tree, self.graph, own, outputs, None, None)


@dataclass(frozen=True)
class RegressorLayout:
    """Where the numbers belong that a regressor is computed as.

    Attributes:
        of_W: those of W, by row and column: the first.
        of_N: those of N, which follow; those of c are last.
        shape: numbers of rows, of columns of W, and of columns of N.
    """

    of_W: tuple[tuple[int, int], ...]
    of_N: tuple[tuple[int, int], ...]
    shape: tuple[int, int, int]

    @cached_property
    def rows(self) -> tuple[tuple[list[int], list[int]], ...]:
        """For each row which entries are its own of W, and of which columns."""
        return row_by_row(self.of_W, self.shape[0])

    @property
    def constants(self) -> slice:
        """Which entries are those of c."""
        start = len(self.of_W) + len(self.of_N)
        return slice(start, start + self.shape[0])

    def dense(self, entries: Floats) -> tuple[Floats, Floats, Floats]:
        """W (n, rows, columns), N (n, rows, unknowns) and c (n, rows) of entries (n, ...)."""
        rows, columns, unknowns = self.shape
        W, N = np.zeros((len(entries), rows, columns)), np.zeros((len(entries), rows, unknowns))
        of_W, of_N = (np.array(places, dtype=np.intp).reshape(-1, 2) for places in (self.of_W, self.of_N))
        W[:, of_W[:, 0], of_W[:, 1]] = entries[:, : len(of_W)]
        N[:, of_N[:, 0], of_N[:, 1]] = entries[:, len(of_W) : self.constants.start]
        return W, N, entries[:, self.constants]


def row_by_row(places: Iterable[tuple[int, int]], n: int) -> tuple[tuple[list[int], list[int]], ...]:
    """For each of n rows which of some places, by row and column, are in it, and in which columns."""
    found: list[tuple[list[int], list[int]]] = [([], []) for _ in range(n)]
    for k, (row, column) in enumerate(places):
        found[row][0].append(k)
        found[row][1].append(column)
    return tuple(found)


def regressions_of(
    systems: Sequence[System], wanted: Sequence[str], seed: int = 0, taken_at: KinematicTree | None = None
) -> tuple[Regression, ...]:
    """The regressions of a robot's contact states, over the same parameters; see `Regression.of`."""
    readings = force_readings_of(systems)
    return tuple(Regression.of(system, wanted, seed, taken_at, readings) for system in systems)


def force_readings_of(systems: Iterable[System]) -> dict[str, str]:
    """Readings of some systems that depend on forces, each with its unit."""
    return {name: unit for system in systems for name, unit in force_readings(system).items()}


def force_readings(system: System) -> dict[str, str]:
    """Readings of a system that depend on forces, each with its unit."""
    at = moving(positions(system.tree, system.tree.neutral_configuration()), np.zeros(system.tree.nv))
    found: dict[str, str] = {}
    for row in system.measurements:
        if isinstance(row.key, SensorRow) and _is_of_forces(row, at):
            found |= zip(row.component_names, row.units, strict=True)
    return found


def torques_of(systems: Iterable[System], names: Sequence[str]) -> Indices:
    """Freedom of the joint whose torque each row of some systems reads, -1 where it reads no such."""
    read = (each for system in systems for each in scalar_rows(system, system.measurements, "tau", LOAD))
    found = {row.component_names[k]: freedom for row, k, freedom, _ in read}
    return np.array([found.get(name, -1) for name in names], dtype=np.intp)


def _is_of_forces(row: RowBlock, at: Kinematics) -> bool:
    is_motion = {key.kind in MOTIONS for key in row.equation.blocks(at)} == {True}
    return not is_motion or any(unit in ("N", "N m") for unit in row.units)


class _Forward:
    """The variables of a system, one after the other, from a motion and the wrenches that stay unknown.

    Args:
        system: over numbers.
        parameters: the parameters.
        graph: the expressions.
        inputs: q, qd, qdd, y as expressions.
        taken_at: see `ParametricTree`.
        values: of the parameters, as expressions (n,).
        are_known: whether wrenches that would stay unknown are zero.
    """

    def __init__(
        self,
        system: System,
        parameters: Parameters,
        graph: Graph,
        inputs: Mapping[str, Array],
        taken_at: KinematicTree,
        values: Array,
        are_known: bool,
    ) -> None:
        tree = ParametricTree.over(parameters, values, graph, taken_at)
        self._of, self._parameters, self._graph, self._inputs = system, parameters, graph, inputs
        self._free, self._are_known, self._y = values, are_known, inputs["y"]
        self._at = moving(exact_positions(tree, inputs["q"]), inputs["qd"])
        self._phi: dict[str, Expr] = dict(zip(parameters.names, values, strict=True))
        self._system = system = system.replace(tree)
        self._told: set[SensorRow] = set()
        self._values: dict[VariableKey, Array] = {}
        self._unknown: dict[str, Expr] = {}
        for variable in system.variables:
            if variable.kind == "qdd":
                self._values[variable.key] = inputs["qdd"][system.tree.v_slices[variable.body]]
            elif variable.kind == OFFSET:
                offsets = [self._phi[name] for name in variable.component_names]
                self._values[variable.key] = np.array(offsets, dtype=object)
            elif variable.is_source:
                self._values[variable.key] = self._source(variable.key, variable.component_names)
        for key in system.motion_keys:
            given = VariableKey(key.gives, key.body)
            self._values[given] = self._sum(system.row(key), without=given)

    def _source(self, key: VariableKey, names: Sequence[str]) -> Array:
        """A wrench as exact rows give it, unknown where none does."""
        values: list[Any] = [None] * len(names)
        for row in self._system.sensor_rows:
            equation = row.equation
            if not row.is_exact or not isinstance(equation, VariableReading) or equation.key != key:
                continue
            right = self._true(row) if equation.value is None else np.array(equation.value)
            known = _solved(equation.matrix, right)
            if known and all(values[k] is None for k in known):
                self._told.add(row.key)  # type: ignore[arg-type]
                for k, value in known.items():
                    values[k] = value
        for k, name in enumerate(names):
            if values[k] is None:
                values[k] = self._graph.zero if self._are_known else self._graph.input(f"w:{name}")
                self._unknown[name] = values[k]
        return np.array([self._graph.expr(value) for value in values], dtype=object)

    def _true(self, row: RowBlock) -> Array:
        """True value of a reading: its gain times it, less its offset."""
        names, y = row.component_names, self._y[row.y]
        gains = np.array([self._phi.get(f"gain:{name}", 1.0) for name in names], dtype=object)
        return np.asarray(gains * y - [self._phi.get(f"{OFFSET}:{name}", 0.0) for name in names])

    def _sum(self, row: RowBlock, without: VariableKey | None = None, y: Array | None = None) -> Array:
        """Sum of an equation's terms, the variable that it gives left out."""
        own = self._y[row.y] if y is None else y
        total = row.equation.bias(self._at, own)
        for key, block in row.equation.blocks(self._at).items():
            if key != without and block.shape[1]:
                total = total + matvec(block, self._values[key])
        return np.asarray(total)

    def rows(self) -> Iterator[tuple[str, int, bool, Expr]]:
        """Yield name, number of reading, whether it is exact, and expression of each row of a sensor."""
        for row in self._system.rows:
            is_prior = isinstance(row.equation, VariableReading) and row.equation.key.kind == OFFSET
            if not isinstance(row.key, SensorRow) or row.key in self._told or is_prior:
                continue
            names, n = row.component_names, width(row.y)
            gains = [self._phi.get(f"gain:{name}", 1.0) for name in names[:n]]
            terms = self._sum(row, y=np.array(gains, dtype=object) * self._y[row.y])
            has_own = any(key.kind == OFFSET for key in row.equation.blocks(self._at))
            for k, name in enumerate(names):
                offset = 0.0 if has_own else self._phi.get(f"{OFFSET}:{name}", 0.0)
                yield name, row.y.start + k if n else -1, row.is_exact, self._graph.expr(terms[k] + offset)

    def closing(self) -> Iterator[Expr]:
        """Yield the rows of loops, couplings and held tendons."""
        for row in self._system.rows:
            if isinstance(row.key, ComponentRow):
                yield from map(self._graph.expr, self._sum(row))

    def regression(self, without: Sequence[Expr]) -> Regression:
        """Rows that depend on parameters, or on unknown wrenches, by each row where all of these are zero."""
        graph, parameters, rows = self._graph, self._parameters, list(self.rows())
        free = [*self._free, *self._unknown.values()]
        depends = depends_on(graph, [row for *_, row in rows], [x.index for x in free])
        constants = [row for row, each in zip(without, rows, strict=True) if depends[each[-1].index]]
        rows = [each for each in rows if depends[each[-1].index]]
        if not rows:
            raise _nothing_said(self._of, parameters)
        terms = [row for *_, row in rows]
        found = directional(terms, [{x.index: graph.one} for x in free], "reverse")
        depends = depends_on(graph, list(found.values()), [x.index for x in free])
        for (row, column), entry in found.items():
            if depends[entry.index]:
                name = [*parameters.names, *self._unknown][column]
                raise InputError(f"'{rows[row][0]}' is not linear in '{name}'. Leave the one or the other out.")
        n = len(parameters)
        felt = sorted({k - n for _, k in found if k >= n})
        names, wrenches = [*self._unknown], [*self._unknown.values()]
        return Regression(
            system=self._of,
            parameters=parameters,
            graph=graph,
            inputs=self._inputs,
            row_names=tuple(name for name, *_ in rows),
            reads=tuple(reading for _, reading, _, _ in rows),
            is_exact=tuple(is_exact for _, _, is_exact, _ in rows),
            unknowns=tuple(names[k] for k in felt),
            W={(row, k): entry for (row, k), entry in found.items() if k < n},
            N={(row, felt.index(k - n)): entry for (row, k), entry in found.items() if k >= n},
            c=tuple(constants),
            closing=tuple(self.closing()),
            total=tuple(terms),
            phi=tuple(self._free),
            w=tuple(wrenches[k] for k in felt),
        )


def _nothing_said(system: System, parameters: Parameters) -> InputError:
    """Error of sensors of which no row depends on a parameter."""
    sensors = f"sensors '{system.sensors.name}'"
    if not force_readings(system):
        advice = "Add a sensor of forces, such as joint_torque or force_torque."
        return InputError(f"{sensors}: none says anything of the parameters. {advice}")
    names = listed(parameters.names, MOST_NAMES) or "none"
    return InputError(
        f"{sensors}: no reading depends on any of the parameters asked for: {spaced(names)}. However the robot moves, "
        "nothing tells them; ask for others."
    )


def _solved(matrix: Array, right: Array) -> dict[int, Any]:
    """Components of a wrench that exact rows give, and their values; empty where that takes a solution."""
    if len(matrix) == matrix.shape[1] and all(map(is_zero, right)):
        return dict.fromkeys(range(len(matrix)), 0.0)
    found: dict[int, Any] = {}
    for row, value in zip(matrix, right, strict=True):
        (places,) = np.nonzero([not is_zero(x) for x in row])
        if len(places) != 1 or row[places[0]] not in (1.0, -1.0):
            return {}
        found[int(places[0])] = value * float(row[places[0]])
    return found


def _inputs(graph: Graph, name: str, n: int) -> Array:
    return np.array([graph.input(f"{name}[{k}]") for k in range(n)], dtype=object)

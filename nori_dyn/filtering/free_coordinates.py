"""What a tick leaves open: its exact equations give all unknowns from a few free ones, and weighed rows speak of these.

The rows that hold exactly determine all of d but some numbers u. Which ones: all that persist, and as many more as it
takes, the sources whose columns the exact rows tell worst. A robot on which u is read besides is then a square exact
system, with a plan like any other, and

    d = d(q, qd, y, u),    Y d + b = A(q) u + c(q, qd, y) = 0 + noise,    r = X(q) u + x(q, qd, y)

for weighed rows Y and for the rates r of what persists; all are linear in u, so that A and X are derivatives of it.

Source: docs/design.md, 4.12; own derivation (tests/unit/filtering/test_free_coordinates.py).
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import scipy.linalg as la

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.algebra.derivatives import directional, replaced
from nori_dyn.algebra.expressions import Expr
from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import NoriWarning, PlanError
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.planning.identity import code_identity
from nori_dyn.planning.orders import looked_up
from nori_dyn.planning.planner import EliminationPlan, Request, make_plan
from nori_dyn.planning.static_elimination import static_elimination
from nori_dyn.program.guards import pivot_guards
from nori_dyn.program.sparse import Places, SparseFunction, sparse_function
from nori_dyn.program.tracing import Traced, Untraced
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation, SensorsOfRows, WithUnknowns
from nori_dyn.system.limbs import correspondence
from nori_dyn.system.memory import Remembered
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.sources import NULL_TOLERANCE, SourceSplit, natural_sizes, over_sources
from nori_dyn.system.variables import Unknown, VariableKey
from nori_dyn.tables import listed
from nori_dyn.typing import Array, Floats, Indices

FREE = "free"
"""What readings of u belong to in messages that count rows."""

PREFERRED = 30.0
"""How much worse exact rows may tell accelerations than wrenches, and still are asked for them.

Accelerations follow by an inertia, which is positive definite at every pose; a wrench from others as the pose has it.
"""

LEAST_PIVOT = 1e-7
"""The share of its usual size that a pivot of the exact rows has at the least: below, a tick is as without readings.

What is lost of digits above is less than sensors tell; nothing solves rows afresh, so that no tick is refused without
need.
"""

SEED = 0
"""Seed of the configuration at which exact rows choose what they tell."""


@dataclass(frozen=True, slots=True)
class FreeReading(VariableReading):
    """The rows that read some numbers of a variable, d_k - u = 0.

    Attributes:
        unknowns: the variable again where no other row brings it along, see `WithUnknowns`.
    """

    unknowns: tuple[Unknown, ...] = ()


@dataclass(frozen=True, eq=False)
class FreeCoordinates:
    """A system's exact equations over what is free.

    Attributes:
        system: the system, with rows that are weighed.
        columns: the columns of d that are free, u = [s | v | f]: first those that do not persist, then those that
            persist with a rate, then those that persist without.
        sizes: n_s, n_v, n_f.
        weighed: the weighed rows that tell something at every tick: not those of what is known at first.
        plan: the plan of the exact system in which u is read, after the exact readings.
    """

    system: System
    columns: Indices
    sizes: tuple[int, int, int]
    weighed: tuple[RowBlock, ...]
    plan: EliminationPlan

    @cached_property
    def memory(self) -> tuple[Remembered, ...]:
        """What persists, in the order of u."""
        return persisting(self.system)

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each number of u."""
        return tuple(self.system.variable_names[k] for k in self.columns.tolist())

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """The name of each weighed row."""
        return tuple(name for row in self.weighed for name in row.component_names)

    @cached_property
    def sensor_of_rows(self) -> tuple[str, ...]:
        """The sensor of each weighed row."""
        return tuple(row.name for row in self.weighed for _ in row.component_names)

    @cached_property
    def weight_of_rows(self) -> Indices:
        """For each weighed row the number of its weight."""
        return np.array([k for row in self.weighed for k in row.weight_of_rows], dtype=np.intp)

    @cached_property
    def exact_readings(self) -> Indices:
        """Which numbers of y the exact rows read, in the order in which the plan's system reads them."""
        rows = (row for row in self.system.rows if row.is_sensor and row.is_exact)
        return np.array([k for row in rows for k in numbers(row.y)], dtype=np.intp)

    @cached_property
    def rows(self) -> TickRows:
        """What a tick says of u."""
        found = self.sparse_function("what a tick says", lambda: _traced_rows(self))
        ends = np.cumsum([0, *(len(one.variable.components) for one in self.memory)]).tolist()
        fading = [range(*ends[k : k + 2]) for k, one in enumerate(self.memory) if one.part is not None]
        return TickRows(**found.places, fading=tuple(chain.from_iterable(fading)), function=found.function)

    def sparse_function(self, name: str, trace: Callable[[], tuple[Mapping[str, Places], Traced]]) -> SparseFunction:
        """A function of its equations, from the user's cache where that knows them by their fingerprint.

        Args:
            name: of the function.
            trace: see `sparse_function`.
        """
        if not _is_data(self.system):
            return SparseFunction(*trace())
        return sparse_function(name, self.system.tree, self.plan.identity, trace)


@dataclass(frozen=True, eq=False)
class TickRows:
    """A u + c and X u + x, functions of q, qd and y.

    Attributes:
        A: the entries of A that are not zero, by row and number of u.
        X: those of X, by number of the rate and number of u.
        fading: which numbers of the memory fade in a time that depends on the state.
        function: computes these numbers, one after the other: A, c, X, x, and one over each of these times.
    """

    A: Places
    X: Places
    fading: tuple[int, ...]
    function: Traced | Untraced

    @cached_property
    def places_of_A(self) -> Indices:
        """`A` as an array."""
        return np.array(self.A, dtype=np.intp).reshape(-1, 2)

    @cached_property
    def places_of_X(self) -> Indices:
        """`X` as an array."""
        return np.array(self.X, dtype=np.intp).reshape(-1, 2)


Asked: TypeAlias = EliminationPlan | Request
"""What a filter is asked for: outputs of a system, by a plan or without one."""


def no_memory(sensors: str) -> PlanError:
    """The error that nothing persists by the sensors of that name."""
    return PlanError(
        f"nothing persists by sensors '{sensors}': a filter needs `memory`, as in memory: {{speed: "
        "{of: qd, rate: qdd, noise: 0.001}}. For estimates of one instant use plan.solver()."
    )


def free_coordinates(plan: Asked, like: FreeCoordinates | None = None) -> FreeCoordinates:
    """The exact equations of a plan's system over what is free.

    Args:
        plan: a plan of a system with memory and weighed rows, or what is asked for without one.
        like: those of a system of the same robot: where it corresponds to this one, as much is free here, in one order.

    Raises:
        PlanError: nothing persists; no row is weighed, or equations of motion are; exact rows tell what persists; a
            rate depends on what it is the rate of.
    """
    system = plan.system
    if not system.memory:
        raise no_memory(system.sensors.name)
    if note := system.note_on_offsets:
        warnings.warn(f"sensors '{system.sensors.name}': {note}", NoriWarning, stacklevel=2)
    if (found := _FOUND.get(plan)) is None:
        found = _FOUND[plan] = _found(plan, like)
    return found


_FOUND: WeakKeyDictionary[Asked, FreeCoordinates] = WeakKeyDictionary()
"""What is free by each plan that is alive: trackers of one plan have the same equations."""


def _found(plan: Asked, like: FreeCoordinates | None) -> FreeCoordinates:
    system = plan.system
    weighed, columns, kept = free_columns(system, like)
    n_v = sum(len(one.variable.components) for one in system.memory if one.rate is not None)
    exact = tuple(row.equation for row in system.rows if row.is_sensor and row.is_exact)
    readings = tuple(_readings(system, columns, exact))
    code, read = code_identity(("filtering",)), [(row.name, row.components) for row in readings]
    key = f"{code} {system.fingerprint} {read}"
    name, fingerprint = f"{system.sensors.name}, what persists given", hashlib.sha256(key.encode()).hexdigest()
    sensors = SensorsOfRows(name, fingerprint, (*exact, *readings))
    open_system = system.replace(sensors=sensors)
    outputs = [output.name for output in plan.outputs]
    settings: dict[str, Any] = {"seed": plan.seed, "like": None if like is None else like.plan}
    make = partial(make_plan, open_system, outputs, **settings)
    exact_plan = looked_up(make, open_system, outputs, **settings) if _is_data(system) else make()
    return FreeCoordinates(system, columns, (len(columns) - len(kept), n_v, len(kept) - n_v), weighed, exact_plan)


def _is_data(system: System) -> bool:
    """Whether the fingerprint of the sensors tells all of them, as `plan_system` has it."""
    return isinstance(getattr(system.sensors, "sensors", system.sensors), SensorSet)


def persisting(system: System) -> tuple[Remembered, ...]:
    """What persists, in the order of u: first what has a rate."""
    return tuple(sorted(system.memory, key=lambda one: one.rate is None))


def free_columns(system: System, like: FreeCoordinates | None = None) -> tuple[tuple[RowBlock, ...], Indices, Indices]:
    """The weighed rows that tell something at every tick, the columns that are free, and those that persist.

    Args:
        system: the system.
        like: equations of a system whose columns are taken that correspond, if they do.

    Raises:
        PlanError: no row is weighed, or equations of motion are; exact rows tell what persists.
    """
    noisy = [row.name for row in system.rows if row.is_dynamic and not row.is_exact]
    if noisy:
        raise PlanError(f"'{noisy[0]}' has a sigma: a filter needs equations of motion that hold exactly.")
    known_first = {one.known_by for one in system.memory}
    weighed = tuple(row for row in system.rows if not row.is_exact and row.name not in known_first)
    if not weighed:
        raise PlanError(f"all rows of sensors '{system.sensors.name}' hold exactly: a filter needs some with a sigma.")
    kept = np.array([k for one in persisting(system) for k in numbers(one.variable.slice)], dtype=np.intp)
    return weighed, np.concatenate([_others(system, kept, like), kept]), kept


def _others(system: System, kept: Indices, like: FreeCoordinates | None) -> Indices:
    """The columns of sources that are free and do not persist: what exact rows tell is left out."""
    if (found := _UNTOLD.get(system)) is None:
        found = _UNTOLD[system] = _untold(system, kept)
    told, chosen = found
    images = None if like is None else _images(like, system)
    if images is not None and len(images) == len(chosen):
        by_others = np.array([column for place, column in told.items() if place not in images]).T
        if by_others.shape == (len(told) - len(chosen),) * 2 and np.linalg.cond(by_others) * NULL_TOLERANCE < 1.0:
            return images
    return chosen


_UNTOLD: WeakKeyDictionary[System, tuple[dict[int, Floats], Indices]] = WeakKeyDictionary()
"""Of each system that is alive what `_untold` found."""


def _untold(system: System, kept: Indices) -> tuple[dict[int, Floats], Indices]:
    """What exact rows say of each source that does not persist, by its column, and the sources that they tell worst."""
    split, sizes = SourceSplit.of(system), natural_sizes(system)
    q = system.tree.random_configurations(1, np.random.default_rng(SEED))[0]
    at = over_sources(system, sizes, system.D(q))
    E = at.M[system.exact_rows[at.rows]]
    lost = np.setdiff1d(kept, split.sources)
    candidates = np.flatnonzero(~np.isin(split.sources, kept))
    accelerations = [k for v in system.variables if v.kind == "qdd" for k in numbers(v.slice)]
    is_acceleration = np.isin(split.sources[candidates], accelerations)
    of_candidates = E[:, candidates] * np.where(is_acceleration, PREFERRED, 1.0)
    if of_candidates.size:
        R, order = la.qr(of_candidates, mode="r", pivoting=True)
    else:
        R, order = np.zeros((0, 0)), np.arange(len(candidates))
    pivots = np.abs(np.diagonal(R))
    rank = int(np.sum(pivots > NULL_TOLERANCE * pivots.max(initial=0.0)))
    if len(lost) or rank < len(E):
        names = [one.variable.name for one in system.memory]
        raise PlanError(
            f"exact rows of sensors '{system.sensors.name}' tell what persists ({listed(names)}) by themselves, or say "
            "the same twice. Give a `sigma` to sensors that read it, or take it out of the memory."
        )
    said = dict(zip(split.sources[candidates].tolist(), E[:, candidates].T, strict=True))
    return said, split.sources[candidates[np.sort(order[rank:])]]


def _images(like: FreeCoordinates, system: System) -> Indices | None:
    """The columns that correspond to those that are free and do not persist in another system, in order; None if none.

    Then limbs in each other's place have the same equations, and the same order eliminates both.
    """
    found = correspondence(like.system, system)
    if found is None:
        return None
    bodies, _ = found
    variables = {k: v for v in like.system.variables for k in numbers(v.slice)}
    there = {v.key: v.slice for v in system.variables}
    images = list[int]()
    for column in like.columns[: like.sizes[0]].tolist():
        v = variables[column]
        image = there.get(v.key._replace(body=int(bodies[v.key.body])))
        if image is None:
            return None
        images.append(image.start + column - v.slice.start)
    return np.sort(np.array(images, dtype=np.intp))


def _readings(system: System, columns: Indices, exact: Sequence[Equation]) -> list[FreeReading]:
    """The readings of some columns, in the order of these, one a run of columns of a variable."""
    brought = {u.key for equation in exact if isinstance(equation, WithUnknowns) for u in equation.unknowns}
    by_sensors = {
        u.key: u
        for row in system.rows
        if row.is_sensor and isinstance(row.equation, WithUnknowns)
        for u in row.equation.unknowns
    }
    variables = {k: v for v in system.variables for k in numbers(v.slice)}
    places: dict[VariableKey, list[int]] = {}
    for column in columns.tolist():
        v = variables[column]
        places.setdefault(v.key, []).append(column - v.slice.start)
    found = []
    for key, own in places.items():
        v = variables[system.column(key.kind, key.body, key.component).start]
        more = (by_sensors[v.key],) if v.key in by_sensors and v.key not in brought else ()
        names, matrix = tuple(v.components[k] for k in own), np.eye(len(v.components))[own]
        about = f"{FREE}:{v.name}", "docs/design.md, 4.12", FREE, names
        found.append(FreeReading(*about, key, matrix, None, None, unknowns=more))
    return found


@collector_at_rest()
def _traced_rows(of: FreeCoordinates) -> tuple[dict[str, Places], Traced]:
    """Measurement rows of a tick over u: where A and X are not zero, and what computes them.

    All is traced with u = 0 first: what cancels later is then found by its fingerprint among expressions without u.
    """
    system, plan = of.system, of.plan.retraced()
    symbolic, n_exact = plan.symbolic, len(of.exact_readings)
    graph, u = symbolic.graph, symbolic.y[n_exact:]
    y = array_of([graph.input(f"reading[{k}]") for k in range(system.ny)])
    y[of.exact_readings] = symbolic.y[:n_exact]
    at = system.at(array_of(symbolic.q), array_of(symbolic.qd), y)
    rows = [(row.equation.blocks(at), row.equation.bias(at, y[row.y])) for row in of.weighed]
    refined, zeros = plan.refined, {x.index: graph.zero for x in u}
    still = replace(refined.symbolic, b=tuple(replaced(refined.symbolic.b, zeros)))
    c, x = _evaluated(of, rows, static_elimination(replace(refined, symbolic=still), plan.program_order).unknowns)
    totals, rates = _evaluated(of, rows, plan.solved.unknowns)
    slopes = directional([*totals, *rates], [{one.index: graph.one} for one in u])
    p, (n_s, _, _) = len(totals), of.sizes
    A = tuple(sorted((row, k) for row, k in slopes if row < p))
    X = tuple(sorted((row - p, k) for row, k in slopes if row >= p))
    rated = {of.names[k] for i, k in X if n_s <= k <= n_s + i}
    if rated:
        raise PlanError(
            f"a rate depends on {listed(sorted(rated))}, which is what it is the rate of, or comes before that in the "
            "memory: a time constant says the one, another order of the entries the other."
        )
    inverse_times = [graph.expr(value) for one in of.memory if one.part is not None for value in one.part.fading(at)]
    found = [*(slopes[place] for place in A), *c, *(slopes[row + p, k] for row, k in X), *x, *inverse_times]
    inputs = {"q": array_of(symbolic.q), "qd": array_of(symbolic.qd), "y": y}
    outputs = {"rows": array_of(found)}
    guards = pivot_guards(plan, found, LEAST_PIVOT)
    return {"A": A, "X": X}, Traced("what a tick says", system.tree, graph, inputs, outputs, None, None, guards)


def _evaluated(
    of: FreeCoordinates, rows: Sequence[tuple[Mapping[VariableKey, Array], Array]], unknowns: Sequence[Expr]
) -> tuple[list[Expr], list[Expr]]:
    """Weighed rows, as blocks and bias, and the rates, for unknowns of the exact system."""
    place = {v.key: v.slice for v in of.plan.system.variables}
    graph = unknowns[0].graph
    totals: list[Expr] = []
    for blocks, bias in rows:
        sums = [graph.expr(one) for one in bias]
        for key, block in blocks.items():
            for k, entries in enumerate(block):
                for column, entry in zip(numbers(place[key]), entries, strict=True):
                    sums[k] = sums[k] + graph.expr(entry) * unknowns[column]
        totals += sums
    rates = [unknowns[column] for one in of.memory if one.rate is not None for column in numbers(place[one.rate])]
    return totals, rates


def array_of(values: Sequence[Expr]) -> Array:
    """Expressions as an array."""
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def dense(places: Sequence[tuple[int, int]] | Indices, values: Floats, shape: tuple[int, int]) -> Floats:
    """A matrix from the numbers (..., n) of its entries."""
    found = np.zeros((*values.shape[:-1], *shape))
    rows, columns = np.asarray(places, dtype=np.intp).reshape(-1, 2).T
    found[..., rows, columns] = values
    return found

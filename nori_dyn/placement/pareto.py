"""The Pareto front of cost and deviation: sets of sensors of which no other is both cheaper and more precise.

The cheapest set that suffices is the first point. The next is the cheapest of those that are more precise than it, and
so on, until none is: the search for the cheapest, with a limit on the deviation. Of sets that cost the same the most
precise is left. So a point is proven where what is more precise costs more for certain. Where that takes too long, the
best set so far is a point, with the bound of the relaxed problem, and the next is more precise by a larger step.

Source: Haimes, Lasdon and Wismer (1971), for the limit on one objective; own derivation for the rest
(tests/unit/placement/test_pareto.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from nori_dyn.algebra.arrays import counted
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import configurations_of
from nori_dyn.placement.candidates import EQUAL_COSTS, Candidates
from nori_dyn.placement.cases import Demand, Where
from nori_dyn.placement.cover import CoverProblem, Found, IntegerProgram
from nori_dyn.placement.criterion import AVERAGED, BETTER, Criterion, DeviationLimit, Kind
from nori_dyn.placement.design import ExchangeSearch
from nori_dyn.placement.selection import EFFORT
from nori_dyn.planning.outputs import resolve_outputs
from nori_dyn.program.layout import output_names
from nori_dyn.system.given import check_tree
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Progress, Watched, progress_bar

BETTER_UNPROVEN = 0.05
"""Share of a deviation by which the next set has to be more precise where it takes too much to prove that none is."""

SHARE = 1 / 4
"""Share of the integer programs left that a point may take."""


@dataclass(frozen=True, slots=True, eq=False)
class ParetoPoint:
    """A set of sensors.

    Attributes:
        chosen: the choices, in the order of the candidates.
        cost: what they cost together.
        deviation: standard deviation of the outputs with them, see `ParetoFront.criterion` [their unit].
        bound: no set that suffices and costs no more has a smaller one.
        sensors: the set of them and of what is there anyway.
    """

    chosen: tuple[str, ...]
    cost: float
    deviation: float
    bound: float
    sensors: SensorSet

    @property
    def is_optimal(self) -> bool:
        """Whether no set is as cheap and more precise, for certain."""
        return self.bound == self.deviation

    @property
    def gap(self) -> float:
        """How much smaller the deviation could be at best for the same cost, as a share."""
        return 1.0 - self.bound / self.deviation if self.deviation else 0.0


@dataclass(frozen=True, slots=True, eq=False)
class ParetoFront(Shown):
    """Sets of sensors of which no other is both cheaper and more precise.

    Attributes:
        name, robot: of the candidates, and of the robot.
        points: the sets, the cheapest first.
        bound: sets that are more precise than the last cost so much at least; infinite where there are none within
            the budget.
        criterion: "A": a deviation is the root mean square of those of the outputs, over the poses; "D": their
            geometric mean, of those that are independent.
        outputs: what is judged, as it was asked for.
        n_outputs: how many numbers of d that is.
        unit: the SI unit of deviations; "" where outputs have several.
        demand: where sets determine the outputs, and what may fail.
        offered: what there was to choose from, and what each costs.
        types: by candidate its type of sensor, or its own name where it is several.
    """

    name: str
    robot: str
    points: tuple[ParetoPoint, ...]
    bound: float
    criterion: Kind
    outputs: tuple[str, ...]
    n_outputs: int
    unit: str
    demand: Demand
    offered: Mapping[str, float]
    types: Mapping[str, str]

    def __repr__(self) -> str:
        return f"ParetoFront({len(self.points)} points, bound {self.bound:g})"

    @property
    def is_complete(self) -> bool:
        """Whether there are no other points, for certain."""
        return self.bound == math.inf and all(point.is_optimal for point in self.points)


def pareto_front(
    tree: KinematicTree,
    candidates: Candidates,
    outputs: Sequence[str] = ("tau",),
    criterion: Kind = "A",
    survive: int = 0,
    where: Where = None,
    states: Iterable[Iterable[str]] | None = None,
    n: int = AVERAGED,
    effort: int = EFFORT,
    seed: int = 0,
    progress: Watched = None,
) -> ParetoFront:
    """Find the sets of sensors that determine some outputs and of which no other is both cheaper and more precise.

    Args:
        tree: the robot.
        candidates: what there is to choose from; each with a sigma.
        outputs: kinds or names of variables, as `nori_dyn.plan` takes them.
        criterion: of the deviation: "A", root mean square of the outputs, which wants these of one unit; "D",
            geometric mean of independent ones, of any.
        survive: how many of the sensors chosen may fail, see `nori_dyn.place`; deviations are with all at work.
        where: poses at which the outputs have to be determined as well, see `nori_dyn.place`; deviations are there.
        states: contact states, see `nori_dyn.place`.
        n: number of random configurations over which deviations are taken where `where` names none.
        effort: integer programs after which the front ends, from its cheap end.
        seed: seed of everything random.
        progress: True to show it, or what receives its stages, see `nori_dyn.tables.progress`; on a terminal when None.

    Raises:
        WrongKindError: not a robot.
        SensorConfigError: candidates that do not fit the robot, or without a sigma.
        UnknownOutputError: an output that does not exist.
        UnknownPoseError, NoConfigurationError: special poses that do not exist, or in which the robot cannot be.
        PlanError: contact states of candidates that have no contacts; too many for all.
        InputError: a time that is not positive, another criterion, or what `nori_dyn.place` refuses.
        NoPlacementError: no allowed choice suffices, or none was found with so many programs.

    Example:
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.5}
        >>> imu = {"type": "accelerometer", "links": "link2", "sigma": 0.1}
        >>> candidates = nd.placement.Candidates.from_dict({
        ...     "name": "shop", "measurements": [unloaded], "candidates": {"measurements": [motion, imu]},
        ...     "costs": {"joint_acceleration": 10, "accelerometer": 15},
        ... })
        >>> front = nd.placement.pareto_front(nd.autotree(2), candidates)
        >>> [(point.cost, round(point.deviation, 2)) for point in front.points]  # [N m]
        [(20.0, 0.44), (25.0, 0.17), (35.0, 0.17)]
    """
    check_tree(tree, "nd.placement.pareto_front", "candidates")
    effort = counted("effort", effort)
    with progress_bar(f"Pareto front of sensors on {tree.name}", progress) as stage:
        choices = candidates.on(tree, states)
        demand = Demand.of(choices, survive, where, seed)
        problem = CoverProblem.of(choices, outputs, seed, demand)
        Q = configurations_of(choices.system, demand.configurations, n, seed)
        stage("information of each sensor")
        judged = Criterion.of(choices, outputs, criterion, Q, seed)
        _, units = output_names(choices.system, resolve_outputs(choices.system, outputs))
        points, bound = _search(problem, judged, effort, stage)
        return ParetoFront(
            name=candidates.name,
            robot=tree.name,
            points=tuple(points),
            bound=bound,
            criterion=criterion,
            outputs=tuple(outputs),
            n_outputs=len(units),
            unit=units[0] if len(set(units)) == 1 else "",
            demand=demand,
            offered=dict(choices.costs),
            types={n: s[0].type if len(s) == 1 else n for n, s in choices.sensors.items()},
        )


def _search(
    problem: CoverProblem, judged: Criterion, effort: int, progress: Progress
) -> tuple[list[ParetoPoint], float]:
    """The points from the cheapest on, and what further ones cost at least: infinite where there are none.

    Raises:
        NoPlacementError: there are none at all, or none was found with so many programs.
    """
    choices, program = problem.choices, IntegerProgram(problem)
    budget = math.inf if choices.candidates.budget is None else choices.candidates.budget * (1 + EQUAL_COSTS)
    points: list[ParetoPoint] = []
    search: ExchangeSearch | None = None
    bound, step = 0.0, BETTER
    while True:
        left = effort - program.solved
        found = program.cheapest(math.ceil(SHARE * left), progress)
        if search is None:
            found.check(choices.candidates)
        else:
            points[-1] = _bounded(points[-1], found, step, search, progress)
        bound = max(bound, found.bound if step == BETTER else 0.0)
        if found.cost > budget or found.cost == math.inf or (points and left <= 0):
            return points, bound if bound <= budget else math.inf
        step = BETTER if found.is_proven else BETTER_UNPROVEN
        search = ExchangeSearch(replace(choices, budget=found.cost), problem, judged)
        chosen = search.by_exchanges(found.chosen, progress)
        deviation = judged.deviation(judged.value(chosen))
        cost = choices.cost(chosen)
        points = [point for point in points if point.cost < cost * (1 - EQUAL_COSTS)]
        points.append(ParetoPoint(chosen, cost, deviation, 0.0, choices.sensor_set(chosen)))
        if not deviation:
            return points, math.inf
        problem.limit = DeviationLimit(judged, deviation * (1 - step))


def _bounded(point: ParetoPoint, better: Found, step: float, search: ExchangeSearch, progress: Progress) -> ParetoPoint:
    """A point with its bound, from what sets cost that are more precise by a step, and from the relaxed problem."""
    costs_more = better.bound > point.cost * (1 + EQUAL_COSTS)
    if costs_more and step == BETTER:
        return replace(point, bound=point.deviation)
    relaxed = search.criterion.deviation(search.bound(point.chosen, progress))
    least = point.deviation * (1 - step) if costs_more else 0.0
    return replace(point, bound=min(max(relaxed, least), point.deviation))

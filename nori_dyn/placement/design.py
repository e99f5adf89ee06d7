"""The best sensors: those from which the outputs are known most precisely, by A- or D-optimality; and a Pareto front.

A set that suffices is improved by further choices and by exchanges, and by sets that are more precise, as integer
programs find them, until there are none. Where that takes too long, the relaxed problem with weights 0 <= x_s <= 1
bounds the best possible: both criteria are convex in x, see `nori_dyn.placement.criterion`, so at any x the linear part
of the criterion does, at its least over all that the rules allow.

Source: Pukelsheim, Optimal Design of Experiments, ch. 5-6; Frank and Wolfe (1956); Fedorov (1972) for exchanges.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.algebra.arrays import counted
from nori_dyn.errors import InputError, NoPlacementError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import configurations_of
from nori_dyn.placement.candidates import EQUAL_COSTS, Candidates, Choices
from nori_dyn.placement.cases import Demand, Where
from nori_dyn.placement.cover import CoverProblem, Found, IntegerProgram, cheapest
from nori_dyn.placement.criterion import AVERAGED, BETTER, Criterion, DeviationLimit, Kind
from nori_dyn.placement.selection import EFFORT, ChosenSensors, Purchase
from nori_dyn.planning.outputs import resolve_outputs
from nori_dyn.program.layout import output_names
from nori_dyn.system.given import check_tree
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Progress, Watched, progress_bar
from nori_dyn.typing import Floats

RELAXED_STEPS = 60
"""Steps of the relaxed problem, for the bound."""

CLOSE = 1e-3
"""Share of the criterion at which the bound is close enough."""

PROVEN = ", and proven to be the best by integer programs"
UNPROVEN = "; the bound is that of the relaxed problem"

PROGRAMS_TO_START = 1000
"""Integer programs for a first set that determines the outputs."""

PROGRAMS_TO_PROVE = 300
"""Integer programs for sets that are more precise."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Design(ChosenSensors, Shown):
    """The sensors from which the outputs are known most precisely.

    Attributes:
        criterion: "A" or "D".
        value: the criterion: sum of the variances of the outputs [their units squared], or the logarithm of the
            determinant of their covariance; mean over the configurations.
        units: the SI unit of each output.
        n_independent: how many of them the determinant is of: those that exact rows neither make known nor tie to the
            others.
        sigma: expected standard deviation of each of them, root mean square over the configurations (n_outputs,).
    """

    criterion: Kind
    value: float
    units: tuple[str, ...]
    n_independent: float
    sigma: Floats

    def __repr__(self) -> str:
        return f"Design({len(self.chosen)} sensors, criterion '{self.criterion}', value {self.value:g})"

    @property
    def gap(self) -> float:
        """How much smaller standard deviations could be at best, as a share: root mean square, or geometric mean."""
        if self.criterion == "A":
            return 1.0 - math.sqrt(max(self.bound, 0.0) / self.value) if self.value > 0 else 0.0
        return 1.0 - math.exp(min(self.bound - self.value, 0.0) / (2 * self.n_independent))


def best_sensors(
    tree: KinematicTree,
    candidates: Candidates,
    k: int | None = None,
    outputs: Sequence[str] = ("tau",),
    criterion: Kind = "A",
    configurations: Any = None,
    n: int = AVERAGED,
    seed: int = 0,
    progress: Watched = None,
    survive: int = 0,
    where: Where = None,
    states: Iterable[Iterable[str]] | None = None,
) -> Design:
    """The choice of sensors, at most k and within the budget, from which outputs are known most precisely.

    Args:
        tree: the robot.
        candidates: what there is to choose from; each with a sigma.
        k: the largest number of choices, those that have to be taken included; None where a budget limits them.
        outputs: kinds or names of variables, as `nori_dyn.plan` takes them.
        criterion: "A" for the sum of variances, which wants outputs of one unit; "D" for the determinant of the
            covariance, of as many outputs as are independent, in any units.
        configurations: over which to average (N, nq); those of `where` when None, or `n` random ones within joint
            limits.
        n: number of random configurations.
        seed: seed of everything random.
        progress: True to show it, or what receives its stages, see `nori_dyn.tables.progress`; on a terminal when None.
        survive: how many of the sensors chosen may fail, see `nori_dyn.place`; precision is with all at work.
        where: poses at which the outputs have to be determined as well, see `nori_dyn.place`.
        states: contact states, see `nori_dyn.place`.

    Raises:
        WrongKindError: not a robot.
        SensorConfigError: candidates that do not fit the robot, or without a sigma.
        UnknownOutputError: an output that does not exist.
        InputError: neither k nor a budget, a k below 1, another criterion, configurations of the wrong shape.
        NoPlacementError: no allowed choice determines the outputs.

    Example:
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.5}
        >>> imu = {"type": "accelerometer", "links": "link2", "sigma": 0.1}
        >>> candidates = nd.placement.Candidates.from_dict({
        ...     "name": "shop", "measurements": [unloaded], "candidates": {"measurements": [motion, imu]}
        ... })
        >>> found = nd.placement.best_sensors(nd.autotree(2), candidates, 2)
        >>> found.chosen
        ('qdd:joint2', 'acc:link2')
        >>> print(np.round(found.sigma, 2))  # of tau:joint1 and tau:joint2 [N m]
        [0.16 0.17]
    """
    check_tree(tree, "nd.placement.best_sensors", "candidates")
    if k is None and candidates.budget is None:
        raise InputError("how many sensors? Give k, or a budget in the candidates: more of them are always better.")
    if k is not None and k < 1:
        raise InputError(f"k is {k}: at least one sensor is to be chosen.")
    with progress_bar(f"placing sensors on {tree.name}", progress) as stage:
        choices = candidates.on(tree, states)
        demand = Demand.of(choices, survive, where, seed)
        problem = CoverProblem.of(choices, outputs, seed, demand)
        configurations = demand.configurations if configurations is None else configurations
        Q = configurations_of(choices.system, configurations, n, seed)
        stage("information of each sensor")
        judged = Criterion.of(choices, outputs, criterion, Q, seed)
        rules = replace(
            choices,
            most=math.inf if k is None else k,
            budget=math.inf if candidates.budget is None else candidates.budget,
        )
        search = ExchangeSearch(rules, replace(problem, choices=rules), judged)
        chosen, is_best = search.best(search.start(stage), stage)
        value = judged.value(chosen)
        bound = value if is_best else min(value, search.bound(chosen, stage))
        bought = Purchase.of(choices, chosen, outputs, configurations, n, seed)
        final = bought.expected
        assert final.sigma is not None
        return Design(
            chosen=chosen,
            cost=choices.cost(chosen),
            criterion=criterion,
            value=value,
            bound=bound,
            method=f"exchanges{PROVEN if is_best else UNPROVEN}",
            outputs=final.outputs,
            units=final.units,
            n_independent=judged.n_outputs,
            sigma=np.sqrt(np.mean(final.sigma**2, axis=0)),
            sensors=choices.sensor_set(chosen),
            costs={name: choices.costs[name] for name in chosen},
            demand=demand,
            bought=bought,
        )


@dataclass(frozen=True, slots=True, eq=False)
class ExchangeSearch:
    """The search for the best choices that the rules allow.

    Attributes:
        choices: the candidates on the robot, with all rules.
        problem: which of them determine the outputs.
        criterion: how well.
    """

    choices: Choices
    problem: CoverProblem
    criterion: Criterion

    def start(self, progress: Progress) -> tuple[str, ...]:
        """Choices within the rules that determine the outputs.

        Raises:
            NoPlacementError: none were found.
        """
        rules = self.choices
        free = replace(rules, candidates=replace(rules.candidates, budget=None), most=math.inf, budget=math.inf)
        few = replace(free, costs=dict.fromkeys(free.sensors, 1.0))
        found = []
        for choices in (few, free):
            chosen = cheapest(replace(self.problem, choices=choices), PROGRAMS_TO_START, progress).chosen
            if rules.is_allowed(chosen):
                return chosen
            found.append(chosen)
        fewest, chosen = found
        limits = {f"at most {rules.most} sensors": rules.most, f"a budget of {rules.budget:g}": rules.budget}
        within = " and ".join(words for words, limit in limits.items() if limit < math.inf)
        raise NoPlacementError(
            f"candidates '{self.choices.candidates.name}': {within}: no choice was found that determines the outputs. "
            f"The fewest that do are {len(fewest)}, for {self.choices.cost(fewest):g}; the cheapest cost "
            f"{self.choices.cost(chosen):g}."
        )

    def best(self, start: tuple[str, ...], progress: Progress) -> tuple[tuple[str, ...], bool]:
        """The best choices that were found, from some on, and whether none are better, for certain."""
        program = IntegerProgram(self.problem)
        chosen = self.by_exchanges(start, progress)
        while deviation := self.criterion.deviation(self.criterion.value(chosen)):
            self.problem.limit = DeviationLimit(self.criterion, deviation * (1 - BETTER))
            found = program.cheapest(PROGRAMS_TO_PROVE - program.solved, progress)
            if found.cost == math.inf:
                return chosen, found.bound == math.inf
            chosen = self.by_exchanges(found.chosen, progress)
        return chosen, True

    def by_exchanges(self, start: tuple[str, ...], progress: Progress) -> tuple[str, ...]:
        """Choices that no further one and no exchange of one improves."""
        chosen, value = start, self.criterion.value(start)
        while True:
            progress(f"exchanges, {len(chosen)} sensors")
            judged = sorted((self.criterion.value(other), other) for other in self._neighbours(chosen))
            least = value - EQUAL_COSTS * max(1.0, abs(value))
            better = (other for other in judged if other[0] < least and self.problem.suffices(other[1]))
            found = next(better, None)
            if found is None:
                return chosen
            value, chosen = found

    def _neighbours(self, chosen: tuple[str, ...]) -> list[tuple[str, ...]]:
        """The choices with one more; where the rules allow none, those with one exchanged for another."""
        others = [name for name in self.choices.sensors if name not in chosen]
        more = [self.choices.in_order((*chosen, name)) for name in others]
        if allowed := [some for some in more if self.choices.is_allowed(some)]:
            return allowed
        fewer = [[name for name in chosen if name != gone] for gone in chosen if gone not in self.choices.must]
        swapped = [self.choices.in_order((*some, name)) for some in fewer for name in others]
        return [some for some in swapped if self.choices.is_allowed(some)]

    def bound(self, chosen: tuple[str, ...], progress: Progress) -> float:
        """Lower bound of the criterion over weights 0 <= x <= 1 within the rules, by the method of Frank and Wolfe."""
        from scipy.optimize import minimize_scalar

        x = np.array([float(name in chosen) for name in self.choices.sensors])
        best = -math.inf
        for step in range(RELAXED_STEPS):
            progress("bound", step / RELAXED_STEPS)
            value, slope = self.criterion.relaxed(x, slope=True)
            corner = self._corner(slope)
            best = max(best, value + float(slope @ (corner - x)))
            if value - best <= CLOSE * abs(value):
                break
            found = minimize_scalar(
                lambda t, x=x, ahead=corner - x: self.criterion.relaxed(x + t * ahead)[0],
                bounds=(0, 1),
                method="bounded",
            )
            x = x + found.x * (corner - x)
        return best

    def _corner(self, slope: Floats) -> Floats:
        """The weights within the rules at which a linear function is least."""
        from scipy.optimize import linprog

        names = list(self.choices.sensors)
        rows = [[terms.get(name, 0.0) for name in names] for terms, _ in self.choices.rules]
        most = [limit for _, limit in self.choices.rules]
        limits = [(1.0 if name in self.choices.must else 0.0, 1.0) for name in names]
        return np.asarray(linprog(slope / np.abs(slope).max(), np.array(rows), most, bounds=limits).x)


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

    The cheapest set that suffices is the first point. The next is the cheapest of those that are more precise than it,
    and so on, until none is: the search for the cheapest, with a limit on the deviation. Of sets that cost the same the
    most precise is left. So a point is proven where what is more precise costs more for certain. Where that takes too
    long, the best set so far is a point, with the bound of the relaxed problem, and the next is more precise by a
    larger step.

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

    Source: Haimes, Lasdon and Wismer (1971), for the limit on one objective; own derivation for the rest
    (tests/unit/placement/test_pareto.py).

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

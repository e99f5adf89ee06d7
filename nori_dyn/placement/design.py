"""The best sensors: those from which the outputs are known most precisely, by A- or D-optimality.

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

from nori_dyn.errors import InputError, NoPlacementError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import configurations_of
from nori_dyn.placement.candidates import EQUAL_COSTS, Candidates, Choices
from nori_dyn.placement.cases import Demand, Where
from nori_dyn.placement.cover import CoverProblem, IntegerProgram, cheapest
from nori_dyn.placement.criterion import AVERAGED, BETTER, Criterion, DeviationLimit, Kind
from nori_dyn.placement.selection import Purchase
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


@dataclass(frozen=True, slots=True, eq=False)
class Design(Shown):
    """The sensors from which the outputs are known most precisely.

    Attributes:
        chosen: the choices, in the order of the candidates.
        cost: what they cost together.
        criterion: "A" or "D".
        value: the criterion: sum of the variances of the outputs [their units squared], or the logarithm of the
            determinant of their covariance; mean over the configurations.
        bound: no choice within the rules has less.
        method: how they were found, in words.
        outputs: numbers of d that are judged.
        units: the SI unit of each.
        n_independent: how many of them the determinant is of: those that exact rows neither make known nor tie to the
            others.
        sigma: expected standard deviation of each of them, root mean square over the configurations (n_outputs,).
        sensors: the set of them and of what is there anyway.
        costs: of each that is chosen.
        demand: where they determine the outputs, and what may fail.
        bought: the robot with them, and how exact the outputs are expected to be.
    """

    chosen: tuple[str, ...]
    cost: float
    criterion: Kind
    value: float
    bound: float
    method: str
    outputs: tuple[str, ...]
    units: tuple[str, ...]
    n_independent: float
    sigma: Floats
    sensors: SensorSet
    costs: Mapping[str, float]
    demand: Demand
    bought: Purchase

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

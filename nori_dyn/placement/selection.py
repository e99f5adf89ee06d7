"""Which sensors to buy: the cheapest set that determines the outputs, proven where it can be.

A purchase is the robot with them: what they were chosen among, and how exact outputs then are.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from nori_dyn.algebra.arrays import counted
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import Conditioning, conditioning, configurations_of, together
from nori_dyn.placement.candidates import EQUAL_COSTS, Candidates, Choices
from nori_dyn.placement.cases import Demand, Where
from nori_dyn.placement.cover import CoverProblem, cheapest
from nori_dyn.placement.criterion import AVERAGED, Criterion, Kind
from nori_dyn.system.builder import System
from nori_dyn.system.given import check_tree
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Watched, progress_bar

MOST_LOOKS = 10_000
"""Most pairs of a chosen sensor and another that are looked at, in all cases and with what fails."""


def exchanges(problem: CoverProblem, chosen: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """For each of some choices that suffice the others that could stand in for it, the cheapest first.

    Args:
        problem: which choices suffice.
        chosen: the choices; those that have to be taken have no others. Empty where there is too much to look at.
    """
    rules = problem.choices
    checks = 1 + len(chosen) * problem.cases[0].survive + (problem.limit is not None)
    if len(chosen) * len(rules.costs) * len(problem.cases) * checks > MOST_LOOKS:
        return {}
    found: dict[str, tuple[str, ...]] = {}
    for name in chosen:
        kept = [other for other in chosen if other != name]
        others = [] if name in rules.must else [other for other in rules.costs if other not in chosen]
        for case in problem.cases:
            others = case.outcome(kept).settled_by(others)
        others = [other for other in others if rules.is_allowed([*kept, other])]
        if problem.limit is not None or problem.cases[0].survive:
            others = [other for other in others if problem.suffices([*kept, other])]
        found[name] = tuple(sorted(others, key=lambda other: (rules.costs[other], other)))
    return found


EFFORT = 200
"""Integer programs after which the best set found so far is taken, with what is known of the cheapest."""

CONFIGURATIONS = 20
"""Random configurations at which the expected deviations of the outputs are taken."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class ChosenSensors:
    """Sensors that were chosen among candidates.

    Attributes:
        chosen: the choices, in the order of the candidates.
        cost: what they cost together.
        bound: no set that suffices costs less; of the best sensors, has less of the criterion.
        method: how they were found, in words.
        outputs: what they determine; of the best sensors, numbers of d that are judged.
        demand: where they determine it, and what more was asked for.
        sensors: the set of them and of what is there anyway.
        costs: of each that is chosen.
        bought: the robot with them, and how exact the outputs are expected to be.
    """

    chosen: tuple[str, ...]
    cost: float
    bound: float
    method: str
    outputs: tuple[str, ...]
    demand: Demand
    sensors: SensorSet
    costs: Mapping[str, float]
    bought: Purchase


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Placement(ChosenSensors, Shown):
    """Sensors that determine the outputs.

    Attributes:
        exchanges: by choice the others that could be had instead of it, the cheapest first; empty where it took too
            long to look.
    """

    exchanges: Mapping[str, tuple[str, ...]]

    def __repr__(self) -> str:
        return f"Placement({len(self.chosen)} sensors, cost {self.cost:g}, bound {self.bound:g})"

    @property
    def is_optimal(self) -> bool:
        """Whether no set is cheaper, for certain."""
        return self.cost <= self.bound + EQUAL_COSTS * max(1.0, self.cost)


def place(
    tree: KinematicTree,
    candidates: Candidates,
    outputs: Sequence[str] | None = ("tau",),
    effort: int = EFFORT,
    seed: int = 0,
    progress: Watched = None,
    survive: int = 0,
    where: Where = None,
    states: Iterable[Iterable[str]] | None = None,
    deviation: float | None = None,
    criterion: Kind = "A",
) -> Placement:
    """Find the cheapest choice of sensors that determines some outputs for almost all q, and where it is asked to.

    Args:
        tree: the robot.
        candidates: what there is to choose from.
        outputs: kinds or names of variables, as `nori_dyn.plan` takes them; None for all of d.
        effort: integer programs after which the best set so far is returned, with a bound on the cheapest.
        seed: seed of the random point of the field, of poses, and of the order of the search.
        progress: True to show it, or what receives its stages, see `nori_dyn.tables.progress`; on a terminal when None.
        survive: how many of the choices may fail, any of them, and the others still determine the outputs; what is had
            together fails together.
        where: poses at which they have to as well: special ones by name, {"flat": ("l_sole", "r_sole")}, as
            `nori_dyn.observability` takes them; configurations (N, nq), of a log or a motion; or a mapping of both,
            {"walk": Q, "at_zero": None}. They count in each contact state.
        states: contact states in which they have to, each the names of the contacts that are closed in it; all that
            the candidates have when None.
        deviation: the largest standard deviation of the outputs with all chosen sensors at work [their unit], see
            `criterion`: the mean over the poses of `where`, or over random ones; None for any.
        criterion: what that is: "A", root mean square of the outputs; "D", geometric mean of independent ones.

    Raises:
        WrongKindError: not a robot.
        SensorConfigError: candidates that do not fit the robot; one without a sigma where a deviation is asked for.
        UnknownOutputError: an output that does not exist.
        UnknownPoseError, NoConfigurationError: special poses that do not exist, or in which the robot cannot be.
        PlanError: contact states of candidates that have no contacts; too many for all.
        InputError: a time or deviation that is not positive, a number of failures below zero, configurations of the
            wrong shape.
        NoPlacementError: the outputs are not determined even with all candidates, or not within rules and budget, or
            not so precisely.

    Example:
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.5}
        >>> turns = {"type": "angular_accelerometer", "links": "link2", "sigma": 0.1}
        >>> candidates = nd.placement.Candidates.from_dict({
        ...     "name": "shop", "measurements": [unloaded], "candidates": {"measurements": [motion, turns]},
        ...     "costs": {"joint_acceleration": 10, "angular_accelerometer": 15},
        ... })
        >>> found = nd.place(nd.autotree(2), candidates)
        >>> found.chosen, found.cost, found.is_optimal
        (('qdd:joint1', 'qdd:joint2'), 20.0, True)
        >>> nd.place(nd.autotree(2), candidates, survive=1).chosen
        ('qdd:joint1', 'qdd:joint2', 'angular_acc:link2')
    """
    check_tree(tree, "nd.place", "candidates")
    effort = counted("effort", effort)
    with progress_bar(f"placing sensors on {tree.name}", progress) as stage:
        choices = candidates.on(tree, states)
        demand = Demand.of(choices, survive, where, seed)
        problem = CoverProblem.of(choices, outputs, seed, demand)
        kinds = outputs or choices.system.kinds
        if deviation is not None:
            Q = configurations_of(choices.system, demand.configurations, AVERAGED, seed)
            problem.limit_to(Criterion.of(choices, kinds, criterion, Q, seed), deviation)
        cheap = cheapest(problem, effort, stage)
        chosen = cheap.chosen
        stage("precision of the outputs")
        return Placement(
            chosen=chosen,
            cost=cheap.cost,
            bound=min(cheap.bound, cheap.cost),
            method=cheap.method,
            outputs=tuple(outputs) if outputs is not None else ("all",),
            demand=demand,
            sensors=choices.sensor_set(chosen),
            costs={name: choices.costs[name] for name in chosen},
            exchanges=exchanges(problem, chosen),
            bought=Purchase.of(choices, chosen, kinds, demand.configurations, CONFIGURATIONS, seed),
        )


@dataclass(frozen=True, slots=True, eq=False)
class Purchase:
    """A robot with the sensors that were chosen for it.

    Attributes:
        name: of the candidates.
        system: the robot with them, and with what is there anyway, in the first contact state.
        readings: names of the equations of those that were chosen.
        offered: what there was to choose from, and what each costs.
        expected: margins, and expected standard deviations of the outputs, at some configurations, those of one
            contact state after the other.
    """

    name: str
    system: System
    readings: frozenset[str]
    offered: Mapping[str, float]
    expected: Conditioning

    @staticmethod
    def of(
        choices: Choices, chosen: Sequence[str], outputs: Sequence[str], configurations: Any, n: int, seed: int
    ) -> Purchase:
        """The purchase of some choices, judged at configurations (N, nq), or n random ones within limits when None."""
        tree, sensors = choices.system.tree, choices.sensor_set(chosen)
        systems = [System(tree, sensors.in_contact(*offered.state)) for offered in choices.offered]
        parts = [conditioning(s, configurations, outputs, n, seed, workers=1, progress=False) for s in systems]
        expected, *others = parts
        if others:
            expected = together(parts, f"{expected.poses}, in {len(parts)} contact states")
        return Purchase(
            name=choices.candidates.name,
            system=systems[0],
            readings=frozenset(e.name for c in chosen for sensor in choices.sensors[c] for e in sensor.on(tree)),
            offered=dict(choices.costs),
            expected=expected,
        )

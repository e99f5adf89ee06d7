"""Which sensors to buy: the cheapest set that determines the outputs, proven where it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nori_dyn.errors import InputError, NoPlacementError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.field import Span
from nori_dyn.placement.candidates import Candidates
from nori_dyn.placement.cover import EQUAL_COSTS, CoverProblem, cheapest, list_names
from nori_dyn.placement.purchase import Purchase
from nori_dyn.system.given import check_tree
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Watched, progress_bar

MOST_LOOKS = 10_000
"""Most pairs of a chosen sensor and another that are looked at."""


def exchanges(problem: CoverProblem, chosen: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """For each of some choices that suffice the others that could stand in for it, the cheapest first.

    Args:
        problem: which choices determine the outputs.
        chosen: the choices; those that have to be taken have no others. Empty where there is too much to look at.
    """
    if len(chosen) * len(problem.rows) > MOST_LOOKS:
        return {}
    rules = problem.choices
    found: dict[str, tuple[str, ...]] = {}
    for name in chosen:
        others = [other for other in chosen if other != name]
        span = problem.span(others)
        missing = [left for output in problem.targets if (left := span.remainder(output))]
        found[name] = tuple(
            other
            for other in sorted(problem.rows, key=lambda other: (rules.costs[other], other))
            if other not in chosen
            and name not in rules.must
            and rules.is_allowed([*others, other])
            and not any(map(Span.of(map(span.remainder, problem.rows[other])).remainder, missing))
        )
    return found


SECONDS = 60.0
"""Time after which the best set found so far is taken, with what is known of the cheapest."""

CONFIGURATIONS = 20
"""Random configurations at which the expected deviations of the outputs are taken."""


@dataclass(frozen=True, slots=True, eq=False)
class Placement(Shown):
    """Sensors that determine the outputs.

    Attributes:
        chosen: the choices, in the order of the candidates.
        cost: what they cost together.
        bound: no set that suffices costs less.
        method: how they were found, in words.
        outputs: what they determine.
        sensors: the set of them and of what is there anyway.
        costs: of each that is chosen.
        exchanges: by choice the others that could be had instead of it, the cheapest first; empty where it took too
            long to look.
        bought: the robot with them, and how exact the outputs are expected to be.
    """

    chosen: tuple[str, ...]
    cost: float
    bound: float
    method: str
    outputs: tuple[str, ...]
    sensors: SensorSet
    costs: Mapping[str, float]
    exchanges: Mapping[str, tuple[str, ...]]
    bought: Purchase

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
    seconds: float = SECONDS,
    seed: int = 0,
    progress: Watched = None,
) -> Placement:
    """Find the cheapest choice of sensors that determines some outputs for almost all q.

    Args:
        tree: the robot.
        candidates: what there is to choose from.
        outputs: kinds or names of variables, as `nori_dyn.plan` takes them; None for all of d.
        seconds: time after which the best set so far is returned, with a bound on the cheapest.
        seed: seed of the random point of the field, and of the order of the search.
        progress: True to show it, or what is told of it, see `nori_dyn.tables.progress`; on a terminal when None.

    Raises:
        WrongKindError: not a robot.
        SensorConfigError: candidates that do not fit the robot.
        UnknownOutputError: an output that does not exist.
        InputError: a time that is not positive.
        NoPlacementError: the outputs are not determined even with all candidates, or not within rules and budget.

    Example:
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.5}
        >>> imu = {"type": "accelerometer", "links": "link2", "sigma": 0.1}
        >>> candidates = nd.placement.Candidates.from_dict({
        ...     "name": "shop", "measurements": [unloaded], "candidates": {"measurements": [motion, imu]},
        ...     "costs": {"joint_acceleration": 10, "accelerometer": 15},
        ... })
        >>> found = nd.place(nd.autotree(2), candidates)
        >>> found.chosen, found.cost, found.is_optimal
        (('qdd:joint1', 'qdd:joint2'), 20.0, True)
    """
    check_tree(tree, "nd.place", "candidates")
    if not seconds > 0:
        raise InputError(f"seconds is {seconds}: the search needs time.")
    with progress_bar(f"placing sensors on {tree.name}", progress) as stage:
        choices = candidates.on(tree)
        problem = CoverProblem.of(choices, outputs, seed)
        problem.check()
        chosen, bound, method = cheapest(problem, seconds, stage)
        cost = choices.cost(chosen)
        if candidates.budget is not None and cost > candidates.budget + EQUAL_COSTS * cost:
            least = "costs" if bound >= cost - EQUAL_COSTS * cost else f"costs at least {bound:g}; the cheapest found"
            raise NoPlacementError(
                f"candidates '{candidates.name}': no set within the budget of {candidates.budget:g} is known to "
                f"suffice: the cheapest {least} {cost:g} ({list_names(chosen)}). Raise the budget, or ask for fewer "
                "outputs."
            )
        stage("precision of the outputs")
        return Placement(
            chosen=chosen,
            cost=cost,
            bound=min(bound, cost),
            method=method,
            outputs=tuple(outputs) if outputs is not None else ("all",),
            sensors=choices.sensor_set(chosen),
            costs={name: choices.costs[name] for name in chosen},
            exchanges=exchanges(problem, chosen),
            bought=Purchase.of(choices, chosen, outputs or choices.system.kinds, None, CONFIGURATIONS, seed),
        )

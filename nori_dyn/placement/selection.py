"""Which sensors to buy: the cheapest set that determines the outputs, proven where it can be."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nori_dyn.errors import InputError, NoPlacementError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.placement.candidates import Candidates
from nori_dyn.placement.cover import EQUAL_COSTS, CoverProblem, cheapest, list_names
from nori_dyn.placement.summary import placement_document
from nori_dyn.system.given import check_tree
from nori_dyn.tables import Document, Shown
from nori_dyn.tables.progress import Watched, progress_bar

SECONDS = 60.0
"""Time after which the best set found so far is taken, with what is known of the cheapest."""


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
    """

    chosen: tuple[str, ...]
    cost: float
    bound: float
    method: str
    outputs: tuple[str, ...]
    sensors: SensorSet
    costs: Mapping[str, float]

    def __repr__(self) -> str:
        return f"Placement({len(self.chosen)} sensors, cost {self.cost:g}, bound {self.bound:g})"

    def shown(self) -> Document:
        return placement_document(self)

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
    """Return the cheapest choice of sensors that determines some outputs for almost all q.

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
        return Placement(
            chosen=chosen,
            cost=cost,
            bound=min(bound, cost),
            method=method,
            outputs=tuple(outputs) if outputs is not None else ("all",),
            sensors=choices.sensor_set(chosen),
            costs={name: choices.costs[name] for name in chosen},
        )

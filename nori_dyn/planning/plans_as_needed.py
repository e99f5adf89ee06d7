"""The plans of contact states: each is made when it is first needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from itertools import takewhile
from threading import RLock
from typing import Any, Generic, TypeVar

from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan, Request
from nori_dyn.system.builder import System
from nori_dyn.system.limbs import correspondence

AnyPlan = TypeVar("AnyPlan", bound=EliminationPlan)


class PlansAsNeeded(Mapping[ContactState, AnyPlan], Generic[AnyPlan]):
    """The plan of each contact state of a robot, made when it is first asked for; whoever else asks waits.

    What a plan is does not depend on which is asked for first: a state is planned like the first one, in the order in
    which they were added, of which limbs in each other's place make it. A copy has all plans.

    Attributes:
        systems: the system of each state.

    Args:
        make: returns the plan of a system, like another plan or, given None, by itself.
        request: returns what is asked of a system.
    """

    def __init__(
        self, make: Callable[[System, AnyPlan | None], AnyPlan], request: Callable[[System], Request] = Request.of
    ) -> None:
        self.systems: dict[ContactState, System] = {}
        self._make, self._made, self._lock = make, dict[ContactState, AnyPlan](), RLock()
        self._request, self._asked = request, dict[ContactState, AnyPlan | Request]()
        self._known_like: dict[ContactState, ContactState | None] = {}

    @staticmethod
    def of(plans: Mapping[ContactState, AnyPlan]) -> PlansAsNeeded[AnyPlan]:
        """Plans that are there; those that are of this kind themselves."""
        if isinstance(plans, PlansAsNeeded):
            return plans
        found = PlansAsNeeded[AnyPlan](lambda system, like: plans[()])  # all are there: it is never called
        found._made.update(plans)
        found.systems.update({state: plan.system for state, plan in plans.items()})
        return found

    def add(self, state: ContactState, system: System) -> None:
        """Add a state, to be planned later."""
        self.systems[state] = system

    def leave_out(self, state: ContactState) -> None:
        """Take a state away again, which cannot be planned."""
        self.systems.pop(state, None)

    def __getitem__(self, state: ContactState) -> AnyPlan:
        with self._lock:
            if state not in self._made:
                like = self.like(state)
                plan = self._make(self.systems[state], None if like is None else self[like])
                self._made[state], self.systems[state] = plan, plan.system
            return self._made[state]

    def asked(self, state: ContactState) -> AnyPlan | Request:
        """The plan of a state if it was made before, or else what is asked of its system; always the same object."""
        with self._lock:
            if state not in self._asked:
                is_made = state in self._made
                self._asked[state] = self._made[state] if is_made else self._request(self.systems[state])
            return self._asked[state]

    def like(self, state: ContactState) -> ContactState | None:
        """The state like which one is planned; None where it is the first of its kind."""
        if state not in self._known_like:
            earlier = takewhile(lambda one: one != state, self.systems)
            firsts = (one for one in earlier if self.like(one) is None)
            alike = (one for one in firsts if correspondence(self.systems[one], self.systems[state]) is not None)
            self._known_like[state] = next(alike, None)
        return self._known_like[state]

    def __iter__(self) -> Iterator[ContactState]:
        return iter(self.systems)

    def __len__(self) -> int:
        return len(self.systems)

    @property
    def made(self) -> Mapping[ContactState, AnyPlan]:
        """The plans that were made so far."""
        return self._made

    def __reduce__(self) -> Any:
        return PlansAsNeeded.of, (dict(self),)

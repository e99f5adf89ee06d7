"""The states of a plan: one, or those of contacts that come and go."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, SupportsIndex

from nori_dyn.errors import UnplannedStateError
from nori_dyn.measurements.contacts import ContactState

if TYPE_CHECKING:
    from nori_dyn.api.plan import Plan


class PlanStates(tuple[ContactState, ...]):
    """The contact states that have a plan, the most closed contacts first; by state, their plans.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion], "contacts": contacts})
        >>> states = nd.plan(nd.autotree(1), sensors, outputs=["tau"]).states
        >>> states, states["tip"].cost.total, states[()].cost.total
        ((('tip',), ()), 3, 2)
    """

    plans: Mapping[ContactState, Plan]

    def __new__(cls, plans: Mapping[ContactState, Plan]) -> PlanStates:
        made = super().__new__(cls, plans)
        made.plans = plans
        return made

    def __getitem__(self, key: Any) -> Any:
        """Return the plan of a state, by the names of the contacts that are closed, in any order; or the k-th state.

        Raises:
            UnplannedStateError: the state has no plan.
        """
        if isinstance(key, SupportsIndex | slice):
            return super().__getitem__(key)
        closed = {key} if isinstance(key, str) else set(key)
        for state, plan in self.plans.items():
            if set(state) == closed:
                return plan
        raise UnplannedStateError(tuple(sorted(closed)), tuple(self))

    @property
    def first(self) -> Plan:
        """The plan of the first state: robot and outputs are those of all."""
        return next(iter(self.plans.values()))

    def values(self) -> ValuesView[Plan]:
        """Return the plans."""
        return self.plans.values()

    def items(self) -> ItemsView[ContactState, Plan]:
        """Return the states with their plans."""
        return self.plans.items()

"""The states of a plan, one or those of contacts that come and go, and what `print` shows of several."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, ValuesView
from typing import TYPE_CHECKING, Any, SupportsIndex

from nori_dyn.errors import UnplannedStateError, named_contacts
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.kernel.registry import is_compiled
from nori_dyn.solve.solver_summary import counted_states
from nori_dyn.system.summary import robot_in_words
from nori_dyn.tables import Bullets, Document, Facts, Table, listed, number, unbroken

if TYPE_CHECKING:
    from nori_dyn.api.plan import Plan

MOST_OUTPUTS = 24
"""Names of outputs that are shown."""


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


def states_document(states: PlanStates, sensors: SensorSet, left_out: Mapping[ContactState, str]) -> Document:
    """Return what is shown of a plan of several contact states."""
    first = states.first
    facts = (
        ("robot", robot_in_words(first.system)),
        ("sensors", unbroken(sensors.name)),
        ("contacts", listed(sensors.contact_names)),
        ("outputs", listed((output.name for output in first.outputs), MOST_OUTPUTS)),
    )
    rows = tuple(
        (
            named_contacts(state),
            one.system.ny,
            one.system.shape[0],
            one.ordering,
            one.cost.total,
            number(min(one.stability.smallest_pivot, 1.0), 1),
        )
        for state, one in states.items()
    )
    columns = ("closed", "readings", "equations", "ordering", "operations", "pivot")
    notes = ["operations: all of a tick, sines and cosines left out. pivot: the smallest, relative to its usual size."]
    if find_compiler() is not None:
        notes.append(counted_states(sum(map(is_compiled, states.values())), len(states), "compiled"))
    table = Table("Contact states", columns, rows, tuple(notes), left=(0, 3))
    why = tuple(f"{named_contacts(state)}: {reason}" for state, reason in left_out.items())
    return Document((Facts(facts), table, *((Bullets(why, "Left out:"),) if why else ())))

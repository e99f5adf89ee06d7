"""What a plan and the plans of contact states have in common: states, of which a plan has one."""

from __future__ import annotations

from collections.abc import ItemsView, Mapping, ValuesView
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, SupportsIndex, runtime_checkable

from nori_dyn.errors import UnplannedStateError
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.tree import KinematicTree
from nori_dyn.tables import Document

if TYPE_CHECKING:
    from nori_dyn.api.plan import Plan
    from nori_dyn.program.export.files import CExport


class PlannedStates(tuple[ContactState, ...]):
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

    def __new__(cls, plans: Mapping[ContactState, Plan]) -> PlannedStates:
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


@runtime_checkable
class Planned(Protocol):
    """A plan, or the plans of contact states: what both have."""

    @property
    def states(self) -> PlannedStates:
        """The contact states that have a plan; by state, their plans. One of no contacts where there are none."""

    @property
    def tree(self) -> KinematicTree:
        """The robot."""

    @property
    def sensors(self) -> Any:
        """The sensors, with their contacts."""

    @property
    def contact_names(self) -> tuple[str, ...]:
        """The names of the contacts; none where there are none."""

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y, the readings of all states."""

    @property
    def left_out(self) -> Mapping[ContactState, str]:
        """Why each state that was left out is singular."""

    def solver(self, backend: str = "auto", check_residual: bool = True, wait: bool = True) -> Any:
        """Return a solver."""

    def export(self, folder: str | Path, lang: str = "c", name: str | None = None, monitor: bool = False) -> CExport:
        """Write it as source code that stands alone."""

    def save(self, path: str | Path) -> None:
        """Write it to a file."""

    def shown(self) -> Document:
        """Return what `print` shows."""

"""Plan set files: the model and the sensors once, and the permutations of each contact state; see `plan_files`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from nori_dyn.io.plan_files import OrderData, TreeData, order_data, sealed, tree_data, unsealed
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.planning.planner import EliminationPlan

FORMAT = "nori_dyn plan set"


class StateData(OrderData):
    """What was planned for a contact state."""

    contacts: list[str]


class LeftOutData(BaseModel):
    """A contact state that has no plan, and why."""

    model_config = ConfigDict(extra="forbid")
    contacts: list[str]
    reason: str


class PlanSetData(BaseModel):
    """The content of a plan set file."""

    model_config = ConfigDict(extra="forbid")
    format: Literal["nori_dyn plan set"]
    version: int
    tree: TreeData
    sensors: dict[str, Any]
    outputs: list[str]
    states: list[StateData] = Field(min_length=1)
    left_out: list[LeftOutData]


def plan_set_to_text(
    plans: Mapping[ContactState, EliminationPlan], sensors: SensorSet, left_out: Mapping[ContactState, str]
) -> str:
    """Return the content of a plan set's file."""
    first = next(iter(plans.values()))
    states = [{"contacts": list(state), **order_data(plan).model_dump()} for state, plan in plans.items()]
    content = {
        "tree": tree_data(first.system.tree),
        "sensors": sensors.to_dict(),
        "outputs": [output.name for output in first.outputs],
        "states": states,
        "left_out": [{"contacts": list(state), "reason": reason} for state, reason in left_out.items()],
    }
    return sealed(FORMAT, content)


def is_plan_set(text: str) -> bool:
    """Return whether a file is one of a plan set, as far as its beginning says."""
    return text.lstrip("{ ").startswith(f'"format": "{FORMAT}"')


def plan_set_from_text(text: str) -> PlanSetData:
    """Return the content of a plan set file, checked.

    Raises:
        PlanError: it is truncated, changed, from another version, or no plan set file at all.
    """
    return unsealed(text, FORMAT, PlanSetData, "a plan set file", "`nori_dyn.plan_set`")

"""Plan files: JSON that holds the model and the sensors once, and the permutations of each contact state, usually one.

Data only, versioned, checked. Nothing in it is executed: programs are made from it on the machine that runs it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, Literal

import numpy as np
from pydantic import BeforeValidator, Field, FiniteFloat, NonNegativeInt, model_validator

from nori_dyn.algebra.spatial import Transform
from nori_dyn.components.config import components_of
from nori_dyn.errors import InvalidConfigError, NoriError, PlanError
from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import JOINTS, Joint
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.planning.orders import OLDER, Data, OrderData, order_data, sealed, unsealed
from nori_dyn.planning.planner import EliminationPlan

FORMAT = "nori_dyn plan"
OfArray = BeforeValidator(lambda x: x.tolist() if isinstance(x, np.ndarray) else x)
"""Numbers of an array are those of its list."""

Vector = Annotated[list[FiniteFloat], Field(min_length=3, max_length=3), OfArray]
Matrix = Annotated[list[Vector], Field(min_length=3, max_length=3), OfArray]
SpatialVector = Annotated[list[FiniteFloat], Field(min_length=6, max_length=6)]
SpatialMatrix = Annotated[list[SpatialVector], Field(min_length=6, max_length=6)]


class TransformData(Data):
    """A transform: rotation and position [m]."""

    E: Matrix
    r: Vector


class FrameData(Data):
    """A named frame."""

    link: int
    X: TransformData


class JointModelData(Data):
    """A joint model: its kind and parameters; null is an infinite limit."""

    kind: str
    parameters: dict[str, float | list[float | None]]


class TreeData(Data):
    """A kinematic tree."""

    name: str
    names: list[str]
    joint_names: list[str]
    parents: list[int]
    joints: list[JointModelData]
    X_tree: list[TransformData]
    I: Annotated[list[SpatialMatrix], OfArray]
    frames: dict[str, FrameData]
    gravity: Vector
    notes: list[str]
    components: list[dict[str, Any]] = Field(default_factory=list)


class StateData(OrderData):
    """What was planned for a contact state."""

    contacts: list[str]


class LeftOutData(Data):
    """A contact state that has no plan, and why."""

    contacts: list[str]
    reason: str


class TrackerData(Data):
    """How a plan of sensors with memory is tracked.

    Attributes:
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is.
        hypotheses: how contacts are recognised; None where they are given.
        alarms: when collisions count as seen; None where nothing is watched.
    """

    dt: float = Field(gt=0)
    lag: NonNegativeInt = 0
    hypotheses: Hypotheses | None = None
    alarms: Alarms | None = None


class PlanData(Data):
    """The content of a plan file; one state, of no contacts, where the sensors have none."""

    format: Literal["nori_dyn plan", "nori_dyn plan set"]
    version: int
    tree: TreeData
    sensors: dict[str, Any]
    outputs: list[str] | None
    states: list[StateData] = Field(min_length=1)
    left_out: list[LeftOutData] = Field(default_factory=list)
    tracker: TrackerData | None = None

    @model_validator(mode="before")
    @classmethod
    def _with_states(cls, body: dict[str, Any]) -> dict[str, Any]:
        """Content with a list of states, which a plan of one did not have in earlier versions."""
        if body["version"] not in OLDER or "states" in body:
            return body
        shared = {key: body[key] for key in cls.model_fields if key in body}
        return {**shared, "states": [{"contacts": [], **{key: body[key] for key in body if key not in shared}}]}


def plan_to_text(
    plans: Mapping[ContactState, EliminationPlan],
    sensors: object,
    left_out: Mapping[ContactState, str],
    tracker: TrackerData | None = None,
) -> str:
    """Content of a plan's file.

    Args:
        plans: of each contact state; one, of no contacts, where there are none.
        sensors: with all contacts.
        left_out: why each state without a plan has none.
        tracker: how the plan is tracked, where the file says so.

    Raises:
        PlanError: the sensors are not a SensorSet, so they cannot be written as data.
    """
    first = next(iter(plans.values()))
    if not isinstance(sensors, SensorSet):
        raise PlanError(f"{first!r} cannot be saved: its sensors are a {type(sensors).__name__}, not a SensorSet.")
    content = {
        "tree": tree_data(first.system.tree),
        "sensors": sensors.to_dict(),
        "outputs": [output.name for output in first.outputs],
        "states": [{"contacts": list(state), **order_data(one).model_dump()} for state, one in plans.items()],
        "left_out": [{"contacts": list(state), "reason": reason} for state, reason in left_out.items()],
    }
    tracked = {} if tracker is None else {"tracker": tracker.model_dump()}
    return sealed(FORMAT, content | tracked)


def plan_from_text(text: str | bytes) -> PlanData:
    """Parse and check a plan file.

    Raises:
        PlanError: it is truncated, changed, from another version, or no plan file at all.
    """
    return unsealed(text, PlanData, "a plan file", "`nori-dyn plan`")


def tree_of(data: TreeData) -> KinematicTree:
    """Kinematic tree of a plan file.

    Raises:
        PlanError: components that are none.
    """
    try:
        components = components_of({"components": data.components})
    except InvalidConfigError as error:
        raise PlanError(f"its tree is wrong {error}") from None
    return KinematicTree(
        name=data.name,
        names=tuple(data.names),
        joint_names=tuple(data.joint_names),
        parents=tuple(data.parents),
        joints=tuple(_joint(joint) for joint in data.joints),
        X_tree=tuple(_transform(X) for X in data.X_tree),
        I=np.array(data.I, dtype=float).reshape(-1, 6, 6),
        frames={name: Frame(frame.link, _transform(frame.X)) for name, frame in data.frames.items()},
        gravity=tuple(data.gravity),  # type: ignore[arg-type]
        notes=tuple(data.notes),
        components=components,
    )


def tree_data(tree: KinematicTree) -> dict[str, Any]:
    """Data of a kinematic tree, as `tree_of` takes them."""
    own = {name: getattr(tree, name) for name in TreeData.model_fields}
    own["joints"] = [JointModelData(kind=joint.kind, parameters=_parameters(joint)) for joint in tree.joints]
    own["components"] = [component.to_dict() for component in tree.components]
    return TreeData.model_validate(own, from_attributes=True).model_dump(exclude_defaults=True)


def _parameters(joint: Joint) -> dict[str, Any]:
    values: dict[str, Any] = asdict(joint) if is_dataclass(joint) else {}
    return {
        name: [x if math.isfinite(x) else None for x in value] if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _joint(data: JointModelData) -> Joint:
    if data.kind not in JOINTS:
        raise PlanError(f"it has a joint of unknown kind '{data.kind}'.")
    parameters: dict[str, Any] = dict(data.parameters)
    try:
        if "limits" in parameters:
            lower, upper = parameters["limits"]
            parameters["limits"] = (-math.inf if lower is None else lower, math.inf if upper is None else upper)
        if "axis" in parameters:
            parameters["axis"] = tuple(parameters["axis"])
        return JOINTS[data.kind](**parameters)
    except (TypeError, ValueError, NoriError) as error:
        raise PlanError(f"it has a {data.kind} joint with wrong parameters: {error}") from None


def _transform(data: TransformData) -> Transform:
    return Transform(np.array(data.E), np.array(data.r))

"""Plan files: JSON that holds the model and the sensors once, and the permutations of each contact state, usually one.

Data only, versioned, checked. Nothing in it is executed: programs are made from it on the machine that runs it.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, Literal, TypeVar, get_args

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt, ValidationError, model_validator

from nori_dyn.algebra.spatial import Transform
from nori_dyn.components.config import components_of
from nori_dyn.errors import InvalidConfigError, NoriError, PlanError
from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import JOINTS, Joint
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.planning.outputs import determined_outputs
from nori_dyn.planning.planner import EliminationPlan, Made, TriedOrdering
from nori_dyn.system.builder import System
from nori_dyn.system.repeats import Repeat
from nori_dyn.typing import Indices

FORMAT = "nori_dyn plan"
ORDER_FORMAT = "nori_dyn order"
VERSION = 6
"""Raised whenever the content, or what is computed from it, changes its meaning."""

OLDER = (4, 5)
"""Versions that are read as well. There, plans of several states are of a format of their own."""

ORDERS_SINCE = 5
"""The version since which orders are of what is eliminated today."""

Vector = Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]
Matrix = Annotated[list[Vector], Field(min_length=3, max_length=3)]
SpatialVector = Annotated[list[FiniteFloat], Field(min_length=6, max_length=6)]
SpatialMatrix = Annotated[list[SpatialVector], Field(min_length=6, max_length=6)]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False)  # of dataclasses in it, too


Content = TypeVar("Content", bound=BaseModel)


class TransformData(_Data):
    """A transform: rotation and position [m]."""

    E: Matrix
    r: Vector


class FrameData(_Data):
    """A named frame."""

    link: int
    X: TransformData


class JointModelData(_Data):
    """A joint model: its kind and parameters; null is an infinite limit."""

    kind: str
    parameters: dict[str, float | list[float | None]]


class TreeData(_Data):
    """A kinematic tree."""

    name: str
    names: list[str]
    joint_names: list[str]
    parents: list[int]
    joints: list[JointModelData]
    X_tree: list[TransformData]
    I: list[SpatialMatrix]
    frames: dict[str, FrameData]
    gravity: Vector
    notes: list[str]
    components: list[dict[str, Any]] = []


class OrderData(_Data):
    """What was planned for a system, by its fingerprint."""

    fingerprint: str
    ordering: str
    row_permutation: list[int]
    column_permutation: list[int]
    program_rows: list[int]
    program_columns: list[int]
    regrouped: bool | None
    candidates: list[TriedOrdering] = Field(min_length=1)
    seed: NonNegativeInt
    repeats: list[Repeat] = []
    undetermined: list[NonNegativeInt] = []
    is_over_time: bool = False


class CachedOrder(OrderData):
    """The content of an entry of the cache: what was planned, for a system that is at hand."""

    format: Literal["nori_dyn order"]
    version: int


class StateData(OrderData):
    """What was planned for a contact state."""

    contacts: list[str]


class LeftOutData(_Data):
    """A contact state that has no plan, and why."""

    contacts: list[str]
    reason: str


class TrackerData(_Data):
    """How a plan of sensors with memory is tracked.

    Attributes:
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is.
        hypotheses: how contacts are recognised; None where they are told.
        alarms: when collisions count as seen; None where nothing is watched.
    """

    dt: float = Field(gt=0)
    lag: NonNegativeInt = 0
    hypotheses: Hypotheses | None = None
    alarms: Alarms | None = None


class PlanData(_Data):
    """The content of a plan file; one state, of no contacts, where the sensors have none."""

    format: Literal["nori_dyn plan", "nori_dyn plan set"]
    version: int
    tree: TreeData
    sensors: dict[str, Any]
    outputs: list[str] | None
    states: list[StateData] = Field(min_length=1)
    left_out: list[LeftOutData] = []
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


def order_to_text(plan: EliminationPlan) -> str:
    """Content of a plan's entry in the cache: permutations and counts, without model and sensors."""
    return sealed(ORDER_FORMAT, order_data(plan).model_dump())


def order_from_text(text: str | bytes) -> CachedOrder:
    """Parse and check an entry of the cache.

    Raises:
        PlanError: it is damaged, or no such entry at all.
    """
    return unsealed(text, CachedOrder, "an entry of the cache of plans", "`nori_dyn.plan`")


def order_data(plan: EliminationPlan) -> OrderData:
    """Permutations and counts of a plan."""
    permutations = "row_permutation", "column_permutation", "program_rows", "program_columns", "undetermined"
    return OrderData(
        fingerprint=plan.system.fingerprint,
        **{name: getattr(plan, name) for name in ("ordering", "regrouped", "seed", "is_over_time")},
        **{name: getattr(plan, name).tolist() for name in permutations},
        candidates=list(plan.tried),
        repeats=list(plan.system.of_components.repeats),
    )


def sealed(format: str, content: dict[str, Any]) -> str:
    """Text of a file: its format and version, its content, and a checksum of all this."""
    body = {"format": format, "version": VERSION, **content}
    return json.dumps({**body, "checksum": _checksum(body)}) + "\n"


def plan_from_text(text: str | bytes) -> PlanData:
    """Parse and check a plan file.

    Raises:
        PlanError: it is truncated, changed, from another version, or no plan file at all.
    """
    return unsealed(text, PlanData, "a plan file", "`nori-dyn plan`")


def unsealed(text: str | bytes, model: type[Content], what: str, maker: str) -> Content:
    """Parse and check a file that `sealed` made.

    Args:
        text: of the file.
        model: what its content must be, its format among it.
        what: what to call such a file.
        maker: what makes one.

    Raises:
        PlanError: it is truncated, changed, from another version, or no such file at all.
    """
    try:
        body = json.loads(text)
    except ValueError as error:
        raise PlanError(f"it is not {what}, or is truncated ({error}). Create it again with {maker}.") from None
    except RecursionError:
        raise PlanError(f"it is not {what}: it is nested too deeply. Create one with {maker}.") from None
    if not isinstance(body, dict) or body.get("format") not in get_args(model.model_fields["format"].annotation):
        raise PlanError(f"it is not {what}. Create one with {maker}.")
    if body.get("version") not in (VERSION, *OLDER):
        raise PlanError(
            f"it has version {body.get('version')!r}; this program reads {VERSION}. Create it again with {maker}."
        )
    if body.pop("checksum", None) != _checksum(body):
        raise PlanError(f"its content was changed or damaged. Create it again with {maker}.")
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise PlanError(f"its entry '{place}' is wrong: {first['msg']}.") from None


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


def plan_of(system: System, outputs: Sequence[str] | None, data: OrderData, kind: type[Made]) -> Made:
    """Plan of a system from the data of its order, without the rows that this leaves out.

    Raises:
        PlanError: an output, a row or an undetermined unknown that the system does not have, or no permutations.
    """
    rows, undetermined = set(system.of_components.closing), np.array(data.undetermined, dtype=np.intp)
    for repeat in data.repeats:
        if (repeat.equation, repeat.row) not in rows:
            raise PlanError(f"it leaves out row {repeat.row} of component equation {repeat.equation}: there is none.")
    if max(data.undetermined, default=0) >= system.shape[1]:
        raise PlanError("its undetermined unknowns are not those of its system.")
    if data.repeats:
        system = system.without(data.repeats)
    if data.regrouped is None and system.is_weighted:
        raise PlanError("it eliminates D itself, and its system is one of least squares.")
    n = None if system.is_weighted else system.shape[1]  # what is eliminated there is larger: see `verify`
    return kind(
        system=system,
        outputs=determined_outputs(system, outputs, undetermined),
        ordering=data.ordering,
        row_permutation=_permutation(data.row_permutation, n, "row permutation"),
        column_permutation=_permutation(data.column_permutation, n, "column permutation"),
        program_rows=_permutation(data.program_rows, None, "program's row permutation"),
        program_columns=_permutation(data.program_columns, None, "program's column permutation"),
        regrouped=data.regrouped,
        tried=tuple(data.candidates),
        seed=data.seed,
        undetermined=undetermined,
        is_over_time=data.is_over_time,
    )


def _permutation(values: list[int], n: int | None, what: str) -> Indices:
    """Check a permutation of n numbers, or of as many as there are.

    Raises:
        PlanError: it is none.
    """
    n = len(values) if n is None else n
    if sorted(values) != list(range(n)):
        raise PlanError(f"its {what} is not a permutation of {n} numbers.")
    permutation = np.array(values, dtype=np.intp)
    permutation.flags.writeable = False
    return permutation


def _checksum(body: dict[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()


def tree_data(tree: KinematicTree) -> dict[str, Any]:
    """Data of a kinematic tree, as `tree_of` takes them."""
    data = TreeData(
        name=tree.name,
        names=list(tree.names),
        joint_names=list(tree.joint_names),
        parents=list(tree.parents),
        joints=[JointModelData(kind=joint.kind, parameters=_parameters(joint)) for joint in tree.joints],
        X_tree=[_transform_data(X) for X in tree.X_tree],
        I=tree.I.tolist(),
        frames={name: FrameData(link=f.link, X=_transform_data(f.X)) for name, f in tree.frames.items()},
        gravity=list(tree.gravity),
        notes=list(tree.notes),
        components=[component.to_dict() for component in tree.components],
    )
    return data.model_dump(exclude_defaults=True)


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


def _transform_data(X: Transform) -> TransformData:
    return TransformData(E=np.asarray(X.E).tolist(), r=np.asarray(X.r).tolist())


def _transform(data: TransformData) -> Transform:
    return Transform(np.array(data.E), np.array(data.r))

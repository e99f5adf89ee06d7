"""Plan files: JSON that holds the model, the sensors and the permutations; data only, versioned, checked.

Nothing in a plan file is executed: programs are made from it on the machine that runs it.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import asdict, is_dataclass
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, NonNegativeInt, ValidationError

from nori_dyn.algebra.counting import Cost
from nori_dyn.algebra.spatial import Transform
from nori_dyn.components.config import components_of
from nori_dyn.errors import InvalidConfigError, NoriError, PlanError
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import JOINTS, Joint
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.planning.planner import EliminationPlan, TriedOrdering
from nori_dyn.planning.search import Stability
from nori_dyn.system.builder import System
from nori_dyn.system.repeats import Repeat

FORMAT = "nori_dyn plan"
ORDER_FORMAT = "nori_dyn order"
VERSION = 5
"""Raised whenever the content, or what is computed from it, changes its meaning."""

OLDER = (4,)
"""Versions that are read as well. The orders in them are of frames that are no longer used: see `Plan.load`."""

Vector = Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]
Matrix = Annotated[list[Vector], Field(min_length=3, max_length=3)]
SpatialVector = Annotated[list[FiniteFloat], Field(min_length=6, max_length=6)]
SpatialMatrix = Annotated[list[SpatialVector], Field(min_length=6, max_length=6)]


class _Data(BaseModel):
    model_config = ConfigDict(extra="forbid")


Content = TypeVar("Content", bound=BaseModel)
Of = TypeVar("Of", bound=System)


class TransformData(_Data):
    """A transform: rotation and position [m]."""

    E: Matrix
    r: Vector


class FrameData(_Data):
    """A named frame."""

    link: int
    X: TransformData


class JointData(_Data):
    """A joint model: its kind and parameters; null is an infinite limit."""

    kind: str
    parameters: dict[str, float | list[float | None]]


class TreeData(_Data):
    """A kinematic tree."""

    name: str
    names: list[str]
    joint_names: list[str]
    parents: list[int]
    joints: list[JointData]
    X_tree: list[TransformData]
    I: list[SpatialMatrix]
    frames: dict[str, FrameData]
    gravity: Vector
    notes: list[str]
    components: list[dict[str, Any]] = []


class CostData(_Data):
    """Counted operations."""

    additions: int
    multiplications: int
    divisions: int
    square_roots: int = 0


class StabilityData(_Data):
    """How well a program's pivots hold."""

    states: int
    smallest_pivot: FiniteFloat
    smallest_at: str
    growth: FiniteFloat


class CandidateData(_Data):
    """What an ordering leads to."""

    ordering: str
    cost: CostData
    published: CostData
    fill_in: int
    nonzeros: int
    program: CostData
    stability: StabilityData
    program_ordering: str = ""


class RepeatData(_Data):
    """A row of a loop or coupling that is left out."""

    equation: NonNegativeInt
    row: NonNegativeInt
    is_zero: bool


class OrderData(_Data):
    """What was planned for a system, by its fingerprint."""

    fingerprint: str
    ordering: str
    row_permutation: list[int]
    column_permutation: list[int]
    program_rows: list[int]
    program_columns: list[int]
    regrouped: bool | None
    candidates: list[CandidateData] = Field(min_length=1)
    seed: NonNegativeInt
    repeats: list[RepeatData] = []
    undetermined: list[NonNegativeInt] = []
    is_over_time: bool = False


class CachedOrder(OrderData):
    """The content of an entry of the cache: what was planned, for a system that is at hand."""

    format: Literal["nori_dyn order"]
    version: int


class PlanData(OrderData):
    """The content of a plan file."""

    format: Literal["nori_dyn plan"]
    version: int
    tree: TreeData
    sensors: dict[str, Any]
    outputs: list[str] | None


def plan_to_text(plan: EliminationPlan, output_names: list[str] | None) -> str:
    """Return the content of a plan's file.

    Raises:
        PlanError: its sensors are not a SensorSet, so they cannot be written as data.
    """
    sensors = plan.system.sensors
    if not isinstance(sensors, SensorSet):
        raise PlanError(f"{plan!r} cannot be saved: its sensors are a {type(sensors).__name__}, not a SensorSet.")
    content = {"tree": tree_data(plan.system.tree), "sensors": sensors.to_dict(), "outputs": output_names}
    return sealed(FORMAT, {**content, **order_data(plan).model_dump()})


def order_to_text(plan: EliminationPlan) -> str:
    """Return the content of a plan's entry in the cache: permutations and counts, without model and sensors."""
    return sealed(ORDER_FORMAT, order_data(plan).model_dump())


def order_from_text(text: str | bytes) -> CachedOrder:
    """Return the content of an entry of the cache, checked.

    Raises:
        PlanError: it is damaged, or no such entry at all.
    """
    return unsealed(text, ORDER_FORMAT, CachedOrder, "an entry of the cache of plans", "`nori_dyn.plan`")


def order_data(plan: EliminationPlan) -> OrderData:
    """Return what was planned."""
    return OrderData(
        fingerprint=plan.system.fingerprint,
        ordering=plan.ordering,
        row_permutation=plan.row_permutation.tolist(),
        column_permutation=plan.column_permutation.tolist(),
        program_rows=plan.program_rows.tolist(),
        program_columns=plan.program_columns.tolist(),
        regrouped=plan.regrouped,
        candidates=[CandidateData.model_validate(asdict(candidate)) for candidate in plan.tried],
        seed=plan.seed,
        repeats=[RepeatData(**asdict(repeat)) for repeat in plan.system.of_components.repeats],
        undetermined=plan.undetermined.tolist(),
        is_over_time=plan.is_over_time,
    )


def sealed(format: str, content: dict[str, Any]) -> str:
    """Return the text of a file: its format and version, its content, and a checksum of all this."""
    body = {"format": format, "version": VERSION, **content}
    return json.dumps({**body, "checksum": _checksum(body)}) + "\n"


def plan_from_text(text: str | bytes) -> PlanData:
    """Return the content of a plan file, checked.

    Raises:
        PlanError: it is truncated, changed, from another version, or no plan file at all.
    """
    return unsealed(text, FORMAT, PlanData, "a plan file", "`nori-dyn plan`")


def unsealed(text: str | bytes, format: str, model: type[Content], what: str, maker: str) -> Content:
    """Return the content of a file that `sealed` made, checked.

    Args:
        text: of the file.
        format: what it must be.
        model: what its content must be.
        what: what to call such a file.
        maker: what makes one.

    Raises:
        PlanError: it is truncated, changed, from another version, or no such file at all.
    """
    try:
        body = json.loads(text)
    except ValueError as error:
        raise PlanError(f"it is not {what}, or is truncated ({error}). Make it anew with {maker}.") from None
    except RecursionError:
        raise PlanError(f"it is not {what}: it is nested too deeply. Make one with {maker}.") from None
    if not isinstance(body, dict) or body.get("format") != format:
        raise PlanError(f"it is not {what}. Make one with {maker}.")
    if body.get("version") not in (VERSION, *OLDER):
        raise PlanError(
            f"it is of version {body.get('version')!r}, this program reads {VERSION}. Make it anew with {maker}."
        )
    if body.pop("checksum", None) != _checksum(body):
        raise PlanError(f"its content was changed or damaged. Make it anew with {maker}.")
    try:
        return model.model_validate(body)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"]))
        raise PlanError(f"its entry '{place}' is wrong: {first['msg']}.") from None


def tree_of(data: TreeData) -> KinematicTree:
    """Return the kinematic tree of a plan file.

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


def system_of(system: Of, data: OrderData) -> Of:
    """Return a system without the rows that its plan leaves out.

    Raises:
        PlanError: a row, or an undetermined unknown, that the system does not have.
    """
    rows = set(system.of_components.closing)
    for repeat in data.repeats:
        if (repeat.equation, repeat.row) not in rows:
            raise PlanError(f"it leaves out row {repeat.row} of component equation {repeat.equation}: there is none.")
    if max(data.undetermined, default=0) >= system.shape[1]:
        raise PlanError("its undetermined unknowns are not those of its system.")
    return system.without([Repeat(**repeat.model_dump()) for repeat in data.repeats]) if data.repeats else system


def tried_orderings(data: OrderData) -> tuple[TriedOrdering, ...]:
    """Return the counted orderings of a plan file."""
    return tuple(
        TriedOrdering(
            ordering=c.ordering,
            cost=_cost(c.cost),
            published=_cost(c.published),
            fill_in=c.fill_in,
            nonzeros=c.nonzeros,
            program=_cost(c.program),
            stability=Stability(**c.stability.model_dump()),
            program_ordering=c.program_ordering,
        )
        for c in data.candidates
    )


def _cost(data: CostData) -> Cost:
    return Cost(data.additions, data.multiplications, data.divisions, data.square_roots)


def permutation_of(values: list[int], n: int | None, what: str) -> np.ndarray[tuple[int], np.dtype[np.intp]]:
    """Return a permutation of n numbers, or of as many as there are.

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
    """Return the data of a kinematic tree, as `tree_of` takes them."""
    return _tree_data(tree).model_dump(exclude_defaults=True)


def _tree_data(tree: KinematicTree) -> TreeData:
    return TreeData(
        name=tree.name,
        names=list(tree.names),
        joint_names=list(tree.joint_names),
        parents=list(tree.parents),
        joints=[JointData(kind=joint.kind, parameters=_parameters(joint)) for joint in tree.joints],
        X_tree=[_transform_data(X) for X in tree.X_tree],
        I=tree.I.tolist(),
        frames={name: FrameData(link=f.link, X=_transform_data(f.X)) for name, f in tree.frames.items()},
        gravity=list(tree.gravity),
        notes=list(tree.notes),
        components=[component.to_dict() for component in tree.components],
    )


def _parameters(joint: Joint) -> dict[str, Any]:
    values: dict[str, Any] = asdict(joint) if is_dataclass(joint) else {}
    return {
        name: [x if math.isfinite(x) else None for x in value] if isinstance(value, tuple) else value
        for name, value in values.items()
    }


def _joint(data: JointData) -> Joint:
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

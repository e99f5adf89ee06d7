"""Shared parts of readings at a frame: the frame, and the components that are read in it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import ConfigDict, Field, FiniteFloat, model_validator

from nori_dyn.algebra.planar import snapped
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import SensorConfigError, UnknownModelNameError, UnknownSensorNameError
from nori_dyn.measurements.base import Measurement, VariableReading
from nori_dyn.measurements.selectors import Selector, select_places
from nori_dyn.model.joints import UNITS, axis_rotation
from nori_dyn.model.tree import Frame, KinematicTree, NamedFrame
from nori_dyn.system.equation import Equation, EquationOf, Ranges
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.system.variables import VariableKey
from nori_dyn.typing import Array, Floats

Vector = Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]


class Pose(ConfigPart):
    """The pose of a frame in link coordinates: position [m], then fixed-axis roll, pitch, yaw [rad].

    Attributes:
        relative_to: a frame on the link by name, in whose coordinates the pose is; the link's own when None.
    """

    xyz: Vector = Field([0.0, 0.0, 0.0])
    rpy: Vector = Field([0.0, 0.0, 0.0])
    relative_to: str | None = None

    def transform(self) -> Transform:
        """The transform from the reference frame to this one; quarter turns are exact."""
        roll, pitch, yaw = (np.float64(angle) for angle in self.rpy)
        E = (
            axis_rotation((1.0, 0.0, 0.0), roll)
            @ axis_rotation((0.0, 1.0, 0.0), pitch)
            @ axis_rotation((0.0, 0.0, 1.0), yaw)
        )
        return Transform(snapped(E), np.array(self.xyz))


@dataclass(frozen=True, slots=True)
class SensorSite:
    """The body, frame and components that a sensor reads.

    Attributes:
        name: of the equation.
        body: the link.
        X: transform from link coordinates to those of the reading.
        components: the names of the components.
        rows: their places among the six numbers of a spatial vector.
        value: the known values (rows); None when the rows take a reading.
        sigma: standard deviations (rows); None is exact.
        ranges: the readings between which the sensor works (rows); None is all.
        units: the SI unit of each (rows); None where they are not known.
        frame: the frame of the reading; None is the link's own.
    """

    name: str
    body: int
    X: Transform
    components: tuple[str, ...]
    rows: tuple[int, ...]
    value: tuple[float, ...] | None
    sigma: tuple[float, ...] | None
    ranges: Ranges | None = None
    units: tuple[str, ...] | None = None
    frame: NamedFrame | None = None

    def along(self, C: Floats) -> tuple[SensorSite, Floats] | None:
        """The same reading along other axes, and the rotation to them; see `Turnable`."""
        vectors = {self.rows[k : k + 3] for k in range(0, len(self.rows), 3)}
        if not vectors <= {(0, 1, 2), (3, 4, 5)}:
            return None
        turn = np.kron(np.eye(len(self.rows) // 3), snapped(C @ self.X.E.T)).astype(float)
        value = None if self.value is None else tuple((turn @ self.value).tolist())
        return replace(self, X=Transform(np.eye(3), C @ self.X.r), value=value), turn


class SiteReading(Measurement):
    """The reading of components of a spatial vector, in any frame fixed to a link.

    A subclass may have a field `components`, whose names are among `spatial`; when it is not given, those in `default`
    are read, or all.

    Attributes:
        frame: a frame on the link by name, or a pose in link coordinates; the link's own when None.
    """

    frame: str | Pose | None = None

    selector: ClassVar[str] = "links"
    """The field that selects links, or joints."""

    label: ClassVar[str]
    spatial: ClassVar[tuple[str, ...]]
    default: ClassVar[tuple[str, ...] | None] = None

    @abstractmethod
    def reads(self, place: SensorSite) -> Equation:
        """The equation of a site."""

    @abstractmethod
    def owners(self, tree: KinematicTree) -> Iterator[tuple[str, int, str]]:
        """Yield the readings: name, link, and the frame where none is given."""

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        owners = list(self.owners(tree))
        names = self.called([f"{self.label}:{owner}" for owner, _, _ in owners])
        for name, (_, i, frame) in zip(names, owners, strict=True):
            yield self.reads(self._place(tree, name, i, self.frame or frame))

    def each(self, tree: KinematicTree) -> Iterator[Measurement]:
        return (self.model_copy(update={self.selector: name}) for name, _, _ in self.owners(tree))

    def _place(self, tree: KinematicTree, name: str, i: int, frame: str | Pose) -> SensorSite:
        components = tuple(getattr(self, "components", None) or self.default or self.spatial)
        if len(set(components)) < len(components):
            raise SensorConfigError(f"{self.type}: a component is listed twice: {', '.join(components)}.")
        placed = self._frame(tree, i, frame)
        return SensorSite(
            name=name,
            body=i,
            X=tree.constant(placed.frame.X),
            components=components,
            rows=tuple(self.spatial.index(component) for component in components),
            **self.numbers(name, components),
            units=tuple(UNITS.get(component, "") for component in components),
            frame=None if frame == tree.names[i] else placed,
        )

    def _frame(self, tree: KinematicTree, i: int, frame: str | Pose) -> NamedFrame:
        """The frame of a reading of link i; one given by its pose has no name."""
        if isinstance(frame, str):
            return NamedFrame(frame, self._known_frame(tree, frame, i))
        X = frame.transform()
        if frame.relative_to is not None:
            X = X @ self._known_frame(tree, frame.relative_to, i).X
        return NamedFrame(f"{tree.names[i]} (sensor's frame)", Frame(i, X))

    def _known_frame(self, tree: KinematicTree, name: str, i: int) -> Frame:
        try:
            frame = tree.frame(name)
        except UnknownModelNameError as error:
            raise UnknownSensorNameError("frame", name, error.known, f"robot '{tree.name}'") from None
        if frame.link != i:
            carrier = "the world" if frame.on_world else f"link '{tree.names[frame.link]}'"
            raise SensorConfigError(
                f"{self.type} on link '{tree.names[i]}': frame '{name}' is fixed to {carrier}. "
                "Name a frame on the link itself, or give a pose {xyz: [...], rpy: [...]}."
            )
        return frame


def _requires_no_links(schema: dict[str, Any]) -> None:
    schema["required"] = [name for name in schema.get("required", ()) if name != "links"]


class OnLinks(Measurement):
    """A sensor at frames of links.

    Attributes:
        links: which links. A name may be that of a frame on a link: then the frame is that one where `frame` is not
            given; and `frame` alone names its link.
        frame: a frame on the link by name, or a pose in link coordinates; the link's own when None.
    """

    model_config = ConfigDict(json_schema_extra=_requires_no_links)

    links: Selector
    frame: str | Pose | None = None

    @model_validator(mode="before")
    @classmethod
    def _link_of_frame(cls, entry: Any) -> Any:
        is_alone = isinstance(entry, Mapping) and "links" not in entry and isinstance(entry.get("frame"), str)
        return {**entry, "links": entry["frame"]} if is_alone else entry


class LinkReading(OnLinks, SiteReading):
    """A reading at frames of links."""

    def owners(self, tree: KinematicTree) -> Iterator[tuple[str, int, str]]:
        return ((name, i, name) for name, i in select_places(tree, self.links))


@dataclass(frozen=True, slots=True, kw_only=True)
class FrameReading(VariableReading):
    """Rows X d_k - y = 0, or -X d_k - y = 0, of one spatial vector d_k of a body.

    Attributes:
        place: the frame and components of the reading.
        sign: 1 or -1.
    """

    place: SensorSite
    sign: float

    def along(self, C: Floats) -> tuple[FrameReading, Floats] | None:
        """See `Turnable`."""
        turned = self.place.along(C)
        if turned is None:
            return None
        place, turn = turned
        return replace(self, place=place, matrix=_matrix(place, self.key, self.sign), value=place.value), turn


def variable_reading(
    place: SensorSite, sensor: Measurement, source: str, key: VariableKey, sign: float = 1.0
) -> FrameReading:
    """The rows at a site that read a spatial vector of its body, or its opposite."""
    return FrameReading(
        name=place.name,
        source=source,
        group=sensor.type,
        components=place.components,
        key=key,
        matrix=_matrix(place, key, sign),
        value=place.value,
        sigma=place.sigma,
        ranges=place.ranges,
        units=place.units,
        frame=place.frame,
        place=place,
        sign=sign,
    )


def _matrix(place: SensorSite, key: VariableKey, sign: float) -> Array:
    X = place.X
    matrix: Array = sign * (X.motion_matrix() if key.kind == "a" else X.force_matrix())[list(place.rows)]
    return matrix


@dataclass(frozen=True, slots=True)
class SiteRows(EquationOf):
    """Shared part of equations at a site that are more than a matrix on one variable.

    Attributes:
        equation: the rows that read a spatial vector there and nothing else.
    """

    equation: FrameReading

    @property
    def place(self) -> SensorSite:
        """The frame and components of the reading."""
        return self.equation.place

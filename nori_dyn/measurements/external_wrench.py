"""A known or measured external wrench on a link, whole or in components, in any frame fixed to the link."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Literal

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, FiniteFloat

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import SensorConfigError, UnknownModelNameError, UnknownSensorNameError
from nori_dyn.measurements.base import Measurement, VariableReading, per_component
from nori_dyn.measurements.selectors import Selector, select_places
from nori_dyn.model.joints import FORCE, axis_rotation
from nori_dyn.model.tree import Frame, KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey

Vector = Annotated[list[FiniteFloat], Field(min_length=3, max_length=3)]


class Pose(BaseModel):
    """The pose of a frame in link coordinates: position [m], then fixed-axis roll, pitch, yaw [rad]."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    xyz: Vector = [0.0, 0.0, 0.0]
    rpy: Vector = [0.0, 0.0, 0.0]

    def transform(self) -> Transform:
        """Return the transform from link coordinates to the frame's."""
        roll, pitch, yaw = (np.float64(angle) for angle in self.rpy)
        E = (
            axis_rotation((1.0, 0.0, 0.0), roll)
            @ axis_rotation((0.0, 1.0, 0.0), pitch)
            @ axis_rotation((0.0, 0.0, 1.0), yaw)
        )
        return Transform(E, np.array(self.xyz))


class ExternalWrench(Measurement):
    """The external wrench fx on links, or some of its components [N m, N]: Nori (7), (8b).

    A name in `links` may be that of a frame on a link: then the frame is that one where `frame` is not given.
    """

    type: Literal["external_wrench"]
    links: Selector
    components: list[Literal["mx", "my", "mz", "fx", "fy", "fz"]] | None = None
    frame: str | Pose | None = None

    def on(self, tree: KinematicTree) -> Iterator[Equation]:
        components = tuple(self.components or FORCE)
        if len(set(components)) < len(components):
            raise SensorConfigError(f"external_wrench: a component is listed twice: {', '.join(components)}.")
        rows = [FORCE.index(component) for component in components]
        for place, i, X in self._frames(tree):
            name = f"fx:{place}"
            yield VariableReading(
                name=name,
                source="Nori (7), (8b)",
                group=self.type,
                components=components,
                key=VariableKey("fx", i),
                matrix=X.force_matrix()[rows],
                value=per_component(f"the value of '{name}'", self.value, components),
                sigma=per_component(f"the sigma of '{name}'", self.sigma, components),
            )

    def _frames(self, tree: KinematicTree) -> Iterator[tuple[str, int, Transform]]:
        """Yield (name, body, transform from the body's coordinates to those of the reading)."""
        for name, i in select_places(tree, self.links):
            if isinstance(self.frame, Pose):
                yield name, i, self.frame.transform()
            else:
                yield name, i, self._named_frame(tree, self.frame or name, i).X

    def _named_frame(self, tree: KinematicTree, name: str, i: int) -> Frame:
        try:
            frame = tree.frame(name)
        except UnknownModelNameError as error:
            raise UnknownSensorNameError("frame", name, error.known, f"robot '{tree.name}'") from None
        if frame.link != i:
            carrier = "the world" if frame.on_world else f"link '{tree.names[frame.link]}'"
            raise SensorConfigError(
                f"external_wrench on link '{tree.names[i]}': frame '{name}' is fixed to {carrier}. "
                "Name a frame on the link itself, or give a pose {xyz: [...], rpy: [...]}."
            )
        return frame

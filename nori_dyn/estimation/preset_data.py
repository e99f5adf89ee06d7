"""What the YAML file of a preset says."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, FiniteFloat

from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.logs.mapping.log_mapping import LogMapping, Names, Strict, Three, mapping_yaml
from nori_dyn.measurements.config_errors import ConfigSchema

Positive = Annotated[FiniteFloat, Field(gt=0)]
Six = Annotated[list[FiniteFloat], Field(min_length=6, max_length=6)]


class Load(Strict):
    """A body fixed to a link that the model lacks: a tool, a battery, a trunk; or, below zero, has and the robot lacks.

    Attributes:
        link: the link or frame in whose axes it is given.
        mass: [kg]; with `inertia`, below zero where the robot lacks the body.
        com: its centre of mass [m].
        inertia: ixx, iyy, izz, ixy, ixz, iyz about the centre of mass [kg m^2].
    """

    link: str
    mass: FiniteFloat
    com: Three = Field(default_factory=lambda: [0.0] * 3)
    inertia: Six = Field(default_factory=lambda: [0.0] * 6)


class Estimand(Strict):
    """What can be estimated, and by which sensors.

    Attributes:
        about: what it is, in words.
        sensors: a set of sensors: the name of a shipped one, or what its YAML file would say.
        outputs: the outputs.
        contacts: "recognise" where contacts are recognised; otherwise the log tells them.
        alarms: when collisions count as seen, `nd.tools.Alarms`; without it nothing is watched.
        robot, components: in place of those that the preset has for all: as identified.
    """

    about: str
    sensors: str | dict[str, Any]
    outputs: Names
    contacts: Literal["recognise"] | None = None
    alarms: Alarms | None = None
    robot: Names | None = None
    components: list[dict[str, Any]] | None = None


class VendorLog(LogMapping):
    """A mapping for logs as the vendor's software, or a data set, writes them; it fits if its columns are there.

    Attributes:
        about: whose logs these are, and where that is documented.
        dt: time between samples [s] of logs without times.
        differentiate: how to differentiate, where "auto" is not best, see `nd.estimate`.
        doubt: what such logs leave open, which is asked before anything is estimated.
    """

    about: str
    dt: Positive | None = None
    differentiate: Literal["smoother", "kalman"] | Annotated[int, Field(gt=0)] | None = None
    doubt: str = ""

    @property
    def mapping(self) -> LogMapping:
        """The mapping alone."""
        content = self.model_dump(include=set(LogMapping.model_fields), by_alias=True, exclude_unset=True)
        if self.dt is not None:
            content["clock"] = {"rate": 1 / self.dt, **content.get("clock", {})}
        return LogMapping.model_validate(content)

    def text(self, log: str, robot: str) -> str:
        """The mapping as a YAML file of its own, for a log of a robot."""
        about = f"What the columns of {log} are for '{robot}'.", self.about, self.doubt
        return mapping_yaml(self.mapping, [" ".join(each.split()) for each in about if each])


class PresetData(Strict):
    """What the YAML file of a preset says.

    Attributes:
        name: its name.
        about: the robot, in words.
        sources: where its numbers are from, the sigmas above all.
        robot: where the model is: names that `load_robot` knows, or files beside the preset; the first that is there.
        base: whether its root link is fixed to the world or floats.
        gravity: in the axes of the base [m/s^2], where that is mounted otherwise than in the model.
        locked: joints to freeze, at the positions given [rad or m], where the model has them.
        kept: fixed joints to keep, or "sensors"; see `load_robot`.
        limits: lowest and highest positions of joints [rad or m] where those of the model are not the robot's.
        components: motors, friction and so on beside those of the model.
        loads: bodies that the model lacks; one that is given, and marked as identified, has them.
        obtain: how a model that no package has is to be had, in words.
        order: the joints in the order in which the robot's messages number them; "" for a number of no joint.
        called: what drivers and logs call joints besides, by their names in the model.
        doubts: what is asked of other logs whose columns are drafted, by words in their names; "" of all.
        estimates: what can be estimated; the first is what is estimated by default.
        logs: mappings for logs of known kinds, by name; others are drafted.
    """

    name: str
    about: str
    sources: str
    robot: Names
    base: Literal["fixed", "floating"] = "fixed"
    gravity: Three | None = None
    locked: dict[str, FiniteFloat] = Field(default_factory=dict)
    kept: list[str] | Literal["sensors"] = Field(default_factory=list)
    limits: dict[str, Annotated[list[FiniteFloat], Field(min_length=2, max_length=2)]] = Field(default_factory=dict)
    components: list[dict[str, Any]] = Field(default_factory=list)
    loads: list[Load] = Field(default_factory=list)
    obtain: str = ""
    order: list[str] = Field(default_factory=list)
    called: dict[str, Names] = Field(default_factory=dict)
    doubts: dict[str, str] = Field(default_factory=dict)
    estimates: Annotated[dict[str, Estimand], Field(min_length=1)]
    logs: dict[str, VendorLog] = Field(default_factory=dict)


SCHEMA = ConfigSchema(
    PresetData,
    "a preset",
    beginning="It begins with `name:`, `about:`, `sources:` and `robot:`, and then has `estimates:`.",
)

"""Options that several commands have, and groups of them: dataclasses whose fields are options of a command."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from copy import copy
from dataclasses import dataclass, fields, is_dataclass
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, get_args, get_origin, get_type_hints

import typer

import nori_dyn as nd

if TYPE_CHECKING:
    from nori_dyn.estimation.presets import Preset

Robot = Annotated[str, typer.Argument(metavar="ROBOT")]
Json = Annotated[bool, typer.Option("--json")]
Model = Annotated[str | None, typer.Option(metavar="ROBOT")]

Differentiated = Annotated[
    str | None,
    typer.Option(
        "--differentiate",
        metavar="<way>",
        help="How joint accelerations that the log lacks are made of its velocities: 'smoother', or 'auto', where it "
        "is left out, by a Kalman filter a joint and back over the log; 'kalman', of the samples so far; 51, by a "
        "window of that odd number of samples (Savitzky and Golay); 'none', to refuse such logs. The filters find the "
        "noise of each joint in the log, and say how sure they are: accelerations that have a sigma are weighed by "
        "that. All but 'auto' make velocities that the log lacks of its positions as well.",
    ),
]

POSES = ("parallel", "coplanar", "flat", "double_support", "closed", "at_zero", "at_limits")
"""The special poses of `nori_dyn.observe.poses`."""

Criterion = Literal["A", "D"]
"""Optimality criterion: trace (A) or determinant (D) of the covariance."""

Singular = Literal["refuse", "nan"]
"""How samples without a unique solution are handled."""

Missing = Literal["refuse", "drop"]
"""How unusable readings are handled."""

Base = Literal["fixed", "floating"]
"""Whether the root link is fixed to the world or floats."""

Inertias = Literal["as_given", "nearest", "refuse"]
"""How inertias that no distribution of mass has are handled."""


Gravity = Annotated[str | None, typer.Option(metavar="X,Y,Z")]

Components = Annotated[str | None, typer.Option(metavar="FILE|own|none")]


def vector(text: str) -> tuple[float, float, float]:
    """Three numbers with commas between them.

    Raises:
        BadParameter: they are none.
    """
    try:
        x, y, z = map(float, text.split(","))
    except ValueError:
        raise typer.BadParameter(f"'{text}' is not three numbers, such as 9.81,0,0.", param_hint="--gravity") from None
    return x, y, z


def components_named(text: str | None) -> bool | str | None:
    """Components by their option, as for `load_robot`."""
    return text == "own" if text in ("own", "none") else text


@dataclass(frozen=True)
class RobotOptions:
    """How a robot is loaded.

    Attributes:
        base: Whether the root link is fixed to the world or floats.
        lock: Freeze a joint; repeatable.
        keep: Keep a fixed joint, so that the wrench through it is a variable; repeatable. 'sensors' for all that carry
            a force-torque sensor.
        components: Motors, friction, couplings, loops: those of a YAML file beside those of the robot's file; 'own' for
            the latter alone, 'none' for bare rigid bodies. Without it, those of an MJCF model, and of a URDF friction
            and rotors that `identify` found and wrote.
        gravity: Gravity in the axes of the base [m/s^2], where that is mounted otherwise than in the model: 9.81,0,0.
        inertias: Inertias that no distribution of mass has: taken as given, with a warning; or the nearest that some
            distribution has; or refused.
    """

    base: Base = "fixed"
    lock: Annotated[list[str] | None, typer.Option(metavar="JOINT")] = None
    keep: Annotated[list[str] | None, typer.Option(metavar="JOINT")] = None
    components: Components = None
    gravity: Gravity = None
    inertias: Inertias = "as_given"

    def given(self) -> dict[str, Any]:
        """The options that are not as usual, by their names."""
        own = {each.name: getattr(self, each.name) for each in fields(RobotOptions)}
        usual = {each.name: each.default for each in fields(RobotOptions)}
        return {name: value for name, value in own.items() if value and value != usual[name]}

    def keywords(self) -> dict[str, Any]:
        """Keywords of `load_robot`, of what is not as usual."""
        found = {{"lock": "locked", "keep": "kept"}.get(name, name): value for name, value in self.given().items()}
        if self.gravity is not None:
            found["gravity"] = vector(self.gravity)
        if self.keep == ["sensors"]:
            found["kept"] = "sensors"
        if self.components is not None:
            found["components"] = components_named(self.components)
        return found

    def preset(self, name: str, model: str | None) -> Preset:
        """The preset of a robot, which loads it so.

        Raises:
            NoriError: what `nd.preset` and `Preset.tree` refuse; a joint to lock, or to keep, that is none there.
        """
        given = self.keywords()
        found = nd.preset(name, model, given.get("gravity"), given.get("components"))
        for joint in self.lock or ():
            found.tree.joint(joint)
        if "kept" in given:
            nd.load_robot(found.source, kept=given["kept"], inertias="nearest")
        return found.fitted(self.lock or (), **{one: given[one] for one in ("base", "kept") if one in given})

    def load(self, robot: str) -> nd.KinematicTree:
        """Load a robot.

        Raises:
            NoriError: what `load_robot` refuses.
        """
        return nd.load_robot(robot, **self.keywords())

    def with_sensors(self, robot: str, sensors: str | None) -> tuple[nd.KinematicTree, nd.SensorSet]:
        """Load a robot, and sensors of it.

        Raises:
            BadParameter: no sensors are named.
            NoriError: what `load_robot` and `load_sensors` refuse.
        """
        if sensors is None:
            from nori_dyn.descriptions.sensor_configs import shipped_configs

            names = ", ".join(shipped_configs())
            raise typer.BadParameter(f"name a YAML file, or one of {names}.", param_hint="--sensors")
        tree = self.load(robot)
        return tree, nd.load_sensors(sensors, robot, tree)

    def words(self) -> tuple[str, ...]:
        """Options by which another command loads the same robot."""
        several = [(f"--{name}", own if isinstance(own, list) else [own]) for name, own in self.given().items()]
        return tuple(word for option, own in several for one in own for word in (option, one))


@dataclass(frozen=True)
class LogOptions:
    """How a log is read.

    Attributes:
        mapping: A YAML file that ties the log's columns, topics and keys to the robot, with units, signs, clocks and
            delays; `nori-dyn info LOG --robot ROBOT` drafts it. Without it, columns go by their usual names.
        dt: Time between samples [s], for --differentiate, to compare q with qd, and to find gaps; that of the log's
            column t or time when left out. With memory a log without times needs it.
        missing: What to do with readings that are empty or not numbers, or at an end of their sensor's range: refuse
            the log, or drop the sensor in that sample, if it has a sigma. Without it they are refused, with --view
            dropped and marked.
        singular: What to do with samples at which the sensors do not suffice, such as special poses: refuse the log, or
            write nan for them, and say how many there are and where the first is. Without it they are refused, with
            --view left out of the plots and marked.
    """

    mapping: Path | None = None
    differentiate: Differentiated = None
    dt: float | None = None
    missing: Missing | None = None
    singular: Singular | None = None


def option_names(group: type[Any]) -> list[str]:
    """Parameters of a command that are options of a group."""
    return [each.name for each in fields(group)]


def described(of: Callable[..., None] | type[Any]) -> dict[str, str]:
    """What a docstring says of each argument of a command, or attribute of a group, in a line."""
    kinds = reversed(of.__mro__) if isinstance(of, type) else [of]
    sections = [re.split(r"\n(?:Args|Attributes):\n", inspect.getdoc(kind) or "")[-1] for kind in kinds]
    found = re.findall(r"^    (\w+): (.*(?:\n {8}.*)*)", "\n".join(sections), flags=re.MULTILINE)
    return {name: " ".join(text.split()) for name, text in found}


def _options(of: Callable[..., None] | type[Any]) -> Iterator[inspect.Parameter]:
    """Yield the parameters of a command, those of its groups one by one, with its description as its help."""
    hints, about = get_type_hints(of, include_extras=True), described(of)
    for each in inspect.signature(of).parameters.values():
        kind, *more = get_args(hints[each.name]) if get_origin(hints[each.name]) is Annotated else (hints[each.name],)
        if isinstance(kind, type) and is_dataclass(kind):
            yield from _options(kind)
            continue
        names = [f"--{each.name.replace('_', '-')}"] if kind is bool and not each.default else []  # and no --no-name
        option = copy(more[0]) if more else typer.Option(*names)
        option.help = option.help or about.get(each.name)
        taken = kind if kind is typer.Context else Annotated[kind, option]
        yield each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=taken)


def command_of(function: Callable[..., None]) -> Callable[..., None]:
    """A command as Typer takes it: with the options of its groups one by one, and their help from docstrings."""
    taken = list(_options(function))
    kinds = ((name, kind) for name, kind in get_type_hints(function).items() if isinstance(kind, type))
    groups = {name: kind for name, kind in kinds if is_dataclass(kind)}

    @wraps(function)
    def run(**given: Any) -> None:
        made = {name: kind(**{one: given.pop(one) for one in option_names(kind)}) for name, kind in groups.items()}
        function(**given, **made)

    run.__annotations__ = {each.name: each.annotation for each in taken}
    run.__signature__ = inspect.Signature(taken)  # type: ignore[attr-defined]
    return run

"""Presets: what is to be known of a robot that many people have, so that its logs are estimated without more ado.

A preset is data, a YAML file: where the model is, which joints are locked, what can be estimated and by which sensors,
and how the logs of its vendor are written. Users write their own.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from pydantic import ValidationError

from nori_dyn.algebra.spatial import spatial_inertia
from nori_dyn.components.base import OnJoints
from nori_dyn.components.config import components_of
from nori_dyn.descriptions.identified import is_identified
from nori_dyn.descriptions.legs import legs_of
from nori_dyn.descriptions.robot_names import EXTRA, robots
from nori_dyn.descriptions.robots import load_robot
from nori_dyn.descriptions.sensor_configs import load_sensors, shipped_files
from nori_dyn.descriptions.surfaces import surfaces
from nori_dyn.errors import (
    InputError,
    InvalidConfigError,
    ModelError,
    PresetError,
    SensorConfigError,
    UnknownModelNameError,
    UnknownPresetError,
    WrongKindError,
)
from nori_dyn.estimation.legged import estimates_of, with_fewer
from nori_dyn.estimation.plan import Plan
from nori_dyn.estimation.plan import plan as make_plan
from nori_dyn.estimation.preset_data import SCHEMA, Estimand, PresetData, VendorLog
from nori_dyn.io.files import file_name
from nori_dyn.io.yaml_file import read_yaml
from nori_dyn.logs.mapping.log_mapping import LogMapping, MappingEntry
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.measurements.config_errors import config_error
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.surface import Surface
from nori_dyn.model.tree import KinematicTree, RobotComponent
from nori_dyn.tables import Shown

MODELS = (".urdf", ".xml", ".mjcf")
"""How the names of robots' files end."""

BASE = (
    "the robot has several limbs, and its base is taken to be fixed to the world? Of one that stands on legs or drives "
    "write a preset (nori-dyn schema --presets), or plan it with --base floating"
)
"""What is asked of robots that may not stand fixed."""


@dataclass(frozen=True, eq=False, repr=False)
class Preset(Shown):
    """A robot that is ready to use: its model, what can be estimated, and how its logs are written.

    Attributes:
        data: what its file says.
        path: its file.
        model: the file or name of the model in place of the preset's; None for that.
        components: motors and friction in place of the preset's, as for `load_robot`; None for those.

    Example:
        >>> go2 = nd.preset("go2")
        >>> list(go2.data.estimates)
        ['contacts', 'base', 'motion', 'pose']
    """

    data: PresetData
    path: Path
    model: str | None = None
    components: bool | str | None = None

    def __repr__(self) -> str:
        return f"Preset({self.data.name!r}, {', '.join(self.data.estimates)})"

    @property
    def name(self) -> str:
        """Its name."""
        return self.data.name

    @cached_property
    def source(self) -> str:
        """File or name of the model: the one given, a file beside the preset, or the first robot that is installed.

        Raises:
            ModelError: no package that has it is installed; says what to do.
        """
        if self.model is not None:
            return self.model
        known = robots()
        names = sorted(filter(known.__contains__, self.data.robot), key=lambda name: known[name].path is None)
        if not self._beside and not names:
            what = self.data.obtain or f"no installed package has it: {EXTRA}. It is downloaded when it is first used"
            raise ModelError(f"preset '{self.name}' takes its model from {self._robots}, and {what}. {self._own_model}")
        return [*self._beside, *names][0]

    @property
    def file(self) -> Path | None:
        """The file of its model; None where it is yet to be downloaded, or no installed package has it."""
        known = robots()
        found = [self.model, *self._beside, *(known[name].path for name in self.data.robot if name in known)]
        return next((Path(path) for path in found if path is not None), None)

    @property
    def _beside(self) -> list[str]:
        return [str(path) for name in self.data.robot if (path := self.path.parent / name).is_file()]

    @cached_property
    def tree(self) -> KinematicTree:
        """The robot, with its joints locked and its loads.

        Raises:
            ModelError: there is no model; it cannot be read; or it is another robot's.
        """
        data, source, locked = self.data, self.source, self.data.locked
        try:
            if locked:  # models of one robot come with and without fingers, or wrists
                with warnings.catch_warnings(action="ignore"):
                    there = load_robot(source, base=data.base, inertias="nearest").joint_names
                locked = {name: at for name, at in locked.items() if name in there}
            way: dict[str, Any] = {"base": data.base, "kept": data.kept, "inertias": "nearest"}
            if data.gravity is not None:
                way["gravity"] = tuple(data.gravity)
            tree = load_robot(source, locked=locked, components=self.components, **way)
            own = self._with_own(tree)
            joints: list[Any] = [*tree.joints]
            for name, limits in data.limits.items():
                if name not in locked:
                    joints[tree.joint(name)] = replace(joints[tree.joint(name)], limits=tuple(limits))
            I = tree.I.copy()
            for load in () if self.model is not None and is_identified(source) else data.loads:
                frame = tree.frame(load.link)
                xx, yy, zz, xy, xz, yz = load.inertia
                about_com = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
                X = frame.X.motion_matrix()
                I[frame.link] += X.T @ spatial_inertia(load.mass, np.array(load.com), about_com) @ X
            numbered = [name for name in data.order if name]
            if numbered and not {*numbered} & {*tree.joint_names}:
                raise UnknownModelNameError("joint", numbered[0], tree.joint_names, tree.name)
        except (UnknownModelNameError, InvalidConfigError) as error:
            raise self._another_robot(error) from None
        except ModelError as error:
            raise ModelError(f"{error} {self._own_model}") from None
        return tree.replace(joints=tuple(joints), I=I, components=own)

    def _with_own(self, tree: KinematicTree) -> tuple[RobotComponent, ...]:
        """The components of the model and of the preset: at a joint one of each type, as the model that is given says.

        Those of the preset's own model are of its makers, and give way to the preset's. Joints that are locked have
        none.
        """
        if self.components is not None or not self.data.components:
            return tree.components
        own = tuple(_moving(components_of({"components": self.data.components}), self.data.locked))
        if self.model is None:
            return *_beside(own, tree.components, tree), *own
        return *tree.components, *_beside(tree.components, own, tree)

    def of(self, what: str | Iterable[str] | None = None) -> Preset:
        """The preset of an estimate, see `estimand`: with the model and the components that it brings, if it does.

        What was identified together stays together, whatever `model` is given, unless `components` are as well.
        """
        wanted = self.estimand(what)
        if self.components is not None:
            return self
        own = {name: value for name in ("robot", "components") if (value := getattr(wanted, name)) is not None}
        model = None if wanted.robot is not None else self.model
        return replace(self, data=self.data.model_copy(update=own), model=model) if own else self

    def surfaces(self, what: str | Iterable[str] | None = None) -> dict[str, Surface] | None:
        """The surfaces of its links, see `nd.tools.surfaces`, where the sensors of an estimate see touches; or None."""
        own = self.of(what)
        return surfaces(own.source, own.tree) if self.sensors(what).has_touches else None

    def fitted(self, still: Iterable[str], unread: Collection[str] = (), **more: Any) -> Preset:
        """The preset for a log that says nothing of some joints, which are locked at zero, or of their torques.

        Args:
            still: these joints.
            unread: joints of whose torques alone it says nothing.
            more: what else of its data is otherwise.
        """
        locked = {**dict.fromkeys(still, 0.0), **self.data.locked}
        fitted = self
        if self.is_bare:
            fitted = _of_model(self.data.robot[0], locked, self.data.gravity, unread, self.components)
        logs = {name: self._numbered(log, [*still]) if still else log for name, log in fitted.data.logs.items()}
        return replace(fitted, data=fitted.data.model_copy(update={"locked": locked, "logs": logs, **more}))

    def _numbered(self, log: VendorLog, still: Sequence[str]) -> VendorLog:
        """A mapping of its logs where joints stand still: those that move keep their numbers and factors."""
        moving = [name for name, j in zip(self.tree.joint_names, self.tree.joints, strict=True) if j.nv == 1]
        joints = ["" if name in still else name for name in moving]
        entries = [
            each.model_copy(update={"joints": joints}) if "{joint}" in each.of and _counts(each) else each
            for each in log.columns
        ]
        return log.model_copy(update={"columns": entries})

    @property
    def walks(self) -> bool:
        """Whether it recognises contacts."""
        return any(wanted.contacts for wanted in self.data.estimates.values())

    @property
    def is_bare(self) -> bool:
        """Whether the model is all that is known of the robot."""
        return self.model == self.data.robot[0]

    @property
    def live(self) -> VendorLog | None:
        """The mapping of its vendor's live topics; None where joint states go by the names of joints."""
        return next((kind for kind in self.data.logs.values() if _is_live(kind)), None)

    @property
    def _robots(self) -> str:
        return " or ".join(self.data.robot)

    @property
    def _own_model(self) -> str:
        if self.is_bare:
            return ""
        if self.model is not None:
            return f"Without --model, in Python model=, it is {self._robots}."
        return f"A model of your own: --model ROBOT.urdf, in Python nd.preset('{self.name}', model='ROBOT.urdf')."

    def _another_robot(self, error: Exception) -> ModelError:
        return ModelError(
            f"{self.source} is not the robot of preset '{self.name}', or calls its parts otherwise: {error} "
            f"The preset goes by the names of {self._robots}. For other names copy it ({self.path}), change them, and "
            "name the copy in its place."
        )

    def runs(self, what: str | Iterable[str] | None = None) -> list[list[str]]:
        """The names of what is to be estimated, those together that differ in outputs only: one run has them all.

        The first of the preset when None.

        Raises:
            UnknownPresetError: the preset has no such estimate.
        """
        if what is not None and not isinstance(what, Iterable):
            raise WrongKindError("an estimate of a preset", "its name", what, "what='contacts'")
        names = [*self.data.estimates][:1] if what is None else [what] if isinstance(what, str) else [*what]
        found: list[list[str]] = []
        for name in dict.fromkeys(part.strip() for own in names for part in own.split(",")):
            if name not in self.data.estimates:
                raise UnknownPresetError(f"estimate of preset '{self.name}'", name, self.data.estimates)
            alike = next((run for run in found if self._settings(run[0]) == self._settings(name)), None)
            if alike is None:
                found.append([name])
            else:
                alike.append(name)
        return found

    def _settings(self, name: str) -> Estimand:
        """An estimate, but for what it is and its outputs."""
        return self.data.estimates[name].model_copy(update={"about": "", "outputs": []})

    def estimand(self, what: str | Iterable[str] | None = None) -> Estimand:
        """What is to be estimated, by its name or several, which may differ in their outputs only; the first when None.

        Raises:
            UnknownPresetError: the preset has no such estimate.
            InputError: they are of different sensors, or have other settings.
        """
        names, *others = self.runs(what)
        if others:
            raise InputError(
                f"preset '{self.name}' estimates {names[0]} and {', '.join(chain(*others))} by different sensors, or "
                "with other settings, and a run has one plan: run each by itself, as `nori-dyn estimate` does."
            )
        outputs = [output for name in names for output in self.data.estimates[name].outputs]
        return self.data.estimates[names[0]].model_copy(update={"outputs": [*dict.fromkeys(outputs)]})

    def sensors(self, what: str | Iterable[str] | None = None) -> SensorSet:
        """The sensors of an estimate; see `estimand`."""
        given = self.estimand(what).sensors
        return (
            load_sensors(given, self.source, self.of(what).tree)
            if isinstance(given, str)
            else SensorSet.from_dict(given)
        )

    def record(self, what: str | Iterable[str] | None = None) -> SampleRecord:
        """The numbers of a sample of its logs, for an estimate; see `estimand`. Nothing is planned.

        Raises:
            ModelError: as `plan`.
        """
        try:
            return SampleRecord.of_sensors(self.of(what).tree, self.sensors(what), not self.estimand(what).contacts)
        except SensorConfigError as error:
            raise self._another_robot(error) from None

    def plan(self, what: str | Iterable[str] | None = None) -> Plan:
        """The plan of an estimate; see `estimand`.

        Raises:
            ModelError: as `tree`; or the model lacks a link or joint that the preset names.
            PlanError, SingularSystemError: as `nd.plan`.
        """
        try:
            return make_plan(self.of(what).tree, self.sensors(what), self.estimand(what).outputs)
        except SensorConfigError as error:
            raise self._another_robot(error) from None


def _moving(components: Iterable[RobotComponent], locked: Collection[str]) -> Iterator[RobotComponent]:
    """Yield components, without joints that they name and that are locked: on these none can act."""
    for one in components:
        selected = one.joints if isinstance(one, OnJoints) else None
        named = [selected] if isinstance(selected, str) else selected
        left = [name for name in named if name not in locked] if isinstance(named, list) else named
        if left == named:
            yield one
        elif left and isinstance(one, OnJoints):
            yield one.with_coefficients(left, {})


def _beside(
    first: Sequence[RobotComponent], others: Sequence[RobotComponent], tree: KinematicTree
) -> Iterator[RobotComponent]:
    """Yield components, but not at joints where the first have some of their type."""
    taken = {(one.type, i) for one in first if isinstance(one, OnJoints) for i in one.joints_on(tree)}
    for one in others:
        on = one.joints_on(tree) if isinstance(one, OnJoints) else []
        left = [tree.joint_names[i] for i in on if (one.type, i) not in taken]
        if not isinstance(one, OnJoints) or len(left) == len(on):
            yield one
        elif left:
            yield one.with_coefficients(left, {})


def _is_live(mapping: LogMapping) -> bool:
    """Whether its columns are those of topics, such as /lowstate.tick."""
    sources = [each.source for each in mapping.columns if each.source is not None]
    names = [name for source in sources for name in ([source] if isinstance(source, str) else source)]
    return bool(names) and all(name.startswith("/") for name in names)


def shipped_presets() -> dict[str, Path]:
    """Presets that come with the package, by name."""
    return shipped_files("presets")


def is_preset(robot: str) -> bool:
    """Whether the name of a robot is that of a preset, shipped or a file, rather than of a model."""
    return robot in shipped_presets() or robot.endswith((".yaml", ".yml"))


def _counts(entry: MappingEntry) -> bool:
    """Whether an entry goes by the numbers of joints, and does not say which these are."""
    given = entry.source, entry.value, entry.scale, entry.offset
    return entry.joints is None and ("{k}" in str(entry.source) or any(isinstance(each, list) for each in given))


def preset(
    name: str | os.PathLike[str],
    model: str | os.PathLike[str] | None = None,
    gravity: Sequence[float] | None = None,
    components: bool | str | os.PathLike[str] | None = None,
) -> Preset:
    """A robot that is ready to use: a shipped preset by name, a YAML file, or any robot that `load_robot` knows.

    `nori-dyn robots` lists the shipped ones with what each can estimate, and the schema of a file is printed by
    `nori-dyn schema --presets`. Of a robot without a preset its model is all that is known: one that has feet walks on
    them, with an IMU; the base of another is fixed, its joints are read.

    Args:
        name: the name, such as "panda" or "go2"; or the file, of a preset or of a robot.
        model: the URDF or MJCF file of the robot, or the name of one, in place of the preset's.
        gravity: in the axes of the base [m/s^2], (9.81, 0, 0) of a robot on a wall; that of the preset when None.
        components: motors and friction in place of those of the preset, such as the YAML file that `nori-dyn identify`
            writes; True for those of the model's file alone, False for none. When None, those of the preset, but where
            `model` has its own of a type at a joint, as identified ones have, these.

    Raises:
        UnknownPresetError: neither a shipped preset, nor a file, nor a robot that is known by name.
        ModelError: the robot's model cannot be read.
        FileFormatError: the file cannot be read.
        PresetError: it is not YAML, or does not follow the schema: names the file and line.
        WrongKindError: neither text nor a path.

    Example:
        >>> nd.preset("panda")
        Preset('panda', torques, contacts)
    """
    if not isinstance(name, str | os.PathLike):
        raise WrongKindError("nd.preset", "the name of a preset, or a YAML file", name, "nd.preset('panda')")
    given = os.fspath(name)
    components = components if components is None or isinstance(components, bool) else file_name(components)
    model = None if model is None else file_name(model)
    gravity = None if gravity is None else np.ravel(gravity).tolist()
    if not is_preset(given):
        if given.lower().endswith(MODELS) or given in robots():
            return _of_model(model or given, gravity=gravity, components=components)
        if not os.path.exists(given):
            known = (*shipped_presets(), *robots())
            raise UnknownPresetError("robot (no preset, no robot that is known by name, no file)", given, known)
    file = read_yaml(shipped_presets().get(given, given), PresetError)
    try:
        data = PresetData.model_validate(file.data)
    except ValidationError as error:
        found = config_error(error, file.data, SCHEMA)
        raise PresetError(f"{file.path}:{file.line(found.path)}: {found}") from None
    more = {"estimates": with_fewer(data.estimates)} | ({} if gravity is None else {"gravity": gravity})
    data = data.model_copy(update=more)
    return Preset(data, Path(file.path), model, components)


def _of_model(
    model: str,
    locked: Mapping[str, float] = MappingProxyType({}),
    gravity: Sequence[float] | None = None,
    unread: Collection[str] = (),
    components: bool | str | None = None,
) -> Preset:
    """The preset of a robot of which the model is all that is known.

    Raises:
        ModelError: it cannot be read.
    """
    with warnings.catch_warnings(action="ignore"):  # `Preset.tree` says it
        tree = load_robot(model, locked=locked, inertias="nearest")
        floats = tree.joints[0].nq == 7  # as models of MuJoCo do by themselves
        legs = None
        with suppress(ModelError):  # of bases that other joints carry
            legs = legs_of(tree if floats else load_robot(model, base="floating", locked=locked, inertias="nearest"))
    tips = [name for i, name in enumerate(tree.names) if i not in tree.parents]
    read = [joint for joint in tree.joint_names if joint not in unread]
    about, left = "torques that the motion asks for", ", and what is left of those that are read"
    arm = Estimand(about=about, sensors=_of_motion(tree, read), outputs=["tau"])
    if read:
        arm = arm.model_copy(update={"about": about + left, "outputs": ["tau", "offset"]})
    touch = Estimand(about="wrench on the tool", sensors="touch", outputs=[f"fx:{tips[0]}"])
    has_tool = not unread and len(tips) == 1 and tree.nv >= 6
    of_arm = {"torques": arm} | ({"contacts": touch} if has_tool else {})
    asked = BASE if len(tips) > 1 else ""
    data = PresetData(
        name=Path(model).stem,
        about=f"{tree.name}, which has no preset: its model is all that is known",
        sources="Nothing is known of its sensors: sigmas are those of shipped sets, and of presets of legged robots.",
        robot=[model],
        base="fixed" if legs is None or floats else "floating",
        gravity=None if gravity is None else [*gravity],
        locked=dict(locked),
        doubts={"": question} if (question := asked if legs is None else legs.question) else {},
        estimates=of_arm if legs is None else with_fewer(estimates_of(legs)),
    )
    return Preset(data, Path(model), model, components)


def _of_motion(tree: KinematicTree, read: Collection[str]) -> str | dict[str, Any]:
    """Sensors of an arm that moves, and of the torques of those of its joints that are read.

    Where loops and couplings tie joints together, readings of their accelerations need not agree. Of torques there,
    which the motion tells in sums only, the estimate is the nearest to those that are read, and to zero.
    """
    unread = [joint for joint in tree.joint_names if joint not in read]
    if not tree.closing_parts and not (read and unread):
        return "joint_torques" if read else "inverse_dynamics"
    tied, torque = {"sigma": 1.0} if tree.closing_parts else {}, {"type": "joint_torque", "sigma": 1.0}
    rows = [{"type": "joint_acceleration", "joints": "all", **tied}]
    rows += [{**torque, "joints": [*read], "offset": {"sigma": 1e3}}] if read else []
    rows += [{**torque, "joints": unread, "value": 0, "sigma": 1e3}] if tied and unread else []
    return {"name": "joint_torques", "measurements": [*rows, {"type": "external_wrench", "links": "all", "value": 0}]}


def known_presets() -> Mapping[str, Preset]:
    """The shipped presets, by name."""
    return {name: preset(name) for name in shipped_presets()}

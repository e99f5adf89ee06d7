"""An MJCF model compiled by MuJoCo: names and frames of its elements, and its sensors.

Those that read forces, accelerations and angular velocities give rows; others have a name.

Source: MuJoCo, XML reference, "sensor"; the signs are those of its code, as
tests/unit/descriptions/test_model_sensors.py shows.
"""

from __future__ import annotations

import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.component_files import moving_joints
from nori_dyn.descriptions.model_sensors import OF_BASE, ModelSensor
from nori_dyn.descriptions.urdf_document import LARGEST
from nori_dyn.errors import FileFormatError, MissingExtraError, ModelError, NoriWarning
from nori_dyn.interop.conventions import scalar_last
from nori_dyn.io.xml_file import read_xml
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.joints import quaternion_rotation
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from nori_dyn.typing import Floats

NUMBERS = (
    *("body_mass", "body_ipos", "body_iquat", "body_inertia", "body_pos", "body_quat"),
    *("jnt_axis", "jnt_pos", "qpos0", "site_pos", "site_quat"),
    *("dof_armature", "dof_damping", "dof_frictionloss", "jnt_stiffness", "qpos_spring"),
    *("eq_data", "wrap_prm", "tendon_stiffness", "tendon_damping", "tendon_lengthspring"),
)
"""What the equations are made of, in MuJoCo's names."""


@dataclass(frozen=True, eq=False)
class MjcfModel:
    """An MJCF model, compiled once: tree, sensors and components are read from it.

    Attributes:
        name: its name, or that of the file.
        mujoco: the module.
        model: what it compiles of the file.
    """

    name: str
    mujoco: Any
    model: Any

    def named(self, kind: str, number: int) -> str:
        """Name a body, joint, site, tendon or equality: by its number, as in body3, where the file does not."""
        return self.given_name(kind, number) or f"{kind}{number}"

    def given_name(self, kind: str, number: int) -> str:
        """The name that the file gives to a body, joint, site, or the like; empty without one."""
        return self.mujoco.mj_id2name(self.model, getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}"), number) or ""

    @cached_property
    def links(self) -> tuple[str, ...]:
        """The name of each body's link: the body's, or body3 where it has none."""
        return tuple(self.named("body", i) for i in range(self.model.nbody))

    def site_frame(self, site: int) -> str:
        """The frame of a named site: SITE/site where a body has the name of the site."""
        name = self.given_name("site", site)
        return f"{name}/site" if name in self.links else name


def _scene(path: str | os.PathLike[str]) -> str:
    """A sentence that names a file beside another that includes it, as a scene does a robot; "" where there is none."""
    own = Path(path)
    for other in sorted(own.parent.glob("*.xml")):
        if other.is_file() and f'file="{own.name}"' in other.read_text(encoding="utf-8", errors="replace"):
            return f" It is part of {other.name}: give that one."
    return ""


def compiled(path: str | os.PathLike[str]) -> MjcfModel:
    """Compile an MJCF file.

    Raises:
        FileFormatError: not a readable file, or not MJCF.
        ModelError: MuJoCo refuses the model.
        MissingExtraError: mujoco is not installed.
    """
    root = read_xml(path)
    if root.tag != "mujoco":
        hint = " It is a URDF: use load_urdf." if root.tag == "robot" else ""
        raise FileFormatError(f"{path} is not MJCF: its root element is <{root.tag}> instead of <mujoco>.{hint}")
    try:
        import mujoco
    except ImportError:
        raise MissingExtraError("reading an MJCF model", "mjcf") from None
    raised: list[str] = []
    before = mujoco.get_mju_user_warning()
    mujoco.set_mju_user_warning(raised.append)  # left alone, MuJoCo writes a log file where it runs
    try:
        model = mujoco.MjModel.from_xml_path(os.fspath(path))
    except (ValueError, mujoco.FatalError, mujoco.UnexpectedError) as error:
        raise ModelError(f"{path}: MuJoCo refuses it: {' '.join(str(error).split())}{_scene(path)}") from None
    finally:
        mujoco.set_mju_user_warning(before)
    for message in raised:
        warnings.warn(f"{path}: MuJoCo: {' '.join(message.split())}", NoriWarning, stacklevel=3)
    _check_numbers(path, model)
    return MjcfModel(root.get("model") or os.path.splitext(os.path.basename(path))[0], mujoco, model)


def _check_numbers(path: str | os.PathLike[str], model: Any) -> None:
    """Check that all numbers that the dynamics depend on are finite, and not so large that products overflow.

    Raises:
        ModelError: one is not.
    """
    for name in NUMBERS:
        values = np.asarray(getattr(model, name))
        wrong = ~(np.abs(values) <= LARGEST)
        if wrong.any():
            raise ModelError(
                f"{path}: its {name} is {values[wrong][0]:g} at one place: it must be finite and below 1e50."
            )


ROOT = 0
"""MuJoCo's number of the world body."""


@dataclass(frozen=True, slots=True)
class TendonPath:
    """Path of a tendon.

    Attributes:
        fields: `joints`, or `through` and `divisor`, as a `Tendon` has them.
        still: the length over joints that are locked [m].
        moves: whether its length changes.
    """

    fields: Mapping[str, Any]
    still: float = 0.0
    moves: bool = True


@dataclass
class MjcfPlaces:
    """Frames of the elements of a model on its tree.

    Attributes:
        mjcf: the model.
        tree: the bare rigid bodies.
        anchors: where the link frame of each body is, in its body frame (3,) [m].
        locked: positions of locked joints [rad or m].
        cleaner: removes rounding.
        frames: frames that were made here, and that the tree does not have.
    """

    mjcf: MjcfModel
    tree: KinematicTree
    anchors: Mapping[int, Floats]
    locked: Mapping[str, float]
    cleaner: Cleaner
    frames: dict[str, Frame] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.mujoco, self.model, self.name = self.mjcf.mujoco, self.mjcf.model, self.mjcf.named

    def is_disabled(self, *features: str) -> bool:
        """Whether the model disables a feature, by MuJoCo's names; versions differ in which there are."""
        flags = (getattr(self.mujoco.mjtDisableBit, f"mjDSBL_{feature.upper()}", 0) for feature in features)
        return any(self.model.opt.disableflags & int(flag) for flag in flags)

    @cached_property
    def moving(self) -> frozenset[str]:
        """The names of joints that move."""
        return moving_joints(self.tree)

    def is_mocap(self, body: int) -> bool:
        """Whether a body is one of MuJoCo's mocap bodies, which are moved from outside."""
        return bool(self.model.body_mocapid[self.model.body_rootid[body]] >= 0)

    def on_body(self, body: int, position: Floats, quaternion: Floats | None = None) -> Frame:
        """Frame at a position (3,) [m] with a quaternion (w, x, y, z), in a body's own frame."""
        R = np.eye(3) if quaternion is None else rotation(quaternion)
        E = np.ascontiguousarray(self.cleaner.rotation(R).T)
        if body in self.anchors:
            on = self.tree.frame(self.name("body", body))
            X = Transform(E, position - self.anchors[body]) @ on.X
            return Frame(on.link, Transform(X.E, self.cleaner.position(X.r)))
        data = self._at_start
        X = Transform(E, position) @ Transform(data.xmat[body].reshape(3, 3).T.copy(), data.xpos[body].copy())
        return Frame(WORLD, X)

    @cached_property
    def _at_start(self) -> Any:
        data = self.mujoco.MjData(self.model)
        self.mujoco.mj_kinematics(self.model, data)
        return data

    def site(self, number: int) -> str:
        """Name of the frame of a site, made if the site has none."""
        m = self.model
        if self.mjcf.given_name("site", number):
            name = self.mjcf.site_frame(number)
            if name in self.tree.frames or name in self.tree.names:
                return name
        name = self.name("site", number)
        self.frames[name] = self.on_body(int(m.site_bodyid[number]), np.array(m.site_pos[number]), m.site_quat[number])
        return name

    def frame(self, name: str) -> Frame:
        """A frame of the tree, or one that was made here."""
        return self.frames[name] if name in self.frames else self.tree.frame(name)

    def tendon(self, number: int) -> TendonPath | str:
        """What a tendon runs over, or why no `Tendon` describes it."""
        m, wraps = self.model, self.mujoco.mjtWrap
        factors = self.factors(number)
        if factors is not None:
            return self.sum_of_joints(factors)
        at = self._wraps(number)
        kinds = [int(m.wrap_type[k]) for k in at]
        if {int(wraps.mjWRAP_SPHERE), int(wraps.mjWRAP_CYLINDER)} & {*kinds}:
            return "it wraps around a geom"
        divisor = 1.0
        pulley = int(wraps.mjWRAP_PULLEY)
        if kinds[0] == pulley:
            divisor, at = float(m.wrap_prm[at[0]]), at[1:]
        if any(m.wrap_type[k] == pulley for k in at):
            return "it branches at a pulley"
        if any(self.is_mocap(int(m.site_bodyid[m.wrap_objid[k]])) for k in at):
            return "it runs over a mocap body"
        through = [self.site(int(m.wrap_objid[k])) for k in at]
        fields = {"through": through, **({} if divisor == 1.0 else {"divisor": divisor})}
        return TendonPath(fields, moves=len({self.frame(name).link for name in through}) > 1)

    def _wraps(self, tendon: int) -> range:
        first = int(self.model.tendon_adr[tendon])
        return range(first, first + int(self.model.tendon_num[tendon]))

    def factors(self, tendon: int) -> dict[int, float] | None:
        """Factors of the joints, by number, whose sum a tendon is; None if it is none."""
        at = self._wraps(tendon)
        if any(self.model.wrap_type[k] != int(self.mujoco.mjtWrap.mjWRAP_JOINT) for k in at):
            return None
        return {int(self.model.wrap_objid[k]): float(self.model.wrap_prm[k]) for k in at}

    def sum_of_joints(self, factors: Mapping[int, float]) -> TendonPath:
        """Weighted sum of joints by number; locked ones add a constant."""
        by_name = {self.name("joint", number): factor for number, factor in factors.items() if factor}
        joints = {name: factor for name, factor in by_name.items() if name in self.moving}
        still = sum(factor * self.locked.get(name, 0.0) for name, factor in by_name.items() if name not in joints)
        return TendonPath({"joints": joints}, still, bool(joints))


def component_name(name: str) -> str:
    """A name that a component can have."""
    return re.sub(r"[^\w./-]", "_", name)


def rotation(quaternion: Floats) -> Floats:
    """Rotation R (3, 3), from body to parent coordinates, of MuJoCo's quaternion (w, x, y, z)."""
    return np.asarray(quaternion_rotation(scalar_last(np.asarray(quaternion) / np.linalg.norm(quaternion))).T)


THROUGH_STATE = ("jointpos", "jointvel", "ballquat", "ballangvel", "velocimeter")
"""Sensors of what is given as q and qd."""

AT_SITES: dict[str, dict[str, Any]] = {
    "accelerometer": {"type": "accelerometer"},
    "gyro": {"type": "gyroscope"},
    "force": {"type": "force_torque", "components": ["fx", "fy", "fz"], "measures": "parent_on_child"},
    "torque": {"type": "force_torque", "components": ["mx", "my", "mz"], "measures": "parent_on_child"},
}
"""What reads the same as a sensor at a site."""


def mjcf_sensors(mjcf: MjcfModel) -> tuple[ModelSensor, ...]:
    """The sensors of an MJCF model, in the order of the file; `noise`, where it is given, is their sigma.

    A force or torque sensor reads the wrench that the body of its site gets from the body that carries it: on a body
    without joints, in a weld that must be kept (`load_mjcf(path, kept="sensors")`).
    """
    return tuple(_sensor(mjcf, k) for k in range(mjcf.model.nsensor))


def sensor_bodies(mjcf: MjcfModel) -> tuple[str, ...]:
    """The bodies without joints whose weld carries a force or torque sensor."""
    model, found = mjcf.model, []
    for k in range(model.nsensor):
        if _kind(mjcf, k) in ("force", "torque"):
            body = int(model.site_bodyid[model.sensor_objid[k]])
            if body and not model.body_jntnum[body]:
                found.append(mjcf.links[body])
    return tuple(dict.fromkeys(found))


def _kind(mjcf: MjcfModel, k: int) -> str:
    kind = str(mjcf.mujoco.mjtSensor(int(mjcf.model.sensor_type[k])).name).removeprefix("mjSENS_").lower()
    return {"jointactfrc": "jointactuatorfrc"}.get(kind, kind)


def _sensor(mjcf: MjcfModel, k: int) -> ModelSensor:
    mujoco, model, objects = mjcf.mujoco, mjcf.model, mjcf.mujoco.mjtObj
    name = mjcf.named("sensor", k)
    kind, number = _kind(mjcf, k), int(model.sensor_objid[k])
    on = "" if number < 0 else mujoco.mj_id2name(model, objects(int(model.sensor_objtype[k])), number) or ""
    if kind in THROUGH_STATE:
        return ModelSensor(name, kind, on, note="through q and qd")
    if kind == "jointactuatorfrc":
        joint = mjcf.named("joint", number)
        entry: dict[str, Any] = {"type": "joint_torque", "joints": joint}
    elif kind in AT_SITES:
        body, frame = int(model.site_bodyid[number]), mjcf.site_frame(number)
        entry = dict(AT_SITES[kind])
        if body == 0:
            return ModelSensor(name, kind, on, note="it is on the world")
        if kind in ("accelerometer", "gyro"):
            entry["links"] = frame
        else:
            last = int(model.body_jntadr[body] + model.body_jntnum[body]) - 1
            joint = mjcf.named("joint", last) if model.body_jntnum[body] else f"{mjcf.links[body]}/fixed"
            entry |= {"joints": joint, "frame": frame}
    else:
        return ModelSensor(name, kind, on, note="it gives no row")
    entry["name"] = name
    noise = float(model.sensor_noise[k]) if hasattr(model, "sensor_noise") else 0.0
    if noise > 0:
        entry["sigma"] = noise
    return ModelSensor(name, kind, on, entry, OF_BASE if kind == "gyro" else "", entry.get("links"))

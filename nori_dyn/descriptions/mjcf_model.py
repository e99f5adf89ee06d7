"""An MJCF model compiled by MuJoCo: names and frames of its elements, and its sensors.

Those that read forces, accelerations and angular velocities give rows; others have a name.

Source: MuJoCo, XML reference, "sensor"; the signs are those of its code, as
tests/unit/descriptions/test_model_sensors.py shows.
"""

from __future__ import annotations

import os
import re
import warnings
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.descriptions.model_sensors import OF_BASE, ModelSensor
from nori_dyn.descriptions.urdf_document import LARGEST
from nori_dyn.errors import FileFormatError, ModelError, NoriWarning
from nori_dyn.interop.conventions import scalar_last
from nori_dyn.io.extras import needed
from nori_dyn.io.xml_file import read_xml
from nori_dyn.model.joints import quaternion_rotation
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
        """Name a body, joint, site, tendon or equality: by its number, as in body3, where the file does not.

        Where the file has that name elsewhere: as in body3_.
        """
        name = self.given_name(kind, number)
        if name:
            return name
        name = f"{kind}{number}"
        while self.mujoco.mj_name2id(self.model, self._object(kind), name) >= 0:
            name += "_"
        return name

    def given_name(self, kind: str, number: int) -> str:
        """The name that the file gives to a body, joint, site, or the like; empty without one."""
        return self.mujoco.mj_id2name(self.model, self._object(kind), number) or ""

    def _object(self, kind: str) -> Any:
        return getattr(self.mujoco.mjtObj, f"mjOBJ_{kind.upper()}")

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
    mujoco = needed("reading an MJCF model", "mjcf", "mujoco")
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

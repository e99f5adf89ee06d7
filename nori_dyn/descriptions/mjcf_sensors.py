"""The sensors of an MJCF model: those that read forces, accelerations and angular velocities as rows, others by name.

Source: MuJoCo, XML reference, "sensor"; the signs are those of its code, as
tests/unit/descriptions/test_model_sensors.py shows.
"""

from __future__ import annotations

from typing import Any

from nori_dyn.descriptions.mjcf_model import MjcfModel
from nori_dyn.descriptions.model_sensors import OF_BASE, ModelSensor

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

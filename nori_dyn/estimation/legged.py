"""What is estimated of a legged robot of which its model is all that is known, and of others with fewer sensors."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from nori_dyn.descriptions.legs import Legs
from nori_dyn.estimation.preset_data import Estimand

INERTIAL = "imu", "gyroscope", "accelerometer"
"""Readings of inertial units."""

UNREAD = 100.0
"""By how many of their deviations torques may be off zero where none are read."""

MOTION, POSE = "motion", "pose"
"""What is estimated of a legged robot without torques; and without an IMU, where the pose of its base is read."""

OF_BASE, OF_JOINTS, OF_FEET, OF_TURNING, OF_SPEEDS = 2.0, 20.0, 5.0, 50.0, 0.02
"""Standard deviations where a pose is read: of accelerations of the base and of joints that a log lacks, of those of
standing feet [m/s^2] and of soles that roll [rad/s^2], and of velocities [m/s, rad/s]."""


def estimates_of(legs: Legs) -> dict[str, Estimand]:
    """Contact forces, and the base, from encoders, an IMU and torques, with contacts that are recognised."""
    what, walks = "attitude and velocity of the base", legs.sensors()
    return {
        "contacts": Estimand(
            about=f"forces on the feet, which feet stand, {what}, from encoders, IMU and joint torques",
            contacts="recognise",
            sensors=walks,
            outputs=[f"fx:{foot}" for foot in legs.feet],
        ),
        "base": Estimand(about=f"{what}, and joint torques", contacts="recognise", sensors=walks, outputs=["tau"]),
    }


def with_fewer(estimates: Mapping[str, Estimand]) -> dict[str, Estimand]:
    """Estimates with those that need less, where a base is state and contacts are recognised by torques.

    Without torques, `motion`, a robot's own joints may give any; which feet stand is in the log. Without an IMU,
    `pose`, a log holds the pose of the base, its velocity or not, and accelerations are made of these.
    """
    for wanted in estimates.values():
        known = wanted.sensors
        if wanted.contacts is None or isinstance(known, str) or not _has_base(known):
            continue
        base = "attitude and velocity of the base, from encoders, IMU and which feet stand, without torques"
        forces = "forces on the feet, which feet stand, from encoders, torques and the pose of the base"
        motion = Estimand(about=base, sensors=_without_torques(known), outputs=["qdd"])
        pose = wanted.model_copy(update={"about": forces, "sensors": _by_pose(known)})
        return {**estimates, MOTION: motion, POSE: pose}
    return dict(estimates)


def _without_torques(known: Mapping[str, Any]) -> dict[str, Any]:
    free = [
        row | {"value": 0, "sigma": UNREAD * row["sigma"]} if _reads_torques(row) else row
        for row in known["measurements"]
    ]
    return {**known, "name": f"{known['name']}_{MOTION}", "measurements": free}


def _by_pose(known: Mapping[str, Any]) -> dict[str, Any]:
    """Sensors whose accelerations are read, in place of an IMU and of a base that is state."""
    rest = [row for row in known["measurements"] if row["type"] not in (*INERTIAL, "joint_acceleration")]
    read = {"type": "joint_acceleration"}
    accelerations = [
        read | {"joints": {"except": "actuated"}, "sigma": OF_BASE},
        read | {"joints": "actuated", "sigma": OF_JOINTS},
    ]
    contacts = {
        foot: {**states, "closed": [_held(row) if row["type"] == "zero_velocity" else row for row in states["closed"]]}
        for foot, states in known["contacts"].items()
    }
    has_offsets = any("offset" in row for row in rest)
    memory = {
        name: own
        for name, own in known["memory"].items()
        if own["of"] != "base" and (own["of"] != "offset" or has_offsets)
    }
    speeds = {"speeds": {"of": "qd", "rate": "qdd", "noise": OF_SPEEDS}}
    name = f"{known['name']}_{POSE}"
    return {
        **known,
        "name": name,
        "measurements": [*accelerations, *rest],
        "contacts": contacts,
        "memory": memory | speeds,
    }


def _held(row: Mapping[str, Any]) -> dict[str, Any]:
    """A foot without a velocity, as one without an acceleration."""
    components = [part.replace("v", "a") for part in row.get("components", ["vx", "vy", "vz"])]
    sigma = [OF_FEET if part[0] == "a" else OF_TURNING for part in components]
    return {**row, "type": "rigid_contact", "components": components, "sigma": sigma}


def _has_base(sensors: Mapping[str, Any]) -> bool:
    return any(own.get("of") == "base" for own in sensors.get("memory", {}).values())


def _reads_torques(row: Mapping[str, Any]) -> bool:
    return row["type"] == "joint_torque" and "value" not in row and "sigma" in row

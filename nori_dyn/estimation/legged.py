"""Sensors of a legged robot, as its model tells: feet by the names of frames at the ends of limbs, and the IMU."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from nori_dyn.estimation.preset_data import Estimand
from nori_dyn.model.limbs import limb_to
from nori_dyn.model.tree import KinematicTree

FOOT, ANKLE, IMU = re.compile("(?i)sole|foot"), re.compile("(?i)ankle"), re.compile("(?i)imu")
"""What frames of soles and feet, links that end in one, and inertial units are called."""

POINT = re.compile("(?i)foot|toe|tip|contact")
"""What points of a foot are called that is named itself."""

FEWEST_OF_A_SOLE = 5
"""Freedoms of a limb from which on it can place a flat sole; others stand on points."""

FEWEST_OF_A_POINT, FEWEST_OF_A_WRENCH = 3, 6
"""Freedoms of a limb from which on its torques tell each force on a point, and each wrench on a sole."""

TORQUE = 0.007
"""Standard deviation of torques, by the robot's weight times the length of its legs."""


INERTIAL = "imu", "gyroscope", "accelerometer"
"""Readings of inertial units."""

UNREAD = 100.0
"""By how many of their deviations torques may be off zero where none are read."""

MOTION, POSE = "motion", "pose"
"""What is estimated of a legged robot without torques; and without an IMU, where the pose of its base is read."""

TURNING, SLIDING = 1.0, 0.1
"""Standard deviations of the velocity of soles that stand [rad/s, m/s]: they land on the heel and leave on the toe."""

OF_BASE, OF_JOINTS, OF_FEET, OF_TURNING, OF_SPEEDS = 2.0, 20.0, 5.0, 50.0, 0.02
"""Standard deviations where a pose is read: of accelerations of the base and of joints that a log lacks, of those of
standing feet [m/s^2] and of soles that roll [rad/s^2], and of velocities [m/s, rad/s]."""


@dataclass(frozen=True, slots=True)
class Legs:
    """Legs of a robot.

    Attributes:
        points, soles: the frames of the feet that are points, and flat.
        undetermined: those of them at limbs whose torques do not tell all of the force, or of the wrench.
        imu: the frame of the IMU; the link of the base where the model has none.
        torque: a likely standard deviation of torques [N m].
        weight: what the robot weighs [N].
    """

    points: tuple[str, ...]
    soles: tuple[str, ...]
    undetermined: tuple[str, ...]
    imu: str
    torque: float
    weight: float

    @property
    def feet(self) -> tuple[str, ...]:
        """The frames of all feet."""
        return self.points + self.soles

    @property
    def question(self) -> str:
        """What of it is to be confirmed."""
        kinds = (("points", self.points), ("flat soles", self.soles))
        stands = " and ".join(f"{kind} {', '.join(own)}" for kind, own in kinds if own)
        return (
            f"the robot is taken to walk on {stands}, with an IMU at {self.imu} and torques that are true to "
            f"{self.torque:g} N m? A preset of your own says otherwise (nori-dyn schema --presets)"
        )

    def estimates(self) -> dict[str, Estimand]:
        """Contact forces, and the base, from encoders, an IMU and torques, with contacts that are recognised."""
        what, walks = "attitude and velocity of the base", self.sensors()
        return {
            "contacts": Estimand(
                about=f"forces on the feet, which feet stand, {what}, from encoders, IMU and joint torques",
                contacts="recognise",
                sensors=walks,
                outputs=[f"fx:{foot}" for foot in self.feet],
            ),
            "base": Estimand(about=f"{what}, and joint torques", contacts="recognise", sensors=walks, outputs=["tau"]),
        }

    def sensors(self) -> dict[str, Any]:
        """The sensors, as a config says them."""
        gyroscope = {"sigma": 0.02, "offset": {"sigma": 0.05}}
        moments = {"type": "external_wrench", "links": [*self.points], "components": ["mx", "my", "mz"], "value": 0}
        return {
            "name": "legs",
            "measurements": [
                {"type": "imu", "links": self.imu, "gyroscope": gyroscope, "accelerometer": {"sigma": 0.3}},
                {"type": "joint_torque", "joints": "actuated", "sigma": self.torque},
                {"type": "joint_acceleration", "joints": "actuated", "value": 0, "sigma": 50},
                {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
                {"type": "external_wrench", "links": {"except": [*self.feet]}, "value": 0},
                *([moments] if self.points else []),
            ],
            "contacts": {foot: self._contact(foot) for foot in self.feet},
            "memory": {"base": {"of": "base"}, "bias": {"of": "offset", "walk": 0.0001}},
        }

    def _contact(self, foot: str) -> dict[str, Any]:
        force: dict[str, Any] = {"type": "external_wrench", "links": foot, "value": 0}
        stands: dict[str, Any] = {"type": "zero_velocity", "links": foot, "sigma": 0.02}
        if foot in self.soles:
            stands |= {"components": ["wx", "wy", "wz", "vx", "vy", "vz"], "sigma": [TURNING] * 3 + [SLIDING] * 3}
        else:
            force["components"] = ["fx", "fy", "fz"]
        spread = [force | {"sigma": self.weight}] if foot in self.undetermined else []
        return {"closed": [stands, *spread], "open": [force]}


def legs_of(tree: KinematicTree) -> Legs | None:
    """Legs of a robot on a floating base, by its model; None if it has fewer than two feet."""
    found: dict[str, int] = {}
    length = 0.0
    for tip in range(1, tree.n_links):
        if tip in tree.parents:
            continue
        frames = [name for name, frame in tree.frames.items() if frame.link == tip]
        named = [name for name in (*frames, tree.names[tip]) if FOOT.search(name)]
        ankle = [tree.names[tip]] if ANKLE.search(tree.names[tip]) else []
        if not (named or ankle):
            continue
        limb = limb_to(tree, tip)
        n = sum(tree.joints[i].nv for i in limb)
        if n < FEWEST_OF_A_SOLE:  # no point that the ground pushes is on the axis of the last joint
            points = (name for name in frames if POINT.search(name))
            named = [name for name in points if np.any(tree.frames[name].X.r)] or named
        foot = min(named or ankle, key=lambda name: ("sole" not in name.lower(), len(name)))
        found[foot] = n
        length = max(length, sum(float(np.linalg.norm(tree.X_tree[i].r)) for i in limb))
    if len(found) < 2:
        return None
    units = sorted(filter(IMU.search, tree.frames), key=lambda name: (tree.frames[name].link != 0, len(name)))
    weight = float(tree.I[:, 5, 5].sum()) * float(np.linalg.norm(tree.gravity))
    return Legs(
        tuple(foot for foot, n in found.items() if n < FEWEST_OF_A_SOLE),
        tuple(foot for foot, n in found.items() if n >= FEWEST_OF_A_SOLE),
        tuple(
            foot for foot, n in found.items() if n < (FEWEST_OF_A_POINT if n < FEWEST_OF_A_SOLE else FEWEST_OF_A_WRENCH)
        ),
        units[0] if units else tree.names[0],
        float(f"{TORQUE * weight * length:.1g}"),
        weight,
    )


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

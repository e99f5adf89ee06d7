"""Legs of a robot, as its model tells: feet by the names of frames at the ends of limbs, and the IMU; and sensors."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np

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

TURNING, SLIDING = 1.0, 0.1
"""Standard deviations of the velocity of soles that stand [rad/s, m/s]: they land on the heel and leave on the toe."""


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

    def sensors(self) -> dict[str, Any]:
        """The sensors, as a config says them."""
        gyroscope = {"sigma": 0.02, "offset": {"sigma": 0.05}}
        ground = self.ground(self.feet)
        return {
            "name": "legs",
            "measurements": [
                {"type": "imu", "links": self.imu, "gyroscope": gyroscope, "accelerometer": {"sigma": 0.3}},
                {"type": "joint_torque", "joints": "actuated", "sigma": self.torque},
                {"type": "joint_acceleration", "joints": "actuated", "value": 0, "sigma": 50},
                {"type": "joint_torque", "joints": {"except": "actuated"}, "value": 0},
                {"type": "external_wrench", "links": {"except": [*self.feet]}, "value": 0},
                *ground["measurements"],
            ],
            "contacts": {foot: own | {"closed": self._standing(foot)} for foot, own in ground["contacts"].items()},
            "memory": {"base": {"of": "base"}, "bias": {"of": "offset", "walk": 0.0001}},
        }

    def ground(self, feet: Collection[str]) -> dict[str, Any]:
        """What some feet feel of the ground, as a config says it: any wrench where they stand, of points any force."""
        points = [foot for foot in self.points if foot in feet]
        moments = {"type": "external_wrench", "links": points, "components": ["mx", "my", "mz"], "value": 0}
        return {
            "measurements": [moments] if points else [],
            "contacts": {foot: {"closed": [], "open": [self._unloaded(foot)]} for foot in feet},
        }

    def _unloaded(self, foot: str) -> dict[str, Any]:
        components = {} if foot in self.soles else {"components": ["fx", "fy", "fz"]}
        return {"type": "external_wrench", "links": foot, "value": 0, **components}

    def _standing(self, foot: str) -> list[dict[str, Any]]:
        stands: dict[str, Any] = {"type": "zero_velocity", "links": foot, "sigma": 0.02}
        if foot in self.soles:
            stands |= {"components": ["wx", "wy", "wz", "vx", "vy", "vz"], "sigma": [TURNING] * 3 + [SLIDING] * 3}
        spread = [self._unloaded(foot) | {"sigma": self.weight}] if foot in self.undetermined else []
        return [stands, *spread]


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

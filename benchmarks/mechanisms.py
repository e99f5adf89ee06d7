"""A robot with closed loops to measure on: a floating biped whose legs are built as Cassie's are."""

from __future__ import annotations

import numpy as np

from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.components.loop import Loop
from nori_dyn.model.joints import Free, Joint, Revolute
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from nori_dyn.typing import Floats

PELVIS = "pelvis"

X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)

LEG: dict[str, tuple[str, tuple[float, float, float], tuple[float, float, float]]] = {
    "hip_roll": (PELVIS, X, (0.02, 0.13, 0.0)),
    "hip_yaw": ("hip_roll", Z, (0.0, 0.0, -0.07)),
    "hip_pitch": ("hip_yaw", Y, (0.0, 0.0, -0.09)),
    "achilles_cross": ("hip_pitch", Y, (-0.03, 0.045, -0.02)),
    "achilles": ("achilles_cross", Z, (0.0, 0.0, 0.0)),
    "knee": ("hip_pitch", Y, (0.12, 0.0, -0.1)),
    "shin": ("knee", Y, (0.06, 0.0, -0.08)),
    "tarsus": ("shin", Y, (-0.25, 0.0, -0.35)),
    "heel": ("tarsus", Y, (-0.03, 0.01, 0.01)),
    "crank": ("tarsus", Y, (0.05, 0.02, -0.04)),
    "plantar_cross": ("crank", Y, (0.05, 0.0, -0.01)),
    "plantar": ("plantar_cross", Z, (0.0, 0.0, 0.0)),
    "foot": ("tarsus", Y, (0.3, 0.0, -0.3)),
}
"""The links of a left leg, depth first: parent, axis of its joint, and where that is on the parent [m]."""

LOOPS = {"achilles": "heel", "plantar": "foot"}
"""Each rod, and the link that its end is held to."""

REACH = {"heel": (-0.1, 0.02, 0.03), "foot": (0.05, 0.0, 0.06)}
"""Where the rods end [m]."""


def biped() -> KinematicTree:
    """A floating biped of 27 links and 32 freedoms with four loops of three rows, all of them independent.

    Each leg has two rods on universal joints that end in balls: one beside the shin, one that moves the foot.
    All loops are closed at the neutral configuration.
    """
    names, parents, places = [PELVIS], [WORLD], [np.zeros(3)]
    joints: list[Joint] = [Free()]
    frames: dict[str, Frame] = {}
    loops: list[Loop] = []
    for side, sign in (("l", 1.0), ("r", -1.0)):
        mirror = np.array([1.0, sign, 1.0])
        number = {PELVIS: 0}
        for name, (parent, axis, place) in LEG.items():
            number[name] = len(names)
            names.append(f"{side}_{name}")
            joints.append(Revolute(axis))
            parents.append(number[parent])
            places.append(mirror * place)
        for rod, other in LOOPS.items():
            end = mirror * REACH[other]
            offset = _position(parents, places, number[other]) + end - _position(parents, places, number[rod])
            first, second = f"{side}_{rod}_end", f"{side}_{other}_ball"
            frames |= {first: _frame(number[rod], offset), second: _frame(number[other], end)}
            loops.append(Loop(name=f"{side}_{rod}", frames=[first, second], constrains="point"))
    X_tree = tuple(Transform(np.eye(3), place) for place in places)
    I = np.array([_inertia(name) for name in names])
    n = tuple(names)
    return KinematicTree("biped", n, n, tuple(parents), tuple(joints), X_tree, I, frames, components=tuple(loops))


def _inertia(name: str) -> Floats:
    """A spatial inertia of about the size that such a link has; crosses of universal joints weigh nothing."""
    if name.endswith("cross"):
        return np.zeros((6, 6))
    mass, size = (10.0, 0.15) if name == PELVIS else (0.8, 0.1)
    return spatial_inertia(mass, np.array([0.2, 0.1, -0.4]) * size, mass * size**2 * np.diag([0.3, 0.4, 0.5]))


def _position(parents: list[int], places: list[Floats], i: int) -> Floats:
    """Where the origin of a link is in the pelvis, all joints at zero."""
    position = np.zeros(3)
    while i:
        position, i = position + places[i], parents[i]
    return position


def _frame(link: int, place: Floats) -> Frame:
    return Frame(link, Transform(np.eye(3), place))

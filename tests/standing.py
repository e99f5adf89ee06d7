"""A box that stands on two legs with feet that do not move, and sways: its motion is known in closed form."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from scipy.optimize import linprog
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.model.joints import Free, Prismatic, Revolute
from nori_dyn.model.tree import Frame, KinematicTree
from tests.systems import sensor_set

HIPS = np.array([[0.0, 0.15, 0.0], [0.05, -0.15, 0.0]])
FEET = np.array([[0.02, 0.2, 0.0], [0.0, -0.2, 0.0]])
"""Where the feet stand in the world [m]."""

GRAVITY = np.array([0.0, 0.0, -9.81])
LAWS_ELSEWHERE = {"centroidal", "gyroscope", "imu", "touch", "zero_velocity"}
"""Sensors that add variables or read the state of a base: tests/unit/measurements has their laws."""

SIGMA = {"acc": 0.05, "gyro": 0.01, "standing": 0.01}
BIAS = np.array([0.02, -0.01, 0.015])
"""Offset of the gyroscope [rad/s]."""


def robot() -> KinematicTree:
    """The box: each leg turns about x and y, and slides along -z."""
    names, joint_names, parents, joints, X_tree, I = ["box"], ["root"], [-1], [Free()], [Transform.identity()], []
    I.append(spatial_inertia(10.0, np.zeros(3), np.diag([0.2, 0.15, 0.2])))
    for side, hip in zip("lr", HIPS, strict=True):
        first = len(names)
        names += [f"{side}_hip", f"{side}_thigh", f"{side}_shank"]
        joint_names += [f"{side}_roll", f"{side}_pitch", f"{side}_slide"]
        parents += [0, first, first + 1]
        joints += [Revolute((1.0, 0.0, 0.0)), Revolute((0.0, 1.0, 0.0)), Prismatic((0.0, 0.0, -1.0))]
        X_tree += [Transform(np.eye(3), hip), Transform.identity(), Transform.identity()]
        I += [spatial_inertia(0.5, np.zeros(3), 1e-3 * np.eye(3))] * 3
    frames = {f"{side}_foot": Frame(3 * (k + 1), Transform.identity()) for k, side in enumerate("lr")}
    return KinematicTree(
        name="box",
        names=tuple(names),
        joint_names=tuple(joint_names),
        parents=tuple(parents),
        joints=tuple(joints),
        X_tree=tuple(X_tree),
        I=np.array(I),
        frames=frames,
    )


def forces_of_contacts(w: np.ndarray, points: np.ndarray, axes: np.ndarray, friction: float, edges: int):
    """Forces (n, 3) at points (n, 3), in pyramids of so many edges, that add up to a wrench (6,); None without such.

    The rows of `axes` (3, 3) are two across gravity, and up.
    """
    angles = 2 * np.pi * np.arange(edges) / edges
    rays = axes[2] + friction * np.column_stack([np.cos(angles), np.sin(angles)]) @ axes[:2]
    A = np.hstack([np.vstack([np.cross(p, rays).T, rays.T]) for p in points])
    found = linprog(np.zeros(A.shape[1]), A_eq=A, b_eq=w)
    return found.x.reshape(len(points), edges) @ rays if found.status == 0 else None


def sensors(**memory: dict) -> nd.SensorSet:
    """An IMU, feet that stand, and as good as nothing about forces and accelerations."""
    feet = ["l_foot", "r_foot"]
    rows = [
        {"type": "joint_acceleration", "joints": {"except": "root"}, "value": 0, "sigma": 100},
        {"type": "angular_accelerometer", "links": "box", "name": "turning", "value": 0, "sigma": 50},
        {"type": "accelerometer", "links": "box", "sigma": SIGMA["acc"]},
        {"type": "gyroscope", "links": "box", "sigma": SIGMA["gyro"], "offset": {"sigma": 0.05}},
        {"type": "joint_torque", "joints": "root", "value": 0},
        {"type": "external_wrench", "links": {"except": ["l_shank", "r_shank"]}, "value": 0},
    ]
    wrench = {"type": "external_wrench", "value": 0, "sigma": [100] * 3 + [300] * 3}
    rows += [wrench | {"links": foot, "name": f"{foot}_wrench"} for foot in feet]
    rows += [{"type": "zero_velocity", "links": foot, "value": None, "sigma": SIGMA["standing"]} for foot in feet]
    known = {"base": {"of": "base"}, "bias": {"of": "offset"}} | memory
    return sensor_set(*rows, name="standing box", memory=known)


class Sway(NamedTuple):
    """The motion at some instants.

    Attributes:
        R: rotations from base to world coordinates (n, 3, 3).
        p: positions of the base (n, 3).
        v, w: its velocity and angular velocity in base coordinates (n, 3).
        acc: what an accelerometer at its origin reads (n, 3).
        q, qd: of the legs (n, 6).
        gravity: in world coordinates (3,).
    """

    R: np.ndarray
    p: np.ndarray
    v: np.ndarray
    w: np.ndarray
    acc: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    gravity: np.ndarray = GRAVITY


def sway(t: np.ndarray, tilt: np.ndarray | None = None, seed: int = 0, size: float = 1.0, turning: float = 0.0) -> Sway:
    """The motion at times (n,); velocities by differences of positions over 2e-4 s.

    Args:
        t: the times [s].
        tilt: a rotation vector about which it sways (3,).
        seed: of amplitudes and phases.
        size: of amplitudes.
        turning: rate by which it turns about the vertical [rad/s].
    """
    rng = np.random.default_rng(seed)
    amplitude, phase = rng.uniform(0.5, 1.0, (2, 3)), rng.uniform(0, 6, (2, 3))
    rate = rng.uniform(2.0, 5.0, (2, 3))
    about = np.zeros(3) if tilt is None else tilt

    def pose(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        waves = size * amplitude[:, None] * np.sin(rate[:, None] * t[:, None] + phase[:, None])
        yaw = Rotation.from_rotvec(turning * t[:, None] * [0, 0, 1])
        R = yaw * Rotation.from_rotvec(about) * Rotation.from_rotvec(0.15 * waves[0])
        return R.as_matrix(), np.array([0.0, 0.0, 0.6]) + 0.03 * waves[1]

    def legs(t: np.ndarray) -> np.ndarray:
        R, p = pose(t)
        found = []
        for hip, foot in zip(HIPS, FEET, strict=True):
            u = np.einsum("nji,nj->ni", R, foot - p) - hip
            length = np.linalg.norm(u, axis=1)
            pitch = -np.arcsin(u[:, 0] / length)
            found += [np.arctan2(u[:, 1], -u[:, 2]), pitch, length]
        return np.stack(found, axis=1)

    h = 1e-4
    (R, p), (R_after, p_after), (R_before, p_before) = pose(t), pose(t + h), pose(t - h)
    turn = Rotation.from_matrix(np.einsum("nji,njk->nik", R_before, R_after)).as_rotvec() / (2 * h)

    def to_base(x: np.ndarray) -> np.ndarray:
        return np.einsum("nji,nj->ni", R, x)

    return Sway(
        R,
        p,
        to_base((p_after - p_before) / (2 * h)),
        turn,
        to_base((p_after - 2 * p + p_before) / h**2 - GRAVITY),
        legs(t),
        (legs(t + h) - legs(t - h)) / (2 * h),
    )

"""Unit quaternions (x, y, z, w) in plain numbers: a tick is too short for arrays of four.

Source: Barfoot, State Estimation for Robotics, ch. 7.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

ROUNDING = 1e-9
"""Size of gravity as estimated, as a share of the tree's, below which it has no direction."""

Quaternion: TypeAlias = tuple[float, float, float, float]
"""A rotation."""


def upright(G: Sequence[float], gravity: Sequence[float]) -> Quaternion:
    """The smallest rotation that turns G (3,) along gravity (3,); none where G is not known, or rounding."""
    a, b = math.sqrt(dot(G, G)), math.sqrt(dot(gravity, gravity))
    if not a > ROUNDING * b:
        return 0.0, 0.0, 0.0, 1.0
    x, y, z = _cross(G, gravity)
    w = a * b + dot(G, gravity)
    if w < 1e-12 * a * b:  # opposite: about any axis across
        x, y, z = _cross(gravity, min(np.eye(3).tolist(), key=lambda e: abs(dot(e, gravity))))
        w = 0.0
    size = math.sqrt(x * x + y * y + z * z + w * w)
    return x / size, y / size, z / size, w / size


def turning(w: Sequence[float], dt: float) -> Quaternion:
    """The rotation by an angular velocity (3,) over a time."""
    angle = math.sqrt(dot(w, w)) * dt
    share = math.sin(angle / 2) / angle * dt if abs(angle) > 1e-3 else dt * (0.5 - angle * angle / 48)
    return w[0] * share, w[1] * share, w[2] * share, math.cos(angle / 2)


def product(a: Quaternion, b: Quaternion) -> Quaternion:
    """The rotation a after b."""
    x, y, z = _cross(a, b)
    return (
        a[3] * b[0] + b[3] * a[0] + x,
        a[3] * b[1] + b[3] * a[1] + y,
        a[3] * b[2] + b[3] * a[2] + z,
        a[3] * b[3] - dot(a, b),
    )


def turned(q: Quaternion, v: Sequence[float]) -> tuple[float, float, float]:
    """A vector (3,), turned."""
    t = _cross(q, v)
    u, s = _cross(q, t), q[3]
    return v[0] + 2 * (s * t[0] + u[0]), v[1] + 2 * (s * t[1] + u[1]), v[2] + 2 * (s * t[2] + u[2])


def dot(a: Sequence[float], b: Sequence[float]) -> float:
    """The scalar product of the first three numbers."""
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


def _cross(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    return a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]

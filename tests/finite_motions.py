"""What sensors tell of a floating base over a finite motion, in 60 digits: a nonlinear model, and its derivative.

The base has a rotation, a position, a velocity and an angular velocity; joint motion is known. At each tick its
acceleration and angular acceleration are unknown, and sensors read what a rigid body's kinematics say. Of the package
only the tree takes part: where joints are and how their axes lie.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import mpmath as mp
import numpy as np

from nori_dyn.model.tree import KinematicTree

DIGITS = 60
STEP = mp.mpf(10) ** -20
"""Of central differences: what they leave out is 40 decades smaller than what they find."""
ZERO = mp.mpf(10) ** -25
"""Length below which what is left of a row of unit length is zero."""
CLEAR = mp.mpf(10) ** -12
"""Length that nothing between this and `ZERO` may have."""
DT = mp.mpf(7) / 10
GRAVITY = np.array([mp.mpf(0), mp.mpf(0), mp.mpf(-9.81)])

Vector = np.ndarray
"""Of numbers of mpmath."""


@dataclass(frozen=True)
class Reading:
    """What a sensor reads, or is known: of a link of the robot, in axes of that link, at its origin.

    Attributes:
        kind: "gyroscope", "accelerometer", "angular_accelerometer", "point" or "plane".
        link: the link.
        has_offset: whether its readings have an offset that stays.
    """

    kind: str
    link: int
    has_offset: bool = False


@dataclass(frozen=True, eq=False)
class LinkMotion:
    """How a link moves on the base at a tick, in coordinates of the base, all known.

    Attributes:
        C: from its axes to those of the base (3, 3).
        r, rate, second: position of its origin (3,) and its derivatives.
        w, turning: angular velocity (3,) and its derivative.
    """

    C: Vector
    r: Vector
    rate: Vector
    second: Vector
    w: Vector
    turning: Vector


def numbers(x: object) -> Vector:
    """The same numbers of mpmath."""
    return np.vectorize(mp.mpf, otypes=[object])(np.asarray(x, dtype=float))


def hat(v: Vector) -> Vector:
    """The matrix of a cross product."""
    o = mp.mpf(0)
    return np.array([[o, -v[2], v[1]], [v[2], o, -v[0]], [-v[1], v[0], o]])


def exp(v: Vector) -> Vector:
    """The rotation by a vector, by the formula of Rodrigues."""
    angle, V = mp.sqrt(v @ v), hat(v)
    if not angle:
        return numbers(np.eye(3))
    half = mp.sin(angle / 2) / angle
    return numbers(np.eye(3)) + V * (mp.sin(angle) / angle) + (V @ V) * (2 * half**2)


def rotation(E: Vector) -> Vector:
    """A rotation of doubles, to all digits."""
    for _ in range(3):  # each makes as many digits right as there were, by Newton for the polar decomposition
        E = E @ (3 * numbers(np.eye(3)) - E.T @ E) / 2
    return E


def link_motion(tree: KinematicTree, link: int, q: Vector, qd: Vector, qdd: Vector) -> LinkMotion:
    """The motion of a link by differences of where it is; the base is link 0."""
    chain = [link]
    while tree.parents[chain[-1]] > 0:
        chain.append(tree.parents[chain[-1]])

    def place(t: mp.mpf) -> tuple[Vector, Vector]:
        C, r = numbers(np.eye(3)), numbers(np.zeros(3))
        for i in reversed(chain) if link else ():
            joint, at = tree.joints[i], tree.v_slices[i].start - 6
            x, axis = q[at] + t * qd[at] + t * t / 2 * qdd[at], numbers(joint.axis)
            r = r + C @ numbers(tree.X_tree[i].r)
            C = C @ rotation(numbers(tree.X_tree[i].E)).T
            if joint.kind == "prismatic":
                r = r + C @ axis * x
            else:
                C = C @ exp(axis * x)
        return C, r

    h = mp.mpf(10) ** -15
    (C_before, r_before), (C, r), (C_after, r_after) = (place(t) for t in (-h, mp.mpf(0), h))
    rate, second = (C_after - C_before) / (2 * h), (C_after - 2 * C + C_before) / (h * h)
    W, turning = rate @ C.T, second @ C.T + rate @ rate.T
    return LinkMotion(
        C,
        r,
        (r_after - r_before) / (2 * h),
        (r_after - 2 * r + r_before) / (h * h),
        np.array([W[2, 1], W[0, 2], W[1, 0]]),
        np.array([turning[2, 1], turning[0, 2], turning[1, 0]]),
    )


@dataclass(frozen=True, eq=False)
class FiniteMotion:
    """A motion over some ticks and what sensors read in it.

    Attributes:
        tree: the robot: a free base, and joints that turn or slide.
        readings: the sensors.
        q, qd, qdd: of the joints at each tick (N, nv - 6).
        R, p, V, w: rotation (3, 3), position, velocity in the world and angular velocity of the base at first.
        force, turning: specific force and angular acceleration of the base at each tick (N, 3), in its coordinates.
    """

    tree: KinematicTree
    readings: Sequence[Reading]
    q: Vector
    qd: Vector
    qdd: Vector
    R: Vector
    p: Vector
    V: Vector
    w: Vector
    force: Vector
    turning: Vector

    @property
    def n(self) -> int:
        """Number of ticks."""
        return len(self.q)

    @cached_property
    def _links(self) -> list[dict[int, LinkMotion]]:
        links = {each.link for each in self.readings}
        return [
            {i: link_motion(self.tree, i, *given) for i in links}
            for given in zip(self.q, self.qd, self.qdd, strict=True)
        ]

    @cached_property
    def _offsets(self) -> dict[int, int]:
        """Where the offset of a sensor is in the unknowns, by its number."""
        found, at = {}, 12
        for k, each in enumerate(self.readings):
            if each.has_offset:
                found[k] = at
                at += 3
        return found

    def run(self, x: Vector) -> list[tuple[Vector, Vector]]:
        """The readings, and R, p, velocity, gravity and angular velocity of the base, at each tick.

        Args:
            x: what is added to the unknowns: rotation, p, V, w at first, offsets, then force and turning of each tick.
        """
        R, p, V, w = self.R @ exp(x[:3]), self.p + x[3:6], self.V + x[6:9], self.w + x[9:12]
        inputs, found = x[12 + 3 * len(self._offsets) :].reshape(self.n, 2, 3), []
        for k, links in enumerate(self._links):
            f, alpha = self.force[k] + inputs[k, 0], self.turning[k] + inputs[k, 1]
            W, A, v, read = hat(w), hat(alpha), R.T @ V, []
            for number, each in enumerate(self.readings):
                at = links[each.link]
                match each.kind:
                    case "gyroscope":
                        parts = [w + at.w]
                    case "accelerometer":
                        parts = [f + A @ at.r + W @ (W @ at.r) + 2 * W @ at.rate + at.second]
                    case "angular_accelerometer":
                        parts = [alpha + W @ at.w + at.turning]
                    case "point":
                        parts = [v + W @ at.r + at.rate]
                    case _:
                        parts = [v + W @ at.r + at.rate, w + at.w]
                y = np.concatenate([at.C.T @ part for part in parts])
                if each.has_offset:
                    start = self._offsets[number]
                    y = y + x[start : start + 3]
                read.append(y)
            found.append((np.concatenate(read), np.concatenate([R.ravel(), p, v, R.T @ GRAVITY, w])))
            R, p, V, w = R @ exp(w * DT), p + V * DT, V + (R @ f + GRAVITY) * DT, w + alpha * DT
        return found

    def told(self) -> list[Told]:
        """What is told of the base and the offsets at the last of 1, 2, ... ticks, by the readings so far."""
        n = 12 + 3 * len(self._offsets) + 6 * self.n
        zero = numbers(np.zeros(n))
        nominal = [state[:9].reshape(3, 3) for _, state in self.run(zero)]
        after, before = [], []
        for i in range(n):
            step = zero.copy()
            step[i] = STEP
            after.append(self.run(step))
            before.append(self.run(-step))
        found, rows = [], RowSpace(n)
        for k in range(self.n):
            J, D = (
                np.array([(b[k][part] - a[k][part]) / (2 * STEP) for a, b in zip(before, after, strict=True)]).T
                for part in (0, 1)
            )
            rows.extend(J)
            R = nominal[k]
            turned = R.T @ D[:9].reshape(3, 3, n).transpose(2, 0, 1)
            tilting = np.array([[m[2, 1], m[0, 2], m[1, 0]] for m in turned]).T
            state = np.concatenate([R @ D[12:15], R @ D[15:18], D[18:21], np.eye(n)[12 : 12 + 3 * len(self._offsets)]])
            unseen = np.concatenate([(R @ tilting)[2:], D[9:12]])
            left = [rows.left(row) for row in state]
            found.append(
                Told(
                    frozenset(i for i, row in enumerate(left) if _is_zero(row)),
                    len(state) - RowSpace(n).extend(left),
                    frozenset(i for i, row in enumerate(unseen) if _is_zero(rows.left(row))),
                )
            )
        return found


@dataclass(frozen=True)
class Told:
    """What is told at a tick.

    Attributes:
        numbers: which of velocity and gravity, along the axes of the world, angular velocity, and offsets, 3 each.
        rank: how many independent combinations of these.
        pose: which of yaw and the three numbers of the position.
    """

    numbers: frozenset[int]
    rank: int
    pose: frozenset[int]


class RowSpace:
    """The space of rows of unknowns (n,): orthonormal ones, grown row by row."""

    def __init__(self, n: int) -> None:
        self._basis: Vector = np.zeros((0, n), dtype=object)

    def left(self, row: Vector) -> Vector:
        """What is left of a row, of unit length before, beyond the space."""
        size = mp.sqrt(row @ row)
        row = row / size if size > ZERO else row
        return row - self._basis.T @ (self._basis @ row)

    def extend(self, rows: Sequence[Vector]) -> int:
        """Add rows, those first of which most is left, and return how many were new."""
        before, rows = len(self._basis), [self.left(row) for row in rows]
        while rows:
            sizes = [row @ row for row in rows]
            best = int(np.argmax(sizes))
            row = rows.pop(best)
            if _is_zero(row):
                break
            row = row / mp.sqrt(sizes[best])
            self._basis = np.vstack([self._basis, row])
            rows = [other - row * (row @ other) for other in rows]
        return len(self._basis) - before


def _is_zero(row: Vector) -> bool:
    size = mp.sqrt(row @ row)
    assert size < ZERO or size > CLEAR, f"neither zero nor not: {mp.nstr(size, 5)}"
    return bool(size < ZERO)

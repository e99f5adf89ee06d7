"""Rotations in a plane: their action on a tensor, and rotations as products of such rotations about coordinate axes.

Source: own derivation (tests/unit/model/test_internal_frames.py); the invariants are those of Mohr's circle.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

import numpy as np

from nori_dyn.typing import Floats

TOLERANCE = 1e-14
"""Entries of a constant rotation this close to 0, 1 or -1 are taken as that."""


def planar_congruence(c: Any, s: Any, M: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
    """R M R^T by rows, for R = [[c, s], [-s, c]] with c^2 + s^2 = 1 and any M = (m00, m01, m10, m11).

    11 operations instead of 24, over any scalar: the trace and the antisymmetric part are invariant, and
    s (s delta - c sigma) with delta = m00 - m11, sigma = m01 + m10 is all that moves. A symmetric M takes 10.
    """
    m00, m01, m10, m11 = M
    t = c * (m01 + m10) - s * (m00 - m11)
    x, y = s * t, c * t
    return m00 + x, y - m10, y - m01, m11 - x


def snapped(E: Floats) -> Floats:
    """A rotation with entries within TOLERANCE of 0, 1 and -1 taken as that."""
    near = np.round(E)
    return np.where(np.abs(E - near) <= TOLERANCE, near, E)


def is_signed_permutation(E: Floats) -> bool:
    """Whether a rotation only relabels the axes."""
    return bool(np.isin(E, (-1.0, 0.0, 1.0)).all())


def planar_factors(E: Floats) -> tuple[Floats, ...]:
    """Few rotations (3, 3), the first to be applied first, whose product is the rotation E (3, 3).

    Each relabels the axes or turns about a coordinate axis: none for the identity, at most three for any rotation.
    """
    E = snapped(np.asarray(E, dtype=float))
    if np.array_equal(E, np.eye(3)):
        return ()
    if is_signed_permutation(E):
        return (E,)
    alone = (np.count_nonzero(E, axis=1)[:, None] == 1) & (np.count_nonzero(E, axis=0) == 1)
    units = np.argwhere(alone & (np.abs(E) == 1))  # a cosine may round to 1 where its sine is not 0
    if len(units):  # a turn about axis j, which then becomes axis i
        i, j = units[0]
        relabel = np.zeros((3, 3))
        relabel[i, j] = E[i, j]
        for row, column in zip(np.delete(range(3), i), np.delete(range(3), j), strict=True):
            relabel[row, column] = 1.0
        if np.linalg.det(relabel) < 0:
            relabel[np.delete(range(3), i)[1]] *= -1
        turn = snapped(relabel.T @ E)
        return (turn,) if np.array_equal(relabel, np.eye(3)) else (turn, relabel)
    first = turn_about(2, math.atan2(E[2, 0], -E[2, 1]))
    middle = turn_about(0, math.atan2(math.hypot(E[2, 0], E[2, 1]), E[2, 2]))
    last = E @ (middle @ first).T  # where the middle one is small, only its product with the first is well known
    return first, middle, turn_about(2, math.atan2(last[0, 1] - last[1, 0], last[0, 0] + last[1, 1]))


def turn_about(axis: int, angle: float) -> Floats:
    """The coordinate rotation E (3, 3) of a turn by an angle [rad] about a coordinate axis: RBDA (2.18)."""
    E = np.eye(3)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    c, s = math.cos(angle), math.sin(angle)
    E[i, i], E[i, j], E[j, i], E[j, j] = c, s, -s, c
    return snapped(E)


def turns_onto_z(u: Floats) -> tuple[Floats, ...]:
    """Few rotations as `planar_factors` does, whose product takes the unit vector u (3,) to the z axis."""
    x, y, z = u
    into_plane = turn_about(2, math.atan2(-x, y) if x else 0.0)
    onto_z = turn_about(0, math.atan2(-(into_plane @ u)[1], z))
    return tuple(E for E in (into_plane, onto_z) if not np.array_equal(E, np.eye(3)))


def relabelled_first(factors: Iterable[Floats]) -> tuple[Floats, ...]:
    """The factors of a rotation with the one that only relabels the axes first, if there is one."""
    relabel, turns = np.eye(3), list[Floats]()
    for E in factors:
        if is_signed_permutation(E):
            relabel, turns = E @ relabel, [E @ turn @ E.T for turn in turns]
        else:
            turns.append(E)
    return tuple(turns) if np.array_equal(relabel, np.eye(3)) else (relabel, *turns)

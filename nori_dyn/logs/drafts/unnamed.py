"""Columns without names: which are positions, velocities, accelerations and torques of joints, by how they move."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import permutations
from typing import TypeAlias

import numpy as np

from nori_dyn.logs.drafts.families import Family, kind_of
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.plausibility.motion import RELATED, compared
from nori_dyn.typing import Floats

AGREED = 0.2
"""How far the steps of time by which joints move as their rates say may be apart, as a share."""

TIME = "time"
"""The word of a family that is a column of times."""

MOST = 12
"""Quantities of joints in a table, at most."""

UNIT = 1e-2
"""How far the size of a quaternion may be from one."""

PLACED = (slice(0, 3), slice(3, 7)), (slice(4, 7), slice(0, 4))
"""Where position and quaternion are in an array of a pose: that is first, or this, as Drake has it."""

Parts: TypeAlias = dict[str, tuple[Sequence[int], str]]
"""The places of each quantity among columns, and why."""


def step_between(positions: Sequence[Floats], rates: Sequence[Floats]) -> float | None:
    """The time between samples by which joints move as their rates say; None where they do not.

    Args:
        positions: of each joint (N,).
        rates: of each joint (N,), in the same unit a second.
    """
    pairs = [(q, qd) for q, qd in zip(positions, rates, strict=True) if np.isfinite([q, qd]).all() and np.ptp(q) > 0]
    found = [compared(q, qd, 1.0) for q, qd in pairs]
    if not found or 2 * len(found) < len(positions) or min(correlation for correlation, _ in found) < RELATED[1]:
        return None
    steps = np.array([step for _, step in found])
    step = float(np.median(steps))
    return step if (np.abs(steps - step) < AGREED * step).all() else None


def recognised(families: Sequence[Family], tree: KinematicTree, values: Mapping[str, Floats]) -> Iterator[Family]:
    """Yield the families of columns, those without a meaning in parts that have one.

    Args:
        families: the families.
        tree: the robot.
        values: some samples of the columns.
    """
    n, is_free = sum(joint.nq == joint.nv == 1 for joint in tree.joints), tree.joints[0].nq == 7
    for family in families:
        known = [values[column] for column in family.columns if column in values]
        is_open = family.joints is None and kind_of(family) is None and len(known) == len(family.columns)
        parts = _parts(known, n) if is_open and n else {}
        parts = _states(known, n) if is_open and is_free and not parts else parts
        for kind, (places, why) in parts.items():
            yield replace(family, columns=tuple(family.columns[k] for k in places), words=(kind,), why=why)
        if not parts:
            yield family


def is_unit(values: Sequence[Floats]) -> bool:
    """Whether columns are a vector of size one."""
    return bool(abs(np.nanmedian(np.linalg.norm(values, axis=0)) - 1.0) < UNIT)


def _times(columns: Sequence[Floats], first: int) -> Parts | None:
    """The column of times, where one comes first; None where it does not increase all the way."""
    if not first:
        return {}
    return {TIME: ([0], "without a name, it increases all the way")} if (np.diff(columns[0]) > 0).all() else None


def _states(columns: Sequence[Floats], n: int) -> Parts:
    """The places of all of q, and of qd if there are as many numbers, of a robot with a free joint; empty if unknown.

    The four numbers of the pose that are a quaternion tell it, and rates that positions move by.
    """
    first = next((left for left in (len(columns) - size for size in (7 + n, 13 + 2 * n)) if left in (0, 1)), None)
    found = None if first is None else _times(columns, first)
    if first is None or found is None:
        return {}
    q, qd = range(first, first + 7 + n), range(first + 7 + n, len(columns))
    moving = [[columns[k] for k in own] for own in (q[7:], qd[6:])]
    is_pose = any(is_unit([columns[k] for k in q[place]]) for _, place in PLACED)
    if not is_pose or (qd and step_between(*moving) is None):
        return {}
    found["q"] = q, f"without names, {len(q)} numbers that begin with a pose"
    return found | ({"qd": (qd, "without names, the positions before them move so")} if qd else {})


def _parts(columns: Sequence[Floats], n: int) -> Parts:
    """The places of positions, velocities, accelerations and torques among columns, and why; empty if unknown.

    A table of a multiple of n columns, with or without times before them, is n columns of each quantity, or the
    quantities of each joint. Where one moves as another says, these are positions and velocities; likewise
    accelerations. A single one that is left are the torques.
    """
    first = len(columns) % n
    m = len(columns) // n
    times = _times(columns, first) if first < 2 and 1 < m <= MOST else None
    if times is None:
        return {}
    for blocks in (
        [range(first + i * n, first + (i + 1) * n) for i in range(m)],
        [range(first + i, len(columns), m) for i in range(m)],
    ):
        steps = {}
        for i, j in permutations(range(m), 2):
            step = step_between([columns[k] for k in blocks[i]], [columns[k] for k in blocks[j]])
            if step is not None:
                steps[i, j] = step
        q, qd = next(((i, j) for i, j in steps if i not in {rate for _, rate in steps}), (None, None))
        if q is None or qd is None:
            continue
        found: Parts = {
            **times,
            "q": (blocks[q], "without names"),
            "qd": (blocks[qd], f"without names; {_named(blocks[q])} move so"),
        }
        rest = [i for i in range(m) if i not in (q, qd)]
        likely = {i: _median_correlation(columns, blocks[qd], blocks[i]) for i in rest}
        qdd = max((i for i in rest if likely[i] > RELATED[0]), key=likely.__getitem__, default=None)
        if qdd is not None:
            found["qdd"] = blocks[qdd], f"without names; {_named(blocks[qd])} change so"
            rest.remove(qdd)
        if len(rest) == 1:
            found["tau"] = blocks[rest[0]], "without names, what is left"
        return found
    return {}


def _median_correlation(columns: Sequence[Floats], moving: Sequence[int], rates: Sequence[int]) -> float:
    """The median over joints of the correlation of motion with that by rates, which may be noisy."""
    return float(np.median([compared(columns[q], columns[qd], 1.0)[0] for q, qd in zip(moving, rates, strict=True)]))


def _named(places: Sequence[int]) -> str:
    return f"columns {places[0]} to {places[-1]}"

"""Closed configurations of robots with loops and couplings: Newton's method on their gaps.

Source: docs/design.md, 2.5.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import overload

import numpy as np

from nori_dyn.algebra.arrays import checked
from nori_dyn.errors import NotClosedError
from nori_dyn.model.kinematics import Kinematics, positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

CLOSED = 1e-9
"""A gap below this [m or rad] is closed but for rounding."""

TIGHT = 1e-13
"""A gap of less than this is not made smaller."""

STEPS = 60
"""Steps of Newton's method, at most; it takes five to ten where it succeeds."""

HALVINGS = 12
"""Times that a step is halved in search of a smaller gap."""

LEAST_SHARE = 1e-9
"""Share of the largest singular value below which a direction of the gap is taken as one that another one repeats."""

DRAWS = 20
"""Times that random configurations are drawn to be closed, so many more than wanted each time: `SPARE`."""

SPARE = 8

MOST_OUTSIDE = 3
"""Closed configurations beyond joint limits, as a multiple of those wanted, after which no others are sought."""


@overload
def closed(tree: KinematicTree, q: Floats, qd: None = None, *, free: Collection[str] | None = None) -> Floats: ...
@overload
def closed(
    tree: KinematicTree, q: Floats, qd: Floats, *, free: Collection[str] | None = None
) -> tuple[Floats, Floats]: ...
def closed(
    tree: KinematicTree, q: Floats, qd: Floats | None = None, *, free: Collection[str] | None = None
) -> Floats | tuple[Floats, Floats]:
    """The closed configuration next to one, and the velocity next to one that keeps it closed.

    Args:
        tree: the robot, with its loops and couplings.
        q: configuration (nq,) to begin at.
        qd: velocity (nv,); only the configuration is returned when None.
        free: names of the joints that may move; all when None. Others keep their position and velocity.

    Returns:
        q (nq,), or q and qd (nv,).

    Raises:
        NotClosedError: it cannot be closed from there; names the loop that stays open, and by how much.
        InputError: a wrong shape, or a number that is not finite.
        UnknownModelNameError: no joint has one of the names.

    Source: Newton's method with the exact Jacobian, and least squares where rows repeat others.

    Example:
        >>> belt = nd.components.Coupling(name="belt", joint="joint2", of={"joint1": -2.0})
        >>> arm = nd.autotree(2).replace(components=(belt,))
        >>> print(np.round(nd.tools.closed(arm, np.array([0.5, 0.0]), free=["joint2"]), 6))
        [ 0.5 -1. ]
    """
    moving = np.arange(tree.nv) if free is None else _freedoms(tree, free)
    Q, sizes = _project(tree, tree.checked_configuration(q)[:, None], moving)
    q = Q[:, 0]
    if sizes[0] > CLOSED:
        raise _not_closed(tree, np.abs(gaps(positions(tree, q))), "stays open by", " at least")
    if qd is None:
        return q
    qd = checked("qd", qd, (tree.nv,)).copy()
    if tree.closing_parts:
        J = gap_rate(positions(tree, q))
        qd[moving] -= np.linalg.lstsq(J[:, moving], J @ qd, LEAST_SHARE)[0]
        left = np.abs(J @ qd)
        if left.max(initial=0.0) > CLOSED * max(1.0, np.abs(qd).max(initial=0.0)):
            raise _not_closed(tree, left, "moves apart", "/s at least")
    return q, qd


def gaps(at: Kinematics) -> Floats:
    """Gaps (rows, ...) [m, rad] of all loops and couplings, one below the other."""
    return np.concatenate([np.zeros((0, *at.q.shape[1:])), *(part.gap(at) for part in at.tree.closing_parts)])


def gap_rate(at: Kinematics) -> Floats:
    """Jacobian (rows, nv, ...) of the gaps by velocities."""
    none = np.zeros((0, at.tree.nv, *at.q.shape[1:]))
    return np.concatenate([none, *(part.gap_rate(at) for part in at.tree.closing_parts)])


def random_closed(tree: KinematicTree, rng: np.random.Generator, n: int) -> Floats:
    """Random closed configurations (n, nq), within the joint limits if such are soon found.

    Where many draws close fewer than n, these are repeated.

    Args:
        tree: the robot.
        rng: a generator.
        n: how many.

    Raises:
        NotClosedError: none of many can be closed.
    """
    within: list[Floats] = []
    outside: list[tuple[float, Floats]] = []
    nearest = tree.neutral_configuration()
    least = np.inf
    for _ in range(DRAWS):
        Q, sizes = _project(tree, np.array([tree.draw(rng) for _ in range(n + SPARE)]).T, np.arange(tree.nv), n)
        if sizes.min() < least:
            least, nearest = float(sizes.min()), Q[:, sizes.argmin()]
        for q in Q.T[sizes <= CLOSED]:
            beyond = _beyond_limits(tree, q)
            if beyond:
                outside.append((beyond, q))
            else:
                within.append(q)
        if len(within) >= n or len(outside) > MOST_OUTSIDE * n:
            break
    if not within and not outside:
        raise _not_closed(tree, np.abs(gaps(positions(tree, nearest))), "stays open by", " at least")
    outside.sort(key=lambda found: found[0])
    found = [*within, *(q for _, q in outside)]
    return np.array([found[k % len(found)] for k in range(n)])


def _project(tree: KinematicTree, Q: Floats, moving: Indices, enough: int = 1) -> tuple[Floats, Floats]:
    """The closed configurations next to some (nq, N), by moving some freedoms, and their largest gaps (N,).

    When enough of them are closed the others are left as they are.
    """
    Q = Q.copy()
    gap = gaps(positions(tree, Q))
    left = np.arange(Q.shape[1])  # those that still come nearer
    for _ in range(STEPS):
        left = left[np.abs(gap[:, left]).max(axis=0, initial=0.0) > TIGHT]
        n_closed = np.count_nonzero(np.abs(np.delete(gap, left, axis=1)).max(axis=0, initial=0.0) <= CLOSED)
        if not len(left) or n_closed >= enough:
            break
        at = positions(tree, Q[:, left])
        J = np.moveaxis(gap_rate(at)[:, moving], 2, 0)
        step = np.zeros((tree.nv, len(left)))
        step[moving] = -(np.linalg.pinv(J, LEAST_SHARE) @ gap[:, left].T[:, :, None])[:, :, 0].T
        step /= np.maximum(1.0, np.abs(step).max(axis=0))  # at most a radian, or a metre, at a time
        before = np.linalg.norm(gap[:, left], axis=0)
        trying = np.arange(len(left))
        for _ in range(HALVINGS):
            own = left[trying]
            tried = tree.integrate(Q[:, own], step[:, trying])
            found = gaps(positions(tree, tried))
            nearer = np.linalg.norm(found, axis=0) < before[trying]
            Q[:, own[nearer]], gap[:, own[nearer]] = tried[:, nearer], found[:, nearer]
            trying = trying[~nearer & (before[trying] > CLOSED)]
            if not len(trying):
                break
            step[:, trying] /= 2
        after = np.linalg.norm(gap[:, left], axis=0)
        left = left[after < before]
    return Q, np.abs(gap).max(axis=0, initial=0.0)


def _not_closed(tree: KinematicTree, sizes: Floats, does: str, unit: str) -> NotClosedError:
    """The error that names the part with the largest gap, by sizes (rows,) of all gaps."""
    worst = int(np.argmax(sizes))
    at = positions(tree, tree.neutral_configuration())
    rows = np.cumsum([len(part.gap(at)) for part in tree.closing_parts])
    part = tree.closing_parts[int(np.searchsorted(rows, worst, side="right"))].name
    return NotClosedError(
        f"robot '{tree.name}': '{part}' {does} {sizes[worst]:.3g} (m or rad){unit}. Begin nearer to a closed "
        "configuration, let more joints move, or look at the frames and lengths of the loop.",
        part,
        float(sizes[worst]),
    )


def _freedoms(tree: KinematicTree, names: Collection[str]) -> Indices:
    chosen = (names,) if isinstance(names, str) else names
    slices = [tree.v_slices[tree.joint(name)] for name in chosen]
    return np.array([k for s in slices for k in range(s.start, s.stop)], dtype=np.intp)


def _beyond_limits(tree: KinematicTree, q: Floats) -> float:
    """Largest distance of a joint beyond its limits [rad or m]; 0 where all are within."""
    beyond = 0.0
    for joint, s in zip(tree.joints, tree.q_slices, strict=True):
        low, high = joint.room
        if joint.nq == 1:
            beyond = max(beyond, float(low - q[s.start]), float(q[s.start] - high))
    return beyond

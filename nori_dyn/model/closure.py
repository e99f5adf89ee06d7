"""Closed configurations of robots with loops and couplings: Newton's method on their gaps.

Source: docs/design.md, 2.5.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import overload

import numpy as np

from nori_dyn.algebra.arrays import checked
from nori_dyn.errors import NotClosedError
from nori_dyn.model.kinematics import Kinematics, positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

CLOSED = 1e-9
"""A gap of less than this [m or rad] is closed but for rounding."""

STEPS = 60
"""Steps of Newton's method, at most; it takes five to ten where it succeeds."""

HALVINGS = 12
"""Times that a step is halved in search of a smaller gap."""

LEAST_SHARE = 1e-9
"""Share of the largest singular value below which a direction of the gap is taken as one that another one repeats."""

DRAWS = 200
"""Random configurations that are tried to be closed."""


@overload
def closed(tree: KinematicTree, q: Floats, qd: None = None, *, free: Collection[str] | None = None) -> Floats: ...
@overload
def closed(
    tree: KinematicTree, q: Floats, qd: Floats, *, free: Collection[str] | None = None
) -> tuple[Floats, Floats]: ...
def closed(
    tree: KinematicTree, q: Floats, qd: Floats | None = None, *, free: Collection[str] | None = None
) -> Floats | tuple[Floats, Floats]:
    """Return the closed configuration next to one, and the velocity next to one that keeps it closed.

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
        >>> print(np.round(nd.closed(arm, np.array([0.5, 0.0]), free=["joint2"]), 6))
        [ 0.5 -1. ]
    """
    moving = np.arange(tree.nv) if free is None else _freedoms(tree, free)
    q = _project(tree, tree.normalised(checked("q", q, (tree.nq,))), moving)
    if qd is None:
        return q
    qd = checked("qd", qd, (tree.nv,)).copy()
    if tree.closing_parts:
        J = gap_rate(positions(tree, q))
        qd[moving] -= np.linalg.lstsq(J[:, moving], J @ qd, LEAST_SHARE)[0]
        left = np.abs(J @ qd)
        if left.max(initial=0.0) > CLOSED * max(1.0, np.abs(qd).max(initial=0.0)):
            raise _not_closed(tree, left, "moves apart", "/s at the least")
    return q, qd


def gaps(at: Kinematics) -> Floats:
    """Return how far all loops and couplings are from closed, one below the other (rows, ...) [m, rad]."""
    return np.concatenate([np.zeros((0, *at.q.shape[1:])), *(part.gap(at) for part in at.tree.closing_parts)])


def gap_rate(at: Kinematics) -> Floats:
    """Return what velocities make of the gaps where they are closed (rows, nv)."""
    return np.concatenate([np.zeros((0, at.tree.nv)), *(part.gap_rate(at) for part in at.tree.closing_parts)])


def random_closed(tree: KinematicTree, draw: Callable[[], Floats]) -> Floats:
    """Return a closed configuration (nq,) next to a random one: within the joints' room, if such a one is soon found.

    Args:
        tree: the robot.
        draw: returns a random configuration (nq,).

    Raises:
        NotClosedError: none of many can be closed.
    """
    outside: list[tuple[float, Floats]] = []
    error: NotClosedError | None = None
    for _ in range(DRAWS):
        try:
            q = _project(tree, draw(), np.arange(tree.nv))
        except NotClosedError as failed:
            error = failed if error is None or failed.gap < error.gap else error
            continue
        beyond = _beyond_limits(tree, q)
        if not beyond:
            return q
        outside.append((beyond, q))
        if len(outside) > DRAWS // 10:
            break
    if not outside:
        assert error is not None
        raise error
    return min(outside, key=lambda found: found[0])[1]


def _project(tree: KinematicTree, q: Floats, moving: Indices) -> Floats:
    """Return the closed configuration next to one, by moving some freedoms."""
    at = positions(tree, q)
    gap = gaps(at)
    for _ in range(STEPS if len(gap) else 0):
        size = float(np.linalg.norm(gap))
        step = np.zeros(tree.nv)
        step[moving] = -np.linalg.lstsq(gap_rate(at)[:, moving], gap, LEAST_SHARE)[0]
        step *= min(1.0, 1.0 / max(np.abs(step).max(initial=0.0), 1e-300))  # at most a radian, or a metre, at a time
        for _ in range(HALVINGS):
            tried = tree.integrate(q, step)
            at_tried = positions(tree, tried)
            found = gaps(at_tried)
            if np.linalg.norm(found) < size:
                break
            step = step / 2
        else:
            break
        q, at, gap = tried, at_tried, found
    if np.abs(gap).max(initial=0.0) > CLOSED:
        raise _not_closed(tree, np.abs(gap), "stays open by", " at the least")
    return q


def _not_closed(tree: KinematicTree, sizes: Floats, does: str, unit: str) -> NotClosedError:
    """Return the error that names what is open by sizes (rows,) of all gaps."""
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
    """Return how far joints are beyond their room [rad or m]; 0 where none is."""
    beyond = 0.0
    for joint, s in zip(tree.joints, tree.q_slices, strict=True):
        low, high = joint.room
        if joint.nq == 1:
            beyond = max(beyond, float(low - q[s.start]), float(q[s.start] - high))
    return beyond

"""The Jacobian of a frame and its derivative, in the frame's own coordinates.

Source: RBDA (2.59), ch. 4.3; Echeandia and Wensing (28), and the body terms of (30) and (31).
"""

from __future__ import annotations

from collections.abc import Iterator

from numpy.typing import ArrayLike

from nori_dyn.algebra.crossing import as_transform
from nori_dyn.algebra.spatial import Transform, cross_motion, spread, zeros
from nori_dyn.model.kinematics import Kinematics, positions, velocities
from nori_dyn.model.paths import path
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.state import arguments
from nori_dyn.typing import Array


def jacobian(tree: KinematicTree, q: ArrayLike, frame: str) -> Array:
    """J of a frame: its spatial velocity is v = J qd, angular first, in the frame's coordinates.

    A wrench w on the frame, in the same coordinates, acts on the joints as J^T w.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        frame: name of a link or frame.

    Returns:
        J (6, nv, ...); zero for a frame that is fixed to the world.

    Raises:
        UnknownModelNameError: no link or frame has that name.
        InputError: a wrong shape, or a number that is not finite.

    Source: RBDA (2.59); v = J qd is Nori (2).

    Example:
        >>> arm = nd.autotree(2)
        >>> nd.jacobian(arm, np.zeros(2), "link2").round(3) + 0.0
        array([[0., 0.],
               [0., 0.],
               [1., 1.],
               [0., 0.],
               [1., 0.],
               [0., 0.]])
    """
    (q,) = arguments(tree, q=q)
    at = positions(tree, q)
    J = zeros((6, tree.nv), q)
    for i, X in _to_frame(at, frame):
        J[:, tree.v_slices[i]] = X.apply_motion(_axes(at, i, q))
    return J


def jacobian_rate(tree: KinematicTree, q: ArrayLike, qd: ArrayLike, frame: str) -> Array:
    """The derivative of each number of J along a motion; the frame's acceleration is J qdd + Jdot qd.

    That is the spatial acceleration, gravity not included, in the frame's coordinates, which move: J-ring of Echeandia
    and Wensing (31). Their Jdot of (30), and RBDA's, is J-ring + (v x) J.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s].
        frame: name of a link or frame.

    Returns:
        Jdot (6, nv, ...).

    Raises:
        UnknownModelNameError: no link or frame has that name.
        InputError: a wrong shape, or a number that is not finite.

    Source: own derivation from X_i S_i, whose derivative is X_i (v_i x S_i + S-ring_i) - v x X_i S_i
    (tests/unit/recursions/test_minverse.py).
    """
    q, qd = arguments(tree, q=q, qd=qd)
    at = velocities(tree, q, qd)
    rate = zeros((6, tree.nv), q)
    way = dict(_to_frame(at, frame))
    if not way:
        return rate
    body, X = next(iter(way.items()))
    v = X.apply_motion(at.v[body])
    for i, X in way.items():
        S, part = _axes(at, i, q), tree.v_slices[i]
        S_ring = spread(tree.joints[i].S_rate(q[tree.q_slices[i]], qd[part]), S.shape[:2], q.shape[1:])
        turning = cross_motion(at.v[i][:, None], S) + S_ring
        rate[:, part] = X.apply_motion(turning) - cross_motion(v[:, None], X.apply_motion(S))
    return rate


def _axes(at: Kinematics, i: int, q: Array) -> Array:
    """The motion subspace of a joint (6, n_i, ...), over the batch axes of q."""
    return spread(at.S[i], (6, at.tree.joints[i].nv), q.shape[1:])


def _to_frame(at: Kinematics, frame: str) -> Iterator[tuple[int, Transform]]:
    """Yield the body of a frame and all that carry it, each with the transform from it to the frame."""
    found = at.tree.frame(frame)
    if found.on_world:
        return
    X = found.X
    for i in path(at.tree.parents, found.link):
        yield i, X
        X = X @ as_transform(at.X_up[i])

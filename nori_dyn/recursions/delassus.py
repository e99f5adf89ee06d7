"""The Delassus matrix of frames, and its inverse, the operational-space inertia: how frames move that are pushed.

With H = L^T D L it is Y^T D^-1 Y, Y = L^-T J^T, which has a tree's zeros: a frame's columns reach its own way to the
world alone, and two frames see each other in what both ways share.

Source: Featherstone, Exploiting sparsity in operational-space dynamics, International Journal of Robotics Research 29
(2010), for the factors; Delassus, Memoire sur la theorie des liaisons finies unilaterales (1917), for the matrix.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.rows import combination, divided
from nori_dyn.algebra.spatial import transpose, zeros
from nori_dyn.errors import InputError, NotPositiveDefiniteError, SingularSystemError, UnknownNameError
from nori_dyn.model.joints import MOTION
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.crba import inertia_factors
from nori_dyn.recursions.factorisation import forward_rows, inverse
from nori_dyn.recursions.jacobian import jacobian
from nori_dyn.recursions.sparsity import expanded_parents
from nori_dyn.recursions.state import arguments
from nori_dyn.typing import Array


def delassus(
    tree: KinematicTree, q: ArrayLike, frames: str | Sequence[str], components: Sequence[str] = MOTION
) -> Array:
    """J H^-1 J^T: the accelerations of frames for unit wrenches on them, for nothing else acts.

    Wrenches f at joint forces tau give frames the acceleration J qdd_free + Jdot qd + J H^-1 J^T f, with qdd_free that
    without them.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        frames: names of links or frames, one after the other.
        components: which components of each, in its own coordinates, of wx, wy, wz, ax, ay, az in this order: all, or
            ax, ay, az of a point that is touched.

    Returns:
        (m, m, ...), symmetric [rad/s^2, m/s^2 for N m, N], m numbers of all frames.

    Raises:
        UnknownModelNameError: no link or frame has that name.
        UnknownNameError: there is no such component.
        InputError: a wrong shape, a number that is not finite, no frame.
        SingularSystemError: a joint moves no inertia: names it.
        UnsupportedComponentError: the robot has a loop, or another component that the recursions do not take in.

    Example:
        >>> arm = nd.autotree(2)
        >>> print(np.round(nd.recursions.delassus(arm, np.array([0.3, 0.5]), "link2", ["ax", "ay"]), 2))
        [[0.3  0.55]
         [0.55 1.01]]
    """
    (q,) = arguments(tree, q=q)
    J = _rows(tree, q, [frames] if isinstance(frames, str) else list(frames), components)
    parents, factors = expanded_parents(tree), inertia_factors(tree, q)
    Y = forward_rows(factors, parents, transpose(J))
    scaled = [divided(row, D_k) for row, D_k in zip(Y, factors.D, strict=True)]
    A = zeros((len(J), len(J)), q)
    for i in range(len(J)):
        later = slice(i, len(J))
        A[i, later] = A[later, i] = combination(A[i], [row[i] for row in Y], scaled, later)[later]
    return A


def operational_space_inertia(
    tree: KinematicTree, q: ArrayLike, frames: str | Sequence[str], components: Sequence[str] = MOTION
) -> Array:
    """(J H^-1 J^T)^-1 (m, m, ...): the wrenches that give frames unit accelerations; see `delassus`.

    Raises:
        SingularSystemError: the frames cannot be accelerated in all directions at this configuration.

    Source: Khatib, A unified approach for motion and force control of robot manipulators, IEEE Journal on Robotics and
    Automation 3 (1987).
    """
    try:
        return inverse(delassus(tree, q, frames, components))
    except NotPositiveDefiniteError:
        named = frames if isinstance(frames, str) else ", ".join(frames)
        raise SingularSystemError(
            f"{named}: no joint forces accelerate all of {', '.join(components)} at this configuration. Ask for fewer "
            "components, or for another configuration."
        ) from None


def _rows(tree: KinematicTree, q: Array, frames: Sequence[str], components: Sequence[str]) -> Array:
    """The Jacobians of frames, one after the other, of some components (m, nv, ...)."""
    for name in components:
        if name not in MOTION:
            raise UnknownNameError("component", name, MOTION)
    if not frames or not components:
        raise InputError("name a frame, and a component.")
    places = [MOTION.index(name) for name in components]
    return np.concatenate([jacobian(tree, q, frame)[places] for frame in frames])

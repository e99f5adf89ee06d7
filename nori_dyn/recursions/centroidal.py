"""The centre of mass, the centroidal momentum, and the point about which the ground's forces tip nothing.

Source: Orin, Goswami and Lee, Centroidal dynamics of a humanoid robot, Autonomous Robots 35, 2013; Sardain and
Bessonnet, Forces acting on a biped robot, IEEE Transactions on Systems, Man, and Cybernetics A 34, 2004.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.spatial import cross, matvec, scaled, spread
from nori_dyn.errors import InputError, ModelError
from nori_dyn.model.centroid import centroidal_frame, mass_of
from nori_dyn.model.kinematics import positions, velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.state import arguments
from nori_dyn.typing import Array


class CentroidalDynamics(NamedTuple):
    """The centre of mass and the momentum about it, along axes of the world.

    The Jacobian of the centre of mass is the linear part of A over the mass.

    Attributes:
        com: the centre of mass (3, ...) [m].
        com_velocity: its velocity (3, ...) [m/s].
        A: the centroidal momentum matrix (6, nv, ...), angular first.
        h: the centroidal momentum A qd (6, ...) [kg m^2/s, kg m/s].
        bias: dA/dt qd (6, ...), so that the rate of the momentum is A qdd + bias [N m, N].
    """

    com: Array
    com_velocity: Array
    A: Array
    h: Array
    bias: Array


def centroidal(tree: KinematicTree, q: ArrayLike, qd: ArrayLike | None) -> CentroidalDynamics:
    """The centre of mass, its velocity, and the centroidal momentum with its matrix.

    Rotors have no part in it. Loops may be there: q is that of the tree.

    Args:
        tree: the robot.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        qd: velocity (nv, ...) [rad/s, m/s]; zero when None.

    Raises:
        ModelError: the robot has no mass.
        InputError: a wrong shape, or a number that is not finite.

    Source: Orin, Goswami and Lee for A and h; own derivation of the bias (tests/unit/recursions/test_centroidal.py).

    Example:
        >>> arm = nd.autotree(2)
        >>> found = nd.recursions.centroidal(arm, np.zeros(2), np.ones(2))
        >>> print(found.com.round(2), found.com_velocity.round(2))
        [1. 0. 0.] [0.   1.25 0.  ]
    """
    q, qd = arguments(tree, q=q, qd=qd)
    frame = centroidal_frame(velocities(tree, q, qd))
    A = frame.momentum_matrix
    h = matvec(A, qd)
    return CentroidalDynamics(frame.com, h[3:] / mass_of(tree), A, h, frame.momentum_bias)


def momentum_rate(tree: KinematicTree, q: ArrayLike, fx: ArrayLike) -> Array:
    """The rate of the centroidal momentum of a floating robot (6, ...): external wrenches and weight [N m, N].

    Args:
        tree: a robot with a floating base: every root is on a free joint.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N], as an estimate gives them.

    Raises:
        ModelError: the robot has no mass, or a base that is held.
        InputError: a wrong shape, or a number that is not finite.

    Source: own derivation (tests/unit/recursions/test_centroidal.py).
    """
    _, wrench = _external(tree, q, fx)
    weight = scaled(mass_of(tree), np.array([0.0, 0.0, 0.0, *tree.gravity]))
    return wrench + spread(weight, (6,), wrench.shape[1:])


def zmp(tree: KinematicTree, q: ArrayLike, fx: ArrayLike, height: float = 0.0) -> Array:
    """The zero-moment point (3, ...) [m]: there external wrenches have no couple but about the vertical.

    Without any other contact it is the centre of pressure of level ground. In free fall it is nowhere: nan or inf.

    Args:
        tree: a robot with a floating base: every root is on a free joint.
        q: configuration (nq, ...) [rad, m], over any scalar; batch axes last.
        fx: external wrenches (n_links, 6, ...), couple first, link coordinates [N m, N], as an estimate gives them.
        height: of the ground, against gravity, from the origin of the world [m].

    Raises:
        ModelError: the robot has no mass, a base that is held, or no gravity.
        InputError: a wrong shape, or a number that is not finite.

    Source: own derivation from its definition by Sardain and Bessonnet (tests/unit/recursions/test_centroidal.py).

    Example:
        >>> body = nd.tools.random_tree(1, seed=0, kinds=("free",))
        >>> q = body.neutral_configuration()
        >>> wrench = nd.rnea(body, q, np.zeros(6), np.zeros(6))[None]  # what carries it
        >>> com = nd.recursions.centroidal(body, q, None).com
        >>> bool(np.allclose(nd.recursions.zmp(body, q, wrench)[:2], com[:2]))
        True
    """
    if not np.isfinite(height):
        raise InputError(f"the height is {height}: it must be finite.")
    size = float(np.linalg.norm(tree.gravity))
    if size == 0.0:
        raise ModelError(f"robot '{tree.name}' has no gravity, and so no ground that is level.")
    com, wrench = _external(tree, q, fx)
    up = spread(-np.array(tree.gravity) / size, (3,), wrench.shape[1:])
    above, carried = height - (up * com).sum(axis=0), (up * wrench[3:]).sum(axis=0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(com + (cross(up, wrench[:3]) + scaled(above, wrench[3:])) / np.asarray(carried))


def _external(tree: KinematicTree, q: ArrayLike, fx: ArrayLike) -> tuple[Array, Array]:
    """The centre of mass (3, ...), and all external wrenches about it, along axes of the world (6, ...)."""
    held = [tree.joint_names[i] for i, j in enumerate(tree.joints) if tree.is_root(i) and j.kind != "free"]
    if held:
        raise ModelError(
            f"robot '{tree.name}' is held to the world by joint '{held[0]}', whose force is among those from outside: "
            "load the robot with base='floating'."
        )
    q, fx = arguments(tree, q=q, fx=fx)
    frame = centroidal_frame(positions(tree, q))
    total = 0 * fx[0]
    for X, wrench in zip(frame.X, fx, strict=True):
        total = total + X.force_to_parent(wrench)
    return frame.com, total

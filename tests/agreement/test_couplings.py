"""Coupled joints against the same robot in reduced coordinates."""

from collections.abc import Callable

import numpy as np

from nori_dyn.components import Coupling
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions import bias_force, crba
from tests.mechanisms import forward_dynamics
from tests.oracles import derivative
from tests.tolerances import SOLVED, assert_close

Position = Callable[[np.ndarray], float]


def mimic(q) -> float:
    return 0.3 - 1.4 * q[1]


def curve(q) -> float:
    return 0.1 + 0.5 * q[1] - 0.3 * q[1] ** 2 + 0.2 * q[1] ** 3


def differential(q) -> float:
    return 0.5 * q[2] - 0.5 * q[5]


def nonlinear_sum(q) -> float:
    return -0.2 * q[0] + 0.4 * q[2] ** 2


COUPLED: dict[int, tuple[Position, Coupling]] = {
    7: (mimic, Coupling(name="mimic", joint="joint8", of={"joint2": -1.4}, offset=0.3)),
    6: (differential, Coupling(name="differential", joint="joint7", of={"joint3": 0.5, "joint6": -0.5})),
    4: (nonlinear_sum, Coupling(name="sum", joint="joint5", of={"joint1": -0.2, "joint3": [0.0, 0.4]})),
    3: (curve, Coupling(name="curve", joint="joint4", of={"joint2": [0.5, -0.3, 0.2]}, offset=0.1)),
}
"""What joints follow, by the number of their freedom."""


def test_coupled_joints_move_as_in_reduced_coordinates():
    """G^T H G x'' + G^T (C + H G' x') = G^T tau, q = g(x) and G its slope by differences."""
    bare = random_tree(8, seed=41, kinds=("revolute", "prismatic", "revolute"), chain=0.6)
    tree = bare.replace(components=tuple(coupling for _, coupling in COUPLED.values()))
    free = [k for k in range(tree.nv) if k not in COUPLED]

    def whole(x) -> np.ndarray:
        q = np.zeros(tree.nv)
        q[free] = x
        for k, (position, _) in COUPLED.items():
            q[k] = position(q)
        return q

    rng = np.random.default_rng(0)
    x, dx, tau = rng.normal(size=len(free)), rng.normal(size=len(free)), 10 * rng.normal(size=tree.nv)
    G = np.array([derivative(lambda t, e=e: whole(x + t * e)) for e in np.eye(len(free))]).T
    bend = derivative(lambda s: derivative(lambda t: whole(x + (s + t) * dx)))
    q, qd = whole(x), G @ dx
    H, C = crba(bare, q), bias_force(bare, q, qd)
    qdd = G @ np.linalg.solve(G.T @ H @ G, G.T @ (tau - C - H @ bend)) + bend
    found, forces = forward_dynamics(tree, q, qd, tau)
    assert_close(found, qdd, SOLVED)
    held = H @ qdd + C - tau
    found = np.concatenate([forces[f"coupling:{coupling.name}"] for _, coupling in COUPLED.values()])
    assert_close(found, held[list(COUPLED)], SOLVED)

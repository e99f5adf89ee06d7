"""Random mixed trees: Lagrange's equations by differences, the balance of power, Newton's and Euler's laws."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import JOINTS
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.oracles import Lagrangian, derivative, newton_euler
from tests.tolerances import (
    DIFFERENCES,
    EXTENDED,
    RECURSION,
    assert_close,
)
from tests.trees import TREES, random_state

MOVABLE = tuple(name for name in TREES if name != "massless")
"""Trees with forward dynamics."""

SINGLE = tuple(kind for kind in JOINTS if kind != "fixed")
LARGE = {"30 bodies": 0.0, "chain of 30": 1.0}
FEW = ("one_free_body", "three_children", "massless", "two_roots", "fixed_joints", "mixed_12", "30 bodies")
"""Trees that have every kind of joint together."""


@cache
def tree_of(name: str) -> KinematicTree:
    if name in TREES:
        return TREES[name]
    return random_tree(30, 91, chain=LARGE[name]) if name in LARGE else random_tree(3, seed=60, kinds=(name,))


def every(*names: str) -> pytest.MarkDecorator:
    cases = [pytest.param(name, marks=[] if name in FEW else pytest.mark.long) for name in names]
    return pytest.mark.parametrize("tree", cases, indirect=True)


@pytest.fixture
def tree(request) -> KinematicTree:
    return tree_of(request.param)


def test_every_kind_of_joint_is_tried():
    assert {joint.kind for name in FEW for joint in tree_of(name).joints} == set(JOINTS)


@cache
def system(tree: KinematicTree, known: str) -> System:
    rows = [{"type": known, "joints": "all"}, {"type": "external_wrench", "links": "all"}]
    return System(tree, SensorSet.from_dict({"name": known, "measurements": rows}))


def solve(bound: System, q, qd, y) -> np.ndarray:
    """Return d of D d + b = 0."""
    return spla.spsolve(bound.D(q).tocsc(), -bound.b(q, qd, y))


def gather(bound: System, d: np.ndarray, kind: str) -> np.ndarray:
    return np.concatenate([d[v.slice] for v in bound.variables if v.kind == kind])


def inverse(tree: KinematicTree, q, qd, qdd, fx=None) -> np.ndarray:
    """Return tau (nv,) of the system with known joint accelerations."""
    bound, fx = system(tree, "joint_acceleration"), np.zeros((tree.n_links, 6)) if fx is None else fx
    return gather(bound, solve(bound, q, qd, np.r_[qdd, fx.ravel()]), "tau")


def forward(tree: KinematicTree, q, qd, tau, fx=None) -> np.ndarray:
    """Return qdd (nv,) of the system with known joint torques."""
    bound, fx = system(tree, "joint_torque"), np.zeros((tree.n_links, 6)) if fx is None else fx
    return gather(bound, solve(bound, q, qd, np.r_[tau, fx.ravel()]), "qdd")


def inertia_by_columns(tree: KinematicTree, q) -> np.ndarray:
    """Return H (nv, nv): the torques of unit accelerations, without velocity and gravity."""
    floating = tree.replace(gravity=(0.0, 0.0, 0.0))
    bound, zero = system(floating, "joint_acceleration"), np.zeros(tree.nv)
    Y = np.r_[np.eye(tree.nv), np.zeros((6 * tree.n_links, tree.nv))]
    B = np.column_stack([bound.b(q, zero, y) for y in Y.T])
    d = spla.splu(bound.D(q).tocsc()).solve(-B)
    return np.array([gather(bound, column, "tau") for column in d.T]).T


@every(*TREES, *SINGLE)
def test_torques_are_those_of_lagranges_equations(tree):
    q, qd, qdd, _ = random_state(tree, 1)
    assert_close(inverse(tree, q, qd, qdd), Lagrangian(tree, q).torques(qd, qdd), EXTENDED)


@every(*TREES, *SINGLE, *LARGE)
def test_all_variables_are_those_of_newton_and_euler_in_the_world(tree):
    q, qd, qdd, fx = random_state(tree, 2)
    truth = newton_euler(tree, q, qd, qdd, fx)
    bound = system(tree, "joint_acceleration")
    assert_close(solve(bound, q, qd, np.r_[qdd, fx.ravel()]), truth.d(bound), RECURSION)


@every(*MOVABLE, *LARGE)
def test_forward_dynamics_solves_the_equation_of_motion(tree):
    """H qdd + C = tau, H by columns and C by inverse dynamics of the same system: backward error."""
    q, qd, tau, fx = random_state(tree, 5)
    qdd = forward(tree, q, qd, tau, fx)
    H, C = inertia_by_columns(tree, q), inverse(tree, q, qd, 0 * qd, fx)
    scale = np.abs(H).sum(axis=1).max() * np.abs(qdd).max() + np.abs(C).max()
    assert np.abs(H @ qdd + C - tau).max() <= RECURSION.value * scale


@every(*MOVABLE)
def test_power_is_the_rate_of_energy(tree):
    """d/dt (T + V) = tau . qd + sum fx . v, along the motion that forward dynamics gives."""
    q, qd, tau, fx = random_state(tree, 6)
    qdd = forward(tree, q, qd, tau, fx)

    def energy(t: float) -> float:
        state = tree.integrate(q, qd, t), qd + t * qdd
        moment = newton_euler(tree, *state, 0 * qd, 0 * fx)
        return moment.kinetic + moment.potential

    now = newton_euler(tree, q, qd, qdd, fx)
    rate = float(derivative(energy, 1e-2 / max(1.0, np.abs(qdd).max())))
    size = np.abs(tau * qd).sum() + abs(now.power) + abs(energy(0.0)) * max(1.0, np.abs(qdd).max())
    assert abs(rate - now.power) <= DIFFERENCES.value * size

"""Mechanisms with closed loops against Pinocchio's constrained dynamics, closed forms by hand, and MuJoCo."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.algebra.spatial import Transform
from nori_dyn.components import Loop
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.mechanisms import (
    cassie,
    cassie_leg,
    cassie_on_one_foot,
    closed_state,
    delta,
    five_bar,
    four_bar,
    sprung_leg,
    stewart,
    welded_limbs,
)
from tests.pinocchio_loops import constrained_dynamics
from tests.tolerances import SOLVED, assert_close

MECHANISMS = {
    make.__name__: make
    for make in (four_bar, five_bar, sprung_leg, delta, stewart, cassie, cassie_leg, cassie_on_one_foot)
}
every_mechanism = pytest.mark.parametrize("make", MECHANISMS.values(), ids=MECHANISMS)


def forward(tree: KinematicTree, q, qd, tau) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    """Return qdd (nv,) and all that components add, by name, of forward dynamics."""
    system = System(tree, sensors("forward_dynamics"))
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, tau))
    qdd = np.concatenate([d[v.slice] for v in system.variables if v.kind == "qdd"])
    return qdd, {v.name: d[v.slice] for v in system.variables if v.key.component}


def check_against_pinocchio(tree: KinematicTree, q, qd, tau) -> None:
    qdd, forces = forward(tree, q, qd, tau)
    expected, wrenches = constrained_dynamics(tree, q, qd, tau)
    assert_close(qdd, expected, SOLVED)
    for loop in tree.components:
        if isinstance(loop, Loop):
            assert_close(forces[f"loop:{loop.name}"], loop.subspace()[0].T @ wrenches[loop.name], SOLVED)


@every_mechanism
def test_forward_dynamics_and_wrenches_of_loops_equal_pinocchio(make):
    tree = make()
    for seed in range(5):
        check_against_pinocchio(tree, *closed_state(tree, seed))


BAUMGARTE = {"position": 60.0, "velocity": 12.0}


@pytest.mark.parametrize("constrains", ["point", "pose"])
def test_stabilised_loops_equal_pinocchios_correctors(constrains):
    """Off the closed configurations by a gap, and by a velocity that widens it."""
    tree = welded_limbs(constrains, BAUMGARTE)
    rng = np.random.default_rng(3)
    for seed, gap in enumerate((0.0, 1e-6, 0.05)):
        q, qd, tau = closed_state(tree, seed)
        q = tree.integrate(q, gap * rng.normal(size=tree.nv))
        check_against_pinocchio(tree, q, qd + gap * rng.normal(size=tree.nv), tau)


@pytest.mark.parametrize("constrains", ["point", "pose"])
def test_welded_limbs_equal_pinocchio(constrains):
    tree = welded_limbs(constrains)
    for seed in range(5):
        check_against_pinocchio(tree, *closed_state(tree, seed))

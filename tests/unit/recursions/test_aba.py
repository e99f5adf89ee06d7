"""Forward and hybrid dynamics on every kind of joint: what a textbook's joint forces cause."""

from itertools import product

import numpy as np
import pytest

from nori_dyn.errors import SingularSystemError, UnknownModelNameError
from nori_dyn.recursions.aba import aba, hybrid_dynamics
from nori_dyn.recursions.crba import inertia_forward_dynamics
from tests.oracles import newton_euler
from tests.tolerances import ROUNDING, SOLVED, assert_close
from tests.trees import TREES, massless
from tests.unit.recursions.test_rnea import motions

HEAVY = [name for name in TREES if name != "massless"]


@pytest.mark.parametrize("name", HEAVY)
def test_accelerations_are_those_of_the_forces(name):
    tree, (truth, _) = TREES[name], motions(name)
    q, qd, qdd = truth.q[:, 0], truth.qd[:, 0], truth.qdd[:, 0]
    tau = newton_euler(tree, q, qd, qdd, np.zeros((tree.n_links, 6))).tau
    for algorithm in (aba, inertia_forward_dynamics):
        assert_close(algorithm(tree, truth.q, truth.qd, truth.tau, truth.fx), truth.qdd, SOLVED)
        assert_close(algorithm(tree, q, qd, tau), qdd, SOLVED)


@pytest.mark.parametrize("name", TREES)
def test_hybrid_dynamics_swaps_known_and_unknown(name):
    """With all joints led it is inverse dynamics, with none forward dynamics."""
    tree, (truth, _) = TREES[name], motions(name)
    rng = np.random.default_rng(0)
    for share in (0.0, 0.5, 0.5, 0.5, 1.0) if name in HEAVY else (1.0,):
        led = [joint for joint in tree.joint_names if rng.random() < share]
        tau, qdd = truth.tau.copy(), truth.qdd.copy()
        for joint in tree.joint_names:
            unread = tau if joint in led else qdd
            unread[tree.v_slices[tree.joint(joint)]] = 1e3
        given = None if share == 1 else tau, None if share == 0 else qdd
        found = hybrid_dynamics(tree, truth.q, truth.qd, *given, led, truth.fx)
        assert_close(found.tau, truth.tau, SOLVED if share else ROUNDING)
        assert_close(found.qdd, truth.qdd, ROUNDING if share == 1 else SOLVED)


def test_a_joint_that_moves_no_inertia_is_named():
    tree, (truth, _) = massless(), motions("massless")
    for algorithm, k in product((aba, inertia_forward_dynamics), (0, slice(None))):
        with pytest.raises(SingularSystemError, match="joint 'joint4' moves no inertia") as raised:
            algorithm(tree, truth.q[..., k], truth.qd[..., k], truth.tau[..., k])
        assert raised.value.undetermined == ("qdd:joint4",)


def test_a_joint_that_moves_an_inertia_below_zero_is_named():
    tree, (truth, _) = TREES["autotree_chain"], motions("autotree_chain")
    I = np.array(tree.I)
    I[-1, :3, :3] -= 5 * np.eye(3)
    hurt, last = tree.replace(I=I), tree.joint_names[-1]
    for algorithm in (aba, inertia_forward_dynamics):
        with pytest.raises(SingularSystemError, match=f"joint '{last}' moves an inertia below zero \\(-4.*nearest"):
            algorithm(hurt, truth.q[..., 0], truth.qd[..., 0], truth.tau[..., 0])


def test_a_joint_that_moves_no_inertia_may_be_led_and_an_unknown_one_is_named():
    tree, (truth, _) = massless(), motions("massless")
    found = hybrid_dynamics(tree, truth.q, truth.qd, truth.tau, truth.qdd, ["joint4"], truth.fx)
    assert_close(found.qdd, truth.qdd, SOLVED)
    assert_close(found.tau, truth.tau, SOLVED)
    q = np.zeros(4)
    for name, message in (("jiont2", r"unknown moving joint 'jiont2'.*Did you mean 'joint2'"), ("link1", "'link1'")):
        with pytest.raises(UnknownModelNameError, match=message):
            hybrid_dynamics(tree, q, q, q, q, ["joint1", name])
    # What a led joint carries is no inertia of its own.
    tree = tree.replace(I=np.zeros((4, 6, 6)))
    with pytest.raises(SingularSystemError, match="joint 'joint2'"):
        hybrid_dynamics(tree, q, q, q, q, ["joint1", "joint3", "joint4"])
    assert_close(hybrid_dynamics(tree, q, q, q, np.ones(4), tree.joint_names).tau, q, ROUNDING)

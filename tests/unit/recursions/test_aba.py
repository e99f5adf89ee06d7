"""Forward and hybrid dynamics on every kind of joint: what a textbook's joint forces cause."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.errors import InputError, SingularSystemError, UnknownModelNameError
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions.aba import aba, hybrid_dynamics
from nori_dyn.recursions.crba import inertia_forward_dynamics
from tests.oracles import newton_euler
from tests.tolerances import ROUNDING, SOLVED, assert_close
from tests.trees import TREES, massless
from tests.unit.recursions.test_rnea import motions

HEAVY = [name for name in TREES if name != "massless"]


@pytest.fixture(params=HEAVY)
def case(request):
    """Return a tree and its motions."""
    return TREES[request.param], motions(request.param)[0]


@pytest.mark.parametrize("algorithm", [aba, inertia_forward_dynamics])
def test_accelerations_are_those_of_the_forces(case, algorithm):
    tree, truth = case
    assert_close(algorithm(tree, truth.q, truth.qd, truth.tau, truth.fx), truth.qdd, SOLVED)


@pytest.mark.parametrize("algorithm", [aba, inertia_forward_dynamics])
def test_without_wrenches(case, algorithm):
    tree, truth = case
    q, qd, qdd = truth.q[:, 0], truth.qd[:, 0], truth.qdd[:, 0]
    tau = newton_euler(tree, q, qd, qdd, np.zeros((tree.n_links, 6))).tau
    assert_close(algorithm(tree, q, qd, tau), qdd, SOLVED)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", HEAVY)
def test_hybrid_dynamics_swaps_known_and_unknown(name, seed):
    tree, (truth, _) = TREES[name], motions(name)
    rng = np.random.default_rng(seed)
    led = [joint for joint in tree.joint_names if rng.random() < 0.5]
    tau, qdd = truth.tau.copy(), truth.qdd.copy()
    for joint in tree.joint_names:
        unread = tau if joint in led else qdd
        unread[tree.v_slices[tree.joint(joint)]] = 1e3
    found = hybrid_dynamics(tree, truth.q, truth.qd, tau, qdd, led, truth.fx)
    assert_close(found.tau, truth.tau, SOLVED)
    assert_close(found.qdd, truth.qdd, SOLVED)


@pytest.mark.parametrize("name", TREES)
def test_all_joints_led_is_inverse_dynamics(name):
    tree, (truth, _) = TREES[name], motions(name)
    found = hybrid_dynamics(tree, truth.q, truth.qd, None, truth.qdd, tree.joint_names, truth.fx)
    assert_close(found.tau, truth.tau, SOLVED)
    assert_close(found.qdd, truth.qdd, ROUNDING)


def test_no_joint_led_is_forward_dynamics(case):
    tree, truth = case
    found = hybrid_dynamics(tree, truth.q, truth.qd, truth.tau, None, [], truth.fx)
    assert_close(found.qdd, truth.qdd, SOLVED)
    assert_close(found.tau, truth.tau, ROUNDING)


def test_accelerated_joints_in_any_collection():
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    state = (truth.q[:, 0], truth.qd[:, 0], truth.tau[:, 0], truth.qdd[:, 0])
    names = tree.joint_names[2:5]
    expected = hybrid_dynamics(tree, *state, names)
    for collection in (list(names), set(names), frozenset(names), dict.fromkeys(names), (*names, names[0])):
        assert_close(hybrid_dynamics(tree, *state, collection).qdd, expected.qdd, ROUNDING)


def test_a_batch_is_each_one(case):
    tree, truth = case
    led = tree.joint_names[1::2]
    parts = [x[..., :5] for x in (truth.q, truth.qd, truth.tau, truth.qdd)]
    batch = hybrid_dynamics(tree, *parts, led, truth.fx[..., :5])
    qdd = aba(tree, *parts[:3], truth.fx[..., :5])
    for k in range(5):
        one = hybrid_dynamics(tree, *(x[..., k] for x in parts), led, truth.fx[..., k])
        assert_close(batch.tau[:, k], one.tau, SOLVED)
        assert_close(batch.qdd[:, k], one.qdd, SOLVED)
        assert_close(qdd[:, k], aba(tree, *(x[..., k] for x in parts[:3]), truth.fx[..., k]), SOLVED)


@pytest.mark.parametrize("algorithm", [aba, inertia_forward_dynamics])
def test_two_batch_axes_are_one(case, algorithm):
    tree, truth = case
    found = algorithm(tree, *(x.reshape(*x.shape[:-1], 4, 25) for x in (truth.q, truth.qd, truth.tau, truth.fx)))
    assert_close(found, truth.qdd.reshape(tree.nv, 4, 25), SOLVED)


def test_lists_are_numbers():
    tree, (truth, _) = TREES["autotree_chain"], motions("autotree_chain")
    q, qd, tau = (x[..., 0].tolist() for x in (truth.q, truth.qd, truth.tau))
    assert_close(aba(tree, q, qd, tau, truth.fx[..., 0].tolist()), truth.qdd[:, 0], SOLVED)


def test_a_joint_that_moves_no_inertia_is_named():
    tree, (truth, _) = massless(), motions("massless")
    for k in (0, slice(None)):
        with pytest.raises(SingularSystemError, match="joint 'joint4' moves no inertia") as raised:
            aba(tree, truth.q[..., k], truth.qd[..., k], truth.tau[..., k])
        assert raised.value.undetermined == ("qdd:joint4",)


def test_a_joint_that_moves_an_inertia_below_zero_is_named():
    tree, (truth, _) = TREES["autotree_chain"], motions("autotree_chain")
    I = np.array(tree.I)
    I[-1, :3, :3] -= 5 * np.eye(3)
    hurt, last = tree.replace(I=I), tree.joint_names[-1]
    for algorithm in (aba, inertia_forward_dynamics):
        with pytest.raises(SingularSystemError, match=f"joint '{last}' moves an inertia below zero \\(-4.*nearest"):
            algorithm(hurt, truth.q[..., 0], truth.qd[..., 0], truth.tau[..., 0])


def test_a_joint_that_moves_no_inertia_may_be_led():
    tree, (truth, _) = massless(), motions("massless")
    found = hybrid_dynamics(tree, truth.q, truth.qd, truth.tau, truth.qdd, ["joint4"], truth.fx)
    assert_close(found.qdd, truth.qdd, SOLVED)
    assert_close(found.tau, truth.tau, SOLVED)


def test_what_a_led_joint_carries_is_no_inertia_of_its_own():
    tree = random_tree(3, seed=4, kinds=("revolute",), chain=1.0)
    tree = tree.replace(I=np.zeros((3, 6, 6)))
    q = np.zeros(3)
    with pytest.raises(SingularSystemError, match="joint 'joint2'"):
        hybrid_dynamics(tree, q, q, q, q, ["joint1", "joint3"])
    found = hybrid_dynamics(tree, q, q, q, np.ones(3), tree.joint_names)
    assert_close(found.tau, np.zeros(3), ROUNDING)


def test_an_unknown_joint_is_named():
    tree, q = TREES["autotree_chain"], np.zeros(5)
    with pytest.raises(UnknownModelNameError, match=r"unknown moving joint 'jiont2'.*Did you mean 'joint2'"):
        hybrid_dynamics(tree, q, q, q, q, ["joint1", "jiont2"])
    with pytest.raises(UnknownModelNameError, match="'link1'"):
        hybrid_dynamics(tree, q, q, q, q, ["link1"])


@pytest.mark.parametrize("algorithm", [aba, inertia_forward_dynamics])
@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tau": np.zeros(4)}, r"tau has shape \(4,\), expected \(5,\)"),
        ({"qd": np.zeros((1, 5))}, r"qd has shape \(1, 5\), expected \(5,\)"),
        ({"tau": np.full(5, np.nan)}, r"tau\[0\] is nan: values must be finite"),
        ({"q": np.full(5, -np.inf)}, r"q\[0\] is -inf"),
        ({"fx": np.zeros(6)}, r"fx has shape \(6,\), expected \(5, 6\)"),
        ({"tau": "none"}, "tau"),
        ({"tau": ["a"] * 5}, "tau"),
        ({"q": np.zeros((5, 2)), "tau": np.zeros((5, 3))}, r"batch axes: q \(2,\), qd \(\), tau \(3,\)"),
    ],
)
def test_bad_input_is_named(algorithm, changes, message):
    values = {"q": np.zeros(5), "qd": np.zeros(5), "tau": np.zeros(5), **changes}
    with pytest.raises(InputError, match=message):
        algorithm(TREES["autotree_chain"], **values)

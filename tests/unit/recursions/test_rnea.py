"""The recursive Newton-Euler algorithm on every kind of joint, against a textbook in world coordinates."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
from tests.oracles import Lagrangian, newton_euler
from tests.systems import Truth, random_states
from tests.tolerances import EXTENDED, RECURSION, ROUNDING, assert_close
from tests.trees import TREES

N_STATES = 100


def batch_last(x):
    return np.moveaxis(np.asarray(x), 0, -1)


@lru_cache(maxsize=32)
def motions(name: str) -> tuple[Truth, np.ndarray]:
    """Return random motions of a tree, batch axis last, with the tau and the kinetic energy (N,) of the oracle."""
    tree = TREES[name]
    states = random_states(tree, N_STATES, seed=len(name))
    found = [
        newton_euler(tree, q, qd, qdd, fx)
        for q, qd, qdd, fx in zip(states.q, states.qd, states.qdd, states.fx, strict=True)
    ]
    truth = Truth(*map(batch_last, states._replace(tau=np.array([one.tau for one in found]))))
    return truth, np.array([one.kinetic for one in found])


@pytest.fixture(params=TREES)
def case(request):
    """Return a tree and its motions."""
    return TREES[request.param], motions(request.param)[0]


def test_joint_forces_are_newtons_and_eulers(case):
    tree, truth = case
    assert_close(rnea(tree, truth.q, truth.qd, truth.qdd, truth.fx), truth.tau, RECURSION)


def test_parts_are_newtons_and_eulers(case):
    tree, truth = case
    still, weightless = np.zeros(tree.nv), tree.replace(gravity=(0.0, 0.0, 0.0))
    no_wrench = np.zeros((tree.n_links, 6))
    for k in range(5):
        q, qd, qdd, fx = truth.q[:, k], truth.qd[:, k], truth.qdd[:, k], truth.fx[..., k]
        expected = newton_euler(tree, q, still, still, no_wrench).tau
        assert_close(gravity_force(tree, q), expected, RECURSION)
        expected = newton_euler(weightless, q, qd, still, no_wrench).tau
        assert_close(coriolis_force(tree, q, qd), expected, RECURSION)
        expected = newton_euler(weightless, q, still, qdd, no_wrench).tau
        assert_close(inertial_force(tree, q, qdd), expected, RECURSION)
        assert_close(bias_force(tree, q, qd, fx), newton_euler(tree, q, qd, still, fx).tau, RECURSION)
        assert_close(bias_force(tree, q, qd), newton_euler(tree, q, qd, still, no_wrench).tau, RECURSION)


def test_gravity_force_is_the_gradient_of_the_potential(case):
    tree, truth = case
    q = truth.q[:, 0]
    assert_close(gravity_force(tree, q), Lagrangian(tree, q).gravity(), EXTENDED)


def test_gravity_may_pull_anywhere():
    tree = TREES["mixed_8"].replace(gravity=(1.0, -2.0, 3.0))
    truth, _ = motions("mixed_8")
    q, qd, qdd, fx = truth.q[:, 0], truth.qd[:, 0], truth.qdd[:, 0], truth.fx[..., 0]
    assert_close(rnea(tree, q, qd, qdd, fx), newton_euler(tree, q, qd, qdd, fx).tau, RECURSION)


def test_a_batch_is_each_one(case):
    tree, truth = case
    batch = rnea(tree, truth.q[:, :5], truth.qd[:, :5], truth.qdd[:, :5], truth.fx[..., :5])
    for k in range(5):
        one = rnea(tree, truth.q[:, k], truth.qd[:, k], truth.qdd[:, k], truth.fx[..., k])
        assert one.shape == (tree.nv,)
        assert_close(batch[:, k], one, RECURSION)


def test_two_batch_axes_are_one(case):
    tree, truth = case
    found = rnea(tree, *(x.reshape(*x.shape[:-1], 4, 25) for x in (truth.q, truth.qd, truth.qdd, truth.fx)))
    assert_close(found, truth.tau.reshape(tree.nv, 4, 25), RECURSION)


def test_a_batch_of_one_or_none_keeps_its_axis():
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    for n in (0, 1):
        found = rnea(tree, truth.q[:, :n], truth.qd[:, :n], truth.qdd[:, :n])
        assert found.shape == (tree.nv, n)


def test_what_has_no_batch_axis_is_the_same_for_all():
    tree, (truth, _) = TREES["mixed_8"], motions("mixed_8")
    found = rnea(tree, truth.q[:, 0], truth.qd, truth.qdd[:, 0], truth.fx[..., 0])
    for k in range(5):
        expected = newton_euler(tree, truth.q[:, 0], truth.qd[:, k], truth.qdd[:, 0], truth.fx[..., 0]).tau
        assert_close(found[:, k], expected, RECURSION)


def test_lists_and_integers_are_numbers():
    tree, (truth, _) = TREES["autotree_branched"], motions("autotree_branched")
    q, qd, qdd = truth.q[:, 0], truth.qd[:, 0], truth.qdd[:, 0]
    assert_close(rnea(tree, q.tolist(), tuple(qd.tolist()), qdd.tolist()), rnea(tree, q, qd, qdd), ROUNDING)
    whole = [1, 0, -1, 2, 0, 1, 3]
    assert_close(rnea(tree, whole, whole, whole), rnea(tree, *[np.array(whole, dtype=float)] * 3), ROUNDING)
    objects = np.array(q.tolist(), dtype=object)
    assert_close(rnea(tree, objects, qd, qdd), rnea(tree, q, qd, qdd), ROUNDING)


def test_arguments_are_not_changed():
    tree, (truth, _) = TREES["two_roots"], motions("two_roots")
    before = [x.copy() for x in truth]
    rnea(tree, truth.q, truth.qd, truth.qdd, truth.fx)
    for x, old in zip(truth, before, strict=True):
        assert np.array_equal(x, old)


def test_quaternions_close_to_unit_length_are_normalised():
    tree, (truth, _) = TREES["two_roots"], motions("two_roots")
    q = truth.q.copy()
    for part in tree.quaternions:
        q[part] *= 1 + 5e-4
    assert_close(rnea(tree, q, truth.qd, truth.qdd, truth.fx), truth.tau, RECURSION)


def entry(value):
    """Return a change of an array: one entry."""

    def change(x):
        x = x.copy()
        x[(0,) * x.ndim] = value
        return x

    return change


BAD = {
    "q short": ({"q": lambda x: x[:-1]}, r"q has shape \(\d+,\), expected \(\d+,\)"),
    "q a number": ({"q": lambda x: 0.5}, r"q has shape \(\), expected"),
    "qd long": ({"qd": lambda x: np.append(x, 0.0)}, r"qd has shape \(\d+,\), expected \(\d+,\)"),
    "qdd first axis": ({"qdd": lambda x: x[None]}, r"qdd has shape \(1, \d+\), expected \(\d+,\)"),
    "fx by components": ({"fx": lambda x: x.T}, r"fx has shape \(6, 5\), expected \(5, 6\)"),
    "q NaN": ({"q": entry(np.nan)}, r"q\[0\] is nan: values must be finite"),
    "qd infinite": ({"qd": entry(np.inf)}, r"qd\[0\] is inf: values must be finite"),
    "fx NaN": ({"fx": entry(np.nan)}, r"fx\[0, 0\] is nan: values must be finite"),
    "qdd a string": ({"qdd": lambda x: "still"}, "qdd"),
    "qdd strings": ({"qdd": lambda x: ["a"] * len(x)}, "qdd"),
    "q strings among numbers": ({"q": lambda x: np.array([*x[:-1], "a"], dtype=object)}, "q is not an array"),
    "q ragged": ({"q": lambda x: [[0.0], *x[1:]]}, "q is not an array"),
    "q a dictionary": ({"q": lambda x: {"joint1": 0.0}}, "q"),
    "quaternion": ({"q": lambda x: x * 1.1}, r"q: the quaternion \(x, y, z, w\) of joint 'joint\d'.* instead of 1"),
    "batches": (
        {"q": lambda x: np.stack([x] * 3, -1), "qd": lambda x: np.stack([x] * 4, -1)},
        r"differ in their batch axes: q \(3,\), qd \(4,\)",
    ),
    "numbers of batch axes": (
        {"q": lambda x: np.stack([x] * 3, -1), "qd": lambda x: x[:, None, None] * np.ones((1, 3, 3))},
        r"differ in their batch axes: q \(3,\), qd \(3, 3\)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    tree, (truth, _) = TREES["two_roots"], motions("two_roots")
    values = {what: getattr(truth, what)[..., 0] for what in ("q", "qd", "qdd", "fx")}
    changes, message = BAD[name]
    for what, change in changes.items():
        values[what] = change(values[what])
    with pytest.raises(InputError, match=message):
        rnea(tree, **values)


def test_one_bad_number_of_a_batch_is_found():
    tree, (truth, _) = TREES["two_roots"], motions("two_roots")
    qd = truth.qd.copy()
    qd[2, 70] = np.nan
    with pytest.raises(InputError, match=r"qd\[2, 70\] is nan"):
        rnea(tree, truth.q, qd, truth.qdd)
    q = truth.q.copy()
    q[tree.quaternions[1], 42] *= 2
    with pytest.raises(InputError, match=r"joint 'joint\d'.* has length 2 instead of 1"):
        rnea(tree, q, truth.qd, truth.qdd)

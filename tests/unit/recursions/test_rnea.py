"""Newton's and Euler's recursion, and the inertia matrix, on every kind of joint against a textbook."""

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.rnea import bias_force, coriolis_force, gravity_force, inertial_force, rnea
from tests.oracles import inertia_matrix, newton_euler
from tests.systems import Truth, random_states
from tests.tolerances import EXACT, RECURSION, assert_close
from tests.trees import TREES

N_STATES = 20


def batch_last(x):
    return np.moveaxis(np.asarray(x), 0, -1)


@lru_cache(maxsize=32)
def motions(name: str) -> tuple[Truth, np.ndarray]:
    """Random motions of a tree, batch axis last, with the tau and the kinetic energy (N,) of the oracle."""
    tree = TREES[name]
    states = random_states(tree, N_STATES, seed=len(name))
    found = [
        newton_euler(tree, q, qd, qdd, fx)
        for q, qd, qdd, fx in zip(states.q, states.qd, states.qdd, states.fx, strict=True)
    ]
    truth = Truth(*map(batch_last, states._replace(tau=np.array([one.tau for one in found]))))
    return truth, np.array([one.kinetic for one in found])


@pytest.mark.parametrize("name", TREES)
def test_joint_forces_and_their_parts_are_newtons_and_eulers(name):
    tree, (truth, _) = TREES[name], motions(name)
    assert_close(rnea(tree, truth.q, truth.qd, truth.qdd, truth.fx), truth.tau, RECURSION)
    still, weightless = np.zeros(tree.nv), tree.replace(gravity=(0.0, 0.0, 0.0))
    no_wrench = np.zeros((tree.n_links, 6))
    for k in range(5):
        q, qd, qdd, fx = truth.q[:, k], truth.qd[:, k], truth.qdd[:, k], truth.fx[..., k]
        for found, robot, *motion in (
            (gravity_force(tree, q), tree, still, still, no_wrench),
            (coriolis_force(tree, q, qd), weightless, qd, still, no_wrench),
            (inertial_force(tree, q, qdd), weightless, still, qdd, no_wrench),
            (bias_force(tree, q, qd, fx), tree, qd, still, fx),
            (bias_force(tree, q, qd), tree, qd, still, no_wrench),
        ):
            assert_close(found, newton_euler(robot, q, *motion).tau, RECURSION)


def test_what_has_no_batch_axis_is_the_same_for_all_and_gravity_may_pull_anywhere():
    tree, (truth, _) = TREES["mixed_8"].replace(gravity=(1.0, -2.0, 3.0)), motions("mixed_8")
    found = rnea(tree, truth.q[:, 0], truth.qd, truth.qdd[:, 0], truth.fx[..., 0])
    for k in range(5):
        expected = newton_euler(tree, truth.q[:, 0], truth.qd[:, k], truth.qdd[:, 0], truth.fx[..., 0]).tau
        assert_close(found[:, k], expected, RECURSION)
    for n in (0, 1):
        assert rnea(tree, truth.q[:, :n], truth.qd[:, :n], truth.qdd[:, :n]).shape == (tree.nv, n)


def test_quaternions_close_to_unit_length_are_normalised_and_arguments_are_not_changed():
    tree, (truth, _) = TREES["two_roots"], motions("two_roots")
    q = truth.q.copy()
    for part in tree.quaternions:
        q[part] *= 1 + 5e-4
    given = [q, truth.qd, truth.qdd, truth.fx]
    before = [x.copy() for x in given]
    assert_close(rnea(tree, *given), truth.tau, RECURSION)
    assert all(map(np.array_equal, given, before))


BAD = {
    "fx by components": ({"fx": lambda x: x.T}, r"fx has shape \(6, 5\), expected \(5, 6\)"),
    "quaternion": ({"q": lambda x: x * 1.1}, r"q: the quaternion \(x, y, z, w\) of joint 'joint\d'.* instead of 1"),
    "numbers of batch axes": (
        {"q": lambda x: np.stack([x] * 3, -1), "qd": lambda x: x[:, None, None] * np.ones((1, 3, 3))},
        r"differ in their batch axes: q \(3,\), qd \(3, 3\)",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(name):
    """See test_arguments.py for what every algorithm refuses."""
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
    qd[2, 17] = np.nan
    with pytest.raises(InputError, match=r"qd\[2, 17\] is nan"):
        rnea(tree, truth.q, qd, truth.qdd)
    q = truth.q.copy()
    q[tree.quaternions[1], 12] *= 2
    with pytest.raises(InputError, match=r"joint 'joint\d'.* has length 2 instead of 1"):
        rnea(tree, q, truth.qd, truth.qdd)


@pytest.mark.parametrize("name", TREES)
def test_it_is_that_of_unit_accelerations_and_twice_the_kinetic_energy(name):
    tree, (truth, kinetic) = TREES[name], motions(name)
    H = crba(tree, truth.q)
    assert_close(crba(tree.replace(gravity=(5.0, 4.0, 3.0)), truth.q), H, EXACT)
    assert_close(H, np.stack([inertial_force(tree, truth.q, unit) for unit in np.eye(tree.nv)], axis=1), RECURSION)
    for k in range(2):
        assert_close(H[..., k], inertia_matrix(tree, truth.q[:, k]), RECURSION)
    assert_close(np.einsum("iN,ijN,jN->N", truth.qd, H, truth.qd), 2 * kinetic, RECURSION)
    assert_close(H, np.swapaxes(H, 0, 1), EXACT if max(j.nv for j in tree.joints) == 1 else RECURSION)
    smallest = np.linalg.eigvalsh(np.moveaxis(H, -1, 0)).min(axis=1)
    if name == "massless":
        assert_close(smallest, 0 * smallest, RECURSION)
    else:
        assert (smallest > 0).all()

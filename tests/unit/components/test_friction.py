"""Friction by the weight that a joint carries, and friction at rest: by Pinocchio's gravity, and by what it says."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Friction
from nori_dyn.errors import ModelError
from tests.robots import Pinocchio, load
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import PEER, SOLVED, assert_close
from tests.trees import on_a_free_base, random_state

LAW = {"joints": "all", "viscous": 0.3, "coulomb": 1.0, "width": 0.01}
MU, SCATTER = 0.07, 0.2


def test_friction_grows_with_the_weight_that_a_joint_carries_by_pinocchio():
    arm = load("ur5")
    peer, (q, qd, qdd, _) = Pinocchio.of("ur5", "fixed", arm), random_state(arm, 0)
    rest = np.zeros(arm.nv)
    loaded = arm.replace(components=[Friction(**LAW, mu=MU)])
    sign = qd / np.hypot(qd, 0.01)
    expected = peer.rnea(q, qd, qdd) + 0.3 * qd + (1.0 + MU * np.abs(peer.rnea(q, rest, rest))) * sign
    about = np.abs(expected - nd.rnea(loaded, q, qd, qdd)).max()
    assert about < 2 * MU * 1e-6, "the size of the weight is smooth over a millionth of a newton metre"
    tau = nd.rnea(loaded, q, qd, qdd)
    assert_close(nd.aba(loaded, q, qd, tau), qdd, SOLVED)
    solver = nd.plan(nd.System(loaded, "inverse_dynamics"), outputs=["tau"]).solver("numpy")
    assert_close(solver.solve(q, qd, qdd).tau, tau, SOLVED)


def test_derivatives_know_that_the_weight_depends_on_all_joints_below():
    arm = load("ur5").replace(components=[Friction(**LAW, mu=MU)])
    q, qd, qdd, _ = random_state(arm, 1)
    found = nd.recursions.rnea_derivatives(arm, q, qd, qdd)
    h = 1e-6
    by_q = np.array([nd.rnea(arm, q + h * e, qd, qdd) - nd.rnea(arm, q - h * e, qd, qdd) for e in np.eye(arm.nv)]).T
    np.testing.assert_allclose(found.dtau_dq, by_q / (2 * h), atol=1e-6)


def test_a_base_that_floats_has_no_weight_of_its_own():
    tree = on_a_free_base(nd.autotree(2))
    with pytest.raises(ModelError, match="mu is for robots with a fixed base"):
        tree.replace(components=[Friction(**LAW, mu=MU)])


@pytest.mark.parametrize("speed", [0.0, 0.004, 1.0])
def test_stiction_is_a_share_of_the_level_at_rest_and_of_the_scatter_in_motion(speed):
    """y = tau_rigid + law + sqrt(F^2 width^2 + 3 scatter^2 v^2) / sqrt(v^2 + width^2) x, -1 < x < 1."""
    arm = load("ur5")
    tree = arm.replace(components=[Friction(**LAW, mu=MU, stiction={"scatter": SCATTER})])
    torques = {**TORQUES, "sigma": 0.5}
    system = nd.System(tree, sensor_set(ACCELERATIONS, torques, UNLOADED))
    q, qd = random_state(arm, 2)[0], np.full(arm.nv, speed)
    level = 1.0 + MU * np.abs(nd.rnea(arm, q, 0 * qd, 0 * qd))
    size = np.sqrt((0.01 * level) ** 2 + 3 * (SCATTER * speed) ** 2) / np.hypot(speed, 0.01)
    tau = nd.rnea(tree, q, qd, 0 * qd) + size
    y = {f"tau:{name}": value for name, value in zip(tree.joint_names, tau, strict=True)}
    y |= {f"qdd:{name}": 0.0 for name in tree.joint_names}
    names = [f"stiction:{name}" for name in tree.joint_names]
    found = nd.plan(system, outputs=names).solver("numpy").solve(q, qd, y)
    shares = np.concatenate([found[name] for name in names])
    expected = size * size / (size * size + 3 * 0.5**2)  # of a prior of variance 1/3, by a reading of variance 0.25
    np.testing.assert_allclose(shares, expected, atol=1e-6)


def test_the_law_is_what_recursions_take_of_a_joint_with_stiction():
    arm = load("ur5")
    sticky, plain = (
        arm.replace(components=[Friction(**LAW, mu=MU, stiction=how)]) for how in ({"scatter": SCATTER}, None)
    )
    state = random_state(arm, 3)[:3]
    assert_close(nd.rnea(sticky, *state), nd.rnea(plain, *state), PEER)
    assert_close(nd.crba(sticky, state[0]), nd.crba(plain, state[0]), PEER)


def test_stiction_without_friction_is_refused():
    with pytest.raises(ValueError, match="stiction is bounded by coulomb or static friction, and there is none"):
        Friction(joints="all", viscous=1.0, stiction={"scatter": 1.0})

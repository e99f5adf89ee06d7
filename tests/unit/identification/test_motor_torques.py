"""Torques of motors: forward dynamics with loops by Pinocchio gives the motion back."""

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.identification.motor_torques import MotorTorques
from nori_dyn.identification.moving_joints import MovingJoints
from tests import mechanisms
from tests.in_pinocchio import constrained_dynamics
from tests.unit.identification.test_moving_joints import following, motions

ROBOTS = {
    "five_bar": (mechanisms.five_bar, ["l_crank", "r_crank"], []),
    "redundant": (mechanisms.five_bar, ["l_crank", "r_crank"], ["l_rod"]),
    "delta": (mechanisms.delta, ["arm0", "arm1", "arm2"], []),
}


def torques_of(name):
    make, driven, more = ROBOTS[name]
    tree = make()
    of = following(tree, driven)
    freedoms = [tree.v_slices[tree.joint(each)].start for each in (*driven, *more)]
    limit = np.full(tree.nv, np.inf)
    limit[freedoms] = np.linspace(1.0, 2.0, len(freedoms))
    bodies = tuple(tree.joint(each) for each in driven)
    return of, MotorTorques.of(MovingJoints(tree, bodies, of.rest, of), freedoms, limit)


@pytest.mark.parametrize("name", ROBOTS)
def test_they_make_the_motion_and_no_others_are_less(name):
    of, torques = torques_of(name)
    Q, Qd, Qdd = of.whole(*motions(of, 5))
    tau = torques(Q, Qd, Qdd)
    assert not np.delete(tau, torques.motors, axis=1).any()
    for q, qd, qdd, own in zip(Q, Qd, Qdd, tau, strict=True):
        np.testing.assert_allclose(constrained_dynamics(of.tree, q, qd, own)[0], qdd, atol=1e-8 * np.abs(qdd).max())
    sizes = torques.limit[torques.motors]
    for own, T in zip(tau[:, torques.motors] / sizes, of.velocities(Q), strict=True):
        free = np.isin(of.moved, torques.motors)
        order = [list(torques.motors).index(k) for k in of.moved[free]]
        span = sizes[order, None] * T[free]
        np.testing.assert_allclose(span @ np.linalg.lstsq(span, own[order])[0], own[order], atol=1e-9)


def test_joints_that_no_motor_holds_are_refused():
    tree = mechanisms.five_bar()
    of = following(tree, ["l_crank", "r_crank"])
    joints = MovingJoints(tree, (0, 2), of.rest, of)
    with pytest.raises(InputError, match="do not hold all joints"):
        MotorTorques.of(joints, [0], np.full(tree.nv, np.inf))

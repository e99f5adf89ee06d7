"""The law of all that motions keep: the pullback of its ratios is their derivative by the joints, by differences."""

import numpy as np
import pytest

from nori_dyn.identification.limits import MotionConstraint, motion_limits
from nori_dyn.identification.motor_torques import MotorTorques
from nori_dyn.identification.moving_joints import MovingJoints
from nori_dyn.identification.surroundings import Balance
from tests.standing import robot
from tests.unit.identification import test_motor_torques, test_moving_joints
from tests.unit.identification.test_moving_joints import following, motions

STEP = 1e-5


def of_loops(name: str) -> tuple[MovingJoints, MotionConstraint, float]:
    """How near joints that follow get to a singular position."""
    tree, driven = (make() if callable(make) else make for make in test_moving_joints.ROBOTS[name])
    of = following(tree, driven)
    return MovingJoints(of.tree, tuple(tree.joint(each) for each in driven), of.rest, of), of, 1e-3


def of_motors(name: str) -> tuple[MovingJoints, MotionConstraint, float]:
    _, torques = test_motor_torques.torques_of(name)
    return torques.joints, torques, 0.0


def on_legs(kind: str) -> tuple[MovingJoints, MotionConstraint, float]:
    """A box on two legs, which stands on two soles across gravity, moves within limits, or is moved by its motors."""
    tree = robot().replace(gravity=(0.0, -5.886, -7.848))
    joints = MovingJoints(tree, (1, 2, 3, 4, 5, 6), tree.random_configuration(0))
    limits = motion_limits(joints, 0.5, 1.0, 2.0, 30.0)
    if kind == "limits":
        return joints, limits, 0.0
    if kind == "torques":
        return joints, MotorTorques.of(joints, joints.of_v, limits.torque), 0.0
    corners = np.array([[0.1, 0.04, -0.03], [0.1, -0.04, 0.03], [-0.1, -0.04, 0.03], [-0.1, 0.04, -0.03]])
    balance = Balance.of(joints, [corners, corners + np.array([0.05, 0.3, -0.2])], 0.6)
    assert balance is not None
    return joints, balance, 0.0


@pytest.mark.parametrize(
    ("made", "name"),
    [
        *((of_loops, name) for name in test_moving_joints.ROBOTS),
        *((of_motors, name) for name in test_motor_torques.ROBOTS),
        *((on_legs, kind) for kind in ("limits", "torques", "balance")),
    ],
)
def test_the_pullback_is_the_derivative(made, name):
    joints, constraint, least = made(name)
    rng = np.random.default_rng(0)
    if joints.dependents is None:
        motion = [size * rng.normal(size=(10, len(joints.bodies))) for size in (0.3, 1.0, 2.0)]
    else:
        q, qd, qdd = motions(joints.dependents, 8)
        motion = [q[:, joints.of_q], qd[:, joints.of_v], qdd[:, joints.of_v]]
    whole = joints.whole(*motion)
    ratios, pulled = constraint.of_motion(*whole)
    assert ratios.any()
    factors = rng.normal(size=ratios.shape)
    found = joints.pullback(*whole, pulled(factors))
    for k in range(3):
        for j in range(len(joints.bodies)):
            sums = []
            for sign in (1, -1):
                changed = [part.copy() for part in motion]
                changed[k][:, j] += sign * STEP
                sums.append((factors * constraint.of_motion(*joints.whole(*changed))[0]).sum(axis=1))
            slope = (sums[0] - sums[1]) / (2 * STEP)
            np.testing.assert_allclose(found[k][:, j], slope, atol=1e-6 * max(least, np.abs(slope).max()))

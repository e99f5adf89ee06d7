"""Limits of motions: those of the model, those that are given, those that are taken where nothing is known."""

import math

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import InputError, UnknownModelNameError
from nori_dyn.identification.limits import motion_limits
from nori_dyn.identification.moving_joints import MovingJoints
from nori_dyn.model.joints import Continuous, DriveLimits, Prismatic, Revolute


@pytest.fixture
def tree():
    joints = (Revolute(limits=(-1.0, 3.0)), Continuous(), Prismatic(limits=(0.0, 0.4)))
    drives = {"joint1": DriveLimits(2.0, 50.0), "joint3": DriveLimits(effort=100.0)}
    return nd.autotree(3).replace(name="arm", joints=joints, drives=drives)


def moving(tree, bodies) -> MovingJoints:
    return MovingJoints(tree, tuple(bodies), tree.neutral_configuration())


def test_those_of_the_model_are_used_up_to_nine_tenths(tree):
    limits = motion_limits(moving(tree, range(3)))
    np.testing.assert_allclose(limits.lower, [1 - 1.8, -math.pi, 0.2 - 0.18])
    np.testing.assert_allclose(limits.upper, [1 + 1.8, math.pi, 0.2 + 0.18])
    np.testing.assert_allclose(limits.speed, [1.8, 1.0, 0.25])
    np.testing.assert_allclose(limits.acceleration, [7.2, 4.0, 1.0])
    np.testing.assert_allclose(limits.torque, [45.0, np.inf, 90.0])


def test_those_that_are_given_are_used_in_full(tree):
    given = {"joint1": (0, 5), "joint3": 0.1}
    limits = motion_limits(moving(tree, range(3)), given, 0.5, {"joint2": 7}, {"joint2": 3, "joint3": math.inf})
    np.testing.assert_allclose(limits.lower, [0, -math.pi, 0])
    np.testing.assert_allclose(limits.upper, [3, math.pi, 0.1])
    np.testing.assert_allclose(limits.speed, 0.5)
    np.testing.assert_allclose(limits.acceleration, [2, 7, 2])
    np.testing.assert_allclose(limits.torque, [45, 3, np.inf])
    np.testing.assert_allclose(limits.middle, [1.5, 0, 0.05])


def test_joints_that_stand_still_have_limits_of_torque_only(tree):
    limits = motion_limits(moving(tree, [1]), torque={"joint1": 5.0})
    assert limits.joints == ("joint2",)
    np.testing.assert_allclose(limits.torque, [5.0, np.inf, 90.0])
    with pytest.raises(UnknownModelNameError, match=r"a limit of speed, 'joint1' in robot 'arm'"):
        motion_limits(moving(tree, [1]), speed={"joint1": 5.0})


def test_one_end_that_is_known_leaves_a_turn(tree):
    tree = tree.replace(joints=(Revolute(limits=(-1.0, math.inf)), *tree.joints[1:]))
    limits = motion_limits(moving(tree, [0]))
    np.testing.assert_allclose([limits.lower[0], limits.upper[0]], [-1.0, 2 * math.pi - 1.0])


NO_LIMITS = [
    ({"speed": 0}, r"limit of speed of joint 'joint1' is 0: it must be a positive number"),
    ({"speed": math.inf}, r"limit of speed of joint 'joint1' is inf"),
    ({"acceleration": {"joint2": "fast"}}, r"limit of acceleration of joint 'joint2' is 'fast'"),
    ({"torque": math.nan}, r"limit of torque of joint 'joint1' is nan"),
    ({"torque": True}, r"limit of torque of joint 'joint1' is True"),
    ({"position": {"joint1": (2, 1)}}, r"are 2 and 1: the first must be smaller"),
    ({"position": {"joint1": (1, math.nan)}}, r"the first must be smaller"),
    ({"position": {"joint1": (1, 2, 3)}}, r"give a number, or a smallest and a largest"),
    ({"position": "far"}, r"give a number, or a smallest and a largest"),
    ({"position": {"joint1": (4, 5)}}, r"4 to 5, leave no room within those of the robot, -1 to 3"),
]


def test_what_is_no_limit_and_a_joint_that_shifts_without_end_needs_one(tree):
    for given, message in NO_LIMITS:
        with pytest.raises(InputError, match=message):
            motion_limits(moving(tree, range(3)), **given)
    tree = tree.replace(joints=(Prismatic(), *tree.joints[1:]))
    with pytest.raises(InputError, match=r"joint 'joint1' is prismatic, and the robot has no limits for it"):
        motion_limits(moving(tree, range(3)))
    assert motion_limits(moving(tree, range(3)), {"joint1": 0.3}).upper[0] == 0.3

"""The search: better than all random motions, within the limits at all times, the same from the same seed."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.model.joints import DriveLimits
from tests.robots import load

VERTICAL = (0.0, -9.81, 0.0)


def planar():
    """A planar arm of two links in a vertical plane, whose drives can just hold it."""
    drives = {"joint1": DriveLimits(3.0, 25.0), "joint2": DriveLimits(3.0, 8.0)}
    return nd.autotree(2).replace(gravity=VERTICAL, drives=drives)


ROBOTS = {
    "planar": planar,
    "ur5": lambda: load("ur5"),
    "panda": lambda: load("panda", locked=("panda_finger_joint1", "panda_finger_joint2")),
}


@pytest.mark.parametrize(
    ("name", "criterion"),
    [
        ("planar", "A"),
        ("ur5", "D"),
        *(pytest.param(*both, marks=pytest.mark.long) for both in (("planar", "D"), ("ur5", "A"))),
        *(pytest.param("panda", criterion, marks=pytest.mark.long) for criterion in "DA"),
    ],
)
def test_it_is_better_than_the_best_random_one_and_within_the_limits(name, criterion):
    tree = ROBOTS[name]()
    motion = nd.exciting_motion(tree, duration=6.0, harmonics=3, criterion=criterion, starts=1, progress=False)
    assert len(motion.of_random) == 200
    assert motion.value > motion.of_random.max()
    assert motion.gain > (1.01 if name == "planar" else 1.2)
    t, limits = np.linspace(0, 6.0, 7919), motion.limits
    q, qd, qdd = motion.at(t)
    assert (q >= limits.lower).all()
    assert (q <= limits.upper).all()
    assert (np.abs(qd) <= limits.speed).all()
    assert (np.abs(qdd) <= limits.acceleration).all()
    assert (np.abs(motion.torques(t)) <= limits.torque).all()
    for rest in motion.at([0.0, 6.0])[1:]:
        np.testing.assert_allclose(rest, 0, atol=1e-10)


def test_limits_that_leave_little_are_kept():
    """Torques that hold the robot in few postures only."""
    motion = nd.exciting_motion(planar(), ["inertias"], 6.0, 3, torque=3.0, starts=1, progress=False)
    assert np.abs(motion.torques(np.linspace(0, 6, 5000))).max() <= 3.0
    assert motion.value > motion.of_random.max()


def test_the_same_seed_gives_the_same_motion():
    one, two, other = (nd.exciting_motion(planar(), ["inertias"], 2.0, 2, starts=1, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(one.trajectory.coefficients, two.trajectory.coefficients)
    assert one.evaluations == two.evaluations
    assert not np.array_equal(one.trajectory.coefficients, other.trajectory.coefficients)

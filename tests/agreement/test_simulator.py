"""What the simulator records is true: the engine, the recursions and MuJoCo's own sensors agree on it."""

from functools import lru_cache

import numpy as np
import pytest

from nori_dyn.api.plan import plan
from nori_dyn.recursions.rnea import rnea
from nori_dyn.system.builder import System
from tests.simulator import POINT, TIMESTEP, WALKERS, Motion, walk
from tests.systems import ACCELERATIONS, TORQUES, sensor_set
from tests.tolerances import PEER, RECURSION, SOLVED, Tolerance, assert_close

PHASES = ("stand", "shift", "lift", "swing", "lower")


ANKLES = {"talos_reduced": "leg_left_6_joint", "iCubGenova04": "l_ankle_roll", "go2": "FL_calf_joint"}
"""Of each robot the joint above its first foot."""


@lru_cache(maxsize=8)
def recorded(name: str) -> Motion:
    return walk(name, steps=2)


@pytest.fixture(
    scope="session", params=["go2", *(pytest.param(x, marks=pytest.mark.long) for x in WALKERS if x != "go2")]
)
def motion(request) -> Motion:
    return recorded(request.param)


def some(motion: Motion) -> Motion:
    """Return a few ticks of each phase."""
    ticks = motion[np.concatenate([np.flatnonzero(motion.phase == phase)[::9] for phase in PHASES])]
    assert set(ticks.phase) == set(PHASES)
    return ticks


def feet_of(motion: Motion) -> tuple[list[str], dict]:
    """Return the links of the feet, and that nothing else meets anything."""
    links = [motion.tree.names[motion.tree.frame(foot).link] for foot in motion.feet]
    return links, {"type": "external_wrench", "links": {"except": links}, "value": 0}


def weight_of(motion: Motion) -> float:
    return 9.81 * float(sum(I[5, 5] for I in motion.tree.I))


def test_the_recorded_motion_needs_the_recorded_torques(motion):
    tau = rnea(motion.tree, motion.q.T, motion.qd.T, motion.qdd.T, np.moveaxis(motion.fx, 0, -1)).T
    assert not motion.tau[:, :6].any()
    assert_close(tau, motion.tau, RECURSION)


def test_velocities_are_those_of_the_motion():
    """Ticks that are near differ by the recorded velocity, the base's in body coordinates."""
    dt = 8 * TIMESTEP
    motion = walk("go2", steps=1, every=dt, stand=0.1)
    assert_close(np.diff(motion.time), np.full(len(motion) - 1, dt), PEER)
    for k in range(10, 250, 10):
        rate = motion.tree.difference(motion.q[k - 1], motion.q[k + 1]) / (2 * dt)
        np.testing.assert_allclose(rate, motion.qd[k], atol=1e-3)
    assert np.abs(motion.qd[10:250, :6]).max() > 0.02


def test_the_acceleration_of_the_base_is_that_of_its_body_coordinates(motion):
    """The derivative of a velocity in turning axes lacks w x u: MuJoCo's accelerometer on the base tells."""
    base, turning = motion.tree.names[0], np.cross(motion.qd[:, :3], motion.qd[:, 3:6])
    assert np.abs(turning).max() > 1e-4
    gravity = motion.accelerometer(base) - turning - motion.qdd[:, 3:6]
    assert_close(motion.world_axes(base, gravity), np.tile([0.0, 0.0, 9.81], (len(motion), 1)), RECURSION)
    assert_close(motion.accelerometer(base), motion.mujoco_accelerometers[base], RECURSION)


def test_exact_plans_find_torques_and_accelerations(motion):
    """From the wrenches at the soles, and zero elsewhere: inverse and forward dynamics, in every phase."""
    ticks = some(motion)
    soles = [{"type": "external_wrench", "links": foot} for foot in motion.feet]
    wrenches = [ticks.wrench(foot) for foot in motion.feet]
    problems = [(ACCELERATIONS, ticks.qdd, "tau"), (TORQUES, ticks.tau, "qdd")]
    for known, y, expected in problems[: 1 if motion.robot.name == "iCubGenova04" else 2]:  # its plan takes seconds
        system = System(motion.tree, sensor_set(known, *soles, feet_of(motion)[1]))
        Y = np.hstack([y, *wrenches])
        assert_close(ticks.readings(system), Y, RECURSION)
        solver = plan(system, outputs=(expected,), ordering="recursive").solver("numpy")
        assert_close(getattr(solver.solve_batch(ticks.q, ticks.qd, Y), expected), getattr(ticks, expected), SOLVED)


def test_sensors_on_board_tell_the_wrenches_of_the_floor(motion):
    """From an IMU on the base, joint accelerations, and force-torque sensors above the feet."""
    ticks, tree = some(motion), motion.tree
    links, free = feet_of(motion)
    base, joints = tree.names[0], [tree.joint_names[tree.link(link)] for link in links]
    sensors = sensor_set(
        {"type": "joint_acceleration", "joints": "actuated"},
        {"type": "accelerometer", "links": base},
        {"type": "angular_accelerometer", "links": base},
        *({"type": "force_torque", "joints": joint, "measures": "child_on_parent"} for joint in joints),
        free,
    )
    system = System(tree, sensors)
    accelerations = [ticks.qdd[:, 6:], ticks.accelerometer(base), ticks.angular_accelerometer(base)]
    Y = np.hstack([*accelerations, *(-ticks.force_torque(joint) for joint in joints)])
    assert_close(ticks.readings(system), Y, RECURSION)
    solver = plan(system, outputs=("fx", "tau"), ordering="recursive").solver("numpy")
    found = solver.solve_batch(ticks.q, ticks.qd, Y)
    assert_close(found.fx, ticks.fx, SOLVED)
    assert_close(found.tau, ticks.tau, SOLVED)


def test_the_true_variables_solve_the_equations(motion):
    ticks = some(motion)[::5]
    system = System(motion.tree, sensor_set(ACCELERATIONS, {"type": "external_wrench", "links": "all"}))
    d, Y = ticks.d(system), ticks.readings(system)
    for k in range(len(ticks)):
        D, b = system.D(ticks.q[k]), system.b(ticks.q[k], ticks.qd[k], Y[k])
        assert_close((D @ d[k] + b) / np.abs(d[k]).max(), 0 * b, RECURSION)


def test_accelerometers_are_those_of_mujoco(motion):
    assert len(motion.mujoco_accelerometers) >= motion.tree.n_links
    for frame, expected in motion.mujoco_accelerometers.items():
        assert_close(motion.accelerometer(frame), expected, RECURSION)
    standing = motion.during("stand")
    upwards = standing.world_axes(motion.feet[0], standing.accelerometer(motion.feet[0]))
    np.testing.assert_allclose(upwards[-1], [0, 0, 9.81], atol=0.1)


def test_force_torque_sensors_are_those_of_mujoco(motion):
    """MuJoCo's are of the parent on the child that has the site: a leg that stands is pressed down by its parent."""
    assert len(motion.mujoco_wrenches) == motion.tree.n_links - 1
    for joint, expected in motion.mujoco_wrenches.items():
        assert_close(motion.force_torque(joint), expected, RECURSION)
    joint, foot = ANKLES[motion.robot.name], motion.feet[0]
    standing = motion.during("stand")
    assert (standing.world_axes(foot, standing.force_torque(joint, foot)[:, 3:])[:, 2] < 0).all()


def test_phases_are_what_they_are_called(motion):
    weight, n = weight_of(motion), len(motion.feet)
    standing = motion.during("stand")
    assert_close(standing.loads[[0, -1]] / weight, np.full((2, n), 1 / n), Tolerance(0.03, "it stands evenly"))
    assert (standing.loads > 0.5 * weight / n).all()
    assert (np.abs(motion.loads.sum(axis=1) / weight - 1) < 0.3).all()
    assert np.median(np.abs(motion.loads.sum(axis=1) / weight - 1)) < 0.02
    swing = motion.during("swing")
    assert len(set(swing.foot)) == 2
    assert -1 not in swing.foot
    for k in set(swing.foot):
        ticks = swing[swing.foot == k]
        assert not ticks.wrench(motion.feet[k]).any()
        others = [j for j in range(n) if j != k]
        assert (ticks.loads[:, others] > 0.1 * weight).all()
    shifts = motion.during("shift").loads
    assert np.mean((shifts > 0).all(axis=1)) > 0.5
    assert shifts.min() < 0.1 * weight < weight / n < shifts.max()


def test_nothing_but_the_floor_touches_a_robot(motion):
    """The floor pushes only, within its friction, and on the feet only; points feel no moment."""
    links = {motion.tree.frame(foot).link for foot in motion.feet}
    others = [i for i in range(motion.tree.n_links) if i not in links]
    assert not motion.fx[:, others].any()
    for foot in motion.feet:
        force = motion.contact_force(foot)
        assert (force[:, 2] >= 0).all()
        assert (np.hypot(force[:, 0], force[:, 1]) <= 0.9 * force[:, 2] + 1e-9).all()
        if motion.robot.sole is None:
            moment = np.linalg.norm(motion.wrench(foot)[:, :3], axis=1)
            assert (moment <= 2 * POINT * np.linalg.norm(force, axis=1)).all()

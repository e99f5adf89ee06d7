"""Logs with one thing wrong: each is doubted for that reason, and a sound one not at all."""

import json
import re
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import nori_dyn as nd
from nori_dyn.model.joints import Prismatic, Revolute
from nori_dyn.model.kinematics import velocities
from nori_dyn.solve.plausibility.checks import warnings_of_motion, warnings_of_readings
from nori_dyn.solve.plausibility.magnitudes import reach, robot_weight
from nori_dyn.solve.plausibility.torques import LEAST
from tests.plausible import plausibility_warnings
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, WRENCHES, sensor_set

DT, N = 0.01, 400
DEGREES = 180 / np.pi
"""Degrees in a radian."""

LIMITS = {"limits": (-1.5, 1.5)}
SOFT = sensor_set(
    ACCELERATIONS | {"sigma": 0.5},
    TORQUES | {"sigma": 0.2},
    {"type": "accelerometer", "links": "link3", "sigma": 0.5},
    UNLOADED,
)


class Log:
    """A robot of three links that swings, and what its sensors read, with their noise."""

    def __init__(self, joints=(Revolute, Revolute, Revolute)):
        tree = nd.autotree(3, skew=0.4)
        self.tree = tree.replace(joints=tuple(kind(**LIMITS) for kind in joints))
        self.system = nd.System(self.tree, SOFT)
        rng = np.random.default_rng(0)
        self.t = 100 + DT * np.arange(N)
        phases = np.multiply.outer(self.t, [2.0, 3.0, 5.0]) + np.arange(3.0)
        sizes = np.array([0.9, 0.6, 0.4])
        self.q = sizes * np.sin(phases) + rng.normal(scale=1e-4, size=(N, 3))
        self.qd = sizes * [2, 3, 5] * np.cos(phases) + rng.normal(scale=1e-2, size=(N, 3))
        self.y = self.true_readings(-sizes * [4, 9, 25] * np.sin(phases))
        self.y += rng.normal(scale=[0.5] * 3 + [0.2] * 3 + [0.5] * 3, size=self.y.shape)

    def true_readings(self, qdd):
        plain = nd.System(self.tree, nd.sensors("inverse_dynamics"))
        found = nd.plan(plain).solver("numpy").solve_batch(self.q, self.qd, qdd)
        a = found.a[:, 2]
        v = velocities(self.tree, self.q.T, self.qd.T).v[2].T.astype(float)
        felt = a[:, 3:] + np.cross(v[:, :3], v[:, 3:])
        return np.column_stack([qdd, found.tau, felt])

    def doubts(self, **changes):
        """The doubts about the log with some things in it changed, by their checks."""
        given = {"q": self.q, "qd": self.qd, "y": self.y, "dt": DT, **changes}
        return {doubt.check: doubt for doubt in plausibility_warnings(self.system, **given)}


@pytest.fixture(scope="module")
def log():
    return Log()


def scaled(y, columns, factor):
    y = y.copy()
    y[:, columns] *= factor
    return y


OF_QDD, OF_TAU, ACCELEROMETER = slice(0, 3), slice(3, 6), slice(6, 9)


def test_a_sound_log_is_not_doubted(log):
    assert log.doubts() == log.doubts(t=log.t) == log.doubts(dt=None) == {}


def test_angles_or_velocities_in_degrees(log):
    found = log.doubts(q=log.q * DEGREES)
    assert set(found) >= {"limits", "rates", "consistency"}
    assert found["limits"].share > 0.9
    assert "of 400 samples" in found["limits"].message
    assert "Angles look like degrees" in found["limits"].message
    assert "q looks like degrees" in found["rates"].message
    assert "q looks like degrees" in found["consistency"].message
    small = log.q * DEGREES * [1.0, 0.2, 0.1]  # beside large ones
    assert np.abs(small[:, 2]).max() < 3
    assert "Angles look like degrees" in log.doubts(q=small)["limits"].message
    found = log.doubts(qd=log.qd * DEGREES)
    assert "qd looks like degrees per second" in found["rates"].message
    assert "qd looks like degrees per second" in found["consistency"].message


def test_lengths_in_millimetres():
    log = Log(joints=(Prismatic, Revolute, Revolute))
    found = log.doubts(q=log.q * [1000, 1, 1])
    assert "'joint1' is between" in found["limits"].message
    assert "Lengths look like millimetres" in found["limits"].message


def test_wrong_steps_of_time_and_times(log):
    for dt in (1.0, 1e-3):
        found = log.doubts(dt=dt)
        assert set(found) == {"rates"}
        assert "with 0.01 s between samples" in found["rates"].message
        assert "at every joint" in found["rates"].message
    assert "rates" in log.doubts(t=log.t * 1000, dt=None)
    assert "the given time step is 0.01 s" in log.doubts(t=log.t * 1000)["clock"].message
    assert "at 2 of 400 samples" in log.doubts(t=np.where(np.arange(N) % 200 == 7, 0.0, log.t))["clock"].message


def test_times_of_arrival_are_doubted_and_gaps_are_not(log):
    late = log.t.copy()
    for k in (100, 200, 300):  # a stall, after which the samples that waited come at once
        late[k : k + 15] = late[k + 15] - 1e-5 * np.arange(15, 0, -1)
    assert "`streams: {'': {step: 0.01000}}`" in log.doubts(t=late, dt=None)["clock"].message
    tens = np.repeat(late[9::10], 10) + 1e-5 * np.tile(np.arange(10), N // 10)  # ten in a message
    assert "time goes on in bursts" in log.doubts(t=tens, dt=None)["clock"].message
    gaps = log.t + 0.3 * (np.arange(N) // 100)
    assert "clock" not in log.doubts(t=gaps, dt=None)


def test_a_contact_that_is_told_to_be_open_explains_a_contradiction():
    """An arm that is pushed at its tip, which two torques and a force sensor would tell."""
    arm, q = nd.autotree(3), np.linspace([0.1, 0.5, -0.4], [0.9, 1.1, 0.3], 20)
    known = [ACCELERATIONS | {"value": 0}, TORQUES | {"sigma": 0.01}]
    free, soft = nd.System(arm, sensor_set(*known, UNLOADED)), WRENCHES | {"links": "link3", "value": 0, "sigma": 100}
    pushed = nd.System(arm, sensor_set(*known, WRENCHES | {"value": 0, "links": ["link1", "link2"]}, soft))
    J = nd.jacobian(arm, q.T, "link3")
    push = np.array([0, 0, 0, 3.0, -5.0, 4.0])
    y = nd.rnea(arm, q.T, 0 * q.T, 0 * q.T).T - np.einsum("ijn,i->nj", J, push)
    (found,) = warnings_of_readings(free, q, 0 * q, y, elsewhere=[(pushed, y)])
    assert found.check == "consistency"
    assert "With other contacts closed they fit: is it right which are?" in found.message
    (alone,) = warnings_of_readings(free, q, 0 * q, y)
    assert "other contacts" not in alone.message


def test_velocities_that_are_not_the_rates(log):
    found = log.doubts(qd=log.qd * [1, -1, 1])
    assert "at 'joint2'. One of the two has the other sign" in found["rates"].message
    rng = np.random.default_rng(1)
    found = log.doubts(qd=rng.normal(size=log.qd.shape))  # of another log
    assert "does not move with qd" in found["rates"].message
    noise = rng.normal(scale=1e-4, size=(2, N, 3))  # of a robot at rest
    assert "rates" not in log.doubts(q=log.q[:1] + noise[0], qd=noise[1])


def test_readings_that_contradict_each_other(log):
    for columns, factor, hint in (
        (OF_TAU, 1e3, "joint_torque looks a thousand times too large"),
        (OF_TAU, -1.0, "joint_torque has the other sign"),
        (OF_TAU, 1e-3, "joint_torque looks a thousand times too small"),
        (ACCELEROMETER, 1 / 9.81, "accelerometer looks like g"),
        (OF_QDD, DEGREES, "joint_acceleration looks like degrees"),
    ):
        found = log.doubts(y=scaled(log.y, columns, factor))
        assert found["consistency"].share == 1.0
        assert hint in found["consistency"].message


def test_readings_of_an_impossible_size(log):
    still = np.where(np.arange(9) < ACCELEROMETER.start, log.y, 0.1)
    for y, words in (
        (scaled(log.y, OF_TAU, 1e3), "It looks like mN m"),
        (scaled(log.y, ACCELEROMETER, 1 / 9.81), "It looks like g instead of m/s^2"),
        (still, "was it subtracted?"),
    ):
        assert words in log.doubts(y=y)["magnitudes"].message
    falling = (warnings_of_readings(log.system, log.q, log.qd, still, falls=falls) for falls in (False, True))
    assert ["magnitudes" in {doubt.check for doubt in found} for found in falling] == [True, False]


def test_an_estimate_of_an_impossible_size(log):
    system = nd.System(log.tree, nd.sensors("inverse_dynamics"))
    solver = nd.plan(system).solver("numpy")
    for factor, expected in ((1.0, False), (1e4, True)):
        estimate = solver.solve_batch(log.q, log.qd, factor * log.y[:, OF_QDD])
        found = plausibility_warnings(system, log.q, log.qd, log.y[:, OF_QDD], estimate)
        assert bool(found) is expected
    assert "the estimate of f is" in found[0].message
    assert "times the weight of the robot" in found[0].message


def test_samples_without_a_reading_and_saturated_ones_are_passed_over(log):
    y = scaled(log.y, OF_TAU, -1.0)
    y[::2, 4] = np.nan
    assert "other sign" in log.doubts(y=y)["consistency"].message
    y[:, 4] = np.nan
    assert log.doubts(y=y) == {}


def test_sigmas_that_nobody_gave_are_no_measure(log):
    entries = [{**entry, "sigma": None} for entry in SOFT.to_dict()["measurements"]]
    system = nd.System(log.tree, sensor_set(*entries, name="plain"))
    assert system.is_weighted
    found = plausibility_warnings(system, log.q, log.qd, scaled(log.y, OF_TAU, -1.0), dt=DT)
    assert [each.check for each in found] == ["torques"]  # by the model alone


@pytest.mark.parametrize("least", [-np.pi, 0.0])
def test_angles_within_a_turn_are_unwrapped(log, least):
    tree = log.tree.replace(joints=(Revolute(), *log.tree.joints[1:]))
    t = log.t - log.t[0]
    q, qd = np.zeros((N, 3)), np.zeros((N, 3))
    q[:, 0], qd[:, 0] = (3 * t - least) % (2 * np.pi) + least, 3.0
    system = nd.System(tree, nd.sensors("inverse_dynamics"))
    assert plausibility_warnings(system, q, qd, np.zeros((N, 3)), dt=DT) == []


def test_angles_from_zero_to_a_turn(log):
    (found,) = log.doubts(q=log.q % (2 * np.pi)).values()
    assert found.check == "limits"
    assert found.message.endswith("map q with `orientation: modulo`.")


def slow_arm(friction=2.0):
    """An arm that moves slowly, held by its motors against gravity and friction: tree, q, qd, torques, gravity's."""
    tree = nd.autotree(3, skew=0.4).replace(gravity=(0.0, -9.81, 0.0))
    t = DT * np.arange(3000)
    phases = np.multiply.outer(t, [0.3, 0.5, 0.7]) + np.arange(3.0)
    q, qd, qdd = np.sin(phases), [0.3, 0.5, 0.7] * np.cos(phases), -np.array([0.09, 0.25, 0.49]) * np.sin(phases)
    zero = np.zeros((3, len(t)))
    gravity = nd.rnea(tree, q.T, zero, zero).T
    tau = nd.rnea(tree, q.T, qd.T, qdd.T).T + friction * np.sign(qd)
    return tree, q, qd, tau + np.random.default_rng(0).normal(scale=0.3, size=tau.shape), gravity


TORQUES_ALONE = sensor_set(TORQUES | {"sigma": 1.0}, UNLOADED)


@pytest.mark.parametrize("n", [1, 2, 20])
def test_a_short_log_says_nothing_of_gravity(n):
    tree, q, qd, tau, gravity = slow_arm()
    few = (each[:n] for each in (q, qd, tau - gravity))
    assert "gravity" not in [each.check for each in plausibility_warnings(nd.System(tree, TORQUES_ALONE), *few, dt=DT)]


@pytest.mark.parametrize(("gains", "kept"), [(1.0, 1.0), ([0.1, 0.05, 0.08], 1.0), (-1.0, 1.0), (1.0, 0.0), (1.0, 0.1)])
def test_torques_without_gravity(gains, kept):
    tree, q, qd, tau, gravity = slow_arm()
    y = gains * (tau - (1 - kept) * gravity)
    found = {each.check: each for each in plausibility_warnings(nd.System(tree, TORQUES_ALONE), q, qd, y, dt=DT)}
    assert ("gravity" in found) == (kept < 1.0)
    assert ("torques" in found) == (kept == 1.0 and np.any(gains != 1.0))
    if kept < 1.0:
        assert "the torques do not follow gravity where the robot moves slowly" in found["gravity"].message
        assert "Did the driver subtract gravity" in found["gravity"].message
        weightless = nd.System(tree.replace(gravity=(0.0, 0.0, 0.0)), TORQUES_ALONE)
        still = np.tile(q[:1], (len(q), 1))  # gravity that does not change tells nothing
        for system, at in ((weightless, q), (nd.System(tree, TORQUES_ALONE), still)):
            others = plausibility_warnings(system, at, 0 * qd, y, dt=DT)
            assert "gravity" not in {each.check for each in others}


def torques_doubted(tree, q, qd, tau, by_model=True):
    """What is said of torques that are read."""
    system = nd.System(tree, TORQUES_ALONE)
    found = warnings_of_motion(system, q, qd, tau, dt=DT, by_model=by_model)
    return " ".join(each.message for each in found if each.check == "torques")


def test_torques_of_another_sign_gain_order_or_unit_are_named():
    tree, q, qd, tau, _ = slow_arm()
    assert torques_doubted(tree, q, qd, tau) == ""
    assert "They have the other sign" in torques_doubted(tree, q, qd, -tau)
    assert "Are unit and gains right, and is it this robot?" in torques_doubted(tree, q, qd, 0.1 * tau)
    assert torques_doubted(tree, q, qd, 0.1 * tau, by_model=False) == ""  # gains that are looked for
    exchanged = "They would be with 'joint1' and 'joint2' exchanged"
    assert exchanged in torques_doubted(tree, q, qd, tau[:, [1, 0, 2]])
    assert "They would be if q were in degrees" in torques_doubted(tree, 57.29578 * q, 57.29578 * qd, tau)
    assert torques_doubted(tree.replace(gravity=(0.0, 0.0, 0.0)), q, qd, -tau) == ""


@pytest.mark.parametrize(
    "turned",
    [
        {"shoulder_lift_joint": (1, -90), "wrist_1_joint": (1, -90)},
        {"shoulder_lift_joint": (1, 90), "elbow_joint": (-1, 0)},
        {},
    ],
    ids=["zeros", "the other way", "another gravity"],
)
def test_zeros_and_signs_by_which_torques_would_fit_are_named(turned):
    """A log that counts from other zeros than the model; and one that no zeros explain."""
    tree = load("ur5")
    t = np.arange(0, 20, DT)
    phase = np.multiply.outer(t, 0.4 + 0.1 * np.arange(6)) + np.arange(6)
    q, qd, still = np.sin(phase), np.cos(phase) * (0.4 + 0.1 * np.arange(6)), np.zeros((6, len(t)))
    tau = nd.rnea(tree if turned else tree.replace(gravity=(7.0, 7.0, 0.0)), q.T, still, still).T
    tau += np.random.default_rng(0).normal(scale=0.05, size=tau.shape)
    for name, (sign, degrees) in turned.items():
        k = tree.joint_names.index(name)
        q[:, k], qd[:, k], tau[:, k] = sign * (q[:, k] - np.deg2rad(degrees)), sign * qd[:, k], sign * tau[:, k]
    found = warnings_of_motion(nd.System(tree, TORQUES_ALONE), q, qd, tau, dt=DT)
    told = " ".join(each.message for each in found if each.check in ("torques", "gravity"))
    assert told
    assert ("other zeros than the model" in told) == bool(turned)
    if turned:
        lists = {name: json.loads(numbers) for name, numbers in re.findall(r"`(\w+): (\[.*?\])`", told)}
        offset, scale = lists["offset"], np.array(lists.get("scale", np.ones(6)))
        held = nd.rnea(tree, (scale * q + offset).T, still, still)
        np.testing.assert_allclose(scale * tau, held.T, atol=0.5)


def test_friction_at_rest_is_no_other_robot():
    """A joint that gravity hardly loads, at rest: its friction is as large as its torque."""
    tree = nd.autotree(3).replace(gravity=(0.0, -9.81, 0.0))
    q = np.tile([2.25, -2.25, 0.0], (400, 1))
    held = nd.rnea(tree, q[0], np.zeros(3), np.zeros(3))
    least = LEAST * robot_weight(tree) * reach(tree)
    tau = held + np.random.default_rng(0).normal(scale=0.01, size=q.shape)
    assert torques_doubted(tree, q, 0 * q, tau - [0.8 * least, 0.0, 0.0]) == ""
    assert torques_doubted(tree, q, 0 * q, -tau) != ""


def test_links_that_swing_freely_are_not_doubted():
    """What is asked of their joints is a small difference of large torques: an error in inertia is no other robot."""
    tree = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))
    found = solve_ivp(
        lambda _, x: np.concatenate([x[2:], nd.aba(tree, x[:2], x[2:], -0.05 * x[2:])]),
        (0.0, 4.0),
        [0.4, 0.3, 0.0, 0.0],
        t_eval=DT * np.arange(400),
        rtol=1e-9,
    )
    q, qd = found.y[:2].T, found.y[2:].T
    other = tree.replace(I=tree.I * np.array([1.0, 2.0])[:, None, None])
    assert torques_doubted(other, q, qd, -0.05 * qd) == ""


def test_accelerations_that_are_read_count_where_velocities_are_noisy():
    tree, q, qd, tau, _ = slow_arm()
    noisy = qd + np.random.default_rng(1).normal(scale=1.0, size=qd.shape)
    system = nd.System(tree, nd.sensors("joint_torques"))
    qdd = -np.array([0.09, 0.25, 0.49]) * q
    y = np.zeros((len(q), system.ny))
    of = {name: k for k, name in enumerate(system.measurement_names)}
    y[:, [of[f"qdd:joint{k}"] for k in (1, 2, 3)]] = qdd
    y[:, [of[f"tau:joint{k}"] for k in (1, 2, 3)]] = tau
    assert "torques" not in {each.check for each in warnings_of_motion(system, q, noisy, y, dt=DT)}


def test_friction_that_drives_is_named():
    tree, q, qd, tau, _ = slow_arm(friction=-2.0)
    assert "goes with it where friction would go against it, at 'joint1' and 2 more" in torques_doubted(
        tree, q, qd, tau
    )


def test_velocities_of_another_order_are_named():
    tree, q, qd, tau, _ = slow_arm()
    found = plausibility_warnings(nd.System(tree, TORQUES_ALONE), q, qd[:, [1, 0, 2]], tau, dt=DT)
    said = next(each.message for each in found if each.check == "rates")
    assert "q of 'joint1' moves with qd of 'joint2' and q of 'joint2' moves with qd of 'joint1'" in said


@pytest.mark.parametrize(("share", "is_named"), [(1.0, False), (0.8, False), (0.4, True), (2.0, True)])
def test_forces_that_do_not_carry_a_robot_are_named(share, is_named):
    tree = nd.tools.random_tree(1, seed=0, kinds=("free",))
    q, still = np.tile(tree.neutral_configuration(), (200, 1)), np.zeros((200, 6))
    fx = np.tile(share * nd.rnea(tree, q[0], np.zeros(6), np.zeros(6)), (200, 1))
    system = nd.System(tree, sensor_set(ACCELERATIONS, WRENCHES))
    y = np.hstack([still, fx])
    estimate = nd.plan(system, [f"fx:{tree.names[0]}"]).solver("numpy").solve_batch(q, still, y)
    found = warnings_of_motion(system, q, still, y, estimate, DT)
    assert any("the forces that carry the robot are" in each.message for each in found) == is_named


UR10E = Path(__file__).parents[4] / "shared" / "data" / "real" / "ur10e"


@pytest.mark.skipif(not UR10E.exists(), reason="the UR10e's logs are not here")
@pytest.mark.parametrize("kept", [1.0, 0.0])
def test_torques_without_gravity_of_a_real_arm(kept):
    tree = nd.load_urdf(UR10E / "ur10e.urdf")
    log = np.loadtxt(UR10E / "exciting_1.csv.gz", delimiter=",")
    q, qd, tau = log[:, 1:7], log[:, 7:13], log[:, 13:19] * [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]
    zero = np.zeros(q.T.shape)
    y = tau - (1 - kept) * nd.rnea(tree, q.T, zero, zero).T
    found = plausibility_warnings(nd.System(tree, TORQUES_ALONE), q, qd, y, dt=0.01)
    assert ("gravity" in {each.check for each in found}) == (kept == 0.0)


def test_a_motion_that_asks_for_no_torque_is_compared_with_none(tmp_path):
    """A robot without mass, all of whose torques its rotors take."""
    arm = nd.autotree(2)
    rotors = nd.components.Rotor(joints="all", inertia=0.1)
    tree = arm.replace(I=0 * arm.I, components=[rotors])
    t = np.arange(0, 4, 0.01)
    q, qd, qdd = (np.stack([f, f], axis=1) for f in (np.sin(3 * t), 3 * np.cos(3 * t), -9 * np.sin(3 * t)))
    np.savez(tmp_path / "log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=0.1 * qdd)
    found = nd.estimate(tmp_path / "log.npz", nd.plan(tree, "joint_torques", ["tau", "offset"]))
    assert found.report.doubts == ()

"""An IMU in another frame or unit is named by gravity and by what stands; one that is mounted as said, never."""

from functools import cache
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from tests.plausible import plausibility_warnings
from tests.standing import BIAS, SIGMA, robot, sensors, sway
from tests.systems import sensor_set
from tests.walking import DT, walk

REAL = Path(__file__).parents[4] / "shared" / "data" / "real"

QUARTER = np.pi / 2
TURNED = {
    **{f"half a turn about {'xyz'[k]} of": Rotation.from_rotvec(np.pi * np.eye(3)[k]).as_matrix() for k in range(3)},
    **{
        f"a quarter about {'-' * (sign > 0)}{'xyz'[k]} of": Rotation.from_rotvec(
            sign * QUARTER * np.eye(3)[k]
        ).as_matrix()
        for k, sign in product(range(3), (1, -1))
    },
    "taken as (z, x, y)": np.eye(3)[[1, 2, 0]],
}
"""What an IMU reads in a frame that is turned so, (3, 3) times what it should read, by the words that undo it."""

REVERSED = {
    **{f"the other sign along {'xyz'[k]}": np.diag(1.0 - 2 * np.eye(3)[k]) for k in range(3)},
    "with x and y swapped": np.eye(3)[[1, 0, 2]],
    "with y and z swapped": np.eye(3)[[0, 2, 1]],
    "with x and z swapped": np.eye(3)[[2, 1, 0]],
    "with the other sign (": -np.eye(3),
}
"""The same for axes that are left-handed."""


class Recorded:
    """A robot that walks or sways: what its IMU reads, beside what q and qd say."""

    def __init__(self, system, t, q, qd, gyroscope=None, accelerometer=None):
        self.system, self.t, self.q, self.qd = system, t, q, qd
        self.gyroscope, self.accelerometer = gyroscope, accelerometer

    def doubts(self, w=1.0, a=1.0):
        """The messages on the IMU where its readings are times a factor, or a matrix (3, 3)."""
        y, qd, names = np.zeros((len(self.t), self.system.ny)), self.qd.copy(), self.system.measurement_names
        for kind, values, change in (("gyro", self.gyroscope, w), (("acc", "imu"), self.accelerometer, a)):
            if values is not None:
                read = values @ (change * np.eye(3) if np.ndim(change) == 0 else change).T
                of = [k for k, name in enumerate(names) if name.startswith(kind)]
                if of:
                    y[:, of] = read
                else:
                    qd[:, :3] = read
        found = plausibility_warnings(self.system, self.q, qd, y, t=self.t)
        return [each.message for each in found if each.check == "imu"]


def neutral(tree, q):
    """Configurations whose root says nothing."""
    return np.hstack([np.tile(tree.neutral_configuration()[:7], (len(q), 1)), q[:, 7:]])


@cache
def swaying(seed=1):
    t, tree = np.arange(0, 8, 0.005), robot()
    motion, rng = sway(t, seed=seed), np.random.default_rng(seed)
    gyroscope, accelerometer = (
        values + rng.normal(0, sigma, values.shape)
        for values, sigma in ((motion.w + BIAS, SIGMA["gyro"]), (motion.acc, SIGMA["acc"]))
    )
    q = neutral(tree, np.hstack([np.zeros((len(t), 7)), motion.q]))
    qd = np.hstack([np.zeros((len(t), 6)), motion.qd])
    return Recorded(nd.System(tree, sensors()), t, q, qd, gyroscope, accelerometer)


def walks(tree, frames, turns):
    """The system of a robot of which an IMU is known, and frames that stand at times."""
    sole = {"components": ["wx", "wy", "wz", "vx", "vy", "vz"]} if turns else {}
    rows = [{"type": "imu", "links": "base", "gyroscope": {"sigma": 0.01}, "accelerometer": {"sigma": 0.1}}]
    rows += [{"type": "zero_velocity", "links": name, "sigma": 0.02, **sole} for name in frames]
    return nd.System(tree, sensor_set(*rows, name="walks", memory={"base": {"of": "base"}}))


@cache
def walking(name, base_is_known=False):
    one, rng = walk(name), np.random.default_rng(0)
    frames = [frame for frame in one.tree.frames if frame.endswith(("_tip", "_sole"))]
    gyroscope = one.qd[:, :3] + rng.normal(0, 0.02, (one.n, 3))
    if base_is_known:
        system, q = nd.System(one.tree, nd.sensors("inverse_dynamics")), one.q
    else:
        system, q = walks(one.tree, frames, name == "biped"), neutral(one.tree, one.q)
    return Recorded(system, DT * np.arange(one.n), q, one.qd, gyroscope, one.accelerometer)


@cache
def icub(which):
    """A log of an iCub, of which q is that of the joints alone."""
    from benchmarks.real import icub3_base, icub_walking
    from benchmarks.real.recording import beside, recorded

    if which == "icub_walking":
        tree, log = icub_walking.read(REAL.parent)
        gyroscope = log.qd[:, :3] @ tree.frame("root_link_imu_frame").X.E.T
        system = nd.System(tree, beside("icub_base.sensors.yaml"))
    else:
        folder = REAL / which
        tree = nd.load_urdf(folder / "model.urdf", base="floating", locked=icub3_base.WRISTS)
        system, read = (nd.System(tree, beside(f"icub3_base.{part}sensors.yaml")) for part in ("", "read."))
        log = recorded(nd.read_log(folder / "walking.mat", beside("icub3_base.log.yaml")), read)
        gyroscope = log.qd[:, :3]
    accelerometer = log.of("imu.ax", "imu.ay", "imu.az")
    return Recorded(system, log.t, neutral(tree, log.q), 0 * log.qd, gyroscope, accelerometer)


@cache
def cheetah(_):
    """The log of a mini cheetah, of which the base is known, and its angular velocity what the gyroscope reads."""
    folder = REAL / "mini_cheetah"
    log, tree = np.load(folder / "asphalt.npz"), nd.load_urdf(folder / "model.urdf", base="floating")
    n = len(log["v_js"])
    q, t = np.zeros((n, tree.nq)), float(log["dt"]) * np.arange(n)
    q[:, 3:7] = Rotation.from_euler("xyz", log["imu_ori"]).as_quat()
    cosine, sine = log["q_js"].reshape(n, 12, 2).T
    q[:, 7:] = np.arctan2(sine, cosine).T
    system = nd.System(tree, nd.sensors("inverse_dynamics"))
    return Recorded(system, t, q, np.zeros((n, tree.nv)), log["imu_ang_vel"].astype(float))


def real(name):
    """One of the real logs."""
    if not (REAL / name).exists():
        pytest.skip(f"the log {name} is not here: see docs/real_robots.md")
    return (cheetah if name == "mini_cheetah" else icub)(name)


LOGS = ["icub_walking", *(pytest.param(name, marks=pytest.mark.long) for name in ("icub3_walking_sim", "mini_cheetah"))]
WRONG = TURNED | REVERSED


def test_an_imu_as_it_should_be_is_not_doubted():
    for seed in range(4):
        assert swaying(seed).doubts() == []
    for name, known in product(("biped", "quadruped"), (False, True)):
        assert walking(name, known).doubts() == []


@pytest.mark.parametrize("name", LOGS)
def test_the_imu_of_a_real_robot_is_not_doubted(name):
    log = real(name)
    for part in (slice(None), slice(0, len(log.t) // 3), slice(len(log.t) // 2, None)):
        found = Recorded(log.system, log.t[part], log.q[part], log.qd[part], log.gyroscope[part])
        found.accelerometer = None if log.accelerometer is None else log.accelerometer[part]
        assert found.doubts() == []


@pytest.mark.parametrize("words", TURNED)
@pytest.mark.parametrize("name", LOGS)
def test_the_frame_of_a_real_imu_is_named(name, words):
    (message,) = real(name).doubts(TURNED[words], TURNED[words])
    assert words in message
    rpy = np.array(message.split("[")[1].split("]")[0].split(","), dtype=float)
    np.testing.assert_allclose(Rotation.from_euler("xyz", rpy).as_matrix() @ TURNED[words], np.eye(3), atol=1e-4)


@pytest.mark.parametrize("words", WRONG)
@pytest.mark.parametrize("name", LOGS)
def test_the_axes_of_a_real_gyroscope_are_named(name, words):
    (message,) = real(name).doubts(WRONG[words])
    assert words in message


@pytest.mark.parametrize(("factor", "words"), [(180 / np.pi, "degrees per second"), (np.pi / 180, "taken for degrees")])
@pytest.mark.parametrize("name", LOGS)
def test_the_unit_of_a_real_gyroscope_is_named(name, factor, words):
    (message,) = real(name).doubts(factor)
    assert words in message
    assert f"divided by {factor:.3g}" in message
    (message,) = real(name).doubts(factor * TURNED["half a turn about z of"])
    assert words in message
    assert "half a turn about z" in message


@pytest.mark.parametrize("words", WRONG)
def test_four_feet_that_are_points_tell_the_axes(words):
    log = walking("quadruped")
    (message,) = log.doubts(WRONG[words])
    assert words in message
    if words in TURNED:
        (message,) = log.doubts(WRONG[words], WRONG[words])
        assert words in message


@pytest.mark.parametrize("words", ["half a turn about z of", "a quarter about x of", "the other sign along x"])
def test_two_feet_that_are_points_tell_them_but_for_turns_about_the_line_between(words):
    (message,) = swaying().doubts(WRONG[words])
    assert words in message


def test_gravity_tells_of_an_accelerometer_what_it_can():
    """What is turned about gravity feels the same: two that stand upright tell which way is up."""
    upside_down = Rotation.from_rotvec([np.pi, 0, 0]).as_matrix()
    about_gravity = Rotation.from_rotvec([0, 0, QUARTER]).as_matrix()
    for name in ("biped", "quadruped"):
        log = walking(name)
        (message,) = log.doubts(a=upside_down)
        assert "fit gravity when turned half a turn about x of its frame" in message
        assert "or nearly as well when turned half a turn about y" in message
        (message,) = log.doubts(a=upside_down @ about_gravity)
        assert "half a turn about" in message
        assert log.doubts(a=about_gravity) == []
        for factor in (1 / 9.81, 1e-6):  # its size is another check's
            assert log.doubts(a=factor) == []


def test_what_does_not_move_tells_nothing_of_a_gyroscope():
    log, rng = swaying(), np.random.default_rng(0)
    still = Recorded(log.system, log.t, np.repeat(log.q[:1], len(log.t), axis=0), log.qd * 0)
    still.gyroscope, still.accelerometer = rng.normal(0, 0.5, (2, len(log.t), 3))
    assert still.doubts() == []
    still.gyroscope = np.full((len(log.t), 3), np.nan)
    assert still.doubts() == []
    few = Recorded(log.system, log.t[:200], log.q[:200], log.qd[:200], -log.gyroscope[:200], log.accelerometer[:200])
    assert few.doubts() == []


def test_garbage_is_no_error():
    known = walking("quadruped", True)
    q = known.q.copy()
    q[::7, 3:7], q[::11, :3] = 0.0, 1e200
    assert Recorded(known.system, known.t, q, known.qd, known.gyroscope).doubts() == []
    log, rng = swaying(), np.random.default_rng(0)
    for t in (log.t * 0, log.t + np.nan, log.t[::-1], rng.normal(size=len(log.t)), np.full(len(log.t), 1e300)):
        assert Recorded(log.system, t, log.q, log.qd, log.gyroscope, log.accelerometer).doubts() == []
    for size in (1e300, 0.0):
        other = Recorded(log.system, log.t, log.q, log.qd, size * log.gyroscope, size * log.accelerometer)
        assert other.doubts() == []

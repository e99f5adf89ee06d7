"""A robot that stands and sways: attitude, velocity and bias from encoders and an IMU, against the motion itself."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import chi2

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.filtering.base_reference import BaseEstimate
from nori_dyn.measurements.floating_base import SIZE_SIGMA
from tests.compilers import needs_compiler
from tests.standing import BIAS, GRAVITY, SIGMA, Sway, robot, sensors, sway

DT = 0.002
TILTS = (np.zeros(3), np.array([1.05, 0.0, 0.0]), np.array([0.3, -0.8, 0.5]))
"""Attitudes about which it sways, of which nothing is told: the second is tilted by 60 degrees."""


@cache
def plan() -> nd.Plan:
    return nd.plan(nd.System(robot(), sensors()), outputs=["fx"])


def read(motion: Sway, k: int, rng: np.random.Generator | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return q and qd, whose entries of the root are no numbers, and the readings."""
    noise = (lambda name, n: SIGMA[name] * rng.normal(size=n)) if rng else (lambda name, n: np.zeros(n))
    y = [motion.acc[k] + noise("acc", 3), motion.w[k] + BIAS + noise("gyro", 3), noise("standing", 6)]
    return np.append(np.full(7, np.nan), motion.q[k]), np.append(np.full(6, np.nan), motion.qd[k]), np.concatenate(y)


def elsewhere(motion: Sway, more: float) -> Sway:
    """Return a motion where gravity is larger by some m/s^2."""
    down = np.array([0.0, 0.0, -1.0])
    return motion._replace(acc=motion.acc - more * motion.R.transpose(0, 2, 1) @ down, gravity=GRAVITY + more * down)


def error(base: BaseEstimate, motion: Sway, k: int) -> np.ndarray:
    """Return by how much velocity, gravity and angular velocity are off (9,)."""
    true = motion.v[k], motion.R[k].T @ motion.gravity, motion.w[k]
    return np.concatenate([base.velocity, base.gravity, base.angular_velocity]) - np.concatenate(true)


@needs_compiler
def test_errors_are_as_large_as_told():
    """Normalised errors of 24 runs, from any attitude, within the region that 95 in 100 such means are in.

    Gravity is not the same everywhere.
    """
    tracker, found = nd.Tracker(plan(), DT), []
    for seed in range(24):
        rng, motion = np.random.default_rng(seed), sway(DT * np.arange(120), TILTS[seed % 3], seed)
        motion = elsewhere(motion, SIZE_SIGMA * rng.normal())
        tracker.reset()
        for k in range(120):
            tracker.step(*read(motion, k, rng))
            if k in (30, 119):
                e = error(tracker.base, motion, k)
                found.append(e @ np.linalg.solve(tracker.base.covariance, e))
    for each in (found[::2], found[1::2]):
        low, high = chi2.ppf([0.025, 0.975], 9 * len(each)) / len(each)
        assert low < np.mean(each) < high


@needs_compiler
def test_attitude_velocity_and_position_are_found():
    tracker, n = nd.Tracker(plan(), DT), 600
    motion, rng = sway(DT * np.arange(n), TILTS[1], 3), np.random.default_rng(3)
    found = []
    for k in range(n):
        tracked = tracker.step(*read(motion, k, rng))
        found.append(tracker.base)
    last = found[-1]
    assert np.linalg.norm(last.velocity - motion.v[-1]) < 0.01
    assert last.tilt_deviation < np.radians(0.1)
    true = Rotation.from_matrix(motion.R)
    turned = Rotation.from_quat([one.rotation for one in found[100:]]) * true[100:].inv()
    yaw = turned.as_rotvec()
    assert np.abs(yaw[:, :2]).max() < np.radians(1.0)  # what differs is yaw, which nobody tells
    assert np.ptp(yaw[:, 2]) < np.radians(1.5)
    path = [one.position - found[100].position for one in found[100:]]
    moved = Rotation.from_rotvec([0, 0, yaw[:, 2].mean()]).inv().apply(path)
    assert np.abs(moved - (motion.p[100:] - motion.p[100])).max() < 0.02
    np.testing.assert_allclose(tracked.memory["offset:gyro:box"], BIAS, atol=0.01)
    np.testing.assert_allclose(last.q[3:], last.rotation)
    np.testing.assert_allclose(last.qd, [*last.angular_velocity, *last.velocity])


@needs_compiler
def test_native_code_and_numpy_say_the_same():
    trackers = [nd.Tracker(plan(), DT, backend=backend) for backend in ("native", "numpy")]
    motion, rng = sway(DT * np.arange(60), TILTS[2], 1), np.random.default_rng(1)
    for k in range(60):
        given = read(motion, k, rng)
        one, other = (tracker.step(*given) for tracker in trackers)
        np.testing.assert_allclose(one["fx"], other["fx"], rtol=1e-6, atol=1e-6)
        if k < 20:  # where nothing is known of gravity yet
            continue
        for name in ("velocity", "gravity", "angular_velocity", "rotation"):
            np.testing.assert_allclose(*(getattr(tracker.base, name) for tracker in trackers), rtol=1e-7, atol=1e-7)


@needs_compiler
@pytest.mark.parametrize("change", [2, 40])
def test_native_code_goes_on_from_numpy_with_its_reference(change):
    """As a tracker does that did not wait for the compiler: at a tilt, before and after the axes were turned."""
    motion, rng = sway(DT * np.arange(60), TILTS[1], 2), np.random.default_rng(2)
    whole, first = (nd.Tracker(plan(), DT, backend="numpy") for _ in range(2))
    steps = first.steps
    for k in range(60):
        given = read(motion, k, rng)
        whole.step(*given)
        if k == change:
            other = steps.on("native")
            other.go_on_from(steps, DT)
            first._run_on(other)
        first.step(*given)
    for name in ("rotation", "velocity", "gravity", "angular_velocity", "position"):
        np.testing.assert_allclose(*(getattr(one.base, name) for one in (whole, first)), rtol=1e-6, atol=1e-6)


@needs_compiler
@pytest.mark.parametrize("missing", ["ticks", "readings"])
def test_gravity_is_known_over_a_gap(missing):
    """No tick is refused, and errors stay as large as told: 12 ticks are left out, or their readings are nan."""
    tracker, found = nd.Tracker(plan(), DT), []
    for seed in range(24):
        rng, motion = np.random.default_rng(seed), sway(DT * np.arange(135), TILTS[seed % 3], seed)
        tracker.reset()
        for k in range(100):
            tracker.step(*read(motion, k, rng))
        if missing == "readings":
            for _ in range(12):
                tracker.inputs.y[:] = np.nan
                assert not tracker.tick().ok
        for k in range(112, 135):
            tracker.step(*read(motion, k, rng), dt=None if missing == "readings" or k > 112 else 13 * DT)
            e, base = error(tracker.base, motion, k), tracker.base
            if k in (112, 134):
                found.append(e @ np.linalg.solve(base.covariance, e))
            assert base.tilt_deviation < 0.1
    for each in (found[::2], found[1::2]):
        assert np.mean(each) < chi2.ppf(0.975, 9 * len(each)) / len(each)


def test_sensors_that_suffice_are_told():
    report = nd.observability(nd.System(robot(), sensors()), n=1)
    assert report.is_observable
    text = " ".join(str(report).split())
    assert "base:velocity, base:gravity (x, y), base:angular_velocity, offset:gyro:box: over 2 instants" in text
    assert "base:gravity (z): at one instant" in text


def test_ways_that_do_not_follow_a_base_are_refused(tmp_path):
    tracker, words = nd.Tracker(plan(), DT, backend="numpy"), "whose base is memory: not yet"
    n, tree = 4, robot()
    q, qd, y = np.tile(tree.neutral_configuration(), (n, 1)), np.zeros((n, tree.nv)), np.zeros((n, plan().system.ny))
    for refused in (
        lambda: tracker.over(None, q, qd, y),
        lambda: tracker.export(tmp_path / "c"),
        lambda: tracker.reset(tracker.state),
        lambda: nd.Tracker(plan(), DT, lag=2, backend="numpy"),
    ):
        with pytest.raises(InputError, match=words):
            refused()
    with pytest.raises(InputError, match="there was no tick yet"):
        _ = tracker.base
    fixed = nd.plan(nd.System(nd.autotree(2), "momentum_observer"), outputs=["qdd"])
    with pytest.raises(InputError, match="the base is no memory here"):
        _ = nd.Tracker(fixed, DT, backend="numpy").base

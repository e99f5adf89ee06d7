"""Collisions of an arm in MuJoCo: false alarms as asked for, and delays beside a first-order momentum observer."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, chi2, norm

import nori_dyn as nd
from nori_dyn.descriptions.mjcf import load_mjcf
from nori_dyn.errors import InputError, PlanError
from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.tracker import Filter
from nori_dyn.filtering.collisions import CollisionDetector
from nori_dyn.filtering.false_alarms import HOUR, Alarms, Peaks, begins_by_chance, clusters, threshold
from nori_dyn.filtering.watched import WatchedHistory
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.compilers import needs_compiler
from tests.peers import mujoco
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import Tolerance, assert_close

MEAN = Tolerance(1e-9, "a mean of 200 readings")

DT = 1e-3
TORQUE_NOISE, SPEED_NOISE = 0.3, 0.005
PUSH, PERIOD, LENGTH = 8.0, 300, 100
"""How hard something pushes the hand [N], how often, and for how long [ticks]."""

ARM = f"""
<mujoco model="arm"><compiler angle="radian"/><option timestep="{DT}" integrator="Euler"/>
  <default><geom contype="0" conaffinity="0"/></default><worldbody>
  <body name="shoulder"><joint name="a" axis="0 0 1"/><geom type="capsule" size="0.06" fromto="0 0 0 0 0 0.3" mass="3"/>
    <body name="upper" pos="0 0 0.3"><joint name="b" axis="0 1 0"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 0.4 0 0" mass="3"/>
      <body name="lower" pos="0.4 0 0"><joint name="c" axis="0 1 0"/>
        <geom type="capsule" size="0.04" fromto="0 0 0 0.35 0 0" mass="2"/>
        <body name="hand" pos="0.35 0 0"><joint name="d" axis="1 0 0"/>
          <geom type="box" size="0.08 0.04 0.03" pos="0.08 0.02 0" mass="1"/>
        </body>
      </body>
    </body>
  </body></worldbody>
</mujoco>"""


@lru_cache(maxsize=1)
def arm() -> tuple[KinematicTree, mujoco.MjModel]:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "arm.xml"
        path.write_text(ARM)
        return load_mjcf(path), mujoco.MjModel.from_xml_path(str(path))


@lru_cache(maxsize=4)
def motion(N: int, pushed: bool, seed: int) -> dict[str, np.ndarray]:
    """What an arm that sways reads, with noise, and MuJoCo's masses and bias forces."""
    _, model = arm()
    data, rng = mujoco.MjData(model), np.random.default_rng(seed)
    found: dict[str, Any] = {key: np.zeros((N, model.nv)) for key in ("q", "qd", "tau", "bias")}
    found["M"] = np.zeros((N, model.nv, model.nv))
    direction = np.zeros(3)
    for k in range(N):
        target = 0.4 * np.sin(2 * np.pi * 0.5 * k * DT + np.arange(4)) + [0, 0.3, 0.6, 0]
        data.qfrc_applied[:] = [200, 200, 100, 20] * (target - data.qpos) - [10, 10, 5, 0.2] * data.qvel
        if k % PERIOD == 0:
            direction = rng.normal(size=3)
            direction *= PUSH / np.linalg.norm(direction)
        hit = pushed and k % PERIOD >= PERIOD - LENGTH
        data.xfrc_applied[model.nbody - 1, :3] = direction if hit else 0
        found["q"][k], found["qd"][k], found["tau"][k] = data.qpos, data.qvel, data.qfrc_applied
        mujoco.mj_step(model, data)
        mujoco.mj_fullM(model, data, found["M"][k])
        found["bias"][k] = data.qfrc_bias
    found["qd"] += SPEED_NOISE * rng.normal(size=(N, model.nv))
    found["tau"] += TORQUE_NOISE * rng.normal(size=(N, model.nv))
    return found


def observer(**memory: Any) -> Filter:
    rows = TORQUES | {"sigma": TORQUE_NOISE}, UNLOADED, ACCELERATIONS | {"value": 0, "sigma": 1000}
    speed = {"of": "qd", "rate": "qdd", "noise": SPEED_NOISE, **memory}
    return Filter(plan(System(arm()[0], sensor_set(*rows, memory={"speed": speed})), ["qdd"]), DT)


def statistics(data: dict[str, np.ndarray], detector: CollisionDetector) -> tuple[np.ndarray, np.ndarray]:
    """The statistics (N,), and where collisions begin (N,)."""
    steps = [detector.step(q, qd, tau) for q, qd, tau in zip(data["q"], data["qd"], data["tau"], strict=True)]
    return np.array([step.statistic for step in steps]), np.array([step.begins for step in steps])


def residuals(data: dict[str, np.ndarray], gain: float) -> np.ndarray:
    """Those of a first-order momentum observer (N, nv): De Luca et al. (2006)."""
    gained = np.einsum("kij,kj->ki", data["M"][:-1], np.diff(data["qd"], axis=0)) / DT
    outside = gained - (data["tau"] - data["bias"])[:-1]
    b = 1 - np.exp(-gain * DT)
    filtered = lfilter([b], [1, b - 1], outside, axis=0)
    return np.vstack([np.zeros(data["qd"].shape[1]), filtered])


def delays(exceeds: np.ndarray) -> np.ndarray:
    """How many ticks after each push begins it is seen; its length where it is not."""
    parts = exceeds.reshape(-1, PERIOD)[:, PERIOD - LENGTH :]
    return np.where(parts.any(axis=1), parts.argmax(axis=1), LENGTH)


@pytest.mark.parametrize("a", [0.0, 0.5, 0.95])
def test_a_smoothed_residual_begins_to_exceed_its_threshold_as_often_as_asked(a):
    per_tick, N = 2e-3, 200_000
    level = threshold(a, per_tick)
    e = np.random.default_rng(1).normal(size=N)
    above = np.abs(lfilter([np.sqrt(1 - a**2)], [1, -a], e)) > level
    begins = int((above[1:] & ~above[:-1]).sum())
    assert binom.ppf(1e-4, N, per_tick) <= begins <= binom.ppf(1 - 1e-4, N, per_tick)
    assert begins_by_chance(level, a) == pytest.approx(per_tick)


def test_false_alarms_are_as_many_as_asked():
    N, per_tick = 4000, 8e-3
    data = motion(N, False, 1)
    detector = CollisionDetector(observer(), per_tick * HOUR / DT)
    found, _ = statistics(data, detector)
    above = found > detector.threshold
    begins = int(np.sum(above[1:] & ~above[:-1]))
    assert binom.ppf(1e-3, N, per_tick) <= begins <= binom.ppf(1 - 1e-3, N, per_tick)


def test_a_push_is_seen_sooner_than_by_a_momentum_observer():
    N, per_hour = 3000, 10.0
    pushed, free = motion(N, True, 2), motion(4000, False, 1)
    detector = CollisionDetector(observer(), per_hour)
    found, _ = statistics(pushed, detector)
    own = delays(found > detector.threshold)
    exceeded = 4 * chi2.sf(detector.threshold**2, 1)  # the same share of ticks for both
    best = np.inf
    for gain in (50, 100, 200, 400, 800):  # slower ones do not forget one push before the next
        P = np.cov(residuals(free, gain)[500:].T)
        r = residuals(pushed, gain)
        others = delays(np.einsum("ki,ij,kj->k", r, np.linalg.inv(P), r) > chi2.isf(exceeded, 4))
        best = min(best, others.mean())
    assert own.mean() < best
    assert own.mean() < 0.03 / DT


@lru_cache(maxsize=1)
def pushed_joint() -> tuple[nd.Plan, np.ndarray]:
    """A joint at rest whose torque reads a constant offset, and 200 readings of it."""
    torque = TORQUES | {"sigma": 0.5, "offset": {"sigma": 2.0}}
    sensors = sensor_set(torque, ACCELERATIONS | {"value": 0}, UNLOADED, memory={"constant": {"of": "offset"}})
    system = System(autotree(1).replace(gravity=(0.0, 0.0, 0.0)), sensors)
    return plan(system, ["tau"]), 1.0 + 0.5 * np.random.default_rng(3).normal(size=200)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("auto", marks=needs_compiler)])
def test_normalised_residuals_are_normalised_innovations(backend):
    """Of a constant they are known: the mean of k readings with the prior, and its variance."""
    made, y = pushed_joint()
    k = np.arange(len(y))
    variance = 1 / (1 / 2.0**2 + k / 0.5**2)
    mean = variance * np.concatenate([[0.0], np.cumsum(y)[:-1]]) / 0.5**2
    expected = (y - mean) / np.sqrt(variance + 0.5**2)
    filter_, zeros = Filter(made, DT, backend=backend), np.zeros((len(y), 1))
    found = filter_.over(None, zeros, zeros, y[:, None], monitor=True).diagnosis
    place = found.readings.index("tau:joint1")
    assert_close(found.normalised[:, place], expected, MEAN)
    assert found.sensors[place] == "tau:joint1"
    for one in y[:9]:
        filter_.step([0.0], [0.0], [one])
        residuals, spreads = filter_.residuals()
    assert_close(residuals[place] / spreads[place], expected[8], MEAN)
    assert filter_.over(None, zeros, zeros, y[:, None], causal=False, monitor=True).diagnosis is None


def test_ticks_are_watched_as_a_whole_log_is():
    made, y = pushed_joint()
    y = np.concatenate([y, y + 3.0])
    detector = CollisionDetector(Filter(made, DT, backend="numpy"), 10.0)
    zeros = np.zeros((len(y), 1))
    whole = detector.over(detector.filter.over(None, zeros, zeros, y[:, None], monitor=True))
    each = [detector.step([0.0], [0.0], [one]) for one in y]
    assert_close([one.statistic for one in each], whole.statistic, MEAN)
    assert [k for k, one in enumerate(each) if one.begins] == whole.begins.tolist()
    assert 200 <= whole.begins[0] < 205
    assert "tau:joint1" in str(whole)
    assert "tau:joint1" in str(each[205])


def test_a_threshold_is_learnt_where_noise_is_not_normal():
    """Ten hours of Student's noise with three degrees of freedom: as many false alarms as chosen, not forty times."""
    made, _ = pushed_joint()
    per_hour, N = 60.0, 3_600_000

    def watched(seed: int) -> WatchedHistory:
        e = np.abs(np.random.default_rng(seed).standard_t(3, size=(N, 1))) / np.sqrt(3)
        return WatchedHistory(0.01 * np.arange(N), e, detector.readings, detector.threshold, detector.alarms)

    detector = CollisionDetector(Filter(made, 0.01, backend="numpy"), per_hour)
    by_theory = len(watched(1).begins)
    detector.calibrate([watched(1)])
    assert len(watched(2).begins) == pytest.approx(10 * per_hour, rel=0.2)
    assert by_theory > 100 * per_hour


def test_probabilities_are_one_half_at_the_threshold():
    """As many touches as false alarms are chosen, of peaks that are exponential: how far an hour's chance reaches."""
    peaks = Peaks(level=3.0, per_hour=100.0, shape=0.0, scale=0.5)
    alarms = Alarms(per_hour=10.0, peaks=peaks)
    level = alarms.threshold(0.01, 6)
    assert level == pytest.approx(3.0 + 0.5 * np.log(10))
    x = np.array([2.9, level, level + 0.5 * np.log(9), 50.0])
    np.testing.assert_allclose(alarms.probabilities(x, level), [0.0, 0.5, 0.9, 1.0], rtol=1e-12)
    bounded = replace(alarms, peaks=replace(peaks, shape=-0.5))  # no peak is above 4
    np.testing.assert_array_equal(bounded.probabilities(np.array([4.0, 5.0]), 3.5), 1.0)
    white = Alarms(per_hour=10.0).probabilities(np.array([4.0, 5.0]), 4.0)
    np.testing.assert_allclose(white, [0.5, 1 / (1 + norm.pdf(5) / norm.pdf(4))], rtol=1e-12)


def test_what_is_above_again_soon_is_one_collision():
    t = np.array([0.0, 0.1, 0.2, 0.6, 0.9, 1.2, 1.3])
    assert clusters(t, np.array([True, False, True, True, False, True, False])) == [(0, 4), (5, 6)]
    assert clusters(np.array([0.0, 2.0]), np.ones(2, dtype=bool)) == [(0, 2)]  # ticks that follow each other
    assert clusters(t, np.zeros(7, dtype=bool)) == []


def test_bad_input_is_refused():
    filter_ = observer()
    for wrong in (0.0, -1.0, 1e9):
        with pytest.raises(InputError, match="false alarms"):
            CollisionDetector(filter_, wrong)
    with pytest.raises(InputError, match="time"):
        CollisionDetector(filter_, 1.0, time=0.0)
    made, y = pushed_joint()
    with pytest.raises(InputError, match="without a lag"):
        CollisionDetector(nd.Tracker(made, DT, lag=3, backend="numpy"))
    detector, zeros = CollisionDetector(Filter(made, DT, backend="numpy")), np.zeros((len(y), 1))
    unjudged = detector.filter.over(None, zeros, zeros, y[:, None])
    with pytest.raises(InputError, match="has no diagnosis"):
        detector.over(unjudged)
    few = detector.over(detector.filter.over(None, zeros, zeros, y[:, None], monitor=True))
    with pytest.raises(InputError, match="too few peaks"):
        detector.calibrate([few])
    exact = sensor_set(TORQUES, UNLOADED | {"sigma": 1.0}, memory={"push": {"of": "fx", "walk": 1.0}})
    with pytest.raises(PlanError, match="no reading that could be off"):
        CollisionDetector(Filter(plan(System(autotree(1), exact), ["qdd"]), DT, backend="numpy"))

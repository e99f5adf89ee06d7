"""Collisions of an arm in MuJoCo: false alarms as asked for, and delays beside a first-order momentum observer."""

from __future__ import annotations

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from scipy.signal import lfilter
from scipy.stats import binom, chi2

from nori_dyn.descriptions.mjcf import load_mjcf
from nori_dyn.errors import InputError, PlanError
from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.tracker import Filter
from nori_dyn.filtering.collisions import HOUR, CollisionDetector, begins_by_chance, threshold
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.peers import mujoco
from tests.systems import sensor_set

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
    """Return what an arm that sways reads, with noise, and MuJoCo's masses and bias forces."""
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
    sensors = sensor_set(
        {"type": "joint_torque", "joints": "all", "sigma": TORQUE_NOISE},
        {"type": "external_wrench", "links": "all", "value": 0},
        {"type": "joint_acceleration", "joints": "all", "value": 0, "sigma": 1000},
    )
    speed = {"of": "qd", "rate": "qdd", "noise": SPEED_NOISE, **memory}
    content = sensors.to_dict() | {"memory": {"speed": speed}}
    return Filter(plan(System(arm()[0], type(sensors).from_dict(content)), ["qdd"]), DT)


def statistics(data: dict[str, np.ndarray], detector: CollisionDetector) -> tuple[np.ndarray, np.ndarray]:
    """Return the chi-squares (N,), and where collisions begin (N,)."""
    steps = [detector.step(q, qd, tau) for q, qd, tau in zip(data["q"], data["qd"], data["tau"], strict=True)]
    return np.array([step.statistic for step in steps]), np.array([step.begins for step in steps])


def residuals(data: dict[str, np.ndarray], gain: float) -> np.ndarray:
    """Return those of a first-order momentum observer (N, nv): De Luca et al. (2006)."""
    gained = np.einsum("kij,kj->ki", data["M"][:-1], np.diff(data["qd"], axis=0)) / DT
    outside = gained - (data["tau"] - data["bias"])[:-1]
    b = 1 - np.exp(-gain * DT)
    filtered = lfilter([b], [1, b - 1], outside, axis=0)
    return np.vstack([np.zeros(data["qd"].shape[1]), filtered])


def delays(exceeds: np.ndarray) -> np.ndarray:
    """Return how many ticks after each push begins it is seen; its length where it is not."""
    parts = exceeds.reshape(-1, PERIOD)[:, PERIOD - LENGTH :]
    return np.where(parts.any(axis=1), parts.argmax(axis=1), LENGTH)


@pytest.mark.parametrize("a", [0.0, 0.5, 0.95])
def test_the_chi_square_begins_to_exceed_its_threshold_as_often_as_asked(a):
    per_tick, N = 2e-3, 200_000
    level = threshold(4, a, per_tick)
    e = np.random.default_rng(1).normal(size=(N, 4))
    above = (lfilter([np.sqrt(1 - a**2)], [1, -a], e, axis=0) ** 2).sum(axis=1) > level
    begins = int((above[1:] & ~above[:-1]).sum())
    assert binom.ppf(1e-4, N, per_tick) <= begins <= binom.ppf(1 - 1e-4, N, per_tick)
    assert begins_by_chance(level, 4, a) == pytest.approx(per_tick)


def test_false_alarms_are_as_many_as_asked():
    N, per_tick = 4000, 8e-3
    data = motion(N, False, 1)
    detector = CollisionDetector(observer(), per_tick * HOUR / DT)
    chi, begins = statistics(data, detector)
    assert binom.ppf(1e-3, N, per_tick) <= begins.sum() <= binom.ppf(1 - 1e-3, N, per_tick)
    assert np.mean(chi[100:]) == pytest.approx(4, abs=0.5)


def test_a_push_is_seen_sooner_than_by_a_momentum_observer():
    N, per_hour = 3000, 10.0
    pushed, free = motion(N, True, 2), motion(4000, False, 1)
    detector = CollisionDetector(observer(), per_hour)
    chi, _ = statistics(pushed, detector)
    own = delays(chi > detector.threshold)
    exceeded = chi2.sf(detector.threshold, 4)  # the same share of ticks for both
    best = np.inf
    for gain in (50, 100, 200, 400, 800):  # slower ones do not forget one push before the next
        P = np.cov(residuals(free, gain)[500:].T)
        r = residuals(pushed, gain)
        others = delays(np.einsum("ki,ij,kj->k", r, np.linalg.inv(P), r) > chi2.isf(exceeded, 4))
        best = min(best, others.mean())
    assert own.mean() < best
    assert own.mean() < 0.03 / DT


def test_bad_input_is_refused():
    filter_ = observer()
    for wrong in (0.0, -1.0, 1e9):
        with pytest.raises(InputError, match="false_alarms"):
            CollisionDetector(filter_, wrong)
    with pytest.raises(InputError, match="time"):
        CollisionDetector(filter_, 1.0, time=0.0)
    offset = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 1.0}}
    sensors = sensor_set(offset, {"type": "external_wrench", "links": "all", "value": 0})
    motionless = {"type": "joint_acceleration", "joints": "all", "sigma": 0.1}
    content = sensors.to_dict() | {"memory": {"drift": {"of": "offset", "walk": 0.1}}}
    content["measurements"] = [*content["measurements"], motionless]
    without = Filter(plan(System(autotree(1), type(sensors).from_dict(content)), ["qdd"]), DT)
    with pytest.raises(PlanError, match="no joint velocities that persist"):
        CollisionDetector(without)

"""The base of robots that walk in MuJoCo: errors as large as told, of the filter and of the smoother, which is better.

Encoders, gyroscope and accelerometer are noisy and these two drift. Which foot bears the robot is told by its load. Its
contact is soft, so it slips and rocks while it stands: what its velocity is then, is measured in the simulation, how
large it is and how long it stays, and told as a state that decays. Of forces and accelerations nothing is told.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pytest
from scipy.ndimage import minimum_filter1d
from scipy.stats import chi2

import nori_dyn as nd
from nori_dyn.measurements.floating_base import SIZE_SIGMA
from nori_dyn.model.kinematics import velocities
from tests.compilers import needs_compiler
from tests.systems import sensor_set
from tests.walking import DT, Walk, walk

GYROSCOPE, ACCELEROMETER, ENCODER, RATE = 0.01, 0.1, 1e-4, 0.05
"""Noise of a reading [rad/s, m/s^2, rad, rad/s]."""
OFFSETS, WALKS = (0.05, 0.1), (1e-4, 1e-3)
"""Of gyroscope and accelerometer: at first, and how they drift in a second."""
BEARING = 0.2
"""Share of the weight that a foot bears at least that is said to stand."""
SETTLED = 25
"""For how many ticks it has: an impact is no noise."""
TICKS, EVERY = 800, 100
SHORT = 6
"""Runs of the short suite."""
POINT, SOLE = ("vx", "vy", "vz"), ("wx", "wy", "wz", "vx", "vy", "vz")
FEET = {"quadruped": ("tip", POINT), "biped": ("sole", SOLE)}
NAMES = [f"base:velocity.{x}" for x in "xyz"] + [f"base:gravity.{x}" for x in "xyz"]
NAMES += [f"base:angular_velocity.w{x}" for x in "xyz"]
NAMES += [f"offset:gyro:base.w{x}" for x in "xyz"] + [f"offset:acc:base.a{x}" for x in "xyz"]


@dataclass(frozen=True, eq=False)
class Walker:
    """A robot that walks for some seconds, and what its sensors read."""

    name: str
    seconds: float

    @cached_property
    def walk(self) -> Walk:
        return walk(self.name, self.seconds)

    @cached_property
    def bears(self) -> np.ndarray:
        """Whether each foot has borne the robot for a while (N, n_feet)."""
        weight = 9.81 * self.walk.tree.I[:, 5, 5].sum()
        bears = np.linalg.norm(self.walk.fx[:, :, 3:], axis=2) > BEARING * weight
        return minimum_filter1d(bears, SETTLED, axis=0, origin=SETTLED // 2)

    @cached_property
    def frames(self) -> list[str]:
        return [foot.replace("foot", FEET[self.name][0]) for foot in self.walk.feet]

    @cached_property
    def truth(self) -> np.ndarray:
        """Velocity, gravity and angular velocity in coordinates of the base (N, 9)."""
        tree = self.walk.tree
        down = [tree.joints[0].transform(q[:7]).E @ tree.gravity for q in self.walk.q]
        return np.hstack([self.walk.qd[:, 3:6], down, self.walk.qd[:, :3]])

    def slips(self, q: np.ndarray, qd: np.ndarray) -> np.ndarray:
        """The velocity of each foot (N, n_feet, n) that is said to be zero."""
        at, n = velocities(self.walk.tree, q.T, qd.T), len(FEET[self.name][1])
        frames = [self.walk.tree.frames[frame] for frame in self.frames]
        return np.stack([frame.X.apply_motion(at.v[frame.link]).T[:, -n:] for frame in frames], axis=1)

    def read(self, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities with the noise of encoders."""
        q, qd = self.walk.q.copy(), self.walk.qd.copy()
        q[:, 7:] += ENCODER * rng.normal(size=q[:, 7:].shape)
        qd[:, 6:] += RATE * rng.normal(size=qd[:, 6:].shape)
        return q, qd

    @cached_property
    def slip(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of each foot that stands the deviation of its velocity, for how long it stays [s], and that of encoders."""
        slips = self.slips(self.walk.q, self.walk.qd)
        noise = self.slips(*self.read(np.random.default_rng(0))) - slips
        sigma, white, lasting = (np.zeros(slips.shape[1:]) for _ in range(3))
        for foot, bears in enumerate(self.bears.T):
            own = slips[:, foot] * bears[:, None]
            sigma[foot] = np.sqrt(np.mean(own[bears] ** 2, axis=0))
            white[foot] = np.sqrt(np.mean(noise[bears, foot] ** 2, axis=0))
            for lag in range(1, 500):
                both = bears[lag:] & bears[:-lag]
                stays = np.mean(own[lag:][both] * own[:-lag][both], axis=0) > sigma[foot] ** 2 / np.e
                lasting[foot][stays & (lasting[foot] == (lag - 1) * DT)] = lag * DT
        return sigma, np.maximum(lasting, DT), white

    @cached_property
    def tracker(self) -> nd.Tracker:
        feet = list(self.walk.feet)
        half = [{"sigma": s, "offset": {"sigma": o}} for s, o in zip((GYROSCOPE, ACCELEROMETER), OFFSETS, strict=True)]
        rows: list[dict] = [
            {"type": "imu", "links": "base", "gyroscope": half[0], "accelerometer": half[1]},
            {"type": "joint_acceleration", "joints": "actuated", "value": 0, "sigma": 1e3},
            {"type": "angular_accelerometer", "links": "base", "value": 0, "sigma": 1e3},
            {"type": "joint_torque", "joints": "root", "value": 0},
            {"type": "external_wrench", "links": {"except": feet}, "value": 0},
            {"type": "external_wrench", "links": feet, "value": 0, "sigma": [100] * 3 + [1000] * 3},
        ]
        memory: dict[str, dict] = {"base": {"of": "base"}}
        for kind, walks in zip(("gyro", "acc"), WALKS, strict=True):
            memory[kind] = {"of": f"offset:{kind}:base", "walk": walks}
        for frame, *found in zip(self.frames, *self.slip, strict=True):
            for component, sigma, T, white in zip(FEET[self.name][1], *found, strict=True):
                name, standing = f"{frame}.{component}", {"type": "zero_velocity", "links": frame, "value": None}
                standing |= {"components": [component], "name": name, "sigma": float(white)}
                rows.append(standing | {"offset": {"sigma": float(sigma)}})
                memory[name.replace(".", "_")] = {
                    "of": f"offset:{name}",
                    "time_constant": float(T),
                    "walk": float(sigma * np.sqrt(2 / T)),
                }
        sensors = sensor_set(*rows, name="walker", memory=memory)
        return nd.Tracker(nd.plan(nd.System(self.walk.tree, sensors), outputs=["qdd"]), DT)

    def run(self, seed: int) -> tuple[tuple[np.ndarray, ...], np.ndarray]:
        """A part of the walk with noise: what the tracker is given of each, and the truth."""
        rng, N = np.random.default_rng(seed), self.walk.n
        start = int(rng.integers(N - TICKS))
        ticks = slice(start, start + TICKS)
        q, qd = (x[ticks] for x in self.read(rng))
        steps = rng.normal(size=(TICKS, 6))
        steps[0] *= np.repeat(OFFSETS, 3)
        steps[1:] *= np.repeat(WALKS, 3) * np.sqrt(DT)
        offsets = np.cumsum(steps, axis=0)
        read = np.hstack([self.walk.qd[ticks, :3], self.walk.accelerometer[ticks]]) + offsets
        y = np.zeros((TICKS, len(self.tracker.measurement_names)))
        y[:, :6] = read + np.repeat([GYROSCOPE, ACCELEROMETER], 3) * rng.normal(size=(TICKS, 6))
        weights = np.tile(self.tracker.inputs.weights, (TICKS, 1))
        for foot, frame in enumerate(self.frames):
            for k, component in enumerate(FEET[self.name][1]):
                at = self.tracker.weight_names.index(f"{frame}.{component}")
                weights[:, at] = self.bears[ticks, foot] / self.slip[2][foot, k] ** 2
        more = SIZE_SIGMA / 9.81 * rng.normal()  # gravity is not the same everywhere
        truth = np.hstack([self.truth[ticks], offsets])
        y[:, 3:6] -= more * truth[:, 3:6]
        truth[:, 3:6] *= 1 + more
        return (q, qd, y, weights), truth


@lru_cache(maxsize=2)
def walker(name: str, is_long: bool) -> Walker:
    return Walker(name, 10.0 if is_long else 4.0)


def squares(e: np.ndarray, P: np.ndarray) -> float:
    return float(e @ np.linalg.solve(P, e))


CASES = [(name, runs) for name in FEET for runs in (SHORT, 100)]


@needs_compiler
@pytest.mark.parametrize(
    ("name", "runs"), [pytest.param(*case, marks=[pytest.mark.long] if case[1] > SHORT else []) for case in CASES]
)
def test_errors_are_as_large_as_told(name, runs):
    """Normalised squares, over all runs and some instants of each, within the region of 95 in 100 means of the runs.

    Of few runs over a short walk, which share the same slips, of 998 in 1,000.
    """
    of, found = walker(name, runs > SHORT), []
    tracker = of.tracker
    at = [tracker.memory_names.index(each) for each in NAMES]
    for seed in range(runs):
        given, truth = of.run(seed)
        tracker.reset()
        for k, (q, qd, y, weights) in enumerate(zip(*given, strict=True)):
            tracker.inputs.q[:], tracker.inputs.qd[:], tracker.inputs.y[:] = q, qd, y
            tracker.inputs.weights[:] = weights
            assert tracker.tick().ok
            if k % EVERY == EVERY - 1:
                state = tracker.state
                e, P = state.mean[at] - truth[k], state.covariance[np.ix_(at, at)]
                found.append([squares(e[:9], P[:9, :9]), squares(e[9:], P[9:, 9:])])
    beyond = 0.025 if runs > SHORT else 0.001
    for mean, n in zip(np.mean(found, axis=0), (9, 6), strict=True):
        low, high = chi2.ppf([beyond, 1 - beyond], n * runs) / runs
        assert low < mean < high


@needs_compiler
@pytest.mark.parametrize(
    ("name", "runs"), [("biped", 2), *(pytest.param(name, 20, marks=pytest.mark.long) for name in FEET)]
)
def test_the_smoother_is_nearer_the_truth_than_the_filter_and_as_sure_as_told(name, runs):
    of, errors, found = walker(name, runs > SHORT), [], []
    for seed in range(runs):
        (q, qd, y, weights), truth = of.run(seed)
        bases = [of.tracker.over(None, q, qd, y, weights=weights, causal=causal).base for causal in (True, False)]
        errors.append([(base.mean - truth[:, :9])[EVERY:] for base in bases])
        smoothed = bases[1]
        e = smoothed.mean - truth[:, :9]
        found += [squares(e[k], smoothed.covariance[k]) for k in range(EVERY - 1, TICKS, EVERY)]
    filtered, smoothed = np.sqrt(np.mean(np.square(errors), axis=(0, 2)))
    assert (smoothed < filtered).all()
    low, high = chi2.ppf([0.025, 0.975], 9 * runs) / runs
    assert low < np.mean(found) < high

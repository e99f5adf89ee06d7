"""Ten minutes at rest with a noisy gyroscope, offsets unknown: nothing becomes falsely certain."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

import nori_dyn as nd
from nori_dyn.measurements.floating_base import SIZE_SIGMA
from tests.compilers import needs_compiler
from tests.standing import GRAVITY, SIGMA, robot, sensors, sway

DT, GYRO, OFFSET, RUNS = 0.01, 0.05, 0.1, 4


def normalised(acc_offset: bool, minutes: tuple[int, ...]) -> dict[int, list[float]]:
    """Normalised squares of the errors of the base and all offsets, after some minutes of each run.

    Of forces nothing is said: that they are 0 +- 300 N at each of 60,000 ticks would tell an acceleration to 0.1 m/s^2.
    """
    content = sensors().to_dict()
    for entry in content["measurements"]:
        if entry["type"] == "gyroscope":
            entry["sigma"] = GYRO
        if entry["type"] == "accelerometer" and acc_offset:
            entry["offset"] = {"sigma": OFFSET}
        if entry["type"] == "external_wrench" and entry.get("sigma"):
            entry["sigma"] = 1e5
    tracker = nd.Tracker(nd.plan(nd.System(robot(), nd.SensorSet.from_dict(content)), outputs=["fx"]), DT)
    marks, found = {round(60 * m / DT): m for m in minutes}, {m: [] for m in minutes}
    for seed in range(RUNS):
        rng = np.random.default_rng(seed)
        pose = sway(np.zeros(1), 0.3 * rng.normal(size=3), seed)
        down = pose.R[0].T @ (GRAVITY * (1 + SIZE_SIGMA / 9.81 * rng.normal()))
        gyro, acc = 0.05 * rng.normal(size=3), OFFSET * acc_offset * rng.normal(size=3)
        tracker.reset()
        tracker.inputs.q[7:], tracker.inputs.qd[6:] = pose.q[0], 0.0
        sigma = np.repeat([SIGMA["acc"], GYRO, SIGMA["standing"]], [3, 3, 6])
        true = np.concatenate([acc - down, gyro, np.zeros(6)])
        for k in range(1, max(marks) + 1):
            tracker.inputs.y[:] = true + sigma * rng.normal(size=12)
            assert tracker.tick().ok
            if k in marks:
                state = tracker.state
                at = [state.names.index(f"base:gravity.{axis}") for axis in "xyz"]
                e = state.mean - np.concatenate([np.zeros(9), acc[: 3 * acc_offset], gyro])
                e[at] -= down
                found[marks[k]].append(float(e @ np.linalg.solve(state.covariance, e)))
    return found


@needs_compiler
@pytest.mark.parametrize(
    ("acc_offset", "minutes"),
    [(True, (1,)), *(pytest.param(each, (1, 3, 10), marks=pytest.mark.long) for each in (False, True))],
)
def test_errors_stay_as_large_as_told_for_ten_minutes(acc_offset, minutes):
    """Noise tells no offset of the accelerometer, nor gravity's direction, which it is not told from at rest."""
    for squares in normalised(acc_offset, minutes).values():
        assert np.mean(squares) < chi2.ppf(0.975, (12 + 3 * acc_offset) * RUNS) / RUNS

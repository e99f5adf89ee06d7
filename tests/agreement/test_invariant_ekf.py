"""The base of a robot that stands and sways against the invariant EKF of Hartley et al., which is given the same."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from tests.compilers import needs_compiler
from tests.invariant_ekf import InvariantEKF
from tests.standing import BIAS, GRAVITY, HIPS, SIGMA, Sway, robot, sensors, sway

DT, N = 0.002, 600
ENCODER, RATE = 0.001, 0.01
"""Noise of the legs' positions [rad, m] and velocities [rad/s, m/s]."""
TILTS = (np.zeros(3), np.array([np.pi / 3, 0.0, 0.0]))


def feet(q: np.ndarray) -> np.ndarray:
    """The positions of the feet in base coordinates (2, 3)."""
    found = []
    for hip, (roll, pitch, length) in zip(HIPS, q.reshape(2, 3), strict=True):
        x, z = -np.sin(pitch) * length, -np.cos(pitch) * length
        found.append(hip + np.array([x, -np.sin(roll) * z, np.cos(roll) * z]))
    return np.array(found)


def off(down: np.ndarray, v: np.ndarray, motion: Sway, k: int) -> tuple[float, float]:
    """By how much gravity's direction and the velocity, in base coordinates, are off [rad, m/s]."""
    c = down @ motion.R[k].T @ GRAVITY / (np.linalg.norm(down) * np.linalg.norm(GRAVITY))
    return float(np.arccos(np.clip(c, -1, 1))), float(np.linalg.norm(v - motion.v[k]))


@cache
def tracker() -> nd.Tracker:
    return nd.Tracker(nd.plan(nd.System(robot(), sensors()), outputs=["fx"]), DT)


@needs_compiler
@pytest.mark.parametrize("tilt", [0, 1])
def test_no_farther_from_the_truth_than_the_invariant_filter(tilt):
    """It begins level, and the base at a tilt, of up to 60 degrees; it may be off by as much, and knows so."""
    errors: list[list[float]] = []
    for seed in range(6):
        motion, rng = sway(DT * np.arange(N), TILTS[tilt], seed), np.random.default_rng(seed)
        P = np.diag([1.0] * 3 + [1.0] * 3 + [1e-8] * 3 + [1.0] * 6 + [0.05**2] * 3 + [1e-12] * 3)
        peer, given, seen = None, [], []
        for k in range(N):
            acc = motion.acc[k] + SIGMA["acc"] * rng.normal(size=3)
            gyro = motion.w[k] + BIAS + SIGMA["gyro"] * rng.normal(size=3)
            q = motion.q[k] + ENCODER * rng.normal(size=6)
            qd = motion.qd[k] + RATE * rng.normal(size=6)
            if peer is None:
                peer = InvariantEKF(np.eye(3), feet(q), P, SIGMA["gyro"], SIGMA["acc"], 0.001, ENCODER)
            peer.correct(feet(q))
            root = np.full(7, np.nan), np.full(6, np.nan)
            given.append((np.append(root[0], q), np.append(root[1], qd), np.concatenate([acc, gyro, np.zeros(6)])))
            seen.append(peer.seen)
            peer.propagate(gyro, acc, DT)
        base = tracker().over(None, *map(np.array, zip(*given, strict=True))).base
        found = [*enumerate(zip(base.gravity, base.velocity, seen, strict=True))][50:]  # at first nothing is known
        errors += [[k, *off(*ours, motion, k), *off(*theirs, motion, k)] for k, (*ours, theirs) in found]
    found = np.array(errors)
    for part in (slice(None), found[:, 0] >= 300):
        tilt, speed, peers_tilt, peers_speed = np.sqrt((found[part, 1:] ** 2).mean(axis=0))
        assert tilt <= peers_tilt
        assert speed <= peers_speed
    assert tilt < np.radians(0.1)

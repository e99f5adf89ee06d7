"""Friction at rest as state: against a dense Kalman filter and smoother of each joint, written by hand."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Friction, Harmonics
from tests.compilers import needs_compiler
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set
from tests.tolerances import Tolerance, assert_close

DENSE = Tolerance(1e-8, "covariances of condition up to 1e6, subtracted, over 400 ticks")
COULOMB, MU, WIDTH, SCATTER, REST, MOTION = 1.0, 0.07, 0.01, 0.2, 5.0, 0.1
NOISE, RIPPLE, PUSH, LASTS, DT = 0.05, 0.1, 3.0, 0.5, 0.01
VISCOUS, DRIFT, WARMS = 0.6, 0.3, 20.0
ROOT, CHANGES = 0.2 * np.random.default_rng(3).normal(size=(6, 6)), 30.0
WAVES = Harmonics(joints="joint1", sin2=0.3, cos2=-0.2, cos4=0.1, covariance=(ROOT @ ROOT.T).tolist(), lasts=CHANGES)
GAP = 250
"""The tick that comes a second late."""
NAMES = "joint1", "joint2"


def arm(*more: Harmonics) -> nd.KinematicTree:
    drift = {"drift": DRIFT, "warms": WARMS}
    stiction = {"scatter": SCATTER, "ripple": RIPPLE, **drift, "rest": REST, "motion": MOTION}
    friction = Friction(joints="all", viscous=VISCOUS, coulomb=COULOMB, mu=MU, width=WIDTH, stiction=stiction)
    return nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0), components=[friction, *more])


def plan(*more: Harmonics) -> nd.Plan:
    """Torques with a push of each joint beside its stiction, which no entry of the memory names."""
    rows = [ACCELERATIONS, TORQUES | {"sigma": NOISE, "offset": {"sigma": PUSH}}, UNLOADED]
    push = {"of": "offset", "walk": PUSH * np.sqrt(2 / LASTS), "time_constant": LASTS}
    sensors = sensor_set(*rows, name="pushed", memory={"push": push})
    return nd.plan(nd.System(arm(*more), sensors), outputs=["offset", "stiction", "drift", "tau"])


def recorded(n: int = 400) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Times, positions, velocities, and readings of torques: rest, motion, a slow reversal, rest."""
    t = DT * np.arange(n) + np.where(np.arange(n) >= GAP, 1.0, 0.0)
    speed = np.where(np.abs(np.arange(n) - 150) < 50, np.sin(np.arange(n) / 7), 0.0)
    qd = np.stack([0.8 * speed, 0.03 * speed], axis=1)
    q = np.array([0.3, -0.8]) + DT * np.cumsum(qd, axis=0)
    rng = np.random.default_rng(0)
    law = nd.rnea(arm(WAVES), q.T, qd.T, np.zeros((2, n))).T
    return t, q, qd, law + 0.7 + rng.normal(size=(n, 2)) * NOISE


def by_hand(j: int) -> dict[str, np.ndarray]:
    """Means and deviations of [push, share, drift, waves] of a joint by the readings so far, and by all."""
    t, q, qd, y = recorded()
    rigid = arm().replace(components=())
    zero = np.zeros_like(q.T)
    weight = np.sqrt(nd.rnea(rigid, q.T, zero, zero)[j] ** 2 + 1e-12) - 1e-6
    r = y[:, j] - nd.rnea(arm(WAVES), q.T, qd.T, zero)[j]
    square, level = qd[:, j] ** 2, COULOMB + MU * weight
    size = np.sqrt((WIDTH**2 * level**2 + 3 * SCATTER**2 * square) / (WIDTH**2 + square))
    shaken = (qd**2).sum(axis=1)  # by any joint that moves
    rate = (WIDTH**2 / REST + shaken / MOTION) / (WIDTH**2 + shaken)
    noise = NOISE**2 + RIPPLE**2 * square / (WIDTH**2 + square)
    waves = np.stack([f(k * q[:, j]) for k in (2, 3, 4) for f in (np.sin, np.cos)], axis=1) * (j == 0)
    before = np.diag([PUSH**2, 1 / 3, DRIFT**2, *[1.0] * 6])
    before[3:, 3:] = ROOT @ ROOT.T
    m, P, passed = np.zeros(9), before, []
    for k in range(len(t)):
        H = np.array([1.0, size[k], VISCOUS * qd[k, j], *waves[k]])
        gain = P @ H / (H @ P @ H + noise[k])
        m, P = m + gain * (r[k] - H @ m), P - np.outer(gain, H @ P)
        dt = t[k + 1] - t[k] if k + 1 < len(t) else DT
        fades = np.exp(-dt * rate[k]) if dt < 5.5 * DT else 1e-4  # after a gap it may be any
        F = np.diag([np.exp(-dt / LASTS), fades, np.exp(-dt / WARMS), *[np.exp(-dt / CHANGES)] * 6])
        passed.append((m, P, F, F @ m, F @ P @ F + before - F @ before @ F))
        m, P = passed[-1][3:]
    later = [passed[-1][:2]]
    for mean, cov, F, ahead, P_ahead in passed[-2::-1]:
        back = cov @ F @ np.linalg.inv(P_ahead)
        later.append((mean + back @ (later[-1][0] - ahead), cov + back @ (later[-1][1] - P_ahead) @ back.T))
    found = {"filtered": [each[:2] for each in passed], "smoothed": later[::-1]}
    return {
        f"{which} {what}": np.array([one[k] if k == 0 else np.sqrt(np.diag(one[k])) for one in each])
        for which, each in found.items()
        for k, what in enumerate(("mean", "deviation"))
    }


@pytest.mark.parametrize("backend", ["numpy", pytest.param("auto", marks=needs_compiler)])
@pytest.mark.parametrize("which", ["filtered", "smoothed"])
def test_pushes_and_friction_at_rest_are_those_of_a_dense_filter(backend, which):
    t, q, qd, y = recorded()
    tracker = nd.Tracker(plan(WAVES), DT, backend=backend)
    found = tracker.over(t, q, qd, np.hstack([np.zeros_like(y), y]), causal=which == "filtered")
    for j, name in enumerate(NAMES):
        expected = by_hand(j)
        for k, kind in enumerate(("offset:tau", "stiction", "drift")):
            place = found.memory.places(f"{kind}:{name}")[0]
            assert_close(found.memory.mean[:, place], expected[f"{which} mean"][:, k], DENSE)
            assert_close(found.memory.deviations[:, place], expected[f"{which} deviation"][:, k], DENSE)


@pytest.mark.parametrize("backend", ["numpy", pytest.param("auto", marks=needs_compiler)])
def test_ticks_are_those_of_a_whole_log(backend):
    t, q, qd, y = recorded()
    y = np.hstack([np.zeros_like(y), y])
    tracker = nd.Tracker(plan(WAVES), DT, backend=backend)
    found = tracker.over(t, q, qd, y)
    for k in range(len(t)):
        now = tracker.step(q[k], qd[k], y[k], dt=None if k == 0 else t[k] - t[k - 1])
    assert_close(now.memory.mean, found.memory.mean[-1], DENSE)
    for name in ("offset", "stiction", "tau"):
        assert_close(now[name], found.estimate[name][-1], DENSE)
        assert_close(now.deviations[name], found.deviations[name][-1], DENSE)
        assert_close(now.bands[name], found.bands[name][-1], DENSE)


def test_a_band_at_rest_is_no_wider_than_friction_can_be():
    """A Gaussian of that deviation would have 1.13 of the level; in motion it is one."""
    t, q, qd, y = recorded()
    found = nd.Tracker(plan(), DT, backend="numpy").over(t, q, qd, np.hstack([np.zeros_like(y), y]))
    weight = np.abs(nd.rnea(arm().replace(components=()), q.T, 0 * q.T, 0 * q.T)).T
    level, ratio = COULOMB + MU * weight, found.bands["stiction"] / found.deviations["stiction"]
    at_rest, fast = (qd == 0) & (found.deviations["stiction"] > 0.9 / np.sqrt(3)), np.abs(qd) > 0.5
    assert at_rest.sum() > 50
    assert fast.sum() > 50
    assert (found.bands["stiction"][at_rest] <= 1).all()
    assert (found.bands["offset"][at_rest] <= level[at_rest]).all()
    assert (1.96 * found.deviations["offset"][at_rest] > level[at_rest]).any()
    assert (ratio[fast] > 1.95).all()


def test_an_entry_may_name_it_and_then_says_nothing_more():
    rows, named = (TORQUES | {"sigma": 1.0}, UNLOADED), {"of": "stiction"}
    found = nd.System(arm(), sensor_set(*rows, memory={"friction": named})).memory
    assert [(one.memory, one.variable.name) for one in found] == [
        (memory, f"{kind}:{name}") for name in NAMES for memory, kind in (("friction", "stiction"), ("drift", "drift"))
    ]
    with pytest.raises(nd.errors.SensorConfigError, match="'stiction:joint1' is as the friction of its joint says"):
        nd.System(arm(), sensor_set(*rows, memory={"friction": named | {"walk": 1.0}}))

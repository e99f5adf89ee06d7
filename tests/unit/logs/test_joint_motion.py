from functools import cache
from math import factorial

import mpmath as mp
import numpy as np
import pytest
from scipy.signal import savgol_filter
from scipy.stats import chi2

import nori_dyn as nd
from nori_dyn.errors import InputError
from nori_dyn.logs.motion.joint_filter import (
    BEFORE,
    JointFilter,
    JointModel,
    JointNoise,
    covariance,
    joint_states,
    linear_recursion,
)

READ = {"positions": (0,), "velocities": (1,), "both": (0, 1)}


def given_of(read, q, qd, **more):
    """What of both is read; more is told of both, in the same order."""
    given = {}
    for which, name in ((0, "q"), (1, "qd")):
        if which in READ[read]:
            given |= {name: (q, qd)[which]} | {f"{what}_{name}": each[which] for what, each in more.items()}
    return given


def transition(dt, first):
    """F and Q of a jerk that walks by 1 a second, by their closed forms, from the derivative `first` on."""
    n = 4 - first
    F = mp.matrix(n, n)
    Q = mp.matrix(n, n)
    for i in range(n):
        for j in range(n):
            F[i, j] = dt ** (j - i) / factorial(j - i) if j >= i else 0
            a, b = n - 1 - i, n - 1 - j
            Q[i, j] = dt ** (a + b + 1) / (factorial(a) * factorial(b) * (a + b + 1))
    return F, Q


def textbook(t, y, read, jerk, sigmas):
    """Means and deviations of a Kalman filter, and of the smoother after it, of one joint, with 50 digits."""
    first = 0 if read[0] == 0 else 1
    n = 4 - first
    x, P = mp.zeros(n, 1), mp.diag([mp.mpf(b) ** 2 for b in BEFORE[first:]])
    kept = []
    for k in range(len(t)):
        F, expected, spread = None, x, P
        if k:
            F, Q = transition(mp.mpf(t[k]) - mp.mpf(t[k - 1]), first)
            expected, spread = F * x, F * P * F.T + jerk**2 * Q
        x, P = expected, spread
        for column, which in enumerate(read):
            if np.isfinite(y[k, column]):
                H = mp.zeros(1, n)
                H[which - first] = 1
                K = P * H.T / ((H * P * H.T)[0] + sigmas[column] ** 2)
                x, P = x + K * (y[k, column] - (H * x)[0]), P - K * H * P
        kept.append((x, P, F, expected, spread))
    later = [kept[-1][:2]]
    for (x, P, *_), (_, _, F, expected, spread) in zip(kept[-2::-1], kept[:0:-1], strict=True):
        G = P * F.T * mp.inverse(spread)
        x_s, P_s = later[-1]
        later.append((x + G * (x_s - expected), P + G * (P_s - spread) * G.T))
    return [_told(kept), _told(later[::-1])]


def _told(parts):
    means = np.array([[float(each) for each in part[0]] for part in parts])
    deviations = np.array([[float(mp.sqrt(part[1][i, i])) for i in range(part[1].rows)] for part in parts])
    return means, deviations


@pytest.mark.parametrize("read", READ)
def test_filter_and_smoother_are_those_of_the_textbook(read):
    """Of two joints that read the same, over a gap and over even steps, in which the smoother settles."""
    rng, n, jerk = np.random.default_rng(1), 240, 300
    steps = rng.choice([0.06, 0.1, 0.17], n)
    steps[30] = 2.0  # a gap
    steps[40] = 0.0  # twice at one time
    steps[45:] = 0.1
    t = 5 + np.cumsum(steps)
    y = np.stack([f(t) + rng.normal(0, 0.01, n) for f in (np.sin, np.cos)], axis=1)[:, READ[read]]
    y[:60][rng.random(y[:60].shape) < 0.2] = np.nan
    sigmas = [(0.01, 0.02)[k] for k in READ[read]]
    own = (np.full(2, 0.01 * (1 + k)) if k in READ[read] else None for k in range(2))
    noise = JointNoise(np.full(2, float(jerk)), *own)
    with mp.workdps(50):
        expected = textbook(t, y, READ[read], jerk, sigmas)
    for smooth, (means, deviations) in enumerate(expected):
        x, sigma = joint_states(noise, t, np.stack([y, y], axis=1), 0.1, bool(smooth))
        for joint in range(2):
            np.testing.assert_allclose(sigma[:, joint], deviations, rtol=1e-8)
            assert np.abs((x[:, joint] - means) / deviations).max() < 1e-8
    assert np.isclose(sigma[1:], sigma[:-1], rtol=1e-12, atol=0).all(axis=(1, 2)).any()


def simulated(rng, n, dt, jerks):
    """Motions (n, m, 4) whose jerk walks."""
    F, Q = (np.array(part.tolist(), dtype=float) for part in transition(mp.mpf(dt), 0))
    root = np.linalg.cholesky(Q)
    x = np.zeros((n, len(jerks), 4))
    for k in range(1, n):
        x[k] = x[k - 1] @ F.T + jerks[:, None] * (rng.normal(size=(len(jerks), 4)) @ root.T)
    return x


JERKS, DT = np.array([20.0, 100.0, 500.0]), 0.01


@cache
def walked():
    """Motions, and what is read of their positions and velocities."""
    rng = np.random.default_rng(3)
    x = simulated(rng, 6000, DT, JERKS)
    return x, x[..., 0] + rng.normal(0, 1e-4, x.shape[:2]), x[..., 1] + rng.normal(0, 1e-3, x.shape[:2])


@pytest.mark.parametrize("read", READ)
def test_deviations_are_honest(read):
    x, q, qd = walked()
    given = given_of(read, q, qd, sigma=(1e-4, 1e-3))
    for causal in (True, False):
        found = nd.tools.joint_motion(DT * np.arange(6000), causal=causal, jerk=JERKS, **given)
        for mean, sigma, truth in ((found.qdd, found.sigma_qdd, x[..., 2]), (found.qd, found.sigma_qd, x[..., 1])):
            off = ((mean - truth) / sigma)[10:-10:60]  # so far apart that they are independent
            assert chi2.ppf(1e-4, off.size) < np.sum(off**2) < chi2.ppf(1 - 1e-4, off.size)


@pytest.mark.parametrize("read", READ)
def test_the_noise_is_found(read):
    _, q, qd = walked()
    given = given_of(read, q[:5000], qd[:5000])
    noise = nd.tools.joint_motion(DT * np.arange(5000), **given).noise
    np.testing.assert_allclose(noise.jerk, JERKS, rtol=0.2)
    for name, sigma in (("q", 1e-4), ("qd", 1e-3)):
        if name in given:
            np.testing.assert_allclose(getattr(noise, f"sigma_{name}"), sigma, rtol=0.1)
    some = nd.tools.joint_motion(DT * np.arange(1000), **given_of(read, q[:1000], qd[:1000]), jerk=JERKS).noise
    np.testing.assert_allclose(some.jerk, JERKS)


def test_it_suits_each_joint_where_one_window_cannot():
    dt = 0.01
    t = dt * np.arange(3000)
    rng = np.random.default_rng(5)
    w, noise = np.array([0.5, 12.0]), np.array([1e-3, 1e-3])
    qd, qdd = np.cos(np.outer(t, w)), -w * np.sin(np.outer(t, w))
    read = qd + rng.normal(0, noise, qd.shape)
    found = nd.tools.joint_motion(t, None, read)

    def off(accelerations):
        return np.sqrt(np.mean((accelerations - qdd) ** 2, axis=0)) / w

    ours = off(found.qdd)
    for window in (5, 11, 21, 51, 101, 201):
        assert off(savgol_filter(read, window, 3, deriv=1, delta=dt, axis=0)).sum() > 1.5 * ours.sum()


def test_a_gap_widens_the_deviations():
    t = 0.01 * np.arange(400)
    t[200:] += 0.5
    read = np.sin(t)[:, None]
    found = nd.tools.joint_motion(t, read, jerk=10.0, sigma_q=1e-3, causal=True)
    assert found.sigma_qdd[200] > 3 * found.sigma_qdd[199]
    assert found.sigma_qdd[399] == pytest.approx(found.sigma_qdd[199], rel=1e-3)
    missing = read.copy()
    missing[100:150] = np.nan
    found = nd.tools.joint_motion(t, missing, jerk=10.0, sigma_q=1e-3)
    assert found.sigma_q[125] > 3 * found.sigma_q[50]
    assert np.isfinite(found.qdd).all()


def test_times_that_are_rounded_are_even_and_joints_that_stand_still_do_no_harm():
    t = 1.7e9 + 0.001 * np.arange(3000)  # of UNIX, to a quarter of a microsecond
    read = np.sin(t - t[0])[:, None]
    found = nd.tools.joint_motion(t, read, jerk=1000.0, sigma_q=1e-3)
    again = nd.tools.joint_motion(0.001 * np.arange(3000), read, jerk=1000.0, sigma_q=1e-3)
    np.testing.assert_allclose(found.qdd, again.qdd, rtol=1e-6, atol=1e-6)
    found = nd.tools.joint_motion(T, Y)  # joints that stand still do no harm
    np.testing.assert_allclose(found.qdd, 0.0, atol=1e-12)
    assert np.isfinite(found.sigma_qdd).all()
    assert (found.sigma_qdd > 0).all()


def test_what_it_settles_to_is_what_a_long_run_comes_to():
    for memory in (3.0, 30.0, 100.0):
        model = JointModel(JointNoise(np.array([memory**-3.0]), None, np.ones(1)), 1.0)
        run = JointFilter(model)
        for k in range(int(model.settled.memory)):
            run.step(float(k > 0), np.zeros((1, 1)))
        R, settled = run.known.R[0], model.settled.R[0]
        np.testing.assert_allclose(R.T @ R, settled.T @ settled, rtol=1e-8)
        np.testing.assert_allclose(covariance(R), model.settled.P[0], rtol=1e-8)


T = 0.01 * np.arange(100)
Y = np.zeros((100, 2))


def test_what_is_wrong_is_told():
    for given, said in (
        ({}, "nothing is read: give q, qd, or both"),
        ({"q": Y, "sigma_q": 0.0}, "sigma_q is 0: it must be positive"),
        ({"q": Y, "sigma_q": [1.0, -1.0]}, "sigma_q is -1: it must be positive"),
        ({"q": Y, "sigma_q": [1.0, 1.0, 1.0]}, "one for each of 2 joints"),
        ({"q": Y, "jerk": np.nan}, "jerk is nan: it must be positive"),
        ({"q": Y, "jerk": np.inf}, "jerk is inf: it must be positive"),
        ({"q": Y, "sigma_qd": 1.0}, "sigma_qd is given, and no qd"),
        ({"q": Y[:50]}, r"q must be \(N, n\)"),
        ({"q": Y[:, 0]}, r"q must be \(N, n\)"),
        ({"q": Y, "qd": Y[:, :1]}, "they must be alike"),
        ({"q": np.where(np.arange(2) == 1, np.nan, Y)}, "column 1 of q has no reading at all"),
        ({"q": np.full((100, 2), np.inf)}, "q is infinite at sample 0"),
        ({"t": T[::-1], "q": Y}, r"time goes backwards: t is 0.98 s at sample 1, after 0.99 s"),
        ({"t": np.where(np.arange(100) == 5, np.nan, T), "q": Y}, "t is not a number at sample 5"),
        ({"t": np.zeros(100), "q": Y}, "at least two times are needed"),
        ({"t": T[:20], "q": Y[:20]}, "no 32 samples follow each other evenly"),
        ({"q": [["x"]] * 100}, "q is not an array of numbers"),
    ):
        with pytest.raises(InputError, match=said):
            nd.tools.joint_motion(**({"t": T} | given))
    for wrong in (0.0, np.inf):
        with pytest.raises(InputError, match=f"jerk is {wrong:g}: it must be positive"):
            JointNoise(np.array([1.0, wrong]), None, np.ones(2))


def test_it_is_that_of_a_loop():
    for n_samples in (0, 1, 2, 7, 100, 101):
        rng = np.random.default_rng(n_samples)
        A, before = rng.normal(scale=0.4, size=(2, 3, 3)), rng.normal(size=(2, 3))
        u = rng.normal(size=(n_samples, 2, 3))
        found, x = linear_recursion(A, u, before), before
        assert found.shape == u.shape
        for k in range(n_samples):
            x = np.einsum("nij,nj->ni", A, x) + u[k]
            np.testing.assert_allclose(found[k], x, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("reads", ["q", "qd"])
def test_a_simulated_motion_without_any_noise(reads):
    t = 0.01 * np.arange(200)
    motion = nd.tools.joint_motion(t, **{reads: np.cos(t)[:, None]})
    rates = (-np.sin(t), -np.cos(t)) if reads == "q" else (np.cos(t), -np.sin(t))
    np.testing.assert_allclose(motion.qd[:, 0], rates[0], atol=1e-4)
    np.testing.assert_allclose(motion.qdd[10:-10, 0], rates[1][10:-10], atol=1e-3)


def test_times_that_are_rounded_to_milliseconds_have_noise():
    """Steps of 2 and 3 ms, which are as many as half of the usual one apart."""
    t, noise = np.arange(0, 4, 1 / 424), np.random.default_rng(0).normal(0, 1e-4, (1696, 1))
    found = nd.tools.joint_motion(np.round(t, 3), np.sin(2 * t)[:, None] + noise)
    off = (found.qdd[:, 0] + 4 * np.sin(2 * t))[50:-50]
    assert np.sqrt(np.mean(off**2)) < 0.1
    assert np.mean(np.abs(off) < 1.96 * found.sigma_qdd[50:-50, 0]) > 0.9

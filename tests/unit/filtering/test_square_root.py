"""The square-root steps: against a textbook Kalman filter and smoother in 150 digits, and what they cannot know."""

from dataclasses import dataclass, replace
from functools import cache

import mpmath as mp
import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.filtering.square_root import (
    MotionModel,
    Posterior,
    SquareRootInformation,
    predict,
    smooth_step,
    triangular,
    update,
)
from nori_dyn.program.native_runs import NativeRuns
from nori_dyn.program.native_track import NativeFilter
from nori_dyn.program.track_source import TrackShape
from tests.compilers import WIDTHS, compiler_for
from tests.tolerances import Tolerance, assert_close

TEXTBOOK = Tolerance(1e-10, "orthogonal transformations of rows whose condition is up to 1e4, over 60 ticks")
DIFFUSE = mp.mpf(10) ** 50
"""The variance that stands for infinity where numbers have 150 digits."""


@dataclass(frozen=True)
class Tick:
    """What a tick is given."""

    A: np.ndarray
    c: np.ndarray
    weights: np.ndarray
    motion: MotionModel


@dataclass(frozen=True)
class Case:
    """A filter's sizes, what is known before it starts, how that walks and decays, and its ticks."""

    n_s: int
    n_v: int
    n_f: int
    mean: np.ndarray
    sigmas: np.ndarray
    walk: np.ndarray
    T: np.ndarray
    ticks: tuple[Tick, ...]

    @property
    def shape(self):
        """What C has to know of the steps."""
        entries = np.any([tick.A != 0 for tick in self.ticks], axis=0)
        return replace(shape_of((self.n_s, self.n_v, self.n_f), entries), walk=self.walk.tolist())


def shape_of(sizes, entries):
    """The shape of steps, of which some entries of A (p, n) count."""
    n_s, n_v, n_f = sizes
    p, n = entries.shape
    X = tuple((i, j) for i in range(n_v) for j in range(n) if not n_s <= j <= n_s + i)
    A = tuple(map(tuple, np.argwhere(entries).tolist()))
    k = n_v + n_f
    return TrackShape(*sizes, p, A, X, weight_of=tuple(range(p)), walk=(1.0,) * k, inverse_time=(0.0,) * k)


def random_case(sizes, n_ticks, seed=0, diffuse=(), missing=0.2, apart=False):
    """A case whose dt vary, whose walks are zero in places, and some of whose readings are missing."""
    n_s, n_v, n_f, p = sizes
    k = n_v + n_f
    rng = np.random.default_rng(seed)
    sigmas = rng.uniform(0.1, 10.0, k)
    sigmas[list(diffuse)] = np.inf
    walk = rng.uniform(0.1, 1.0, k) * (np.arange(k) % 3 > 0)
    T = np.where(np.arange(k) % 4 == 3, 0.05, np.inf)
    ticks = []
    for number in range(n_ticks):
        dt = rng.uniform(0.001, 0.02)
        A = rng.normal(size=(p, n_s + k)) * (rng.random((p, n_s + k)) < 0.7)
        A[:n_s, :n_s] += 3 * np.eye(n_s)
        if apart:  # no row is of s and of v
            A[: p // 2, n_s : n_s + n_v], A[p // 2 :, :n_s] = 0.0, 0.0
        weights = 10.0 ** rng.uniform(-1, 4, p) * (rng.random(p) > missing * (number > 0))
        weights[:n_s] += 0.5
        Q = np.where(np.isinf(T), walk**2 * dt, walk**2 * np.where(np.isinf(T), 1.0, T) / 2 * -np.expm1(-2 * dt / T))
        x, X_s, X_f = rng.normal(size=n_v), rng.normal(size=(n_v, n_s)), rng.normal(size=(n_v, n_f))
        X_v = np.triu(rng.normal(size=(n_v, n_v)), 1)
        ticks.append(Tick(A, rng.normal(size=p), weights, MotionModel(dt, X_s, X_v, X_f, x, np.exp(-dt / T), Q)))
    return Case(n_s, n_v, n_f, rng.normal(size=k), sigmas, walk, T, tuple(ticks))


def exact(values):
    return np.vectorize(mp.mpf, otypes=[object])(np.asarray(values, dtype=float))


def inverse(M):
    return np.array((mp.matrix(M.tolist()) ** -1).tolist(), dtype=object).reshape(M.shape)


def textbook(case):
    """Of a textbook Kalman filter and smoother: by tick the estimates, and the smoothed ones."""
    s, v, k = case.n_s, case.n_v, case.n_v + case.n_f
    m = exact(case.mean * np.isfinite(case.sigmas))
    P = np.diag([DIFFUSE if np.isinf(sigma) else mp.mpf(sigma) ** 2 for sigma in case.sigmas])
    unknown = int(np.isinf(case.sigmas).sum())
    found = []
    for tick in case.ticks:
        prior = np.full((s + k, s + k), mp.mpf(0), dtype=object)
        prior[:s, :s] = np.diag([DIFFUSE] * s)
        prior[s:, s:] = P
        u = np.concatenate([exact(np.zeros(s)), m])
        rows = tick.weights > 0
        A, c = exact(tick.A[rows]), exact(tick.c[rows])
        S = A @ prior @ A.T + np.diag(1 / exact(tick.weights[rows]))
        innovation = -(A @ u + c)
        gain = prior @ A.T @ inverse(S)
        nis = innovation @ inverse(S) @ innovation
        u, P_u = u + gain @ innovation, prior - gain @ A @ prior
        log_likelihood = -(mp.log(mp.det(mp.matrix(S.tolist()))) + nis + rows.sum() * mp.log(2 * mp.pi)) / 2
        log_likelihood += (s + unknown) * mp.log(2 * mp.pi * DIFFUSE) / 2
        motion = tick.motion
        F = np.hstack([exact(np.zeros((k, s))), np.diag(exact(motion.decay))])
        F[:v, s : s + v] += motion.dt * exact(motion.X_v)
        F[:v, :s], F[:v, s + v :] = motion.dt * exact(motion.X_s), motion.dt * exact(motion.X_f)
        m = F @ u + np.concatenate([motion.dt * exact(motion.x), exact(np.zeros(case.n_f))])
        P = F @ P_u @ F.T + np.diag(exact(motion.Q))
        found.append((u, P_u, nis, int(rows.sum()) - s - unknown, log_likelihood, F, m, P))
        unknown = 0
    backward = [(m, P)]
    for u, P_u, *_, F, ahead, P_ahead in reversed(found):
        mean, covariance = backward[-1][0][-k:], backward[-1][1][-k:, -k:]
        gain = P_u @ F.T @ inverse(P_ahead)
        backward.append((u + gain @ (mean - ahead), P_u + gain @ (covariance - P_ahead) @ gain.T))
    return found, backward[:0:-1]


class Native:
    """The steps in C, with the names of those in NumPy."""

    def __init__(self, shape, lanes):
        self.steps = NativeFilter(shape, compiler_for(lanes))

    def update(self, before, A, c, weights, n_s):
        """See `update`."""
        at = self.steps
        at.R[:], at.z[:], at.c[:], at.weights[:] = before.R, before.z, c, weights
        at.A[:] = [A[place] for place in at.shape.A]
        count = at.library.update(at.steps)
        found = Posterior(at.R_u.copy(), at.z_u.copy(), at.nis, at.degrees, at.log_likelihood, at.u.copy())
        assert count == len(found.undetermined)
        assert found.undetermined == tuple(np.flatnonzero(at.pivots == 0).tolist())
        return found

    def predict(self, after, motion):
        """See `predict`."""
        at = self.steps
        at.X[:], at.x[:] = entries_of_X(motion, at.shape), motion.x
        at.decay[:], at.Q[:] = motion.decay, motion.Q
        at.steps.dt = motion.dt
        at.library.propagate(at.steps)
        return SquareRootInformation(at.R.copy(), at.z.copy())


def entries_of_X(motion, shape):
    """The entries of the matrix of rates that there are."""
    X = np.hstack([motion.X_s, motion.X_v, motion.X_f])
    return [X[place] for place in shape.X]


def steps_of(kind, shape):
    """`update` and `predict`, in NumPy or in C.

    Args:
        kind: 0 for NumPy, or the doubles of a vector; exported C has one.
        shape: what C has to know.
    """
    if not kind:
        return update, predict
    native = Native(shape, kind)
    return native.update, native.predict


NAMES = {0: "numpy", **{lanes: f"{lanes} lanes" for lanes in (1, *WIDTHS)}}


def run(case, kind):
    """What the steps find at each tick: what is known before, after, and in the end."""
    before, found = SquareRootInformation.of(case.mean, case.sigmas), []
    update, propagate = steps_of(kind, case.shape)
    for tick in case.ticks:
        after = update(before, tick.A, tick.c, tick.weights, case.n_s)
        found.append((before, after))
        before = propagate(after, tick.motion)
    return found, before


CASES = {
    "arm": random_case((2, 2, 2, 6), 60, seed=1),
    "nothing known before": random_case((2, 2, 2, 8), 10, seed=2, diffuse=(0, 1, 2, 3)),
    "memory alone": random_case((0, 0, 4, 3), 20, seed=3),
    "no rates": random_case((2, 0, 3, 4), 20, seed=4),
    "rates alone": random_case((2, 2, 0, 4), 20, seed=5),
    "rows of s and of v apart": random_case((2, 3, 2, 8), 20, seed=7, apart=True),
    (WIDE := "more columns than two of the widest vectors"): random_case((6, 5, 7, 20), 3, seed=6),
}
OTHERS = [name for name in CASES if name not in ("arm", WIDE)]


@cache
def solved(name):
    mp.mp.dps = 150
    return textbook(CASES[name])


def same(found, expected):
    assert_close(found, np.array(expected, dtype=float), TEXTBOOK)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        *((name, kind) for name in ("arm", WIDE) for kind in NAMES),
        *((name, kind) for k, name in enumerate(OTHERS) for kind in (0, (1, *WIDTHS)[k % 4])),
    ],
)
def test_filter_and_smoother_are_those_of_the_textbook(name, kind):
    case, (expected, expected_later) = CASES[name], solved(name)
    found, last = run(case, kind)
    known = [*[before for before, _ in found[1:]], last]
    for (_, after), before, (u, P, nis, degrees, log_likelihood, _, m, P_m) in zip(found, known, expected, strict=True):
        same(after.u, u)
        same(after.covariance(), P)
        same(after.nis, nis)
        same(after.log_likelihood, log_likelihood)
        assert after.degrees == degrees
        assert not after.undetermined
        assert not np.tril(after.R, -1).any()
        same(before.mean(), m)  # the memory at the next tick
        same(before.covariance(), P_m)
        assert not np.tril(before.R, -1).any()
    mean, covariance = last.mean(), last.covariance()
    for (_, after), tick, (u, P) in zip(found[::-1], case.ticks[::-1], expected_later[::-1], strict=True):
        u_hat, P_hat = smooth_step(after, tick.motion, mean, covariance)
        same(u_hat, u)
        same(P_hat, P)
        mean, covariance = u_hat[case.n_s :], P_hat[case.n_s :, case.n_s :]
        assert mean.shape == (case.n_v + case.n_f,)


@pytest.mark.parametrize(
    ("name", "lanes"),
    [
        *((WIDE, lanes) for lanes in WIDTHS),
        *(("arm", lanes) for lanes in WIDTHS),
        ("nothing known before", 4),
        ("memory alone", 2),
        ("no rates", 2),
        ("rates alone", 4),
    ],
)
def test_runs_forward_and_back_are_those_of_the_textbook(name, lanes):
    case, (expected, expected_later) = CASES[name], solved(name)
    shape, N = case.shape, len(case.ticks)
    tick = replace(shape, walk=case.walk.tolist(), inverse_time=(1 / case.T).tolist())
    runs, first = NativeRuns(tick, compiler_for(lanes)), SquareRootInformation.of(case.mean, case.sigmas)
    known, motions = (first.R.copy(), first.z.copy()), [tick.motion for tick in case.ticks]
    parts = [([tick.A[place] for place in shape.A], tick.c) for tick in case.ticks]
    rates = [(entries_of_X(motion, shape), motion.x) for motion in motions]
    values = np.array([np.concatenate([*rows, *others]) for rows, others in zip(parts, rates, strict=True)])
    weights, steps = np.array([tick.weights for tick in case.ticks]), np.array([motion.dt for motion in motions])
    found = runs.forward(known, values, weights, steps, np.inf, keeps=True)
    runs.covariances(found)
    u, P, nis, degrees, log_likelihood, _, m, P_m = (list(each) for each in zip(*expected, strict=True))
    pairs = (found.u, u), (found.covariance, P), (found.nis, nis), (found.log_likelihood, log_likelihood)
    last = SquareRootInformation(*known)
    mean, covariance = last.mean(), last.covariance()
    for k in range(N):
        for one, other in pairs:
            same(one[k], other[k])
    same(mean, m[-1])
    same(covariance, P_m[-1])
    assert found.degrees.tolist() == degrees
    assert not found.lost.any()
    assert not np.tril(found.rows[:, :, :-1], -1).any()
    assert runs.backward(found, slice(0, N), mean, covariance) == 0
    for k, (u_hat, P_hat) in enumerate(expected_later):
        same(found.u[k], u_hat)
        same(found.covariance[k], P_hat)
    same(mean, expected_later[0][0][case.n_s :])


@pytest.mark.parametrize(("sigma", "noise", "mean", "covariance"), [(10.0, 0.1, 1e-8, 1e-6), (1e3, 1e-2, 1e-4, 0.1)])
def test_what_cannot_be_told_apart_does_not_drift(sigma, noise, mean, covariance):
    """Of eight constants two sums are read: these are known 1e4 and 1e7 times better than each of them.

    P = (P_0^-1 + N H^T W H)^-1, in 150 digits. The covariance is worse than what the steps carry, as the known
    directions drown in the rounding of the others.
    """
    rng, n = np.random.default_rng(6), 10_000
    H, weights = rng.normal(size=(2, 8)), np.full(2, noise**-2)
    Y = np.array([1.0, 2.0]) + noise * rng.normal(size=(n, 2))
    update, propagate = steps_of(1, shape_of((0, 0, 8), np.ones((2, 8))))
    none = np.zeros((0, 0))
    still = MotionModel(1e-3, none, none, np.zeros((0, 8)), np.zeros(0), np.ones(8), np.zeros(8))
    known = SquareRootInformation.of(np.zeros(8), np.full(8, sigma))
    for y in Y:
        known = propagate(update(known, H, -y, weights, 0), still)
    P = known.covariance()
    assert np.array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0
    with mp.workdps(150):
        of_sums = exact(H).T * mp.mpf(weights[0])
        right = inverse(np.diag(exact(np.full(8, sigma)) ** -2) + n * of_sums @ exact(H))
        whiten = inverse(np.array(mp.cholesky(mp.matrix(right.tolist())).tolist(), dtype=object))
        z = whiten @ (exact(known.mean()) - right @ of_sums @ exact(Y).sum(axis=0))
        assert np.abs(z).max() < mean
        assert np.abs(whiten @ exact(P) @ whiten.T - np.eye(8)).max() < covariance


@pytest.mark.parametrize("kind", [0, 1, 2, pytest.param(4, marks=pytest.mark.long), 8], ids=NAMES.get)
class TestUndetermined:
    def test_memory_that_is_seen_later(self, kind):
        # Of two numbers only their sum is seen, then the second as well.
        A = [np.array([[1.0, 1.0]]), np.array([[0.0, 1.0]])]
        motion = MotionModel(
            0.1, np.zeros((0, 0)), np.zeros((0, 0)), np.zeros((0, 2)), np.zeros(0), np.ones(2), np.zeros(2)
        )
        before = SquareRootInformation.of(np.zeros(2), np.full(2, np.inf))
        update, propagate = steps_of(kind, shape_of((0, 0, 2), np.ones((1, 2))))
        first = update(before, A[0], np.array([-3.0]), np.array([4.0]), 0)
        assert first.undetermined == (1,)
        assert np.isnan(first.u).all()
        assert first.degrees == 0
        assert first.nis == 0.0
        second = update(propagate(first, motion), A[1], np.array([-1.0]), np.array([4.0]), 0)
        assert second.undetermined == ()
        np.testing.assert_allclose(second.u, [2.0, 1.0], rtol=1e-14)
        np.testing.assert_allclose(second.covariance(), [[0.5, -0.25], [-0.25, 0.25]], rtol=1e-14)
        mean, covariance = smooth_step(first, motion, second.u, second.covariance())
        np.testing.assert_allclose(mean, [2.0, 1.0], rtol=1e-14)
        np.testing.assert_allclose(covariance, second.covariance(), rtol=1e-14)

    def test_names_what_is_not_determined_and_keeps_the_rest(self, kind):
        before = SquareRootInformation.of(np.array([1.0, 2.0, 3.0]), np.array([0.5, np.inf, np.inf]))
        A = np.array([[0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 1.0, 0.0]])
        update, _ = steps_of(kind, shape_of((1, 1, 2), np.ones((2, 4))))
        after = update(before, A, np.array([-5.0, -5.0]), np.array([1.0, 3.0]), 1)
        assert after.undetermined == (0, 3)
        np.testing.assert_allclose(after.u, [np.nan, 1.0, 5.0, np.nan], rtol=1e-14)
        np.testing.assert_allclose(np.diag(after.covariance()), [np.nan, 0.25, 0.25, np.nan], rtol=1e-14)
        assert after.degrees == 1

    def test_an_acceleration_that_nobody_sees_leaves_nothing_of_the_speed(self, kind):
        motion = MotionModel(
            0.1, np.ones((1, 1)), np.zeros((1, 1)), np.zeros((1, 1)), np.zeros(1), np.ones(2), np.zeros(2)
        )
        before = SquareRootInformation.of(np.array([1.0, 2.0]), np.array([0.5, 0.25]))
        update, propagate = steps_of(kind, shape_of((1, 1, 1), np.ones((1, 3))))
        after = update(before, np.zeros((1, 3)), np.zeros(1), np.zeros(1), 1)
        ahead = propagate(after, motion)
        np.testing.assert_array_equal(ahead.mean(), [np.nan, 2.0])
        np.testing.assert_allclose(ahead.covariance()[1, 1], 0.0625, rtol=1e-14)

    def test_fewer_readings_than_unknowns(self, kind):
        before = SquareRootInformation.of(np.array([1.0]), np.array([0.5]))
        update, propagate = steps_of(kind, shape_of((3, 0, 1), np.ones((1, 4))))
        after = update(before, np.array([[1.0, 0.0, 1.0, 2.0]]), np.array([-2.0]), np.array([4.0]), 3)
        assert after.undetermined == (1, 2)
        np.testing.assert_allclose(after.u, [np.nan, np.nan, np.nan, 1.0], rtol=1e-14)
        motion = MotionModel(
            0.1, np.zeros((0, 3)), np.zeros((0, 0)), np.zeros((0, 1)), np.zeros(0), np.ones(1), np.ones(1)
        )
        ahead = propagate(after, motion)
        np.testing.assert_allclose([ahead.mean()[0], ahead.covariance()[0, 0]], [1.0, 1.25], rtol=1e-14)

    def test_missing_readings_may_be_nan(self, kind):
        before = SquareRootInformation.of(np.array([1.0]), np.array([0.5]))
        update, _ = steps_of(kind, shape_of((0, 0, 1), np.ones((2, 1))))
        after = update(before, np.array([[1.0], [np.nan]]), np.array([-2.0, np.nan]), np.array([4.0, 0.0]), 0)
        np.testing.assert_allclose(after.u, [1.5], rtol=1e-14)


class TestInformation:
    def test_of_a_covariance(self):
        rng = np.random.default_rng(1)
        root = rng.normal(size=(5, 5)) * 10.0 ** np.arange(-4, 6, 2)[:, None]
        known = SquareRootInformation.of_covariance(np.arange(5.0), root @ root.T)
        assert not np.tril(known.R, -1).any()
        np.testing.assert_allclose(known.mean(), np.arange(5.0), rtol=1e-8, atol=1e-8)
        size = np.sqrt(np.diag(root @ root.T))
        np.testing.assert_allclose(
            known.covariance() / np.outer(size, size), root @ root.T / np.outer(size, size), atol=1e-9
        )

    def test_refuses_what_is_no_knowledge(self):
        with pytest.raises(InputError, match="number 1 of the memory is 0"):
            SquareRootInformation.of(np.zeros(2), np.array([1.0, 0.0]))
        with pytest.raises(InputError, match="mean of the memory holds nan"):
            SquareRootInformation.of(np.array([np.nan]), np.ones(1))
        with pytest.raises(InputError, match="not positive definite"):
            SquareRootInformation.of_covariance(np.zeros(2), np.ones((2, 2)) - 2 * np.eye(2))


def test_dependent_columns_are_found_in_spite_of_rounding():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(30, 12)) * 10.0 ** rng.uniform(-4, 4, 12)
    A[:, 9] = A[:, :5] @ rng.normal(size=5)
    R, z, left = triangular(np.column_stack([A, rng.normal(size=30)]))
    assert np.flatnonzero(np.diag(R) == 0).tolist() == [9]
    np.testing.assert_allclose(R.T @ R, A.T @ A, rtol=1e-9, atol=1e-9 * np.abs(A).max() ** 2)

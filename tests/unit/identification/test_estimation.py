"""Estimates are those of weighted least squares with a prior, and their deviations are how far they are off."""

import numpy as np
import pytest
from scipy.optimize import least_squares
from scipy.stats import chi2, norm, t

from nori_dyn.identification.estimation import solved
from nori_dyn.identification.moments import Evidence, HuberPseudoValues, Moments
from nori_dyn.identification.prior import ParameterPrior


def evidence(W: list[np.ndarray], y: list[np.ndarray], columns: list[list[int]], n: int, parts: int = 1) -> Evidence:
    """What rows W phi = y say, one W and y a reading, in some segments."""
    segments = []
    for part in np.array_split(np.arange(len(y[0])), parts):
        rows = []
        for own, read, of in zip(W, y, columns, strict=True):
            one = np.ones(len(part))
            rows.append(Moments.of(of, np.column_stack([own[part], 0 * one, one, read[part], -read[part]])))
        segments.append(rows)
    return Evidence(segments, np.eye(n), np.zeros(n))


def problem(seed: int, n: int = 400, sigma: tuple[float, float] = (0.5, 3.0)) -> tuple[list, list, list, np.ndarray]:
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=3)
    columns = [[0, 1], [1, 2]]
    W = [rng.normal(size=(n, 2)) for _ in columns]
    y = [w @ truth[of] + s * rng.normal(size=n) for w, of, s in zip(W, columns, sigma, strict=True)]
    return W, y, columns, truth


VAGUE = ParameterPrior(np.zeros(3), 1e-6 * np.eye(3))


def test_known_deviations_weigh_the_rows():
    W, y, columns, _ = problem(0)
    sigma = np.array([0.5, 3.0])
    found = solved([evidence(W, y, columns, 3)], VAGUE, sigma, is_known=True)
    A = np.zeros((800, 3))
    A[:400, :2], A[400:, 1:] = W[0] / 0.5, W[1] / 3.0
    b = np.concatenate([y[0] / 0.5, y[1] / 3.0])
    np.testing.assert_allclose(found.values, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-8)
    np.testing.assert_allclose(found.covariance, np.linalg.inv(A.T @ A), rtol=1e-6)


def test_deviations_of_readings_are_found_from_residuals():
    W, y, columns, _ = problem(1, n=4000)
    found = solved([evidence(W, y, columns, 3)], VAGUE, np.ones(2), is_known=False)
    np.testing.assert_allclose(found.sigma, [0.5, 3.0], rtol=0.05)
    again = solved([evidence(W, y, columns, 3)], VAGUE, found.sigma, is_known=True)
    np.testing.assert_allclose(found.values, again.values, rtol=1e-5)


def test_what_logs_leave_open_is_that_of_the_prior():
    rng = np.random.default_rng(2)
    W, columns = [rng.normal(size=(100, 1))], [[0]]
    log = evidence(W, [W[0][:, 0] * 5.0], columns, 3)
    prior = ParameterPrior(np.array([1.0, 2.0, 3.0]), np.diag([1.0, 10.0, 100.0]))
    found = solved([log], prior, np.array([1e-3]), is_known=True)
    np.testing.assert_allclose(found.values, [5.0, 2.0, 3.0], rtol=1e-6)
    np.testing.assert_allclose(found.deviations[1:], [0.1, 0.01], rtol=1e-9)


def test_known_parameters_are_a_shift():
    W, y, columns, _ = problem(3)
    whole = evidence(W, y, columns, 3)
    E, fixed = np.eye(3)[:, 1:], 0.7
    log = Evidence(whole.segments, E, np.array([fixed, 0.0, 0.0]))
    prior = ParameterPrior(np.zeros(2), 1e-6 * np.eye(2))
    found = solved([log], prior, np.ones(2), is_known=True)
    A = np.zeros((800, 2))
    A[:400, 0], A[400:] = W[0][:, 1], W[1]
    b = np.concatenate([y[0] - fixed * W[0][:, 0], y[1]])
    np.testing.assert_allclose(found.values, np.linalg.lstsq(A, b, rcond=None)[0], rtol=1e-8)


@pytest.mark.parametrize("parts", [1, 24])
def test_errors_are_as_large_as_the_deviations_say(parts):
    squares = 0.0
    for seed in range(60):
        W, y, columns, truth = problem(seed + 100, n=240)
        found = solved([evidence(W, y, columns, 3, parts)], VAGUE, np.ones(2), is_known=False)
        error = found.values - truth
        squares += float(error @ np.linalg.solve(found.covariance, error))
    low, high = chi2.ppf([1e-4, 1 - 1e-4], df=180)
    assert low * (0.7 if parts > 1 else 1.0) < squares < high  # the larger of two covariances is taken


def test_residuals_that_are_alike_for_long_make_the_deviations_larger():
    """A reading whose error lasts 20 samples tells a twentieth of what their number says."""
    squares, by_number = 0.0, 0.0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        noise = np.repeat(rng.normal(size=120), 20)
        x = np.repeat(rng.normal(size=120), 20)
        log = evidence([x[:, None]], [2.0 * x + noise], [[0]], 1, parts=24)
        found = solved([log], ParameterPrior(np.zeros(1), np.array([[1e-6]])), np.ones(1), is_known=False)
        squares += float((found.values[0] - 2.0) ** 2 / found.covariance[0, 0])
        by_number += float((found.values[0] - 2.0) ** 2 / (found.sigma[0] ** 2 / np.sum(x**2)))
    assert by_number / 60 > 10
    assert 0.4 < squares / 60 < 2.0


def test_deviations_are_those_of_estimates_without_one_segment_after_the_other():
    """Of a single parameter, with residuals that are alike for 20 samples: by dense least squares.

    The scatter is divided by that of independent residuals, which the number of samples tells.
    """
    rng = np.random.default_rng(5)
    x, noise = (np.repeat(rng.normal(size=120), 20) for _ in range(2))
    x *= np.repeat(rng.uniform(0.2, 2.0, size=24), 100)
    y = 2.0 * x + noise
    vague = ParameterPrior(np.zeros(1), np.array([[1e-9]]))
    found = solved([evidence([x[:, None]], [y], [[0]], 1, parts=24)], vague, np.ones(1), is_known=False)
    kept = [np.delete(np.arange(2400), part) for part in np.array_split(np.arange(2400), 24)]
    without = np.array([np.linalg.lstsq(x[own, None], y[own], rcond=None)[0][0] for own in kept])
    variance = 23 / 24 * np.sum((without - without.mean()) ** 2)
    share = np.array([np.sum(np.delete(x, own) ** 2) for own in kept]) / np.sum(x**2)
    part = share / (1 - share)  # of the variance, were residuals independent
    freedoms = np.sum(part) ** 2 / np.sum(part**2) - 1
    expected = np.sqrt(variance / (23 / 24 * np.sum(part))) * t.ppf(0.975, freedoms) / norm.ppf(0.975)
    np.testing.assert_allclose(found.deviations, expected, rtol=1e-6)


def test_what_one_segment_identifies_is_as_sure_as_residuals_elsewhere_say():
    """Of a parameter that one segment identifies alone, nothing is left without it: its own scatter says nothing."""
    rng = np.random.default_rng(6)
    W = np.repeat(rng.normal(size=(120, 2)), 20, axis=0)
    W[:, 1] *= np.arange(2400) // 100 == 7
    y = W @ [1.0, 2.0] + np.repeat(rng.normal(size=120), 20)
    log = evidence([W], [y], [[0, 1]], 2, parts=24)
    found = solved([log], ParameterPrior(np.zeros(2), 1e-6 * np.eye(2)), np.ones(1), is_known=False)
    effective = np.sqrt(np.diag(20 * np.linalg.inv(W.T @ W)))  # as 20 samples tell what one does
    assert np.all(found.deviations > 0.7 * effective)
    assert np.all(found.deviations < 2.0 * effective)


def test_least_squares_on_pseudo_values_settle_at_hubers_estimate_and_covariance():
    """Against the minimum that SciPy finds, and Huber's formula for the covariance."""
    rng = np.random.default_rng(7)
    X, sigma = rng.normal(size=(4000, 3)), 0.5
    y = X @ [1.0, -2.0, 3.0] + np.where(rng.random(4000) < 0.1, 10.0, sigma) * rng.normal(size=4000)
    values = np.zeros(3)
    for _ in range(30):
        residuals = (X @ values - y)[:, None]
        far = HuberPseudoValues(values, np.array([sigma])).pseudo_values(
            residuals, np.ones((4000, 1)), np.ones((4000, 1))
        )
        log = evidence([X], [y - (far - residuals)[:, 0]], [[0, 1, 2]], 3)
        found = solved([log], VAGUE, np.ones(1), is_known=False)
        values = found.values
    least = least_squares(lambda x: X @ x - y, np.zeros(3), loss="huber", f_scale=1.345 * sigma, xtol=1e-12, ftol=1e-12)
    np.testing.assert_allclose(values, least.x, atol=1e-6)
    u = (X @ values - y) / sigma
    psi, slope = np.clip(u, -1.345, 1.345), np.mean(np.abs(u) <= 1.345)
    expected = (sigma / slope) ** 2 * np.sum(psi**2) / (4000 - 3) * np.linalg.inv(X.T @ X)
    np.testing.assert_allclose(found.covariance, expected, rtol=1e-4)


def test_a_perfect_fit_is_no_error():
    W, _, columns, truth = problem(4)
    y = [w @ truth[of] for w, of in zip(W, columns, strict=True)]
    found = solved([evidence(W, y, columns, 3)], VAGUE, np.ones(2), is_known=False)
    np.testing.assert_allclose(found.values, truth, rtol=1e-6)

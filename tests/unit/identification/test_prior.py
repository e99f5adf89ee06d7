"""What logs say of a prior: its chi-square has the distribution that it says, and its width is the most likely one."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.stats import chi2, kstest, multivariate_normal

from nori_dyn.identification.estimation import solved
from nori_dyn.identification.prior import CONTRADICTED, Prior, PriorCheck
from tests.unit.identification.test_estimation import evidence

LINKS = ("a",) * 4 + ("b",) * 5


def drawn(prior: Prior, rng: np.random.Generator, far: float = 1.0) -> np.ndarray:
    """Return parameters as they are expected before, those of the second link `far` times as far from it."""
    off = np.linalg.cholesky(np.linalg.inv(prior.L.T @ prior.L)) @ rng.normal(size=7)
    return prior.values + off * np.repeat([1.0, far], [4, 3])


def log(seed: int, far: float = 1.0):
    """Return dense rows W, readings y and a prior of two links, from which the second is `far` times too far."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(60, 7)) * np.array([3, 1, 0.01, 0, 2, 0.5, 0.1])
    L = np.zeros((9, 7))
    L[:4, :4], L[4:, 4:] = rng.normal(size=(4, 4)) + 3 * np.eye(4), rng.normal(size=(5, 3)) + 3 * np.eye(5, 3)
    prior = Prior(rng.normal(size=7), L, LINKS)
    return W, W @ drawn(prior, rng, far) + rng.normal(size=60), prior


def estimate(W, y, prior):
    return solved([evidence([W], [y], [[*range(7)]], 7)], prior, np.ones(1), is_known=True)


def test_where_it_is_true_its_chi_square_is_what_is_usual():
    every = [estimate(*log(seed)).checks for seed in range(400)]
    for k, name in enumerate("ab"):
        assert every[0][k].of == name
        ratio = np.array([each[k].chi_square / each[k].freedoms for each in every])
        assert ratio.mean() == pytest.approx(1.0, abs=5 * ratio.std() / np.sqrt(len(ratio)))
        assert every[0][k].freedoms == 3  # of four parameters of the first link one is in no row
        squares = [each[k].chi_square for each in every]
        assert kstest(squares, "chi2", args=(3,)).pvalue > 1e-6
    assert all(each.widened == 1.0 for checks in every for each in checks)


@pytest.mark.parametrize("freedoms", [1, 4, 10])
def test_chance_is_that_of_the_chi_square(freedoms):
    least = chi2.isf(CONTRADICTED, freedoms)
    assert PriorCheck("a", 0.999 * least, freedoms).is_by_chance
    assert not PriorCheck("a", 1.001 * least, freedoms).is_by_chance


@pytest.mark.parametrize("seed", range(3))
def test_one_that_is_contradicted_is_as_wide_as_is_most_likely(seed):
    """Against the greatest marginal likelihood of what is read, by dense covariances."""
    W, y, prior = log(seed, far=30.0)
    found = {each.of: each for each in estimate(W, y, prior).checks}
    assert found["a"].widened == 1.0
    assert found["b"].chi_square > 100 > found["b"].freedoms == 3

    def unlikely(log_factor: float) -> float:
        L = prior.L.copy()
        L[4:] /= np.exp(log_factor)
        C = W @ np.linalg.inv(L.T @ L) @ W.T + np.eye(60)
        return -multivariate_normal(W @ prior.values, C).logpdf(y)

    best = minimize_scalar(unlikely, bounds=(0.0, 10.0), method="bounded", options={"xatol": 1e-6}).x
    assert found["b"].widened == pytest.approx(np.exp(best), rel=2e-2)
    own = estimate(W, y, prior)
    dense = np.vstack([W, own.prior.L]), np.concatenate([y, own.prior.L @ prior.values])
    np.testing.assert_allclose(own.values, np.linalg.lstsq(*dense, rcond=None)[0], rtol=1e-8)


def test_noise_that_lasts_contradicts_no_prior():
    """Of logs whose readings are alike for 20 samples, which by their number would tell 20 times as much."""
    ratio = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        W, _, prior = log(seed)
        W = np.repeat(np.tile(W, (2, 1)) * rng.normal(size=(120, 1)), 20, axis=0)
        y = W @ drawn(prior, rng) + 10.0 * np.repeat(rng.normal(size=120), 20)
        found = solved([evidence([W], [y], [[*range(7)]], 7, parts=24)], prior, np.ones(1), is_known=False)
        by_number = prior.checks(found.values, found.by_number, found.by_number)
        ratio.append([checks[0].chi_square / checks[0].freedoms for checks in (found.checks, by_number)])
        assert found.prior.factors == {}
    assert 0.5 < np.mean(ratio, axis=0)[0] < 1.1
    assert np.mean(ratio, axis=0)[1] > 1.3


def test_what_is_vague_is_not_compared():
    W, y, prior = log(0, far=30.0)
    assert estimate(W, y, Prior(prior.values, prior.L)).checks == ()
    (check,) = estimate(W, y, Prior(prior.values, prior.L, ("",) * 4 + ("b",) * 5)).checks
    assert check.of == "b"

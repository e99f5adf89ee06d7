"""What logs say of a prior: the chi-square has the distribution that it says; one that is contradicted is let go."""

import numpy as np
import pytest
from scipy.stats import chi2, kstest

from nori_dyn.identification.estimation import solved
from nori_dyn.identification.prior import CONTRADICTED, ParameterPrior, PriorCheck
from tests.unit.identification.test_estimation import evidence

LINKS = ("a",) * 4 + ("b",) * 5


def drawn(prior: ParameterPrior, rng: np.random.Generator, far: float = 1.0) -> np.ndarray:
    """Parameters as they are expected before, those of the second link `far` times as far from it."""
    off = np.linalg.cholesky(np.linalg.inv(prior.L.T @ prior.L)) @ rng.normal(size=7)
    return prior.values + off * np.repeat([1.0, far], [4, 3])


def log(seed: int, far: float = 1.0):
    """Dense rows W, readings y and a prior of two links, from which the second is `far` times too far."""
    rng = np.random.default_rng(seed)
    W = rng.normal(size=(60, 7)) * np.array([3, 1, 0.01, 0, 2, 0.5, 0.1])
    L = np.zeros((9, 7))
    L[:4, :4], L[4:, 4:] = rng.normal(size=(4, 4)) + 3 * np.eye(4), rng.normal(size=(5, 3)) + 3 * np.eye(5, 3)
    prior = ParameterPrior(rng.normal(size=7), L, LINKS)
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
def test_one_that_is_contradicted_holds_the_estimate_no_more(seed):
    """The estimate is within one of its deviations, and to a quarter of its own as dense least squares without it."""
    W, y, prior = log(seed, far=30.0)
    found = estimate(W, y, prior)
    of_a, of_b = found.checks
    assert of_a.widened == 1.0
    assert of_b.chi_square > 100 > of_b.freedoms == 3
    far = np.linalg.norm(prior.L[4:] @ (found.values - prior.values))
    assert far == pytest.approx(of_b.widened, rel=1e-2)
    wide = np.vstack([prior.L[:4], prior.L[4:] / of_b.widened])
    both = np.vstack([W, wide]), np.concatenate([y, wide @ prior.values])
    np.testing.assert_allclose(found.values, np.linalg.lstsq(*both, rcond=None)[0], rtol=1e-8)
    alone = np.vstack([W, prior.L[:4]]), np.concatenate([y, prior.L[:4] @ prior.values])
    moved = np.abs(found.values - np.linalg.lstsq(*alone, rcond=None)[0])
    assert np.all(moved < 0.25 * found.deviations)


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
    assert estimate(W, y, ParameterPrior(prior.values, prior.L)).checks == ()
    (check,) = estimate(W, y, ParameterPrior(prior.values, prior.L, ("",) * 4 + ("b",) * 5)).checks
    assert check.of == "b"

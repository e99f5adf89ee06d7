"""Covariance of an estimate where residuals are correlated in time: by the scatter of segments of the logs.

A segment that lasts longer than residuals are correlated is about independent of the others. The estimate is made
without one after the other, and scatters as its error does. Few segments give a poor variance: it is drawn to that of
all combinations, and deviations are as much larger as Student's t is wider than a normal distribution.

Source: Bester, Conley and Hansen, Inference with dependent data using cluster covariance estimators, 2011, for segments
of a time series as clusters, with Student's t; Bell and McCaffrey, Bias reduction in standard errors for linear
regression with multi-stage samples, 2002, for leaving out one after the other, without the bias that it has where
residuals are independent, and the degrees of freedom; Smyth, Linear models and empirical Bayes methods, 2004, for
variances that are drawn to that of all.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy.optimize import brentq
from scipy.special import digamma, polygamma, stdtrit

from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.moments import Moments
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.typing import Floats

FEWEST_SEGMENTS = 8
"""Segments from which on their scatter gives a covariance."""

MOSTLY, CHANCE = 0.5, 3.0
"""Share of the logs in what is known of a combination from which on its scatter counts for all; and standard deviations
by which that of all may be above what independent residuals give, by chance."""

WITHIN = 0.975
"""Quantile at which a deviation is that of a normal distribution: 1.96 deviations to both sides hold 95 %."""


def covariance_of(
    logs: Sequence[Evidence], values: Floats, inverse: Floats, sigma: Floats, base: Floats, prior: ParameterPrior
) -> Floats:
    """Covariance of an estimate: by the number of samples, or by the scatter of segments if that is more.

    The two are compared in the identifiable combinations, `base` (k, n): of a parameter that is identifiable in sums
    only, the prior hides how much the sums scatter. `inverse` (n, n) is that of the triangular factor of information.
    """
    by_number = inverse @ inverse.T
    segments = sum(len(log.segments) for log in logs)
    if segments < FEWEST_SEGMENTS:
        return by_number
    identified = base @ by_number @ base.T
    variances = np.diag(identified)
    of_prior = np.sum((base @ by_number @ prior.L.T) ** 2, axis=1)
    left = np.divide(of_prior, variances, out=np.ones_like(variances), where=variances > 0)
    share = 1.0 - left  # of the logs in what is known
    counts = share > MOSTLY
    if not counts.any():
        return by_number
    own = base[counts] / np.sqrt(variances[counts])[:, None]
    variance, expected, freedoms = _jackknife(logs, values, inverse, sigma, own)
    scatter = variance / expected
    usual = np.average(scatter, weights=freedoms)
    if usual < 1.0 + CHANCE * np.sqrt(2.0 / np.sum(freedoms)):
        return by_number  # as independent residuals scatter
    common = _common_freedoms(scatter, freedoms, segments - 1.0)
    more, certain = np.full(len(base), usual), np.full(len(base), common)
    more[counts] = (common * usual + freedoms * scatter) / (common + freedoms)
    certain[counts] += freedoms
    wider = stdtrit(np.minimum(certain, np.sum(freedoms)), WITHIN) / stdtrit(np.inf, WITHIN)
    grown = np.sqrt(np.maximum(share * more * wider**2 + 1.0 - share, 1.0))
    of_base = by_number @ base.T @ np.linalg.pinv(identified, hermitian=True)
    covariance: Floats = by_number + of_base @ (identified * (np.outer(grown, grown) - 1.0)) @ of_base.T
    return covariance


def _common_freedoms(scatter: Floats, freedoms: Floats, most: float) -> float:
    """Degrees of freedom of what variances have in common: few where they differ by more than by chance, or the most.

    Source: Smyth (2004), section 6.2, of the logarithms of variances.
    """
    half = freedoms / 2.0
    over = np.log(np.maximum(scatter, np.finfo(float).tiny)) - digamma(half) + np.log(half)
    spread = np.var(over, ddof=1) - np.mean(polygamma(1, half)) if len(over) > 1 else 0.0
    if spread <= polygamma(1, most / 2.0):
        return most
    return 2.0 * float(brentq(lambda x: polygamma(1, x) - spread, 1.0 / (1.0 + spread), most / 2.0))


def _jackknife(
    logs: Sequence[Evidence], values: Floats, inverse: Floats, sigma: Floats, base: Floats
) -> tuple[Floats, Floats, Floats]:
    """Jackknife variances of combinations, leaving out one segment after the other, and their degrees of freedom.

    Without the segment whose information is A_j and whose gradient is g_j the estimate would move by
    (R^T R - A_j)^-1 g_j, as far as it is linear.

    Args:
        logs: their evidence.
        values: the estimate (n,).
        inverse: R^-1, of the factor of its information (n, n).
        sigma: standard deviation of each row.
        base: the combinations (k, n).

    Returns:
        For each combination (k,) the variance, what it would be on average were residuals independent, and its
        degrees of freedom.
    """
    steps, parts = [], []
    for log in logs:
        over = log.E @ inverse
        for segment in log.segments:
            gradient, information = _of_segment(log, segment, values, inverse, over, sigma)
            left = np.linalg.solve(np.eye(len(inverse)) - information, (base @ inverse).T).T
            steps.append(left @ gradient)
            parts.append(np.sum((left @ information) * (left - left @ information), axis=1))
    n = len(steps)
    scatter, part = np.array(steps) - np.mean(steps, axis=0), np.array(parts)
    expected = np.sum(part, axis=0)
    freedoms = np.maximum(expected**2 / np.sum(part**2, axis=0) - 1.0, 1.0)
    share = (n - 1) / n
    return share * np.sum(scatter**2, axis=0), share * expected, freedoms


def _of_segment(
    log: Evidence, segment: Sequence[Moments], values: Floats, inverse: Floats, over: Floats, sigma: Floats
) -> tuple[Floats, Floats]:
    """Gradient (n,) and information (n, n) of a segment, in coordinates where that of all is the unit matrix.

    Args:
        log: of which it is one.
        segment: moments of each row.
        values: the estimate (n,).
        inverse: R^-1, of the factor of the information of all (n, n).
        over: the columns of the program over these coordinates (columns, n).
        sigma: standard deviation of each row.
    """
    n, columns = len(values), len(log.E)
    gradient, information = np.zeros(columns), np.zeros((columns, columns))
    of_gains = np.zeros((n, n + 1))
    for k, m in enumerate(segment):
        if log.gains and log.gains[k] >= 0:
            rows = log.over(k, m, values) / sigma[k]
            own = rows[:, :-1] @ inverse
            of_gains += own.T @ np.column_stack([own, rows[:, :-1] @ values + rows[:, -1]])
        else:
            own = m.R[:, : m.k] / sigma[k]
            gradient[m.columns] += m.gradient(log.beta(values)) / sigma[k] ** 2
            information[np.ix_(m.columns, m.columns)] += own.T @ own
    return over.T @ gradient + of_gains[:, -1], over.T @ information @ over + of_gains[:, :-1]

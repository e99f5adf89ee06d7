"""Estimates of parameters from logs: weighted least squares with a prior, and their covariance.

    minimise  sum over rows r of |R_r beta_r - z_r|^2 / sigma_r^2  +  |L (phi - phi_0)|^2,    beta = G phi

Only the combinations beta are identifiable; beyond these the estimate is the one nearest to the prior, in the metric of
L. The standard deviations sigma_r of readings are given, or found from the residuals, in turns. Rows with an unknown
gain are linear about the last estimate: steps of Gauss and Newton, halved until they are no worse, and gains
keep their sign.

The prior of a link that the logs contradict is widened until it holds the estimate no more.

Source: Swevers et al. (1997) and Gautier (1997) for weights from residuals.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.optimize import brentq
from scipy.special import digamma, polygamma, stdtrit

from nori_dyn.identification.moments import Evidence, Moments, least_squares
from nori_dyn.identification.prior import ParameterPrior, PriorCheck
from nori_dyn.typing import Floats

ROUNDS = 50
"""Most rounds of weights from residuals."""

SETTLED = 1e-6
"""Relative change of all standard deviations from which on they have settled."""

HALVINGS = 30
"""Most times that a step is halved: what is left moves no gain."""

LEAST_GAIN = 0.5
"""What a step leaves of a gain at the least: none changes its sign."""

NO_BETTER = 1e-6
"""Least standard deviation of a residual, relative to what is read: simulated logs may have none at all."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An estimate of all parameters.

    Attributes:
        values: of each (n,).
        covariance: of the estimate, prior included (n, n).
        by_number: the same by the number of samples, as independent residuals scatter.
        sigma: standard deviation of each row's residual (rows,).
        R: square-root information of the logs, in units of these (n, n).
        z: its right-hand side (n,): R phi = z.
        prior: what was known before, as wide as the logs allow.
        checks: tests of the prior against the logs.
    """

    values: Floats
    covariance: Floats
    by_number: Floats
    sigma: Floats
    R: Floats
    z: Floats
    prior: ParameterPrior
    checks: tuple[PriorCheck, ...] = ()

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each parameter (n,)."""
        return np.sqrt(np.diag(self.covariance))


def solved(
    logs: Sequence[Evidence], prior: ParameterPrior, sigma: Floats, is_known: bool, base: Floats | None = None
) -> Solution:
    """Weighted least-squares estimate from some logs.

    Args:
        logs: their evidence.
        prior: the prior.
        sigma: standard deviation of each row, to begin with.
        is_known: whether that is what it is, or is to be found from the residuals.
        base: the identifiable combinations of parameters (k, n); each parameter by itself when None.
    """
    base = np.eye(len(prior.values)) if base is None else base
    found = _solution(logs, prior, sigma, is_known, base)
    by_number = prior.checks(found.values, found.by_number, found.by_number)
    contradicted = {each.of for each in by_number if not each.is_by_chance}
    while (
        contradicted
    ):  # a prior that holds the estimate where logs do not fit makes them scatter more: so it is let go
        wide = found
        for _ in range(ROUNDS):
            wider = wide.prior.widened(wide.values, contradicted)
            if wider is wide.prior:
                break
            wide = _solution(logs, wider, wide.sigma, is_known, base)
        still = {each.of for each in wide.checks if each.of in contradicted and not each.is_by_chance}
        if still == contradicted:
            return wide
        contradicted = still
    return found


def _solution(logs: Sequence[Evidence], prior: ParameterPrior, sigma: Floats, is_known: bool, base: Floats) -> Solution:
    """Estimate with a prior as it is; arguments as those of `solved`."""
    has_gains = any(column >= 0 for log in logs for column in log.gains)
    over = _over(logs, prior.values if has_gains else None)
    floor = _least_sigma(logs)
    last, values = sigma, prior.values
    for count in range(1, ROUNDS + 1):
        R, z = _information(over, sigma)
        proposed, root = _with_prior(R, z, prior)
        values = _halved(logs, values, proposed, sigma, prior) if has_gains else proposed
        over = _over(logs, values) if has_gains else over
        found = _sigma_of_residuals(logs, over, values, root, sigma, floor)
        if (is_known and not has_gains) or np.all(np.abs(found - last) <= SETTLED * found) or count == ROUNDS:
            break
        last = found
        sigma = sigma if is_known else found
    inverse = solve_triangular(root, np.eye(len(root)))
    by_number = inverse @ inverse.T
    covariance = covariance_of(logs, values, inverse, sigma, base, prior)
    checks = prior.checks(values, by_number, covariance)
    return Solution(values, covariance, by_number, sigma, R, z, prior, checks)


def _halved(logs: Sequence[Evidence], last: Floats, proposed: Floats, sigma: Floats, prior: ParameterPrior) -> Floats:
    """The estimate on the way to a proposed one that is no worse than the last."""
    gains, most = _gains(logs, last), _cost(logs, last, sigma, prior)
    for k in range(HALVINGS):
        values: Floats = last + (proposed - last) / 2.0**k
        if (_gains(logs, values) / gains >= LEAST_GAIN).all() and _cost(logs, values, sigma, prior) <= most:
            return values
    return last


def _gains(logs: Sequence[Evidence], values: Floats) -> Floats:
    """Gain of each row of each log."""
    return np.array([[log.gain(k, values) for k in range(len(log.rows))] for log in logs])


def _cost(logs: Sequence[Evidence], values: Floats, sigma: Floats, prior: ParameterPrior) -> float:
    """What is minimised, with rows as they are."""
    rows = ((m.R @ log.residual(k, values)) / sigma[k] for log in logs for k, m in enumerate(log.rows))
    return float(sum(u @ u for u in rows) + np.sum((prior.L @ (values - prior.values)) ** 2))


def _over(logs: Sequence[Evidence], values: Floats | None) -> list[list[Floats]]:
    """Rows [W c] of each reading of each log."""
    return [[log.over(k, m, values) for k, m in enumerate(log.rows)] for log in logs]


def _information(over: Sequence[Sequence[Floats]], sigma: Floats) -> tuple[Floats, Floats]:
    """Square-root information R and z of all rows, each in units of its standard deviation."""
    stacked = np.vstack([rows / sigma[k] for each in over for k, rows in enumerate(each)])
    return least_squares(stacked[:, :-1], -stacked[:, -1])


def _with_prior(R: Floats, z: Floats, prior: ParameterPrior) -> tuple[Floats, Floats]:
    """Estimate, and the triangular factor of its information, prior included."""
    off = np.concatenate([z - R @ prior.values, np.zeros(len(prior.L))])
    root, right = least_squares(np.vstack([R, prior.L]), off)
    return prior.values + solve_triangular(root, right), root


def _sigma_of_residuals(
    logs: Sequence[Evidence],
    over: Sequence[Sequence[Floats]],
    values: Floats,
    root: Floats,
    sigma: Floats,
    floor: Floats,
) -> Floats:
    """Standard deviation of each row's residual, less the degrees of freedom that the parameters took up."""
    found = np.zeros(len(sigma))
    for k in range(len(sigma)):
        square = taken = n = 0.0
        for log, each in zip(logs, over, strict=True):
            n += log.rows[k].n
            square += float(np.sum((each[k][:, :-1] @ values + each[k][:, -1]) ** 2))
            taken += float(np.sum(solve_triangular(root, each[k][:, :-1].T / sigma[k], trans="T") ** 2))
        found[k] = np.sqrt(square / max(n - taken, 1.0))
    return np.maximum(found, floor)


def _least_sigma(logs: Sequence[Evidence]) -> Floats:
    """Least standard deviation of each row's residual: no sensor is better than that."""
    sizes = [[m.rms(m.unit("constant")) for m in log.rows] for log in logs]
    largest: Floats = np.max(sizes, axis=0)
    return NO_BETTER * np.where(largest > 0, largest, max(float(largest.max()), 1.0))


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

    A segment that lasts longer than residuals are correlated in time is about independent of the others. The estimate
    is made without one after the other, and scatters as its error does. Few segments give a poor variance: it is drawn
    to that of all combinations, and deviations are as much larger as Student's t is wider than a normal distribution.

    The two are compared in the identifiable combinations, `base` (k, n): of a parameter that is identifiable in sums
    only, the prior hides how much the sums scatter. `inverse` (n, n) is that of the triangular factor of information.

    Source: Bester, Conley and Hansen, Inference with dependent data using cluster covariance estimators, 2011, for
    segments of a time series as clusters, with Student's t; Bell and McCaffrey, Bias reduction in standard errors for
    linear regression with multi-stage samples, 2002, for leaving out one after the other, without the bias that it has
    where residuals are independent, and the degrees of freedom; Smyth, Linear models and empirical Bayes methods, 2004,
    for variances that are drawn to that of all.
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

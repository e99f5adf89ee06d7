"""Parameters from what logs say of them: weighted least squares with what was known before, and how sure that is.

    minimise  sum over rows r of |R_r beta_r - z_r|^2 / sigma_r^2  +  |L (phi - phi_0)|^2,    beta = G phi

A row with an unknown gain g, W phi - g y, is noisy in y, and the smallest residual is that of no gain at all. So it is
the residual of the reading, W phi / g - y, that is made small, by steps of Gauss and Newton: in place of y, its noise
and all, stands what the last step says it should be (Koopmans, 1937: errors in variables).

Only the combinations beta are told; within these the estimate is the one next to the prior, in the metric of L. The
standard deviations sigma_r of readings are given, or found from what is left, in turns.

Residuals of real robots are alike from sample to sample, so that their number says too much. So the covariance is also
taken from how much the gradients of whole segments of the log scatter, and the larger of the two is told.

Source: Swevers et al. (1997) and Gautier (1997) for weights from residuals; Liang and Zeger (1986) and Newey and
West (1987) for the scatter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from nori_dyn.identification.information import Moments, joined, triangular
from nori_dyn.typing import Floats

ROUNDS = 50
"""Most rounds of weights from residuals."""

SETTLED = 1e-6
"""Relative change of all standard deviations from which on they have settled."""

NO_BETTER = 1e-6
"""Least standard deviation of a residual, relative to what is read: simulated logs may have none at all."""

FEWEST_SEGMENTS = 8
"""Segments from which on their scatter tells a covariance."""

MOSTLY, POOLED, CHANCE = 0.5, 0.5, 3.0
"""Share of the logs in what is known of a combination from which on its scatter counts; how much of that is taken from
the scatter of all, as few segments tell it badly; and standard deviations that the latter may be above 1 by chance."""


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """What one log says.

    Attributes:
        segments: for each segment what it says of each row, over the columns of the program.
        E: those columns over the parameters that are looked for (columns, n).
        shift: what known parameters add (columns,).
        gains: for each row which of its columns is its reading, multiplied by a gain; -1 where there is none.
    """

    segments: Sequence[Sequence[Moments]]
    E: Floats
    shift: Floats
    gains: tuple[int, ...] = ()

    @property
    def rows(self) -> list[Moments]:
        """What all segments together say of each row."""
        return joined(self.segments)

    def beta(self, values: Floats) -> Floats:
        """Return what stands for the columns (columns,), for values of the parameters that are looked for (n,)."""
        found: Floats = self.E @ values + self.shift
        return found

    def gain(self, row: int, values: Floats) -> float:
        """Return the gain of a row, for values of the parameters that are looked for: 1 where it has none."""
        column = self.gains[row] if self.gains else -1
        return 1.0 if column < 0 else float(self.E[column] @ values + self.shift[column])

    def over(self, row: int, moments: Moments, values: Floats | None = None) -> Floats:
        """Return rows [W c] (k, n + 1) over the parameters that are looked for, in units of the reading.

        Args:
            row: which row it is.
            moments: what samples say of it.
            values: the parameters about which a row with a gain is linear; None leaves the residual as it is, linear in
                its gain.
        """
        rows = moments.rows(len(self.E))
        column = self.gains[row] if self.gains else -1
        gain = 1.0
        if column >= 0 and values is not None:
            beta = self.beta(values)
            gain = beta[column]
            true = rows[:, :-1] @ beta - rows[:, column] * gain + rows[:, -1]
            rows[:, -1] = gain * rows[:, column] + true + rows[:, -1]
            rows[:, column] = -true / gain
        return np.column_stack([rows[:, :-1] @ self.E, rows[:, -1] + rows[:, :-1] @ self.shift]) / gain


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """An estimate of all parameters.

    Attributes:
        values: of each (n,).
        covariance: of the estimate, prior included (n, n).
        sigma: standard deviation of each row's residual (rows,).
        R: triangular factor of what the logs say, in units of these (n, n).
        z: its right-hand side (n,): R phi = z.
        rounds: how many rounds of weights it took.
    """

    values: Floats
    covariance: Floats
    sigma: Floats
    R: Floats
    z: Floats
    rounds: int

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each parameter (n,)."""
        return np.sqrt(np.diag(self.covariance))


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is known before: L phi = L phi_0, each row with a standard deviation of 1.

    Attributes:
        values: phi_0 (n,).
        L: (m, n), of full column rank.
    """

    values: Floats
    L: Floats


def solved(
    logs: Sequence[Evidence], prior: Prior, sigma: Floats, is_known: bool, base: Floats | None = None
) -> Solution:
    """Return the estimate from some logs.

    Args:
        logs: what they say.
        prior: what was known before.
        sigma: standard deviation of each row, to begin with.
        is_known: whether that is what it is, or is to be found from the residuals.
        base: the combinations of parameters that the sensors can tell (k, n); each parameter by itself when None.
    """
    rows = [log.rows for log in logs]
    has_gains = any(column >= 0 for log in logs for column in log.gains)
    over = _over(logs, rows, prior.values if has_gains else None)
    floor = _least_sigma(rows)
    last, count = sigma, 0
    while True:
        count += 1
        R, z = _information(over, sigma)
        values, root = _with_prior(R, z, prior)
        over = _over(logs, rows, values) if has_gains else over
        found = _sigma_of_residuals(rows, over, values, root, sigma, floor)
        has_settled = bool(np.all(np.abs(found - last) <= SETTLED * found))
        if (is_known and not has_gains) or has_settled or count == ROUNDS:
            break
        last = found
        sigma = sigma if is_known else found
    covariance = _covariance(logs, values, root, sigma, np.eye(len(values)) if base is None else base, prior)
    return Solution(values, covariance, sigma, R, z, count)


def _over(logs: Sequence[Evidence], rows: Sequence[Sequence[Moments]], values: Floats | None) -> list[list[Floats]]:
    """Return for each log the rows [W c] of each of its readings."""
    return [[log.over(k, m, values) for k, m in enumerate(each)] for log, each in zip(logs, rows, strict=True)]


def _information(over: Sequence[Sequence[Floats]], sigma: Floats) -> tuple[Floats, Floats]:
    """Return R and z of all rows, each in units of its standard deviation."""
    stacked = [rows / sigma[k] for each in over for k, rows in enumerate(each)]
    R = triangular(np.vstack(stacked))
    n = R.shape[1] - 1
    return R[:n, :n], -R[:n, n]


def _with_prior(R: Floats, z: Floats, prior: Prior) -> tuple[Floats, Floats]:
    """Return the estimate and the triangular factor of its information, prior included."""
    n = len(z)
    both = np.vstack([np.column_stack([R, z - R @ prior.values]), np.column_stack([prior.L, np.zeros(len(prior.L))])])
    T = triangular(both)
    change = solve_triangular(T[:n, :n], T[:n, n])
    return prior.values + change, T[:n, :n]


def _sigma_of_residuals(
    rows: Sequence[Sequence[Moments]],
    over: Sequence[Sequence[Floats]],
    values: Floats,
    root: Floats,
    sigma: Floats,
    floor: Floats,
) -> Floats:
    """Return the standard deviation of each row's residual; what the parameters took up is counted out."""
    found = np.zeros(len(sigma))
    for k in range(len(sigma)):
        square = taken = n = 0.0
        for of_log, each in zip(rows, over, strict=True):
            n += of_log[k].n
            square += float(np.sum((each[k][:, :-1] @ values + each[k][:, -1]) ** 2))
            taken += float(np.sum(solve_triangular(root, each[k][:, :-1].T / sigma[k], trans="T") ** 2))
        found[k] = np.sqrt(square / max(n - taken, 1.0))
    return np.maximum(found, floor)


def _least_sigma(rows: Sequence[Sequence[Moments]]) -> Floats:
    """Return how small the standard deviation of each row's residual may be found: no sensor is better than that."""
    sizes = [[m.rms(m.unit("constant")) for m in of_log] for of_log in rows]
    largest: Floats = np.max(sizes, axis=0)
    return NO_BETTER * np.where(largest > 0, largest, max(float(largest.max()), 1.0))


def _covariance(
    logs: Sequence[Evidence], values: Floats, root: Floats, sigma: Floats, base: Floats, prior: Prior
) -> Floats:
    """Return the covariance of an estimate: by the number of samples, or by the scatter of segments if that is more.

    The two are compared in what the sensors can tell, `base` (k, n): of a parameter that they tell in sums only, the
    prior hides how much the sums scatter.
    """
    inverse = solve_triangular(root, np.eye(len(root)))
    by_number = inverse @ inverse.T
    gradients = []
    for log in logs:
        for segment in log.segments:
            total, of_gains = np.zeros(len(log.E)), np.zeros(len(values))
            for k, m in enumerate(segment):
                if log.gains and log.gains[k] >= 0:
                    rows = log.over(k, m, values)
                    of_gains += rows[:, :-1].T @ (rows[:, :-1] @ values + rows[:, -1]) / sigma[k] ** 2
                else:
                    total[m.columns] += m.gradient(log.beta(values)) / sigma[k] ** 2
            gradients.append(log.E.T @ total + of_gains)
    n = len(gradients)
    if n < FEWEST_SEGMENTS:
        return by_number
    scatter = np.array(gradients) - np.mean(gradients, axis=0)
    steps = scatter @ by_number @ base.T
    told = base @ by_number @ base.T
    variances = np.diag(told)
    following = np.sum(steps[1:] * steps[:-1], axis=0)  # of segments that touch, with the weight of Newey and West
    more = n / (n - 1) * np.maximum(np.sum(steps**2, axis=0) + following, 0.0) / variances
    of_logs = root.T @ root - prior.L.T @ prior.L
    share = np.diag(base @ by_number @ of_logs @ by_number @ base.T) / variances  # of the logs in what is known
    is_told = share > MOSTLY
    usual = float(np.mean(more[is_told] / share[is_told])) if is_told.any() else 1.0
    if usual < 1.0 + CHANCE * np.sqrt(2.0 / ((n - 1) * max(int(np.count_nonzero(is_told)), 1))):
        return by_number  # as independent residuals scatter
    pooled = (1.0 - POOLED) * more + POOLED * share * usual
    more = np.where(is_told, (n + 1) / (n - 1) * pooled + 1.0 - share, more)
    grown = np.sqrt(np.maximum(more, 1.0))
    of_told = by_number @ base.T @ np.linalg.pinv(told, hermitian=True)
    covariance: Floats = by_number + of_told @ (told * (np.outer(grown, grown) - 1.0)) @ of_told.T
    return covariance

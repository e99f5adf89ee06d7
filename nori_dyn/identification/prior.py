"""The prior of parameters, and whether logs contradict it.

An estimate phi of parameters that are phi_0 before, L phi = L phi_0 with the information P = L^T L, is off by K (phi -
phi_0) and by what the noise of the logs makes of it: K = 1 - C P, with its covariance C by the number of samples, and V
- C P C, with its covariance V by their scatter. Were the prior true, L (phi - phi_0) would have the covariance

    S = L (K P^-1 K^T + V - C P C) L^T,

which is 1 - L C L^T where the noise is independent. So the rows of a link have a chi-square, of as many degrees of
freedom as the logs determine of it. Where a prior has been widened, P in K and in P C is that, and L and P^-1 in the
middle are those before.

Source: Box, Sampling and Bayes' inference in scientific modelling and robustness, 1980.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import chdtrc

from nori_dyn.typing import Floats

CONTRADICTED = 1e-6
"""Chance below which an estimate is so far from the prior that the logs contradict that."""

OPEN = 1e-4
"""Share of the variance of a prior up to which the logs say nothing of a direction."""

AS_WIDE = 1e-3
"""Relative change of the deviations of a prior up to which they have settled."""


@dataclass(frozen=True, slots=True)
class PriorCheck:
    """Test of the prior of a link, or of a parameter of which a sensor declares it, against logs.

    Attributes:
        of: the link, or the parameter.
        chi_square: how far the estimate is from the prior, squared, in deviations that it would have were that true.
        freedoms: its degrees of freedom, which it is on average: how many directions the logs determine.
        widened: by how much the deviations of the prior were multiplied; 1 where the logs do not contradict it.
    """

    of: str
    chi_square: float
    freedoms: int
    widened: float = 1.0

    @property
    def is_by_chance(self) -> bool:
        """Whether the estimate may be so far by chance."""
        return self.freedoms == 0 or float(chdtrc(self.freedoms, self.chi_square)) >= CONTRADICTED


@dataclass(frozen=True, slots=True, eq=False)
class ParameterPrior:
    """Gaussian prior L phi = L phi_0, each row with a standard deviation of 1.

    Attributes:
        values: phi_0 (n,).
        L: (m, n), of full column rank.
        of: of which link or other parameter each row is (m,), "" where it is vague; nothing is compared with the logs
            of what is vague, or where it is empty.
        factors: by how much the deviations of some of these were multiplied.
    """

    values: Floats
    L: Floats
    of: tuple[str, ...] = ()
    factors: Mapping[str, float] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        """Of what there is a prior that is not vague."""
        return tuple(filter(None, dict.fromkeys(self.of)))

    def checks(self, values: Floats, by_number: Floats, covariance: Floats) -> tuple[PriorCheck, ...]:
        """Test the prior of each link and each other parameter against an estimate.

        Args:
            values: the estimate (n,).
            by_number: its covariance by the number of samples (n, n), prior included.
            covariance: its covariance by the scatter of the logs where that is more (n, n).
        """
        before = self._widened(dict.fromkeys(self.factors, 1.0))
        information = self.L.T @ self.L
        kept = np.eye(len(values)) - by_number @ information
        known = kept @ before._spread()
        off = known @ known.T + covariance - by_number @ information @ by_number
        found = []
        for name in self.names:
            L = before.L[self._rows(name)]
            squares, axes = np.linalg.eigh(L @ off @ L.T)
            counts = squares > OPEN
            apart = axes[:, counts].T @ (L @ (values - self.values))
            chi_square = float(np.sum(apart**2 / squares[counts]))
            found.append(PriorCheck(name, chi_square, len(apart), self.factors.get(name, 1.0)))
        return tuple(found)

    def widened(self, values: Floats, names: Collection[str]) -> ParameterPrior:
        """Widen it for some links until an estimate is within one deviation of it, in every direction.

        Then it hardly moves what the logs say. It is itself where it is as wide.

        Args:
            values: the estimate (n,).
            names: what is to be widened.
        """
        more = {name: float(np.linalg.norm(self.L[self._rows(name)] @ (values - self.values))) for name in names}
        factors = {name: max(self.factors.get(name, 1.0) * far, 1.0) for name, far in more.items()}
        if all(abs(factors[name] / self.factors.get(name, 1.0) - 1.0) <= AS_WIDE for name in names):
            return self
        return self._widened(factors)

    def with_deviation(self, places: Sequence[int], sigma: float) -> ParameterPrior:
        """The prior with another standard deviation of parameters of which each has a row of its own."""
        rows, L = self.L[:, places].any(axis=1), self.L.copy()
        L[rows] = np.eye(L.shape[1])[places] / sigma
        return replace(self, L=L)

    def _spread(self) -> Floats:
        """Root (n, n) of the prior covariance: it is that times its transpose."""
        return np.asarray(solve_triangular(np.linalg.qr(self.L, mode="r"), np.eye(self.L.shape[1])))

    def _widened(self, factors: Mapping[str, float]) -> ParameterPrior:
        more = [factors.get(name, 1.0) / self.factors.get(name, 1.0) for name in self.of] if self.of else 1.0
        return replace(self, L=self.L / np.reshape(more, (-1, 1)), factors=factors)

    def _rows(self, name: str) -> list[int]:
        return [k for k, each in enumerate(self.of) if each == name]

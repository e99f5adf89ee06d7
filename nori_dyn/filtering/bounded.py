"""Bands of estimates whose error is in part a bounded one: friction at rest, which is no more than the Coulomb level.

A Gaussian with the deviation of a number that is as likely everywhere between -c and c has the band +-1.13 c, more than
it can be. The band of a sum of such numbers and Gaussian ones is that of one of each with the same fourth cumulant.

Source: own derivation (tests/unit/filtering/test_bounded.py).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy.special import ndtr, ndtri

from nori_dyn.typing import Floats

BAND = 0.95
"""The probability that an estimate is within its band of the truth."""

GAUSSIAN = float(ndtri((1 + BAND) / 2))
"""Half of the width of a band in deviations, where nothing is bounded."""


@cache
def _table() -> tuple[Floats, Floats]:
    """Half-widths in deviations, by the share of the deviation that is of a uniform number."""
    from scipy.optimize import brentq  # which few ticks need

    shares = np.linspace(0.0, 1.0, 101)
    nodes, weights = np.polynomial.legendre.leggauss(64)

    def outside(half: float, share: float) -> float:
        rest = np.sqrt(1 - share**2)
        middle = share * np.sqrt(3) * nodes
        inside = ndtr((half - middle) / rest) - ndtr((-half - middle) / rest)
        return float(weights @ inside / 2 - BAND)

    halves = [brentq(outside, 1.0, 3.0, args=(share,)) for share in shares[:-1]]
    return shares, np.array([*halves, BAND * np.sqrt(3)])


@dataclass(frozen=True, slots=True, eq=False)
class Spread:
    """How far outputs may be off, by their names, in their shapes.

    Attributes:
        deviations: standard deviations.
        bands: half of the width of 95 % bands.
    """

    deviations: Mapping[str, Floats]
    bands: Mapping[str, Floats]


def half_widths(deviations: Floats, bounded: Floats, shares: Floats) -> Floats:
    """Half of the width of 95 % bands (...).

    Args:
        deviations: standard deviations of some errors (...).
        bounded: what each has of some independent numbers, in their deviations (..., m).
        shares: the share of the variance of each number that is bounded (..., m), 0 where it is Gaussian.
    """
    fourth = np.sum(np.square(bounded) ** 2 * np.square(shares), axis=-1) ** 0.25
    share = np.divide(fourth, deviations, out=np.zeros_like(deviations), where=deviations > 0)
    return np.asarray(deviations * np.interp(share, *_table()))

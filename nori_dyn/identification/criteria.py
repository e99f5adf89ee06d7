"""Optimality criteria of the information F of parameters, the inverse of their covariance.

D is the logarithm of the determinant of F, which does not change with the units of the parameters; A the negative
logarithm of the trace of its inverse, the sum of the variances, which does. Both are large where the information is.

Source: Pukelsheim, Optimal Design of Experiments, ch. 6; Swevers et al. (1997) for D on motions of robots.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import TypeAlias

import numpy as np
import scipy.linalg as la

from nori_dyn.errors import UnknownNameError
from nori_dyn.typing import Floats

Criterion: TypeAlias = Callable[[Floats], tuple[float, Floats]]
"""Of an information F (n, n) that is symmetric: the criterion, and its derivative by F (n, n), symmetric."""

VAGUE = 1e-12
"""Prior information of everything, as a share of the largest, so that F is never singular."""


def d_optimality(F: Floats) -> tuple[float, Floats]:
    """Criterion log det F, and F^-1."""
    factor, inverse = _inverse(F)
    return 2.0 * float(np.log(np.diag(factor)).sum()), inverse


def a_optimality(F: Floats) -> tuple[float, Floats]:
    """Criterion -log tr F^-1, and F^-2 / tr F^-1."""
    _, inverse = _inverse(F)
    trace = float(np.trace(inverse))
    return -math.log(trace), inverse @ inverse / trace


CRITERIA: Mapping[str, Criterion] = {"D": d_optimality, "A": a_optimality}
"""The criteria by name."""


def criterion_named(name: str) -> Criterion:
    """A criterion by name.

    Raises:
        UnknownNameError: there is no such criterion.
    """
    if not isinstance(name, str) or name not in CRITERIA:
        raise UnknownNameError("criterion", str(name), CRITERIA)
    return CRITERIA[name]


def _inverse(F: Floats) -> tuple[Floats, Floats]:
    """Cholesky factor of F with a vague prior, and the inverse of that."""
    vague = F + VAGUE * (float(np.diag(F).max(initial=0.0)) or 1.0) * np.eye(len(F))
    factor = la.cholesky(vague, lower=True)
    root = la.solve_triangular(factor, np.eye(len(F)), lower=True)
    return factor, root.T @ root

"""Markowitz ordering of the whole matrix, zeros tested by fingerprint."""

from __future__ import annotations

import numpy as np

from nori_dyn.planning.orderings.greedy import greedy
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem


def markowitz(problem: OrderingProblem) -> Ordering:
    """Take the pivot of least (r - 1)(c - 1), 1 and -1 preferred, among all that are stable."""
    return Ordering.of(greedy(problem, np.zeros(problem.symbolic.shape[1], dtype=np.intp)))

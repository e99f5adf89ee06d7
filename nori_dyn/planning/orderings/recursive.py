"""The order of the recursions: known values first, then body by body from the leaves to the root."""

from __future__ import annotations

from nori_dyn.planning.orderings.greedy import greedy
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem


def recursive(problem: OrderingProblem) -> Ordering:
    """Eliminate the variables of the last body first, as the articulated-body algorithm does.

    Whatever can be permuted to a triangle is, before: inverse dynamics becomes the recursive Newton-Euler order.

    Source: Nori (10)-(11) and (33)-(34); RBDA tables 5.1 and 7.1.
    """
    return Ordering.of(greedy(problem, problem.column_bodies.max() - problem.column_bodies))

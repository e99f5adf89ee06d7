"""Counted operations of an elimination, step by step, and by the paper's published rule.

Source: Nori section V-D and figs. 1-2 (the published rules, reproduced for comparison only); own counting.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from nori_dyn.algebra.counting import Cost
from nori_dyn.planning.elimination import UNITS, Elimination

Rule: TypeAlias = Callable[[Elimination[int]], Cost]


def factorisation_cost(work: Elimination[int]) -> Cost:
    """Count an LU factorisation: one reciprocal a pivot, no product with 1 or -1, no addition into a zero."""
    additions = multiplications = divisions = 0
    for pivot in work.pivots:
        l_units = sum(value in UNITS for value in pivot.l.values())
        u_units = sum(value in UNITS for value in pivot.u.values())
        n_l, n_u = len(pivot.l), len(pivot.u)
        if n_l and pivot.value not in UNITS:
            divisions += 1
            multiplications += n_l
        multiplications += (n_l - l_units) * (n_u - u_units)
        additions += n_l * n_u - pivot.fill_in
    return Cost(additions, multiplications, divisions)


def substitution_cost(work: Elimination[int]) -> Cost:
    """Count the substitutions of one right-hand side by the same rule; structural zeros cost nothing."""
    additions = multiplications = divisions = 0
    x = work.solution()
    for pivot in work.pivots:
        if pivot.rhs:
            multiplications += sum(value not in UNITS for value in pivot.l.values())
            additions += len(pivot.l) - pivot.rhs_fill_in
        terms = [value for column, value in pivot.u.items() if x[column]]
        multiplications += sum(value not in UNITS for value in terms)
        additions += max(0, len(terms) - (pivot.rhs == 0))
        if pivot.value not in UNITS and (terms or pivot.rhs):
            multiplications += 1
            divisions += not pivot.l  # the reciprocal that the factorisation did not need
    return Cost(additions, multiplications, divisions)


def engine_rule(work: Elimination[int]) -> Cost:
    """Count factorisation and substitutions as they are done here."""
    return factorisation_cost(work) + substitution_cost(work)


def textbook_rule(work: Elimination[int]) -> Cost:
    """Count every product, division and addition of the factorisation and both substitutions."""
    pivots = work.pivots
    additions = sum(len(p.l) * len(p.u) + len(p.l) + len(p.u) for p in pivots)
    return Cost(additions, additions, sum(len(p.l) + 1 for p in pivots))


def textbook_without_units_rule(work: Elimination[int]) -> Cost:
    """Count as the textbook, but no product with, and no division by, an entry 1 or -1 of the matrix as given."""
    additions = multiplications = divisions = 0
    for p in work.pivots:
        n_l, n_u = len(p.l) - len(p.l_units), len(p.u) - len(p.u_units)
        additions += len(p.l) * len(p.u) + len(p.l) + len(p.u)
        multiplications += n_l * n_u + n_l + n_u
        if not p.is_unit:
            divisions += len(p.l) + 1
    return Cost(additions, multiplications, divisions)


def _substitutions_as_published(work: Elimination[int]) -> Cost:
    off_diagonal = sum(len(p.l) + len(p.u) for p in work.pivots)
    forward = sum(p.rhs != 0 for p in work.pivots)
    return Cost(work.rhs_nonzeros + off_diagonal + forward, off_diagonal + 2 * work.n, 0)


def published_fig1_rule(work: Elimination[int]) -> Cost:
    """Count as the published scripts of fig. 1 do: no operation count, but needed to compare with the paper.

    The rank-1 update is counted as the elementwise product of a row and a column, and the rule that is meant to
    leave out products with 1 and -1 subtracts all others.
    """
    additions = multiplications = 0
    for p in work.pivots[:-1]:
        l, u = work.permuted(p)
        both = l.keys() & u.keys()
        additions += len(both)
        multiplications += len(p.l) + len(both)
        for one in UNITS:
            multiplications -= sum((l[k] != one) + (u[k] != one) for k in both)
    return Cost(additions, multiplications, 0) + _substitutions_as_published(work)


def published_fig2_rule(work: Elimination[int]) -> Cost:
    """Count as the published scripts of fig. 2 do: the elementwise product, without the subtraction."""
    additions = multiplications = 0
    for p in work.pivots[:-1]:
        l, u = work.permuted(p)
        both = len(l.keys() & u.keys())
        additions += both
        multiplications += len(p.l) + both
    return Cost(additions, multiplications, 0) + _substitutions_as_published(work)


RULES: dict[str, Rule] = {
    "engine": engine_rule,
    "textbook": textbook_rule,
    "textbook_without_units": textbook_without_units_rule,
    "published_fig1": published_fig1_rule,
    "published_fig2": published_fig2_rule,
}
"""Every rule by which an elimination can be counted; each counts the factorisation and both substitutions."""

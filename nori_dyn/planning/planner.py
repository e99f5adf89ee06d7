"""The offline planner: from a system to its elimination order and what it costs.

Source: Nori, problem 2 and remark 4.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.errors import PlanError
from nori_dyn.planning.cost import RULES, Cost, engine_rule, expression_cost
from nori_dyn.planning.diagnosis import check_square, singular_error
from nori_dyn.planning.elimination import Elimination, ZeroPivotError
from nori_dyn.planning.orderings.markowitz import markowitz
from nori_dyn.planning.orderings.problem import Ordering, ordering_problem
from nori_dyn.planning.orderings.registry import AUTO, candidates
from nori_dyn.planning.outputs import Output, resolve_outputs
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicSystem, trace

STABLE_PIVOT = 1e-4
"""An order whose pivots keep this share of their usual size at all sampled configurations counts as stable."""

DECADE = 0.1
"""What a decade nearer to zero weighs, as a share of the operations: digits are lost in proportion."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """What an ordering leads to.

    Attributes:
        ordering: its name.
        cost: operations of factorisation and substitutions, as they are done here.
        published: "operations" of the same by the paper's published rule (fig. 1), for comparison.
        fill_in: entries of L and U that are not in D.
        nonzeros: entries of L and U, the diagonal counted once.
        smallest_pivot: smallest pivot over the sampled configurations, each relative to its own median.
    """

    ordering: str
    cost: Cost
    published: Cost
    fill_in: int
    nonzeros: int
    smallest_pivot: float

    @property
    def is_stable(self) -> bool:
        """Whether no pivot came near zero at any sampled configuration."""
        return self.smallest_pivot >= STABLE_PIVOT

    @property
    def weight(self) -> float:
        """The operations, made heavier for each decade that the smallest pivot comes nearer to zero."""
        return self.cost.total * (1 - DECADE * math.log10(max(self.smallest_pivot, sys.float_info.min)))


@dataclass(frozen=True, eq=False)
class EliminationPlan:
    """An elimination order for a system, valid for all its configurations.

    Attributes:
        system: the system.
        outputs: what was asked for.
        ordering: name of the ordering chosen.
        row_permutation: P (n), as indices: the permuted matrix is D[P][:, Q].
        column_permutation: Q (n).
        candidates: what each ordering tried leads to, the chosen one first.
        assembly_cost: operations that compute the entries of D and b, sines and cosines not counted.
        seed: the seed of everything random.
    """

    system: System
    outputs: tuple[Output, ...]
    ordering: str
    row_permutation: NDArray[np.intp]
    column_permutation: NDArray[np.intp]
    candidates: tuple[Candidate, ...]
    assembly_cost: Cost
    seed: int

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.system!r}, ordering='{self.ordering}', {self.cost.total} operations)"

    @property
    def cost(self) -> Cost:
        """All operations of a tick: assembly of D and b, factorisation, both substitutions."""
        return self.assembly_cost + self.candidates[0].cost

    @property
    def pattern(self) -> sp.csc_array:
        """The worst-case sparsity of D, unpermuted."""
        return self.symbolic.pattern

    @cached_property
    def symbolic(self) -> SymbolicSystem:
        """The system over expressions."""
        return trace(self.system, self.seed)

    def elimination(self) -> Elimination:
        """Return the elimination in the planned order, step by step."""
        return Elimination(self.symbolic).run(self.row_permutation, self.column_permutation)


def make_plan(
    system: System,
    outputs: Sequence[str] | None = None,
    ordering: str = AUTO,
    seed: int = 0,
    progress: Callable[[str], None] = lambda stage: None,
) -> EliminationPlan:
    """Return the plan of a square system.

    Args:
        system: the system.
        outputs: names of the outputs wanted; None for all.
        ordering: an ordering by name, or "auto" for the cheapest stable one of all.
        seed: seed of the sampled configurations.
        progress: called with the name of each stage as it begins.

    Raises:
        SystemShapeError: too few or too many rows.
        SingularSystemError: no unique solution at any configuration.
        PlanError: an unknown ordering or output.
        MissingExtraError: the ordering needs an extra that is not installed.
    """
    methods = candidates(ordering)
    resolved = resolve_outputs(system, outputs)
    check_square(system)
    progress("worst-case sparsity")
    symbolic = trace(system, seed)
    problem = ordering_problem(system, symbolic, seed)
    found: list[tuple[Candidate, Ordering]] = []
    for name, method in methods.items():
        progress(f"ordering {name}")
        try:
            order = method(problem)
            work = Elimination(symbolic, problem.natural_samples).run(order.rows, order.columns)
        except (ZeroPivotError, RuntimeError) as error:  # a zero pivot here, or SciPy's "exactly singular"
            rank = _rank(error, lambda: markowitz(problem))
            if rank is not None:
                raise singular_error(system, rank, seed) from None
            continue
        published = RULES["published_fig1"](work)
        candidate = Candidate(name, engine_rule(work), published, work.fill_in, work.nonzeros, work.smallest_pivot)
        found.append((candidate, order))
    if not found:
        raise PlanError(f"ordering '{ordering}' finds no nonzero pivots for {system!r}. Use another one, or 'auto'.")
    found.sort(key=lambda item: (not item[0].is_stable, item[0].weight))
    best, order = found[0]
    return EliminationPlan(
        system=system,
        outputs=resolved,
        ordering=best.ordering,
        row_permutation=_frozen(order.rows),
        column_permutation=_frozen(order.columns),
        candidates=tuple(candidate for candidate, _ in found),
        assembly_cost=expression_cost((*symbolic.entries, *symbolic.b)),
        seed=seed,
    )


def _rank(error: Exception, exact: Callable[[], Ordering]) -> int | None:
    """Return the rank of a system that is singular for all q; None when it is not singular."""
    if isinstance(error, ZeroPivotError) and error.rank is not None:
        return error.rank
    try:
        exact()
    except ZeroPivotError as singular:
        return singular.rank
    return None


def _frozen(permutation: NDArray[np.intp]) -> NDArray[np.intp]:
    permutation = np.array(permutation, dtype=np.intp)
    permutation.flags.writeable = False
    return permutation

"""The offline planner: from a system to its elimination order and what it costs.

Two orders are planned. The paper's orders D itself: UMFPACK runs on it, and the tables of fill-in show it. The
program's orders the refined system, and is what is compiled: lifted from the first, or from the order of the recursions
where that leads to less.

Source: Nori, problem 2 and remark 4; docs/design.md, 4.3.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Self, TypeVar

import numpy as np
import scipy.sparse as sp

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import PlanError, SingularSystemError, SystemShapeError
from nori_dyn.planning.cost import RULES, engine_rule
from nori_dyn.planning.diagnosis import check_shape, singular_error
from nori_dyn.planning.elimination import FIELD, Elimination, ZeroPivotError
from nori_dyn.planning.orderings.markowitz import markowitz
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.planning.orderings.registry import AUTO, OrderingMethod, orderings_named
from nori_dyn.planning.outputs import Output, determined_outputs, output_columns, resolve_outputs
from nori_dyn.planning.over_time import no_single_instant, over_time, unknown_at_first
from nori_dyn.planning.repeats import Settled, settle
from nori_dyn.planning.search import Burden, LiftedProgram, Search, Stability, burden
from nori_dyn.planning.static_elimination import StaticElimination, static_elimination
from nori_dyn.planning.summary import plan_document
from nori_dyn.system.builder import System
from nori_dyn.system.refined import RefinedSystem, refine
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.tables import Document, Shown
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Indices

PROMISING = 1.3
"""Operations on D, as a multiple of those of the cheapest order so far, above which an order is not lifted."""

PATIENCE = 500_000
"""Entries updated by eliminations after which no further ordering is begun: some ten seconds. Work is counted, not
time, so that a busy machine makes the same plan."""


Made = TypeVar("Made", bound="EliminationPlan")


@dataclass(frozen=True, slots=True)
class TriedOrdering:
    """What an ordering leads to.

    Attributes:
        ordering: its name.
        cost: operations of LU and substitutions of D itself in this order, its entries given.
        published: "operations" of the same by the paper's published rule (fig. 1), for comparison.
        fill_in: entries of L and U that are not in D.
        nonzeros: entries of L and U, the diagonal counted once.
        program: operations of the program that it leads to, everything from q, qd and y to the outputs counted; of that
            of the recursions where it is not worth lifting.
        stability: how well the program's pivots hold.
    """

    ordering: str
    cost: Cost
    published: Cost
    fill_in: int
    nonzeros: int
    program: Cost
    stability: Stability

    @property
    def burden(self) -> Burden:
        """See `burden`."""
        return burden(self.program, self.stability)


@dataclass(frozen=True, eq=False)
class EliminationPlan(Shown):
    """An elimination order for a system, valid for all its configurations.

    Attributes:
        system: the system.
        outputs: what was asked for.
        ordering: name of the ordering chosen.
        row_permutation: P (n), as indices: the permuted matrix is D[P][:, Q].
        column_permutation: Q (n).
        program_rows, program_columns: the same for the refined system, which the program eliminates.
        regrouped: whether inertia is moved across joints in it, see `internal_links`.
        tried: what each ordering tried leads to, the chosen one first.
        seed: the seed of everything random.
        undetermined: columns of d that no sensor tells, and no output may show: forces in loops whose rows repeat
            others, see `settle`.
        is_over_time: whether the system is determined over time only, see `over_time`: a filter runs the plan, and no
            solver can.
        traced: the refined system, where planning has left it: it need not be traced again. No file holds it.
        written: its elimination in the planned order over expressions, where planning has left that, too.
    """

    system: System
    outputs: tuple[Output, ...]
    ordering: str
    row_permutation: Indices
    column_permutation: Indices
    program_rows: Indices
    program_columns: Indices
    regrouped: bool
    tried: tuple[TriedOrdering, ...]
    seed: int
    undetermined: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    is_over_time: bool = False
    traced: RefinedSystem | None = None
    written: StaticElimination | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.system!r}, ordering='{self.ordering}', {self.cost.total} operations)"

    def shown(self) -> Document:
        return plan_document(self)

    @property
    def cost(self) -> Cost:
        """All operations of a tick, from q, qd and y to the outputs; sines and cosines are not counted.

        Of a weighted system those of a tick at a usual state, which is not refined.
        """
        return self.tried[0].program

    @property
    def stability(self) -> Stability:
        """What the program's pivots did at the sampled configurations."""
        return self.tried[0].stability

    @property
    def pattern(self) -> sp.csc_array:
        """The worst-case sparsity of D, unpermuted."""
        return self.symbolic.pattern

    @property
    def symbolic(self) -> SymbolicSystem:
        """The system over expressions."""
        return self.refined.original

    @cached_property
    def refined(self) -> RefinedSystem:
        """The refined system."""
        system = over_time(self.system) if self.is_over_time else self.system
        return self.traced or refine(system, self.seed, self.regrouped)

    def check_at_once(self) -> None:
        """Check that one instant determines what the plan is for.

        Raises:
            PlanError: time alone does.
        """
        if self.is_over_time:
            raise no_single_instant(self.system)

    def untouched(self) -> Self:
        """Return this plan over expressions to which nothing was added since it was traced.

        So its program is the same whatever else was made of the plan before, and fits what is cached of it.
        """
        return self.traced_anew() if "solved" in self.__dict__ else self

    def traced_anew(self) -> Self:
        """Return this plan over expressions of its system only, without any of an elimination."""
        return replace(self, traced=None, written=None)

    @property
    def program_order(self) -> Ordering:
        """The order in which the program eliminates."""
        return Ordering(self.program_rows, self.program_columns)

    @cached_property
    def solved(self) -> StaticElimination:
        """Every unknown as an expression."""
        if self.written is not None and self.written.refined is self.refined:
            return self.written
        return static_elimination(self.refined, self.program_order)

    def elimination(self) -> Elimination[int]:
        """Return the elimination of D in the planned order, step by step."""
        return Elimination(self.symbolic, FIELD).run(self.row_permutation, self.column_permutation)


@collector_at_rest()
def make_plan(
    system: System,
    outputs: Sequence[str] | None = None,
    ordering: str = AUTO,
    seed: int = 0,
    effort: int = 0,
    progress: Progress = lambda stage, done=None: None,
    kind: type[Made] = EliminationPlan,  # type: ignore[assignment]
) -> Made:
    """Return the plan of a square system, or of one that is as soon as what persists is learned.

    Args:
        system: the system.
        outputs: names of the outputs wanted; None for all.
        ordering: an ordering by name, or "auto" for the cheapest stable one of all.
        seed: seed of the sampled configurations and of the search.
        effort: entries that eliminations may update in search of a cheaper order beside the orderings by name.
        progress: called with the name of each stage as it begins, and while searching with the share that is done.
        kind: the class of plan to make.

    Raises:
        SystemShapeError: too few or too many rows.
        SingularSystemError: no unique solution at any configuration.
        NotClosedError: loops that cannot be closed.
        PlanError: an unknown ordering or output.
        MissingExtraError: the ordering needs an extra that is not installed.
    """
    methods = orderings_named(ordering)
    resolve_outputs(system, outputs)  # wrong names are told before loops are closed
    settled = settle(system, seed)
    resolved = determined_outputs(settled.system, outputs, settled.undetermined)
    planned = partial(_planned, settled, resolved, methods, ordering, seed, effort, progress, kind)
    try:
        return planned(settled.system)
    except (SystemShapeError, SingularSystemError):
        if not settled.system.is_weighted or not unknown_at_first(settled.system):
            raise
        with suppress(SystemShapeError, SingularSystemError):
            return planned(over_time(settled.system))
        raise


def _planned(
    settled: Settled,
    outputs: tuple[Output, ...],
    methods: Mapping[str, OrderingMethod],
    ordering: str,
    seed: int,
    effort: int,
    progress: Progress,
    kind: type[Made],
    system: System,
) -> Made:
    """Return the plan of a settled system, eliminated as it is or with rows on what persists; see `make_plan`."""
    check_shape(system)
    progress("worst-case sparsity")
    search = Search(system, output_columns(system, outputs), seed)
    found: list[tuple[TriedOrdering, Ordering, LiftedProgram]] = []
    patience = PATIENCE
    # where rows are weighed the program goes from the leaves to the root, whatever the order
    one_does = (system.is_weighted or search.is_large) and ordering == AUTO
    for name, method in methods.items():
        if found and (one_does or search.updates > patience):
            break
        progress(f"ordering {name}")
        try:
            order = search.order(method)
            work = Elimination(search.original, FIELD).run(order.rows, order.columns)
            search.updates += work.updates
            operations = engine_rule(work)
            counted = (name, operations, RULES["published_fig1"](work), work.fill_in, work.nonzeros)
            work.forget()
            least = min((candidate.cost.total for candidate, _, _ in found), default=operations.total)
            program = search.lifted(order) if operations.total <= PROMISING * least else search.recursions
        except (ZeroPivotError, RuntimeError) as error:  # a zero pivot here, or SciPy's "exactly singular"
            rank = _rank(error, lambda: search.order(markowitz))
            if rank is not None:
                raise singular_error(system, rank, seed) from None
            continue
        found.append((TriedOrdering(*counted, program.cost, program.stability), order, program))
        if effort:
            before = search.updates
            found.extend(
                (TriedOrdering(*counted, better.cost, better.stability), order, better)
                for better in search.restarts(order, effort if one_does else effort // len(methods), progress)
            )
            patience += search.updates - before
    if not found:
        raise PlanError(f"ordering '{ordering}' finds no nonzero pivots for {system!r}. Use another one, or 'auto'.")
    found.sort(key=lambda item: (item[0].burden, item[0].cost.total))  # of equal programs, what suits UMFPACK best
    best, order, program = found[0]
    traced, written = search.written(program)
    return kind(
        system=settled.system,
        outputs=outputs,
        ordering=best.ordering,
        row_permutation=_freeze(order.rows),
        column_permutation=_freeze(order.columns),
        program_rows=_freeze(program.order.rows),
        program_columns=_freeze(program.order.columns),
        regrouped=program.regrouped,
        tried=tuple({candidate.ordering: candidate for candidate, _, _ in reversed(found)}.values())[::-1],
        seed=seed,
        undetermined=_freeze(settled.undetermined),
        is_over_time=system is not settled.system,
        traced=traced,
        written=written,
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


def _freeze(permutation: Indices) -> Indices:
    permutation = np.array(permutation, dtype=np.intp)
    permutation.flags.writeable = False
    return permutation

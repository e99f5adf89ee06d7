"""The offline planner: from a system to its elimination order and cost.

Two orders are planned. The paper's orders D itself: UMFPACK runs on it, and the tables of fill-in show it. The
program's is the one to compile: of an ordering by name the same, and of `auto` one of the refined system, lifted from
the first, or from the order of the recursions where that leads to less.

Source: Nori, problem 2 and remark 4; docs/design.md, 4.3.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Self, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import PlanError, SingularSystemError, SystemShapeError
from nori_dyn.planning.cost import RULES, engine_rule
from nori_dyn.planning.diagnosis import check_shape, singular_error
from nori_dyn.planning.elimination import FIELD, Elimination, ZeroPivotError
from nori_dyn.planning.isomorphic import carried, images_of
from nori_dyn.planning.orderings.problem import Ordering, OrderingProblem, ordering_problem
from nori_dyn.planning.orderings.registry import AUTO, MARKOWITZ, ORDERINGS, orderings_named
from nori_dyn.planning.outputs import Output, determined_outputs, output_columns, resolve_outputs
from nori_dyn.planning.over_time import no_single_instant, over_time, without_prior
from nori_dyn.planning.repeats import ReducedSystem, remove_repeats
from nori_dyn.planning.search import Burden, PlannedProgram, Search, Stability, burden, n_states, updates_of
from nori_dyn.planning.static_elimination import StaticElimination, static_elimination
from nori_dyn.system.builder import System
from nori_dyn.system.refined import RefinedSystem, as_given, refine
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.tables import Shown
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
    """The result of an ordering: its cost and stability.

    Attributes:
        ordering: its name.
        cost: operations of LU and substitutions of D itself in this order, its entries given.
        published: "operations" of the same by the paper's published rule (fig. 1), for comparison.
        fill_in: entries of L and U that are not in D.
        nonzeros: entries of L and U, the diagonal counted once.
        program: operations of the program that it leads to, everything from q, qd and y to the outputs counted.
        stability: how well the program's pivots hold.
        program_ordering: the ordering whose order that program has: this one, or "recursive" where lifting the order of
            the recursions leads to less, or this one is not worth lifting. "" in files that do not say.
    """

    ordering: str
    cost: Cost
    published: Cost
    fill_in: int
    nonzeros: int
    program: Cost
    stability: Stability
    program_ordering: str = ""

    @property
    def burden(self) -> Burden:
        """See `burden`."""
        return burden(self.program, self.stability)


@dataclass(frozen=True, eq=False)
class EliminationPlan(Shown):
    """An elimination order for a system, valid for all its configurations.

    Attributes:
        system: the system.
        outputs: the requested outputs.
        ordering: name of the ordering whose order the program has.
        row_permutation: P (n), as indices: the permuted matrix is D[P][:, Q]. UMFPACK's kernel takes Q from it.
        column_permutation: Q (n).
        program_rows, program_columns: the same for the system that the program eliminates: D itself, in P and Q, or the
            refined system.
        regrouped: whether inertia is moved across joints in the refined system, see `internal_links`; None where the
            program eliminates D itself.
        tried: cost and stability of each ordering tried, the chosen one first.
        seed: the seed of everything random.
        undetermined: columns of d that no sensor determines, and no output may contain: forces in loops whose rows
            repeat others, see `remove_repeats`.
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
    regrouped: bool | None
    tried: tuple[TriedOrdering, ...]
    seed: int
    undetermined: Indices = field(default_factory=lambda: np.zeros(0, dtype=np.intp))
    is_over_time: bool = False
    traced: RefinedSystem | None = None
    written: StaticElimination | None = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.system!r}, ordering='{self.ordering}', {self.cost.total} operations)"

    @property
    def cost(self) -> Cost:
        """All operations of a tick, from q, qd and y to the outputs; sines and cosines are not counted.

        Of a weighted system those of a tick on the fast path, without refinement.
        """
        return self.tried[0].program

    @property
    def stability(self) -> Stability:
        """Stability of the program's pivots at the sampled configurations."""
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
        """The system that the program eliminates: the refined system, or D itself."""
        system = over_time(self.system) if self.is_over_time else self.system
        if self.traced is not None:
            return self.traced
        if self.regrouped is None:
            return as_given(system, self.seed)
        return refine(system, self.seed, self.regrouped)

    @property
    def identity(self) -> tuple[str, ...]:
        """All that its programs depend on."""
        order = self.program_rows.tobytes() + self.program_columns.tobytes()
        names, settings = repr([output.name for output in self.outputs]), repr((self.regrouped, self.seed))
        return self.system.fingerprint, names, hashlib.sha256(order).hexdigest(), settings

    def check_at_once(self) -> None:
        """Check that the system is determined at one instant.

        Raises:
            PlanError: time alone does.
        """
        if self.is_over_time:
            raise no_single_instant(self.system)

    def untouched(self) -> Self:
        """This plan over expressions to which nothing was added since it was traced.

        So its program is the same whatever else was made of the plan before, and fits the cached one.
        """
        return self.retraced() if "solved" in self.__dict__ else self

    def retraced(self) -> Self:
        """This plan over expressions of its system only, without any of an elimination."""
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
        """The elimination of D in the planned order, step by step."""
        return Elimination(self.symbolic, FIELD).run(self.row_permutation, self.column_permutation)

    def graph(self) -> Any:
        """The bipartite graph of D as a `networkx.Graph`, with its blocks and the order of P and Q.

        Nodes are ("row", i) and ("column", j), and each nonzero of D is an edge between them; `is_unit` says whether it
        is the constant 1 or -1. Nodes have a `name` ("3f:link2.mz", "tau:joint1"), the name of their equation or
        variable as `block`, the `step` of the elimination in which they are the pivot's, and as `component` the
        diagonal block of D's block triangular form, in an order in which these can be solved: as many as rows where D
        is a triangle. Columns have the `kind` of their variable ("tau"). Of a weighted system rows and columns are
        those of the conditions of optimality, multipliers among them.

        Raises:
            MissingExtraError: networkx is not installed, which the extra `graph` brings.

        Example:
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"))
            >>> graph = plan.graph()  # of the extra `graph`
            >>> len(graph), len({graph.nodes[node]["component"] for node in graph})  # a triangle: each row by itself
            (80, 40)
        """
        from nori_dyn.planning.graph import bipartite_graph  # and with it parts of SciPy, which few plans need

        order = Ordering(self.row_permutation, self.column_permutation)
        return bipartite_graph(self.system, self.symbolic, order, self.tried[0].ordering)


@dataclass(frozen=True, eq=False)
class Request:
    """Outputs that are asked of a system, before it is planned.

    Attributes:
        system: the system, without rows that repeat others.
        outputs: the outputs, which are determined.
        seed: as of `make_plan`.
    """

    system: System
    outputs: tuple[Output, ...]
    seed: int = 0

    @staticmethod
    def of(system: System, outputs: Sequence[str] | None = None, seed: int = 0) -> Request:
        """That of outputs by their names, see `make_plan`.

        Raises:
            NotClosedError, UnknownOutputError, PlanError: see `make_plan`.
        """
        reduced = remove_repeats(system, seed)
        return Request(reduced.system, determined_outputs(reduced.system, outputs, reduced.undetermined), seed)


@collector_at_rest()
def make_plan(
    system: System,
    outputs: Sequence[str] | None = None,
    ordering: str = AUTO,
    seed: int = 0,
    effort: int = 0,
    progress: Progress = lambda stage, done=None: None,
    kind: type[Made] = EliminationPlan,  # type: ignore[assignment]
    like: EliminationPlan | None = None,
) -> Made:
    """The plan of a square system, or of one that is square once its state is known.

    Args:
        system: the system.
        outputs: names of the outputs wanted; None for all.
        ordering: an ordering by name, for D itself in its P and Q; or "auto" for the cheapest stable order of the
            refined system. Of a weighted system a name is for the P and Q of the conditions of optimality, as UMFPACK
            factorises them; the program has the order of the recursions in the refined system, whatever the name.
        seed: seed of the sampled configurations and of the search.
        effort: entries that eliminations may update in search of a cheaper order, with "auto".
        progress: called with the name of each stage as it begins, and while searching with the share that is done.
        kind: the class of plan to make.
        like: a plan of the same robot, made with the same arguments: where its system corresponds to this one, and its
            orders cost no more here, they are taken.

    Raises:
        SystemShapeError: too few or too many rows.
        SingularSystemError: no unique solution at any configuration.
        NotClosedError: loops that cannot be closed.
        PlanError: an unknown ordering or output; an effort with an ordering by name.
        MissingExtraError: the ordering needs an extra that is not installed.
    """
    orderings_named(ordering)
    if effort and ordering != AUTO:
        raise PlanError(f"ordering '{ordering}' leaves nothing to search: `effort` is for ordering 'auto'.")
    resolve_outputs(system, outputs)  # wrong names are refused before loops are closed
    reduced = remove_repeats(system, seed)
    resolved = determined_outputs(reduced.system, outputs, reduced.undetermined)
    planned = partial(_planned, reduced, resolved, ordering, seed, effort, progress, kind, like)
    try:
        return planned(reduced.system)
    except (SystemShapeError, SingularSystemError):
        if not reduced.system.is_weighted or not without_prior(reduced.system):
            raise
        with suppress(SystemShapeError, SingularSystemError):
            return planned(over_time(reduced.system))
        raise


def _planned(
    reduced: ReducedSystem,
    outputs: tuple[Output, ...],
    ordering: str,
    seed: int,
    effort: int,
    progress: Progress,
    kind: type[Made],
    like: EliminationPlan | None,
    system: System,
) -> Made:
    """The plan of a reduced system, eliminated as it is or with rows that read the state; see `make_plan`."""
    check_shape(system)
    progress("worst-case sparsity")
    columns = output_columns(system, outputs)
    corresponding = _as_corresponding(system, columns, like, seed) if like and ordering == AUTO else None
    if corresponding:
        found, traced, written = corresponding
    elif ordering == AUTO or system.is_weighted:
        found, traced, written = _searched(system, columns, ordering, seed, effort, progress)
    else:
        found, traced, written = _as_ordered(system, columns, ordering, seed, progress)
    _, order, program = found[0]
    return kind(
        system=reduced.system,
        outputs=outputs,
        ordering=program.ordering,
        row_permutation=_freeze(order.rows),
        column_permutation=_freeze(order.columns),
        program_rows=_freeze(program.order.rows),
        program_columns=_freeze(program.order.columns),
        regrouped=program.regrouped,
        tried=tuple({candidate.ordering: candidate for candidate, _, _ in reversed(found)}.values())[::-1],
        seed=seed,
        undetermined=_freeze(reduced.undetermined),
        is_over_time=system is not reduced.system,
        traced=traced,
        written=written,
    )


Found: TypeAlias = tuple[list[tuple[TriedOrdering, Ordering, PlannedProgram]], RefinedSystem, StaticElimination | None]
"""What was tried with its order of D and its program, the best first; the system that this eliminates, and how."""


def _as_ordered(system: System, columns: Indices, ordering: str, seed: int, progress: Progress) -> Found:
    """The elimination of D itself in the P and Q of an ordering."""
    progress(f"ordering {ordering}")
    given = as_given(system, seed)
    problem = ordering_problem(system, given.symbolic, seed, n_states(system))
    try:
        order = ORDERINGS[ordering](problem)
        program, counts, written = _in_order(system, columns, ordering, order, None, given, problem)
    except (ZeroPivotError, RuntimeError) as error:  # a zero pivot here, or SciPy's "exactly singular"
        rank = _rank(error, lambda: ORDERINGS[MARKOWITZ](problem))
        raise _no_pivots(system, ordering) if rank is None else singular_error(system, rank, seed) from None
    return [(_tried(ordering, counts, program), order, program)], given, written


def _as_corresponding(system: System, columns: Indices, like: EliminationPlan, seed: int) -> Found | None:
    """The elimination in the orders of a system that corresponds; None where it does not, or they cost more."""
    if like.regrouped is None or like.is_over_time:
        return None
    refined, best = refine(system, seed, like.regrouped), like.tried[0]
    images = images_of(like.system, system, like.refined.symbolic, refined.symbolic)
    if images is None:
        return None
    problem = ordering_problem(system, refined.symbolic, seed, n_states(system))
    order = carried(like.program_order, images)
    try:
        program, _, written = _in_order(system, columns, like.ordering, order, like.regrouped, refined, problem)
    except ZeroPivotError:  # a nonzero of one limb may be zero in another
        return None
    if program.cost.total > best.program.total or not (program.stability.is_stable or system.is_weighted):
        return None
    order, work = _order_of_d(system, like, refined.original, seed)
    found = _tried(best.ordering, _counts(work), program), order, program
    work.forget()
    return [found], refined, written


def _order_of_d(
    system: System, like: EliminationPlan, original: SymbolicSystem, seed: int
) -> tuple[Ordering, Elimination[int]]:
    """The order of D of a system that corresponds, or its own where that finds no pivots; and the elimination in it."""
    images = images_of(like.system, system, like.symbolic, original)
    if images is not None:
        order = carried(Ordering(like.row_permutation, like.column_permutation), images)
        with suppress(ZeroPivotError):
            return order, Elimination(original, FIELD).run(order.rows, order.columns)
    order = ORDERINGS[like.tried[0].ordering](ordering_problem(system, original, seed, n_states(system)))
    return order, Elimination(original, FIELD).run(order.rows, order.columns)


def _in_order(
    system: System,
    columns: Indices,
    name: str,
    order: Ordering,
    regrouped: bool | None,
    refined: RefinedSystem,
    problem: OrderingProblem,
) -> tuple[PlannedProgram, Counts, StaticElimination]:
    """The program that eliminates a refined system in a known order, what an elimination counts, and itself.

    Raises:
        ZeroPivotError: a pivot is zero for all q.
    """
    work = Elimination(refined.symbolic, FIELD, problem.natural_samples).run(order.rows, order.columns)
    counts, updates, stability = _counts(work), updates_of(work), Stability.of(work, problem, system)
    work.forget()
    written = static_elimination(refined, order)
    return PlannedProgram(name, order, updates, regrouped, written.cost(columns.tolist()), stability), counts, written


def _searched(system: System, columns: Indices, ordering: str, seed: int, effort: int, progress: Progress) -> Found:
    """The cheapest stable elimination of the refined system."""
    search, patience = Search(system, columns, seed), PATIENCE
    found: list[tuple[TriedOrdering, Ordering, PlannedProgram]] = []
    names = orderings_named(ordering)
    # where rows are weighed the program goes from the leaves to the root, whatever the order
    one_does = (system.is_weighted or search.is_large) and ordering == AUTO
    for name in names:
        if found and (one_does or search.updates > patience):
            break
        progress(f"ordering {name}")
        try:
            order = search.order(name)
            work = Elimination(search.original, FIELD).run(order.rows, order.columns)
            search.updates += work.updates
            counts = _counts(work)
            work.forget()
            operations = counts[0].total
            least = min((candidate.cost.total for candidate, _, _ in found), default=operations)
            program = search.lifted(name) if operations <= PROMISING * least else search.recursions
        except (ZeroPivotError, RuntimeError) as error:  # a zero pivot here, or SciPy's "exactly singular"
            rank = _rank(error, lambda: search.order(MARKOWITZ))
            if rank is not None:
                raise singular_error(system, rank, seed) from None
            continue
        found.append((_tried(name, counts, program), order, program))
        if effort:
            before = search.updates
            found.extend(
                (_tried(name, counts, better), order, better)
                for better in search.restarts(name, effort if one_does else effort // len(names), progress)
            )
            patience += search.updates - before
    if not found:
        raise _no_pivots(system, ordering)
    found.sort(key=lambda item: (item[0].burden, item[0].cost.total))  # of equal programs, the best one for UMFPACK
    return found, *search.written(found[0][2])


Counts: TypeAlias = tuple[Cost, Cost, int, int]


def _counts(work: Elimination[int]) -> Counts:
    """The operations of an elimination of D, the same as published, its fill-in and nonzeros."""
    return engine_rule(work), RULES["published_fig1"](work), work.fill_in, work.nonzeros


def _tried(name: str, counts: Counts, program: PlannedProgram) -> TriedOrdering:
    """The result of an ordering."""
    return TriedOrdering(name, *counts, program.cost, program.stability, program.ordering)


def _no_pivots(system: System, ordering: str) -> PlanError:
    return PlanError(f"ordering '{ordering}' finds no nonzero pivots for {system!r}. Use another one, or 'auto'.")


def _rank(error: Exception, exact: Callable[[], object]) -> int | None:
    """The rank of a system that is singular for all q; None when it is not singular."""
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

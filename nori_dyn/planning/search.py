"""The search for the program's order: orders of D lifted to the refined systems, and counted.

Source: docs/design.md, 4.5 and 5.1.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import product

import numpy as np

from nori_dyn.algebra.counting import Cost
from nori_dyn.planning.elimination import FIELD, Elimination, ZeroPivotError
from nori_dyn.planning.isomorphic import IsomorphicParts, isomorphic_order, isomorphic_parts
from nori_dyn.planning.lifting import lifted_classes
from nori_dyn.planning.orderings.greedy import CostlyOrderError, greedy
from nori_dyn.planning.orderings.problem import STABILITY_STATES, Ordering, OrderingProblem, ordering_problem
from nori_dyn.planning.orderings.registry import ORDERINGS, RECURSIVE
from nori_dyn.planning.static_elimination import StaticElimination, static_elimination
from nori_dyn.system.builder import System
from nori_dyn.system.refined import RefinedSystem, can_regroup, refine
from nori_dyn.system.trace import SymbolicSystem
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Indices

STABLE_PIVOT = 1e-4
"""An order whose pivots keep this share of their usual size at all sampled configurations counts as stable."""

DECADE = 0.1
"""Penalty for a decade nearer to zero, as a share of the operations: digits are lost in proportion."""

MOST_UPDATES = 1.5
"""An order is given up when it updates this many times the entries that the order of the recursions does."""

NEAR = 1.07
"""Operations of a program, as a multiple of those of the cheapest so far, up to which more is tried: limbs are made
alike in it, and its refined system is eliminated in other orders."""

LARGE = 30_000
"""Rows of D, some 1,500 links, above which memory counts: the order of the recursions is the only one tried then,
inertia is not moved across joints for comparison, and stability is sampled at fewer states. What makes a pivot small is
local, and there are many pivots of each kind."""

FEW_STATES = 16
"""Number of sampled configurations of large systems."""


@dataclass(frozen=True, slots=True)
class Stability:
    """How well an order of elimination holds at sampled states, in natural units.

    Attributes:
        states: number of sampled configurations.
        smallest_pivot: smallest pivot at any of them, relative to its own median over them.
        smallest_at: the link to which that pivot belongs.
        growth: largest ratio of an update by a pivot to the updated entry; 1 or less is as good as full pivoting.
    """

    states: int
    smallest_pivot: float
    smallest_at: str
    growth: float

    @staticmethod
    def of(work: Elimination[int], problem: OrderingProblem, system: System) -> Stability:
        """The stability of an elimination with an ensemble."""
        worst = min(work.pivots, key=lambda step: step.smallest)
        link = system.tree.names[problem.column_bodies[worst.column]]
        growth = max((step.growth for step in work.pivots), default=0.0)
        return Stability(len(problem.samples), worst.smallest, link, growth)

    @property
    def is_stable(self) -> bool:
        """Whether no pivot came near zero at any sampled configuration."""
        return self.smallest_pivot >= STABLE_PIVOT


Burden = tuple[bool, int]


def burden(cost: Cost, stability: Stability) -> Burden:
    """Sort key of programs: stable first, then operations, with a penalty for each decade nearer to singularity."""
    digits = -math.log10(max(stability.smallest_pivot, sys.float_info.min))
    return not stability.is_stable, round(cost.total * (1 + DECADE * digits))


@dataclass(frozen=True, slots=True, eq=False)
class PlannedProgram:
    """An elimination order of a system, with its cost and stability.

    Attributes:
        ordering: name of the ordering whose order it has, or whose order of D it is lifted from.
        order: the order.
        updates: how many entries each of its pivots updates (n).
        regrouped: whether inertia is moved across joints in the refined system, see `internal_links`; None of D itself.
        cost: operations of the program, everything from q, qd and y to the outputs counted.
        stability: how well its pivots hold.
    """

    ordering: str
    order: Ordering
    updates: Indices
    regrouped: bool | None
    cost: Cost
    stability: Stability

    @property
    def burden(self) -> Burden:
        return burden(self.cost, self.stability)


def is_large(system: System) -> bool:
    """Whether a system is so large that the first order has to do, see `LARGE`."""
    return system.shape[0] > LARGE


def n_states(system: System) -> int:
    """The number of configurations at which stability is sampled."""
    return FEW_STATES if is_large(system) else STABILITY_STATES


def updates_of(work: Elimination[int]) -> Indices:
    """How many entries each pivot of an elimination has updated (n)."""
    return np.array([len(step.l) * len(step.u) for step in work.pivots], dtype=np.intp)


class Search:
    """Lifts orders to the refined systems, and counts the programs that they lead to.

    Attributes:
        is_large: see `is_large`.
        updates: entries that eliminations have updated so far: the work done.
    """

    def __init__(self, system: System, columns: Indices, seed: int) -> None:
        self._system = system
        self._columns = columns.tolist()
        self._rng = np.random.default_rng(seed)
        self._refinements: list[tuple[bool, RefinedSystem, OrderingProblem]] = []
        self.is_large = is_large(system)
        n_samples = n_states(system)
        for regrouped in (False, True) if can_regroup(system) and not self.is_large else (False,):
            refined = refine(system, seed, regrouped)
            problem = ordering_problem(system, refined.symbolic, seed, n_samples, refined.definitions)
            self._refinements.append((regrouped, refined, problem))
        self.problem = ordering_problem(system, self.original, seed, n_samples)
        self._triangular: dict[int, PlannedProgram] = {}  # where all orders are as good
        self._parts: dict[int, tuple[IsomorphicParts, ...]] = {}
        self._alike: dict[PlannedProgram, PlannedProgram | None] = {}
        self._known: dict[tuple[int, bytes], PlannedProgram | None] = {}
        self._orders: dict[str, Ordering] = {}
        self._limits = [math.inf] * len(self._refinements)
        self._sizes = [len(refined.symbolic.graph) for _, refined, _ in self._refinements]
        self._last: dict[int, tuple[PlannedProgram, StaticElimination]] = {}
        self.updates = 0

    @property
    def original(self) -> SymbolicSystem:
        """The system as given."""
        return self._refinements[0][1].original

    def written(self, program: PlannedProgram) -> tuple[RefinedSystem, StaticElimination | None]:
        """The refined system that a program eliminates, and its elimination where that was the last one there.

        No other expressions of the search are left.
        """
        which = self._number(program)
        last, solved = self._last.get(which, (None, None))
        if last is not program:
            self._forget(which)
            solved = None
        return self._refinements[which][1], solved

    def order(self, name: str) -> Ordering:
        """The order of the original system that an ordering finds, which is asked once.

        Raises:
            ZeroPivotError, RuntimeError: it finds none.
        """
        if name not in self._orders:
            self._orders[name] = ORDERINGS[name](self.problem)
        return self._orders[name]

    @cached_property
    def recursions(self) -> PlannedProgram:
        """The program in the order of the recursions."""
        return self._best([*(program for found in self._recursions for program in found), self.early])

    @cached_property
    def _recursions(self) -> list[list[PlannedProgram | None]]:
        """The programs of each refinement in the order of the recursions: to the root, and as D has it."""
        return [
            [self._program(which, RECURSIVE, to_root) for to_root in (True, False)]
            for which in range(len(self._refinements))
        ]

    @cached_property
    def _near(self) -> list[int]:
        """The refinements in which other orders are tried."""
        costs = [min(program.cost.total for program in found if program) for found in self._recursions]
        return [which for which, cost in enumerate(costs) if cost <= NEAR * min(costs)]

    def lifted(self, name: str) -> PlannedProgram:
        """The best program that an ordering of the original system leads to, or that of the recursions.

        Raises:
            ZeroPivotError: the system is singular for all q.
        """
        # first, as it limits the work on others; of weighted systems it would be the same program
        found: list[PlannedProgram | None] = [] if self._system.is_weighted else [self.recursions]
        return self._best([*found, *(self._program(which, name) for which in self._near), self.early])

    def _best(self, found: Sequence[PlannedProgram | None]) -> PlannedProgram:
        """The best of some programs, or of those in which isomorphic limbs have the same order."""
        programs = sorted((program for program in found if program), key=lambda program: program.burden)
        most = NEAR * min(program.cost.total for program in programs)
        best_of_each = {program.regrouped: program for program in reversed(programs)}.values()
        alike = [self._equalised(program) for program in best_of_each if program.cost.total <= most]
        return min([*filter(None, alike), *programs], key=lambda program: program.burden)

    def _equalised(self, program: PlannedProgram) -> PlannedProgram | None:
        """The program in which isomorphic limbs have the order of one of them; None where they have it already."""
        if program not in self._alike:
            which = self._number(program)
            problem = self._refinements[which][2]
            self._alike[program] = None
            order = isomorphic_order(program.order, program.updates, self._limbs(which))
            if order is not None:
                with suppress(ZeroPivotError):  # a nonzero of one limb may be zero in another
                    work = Elimination(problem.symbolic, FIELD, problem.natural_samples).run(order.rows, order.columns)
                    self._alike[program] = self._lowered(which, program.ordering, work)
        return self._alike[program]

    def _limbs(self, which: int) -> tuple[IsomorphicParts, ...]:
        """The rows and columns of isomorphic limbs in a refinement."""
        if which not in self._parts:
            self._parts[which] = () if self.is_large else isomorphic_parts(self._system, self._refinements[which][1])
        return self._parts[which]

    def _number(self, program: PlannedProgram) -> int:
        return next(k for k, (regrouped, _, _) in enumerate(self._refinements) if regrouped == program.regrouped)

    def restarts(self, name: str, effort: int, progress: Progress) -> Iterator[PlannedProgram]:
        """Yield better and better programs that break ties at random, until so many entries have been updated."""
        n = max(problem.symbolic.shape[1] for _, _, problem in self._refinements)
        best = self.lifted(name)
        start, count = self.updates, 0
        while (done := self.updates - start) < effort:
            open_ = [which for which in range(len(self._refinements)) if which not in self._triangular]
            if not open_:
                return
            progress(f"search, {best.cost.total} operations after {count} tries", done / effort)
            program = self._program(open_[count % len(open_)], name, ties=self._rng.permutation(n))
            count += 1
            if program and program.burden < best.burden:
                best = program
                yield program

    def _program(
        self, which: int, name: str, to_root: bool = False, ties: Indices | None = None
    ) -> PlannedProgram | None:
        """The program of a lifted order; None where it costs far more than the recursions."""
        _, refined, _ = self._refinements[which]
        if which in self._triangular and ties is None:
            return self._triangular[which]
        classes = lifted_classes(self.order(name), self._system, refined, to_root)
        key = (which, classes.tobytes())
        if self._system.is_weighted:
            name = RECURSIVE  # bodies go from the leaves to the root, whatever the order
        if ties is not None:
            return self._make_program(which, name, classes, ties)
        if key not in self._known:
            self._known[key] = self._make_program(which, name, classes, ties)
        return self._known[key]

    @cached_property
    def early(self) -> PlannedProgram | None:
        """The best program in which each constraint force of a loop is eliminated with its row, if there is one.

        The information of a limb on a loop is then of the size of the loop's force as soon as the limb is done: the
        early elimination of constrained articulated-body algorithms.
        """
        found = []
        for which, to_root in product(range(len(self._refinements)), (False, True)):
            _, refined, problem = self._refinements[which]
            if refined.constraint_rows:
                classes = lifted_classes(self.order(RECURSIVE), self._system, refined, to_root)
                problem = replace(problem, definitions={**problem.definitions, **refined.constraint_rows})
                with suppress(ZeroPivotError):
                    found.append(self._lowered(which, RECURSIVE, greedy(problem, classes)))
        return min(found, key=lambda program: program.burden, default=None)

    def _make_program(self, which: int, name: str, classes: Indices, ties: Indices | None) -> PlannedProgram | None:
        problem, limit = self._refinements[which][2], self._limits[which]
        try:
            work = greedy(problem, classes, ties, limit)
        except CostlyOrderError:
            self.updates += int(limit)
            return None
        except ZeroPivotError:  # some definition cannot be used as one
            work = greedy(replace(problem, definitions={}), classes, ties)
        self._limits[which] = min(limit, MOST_UPDATES * work.updates)
        is_triangular = not work.updates
        program = self._lowered(which, name, work)
        if is_triangular:
            self._triangular[which] = program
        return program

    def _lowered(self, which: int, name: str, work: Elimination[int]) -> PlannedProgram:
        """The program of an elimination, which is then forgotten."""
        regrouped, refined, problem = self._refinements[which]
        self.updates += work.updates
        self._forget(which)
        chosen, stability = Ordering.of(work), Stability.of(work, problem, self._system)
        updates = updates_of(work)
        work.forget()
        solved = static_elimination(refined, chosen)
        program = PlannedProgram(name, chosen, updates, regrouped, solved.cost(self._columns), stability)
        self._last[which] = program, solved
        return program

    def _forget(self, which: int) -> None:
        """Remove the expressions of the last elimination of a refined system, which the next one must not find."""
        self._last.pop(which, None)
        self._refinements[which][1].symbolic.graph.forget(self._sizes[which])

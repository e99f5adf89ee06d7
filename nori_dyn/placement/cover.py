"""The cheapest sensors that suffice: integer programs over what every set that suffices obeys.

Each requirement, that outputs are determined in a case or that they are precise, yields inequalities linear in x_s in
{0, 1}, whether s is chosen, for any choices that do not meet it. An integer program is solved over those found so far;
what it chooses gives the next ones, until it suffices or costs as much as the greedy choice: then that is the cheapest.

Source: for the inequalities see `nori_dyn.placement.cases` and `nori_dyn.placement.criterion`.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

import numpy as np

from nori_dyn.errors import InputError, NoPlacementError
from nori_dyn.placement.candidates import EQUAL_COSTS, Candidates, Choices
from nori_dyn.placement.cases import Case, Demand, Inequality, Rank, cases_of
from nori_dyn.placement.criterion import Criterion, DeviationLimit, Precision
from nori_dyn.program.silence import silent_stdout
from nori_dyn.tables import listed
from nori_dyn.tables.progress import Progress

ORDERS = 3
"""Orders in which a set that does not suffice is extended, each to an inequality."""

NODES = 10_000
"""Nodes of branch and bound that a program takes at most."""

GREEDY = "greedy; the search ended before a cheaper set was ruled out"
PROVEN = "greedy, and proven to be the cheapest"

SHOWN = 6
"""Most names that are listed."""


Coverage: TypeAlias = Rank | Precision
"""What some choices do for a requirement. Laws: every set that suffices obeys its inequalities, and they do not."""

Requirement: TypeAlias = Case | DeviationLimit
"""What is asked of choices."""


@dataclass(slots=True, eq=False)
class CoverProblem:
    """Which choices suffice.

    Attributes:
        choices: the candidates on the robot.
        cases: where they have to determine the outputs.
        limit: how precise the outputs have to be; None for any.
        rng: draws orders.
    """

    choices: Choices
    cases: list[Case]
    limit: DeviationLimit | None = None
    rng: random.Random = field(default_factory=random.Random)

    @staticmethod
    def of(choices: Choices, outputs: Sequence[str] | None, seed: int, demand: Demand) -> CoverProblem:
        """The problem of what is demanded.

        Raises:
            UnknownOutputError: an output that does not exist.
            NoPlacementError: not even all choices determine the outputs, or what has to be taken may not be.
        """
        problem = CoverProblem(choices, cases_of(choices, outputs, demand, seed), rng=random.Random(seed))
        problem._check()
        return problem

    def limit_to(self, criterion: Criterion, most: float) -> None:
        """Ask for a deviation of the outputs that is at most so large.

        Raises:
            InputError: it is not positive.
            NoPlacementError: it is larger with all choices.
        """
        if not most > 0:
            raise InputError(f"deviation is {most}: the largest that is allowed is positive.")
        self.limit = DeviationLimit(criterion, most)
        if (least := criterion.deviation(criterion.value(self.choices.costs))) > most:
            raise NoPlacementError(
                f"candidates '{self.choices.candidates.name}': with all {len(self.choices.costs)} of them the "
                f"deviation of the outputs is {least:.4g}, more than {most:g}. Allow more, or offer candidates with "
                "less noise."
            )

    def suffices(self, chosen: Sequence[str]) -> bool:
        """Whether some choices suffice."""
        return self.lacking(chosen) is None

    def lacking(self, chosen: Sequence[str]) -> tuple[Requirement, tuple[str, ...]] | None:
        """A requirement that some choices do not meet once others of them have failed, and these; None if they do.

        The case is looked at first from then on: what leaves outputs open once often does.
        """
        for number, case in enumerate(self.cases):
            if (failed := case.failing(chosen)) is not None:
                self.cases.insert(0, self.cases.pop(number))
                return case, failed
        return (self.limit, ()) if self.limit is not None and self.limit.failing(chosen) is not None else None

    def _check(self) -> None:
        """Check that all choices together suffice, and that those that have to be taken may be.

        Raises:
            NoPlacementError: they do not.
        """
        choices = self.choices
        name, names = choices.candidates.name, [*choices.sensors]
        if not choices.is_allowed(choices.must):
            raise NoPlacementError(
                f"candidates '{name}': of those in 'must', 'at_most_one' allows only one. Change one of the two."
            )
        for case in self.cases:
            if (failed := case.failing(names)) is None:
                continue
            open_ = case.outcome(set(names).difference(failed)).open
            together = f"once {listed(failed, SHOWN)} failed, the other {len(names) - len(failed)}"
            raise NoPlacementError(
                f"candidates '{name}': {together if failed else f'all {len(names)}'} of them together leave "
                f"{len(open_)} of {len(case.outputs)} outputs open{case.words}: {listed(open_, SHOWN)}. Add candidates "
                "that see them, or say in 'measurements' what is known.",
                open_,
            )

    def complete(self, chosen: Iterable[str]) -> tuple[str, ...] | None:
        """Choices extended greedily until they suffice, without what is not needed; None where rules forbid."""
        costs = self.choices.costs
        taken = [*chosen]
        while (found := self.lacking(taken)) is not None:
            requirement, failed = found
            outcome = requirement.outcome(name for name in taken if name not in failed)
            while not outcome.suffices:
                allowed = (name for name in costs if name not in taken and self.choices.is_allowed([*taken, name]))
                added = outcome.next(allowed, costs)
                if added is None:
                    return None
                taken.append(added)
                outcome = outcome.beside(added)
        for name in sorted(taken, key=lambda name: (-costs[name], name)):
            others = [other for other in taken if other != name]
            if name not in self.choices.must and self.suffices(others):
                taken = others
        return self.choices.in_order(taken)

    def inequalities(self, chosen: Sequence[str]) -> Iterator[Inequality]:
        """Yield inequalities that choices that do not suffice break.

        The fewer choices A has of those, the more other choices the inequality speaks of that are like them; the more
        it has of the others, the fewer can mend it. Both are tried, as far as it stays broken.
        """
        found = self.lacking(chosen)
        if found is None:
            return
        requirement, failed = found
        kept = [name for name in chosen if name not in failed]
        others = sorted(set(self.choices.costs) - set(chosen), key=lambda name: (self.choices.costs[name], name))
        for _ in range(ORDERS):
            yield from _extend(requirement.outcome(kept), others).inequalities(failed)
            yield from requirement.outcome(self._drop_unneeded(requirement, kept)).inequalities(failed)
            self.rng.shuffle(others)

    def _drop_unneeded(self, requirement: Requirement, chosen: Sequence[str]) -> list[str]:
        """Choices that do not suffice without those that their inequality does not need, in a random order."""
        within = [*chosen]
        for name in self.rng.sample(within, len(within)):
            fewer = [other for other in within if other != name]
            if requirement.outcome(fewer).inequality(chosen).is_broken(chosen):
                within = fewer
        return within


def _extend(outcome: Coverage, others: Iterable[str]) -> Coverage:
    """What choices do together with those of some others that do not make them suffice, in an order."""
    for name in others:
        larger = outcome.beside(name)
        if not larger.suffices:
            outcome = larger
    return outcome


@dataclass(frozen=True, slots=True)
class Found:
    """What a search for the cheapest choices found.

    Attributes:
        chosen: the cheapest so far.
        cost: what they cost; infinite where none were found.
        bound: no choices that suffice cost less; infinite where none suffice.
        method: how they were found, in words.
    """

    chosen: tuple[str, ...]
    cost: float
    bound: float
    method: str

    @property
    def is_proven(self) -> bool:
        """Whether none are cheaper, for certain."""
        return self.cost < np.inf and self.cost - EQUAL_COSTS * max(1.0, self.cost) <= self.bound

    def check(self, candidates: Candidates) -> None:
        """Check that something was found, within the budget of the candidates.

        Raises:
            NoPlacementError: the rules allow none, none was found with so many programs, or it costs too much.
        """
        name, budget = candidates.name, candidates.budget
        if self.bound == np.inf:
            raise NoPlacementError(
                f"candidates '{name}': 'at_most_one' leaves no set that suffices. Relax it, or add candidates."
            )
        if self.cost == np.inf:
            raise NoPlacementError(
                f"candidates '{name}': no set that 'at_most_one' allows was found with the effort given. Give more, or "
                "relax the rules."
            )
        if budget is not None and self.cost > budget + EQUAL_COSTS * self.cost:
            least = "costs" if self.is_proven else f"costs at least {self.bound:g}; the cheapest found"
            raise NoPlacementError(
                f"candidates '{name}': no set within the budget of {budget:g} is known to suffice: the cheapest "
                f"{least} {self.cost:g} ({listed(self.chosen, SHOWN)}). Raise the budget, or ask for fewer outputs."
            )


def cheapest(problem: CoverProblem, programs: int, progress: Progress) -> Found:
    """The cheapest choices that suffice, or the best that so many integer programs led to.

    Raises:
        NoPlacementError: the rules and the budget allow none, or none was found with so many programs.
    """
    found = IntegerProgram(problem).cheapest(programs, progress)
    found.check(problem.choices.candidates)
    return found


@dataclass(slots=True, eq=False)
class IntegerProgram:
    """Integer programs over more and more inequalities, which hold on where more is asked for.

    Attributes:
        problem: what is asked for.
        inequalities: those so far.
        solved: how many programs were solved.
    """

    problem: CoverProblem
    inequalities: list[Inequality] = field(default_factory=list)
    solved: int = 0

    def cheapest(self, programs: int, progress: Progress) -> Found:
        """The cheapest choices that suffice, or the best that so many programs led to."""
        problem, choices = self.problem, self.problem.choices
        chosen, greedy, bound = choices.must, problem.complete(choices.must), choices.cost(choices.must)
        best = Found(greedy or (), np.inf if greedy is None else choices.cost(greedy), bound, GREEDY)
        for _ in range(programs):
            if best.is_proven:
                break
            self.inequalities.extend(problem.inequalities(chosen))
            solved = self._solve()
            if solved is None:
                return best
            chosen, bound = solved
            if bound == np.inf:
                return Found((), bound, bound, "")
            if bound < best.cost and problem.suffices(chosen):
                return Found(chosen, bound, bound, "integer program, proven to be the cheapest")
            better = problem.complete(chosen) if bound > best.bound else None
            best = replace(best, bound=bound)
            if better is not None and choices.cost(better) < best.cost:
                best = Found(better, choices.cost(better), bound, GREEDY)
            if best.cost < np.inf:
                progress(f"cheapest between {bound:g} and {best.cost:g}", bound / best.cost if best.cost else None)
        return replace(best, bound=best.cost, method=PROVEN) if best.is_proven else best

    def _solve(self) -> tuple[tuple[str, ...], float] | None:
        """The cheapest choices that obey the inequalities, and a bound on their cost; None if that is not found.

        The bound is infinite where none obeys them.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        choices = self.problem.choices
        rows = [(each.coefficients, each.least, np.inf) for each in self.inequalities]
        rows += [(terms, -np.inf, most) for terms, most in choices.rules]
        matrix = np.array([[terms.get(name, 0.0) for name in choices.costs] for terms, _, _ in rows])
        lower = [float(name in choices.must) for name in choices.costs]
        self.solved += 1
        with silent_stdout():
            found = milp(
                [*choices.costs.values()],
                integrality=np.ones(len(lower), dtype=int),
                bounds=Bounds(lower, np.ones(len(lower))),
                constraints=LinearConstraint(matrix, [low for _, low, _ in rows], [high for *_, high in rows]),
                options={"node_limit": NODES, "mip_rel_gap": 0.0},
            )
        if found.status == 2:
            return (), np.inf
        if found.status != 0:
            return None
        chosen = tuple(name for name, x in zip(choices.costs, found.x, strict=True) if x > 0.5)
        return chosen, choices.cost(chosen)  # the objective is off by the rounding of x

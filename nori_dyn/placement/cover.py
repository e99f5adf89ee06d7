"""The cheapest sensors whose rows cover some outputs: integer programs over what every set that suffices obeys.

A set of rows determines the outputs if its span holds theirs. With A any choices, t the number of independent outputs
that they leave open and r_s the rank that a choice s adds to them, every set that suffices obeys

    sum over s not in A of min(r_s, t) x_s >= t,

since together with A it has rank t more than A. These inequalities for all A, with x_s in {0, 1}, are the problem:
where the outputs are all of d they are those of a submodular cover. An integer program is solved over those found so
far; what it chooses gives the next A, until it suffices: then it is the cheapest. Single rows that must determine
everything are a matroid, for which the greedy choice is the cheapest.

Source: Wolsey (1982), An analysis of the greedy algorithm for the submodular set covering problem, for the
inequalities; Edmonds (1971), Matroids and the greedy algorithm; own derivation for outputs that are a part of d
(tests/unit/placement/test_selection.py).
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from nori_dyn.errors import NoPlacementError
from nori_dyn.observe.field import Span, Vector
from nori_dyn.observe.readings import readings
from nori_dyn.placement.candidates import Choices
from nori_dyn.program.silence import silent_stdout
from nori_dyn.tables.progress import Progress

ORDERS = 3
"""Orders in which a set that does not suffice is extended, each to an inequality."""

EQUAL_COSTS = 1e-9
"""Share of a cost, or of a criterion, by which two are still equal."""

SHOWN = 6
"""Most names that are listed."""


@dataclass(slots=True, eq=False)
class CoverProblem:
    """Which choices determine the outputs.

    Attributes:
        choices: the candidates on the robot.
        rows: by choice its rows, modulo what is known without any.
        outputs: by name the row of each number that is asked for, modulo the same.
        targets: independent rows that span them.
        rng: draws orders.
    """

    choices: Choices
    rows: Mapping[str, tuple[Vector, ...]]
    outputs: Mapping[str, Vector]
    targets: tuple[Vector, ...]
    rng: random.Random = field(default_factory=random.Random)

    @staticmethod
    def of(choices: Choices, outputs: Sequence[str] | None, seed: int) -> CoverProblem:
        """The problem over the field."""
        found = readings(choices.system, outputs, choices.rows, seed)
        rows = {name: found.sensors.get(name, ()) for name in choices.sensors}
        targets = tuple(Span.of(found.outputs.values()).basis.values())
        return CoverProblem(choices, rows, found.outputs, targets, random.Random(seed))

    def suffices(self, chosen: Iterable[str]) -> bool:
        """Whether some choices determine the outputs."""
        return not self.missing(self.span(chosen))

    def span(self, chosen: Iterable[str]) -> Span:
        """The span of some choices."""
        return Span.of(row for name in chosen for row in self.rows[name])

    def missing(self, span: Span) -> int:
        """How many independent outputs a span leaves open."""
        return Span.of(map(span.remainder, self.targets)).dimension

    def gain(self, span: Span, name: str) -> int:
        """The rank that a choice adds to a span."""
        return Span.of(map(span.remainder, self.rows[name])).dimension

    def check(self) -> None:
        """Check that all choices together suffice, and that those that have to be taken may be.

        Raises:
            NoPlacementError: they do not.
        """
        name = self.choices.candidates.name
        if not self.choices.is_allowed(self.choices.must):
            raise NoPlacementError(
                f"candidates '{name}': of those in 'must', 'at_most_one' allows only one. Change one of the two."
            )
        span = self.span(self.rows)
        open_ = [output for output, row in self.outputs.items() if span.remainder(row)]
        if open_:
            raise NoPlacementError(
                f"candidates '{name}': all {len(self.rows)} of them together leave {len(open_)} of {len(self.outputs)} "
                f"outputs open: {list_names(open_)}. Add candidates that see them, or say in 'measurements' what is "
                "known.",
                open_,
            )

    def complete(self, chosen: Iterable[str]) -> tuple[str, ...] | None:
        """Choices extended greedily until they suffice, without what is not needed; None where rules forbid.

        The next choice is that of least cost for each output that it settles; where none settles one, for each rank.
        """
        costs = self.choices.costs
        taken = [*chosen]
        span = self.span(taken)
        while missing := self.missing(span):
            added = self._next(taken, span, missing)
            if added is None:
                return None
            taken.append(added)
            span.extend(self.rows[added])
        for name in sorted(taken, key=lambda name: (-costs[name], name)):
            others = [other for other in taken if other != name]
            if name not in self.choices.must and self.suffices(others):
                taken = others
        return self.choices.in_order(taken)

    def _next(self, taken: Sequence[str], span: Span, missing: int) -> str | None:
        """The next greedy choice beside those taken; None where the rules allow none that helps.

        A choice settles no more outputs than it adds ranks, so those of less promise than the best are not looked at.
        """
        costs = self.choices.costs
        allowed = [name for name in self.rows if name not in taken and self.choices.is_allowed([*taken, name])]
        gains = {name: gain for name in allowed if (gain := self.gain(span, name))}
        promising = sorted(gains, key=lambda name: (costs[name] / gains[name], name))
        best: tuple[float, str] | None = None
        for name in promising:
            if best is not None and best[0] <= costs[name] / gains[name]:
                break
            larger = span.copy()
            larger.extend(self.rows[name])
            settled = missing - self.missing(larger)
            if settled and (best is None or costs[name] / settled < best[0]):
                best = costs[name] / settled, name
        return best[1] if best is not None else next(iter(promising), None)

    def inequalities(self, chosen: Sequence[str]) -> Iterator[Inequality]:
        """Yield inequalities that choices that do not suffice break.

        The fewer choices A has of those, the more other choices the inequality speaks of that are like them; the more
        it has of the others, the fewer can mend it. Both are tried, as far as it stays broken.
        """
        others = sorted(set(self.rows) - set(chosen), key=lambda name: (self.choices.costs[name], name))
        for _ in range(ORDERS):
            yield self.inequality(self._extend(self.span(chosen), others))
            yield self.inequality(self.span(self._drop_unneeded(chosen)))
            self.rng.shuffle(others)

    def _extend(self, span: Span, others: Iterable[str]) -> Span:
        """A span with the choices that do not make it suffice, in an order."""
        larger = span.copy()
        for name in others:
            trial = larger.copy()
            trial.extend(self.rows[name])
            if self.missing(trial):
                larger = trial
        return larger

    def _drop_unneeded(self, chosen: Sequence[str]) -> list[str]:
        """Choices that do not suffice without those that their inequality does not need, in a random order."""
        within = [*chosen]
        for name in self.rng.sample(within, len(within)):
            fewer = [other for other in within if other != name]
            if self.inequality(self.span(fewer), chosen).is_broken(chosen):
                within = fewer
        return within

    def inequality(self, span: Span, names: Iterable[str] | None = None) -> Inequality:
        """The inequality of a span, or its terms on some choices."""
        missing = self.missing(span)
        names = self.rows if names is None else names
        gains = {name: min(self.gain(span, name), missing) for name in names}
        return Inequality({name: gain for name, gain in gains.items() if gain}, missing)


@dataclass(frozen=True, slots=True)
class Inequality:
    """What sets that suffice obey: a sum over their choices is at least so much.

    Attributes:
        coefficients: by choice; 0 where it is not given.
        least: what the sum over the choices of a set is at least.
    """

    coefficients: Mapping[str, int]
    least: int

    def is_broken(self, chosen: Iterable[str]) -> bool:
        """Whether some choices break it."""
        return sum(self.coefficients.get(name, 0) for name in chosen) < self.least


Found = tuple[tuple[str, ...], float, str]
"""The choices, a bound on the cost of the cheapest, and how they were found."""


def cheapest(problem: CoverProblem, seconds: float, progress: Progress) -> Found:
    """The cheapest choices that determine the outputs, or after some seconds the best so far.

    Raises:
        NoPlacementError: the rules allow none, or none was found in time.
    """
    return _greedy_alone(problem) or _integer_program(problem, time.monotonic() + seconds, progress)


def _greedy_alone(problem: CoverProblem) -> Found | None:
    """The greedy choice where it is the cheapest: single rows that must determine all that they say."""
    outputs = Span.of(problem.targets)
    is_matroid = all(len(rows) <= 1 for rows in problem.rows.values()) and not problem.choices.at_most_one
    if not is_matroid or any(outputs.remainder(row) for rows in problem.rows.values() for row in rows):
        return None
    chosen = problem.complete(problem.choices.must)
    assert chosen is not None
    return chosen, problem.choices.cost(chosen), "greedy, which is exact for single rows that must determine everything"


def _integer_program(problem: CoverProblem, end: float, progress: Progress) -> Found:
    """The cheapest choice by integer programs over more and more inequalities; the best so far at the end.

    Raises:
        NoPlacementError: the rules allow none, or none was found in time.
    """
    choices = problem.choices
    program = _IntegerProgram(problem)
    best = problem.complete(choices.must)
    chosen: tuple[str, ...] = choices.must
    bound = 0.0
    while True:
        program.inequalities.extend(problem.inequalities(chosen))
        solved = program.solve(end - time.monotonic())
        if solved is None:
            break
        chosen, previous, bound = solved[0], bound, solved[1]
        if problem.suffices(chosen):
            return chosen, bound, "integer program, proven to be the cheapest"
        better = problem.complete(chosen) if bound > previous else None
        if better is not None and (best is None or choices.cost(better) < choices.cost(best)):
            best = better
        if best is not None:
            cost = choices.cost(best)
            if bound >= cost - EQUAL_COSTS * max(1.0, cost):
                return best, cost, "greedy, and proven to be the cheapest by an integer program"
            progress(f"cheapest between {bound:g} and {cost:g}", bound / cost if cost else None)
        if time.monotonic() > end:
            break
    if best is None:
        raise NoPlacementError(
            f"candidates '{choices.candidates.name}': no set that 'at_most_one' allows was found in the time given. "
            "Give more, or relax the rules."
        )
    return best, bound, "greedy; the search ended before a cheaper set was ruled out"


@dataclass(slots=True, eq=False)
class _IntegerProgram:
    """The integer program over the inequalities so far."""

    problem: CoverProblem
    inequalities: list[Inequality] = field(default_factory=list)

    def solve(self, seconds: float) -> tuple[tuple[str, ...], float] | None:
        """The cheapest choices that obey the inequalities, and a bound on their cost; None if not in time.

        Raises:
            NoPlacementError: none obeys them.
        """
        from scipy.optimize import Bounds, LinearConstraint, milp

        choices = self.problem.choices
        place = {name: k for k, name in enumerate(self.problem.rows)}
        n = len(place)
        matrix, low, high = np.zeros((len(self.inequalities) + len(choices.at_most_one), n)), [], []
        for r, inequality in enumerate(self.inequalities):
            for name, value in inequality.coefficients.items():
                matrix[r, place[name]] = value
            low.append(float(inequality.least))
            high.append(np.inf)
        for r, some in enumerate(choices.at_most_one, start=len(self.inequalities)):
            matrix[r, [place[name] for name in some]] = 1.0
            low.append(-np.inf)
            high.append(1.0)
        lower = np.zeros(n)
        lower[[place[name] for name in choices.must]] = 1.0
        with silent_stdout():
            found = milp(
                [choices.costs[name] for name in place],
                integrality=np.ones(n, dtype=int),
                bounds=Bounds(lower, np.ones(n)),
                constraints=LinearConstraint(matrix, low, high),
                options={"time_limit": max(seconds, 0.1), "mip_rel_gap": 0.0},
            )
        if found.status == 2:
            raise NoPlacementError(
                f"candidates '{choices.candidates.name}': 'at_most_one' leaves no set that determines the outputs. "
                "Relax it, or add candidates."
            )
        if found.status != 0:
            return None
        return tuple(name for name, k in place.items() if found.x[k] > 0.5), float(found.fun)


def list_names(names: Sequence[str]) -> str:
    """Some names, the first few of them."""
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more

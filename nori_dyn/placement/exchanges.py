"""What could be had instead of each chosen sensor, all others staying: exactly, for almost all q.

Source: own derivation (tests/unit/placement/test_selection.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from nori_dyn.observe.field import Span
from nori_dyn.placement.cover import CoverProblem

MOST_LOOKS = 10_000
"""Most pairs of a chosen sensor and another that are looked at."""


def exchanges(problem: CoverProblem, chosen: Sequence[str]) -> Mapping[str, tuple[str, ...]]:
    """Return for each of some choices that suffice the others that could stand in for it, the cheapest first.

    Args:
        problem: which choices determine the outputs.
        chosen: the choices; those that have to be taken have no others. Empty where there is too much to look at.
    """
    if len(chosen) * len(problem.rows) > MOST_LOOKS:
        return {}
    rules = problem.choices
    found: dict[str, tuple[str, ...]] = {}
    for name in chosen:
        others = [other for other in chosen if other != name]
        span = problem.span(others)
        missing = [left for output in problem.targets if (left := span.remainder(output))]
        found[name] = tuple(
            other
            for other in sorted(problem.rows, key=lambda other: (rules.costs[other], other))
            if other not in chosen
            and name not in rules.must
            and rules.is_allowed([*others, other])
            and not any(map(Span.of(map(span.remainder, problem.rows[other])).remainder, missing))
        )
    return found

"""What a suite returns: a record a case, with raw samples, counts, and who was left out and why."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np

from benchmarks.measure import TOLERANCE, Budget, Run, difference, timed

Quartiles: TypeAlias = tuple[float, float, float]
"""Lower quartile, median and upper quartile."""


@dataclass(frozen=True, slots=True)
class Record:
    """What was found in one case.

    Attributes:
        case: what tells it from the others of its suite: robot, base, problem, ...
        counts: operations and sizes, which do not depend on the machine.
        seconds: time a state, a sample a round, by run [s]; ours first.
        own: name of our run that ratios are taken to; empty where there are none.
        figures: other numbers, which depend on the machine.
        differences: largest difference of each answer from ours, relative to the largest number of ours.
        wrong: the same of the answers that differ by more than `TOLERANCE`: these are not timed.
        skipped: reason by name of whom was left out.
    """

    case: dict[str, str | int | float]
    counts: dict[str, int] = field(default_factory=dict)
    seconds: dict[str, list[float]] = field(default_factory=dict)
    own: str = ""
    figures: dict[str, float] = field(default_factory=dict)
    differences: dict[str, float] = field(default_factory=dict)
    wrong: dict[str, float] = field(default_factory=dict)
    skipped: dict[str, str] = field(default_factory=dict)

    @property
    def label(self) -> str:
        """The case in one line."""
        return ", ".join(
            value.replace("_", " ") if isinstance(value, str) else f"{key} {value:g}"
            for key, value in self.case.items()
        )

    def time(self, name: str) -> Quartiles:
        """Return the quartiles of the time of a run [s]."""
        return quartiles(self.seconds[name])

    def ratio(self, name: str, own: str = "") -> Quartiles:
        """Return the quartiles of how many times faster than a run ours is, taken round by round."""
        return quartiles(np.array(self.seconds[name]) / np.array(self.seconds[own or self.own]))


def quartiles(values: Iterable[float]) -> Quartiles:
    """Return the lower quartile, the median and the upper quartile."""
    low, middle, high = np.percentile(np.asarray(values, dtype=float), [25, 50, 75])
    return float(low), float(middle), float(high)


def compare(
    case: Mapping[str, str | int | float],
    counts: Mapping[str, int],
    own: Mapping[str, Run],
    peers: Mapping[str, Run],
    skipped: Mapping[str, str],
    budget: Budget,
) -> Record:
    """Return the record of runs that took turns; one with another answer than the first of ours is not timed.

    Args:
        case: as in `Record`.
        counts: as in `Record`.
        own: our runs; the first is the one that answers and ratios are compared with.
        peers: those of others.
        skipped: as in `Record`.
        budget: how long to measure.
    """
    first = next(iter(own))
    expected = own[first].answer
    differences = {}
    if expected is not None:
        reference = expected()
        answers = {name: run.answer for name, run in {**own, **peers}.items() if name != first}
        differences = {name: difference(answer(), reference) for name, answer in answers.items() if answer is not None}
    wrong = {name: off for name, off in differences.items() if not off <= TOLERANCE}
    runs = {name: run for name, run in {**own, **peers}.items() if name not in wrong}
    return Record(
        case=dict(case),
        counts=dict(counts),
        seconds=timed(runs, budget),
        own=first,
        differences=differences,
        wrong=wrong,
        skipped=dict(skipped),
    )


def own_name(what: str, backend: str) -> str:
    """Return what to call a run of ours; the backend is said where it is not the native one."""
    return f"nori_dyn {what}" if backend == "native" else f"nori_dyn {what} ({backend})"

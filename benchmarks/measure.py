"""Runs that take turns: every figure is a median over rounds, and every ratio is taken round by round."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from nori_dyn.typing import Floats

TOLERANCE = 1e-6
"""Largest difference of an answer from ours, relative to the largest number of ours, that is still the same answer."""


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Something to be timed.

    Attributes:
        call: what is timed.
        answer: returns what it computes, as we have it (None where it has no answer of its own to compare); not timed.
        states: number of states that a call works on.
    """

    call: Callable[[], object]
    answer: Callable[[], Floats] | None = None
    states: int = 1


@dataclass(frozen=True, slots=True)
class Budget:
    """How long to measure.

    Attributes:
        rounds: number of rounds.
        seconds: time that each run takes in a round [s].
    """

    rounds: int
    seconds: float


def timed(runs: Mapping[str, Run], budget: Budget) -> dict[str, list[float]]:
    """Return the time a state of each run in each round [s]; the runs take turns."""
    counts = {name: _calls_within(run.call, budget.seconds) for name, run in runs.items()}
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(budget.rounds):
        for name, run in runs.items():
            call, count = run.call, counts[name]
            start = time.perf_counter()
            for _ in range(count):
                call()
            seconds[name].append((time.perf_counter() - start) / count / run.states)
    return seconds


def difference(found: Floats, expected: Floats) -> float:
    """Return the largest difference of two arrays, relative to the largest expected number; inf for other shapes."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    size = float(np.abs(expected).max(initial=0.0))
    return float(np.abs(found - expected).max(initial=0.0)) / (size or 1.0)


def _calls_within(call: Callable[[], object], seconds: float) -> int:
    """Return how many calls take about some time, once the first ones have warmed up what they use."""
    call()
    count = 1
    while True:
        start = time.perf_counter()
        for _ in range(count):
            call()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds / 4:
            return max(1, int(count * seconds / elapsed))
        count *= 4


def timed_once(calls: Mapping[str, Callable[[], object]], rounds: int) -> dict[str, list[float]]:
    """Return the time of one call of each in each round [s], without warming up; they take turns."""
    seconds: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            start = time.perf_counter()
            call()
            seconds[name].append(time.perf_counter() - start)
    return seconds

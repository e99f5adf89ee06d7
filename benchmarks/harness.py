"""Runs in turns, and their results: raw samples, counts, who answers otherwise, and who was left out and why."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from threadpoolctl import threadpool_limits

from nori_dyn.bench import Quartiles, in_turns, quartiles
from nori_dyn.tables import Table, number
from nori_dyn.typing import Floats

TOLERANCE = 1e-6
"""Largest difference of an answer from ours, relative to the largest number of ours, that is still the same answer."""

CACHE = "NORI_DYN_CACHE"
"""The environment variable that says where the cache is."""

Case: TypeAlias = dict[str, str | int | float]
"""What tells a result from the others of its suite: robot, base, problem, ..."""


@dataclass(frozen=True, slots=True)
class Budget:
    """Number of rounds, and the time that each run takes in one [s]."""

    rounds: int
    seconds: float


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Something to be timed.

    Attributes:
        call: what is timed.
        answer: computes the same as we have it, untimed; None where there is nothing to compare.
        states: number of states that a call works on.
        tolerance: largest difference of its answer from ours that is still the same answer, see `TOLERANCE`.
    """

    call: Callable[[], object]
    answer: Callable[[], Floats] | None = None
    states: int = 1
    tolerance: float = TOLERANCE


@dataclass(frozen=True, slots=True)
class Result:
    """What was found in one case.

    Attributes:
        case: what it was.
        counts: operations and sizes, which do not depend on the machine.
        seconds: time of a state, a sample a round, by run [s]; ours first.
        own: name of our run that ratios are taken to; empty where there are none.
        figures: other numbers, which depend on the machine.
        differences: largest difference of each answer from ours, relative to the largest number of ours.
        wrong: the same of the answers that differ by more than `TOLERANCE`: these are not timed.
        skipped: reason by name of whom was left out.
    """

    case: Case
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
        """Quartiles of the time of a run [s]."""
        return quartiles(self.seconds[name])

    def ratio(self, name: str, own: str = "") -> Quartiles:
        """Quartiles of how many times faster than a run ours is, round by round."""
        return quartiles(np.array(self.seconds[name]) / np.array(self.seconds[own or self.own]))


def compare(
    case: Case,
    counts: Mapping[str, int],
    own: Mapping[str, Run],
    peers: Mapping[str, Run],
    skipped: Mapping[str, str],
    budget: Budget,
) -> Result:
    """Time runs in turns, on one thread; one with another answer than the first of ours is not timed."""
    first, runs = next(iter(own)), {**own, **peers}
    answers = {name: run.answer() for name, run in runs.items() if run.answer is not None} if own[first].answer else {}
    differences = {name: difference(answer, answers[first]) for name, answer in answers.items() if name != first}
    wrong = {name: off for name, off in differences.items() if not off <= runs[name].tolerance}
    calls = {name: run.call for name, run in runs.items() if name not in wrong}
    with threadpool_limits(1):
        times = in_turns(calls, budget.rounds, budget.seconds)
    seconds = {name: [x / runs[name].states for x in samples] for name, samples in times.items()}
    return Result(case, dict(counts), seconds, first, {}, differences, wrong, dict(skipped))


def difference(found: Floats, expected: Floats) -> float:
    """Largest difference of two arrays, relative to the largest expected number; inf for other shapes."""
    if found.shape != expected.shape or not np.isfinite(found).all():
        return float("inf")
    size = float(np.abs(expected).max(initial=0.0))
    return float(np.abs(found - expected).max(initial=0.0)) / (size or 1.0)


def own_name(what: str, backend: str) -> str:
    """Name of a run of ours, with its backend where that is not the native one."""
    return f"nori_dyn {what}" if backend == "native" else f"nori_dyn {what} ({backend})"


@contextmanager
def fresh_cache() -> Iterator[None]:
    """Have plans and compiled code made anew."""
    before = os.environ.get(CACHE)
    with tempfile.TemporaryDirectory() as folder:
        os.environ[CACHE] = folder
        try:
            yield
        finally:
            os.environ.pop(CACHE)
            os.environ.update({} if before is None else {CACHE: before})


def in_process(function: Callable[..., Any], *args: object) -> Any:
    """Call a function of a module in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(function, args)


def alone(function: Callable[..., Any], *args: object) -> Any:
    """Call a function of a module in a process of its own, with an empty cache."""
    with fresh_cache():
        return in_process(function, *args)


def peak_megabytes() -> float:
    """Largest memory that this process has had; nan where the system does not tell."""
    try:
        with open("/proc/self/status") as status:  # what getrusage tells begins with the memory of the parent
            return next(int(line.split()[1]) / 1e3 for line in status if line.startswith("VmHWM"))
    except OSError:
        return float("nan")


def timing_tables(title: str, results: Sequence[Result]) -> list[Table]:
    """Make a table a result: the time of each run, and how many times that of our first it is."""
    columns = ("run", "median [us]", "times", "quartiles", "difference")
    tables = []
    for result in results:
        rows = [_timing_row(result, name) for name in result.seconds]
        rows += [(name, "not timed", "", "", number(off, 1)) for name, off in result.wrong.items()]
        counts = "".join(f"; {key} {count:,}" for key, count in result.counts.items())
        if rows:
            tables.append(Table(f"{title}: {result.label}{counts}", columns, tuple(rows)))
    return tables


def _timing_row(result: Result, name: str) -> tuple[str, ...]:
    off, ratio = result.differences.get(name), ("", "")
    if result.own and name != result.own:
        below, times, above = map(number, result.ratio(name))
        ratio = (times, f"{below} - {above}")
    return name, number(1e6 * result.time(name)[1]), *ratio, "" if off is None else number(off, 1)


def figure_tables(title: str, results: Sequence[Result]) -> list[Table]:
    """Make a table with a row a result: its case, counts, times [s] and other figures."""
    kept = [result for result in results if result.counts or result.figures or result.seconds]
    cells = [
        {
            **{key: f"{n:,}" for key, n in result.counts.items()},
            **{f"{key} [s]": number(result.time(key)[1]) for key in result.seconds},
            **{key: number(x) for key, x in result.figures.items()},
        }
        for result in kept
    ]
    keys = list(dict.fromkeys(key for row in cells for key in row))
    rows = [(one.label, *(row.get(key, "") for key in keys)) for one, row in zip(kept, cells, strict=True)]
    return [Table(title, ("case", *keys), tuple(rows))] if rows else []

"""What a suite is, and what all of them are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from benchmarks.drawing import draw_ratios
from benchmarks.measure import Budget
from benchmarks.records import Record
from benchmarks.robots import Base, Robot, real_robot
from benchmarks.tables import timing_tables
from nori_dyn.errors import MissingExtraError
from nori_dyn.tables import Table
from nori_dyn.tables.progress import Progress

Cases: TypeAlias = tuple[tuple[str, Base], ...]
"""Robots by name, and the base of each."""


@dataclass(frozen=True, slots=True)
class Options:
    """What all suites are told.

    Attributes:
        quick: few robots, small ones, and few rounds.
        seed: seed of everything random.
        robots: names or files of robots to measure on instead of a suite's own; each on a fixed base and a free one.
        rounds: number of rounds; None for what quick says.
        paper_counts: folder of the counts made with the paper's scripts, to show beside ours.
    """

    quick: bool = False
    seed: int = 0
    robots: tuple[str, ...] = ()
    rounds: int | None = None
    paper_counts: Path | None = None

    @property
    def budget(self) -> Budget:
        """How long to measure."""
        rounds, seconds = (9, 0.01) if self.quick else (31, 0.05)
        return Budget(self.rounds or rounds, seconds)

    def cases(self, quick: Cases, full: Cases) -> Cases:
        """Return the robots to measure on."""
        if self.robots:
            bases: tuple[Base, ...] = ("fixed",) if self.quick else ("fixed", "floating")
            return tuple((name, base) for name in self.robots for base in bases)
        return quick if self.quick else full

    def load(self, cases: Cases) -> tuple[list[Robot], list[Record]]:
        """Return the robots that are here, and a record of each that is not.

        Raises:
            ModelError: there is no such robot.
            FileFormatError: its file is not a robot's.
        """
        robots, missing = [], {}
        for name, base in cases:
            try:
                robots.append(real_robot(name, base))
            except MissingExtraError as error:
                missing[name] = Record({"robot": name}, skipped={f"robot {name}": str(error)})
        return robots, list(missing.values())


@dataclass(frozen=True, slots=True)
class Suite:
    """A question that is answered by measuring.

    Attributes:
        name: what to call it.
        title: what it says, in one line.
        measure: returns the records; shows how far it is.
        tables: what is printed of them.
        draw: draws them on a figure of matplotlib.
        notes: what to know when reading the figures.
    """

    name: str
    title: str
    measure: Callable[[Options, Progress], list[Record]]
    tables: Callable[[str, Sequence[Record]], list[Table]] = timing_tables
    draw: Callable[[Any, Sequence[Record]], None] = draw_ratios
    notes: tuple[str, ...] = field(default=())

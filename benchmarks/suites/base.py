"""What a suite is, and what all of them are told."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.harness import Budget, Result, timing_tables
from benchmarks.robots import Robot, Robots, real_robot
from nori_dyn.errors import MissingExtraError
from nori_dyn.tables import Table
from nori_dyn.tables.progress import Progress


@dataclass(frozen=True, slots=True)
class Options:
    """What all suites are told.

    Attributes:
        quick: few robots, small ones, and few rounds.
        seed: seed of everything random.
        robots: names or files of robots to measure on instead of a suite's own; each on a fixed base and a free one.
        rounds: number of rounds; None for what quick says.
        paper_counts: folder of the counts made with the paper's scripts, to show beside ours.
        data: folder of the logs of real robots.
        realtime: run the processes of a live stream before all others, which takes the right to.
    """

    quick: bool = False
    seed: int = 0
    robots: tuple[str, ...] = ()
    rounds: int | None = None
    paper_counts: Path | None = None
    data: Path = Path("../shared/data")
    realtime: bool = False

    @property
    def budget(self) -> Budget:
        rounds, seconds = (9, 0.01) if self.quick else (31, 0.05)
        return Budget(self.rounds or rounds, seconds)

    def load(self, quick: Robots, full: Robots) -> tuple[list[Robot], list[Result]]:
        """The robots that are asked for and here, and a result of each that is not here.

        Raises:
            ModelError: there is no such robot.
            FileFormatError: its file is not a robot's.
        """
        asked = quick if self.quick else full
        if self.robots:
            asked = tuple((name, base) for name in self.robots for base in ("fixed", "floating")[: 2 - self.quick])
        robots, missing = [], {}
        for name, base in asked:
            try:
                robots.append(real_robot(name, base))
            except MissingExtraError as error:
                missing[name] = Result({"robot": name}, skipped={f"robot {name}": str(error)})
        return robots, list(missing.values())


@dataclass(frozen=True, slots=True)
class Suite:
    """A question that is answered by measuring.

    Attributes:
        name: what to call it.
        title: what it says, in one line.
        measure: returns the results; shows how far it is.
        tables: what is printed of them.
        notes: what to know when reading the figures.
    """

    name: str
    title: str
    measure: Callable[[Options, Progress], list[Result]]
    tables: Callable[[str, Sequence[Result]], list[Table]] = timing_tables
    notes: tuple[str, ...] = field(default=())

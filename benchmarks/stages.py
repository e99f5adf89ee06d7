"""The way to a first estimate, stage by stage, in a process that has done nothing yet: run as a program, by `ways`.

Only the standard library is imported before the clock runs. What counts is the time of processors, of this process and
of the compilers that it starts, so that other work on the machine counts little.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, TypeAlias, cast

from benchmarks.fresh import fresh_cache

Base: TypeAlias = Literal["fixed", "floating"]

STAGES = ("import", "load", "plan", "compile", "first estimate", "first batch")
"""What is done, in turn."""

BATCH = 16
"""States of the first batch."""


def cpu_seconds() -> float:
    """Return the time that processors have spent on this process and on the children that it waited for [s]."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def ways(robot: Path, base: Base, problem: str) -> dict[str, dict[str, float]]:
    """Return the seconds of each stage: "cold", with an empty cache, and "warm", in a process after that.

    Args:
        robot: the robot's file.
        base: "fixed" or "floating".
        problem: the sensors; all outputs are asked for.
    """
    with fresh_cache():
        command = [sys.executable, "-m", __name__, str(robot), base, problem]
        done = (subprocess.run(command, check=True, capture_output=True, env=os.environ).stdout for _ in range(2))
        return dict(zip(("cold", "warm"), map(json.loads, done), strict=True))


def go(robot: str, base: Base, problem: str) -> Iterator[float]:
    """Go through the stages; yield the time before the first and after each."""
    yield cpu_seconds()
    import numpy as np

    import nori_dyn as nd

    load, make_system, make_plan = nd.load_robot, nd.System, nd.plan  # names are loaded when they are first used
    yield cpu_seconds()
    tree = load(robot, base=base)
    yield cpu_seconds()
    plan = make_plan(make_system(tree, problem), progress=False)
    yield cpu_seconds()
    solver = plan.solver()
    yield cpu_seconds()
    q, still = tree.random_configuration(0), np.zeros(tree.nv)
    solver.solve(q, still, still)
    yield cpu_seconds()
    Q, none = np.tile(q, (BATCH, 1)), np.zeros((BATCH, tree.nv))
    solver.solve_batch(Q, none, none)
    yield cpu_seconds()


def main() -> None:
    """Print the seconds of each stage as JSON."""
    warnings.simplefilter("ignore")
    robot, base, problem = sys.argv[1:]
    times = list(go(robot, cast(Base, base), problem))
    print(json.dumps({stage: after - before for stage, before, after in zip(STAGES, times, times[1:], strict=False)}))


if __name__ == "__main__":
    main()

"""From a file to the first estimate, stage by stage, in a process that has done nothing yet, and once more after that.

Run as a program it goes through the stages; only the standard library is imported before its clock runs. What counts
is the time of processors, of its process and of the compilers that it starts: other work on the machine counts little.
"""

from __future__ import annotations

import json
import resource
import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from benchmarks.harness import Result
    from benchmarks.robots import Base
    from benchmarks.suites.base import Options, Suite
    from nori_dyn.tables.progress import Progress

STAGES = ("import", "load", "plan", "compile", "first estimate", "first batch")
"""What is done, in turn."""

FIRST = (("panda", "fixed"), ("anymal", "floating"), ("talos_full", "floating"))
PROBLEM = "forward_dynamics"
BATCH = 16
"""States of the first batch."""


def cpu_seconds() -> float:
    """Time that processors have spent on this process and on the children that it waited for [s]."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in used)


def stages(robot: str, base: Base) -> dict[str, float]:
    """Go through the stages; every output is asked for."""
    times = [cpu_seconds()]
    import numpy as np

    import nori_dyn as nd

    load, make_system, make_plan = nd.load_robot, nd.System, nd.plan  # names are loaded when they are first used
    times.append(cpu_seconds())
    tree = load(robot, base=base)
    times.append(cpu_seconds())
    plan = make_plan(make_system(tree, PROBLEM), progress=False)
    times.append(cpu_seconds())
    solver = plan.solver()
    times.append(cpu_seconds())
    q, still = tree.random_configuration(0), np.zeros(tree.nv)
    solver.solve(q, still, still)
    times.append(cpu_seconds())
    solver.solve_batch(np.tile(q, (BATCH, 1)), *np.zeros((2, BATCH, tree.nv)))
    times.append(cpu_seconds())
    return {stage: after - before for stage, before, after in zip(STAGES, times, times[1:], strict=False)}


def cold_and_warm(robot: str, base: Base) -> dict[str, dict[str, float]]:
    """Seconds of each stage: "cold", with an empty cache, and "warm", in a process after that."""
    import subprocess

    from benchmarks.harness import fresh_cache

    with fresh_cache():
        command = [sys.executable, "-m", __name__, robot, base]
        done = (subprocess.run(command, check=True, capture_output=True).stdout for _ in range(2))
        return dict(zip(("cold", "warm"), map(json.loads, done), strict=True))


def measure(options: Options, progress: Progress) -> list[Result]:
    from benchmarks.harness import Result

    robots, results = options.load(FIRST[:1], FIRST)
    for robot in robots:
        progress(f"first estimate, {robot.name}")
        for cache, seconds in cold_and_warm(robot.source, robot.base).items():
            figures = {f"{stage} [s]": x for stage, x in seconds.items()}
            total = sum(x for stage, x in seconds.items() if stage != STAGES[-1])
            results.append(Result({**robot.case, "cache": cache}, figures={**figures, "to the first estimate": total}))
    return results


def suite() -> Suite:
    from benchmarks.harness import figure_tables
    from benchmarks.suites.base import Suite

    return Suite(
        "planning",
        "From a file to the first estimate of forward dynamics, time of processors",
        measure,
        tables=figure_tables,
        notes=("Cold with an empty cache, warm run again; a first batch compiles a program of its own.",),
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    print(json.dumps(stages(*sys.argv[1:])))

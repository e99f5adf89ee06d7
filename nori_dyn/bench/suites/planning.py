"""What is done once: planning and compiling, beside the symbolic analysis of general sparse LU."""

from __future__ import annotations

import nori_dyn.bench.peers.registry as registry
from nori_dyn.api.plan import Plan, plan
from nori_dyn.api.system import System
from nori_dyn.bench.drawing import draw_seconds
from nori_dyn.bench.fresh import fresh_cache
from nori_dyn.bench.measure import timed_once
from nori_dyn.bench.peers.base import runs_of
from nori_dyn.bench.records import Record
from nori_dyn.bench.robots import Robot, random_states
from nori_dyn.bench.suites.base import Cases, Options, Suite
from nori_dyn.bench.suites.tick import PROBLEMS
from nori_dyn.bench.tables import figure_tables
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.tables.progress import Progress

REAL: Cases = (
    ("ur5", "fixed"),
    ("panda", "fixed"),
    ("anymal", "floating"),
    ("g1", "floating"),
    ("talos_reduced", "floating"),
    ("iCubGenova04", "floating"),
)
QUICK: Cases = (("panda", "fixed"), ("anymal", "floating"))


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and problem."""
    robots, records = options.load(options.cases(QUICK, REAL))
    for k, robot in enumerate(robots):
        for problem in PROBLEMS:
            progress(f"planning, {robot.name}, {problem}", k / len(robots))
            records.append(_measured(robot, problem, options))
    return records


def _measured(robot: Robot, problem: str, options: Options) -> Record:
    system = System(robot.tree, sensors(problem))
    outputs = (PROBLEMS[problem],)
    states = random_states(robot.tree, 1, options.seed)
    made: list[Plan] = []
    calls = {"plan": lambda: made.append(plan(system, outputs=outputs, cache=False))}
    analyses, skipped = runs_of(registry.PEERS.values(), f"{problem} analysis", robot, states)
    peers = {name: run.call for name, run in analyses.items()}
    seconds = timed_once({**calls, **peers}, 1 if options.quick else 3)

    def compile_it() -> None:
        with fresh_cache():
            made[0].solver()

    seconds |= timed_once({"compile": compile_it}, 1)
    q, qd, y = states.q, states.qd, states.y

    def compile_batch() -> None:
        with fresh_cache():
            solver = made[0].solver()
            solver.solve_batch(q, qd, y)

    seconds |= timed_once({"compile, with batches": compile_batch}, 1)
    counts = {
        "rows": system.shape[0],
        "nonzeros": made[0].pattern.nnz,
        "orderings": len(made[0].tried),
        "operations": made[0].cost.total,
    }
    order = ["plan", "compile", "compile, with batches", *peers]
    return Record({**robot.case, "problem": problem}, counts, {name: seconds[name] for name in order}, skipped=skipped)


SUITE = Suite(
    "planning",
    "Once: planning, compiling",
    measure,
    tables=figure_tables,
    draw=draw_seconds,
    notes=(
        "Nothing comes from a cache. KLU, UMFPACK: their symbolic analysis of D, which they would do once as well.",
    ),
)

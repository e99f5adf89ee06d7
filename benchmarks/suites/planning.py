"""What is done once: planning and compiling, beside the symbolic analysis of general sparse LU; the first estimate."""

from __future__ import annotations

from collections.abc import Sequence

import benchmarks.peers.registry as registry
from benchmarks.drawing import draw_seconds
from benchmarks.fresh import fresh_cache
from benchmarks.measure import timed_once
from benchmarks.peers.base import runs_of
from benchmarks.records import Record
from benchmarks.robots import Base, Robot, random_states, robot_file
from benchmarks.stages import STAGES, ways
from benchmarks.suites.base import Cases, Options, Suite
from benchmarks.suites.tick import PROBLEMS
from benchmarks.tables import figure_tables
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.estimation.plan import Plan, plan
from nori_dyn.estimation.system import System
from nori_dyn.solve.solver import Solver
from nori_dyn.tables import Table
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
FIRST: Cases = (("panda", "fixed"), ("anymal", "floating"), ("talos_full", "floating"))
FIRST_QUICK: Cases = FIRST[:1]


FORWARD = "forward_dynamics"
TO_ESTIMATE = "to the first estimate [s]"
"""All stages together, the first batch left out."""


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and problem."""
    robots, records = options.load(options.cases(QUICK, REAL))
    for k, robot in enumerate(robots):
        for problem in PROBLEMS:
            progress(f"planning, {robot.name}, {problem}", k / len(robots))
            records.append(_measured(robot, problem, options))
    for name, base in options.cases(FIRST_QUICK, FIRST):
        progress(f"first estimate, {name}")
        records += _first(name, base, options)
    return records


def _first(name: str, base: Base, options: Options) -> list[Record]:
    """Return the records of the stages to a first estimate of forward dynamics, cold and warm."""
    robots, _ = options.load(((name, base),))  # it is said above that it is missing
    found = []
    for robot in robots:
        for cache, seconds in ways(robot_file(name), base, FORWARD).items():
            figures = {f"{stage} [s]": x for stage, x in seconds.items()}
            total = sum(x for stage, x in seconds.items() if stage != STAGES[-1])
            case = {**robot.case, "problem": FORWARD, "cache": cache}
            found.append(Record(case, figures={**figures, TO_ESTIMATE: total}))
    return found


def tables(title: str, records: Sequence[Record]) -> list[Table]:
    """Return the table of what is done once, and that of the stages to a first estimate."""
    stages = [record for record in records if TO_ESTIMATE in record.figures]
    others = [record for record in records if TO_ESTIMATE not in record.figures]
    return figure_tables(title, others) + figure_tables("To the first estimate, time of processors", stages)


def _measured(robot: Robot, problem: str, options: Options) -> Record:
    system = System(robot.tree, sensors(problem))
    outputs = (PROBLEMS[problem],)
    states = random_states(robot.tree, 1, options.seed)
    made: list[Plan] = []
    calls = {"plan": lambda: made.append(plan(system, outputs=outputs, cache=False))}
    analyses, skipped = runs_of(registry.PEERS.values(), f"{problem} analysis", robot, states)
    peers = {name: run.call for name, run in analyses.items()}
    seconds = timed_once({**calls, **peers}, 1 if options.quick else 3)

    figures: dict[str, float] = {}

    def compile_it() -> None:
        with fresh_cache():
            native = Solver(made[0]).native
            if native is not None:
                figures["workspace [kB]"] = native.work.nbytes / 1000

    seconds |= timed_once({"compile": compile_it}, 1)
    q, qd, y = states.q, states.qd, states.y

    def compile_batch() -> None:
        with fresh_cache():
            solver = Solver(made[0])
            solver.solve_batch(q, qd, y)

    seconds |= timed_once({"compile, with batches": compile_batch}, 1)
    counts = {
        "rows": system.shape[0],
        "nonzeros": made[0].pattern.nnz,
        "orderings": len(made[0].tried),
        "operations": made[0].cost.total,
    }
    order = ["plan", "compile", "compile, with batches", *peers]
    kept = {name: seconds[name] for name in order}
    return Record({**robot.case, "problem": problem}, counts, kept, figures=figures, skipped=skipped)


SUITE = Suite(
    "planning",
    "Once: planning, compiling",
    measure,
    tables=tables,
    draw=draw_seconds,
    notes=(
        "To the first estimate: a process of its own, all outputs asked for; cold with an empty cache, warm run again.",
        "Else nothing comes from a cache. KLU, UMFPACK: their symbolic analysis of D, which they would do once, too.",
    ),
)

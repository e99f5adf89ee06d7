"""Many states at once: what learning, planning and offline estimation ask for."""

from __future__ import annotations

import benchmarks.peers.registry as registry
from benchmarks.measure import Run
from benchmarks.peers.base import runs_of
from benchmarks.records import Record, compare, own_name
from benchmarks.robots import States, random_states
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.tick import PROBLEMS, QUICK, REAL, planned
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.solver import Solver
from nori_dyn.tables.progress import Progress

SIZES = (64, 1024, 4096)
QUICK_SIZES = (1024,)
THREADS = (1, 2)


def _own(solver: Solver, problem: str, states: States) -> dict[str, Run]:
    """Return a batch on so many threads, into new memory and into that of the call before."""

    def run(threads: int, out: Estimate | None) -> Run:
        def call() -> Estimate:
            return solver.solve_batch(states.q, states.qd, states.y, threads=threads, out=out)

        return Run(call, lambda: call()[PROBLEMS[problem]], len(states.q))

    found = {}
    for threads in THREADS:
        what = "batch" if threads == 1 else f"batch, {threads} threads"
        before = solver.solve_batch(states.q, states.qd, states.y)
        found[own_name(what, solver.backend)] = run(threads, None)
        found[own_name(f"{what}, out=", solver.backend)] = run(threads, before)
    return found


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and problem."""
    robots, records = options.load(options.cases(QUICK, REAL))
    for k, robot in enumerate(robots):
        for problem in PROBLEMS:
            made = planned(robot, problem)
            solver = Solver(made)
            for size in QUICK_SIZES if options.quick else SIZES:
                progress(f"batch of {size:,}, {robot.name}, {problem}", k / len(robots))
                states = random_states(robot.tree, size, options.seed)
                peers, skipped = runs_of(registry.PEERS.values(), f"{problem} batch", robot, states)
                case = {**robot.case, "problem": problem, "states": size}
                own, counts = _own(solver, problem, states), {"operations": made.cost.total}
                records.append(compare(case, counts, own, peers, skipped, options.budget))
    return records


SUITE = Suite(
    "batch",
    "A batch of states, time a state",
    measure,
    notes=(
        "A run that says no number of threads has one; 'out=' is one that writes into those of an earlier call. "
        "MuJoCo's rollout, on one thread, also integrates a step.",
    ),
)

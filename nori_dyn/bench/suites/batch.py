"""Many states at once: what learning, planning and offline estimation ask for."""

from __future__ import annotations

import nori_dyn.bench.peers.registry as registry
from nori_dyn.api.plan import Plan
from nori_dyn.bench.measure import Run
from nori_dyn.bench.peers.base import runs_of
from nori_dyn.bench.records import Record, compare, own_name
from nori_dyn.bench.robots import States, random_states
from nori_dyn.bench.suites.base import Options, Suite
from nori_dyn.bench.suites.tick import PROBLEMS, QUICK, REAL, planned
from nori_dyn.solve.estimate import Estimate
from nori_dyn.tables.progress import Progress

STATES = 1024


def _own(planned: Plan, problem: str, states: States) -> dict[str, Run]:
    solver = planned.solver()

    def run(threads: int) -> Run:
        def call() -> Estimate:
            return solver.solve_batch(states.q, states.qd, states.y, threads=threads)

        return Run(call, lambda: call()[PROBLEMS[problem]], len(states.q))

    return {own_name("batch", solver.backend): run(1), "nori_dyn batch, 2 threads": run(2)}


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and problem."""
    robots, records = options.load(options.cases(QUICK, REAL))
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for problem in PROBLEMS:
            progress(f"batch, {robot.name}, {problem}", k / len(robots))
            made = planned(robot, problem)
            peers, skipped = runs_of(registry.PEERS.values(), f"{problem} batch", robot, states)
            case = {**robot.case, "problem": problem}
            own = _own(made, problem, states)
            records.append(compare(case, {"operations": made.cost.total}, own, peers, skipped, options.budget))
    return records


SUITE = Suite(
    "batch",
    f"A batch of {STATES:,} states, time a state",
    measure,
    notes=("MuJoCo's rollout, on one thread, also integrates a step. A run that says no number of threads has one.",),
)

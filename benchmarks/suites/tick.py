"""A tick of inverse and of forward dynamics: one state in, tau or qdd out."""

from __future__ import annotations

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, Run, compare, own_name
from benchmarks.peers.base import runs_of
from benchmarks.peers.registry import PEERS
from benchmarks.robots import Robot, Robots, States, random_states
from benchmarks.suites.base import Options, Suite
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

PROBLEMS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}
"""The problems, and what is asked for."""

REAL: Robots = (
    ("ur5", "fixed"),
    ("panda", "fixed"),
    ("anymal", "floating"),
    ("g1", "floating"),
    ("talos_reduced", "fixed"),
    ("talos_reduced", "floating"),
    ("talos_full", "floating"),
    ("iCubGenova04", "floating"),
)
QUICK: Robots = (("panda", "fixed"), ("anymal", "floating"), ("talos_reduced", "floating"))


def planned(robot: Robot, problem: str) -> nd.Plan:
    return nd.plan(nd.System(robot.tree, problem), outputs=(PROBLEMS[problem],))


def own_runs(plan: nd.Plan, problem: str, states: States) -> dict[str, Run]:
    """A tick and a call with its checks, of a plan of a problem."""
    solver, output = plan.solver(), PROBLEMS[problem]
    q, qd, y = states.q[0], states.qd[0], states.y[0]
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y

    def after_tick() -> Floats:
        solver.tick()
        return np.array(getattr(solver.outputs, output))

    return {
        own_name("tick", solver.backend): Run(solver.tick, after_tick),
        "nori_dyn solve": Run(lambda: solver.solve(q, qd, y), lambda: solver.solve(q, qd, y)[output]),
    }


def measure(options: Options, progress: Progress) -> list[Result]:
    robots, results = options.load(QUICK, REAL)
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, 1, options.seed)
        for problem in PROBLEMS:
            progress(f"tick, {robot.name}, {problem}", k / len(robots))
            plan = planned(robot, problem)
            peers, skipped = runs_of(PEERS.values(), problem, robot, states)
            case, counts = {**robot.case, "problem": problem}, {"operations": plan.cost.total}
            results.append(compare(case, counts, own_runs(plan, problem, states), peers, skipped, options.budget))
    return results


SUITE = Suite(
    "tick",
    "A tick: one state, all peers called from Python",
    measure,
    notes=(
        "'nori_dyn tick' works on arrays that the caller fills, and checks nothing but pivots; 'solve' takes and "
        "returns arrays, and checks all. Sparse LU is given D and b: assembling them is left out.",
    ),
)

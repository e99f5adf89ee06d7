"""A tick of inverse and of forward dynamics: one state in, tau or qdd out."""

from __future__ import annotations

import numpy as np

import benchmarks.peers.registry as registry
from benchmarks.measure import Run
from benchmarks.peers.base import runs_of
from benchmarks.records import Record, compare, own_name
from benchmarks.robots import Robot, States, random_states
from benchmarks.suites.base import Cases, Options, Suite
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.estimation.plan import Plan, plan
from nori_dyn.estimation.system import System
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

PROBLEMS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}
"""The problems, and what is asked for."""

REAL: Cases = (
    ("ur5", "fixed"),
    ("panda", "fixed"),
    ("anymal", "floating"),
    ("g1", "floating"),
    ("talos_reduced", "fixed"),
    ("talos_reduced", "floating"),
    ("talos_full", "floating"),
    ("iCubGenova04", "floating"),
)
QUICK: Cases = (("panda", "fixed"), ("anymal", "floating"), ("talos_reduced", "floating"))


def planned(robot: Robot, problem: str) -> Plan:
    """Return the plan of a problem on a robot."""
    return plan(System(robot.tree, sensors(problem)), outputs=(PROBLEMS[problem],))


def own_runs(planned: Plan, problem: str, states: States) -> dict[str, Run]:
    """Return a tick and a call with its checks, of a plan of a problem."""
    solver = planned.solver()
    q, qd, y = states.q[0], states.qd[0], states.y[0]
    solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y
    output = getattr(solver.outputs, PROBLEMS[problem])

    def after_tick() -> Floats:
        solver.tick()
        return np.array(output)

    return {
        own_name("tick", solver.backend): Run(solver.tick, after_tick),
        "nori_dyn solve": Run(lambda: solver.solve(q, qd, y), lambda: solver.solve(q, qd, y)[PROBLEMS[problem]]),
    }


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and problem."""
    robots, records = options.load(options.cases(QUICK, REAL))
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, 1, options.seed)
        for problem in PROBLEMS:
            progress(f"tick, {robot.name}, {problem}", k / len(robots))
            made = planned(robot, problem)
            peers, skipped = runs_of(registry.PEERS.values(), problem, robot, states)
            case = {**robot.case, "problem": problem}
            counts = {"operations": made.cost.total}
            records.append(compare(case, counts, own_runs(made, problem, states), peers, skipped, options.budget))
    return records


SUITE = Suite(
    "tick",
    "A tick: one state, all peers called from Python",
    measure,
    notes=(
        "'nori_dyn tick' works on arrays that the caller fills, and checks nothing but pivots; 'solve' takes and "
        "returns arrays, and checks all. Sparse LU is given D and b: assembling them is left out.",
    ),
)

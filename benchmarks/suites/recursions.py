"""The classical algorithms and their derivatives, compiled, against the same ones of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import benchmarks.peers.registry as registry
from benchmarks.measure import Run
from benchmarks.peers.base import runs_of
from benchmarks.records import Record, compare, own_name
from benchmarks.robots import Robot, States, random_states
from benchmarks.suites.base import Cases, Options, Suite
from nori_dyn.program.functions import CompiledFunction, compile
from nori_dyn.recursions.aba import aba
from nori_dyn.recursions.coriolis import coriolis
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.minverse import minverse
from nori_dyn.recursions.rnea import rnea
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

REAL: Cases = (
    ("ur5", "fixed"),
    ("panda", "fixed"),
    ("anymal", "floating"),
    ("g1", "floating"),
    ("talos_reduced", "floating"),
    ("iCubGenova04", "floating"),
)
QUICK: Cases = (("panda", "fixed"),)

STATES = 1024


def programs(robot: Robot) -> dict[str, Callable[[], CompiledFunction]]:
    """Return what compiles each algorithm, by the name of the task."""
    tree = robot.tree
    return {
        "rnea": lambda: compile(rnea, tree),
        "aba": lambda: compile(aba, tree),
        "crba": lambda: compile(crba, tree),
        "minverse": lambda: compile(minverse, tree),
        "coriolis": lambda: compile(coriolis, tree, outputs=("C",)),
        "rnea derivatives": lambda: compile(rnea, tree).derivative("q", "qd", "qdd"),
        "aba derivatives": lambda: compile(aba, tree).derivative("q", "qd", "tau"),
    }


def own_runs(program: CompiledFunction, task: str, states: States) -> dict[str, Run]:
    """Return a tick, a call with its checks, and a batch of a compiled function."""
    arrays = tuple(vars(program.inputs).values())
    batch = (states.q, states.qd, states.y)[: len(arrays)]
    for array, values in zip(arrays, batch, strict=True):
        array[:] = values[0]
    state = [values[0].copy() for values in batch]

    def answer(result: Any) -> Floats:
        """Return one array; of C, which is not unique, what it does to qd."""
        parts = np.concatenate([np.atleast_1d(part) for part in (result if isinstance(result, tuple) else (result,))])
        return parts @ states.qd[0] if task == "coriolis" else parts

    def after_tick() -> Floats:
        program.tick()
        return answer(program.outputs).copy()

    return {
        own_name("tick", program.backend): Run(program.tick, after_tick),
        "nori_dyn call": Run(lambda: program(*state), lambda: answer(program(*state))),
        "nori_dyn batch": Run(lambda: program.batch(*batch), None, len(states.q)),
    }


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and algorithm."""
    robots, records = options.load(options.cases(QUICK, REAL))
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for task, make in programs(robot).items():
            progress(f"recursions, {robot.name}, {task}", k / len(robots))
            program = make()
            peers, skipped = runs_of(registry.PEERS.values(), task, robot, states)
            case = {**robot.case, "algorithm": task}
            counts = {"operations": program.cost.total}
            records.append(compare(case, counts, own_runs(program, task, states), peers, skipped, options.budget))
    return records


SUITE = Suite(
    "recursions",
    "Classical algorithms, compiled",
    measure,
    notes=(f"A batch has {STATES:,} states.",),
)

"""The classical algorithms and their derivatives, compiled, against the same ones of others."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, Run, compare, own_name
from benchmarks.peers.base import runs_of
from benchmarks.peers.registry import PEERS
from benchmarks.robots import Robots, States, random_states
from benchmarks.suites.base import Options, Suite
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

REAL: Robots = (
    ("ur5", "fixed"),
    ("panda", "fixed"),
    ("anymal", "floating"),
    ("g1", "floating"),
    ("talos_reduced", "floating"),
    ("iCubGenova04", "floating"),
)
QUICK: Robots = (("panda", "fixed"),)

STATES = 1024

ALGORITHMS: dict[str, Callable[[nd.KinematicTree], nd.results.CompiledFunction]] = {
    "rnea": lambda tree: nd.compile(nd.rnea, tree),
    "aba": lambda tree: nd.compile(nd.aba, tree),
    "crba": lambda tree: nd.compile(nd.crba, tree),
    "minverse": lambda tree: nd.compile(nd.minverse, tree),
    "coriolis": lambda tree: nd.compile(nd.coriolis, tree, outputs=("C",)),
    "rnea derivatives": lambda tree: nd.compile(nd.rnea, tree).derivative("q", "qd", "qdd"),
    "aba derivatives": lambda tree: nd.compile(nd.aba, tree).derivative("q", "qd", "tau"),
}
"""What compiles each algorithm, by the name of the task."""


def own_runs(program: nd.results.CompiledFunction, task: str, states: States) -> dict[str, Run]:
    """A tick, a call with its checks, and a batch of a compiled function."""
    arrays = tuple(vars(program.inputs).values())
    batch = (states.q, states.qd, states.y)[: len(arrays)]
    state = [values[0].copy() for values in batch]
    for array, values in zip(arrays, state, strict=True):
        array[:] = values

    def answer(found: Any) -> Floats:
        """One array; of C, which is not unique, what it does to qd."""
        parts = np.concatenate([np.atleast_1d(part) for part in (found if isinstance(found, tuple) else (found,))])
        return parts @ states.qd[0] if task == "coriolis" else parts

    def after_tick() -> Floats:
        program.tick()
        return answer(program.outputs).copy()

    return {
        own_name("tick", program.backend): Run(program.tick, after_tick),
        "nori_dyn call": Run(lambda: program(*state), lambda: answer(program(*state))),
        "nori_dyn batch": Run(lambda: program.batch(*batch), None, len(states.q)),
    }


def measure(options: Options, progress: Progress) -> list[Result]:
    robots, results = options.load(QUICK, REAL)
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for task, make in ALGORITHMS.items():
            progress(f"recursions, {robot.name}, {task}", k / len(robots))
            program = make(robot.tree)
            peers, skipped = runs_of(PEERS.values(), task, robot, states)
            case, counts = {**robot.case, "algorithm": task}, {"operations": program.cost.total}
            results.append(compare(case, counts, own_runs(program, task, states), peers, skipped, options.budget))
    return results


SUITE = Suite("recursions", "Classical algorithms, compiled", measure, notes=(f"A batch has {STATES:,} states.",))

"""States a second: batches beside a tick, on one core and on more, and what others compute of as many states."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.harness import TOLERANCE, Result, Run, compare, figure_tables, timing_tables
from benchmarks.peers.base import runs_of
from benchmarks.peers.registry import MANY
from benchmarks.robots import Robot, Robots, States, random_states
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.tick import PROBLEMS, planned
from nori_dyn.bench import measure as plan_times
from nori_dyn.errors import InputError
from nori_dyn.tables import Table
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

REAL: Robots = (
    ("ur5", "fixed"),
    ("panda", "fixed"),
    ("kinova", "fixed"),
    ("anymal", "floating"),
    ("go2", "floating"),
    ("solo12", "floating"),
    ("g1", "floating"),
    ("talos_reduced", "floating"),
    ("talos_full", "floating"),
    ("iCubGenova04", "floating"),
)
QUICK: Robots = (("panda", "fixed"),)

STATES = 4096
FEW = 64
"""States of a batch where only ticks count."""

SINGLE = 1e-3
"""Difference up to which an answer in single precision is the same, relative to the largest number."""

TICK, BATCH, FLOATS = "nori_dyn tick", "nori_dyn batch", "nori_dyn batch, float32"


def thread_counts() -> Iterator[int]:
    """Numbers of threads that are measured: 2, 4, 8, ... up to the cores that this process may use."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    threads = 2
    while threads <= cores:
        yield threads
        threads *= 2


@dataclass(frozen=True, slots=True)
class Task:
    """Something of ours that is computed of many states.

    Attributes:
        peer: what peers call it.
        operations: of one state.
        tick: computes the state that was filled in.
        batch: computes all states; takes `threads` and `dtype`.
        answer: makes an array (N, ...) as peers have it of what `batch` returns.
    """

    peer: str
    operations: int
    tick: Callable[[], object] | None
    batch: Callable[..., Any]
    answer: Callable[[Any], Floats] | None = None

    def runs(self, n: int) -> dict[str, Run]:
        """A batch, a tick, a batch in single precision where there is one, and batches on more threads."""

        def run(**options: Any) -> Run:
            answer = self.answer
            same = None if answer is None else lambda: answer(self.batch(**options)).astype(float)
            return Run(lambda: self.batch(**options), same, n, SINGLE if "dtype" in options else TOLERANCE)

        found = {BATCH: run()}
        if self.tick is not None:
            found[TICK] = Run(self.tick)
        with suppress(InputError, TypeError):  # what weighs its rows is for doubles
            self.batch(dtype="float32")
            found[FLOATS] = run(dtype="float32")
        return found | {f"{BATCH}, {threads} threads": run(threads=threads) for threads in thread_counts()}


def _batched(batch: Callable[..., Any], arrays: Sequence[Floats]) -> Callable[..., Any]:
    """A batch of some states, as numbers of its type, that writes where it wrote before."""
    given = {dtype: [x.astype(dtype) for x in arrays] for dtype in ("float64", "float32")}
    kept: dict[str, Any] = {}

    def run(dtype: str = "float64", threads: int = 1) -> Any:
        kept[dtype] = batch(*given[dtype], threads=threads, dtype=dtype, out=kept.get(dtype))
        return kept[dtype]

    return run


def _filled(program: Any, arrays: Sequence[Floats]) -> Callable[[], object]:
    """The tick of something compiled, whose inputs are the first of some states."""
    for array, values in zip(vars(program.inputs).values(), arrays, strict=False):
        array[:] = values[0]
    tick: Callable[[], object] = program.tick
    return tick


def _output(name: str, estimate: nd.results.Estimate) -> Floats:
    return np.asarray(estimate[name])


def _stacked(parts: tuple[Floats, ...]) -> Floats:
    return np.concatenate(parts, axis=1)


def tasks(robot: Robot, states: States) -> Iterator[tuple[str, Task]]:
    """The tasks of a robot with their titles, each made when it is asked for."""
    arrays = (states.q, states.qd, states.y)
    for title, problem in (("ID", "inverse_dynamics"), ("FD", "forward_dynamics")):
        solver = planned(robot, problem).solver()
        made = _filled(solver, arrays), _batched(solver.solve_batch, arrays), partial(_output, PROBLEMS[problem])
        yield title, Task(problem, solver.plan.cost.total, *made)
    for title, function, last in (("ID derivatives", nd.rnea, "qdd"), ("FD derivatives", nd.aba, "tau")):
        program = nd.compile(function, robot.tree).derivative("q", "qd", last)
        made = _filled(program, arrays), _batched(program.batch, arrays), _stacked
        yield title, Task(f"{function.__name__} derivatives", program.cost.total, *made)
    sensors = "joint_torques" if robot.base == "fixed" else "identification_floating"
    plan = nd.plan(nd.System(robot.tree, sensors), outputs=["tau"])
    read = (states.q, states.qd, np.random.default_rng(0).normal(size=(len(states.q), plan.system.ny)))
    solver, monitor = plan.solver(), plan.monitor()
    cost = plan.cost.total
    yield "estimate", Task("", cost, _filled(solver, read), _batched(solver.solve_batch, read), partial(_output, "tau"))
    yield "with deviations", Task("", cost, None, partial(monitor.check_batch, *read))


def measure(options: Options, progress: Progress) -> list[Result]:
    robots, results = options.load(QUICK, REAL)
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for title, task in tasks(robot, states):
            progress(f"throughput, {robot.name}, {title}", k / len(robots))
            peers, skipped = runs_of(MANY.values(), task.peer, robot, states)
            case, counts = {**robot.case, "problem": title}, {"operations": task.operations}
            results.append(compare(case, counts, task.runs(STATES), peers, skipped, options.budget))
            if task.peer in PROBLEMS:
                results[-1].figures.update(_cycles(planned(robot, task.peer), options))
    return results


def _cycles(plan: nd.Plan, options: Options) -> dict[str, float]:
    """Cycles of a tick, and the bound that it cannot go below."""
    budget = options.budget
    (state,) = plan_times(plan, FEW, budget.rounds, options.seed, budget.seconds).states
    return {"cycles": float(state.cycles[1]), "bound": float(state.bound.cycles)}


def tables(title: str, results: Sequence[Result]) -> list[Table]:
    bounds = [Result(one.case, figures=one.figures) for one in results if one.figures]
    return [*timing_tables(title, results), *figure_tables("Cycles of a tick, and their bound", bounds)]


SUITE = Suite(
    "throughput",
    "States a second: batches, cores, and others",
    measure,
    tables=tables,
    notes=(
        f"A batch has {STATES:,} states. A tick, a batch and what is in C++ take one core; MJX takes the device that "
        "JAX finds, in single precision.",
    ),
)

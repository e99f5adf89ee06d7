"""Exported C against Pinocchio's C++: one process, one compiler, the same model and states, in turns."""

from __future__ import annotations

import ctypes
import tempfile
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Budget, Result, Run, compare
from benchmarks.peers.base import runs_of
from benchmarks.peers.cpp import CALL, FLAGS, HERE, NATIVE, NEEDS, PEERS, SOURCES, WHEEL, compile_library
from benchmarks.robots import States, random_states
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.tick import PROBLEMS, QUICK, REAL, planned
from nori_dyn.errors import NoriError
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

STATES = 32
"""States that a run goes through: few enough that they stay in the first caches, with the code."""

SHORTER = 20
"""How many times as many rounds as of other suites there are, each so many times as short: what else the machine does
then disturbs few of them, and not the median."""

COMPILED = {"nori_dyn, exported C": (HERE,), "nori_dyn, exported C for any processor": ()}
"""Our runs, with the flags that each has besides those that all have."""

NAME = "ours"
"""What the exported C is called."""


def own_runs(made: nd.Plan, states: States, folder: Path) -> dict[str, Run]:
    """Exported C through all states a call, for this processor and for any, compiled in a folder.

    Raises:
        CompilerError: it cannot be compiled.
    """
    made.export(folder, name=NAME)
    numbers, n = np.ascontiguousarray(np.hstack([states.q, states.qd, states.y])), len(states.q)
    shape, repeats, runs = (n, made.system.tree.nv), CALL // n, {}
    given = [f"-DEXPORTED={NAME}", f'-DHEADER="{NAME}.h"', f"-I{folder}"]
    for k, (title, flags) in enumerate(COMPILED.items()):
        files = SOURCES / "exported.c", folder / f"{NAME}.c"
        made_at = folder / f"exported{k}.so"
        compile_library([*needed_compiler(NEEDS).command, "-std=gnu11", *FLAGS, *flags, *given, *files, "-lm"], made_at)
        library = ctypes.CDLL(str(made_at))

        def call(library: ctypes.CDLL = library) -> None:
            library.run(numbers.ctypes, n, ctypes.c_long(repeats))

        def answer(library: ctypes.CDLL = library) -> Floats:
            answers = np.full(shape, np.nan)
            return np.full(shape, np.nan) if library.answer(numbers.ctypes, n, answers.ctypes) else answers

        runs[title] = Run(call, answer, n * repeats)
    return runs


def measure(options: Options, progress: Progress) -> list[Result]:
    robots, results = options.load(QUICK, REAL)
    budget = Budget(SHORTER * options.budget.rounds, options.budget.seconds / SHORTER)
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for problem in PROBLEMS:
            progress(f"C++, {robot.name}, {problem}; libraries are compiled the first time", k / len(robots))
            case = {**robot.case, "problem": problem}
            with tempfile.TemporaryDirectory() as folder:
                try:
                    made = planned(robot, problem)
                    own = own_runs(made, states, Path(folder))
                except NoriError as error:
                    results.append(Result(case, skipped={next(iter(COMPILED)): str(error)}))
                    continue
                peers, skipped = runs_of(PEERS, problem, robot, states)
                counts = {"operations": made.cost.total}
                results.append(compare(case, counts, own, peers, skipped, budget))
    return results


SUITE = Suite(
    "cpp",
    "Exported C, and Pinocchio's C++: one process, one compiler",
    measure,
    notes=(
        f"{STATES} states in turns; ours with all its checks, compiled for this processor and for any. '{WHEEL}' is "
        f"compiled for any; '{NATIVE}' and what CppADCodeGen writes of its algorithms, for this one with our flags.",
    ),
)

"""Exported C against Pinocchio's C++: one process, one compiler, the same states in turns."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import numpy as np

from nori_dyn.api.plan import Plan
from nori_dyn.bench.measure import TOLERANCE, Budget, difference
from nori_dyn.bench.peers.base import is_floating
from nori_dyn.bench.peers.pinocchio import Prepared, prepared
from nori_dyn.bench.records import Record
from nori_dyn.bench.robots import Robot, States, random_states
from nori_dyn.bench.suites.base import Options, Suite
from nori_dyn.bench.suites.cpp_build import PEER_NAME, driver_program, find_pinocchio, peer_library
from nori_dyn.bench.suites.cpp_sources import ENDS, driver
from nori_dyn.bench.suites.tick import PROBLEMS, QUICK, REAL, planned
from nori_dyn.bench.urdf import urdf_of
from nori_dyn.errors import CompilerError, NoriError
from nori_dyn.program.export.files import c_export
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

STATES = 32
"""States that a run goes through: few enough that they stay in the first caches, with the code."""

OWN, ANYWHERE = "nori_dyn, exported C", "nori_dyn, exported C for any processor"
PEER = "Pinocchio C++"
NAME = "ours"


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and problem."""
    robots, records = options.load(options.cases(QUICK, REAL))
    try:
        progress("Pinocchio's C++ is compiled, the first time", 0.0)
        peer = peer_library(find_pinocchio())
    except CompilerError as error:
        return [*records, Record({}, skipped={PEER: str(error)})]
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for problem in PROBLEMS:
            progress(f"C++, {robot.name}, {problem}", k / len(robots))
            made, case = planned(robot, problem), {**robot.case, "problem": problem}
            try:
                records.append(_record(case, robot, problem, made, states, peer, options.budget))
            except (NoriError, OSError, ValueError) as error:
                records.append(Record(case, skipped={PEER: " ".join(str(error).split())[:300]}))
    return records


def _record(
    case: dict[str, str | int | float],
    robot: Robot,
    problem: str,
    made: Plan,
    states: States,
    peer: Path,
    budget: Budget,
) -> Record:
    """Return what was found on a robot: answers that differ are not timed."""
    tree, at = robot.tree, prepared(robot.tree)
    export = c_export(made, NAME)
    sizes = (len(states.q), tree.nq, tree.nv)
    source = driver(NAME, (PEER_NAME,), is_floating(tree), problem == "forward_dynamics", sizes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = driver_program(source, export, peer, folder)
        (folder / "robot.urdf").write_text(urdf_of(tree))
        (folder / "states").write_bytes(numbers_of(states, at))
        paths = (folder / file for file in ("robot.urdf", "states", "answers"))
        command = [str(word) for word in (program, *paths, budget.rounds, budget.seconds)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            why = ENDS.get(done.returncode, f"it ends with status {done.returncode}")
            raise CompilerError(f"the driver does not run: {why}. {done.stderr}")
        answers = np.fromfile(folder / "answers").reshape(3, len(states.q), tree.nv)
    names = (OWN, ANYWHERE, PEER)
    found = dict(zip(names, (*answers[:2], at.back(answers[2])), strict=True))
    differences = {n: difference(found[n], found[OWN]) for n in names[1:]}
    wrong = {n: off for n, off in differences.items() if not off <= TOLERANCE}
    seconds = {n: times for n, times in zip(names, times_of(done.stdout), strict=True) if n not in wrong}
    return Record(case, {"operations": made.cost.total}, seconds, OWN, differences=differences, wrong=wrong)


def numbers_of(states: States, at: Prepared) -> bytes:
    """Return the states as a driver reads them: q, qd and y of each as we have them, then as Pinocchio has them."""
    own = np.hstack([states.q, states.qd, states.y])
    theirs = np.hstack([states.q[:, at.q_places], states.qd[:, at.v_places], states.y[:, at.v_places]])
    return own.tobytes() + theirs.tobytes()


def times_of(printed: str) -> list[list[float]]:
    """Return the time a state of each run in each round [s], from the rounds that a driver prints as lines."""
    rounds: Floats = np.array([[float(word) for word in line.split()] for line in printed.splitlines()])
    return [list(map(float, times)) for times in rounds.T]


SUITE = Suite(
    "cpp",
    "Exported C, and Pinocchio's C++: one process, one compiler",
    measure,
    notes=(
        f"{STATES} states in turns; ours with all its checks, compiled for this processor and for any. Pinocchio's is "
        "the library of its wheel, which is compiled for any.",
    ),
)

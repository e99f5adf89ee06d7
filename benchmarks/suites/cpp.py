"""Exported C against Pinocchio's C++: one process, one compiler, the same model and states, in turns."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from benchmarks.measure import TOLERANCE, Budget, difference
from benchmarks.peers.pinocchio import Prepared, prepared
from benchmarks.records import Record
from benchmarks.robots import Robot, States, random_states
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.cpp_build import NATIVE, WHEEL, driver_program, find_pinocchio, peer_library
from benchmarks.suites.cpp_sources import ENDS, JOINT_NUMBERS, JOINTS, driver
from benchmarks.suites.tick import PROBLEMS, QUICK, REAL, planned
from nori_dyn.errors import CompilerError, NoriError
from nori_dyn.estimation.plan import Plan
from nori_dyn.program.export.files import c_export
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

STATES = 32
"""States that a run goes through: few enough that they stay in the first caches, with the code."""

SHORTER = 20
"""How many times as many rounds as of other suites there are, each so many times as short: what else the machine does
then disturbs few of them, and not the median."""

OWN, ANYWHERE = "nori_dyn, exported C", "nori_dyn, exported C for any processor"
PEER = "Pinocchio C++"
PEERS = {WHEEL: f"{PEER}, library of its wheel", NATIVE: f"{PEER}, headers for this processor"}
NAME = "ours"


def measure(options: Options, progress: Progress) -> list[Record]:
    """Return a record a robot and problem."""
    robots, records = options.load(options.cases(QUICK, REAL))
    try:
        progress("Pinocchio's C++ is compiled, the first time", 0.0)
        pinocchio = find_pinocchio()
        peers = [peer_library(pinocchio, peer) for peer in PEERS]
    except CompilerError as error:
        return [*records, Record({}, skipped={PEER: str(error)})]
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for problem in PROBLEMS:
            progress(f"C++, {robot.name}, {problem}", k / len(robots))
            made, case = planned(robot, problem), {**robot.case, "problem": problem}
            try:
                records.append(_record(case, robot, problem, made, states, peers, options.budget))
            except (NoriError, OSError, ValueError) as error:
                records.append(Record(case, skipped={PEER: " ".join(str(error).split())[:300]}))
    return records


def _record(
    case: dict[str, str | int | float],
    robot: Robot,
    problem: str,
    made: Plan,
    states: States,
    peers: Sequence[Path],
    budget: Budget,
) -> Record:
    """Return what was found on a robot: answers that differ are not timed."""
    tree, at = robot.tree, prepared(robot.tree)
    export, joints = c_export(made.plans, NAME), joints_of(at)
    sizes = (len(joints), len(states.q), tree.nq, tree.nv)
    source = driver(NAME, tuple(PEERS), problem == "forward_dynamics", sizes)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = driver_program(source, export, peers, folder)
        (folder / "joints").write_bytes(joints.tobytes())
        (folder / "states").write_bytes(numbers_of(states, at))
        paths = (folder / file for file in ("joints", "states", "answers"))
        command = [str(word) for word in (program, *paths, SHORTER * budget.rounds, budget.seconds / SHORTER)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            why = ENDS.get(done.returncode, f"it ends with status {done.returncode}")
            raise CompilerError(f"the driver does not run: {why}. {done.stderr}")
        answers = np.fromfile(folder / "answers").reshape(-1, len(states.q), tree.nv)
    names = (OWN, ANYWHERE, *PEERS.values())
    found = dict(zip(names, (*answers[:2], *map(at.back, answers[2:])), strict=True))
    differences = {n: difference(found[n], found[OWN]) for n in names[1:]}
    wrong = {n: off for n, off in differences.items() if not off <= TOLERANCE}
    seconds = {n: times for n, times in zip(names, times_of(done.stdout), strict=True) if n not in wrong}
    return Record(case, {"operations": made.cost.total}, seconds, OWN, differences=differences, wrong=wrong)


def joints_of(at: Prepared) -> Floats:
    """Return the joints and bodies of a model as a peer reads them (n, JOINT_NUMBERS).

    Raises:
        ValueError: a joint that a peer does not make.
    """
    model, rows = at.model, []
    for joint in list(model.joints)[1:]:
        name = joint.shortname().removeprefix("JointModel")
        if name not in JOINTS:
            raise ValueError(f"the comparison makes no Pinocchio joint '{name}', but {', '.join(JOINTS)}")
        axis = joint.extract().axis if name.endswith("Unaligned") else np.zeros(3)
        placement, body = model.jointPlacements[joint.id], model.inertias[joint.id]
        parts = [JOINTS.index(name), model.parents[joint.id], axis, placement.rotation.T, placement.translation]
        rows.append(np.hstack([np.ravel(part) for part in (*parts, body.mass, body.lever, body.inertia)]))
    return np.array(rows, dtype=np.float64).reshape(-1, JOINT_NUMBERS)


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
        "the library of its wheel, which is compiled for any, and its headers, compiled for this one with our flags.",
    ),
)

"""Exported C against Pinocchio's C++: one process, one compiler, the same model and states, in turns."""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.harness import TOLERANCE, Budget, Case, Result, difference
from benchmarks.peers.pinocchio import PinocchioModel
from benchmarks.robots import Robot, States, random_states
from benchmarks.suites.base import Options, Suite
from benchmarks.suites.tick import PROBLEMS, QUICK, REAL, planned
from nori_dyn.errors import CompilerError, NoriError
from nori_dyn.program.cache_files import partial_folder, put_entry
from nori_dyn.program.compiler import needed_compiler, usable_folder
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

SOURCES = Path(__file__).parents[1] / "cpp"

STATES = 32
"""States that a run goes through: few enough that they stay in the first caches, with the code."""

SHORTER = 20
"""How many times as many rounds as of other suites there are, each so many times as short: what else the machine does
then disturbs few of them, and not the median."""

FLAGS = ("-O3", "-DNDEBUG")
"""Flags that both have."""

HERE = "-march=native"
"""What compiles for this processor."""

NEEDS = "the comparison with C++"

HEADERS = {
    "libpinocchio": ("include", "pinocchio/multibody.hpp"),
    "cmeel-boost": ("include", "boost/variant.hpp"),
    "cmeel-eigen": ("include/eigen3", "Eigen/Core"),
}
"""Distributions that bring headers: their folder, and one that is looked for."""

PREFIX = "cmeel.prefix"
"""The folder of distributions that holds headers and libraries."""

EXTRA = "pip install 'pin[build]'"

SKIPPED = ("PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION", "PINOCCHIO_WITH_COLLISION", "PINOCCHIO_WITH_HPP_FCL")
"""Definitions that are not taken over."""

JOINTS = ("RX", "RY", "RZ", "PX", "PY", "PZ", "RevoluteUnaligned", "PrismaticUnaligned", "FreeFlyer")
"""Pinocchio's joints that `peer.cpp` makes, by their numbers there."""

WHEEL, NATIVE = "pinocchio_wheel", "pinocchio_native"
"""The peers: Pinocchio's library as its wheel has it, and its headers compiled for this processor, without its library,
whose classes have another alignment. So begin the names of the functions by which the driver calls them."""

OWN, ANYWHERE = "nori_dyn, exported C", "nori_dyn, exported C for any processor"
PEER = "Pinocchio C++"
PEERS = {WHEEL: f"{PEER}, library of its wheel", NATIVE: f"{PEER}, headers for this processor"}
NAME = "ours"
"""What `driver.cpp` calls the exported C."""

ENDS = {
    2: "it was called wrongly",
    3: "a file cannot be read or written",
    4: "a state is refused",
    5: "Pinocchio does not take the robot, or has other numbers of it",
}
"""What the statuses mean by which the driver ends."""

PLUS = {"cc": "c++", "gcc": "g++", "clang": "clang++"}


class MissingHeadersError(CompilerError):
    """Pinocchio, or a header that its headers need, is not installed."""


@dataclass(frozen=True, slots=True)
class Installed:
    """Pinocchio's version, folders of headers, the folder of its libraries, and what it has its users define."""

    version: str
    include: tuple[str, ...]
    library: str
    definitions: tuple[str, ...]


def installed() -> Installed:
    """Find Pinocchio's headers and libraries.

    Raises:
        MissingHeadersError: a distribution is not installed.
    """
    roots = {}
    for name, (folder, header) in HEADERS.items():
        try:
            roots[name] = Path(str(distribution(name).locate_file(PREFIX)))
        except PackageNotFoundError:
            raise MissingHeadersError(f"{name} is not installed: {EXTRA} brings it") from None
        if not (roots[name] / folder / header).is_file():
            raise MissingHeadersError(f"{name} has no {header}: {EXTRA} brings one that has")
    root = roots["libpinocchio"]
    targets = root / "lib" / "cmake" / "pinocchio" / "pinocchioTargets.cmake"
    return Installed(
        distribution("libpinocchio").version,
        tuple(str(roots[name] / folder) for name, (folder, _) in HEADERS.items()),
        str(root / "lib"),
        definitions(targets.read_text() if targets.is_file() else ""),
    )


def definitions(targets: str) -> tuple[str, ...]:
    """What the targets of a build system define for their users; without conditions, and what is not wanted."""
    found = [
        part
        for line in re.findall(r'INTERFACE_COMPILE_DEFINITIONS "([^"]*)"', targets)
        for part in line.split(";")
        if re.fullmatch(r"\w+(=\w+)?", part) and part not in SKIPPED
    ]
    return tuple(dict.fromkeys(found))


def cpp_command() -> tuple[str, ...]:
    """The C++ compiler that goes with the C compiler, or that of $CXX.

    Raises:
        CompilerError: there is none.
    """
    if named := shlex.split(os.environ.get("CXX", "")):
        return tuple(named)
    first, *rest = needed_compiler(NEEDS).command
    command = re.sub(r"(g?cc|clang)(?=(-[\d.]+)?$)", lambda found: PLUS[found[1]], first)
    if command == first or shutil.which(command) is None:
        raise CompilerError(f"there is no C++ compiler beside {first}: install g++ or clang++, or name one in $CXX")
    return command, *rest


def peer_library(pinocchio: Installed, peer: str) -> Path:
    """What calls Pinocchio, `WHEEL` or `NATIVE`: from the cache, or made now, which takes minutes.

    Raises:
        CompilerError: it cannot be compiled.
    """
    command, source = cpp_command(), SOURCES / "peer.cpp"
    flags = [*FLAGS, "-std=c++17", "-fPIC", "-shared", "-w", "-fvisibility=hidden"]
    flags += [f"-DPEER_{part}={peer}_{part}" for part in ("open", "run", "answer")]
    flags += [f"-D{definition}" for definition in pinocchio.definitions]
    flags += [word for folder in pinocchio.include for word in ("-isystem", folder)]
    links = []
    if peer == NATIVE:
        flags += [HERE]
    else:  # the library's code, instead of that of the headers
        flags += ["-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION"]
        links += [f"-L{pinocchio.library}", f"-Wl,-rpath,{pinocchio.library}", "-lpinocchio_default"]
    known = [source.read_text(), pinocchio.version, needed_compiler(NEEDS).identity, *command, *flags]
    folder = usable_folder()
    if isinstance(folder, OSError):
        raise CompilerError(f"what is compiled cannot be kept: {folder}")
    key = hashlib.sha256("\0".join(known).encode()).hexdigest()[:32]
    entry = folder / f"{peer}-{key}.so"
    if not entry.is_file():
        with partial_folder(folder) as work:
            exported, made = Path(work) / "exported", Path(work) / "peer.so"
            exported.write_text(f"{{ global: {peer}_*; local: *; }};")  # both have functions of the same names
            _compile([*command, *flags, "-o", made, source, *links, f"-Wl,--version-script={exported}"])
            put_entry(made, entry)
    return entry


def driver_program(made: nd.Plan, sizes: dict[str, int], peers: Sequence[Path], folder: Path) -> Path:
    """The driver with exported C, for this processor and for any, and with Pinocchio, compiled in a folder.

    Raises:
        CompilerError: it cannot be compiled.
    """
    made.export(folder / "c", name=NAME)
    command, program, parts = cpp_command(), folder / "driver", []
    anywhere = [f"-D{NAME}_{part}={NAME}_{part}_anywhere" for part in ("solve", "init", "status_text")]
    for title, flags in {"here": [HERE], "anywhere": anywhere}.items():
        parts.append(folder / f"{title}.o")
        source = folder / "c" / f"{NAME}.c"
        _compile([*needed_compiler(NEEDS).command, "-std=gnu11", *FLAGS, *flags, "-c", "-o", parts[-1], source])
    links = [*peers, *(f"-Wl,-rpath,{peer.parent}" for peer in peers), "-lm"]
    given = [f"-DDRIVER_{name}={size}" for name, size in sizes.items()]
    main = ["-std=c++17", *FLAGS, *given, f"-I{folder / 'c'}", SOURCES / "driver.cpp"]
    _compile([*command, *main, *parts, "-o", program, *links])
    return program


def _compile(command: Sequence[str | Path]) -> None:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, errors="replace")
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:300])
        raise CompilerError(f"'{command[0]}' fails: {first.strip()[:300]}")


def measure(options: Options, progress: Progress) -> list[Result]:
    robots, results = options.load(QUICK, REAL)
    try:
        progress("Pinocchio's C++ is compiled, the first time", 0.0)
        pinocchio = installed()
        peers = [peer_library(pinocchio, peer) for peer in PEERS]
    except CompilerError as error:
        return [*results, Result({}, skipped={PEER: str(error)})]
    for k, robot in enumerate(robots):
        states = random_states(robot.tree, STATES, options.seed)
        for problem in PROBLEMS:
            progress(f"C++, {robot.name}, {problem}", k / len(robots))
            case: Case = {**robot.case, "problem": problem}
            try:
                results.append(_result(case, robot, problem, states, peers, options.budget))
            except (NoriError, OSError, ValueError) as error:
                results.append(Result(case, skipped={PEER: " ".join(str(error).split())[:300]}))
    return results


def _result(case: Case, robot: Robot, problem: str, states: States, peers: Sequence[Path], budget: Budget) -> Result:
    """Time a robot and problem; answers that differ are not timed."""
    made, at, tree = planned(robot, problem), PinocchioModel(robot.tree), robot.tree
    joints, n = joints_of(at), len(states.q)
    sizes = {"FORWARD": int(problem == "forward_dynamics"), "JOINTS": len(joints), "N": n, "NQ": tree.nq, "NV": tree.nv}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        program = driver_program(made, sizes, peers, folder)
        (folder / "joints").write_bytes(joints.tobytes())
        (folder / "states").write_bytes(numbers_of(states, at))
        paths = (folder / file for file in ("joints", "states", "answers"))
        command = [str(word) for word in (program, *paths, SHORTER * budget.rounds, budget.seconds / SHORTER)]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace")
        if done.returncode:
            why = ENDS.get(done.returncode, f"it ends with status {done.returncode}")
            raise CompilerError(f"the driver does not run: {why}. {done.stderr}")
        answers = np.fromfile(folder / "answers").reshape(-1, n, tree.nv)
    names = (OWN, ANYWHERE, *PEERS.values())
    found = dict(zip(names, (*answers[:2], *map(at.back, answers[2:])), strict=True))
    differences = {n: difference(found[n], found[OWN]) for n in names[1:]}
    wrong = {n: off for n, off in differences.items() if not off <= TOLERANCE}
    seconds = {n: times for n, times in zip(names, times_of(done.stdout), strict=True) if n not in wrong}
    return Result(case, {"operations": made.cost.total}, seconds, OWN, differences=differences, wrong=wrong)


def joints_of(at: PinocchioModel) -> Floats:
    """Joints and bodies of a model as `peer.cpp` reads them (n, 30).

    Raises:
        ValueError: a joint that it does not make.
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
    return np.array(rows, dtype=np.float64)


def numbers_of(states: States, at: PinocchioModel) -> bytes:
    """The states as the driver reads them: q, qd and y of each as we have them, then as Pinocchio has them."""
    return np.hstack([states.q, states.qd, states.y]).tobytes() + np.hstack(at.state(states)).tobytes()


def times_of(printed: str) -> list[list[float]]:
    """Time of a state of each run in each round [s], from the rounds that the driver prints as lines."""
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

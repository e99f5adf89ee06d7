"""Pinocchio in C++, called by ctypes: as its wheel has it, for this processor, and as code that CppADCodeGen writes.

Each is a library of `benchmarks/cpp`, compiled once a machine: it knows no robot, and goes through many states a call.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Run
from benchmarks.peers.base import Peer, UnsuitableError
from benchmarks.peers.pinocchio import PinocchioModel
from benchmarks.robots import Robot, States
from nori_dyn.errors import CompilerError
from nori_dyn.io.cache_files import partial_folder, put_entry
from nori_dyn.program.compiler import needed_compiler, usable_folder
from nori_dyn.typing import Floats

SOURCES = Path(__file__).parents[1] / "cpp"

FLAGS = ("-O3", "-DNDEBUG")
"""Flags that all have, ours too."""

HERE = "-march=native"
"""What compiles for this processor."""

NEEDS = "the comparison with C++"

CALL = 2_000
"""States that a call goes through, about: calls from Python are then nothing beside it."""

HEADERS = {
    "libpinocchio": ("include", "pinocchio/multibody.hpp"),
    "cmeel-boost": ("include", "boost/variant.hpp"),
    "cmeel-eigen": ("include/eigen3", "Eigen/Core"),
}
"""Distributions that bring headers: their folder, and one that is looked for."""

PREFIX = "cmeel.prefix"
"""The folder of distributions that holds headers and libraries."""

EXTRA = "pip install 'pin[build]'"

CPPADCG = "CPPADCG_PREFIX"
"""The environment variable that names the folder where CppAD and CppADCodeGen are installed, which no wheel brings."""

SKIPPED = ("PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION", "PINOCCHIO_WITH_COLLISION", "PINOCCHIO_WITH_HPP_FCL")
"""Definitions that are not taken over."""

JOINTS = ("RX", "RY", "RZ", "PX", "PY", "PZ", "RevoluteUnaligned", "PrismaticUnaligned", "FreeFlyer")
"""Pinocchio's joints that `peer.hpp` makes, by their numbers there."""

TASKS = {
    "inverse_dynamics": 0,
    "forward_dynamics": 1,
    "rnea": 0,
    "aba": 1,
    "rnea derivatives": 2,
    "aba derivatives": 3,
}
"""What a library can do, by the number of its task."""

GENERATED_LIMIT = 10
"""Freedoms up to which derivatives are generated: each is one function, which takes a compiler minutes."""

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


@dataclass(frozen=True, slots=True)
class Build:
    """How a peer is compiled.

    Attributes:
        source: its file.
        flags: flags of its own.
        from_wheel: whether its code is that of Pinocchio's library, compiled for any processor, not of the headers.
        generates: whether it writes code with CppADCodeGen.
    """

    source: str
    flags: tuple[str, ...] = ()
    from_wheel: bool = False
    generates: bool = False


WHEEL, NATIVE, GENERATED = (
    "Pinocchio C++, library of its wheel",
    "Pinocchio C++, headers for this processor",
    "CppADCodeGen",
)
BUILDS = {
    WHEEL: Build("pinocchio.cpp", FLAGS, from_wheel=True),
    NATIVE: Build("pinocchio.cpp", (*FLAGS, HERE)),  # its classes have another alignment than the library's
    GENERATED: Build("cppadcg.cpp", ("-O1", "-DNDEBUG", HERE), generates=True),  # what it writes has all flags
}


def compile_library(command: Sequence[str | Path], made: Path) -> None:
    """Compile a library.

    Args:
        command: the compiler, its flags and what it compiles.
        made: where to.

    Raises:
        CompilerError: it cannot be compiled.
    """
    words = [*map(str, command), "-fPIC", "-shared", "-w", "-o", str(made)]
    done = subprocess.run(words, capture_output=True, text=True, errors="replace")
    if done.returncode:
        first = next((line for line in done.stderr.splitlines() if "error" in line), done.stderr[:300])
        raise CompilerError(f"'{words[0]}' fails: {first.strip()[:300]}")


def kept_library(source: Path, command: Sequence[str], known: str) -> Path:
    """A library of a source: from the cache, or compiled now.

    Args:
        source: the file.
        command: the compiler with its flags, and what is linked.
        known: what the library depends on besides.

    Raises:
        CompilerError: it cannot be compiled, or kept.
    """
    folder = usable_folder()
    if isinstance(folder, OSError):
        raise CompilerError(f"what is compiled cannot be kept: {folder}")
    texts = [path.read_text() for path in (source, SOURCES / "peer.hpp")]
    key = hashlib.sha256("\0".join([*texts, needed_compiler(NEEDS).identity, *command, known]).encode()).hexdigest()
    entry = folder / f"{source.stem}-{key[:32]}.so"
    if not entry.is_file():
        with partial_folder(folder) as work:
            made = Path(work) / "peer.so"
            compile_library([*command[:1], source, *command[1:]], made)
            put_entry(made, entry)
    return entry


@cache
def library(name: str) -> Any:
    """The library of a peer of `BUILDS`; compiling it the first time takes minutes.

    Raises:
        CompilerError: it cannot be compiled, or something that it needs is missing.
    """
    build, pinocchio = BUILDS[name], installed()
    exported = SOURCES / "exported.map"  # libraries have functions of the same names
    flags = [*build.flags, "-std=c++17", "-fvisibility=hidden", f"-Wl,--version-script={exported}"]
    flags += [f"-D{definition}" for definition in pinocchio.definitions]
    flags += [word for folder in pinocchio.include for word in ("-isystem", folder)]
    links: list[str] = []
    if build.from_wheel:
        flags += ["-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION"]
        links += [f"-L{pinocchio.library}", f"-Wl,-rpath,{pinocchio.library}", "-lpinocchio_default"]
    if build.generates:
        root = Path(os.environ.get(CPPADCG, ""))
        if not (root / "include" / "cppad" / "cg.hpp").is_file():
            raise MissingHeadersError(
                f"${CPPADCG} names no folder with CppAD and CppADCodeGen: install them from source"
            )
        flags += ["-isystem", str(root / "include")]
        links += [f"-L{root / 'lib'}", f"-Wl,-rpath,{root / 'lib'}", "-lcppad_lib", "-ldl"]
    found = ctypes.CDLL(str(kept_library(SOURCES / build.source, [*cpp_command(), *flags, *links], pinocchio.version)))
    found.peer_open.restype = ctypes.c_void_p
    return found


def _maker(name: str, task: int) -> Any:
    """Make runs of a task of a library, through all states a call."""

    def make(robot: Robot, states: States) -> Run:
        if task > 1 and BUILDS[name].generates and robot.tree.nv > GENERATED_LIMIT:
            raise UnsuitableError(f"derivatives of {robot.tree.nv} freedoms: compilers take long for what it writes")
        at, n = PinocchioModel(robot.tree), len(states.q)
        nv, joints, numbers = robot.tree.nv, joints_of(at), np.ascontiguousarray(np.hstack(at.state(states)))
        found, compiler = library(name), shutil.which(needed_compiler(NEEDS).command[0]) or ""
        folder = tempfile.TemporaryDirectory()
        given = joints.ctypes, n, numbers.ctypes, folder.name.encode(), compiler.encode()
        opened = ctypes.c_void_p(found.peer_open(task, len(joints), *given))
        if not opened:
            raise CompilerError("it does not take the robot")
        repeats = max(1, CALL // n)

        def call() -> None:
            found.peer_run(opened, ctypes.c_long(repeats))

        weakref.finalize(call, found.peer_close, opened)
        weakref.finalize(call, folder.cleanup)

        def answer() -> Floats:
            answers = np.empty((n, nv) if task < 2 else (n, 3, nv, nv))
            found.peer_answer(opened, answers.ctypes)
            back = at.back(answers) if task < 2 else at.P.T @ answers @ at.P
            return back if task < 2 else back.reshape(n, 3 * nv, nv)

        return Run(call, answer, n * repeats)

    return make


PEERS = [
    Peer(name, "pin", "pinocchio", {task: _maker(name, number) for task, number in TASKS.items()}) for name in BUILDS
]


def joints_of(at: PinocchioModel) -> Floats:
    """Joints and bodies of a model as `peer.hpp` reads them (n, 30).

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

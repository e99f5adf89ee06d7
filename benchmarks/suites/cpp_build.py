"""What the comparison with Pinocchio's C++ is compiled with: headers and libraries of wheels, and one compiler."""

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

from benchmarks.suites.cpp_sources import PEER
from nori_dyn.errors import CompilerError
from nori_dyn.program.cache_files import partial_folder, put_entry
from nori_dyn.program.compiler import needed_compiler, usable_folder
from nori_dyn.program.export.files import CExport

FLAGS = ("-O3", "-DNDEBUG")
"""Flags that both have."""

HERE = "-march=native"
"""What compiles for this processor."""

HEADERS = {
    "libpinocchio": ("include", "pinocchio/multibody.hpp"),
    "cmeel-boost": ("include", "boost/variant.hpp"),
    "cmeel-eigen": ("include/eigen3", "Eigen/Core"),
}
"""Distributions that bring headers: their folder, and one that is looked for."""

PREFIX = "cmeel.prefix"
"""The folder of distributions that holds headers and libraries."""

EXTRA = "pip install 'pin[build]'"

LIBRARY = "pinocchio_default"

WHEEL, NATIVE = "pinocchio_wheel", "pinocchio_native"
"""The peers: Pinocchio's library as its wheel has it, and its headers compiled for this processor, without its library,
whose classes have another alignment. So begin the names of the functions by which a driver calls them."""

FUNCTIONS = ("open", "run", "answer")
"""What the names of a peer's functions end with."""

SKIPPED = ("PINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION", "PINOCCHIO_WITH_COLLISION", "PINOCCHIO_WITH_HPP_FCL")
"""Definitions that are not taken over."""


class MissingHeadersError(CompilerError):
    """Pinocchio, or a header that its headers need, is not installed."""


@dataclass(frozen=True, slots=True)
class Pinocchio:
    """Where its headers and libraries are.

    Attributes:
        version: its version.
        include: folders of headers.
        library: the folder of its libraries.
        definitions: what its build system has users define.
    """

    version: str
    include: tuple[str, ...]
    library: str
    definitions: tuple[str, ...]


def find_pinocchio() -> Pinocchio:
    """Return where Pinocchio's headers and libraries are.

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
    return Pinocchio(
        distribution("libpinocchio").version,
        tuple(str(roots[name] / folder) for name, (folder, _) in HEADERS.items()),
        str(root / "lib"),
        definitions(targets.read_text() if targets.is_file() else ""),
    )


def definitions(targets: str) -> tuple[str, ...]:
    """Return what the targets of a build system define for their users; without conditions, and what is not wanted."""
    found = [
        part
        for line in re.findall(r'INTERFACE_COMPILE_DEFINITIONS "([^"]*)"', targets)
        for part in line.split(";")
        if re.fullmatch(r"\w+(=\w+)?", part) and part not in SKIPPED
    ]
    return tuple(dict.fromkeys(found))


def cpp_command() -> tuple[str, ...]:
    """Return the C++ compiler that goes with the C compiler, or that of $CXX.

    Raises:
        CompilerError: there is none.
    """
    if named := shlex.split(os.environ.get("CXX", "")):
        return tuple(named)
    first, *rest = needed_compiler("the comparison with C++").command
    command = re.sub(r"(g?cc|clang)(?=(-[\d.]+)?$)", lambda found: PLUS[found[1]], first)
    if command == first or shutil.which(command) is None:
        raise CompilerError(f"there is no C++ compiler beside {first}: install g++ or clang++, or name one in $CXX")
    return command, *rest


PLUS = {"cc": "c++", "gcc": "g++", "clang": "clang++"}


def peer_library(pinocchio: Pinocchio, peer: str) -> Path:
    """Return what calls Pinocchio, from the cache, or made now: its headers take minutes.

    Args:
        pinocchio: where it is.
        peer: `WHEEL` or `NATIVE`.

    Raises:
        CompilerError: it cannot be compiled.
    """
    command = cpp_command()
    flags = [*FLAGS, "-std=c++17", "-fPIC", "-shared", "-w", "-fvisibility=hidden"]
    flags += [f"-DPEER_{part}={peer}_{part}" for part in FUNCTIONS]
    flags += [f"-D{definition}" for definition in pinocchio.definitions]
    flags += [word for folder in pinocchio.include for word in ("-isystem", folder)]
    links = []
    if peer == NATIVE:
        flags += [HERE]
    else:  # the library's code, instead of that of the headers
        flags += ["-DPINOCCHIO_ENABLE_TEMPLATE_INSTANTIATION"]
        links += [f"-L{pinocchio.library}", f"-Wl,-rpath,{pinocchio.library}", f"-l{LIBRARY}"]
    identity = needed_compiler("the comparison with C++").identity
    key = hashlib.sha256("\0".join([PEER, pinocchio.version, identity, *command, *flags]).encode()).hexdigest()[:32]
    folder = usable_folder()
    if isinstance(folder, OSError):
        raise CompilerError(f"what is compiled cannot be kept: {folder}")
    entry = folder / f"{peer}-{key}.so"
    if not entry.is_file():
        with partial_folder(folder) as work:
            source, exported, made = (Path(work) / name for name in ("peer.cpp", "exported", "peer.so"))
            source.write_text(PEER)
            exported.write_text(EXPORTED.format(peer=peer))
            links += [f"-Wl,--version-script={exported}"]
            _compiled([*command, *flags, "-o", str(made), str(source), *links])
            put_entry(made, entry)
    return entry


EXPORTED = "{{ global: {peer}_*; local: *; }};"
"""A linker's list: peers in one process have functions of the same names, compiled for other processors."""


def driver_program(source: str, export: CExport, peers: Sequence[Path], folder: Path) -> Path:
    """Return a driver, compiled in a folder with the exported C, for this processor and for any, and with Pinocchio.

    Raises:
        CompilerError: it cannot be compiled.
    """
    for file, text in {**export.files, "main.cpp": source}.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)
    command, program = cpp_command(), folder / "driver"
    own = needed_compiler("the comparison with C++").command
    parts = []
    anywhere = [f"-D{export.name}_{part}={export.name}_{part}_anywhere" for part in ("solve", "init", "status_text")]
    for title, flags in {"here": [HERE], "anywhere": anywhere}.items():
        parts.append(str(folder / f"{title}.o"))
        _compiled([*own, "-std=gnu11", *FLAGS, *flags, "-c", "-o", parts[-1], str(folder / f"{export.name}.c")])
    links = [*map(str, peers), *(f"-Wl,-rpath,{peer.parent}" for peer in peers), "-lm"]
    main = ["-std=c++17", *FLAGS, str(folder / "main.cpp")]
    _compiled([*command, *main, *parts, "-o", str(program), *links])
    return program


def _compiled(command: Sequence[str]) -> None:
    with tempfile.TemporaryFile() as said:
        if subprocess.run(command, stdout=said, stderr=said).returncode:
            said.seek(0)
            text = said.read().decode(errors="replace")
            first = next((line for line in text.splitlines() if "error" in line), text[:300])
            raise CompilerError(f"'{command[0]}' fails: {first.strip()[:300]}")

"""Exported C for tests: compiled under every warning, loaded by what its own header declares, and run on states."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cffi
import numpy as np
import pytest
from numpy.typing import NDArray

from nori_dyn.export.files import CExport, c_export
from nori_dyn.export.folder import write_folder
from nori_dyn.io.cache_files import CACHE_VARIABLE
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiler import find_compiler
from tests import covering

Floats = NDArray[np.float64]

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")

needs_nm = pytest.mark.skipif(shutil.which("nm") is None, reason="there is no nm here")
needs_cpp = pytest.mark.skipif(shutil.which("g++") is None, reason="there is no C++ compiler here")
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="there is no CMake here")


def compile_c(*arguments: Any) -> None:
    """Compile, with every warning an error."""
    compile_with("-std=c11", "-fno-sanitize=all", *WARNINGS, *arguments)  # Zig sanitizes


def compile_with(*arguments: Any) -> None:
    """Compile C, with flags of one's own."""
    compiler = find_compiler()
    assert compiler is not None
    _compile(compiler.command, compiler.identity, list(map(str, arguments)))


def compile_cpp(*arguments: Any) -> None:
    """Compile C++, with every warning an error."""
    _compile(("g++",), _identity_of_cpp(), [*WARNINGS, *map(str, arguments)])


@cache
def _identity_of_cpp() -> str:
    """The version of the compiler of C++, and what it knows of the processor."""
    return checked(["g++", "--version"]) + checked(["g++", "-march=native", "-dM", "-E", "-x", "c++", os.devnull])


def _compile(command: Sequence[str], identity: str, arguments: list[str]) -> None:
    """Run a compiler, unless it has made the same before: in another test, in another process, in an earlier run."""
    made, kept = Path(arguments[arguments.index("-o") + 1]), None
    if (folder := Path(os.environ.get(CACHE_VARIABLE, os.devnull), "native")).is_dir():
        kept = folder / f"exported-{address(command, identity, arguments)}.so"  # named as what `conftest` counts
        if kept.is_file():
            shutil.copy(kept, made)
            return
    checked([*command, *arguments])
    if kept is not None:
        shutil.copy(made, whole := kept.with_suffix(f".{os.getpid()}"))
        os.replace(whole, kept)


def address(command: Sequence[str], identity: str, arguments: list[str]) -> str:
    """Where the cache has what a compiler makes: by sources with their headers, compiler, flags and processor.

    Args:
        command: how the compiler is called.
        identity: its version, and what it knows of the processor.
        arguments: flags and files, each file by its content; and `-o` with the file that it makes, of any name.
    """
    at = arguments.index("-o") + 1
    words = [content for word in arguments[:at] + arguments[at + 1 :] for content in _contents(word)]
    parts = [identity.encode(), *map(str.encode, command), b"", *words]
    return hashlib.sha256(b"".join(hashlib.sha256(part).digest() for part in parts)).hexdigest()


def _contents(argument: str) -> Iterator[bytes]:
    """Yield what an argument is: itself, or a file with the headers beside it, or the headers of a folder."""
    path = Path(argument.removeprefix("-I"))
    if not path.exists():
        yield argument.encode()
        return
    if path.is_file():
        yield path.suffix.encode() + b"\0" + path.read_bytes()
    for header in sorted((path if path.is_dir() else path.parent).rglob("*.h*")):
        yield header.name.encode() + b"\0" + header.read_bytes()


def write_files(files: Mapping[str, str], folder: Path) -> None:
    """Write the files of an export, whatever they are."""
    for file, text in files.items():
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(text)


def written(folder: Path) -> dict[str, str]:
    """What lies in the folder of an export."""
    return {path.relative_to(folder).as_posix(): path.read_text() for path in folder.rglob("*") if path.is_file()}


def checked(command: list[Any]) -> str:
    """What a command prints; it must succeed."""
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


class Exported(NamedTuple):
    """A compiled export."""

    export: CExport
    folder: Path
    ffi: Any
    library: Any

    @staticmethod
    def of(
        plan: EliminationPlan, folder: Path, *flags: str, name: str | None = None, monitor: bool = False
    ) -> Exported:
        """The export of a plan, compiled in a folder of its own."""
        return Exported.made(c_export({(): plan}, name, monitor=monitor), folder, *flags)

    @staticmethod
    def made(export: CExport, folder: Path, *flags: str) -> Exported:
        """An export, compiled in a folder of its own."""
        write_folder(folder, export.files)
        compiler, library, ffi = find_compiler(), folder / ".library.so", cffi.FFI()
        assert compiler is not None
        header = f"{export.name}{'' if export.monitor is None else '_monitor'}.h"
        ffi.cdef(checked([*compiler.command, "-E", "-P", folder / header]))
        made = Exported(export, folder, ffi, None)
        objects = made.objects("-O2" if covering.ALL else "-O1", *flags, "-fPIC")
        compile_c("-shared", "-o", library, *objects, "-lm")  # linked with -ffast-math, it would change this process
        made = made._replace(library=ffi.dlopen(str(library)))
        assert {place: getattr(made.library, place) for place in export.indices} == dict(export.indices)
        return made

    def objects(self, *flags: str) -> list[Path]:
        """The compiled files of C, but for the example: by default those of the library."""
        found = [self.folder / f".{file}.o" for file in self.export.files if file.endswith(".c") and file != "main.c"]
        for compiled in found if flags else ():
            compile_c(*flags, "-c", "-o", compiled, self.folder / compiled.name[1:-2])
        return found

    def symbols(self) -> tuple[set[str], set[str]]:
        """Which functions the files of C define for others, and which they need; they have no data but const."""
        lines = [line.split()[-2:] for file in self.objects() for line in checked(["nm", file]).splitlines()]
        symbols = [line for line in lines if not line[-1].endswith(":")]
        assert {kind for kind, _ in symbols} <= set("TtrRU")
        defined = {symbol for kind, symbol in symbols if kind in "TR"}
        return defined, {symbol for kind, symbol in symbols if kind == "U"} - defined

    def run_example(self, folder: Path) -> list[str]:
        """The lines that the example prints."""
        compile_c("-O0", "-o", folder / "example", self.folder / "main.c", *self.objects(), "-lm")
        return checked([folder / "example"]).splitlines()

    def run_cpp(self, program: str, folder: Path, standard: str = "c++17") -> str:
        """What a program in C++ prints that uses the export, under every warning."""
        (folder / "main.cpp").write_text(program)
        words = [f"-std={standard}", f"-I{self.folder}", "-o", folder / "it", folder / "main.cpp"]
        compile_cpp(*words, *self.objects(), "-lm")
        return checked([folder / "it"])

    def call(self, function: str, *arguments: Any) -> Any:
        """What a function returns."""
        return getattr(self.library, f"{self.export.name}_{function}")(*arguments)

    def new(self, struct: str) -> Any:
        """A struct that holds rubbish."""
        made = self.ffi.new(f"{self.export.name}_{struct} *")
        self.ffi.memmove(made, b"\x3f" * self.ffi.sizeof(made[0]), self.ffi.sizeof(made[0]))
        return made

    def solve(
        self, q: Floats, qd: Floats, y: Floats, *weights: Floats, contacts: int | None = None
    ) -> tuple[int, dict[str, Floats]]:
        """The status at a state, and the outputs by field, on structs that hold rubbish beforehand."""
        first = () if contacts is None else (contacts,)
        return self._run("solve", "workspace", "outputs", self.export.outputs, first, (q, qd, y, *weights))

    def check(self, q: Floats, qd: Floats, y: Floats, weights: Floats) -> tuple[int, dict[str, Floats]]:
        """The status of the monitor at a state, and what it writes by field, as `solve`."""
        assert self.export.monitor is not None
        shapes = {member.name: member.shape for member in self.export.monitor.members}
        return self._run("check", "check_workspace", "diagnosis", shapes, (), (q, qd, y, weights))

    def _run(
        self, function: str, work: str, out: str, shapes: Mapping[str, Any], first: tuple[int, ...], state: Any
    ) -> tuple[int, dict[str, Floats]]:
        ffi, structs = self.ffi, [self.new(part) for part in ("inputs", work, out)]
        given, _, written = structs
        for field, values in zip(("q", "qd", "y", "weights"), state, strict=False):
            if len(values):
                setattr(given, field, np.asarray(values, dtype=float).tolist())
        before = bytes(ffi.buffer(given))
        status = self.call(function, *first, *structs)
        assert bytes(ffi.buffer(given)) == before
        assert len(np.frombuffer(bytes(ffi.buffer(written)))) == sum(int(np.prod(shape)) for shape in shapes.values())
        return status, read(written, shapes)


def read(struct: Any, shapes: Mapping[str, Any]) -> dict[str, Floats]:
    """The fields of a struct, which have these shapes."""
    found = {
        field: np.array(listed(struct, field) if shape else getattr(struct, field)) for field, shape in shapes.items()
    }
    assert {field: values.shape for field, values in found.items()} == dict(shapes)
    return found


def listed(struct: Any, field: str) -> list[Any]:
    """A field of a struct as (nested) lists."""
    return [list(row) if not isinstance(row, float) else row for row in getattr(struct, field)]

"""Exported C for tests: compiled under every warning, loaded by what its own header declares, and run on states."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.io.export import write_folder
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.export.files import CExport, c_export

Floats = NDArray[np.float64]

WARNINGS = ("-Wall", "-Wextra", "-Wpedantic", "-Wconversion", "-Wshadow", "-Werror")


def compile_c(*arguments: Any) -> None:
    """Compile, with every warning an error."""
    compiler = find_compiler()
    assert compiler is not None
    checked([*compiler.command, "-std=c11", "-fno-sanitize=all", *WARNINGS, *map(str, arguments)])  # Zig sanitizes


def checked(command: list[Any]) -> str:
    """Return what a command prints; it must succeed."""
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
        """Return the export of a plan, compiled in a folder of its own."""
        return Exported.made(c_export(plan, name, monitor=monitor), folder, *flags)

    @staticmethod
    def made(export: CExport, folder: Path, *flags: str) -> Exported:
        """Return an export, compiled in a folder of its own."""
        write_folder(folder, export.files)
        compiler, library = find_compiler(), folder / ".library.so"
        assert compiler is not None
        objects = []
        for source in sources(export):
            objects.append(folder / f".{source}.o")
            compile_c("-O1", *flags, "-fPIC", "-c", "-o", objects[-1], folder / source)
        compile_c("-shared", "-o", library, *objects, "-lm")  # linked with -ffast-math, it would change this process
        ffi = cffi.FFI()
        header = f"{export.name}{'' if export.monitor is None else '_monitor'}.h"
        ffi.cdef(checked([*compiler.command, "-E", "-P", folder / header]))
        return Exported(export, folder, ffi, ffi.dlopen(str(library)))

    def run_cpp(self, program: str, folder: Path, standard: str = "c++17") -> str:
        """Return what a program in C++ prints that uses the export, under every warning."""
        (folder / "main.cpp").write_text(program)
        objects = [self.folder / f".{source}.o" for source in sources(self.export)]
        command = ["g++", f"-std={standard}", *WARNINGS, f"-I{self.folder}", "-o", folder / "it", folder / "main.cpp"]
        checked([*command, *objects, "-lm"])
        return checked([folder / "it"])

    def call(self, function: str, *arguments: Any) -> Any:
        """Return what a function returns."""
        return getattr(self.library, f"{self.export.name}_{function}")(*arguments)

    def new(self, struct: str) -> Any:
        """Return a struct that holds rubbish."""
        made = self.ffi.new(f"{self.export.name}_{struct} *")
        self.ffi.memmove(made, b"\x3f" * self.ffi.sizeof(made[0]), self.ffi.sizeof(made[0]))
        return made

    def solve(
        self, q: Floats, qd: Floats, y: Floats, *weights: Floats, contacts: int | None = None
    ) -> tuple[int, dict[str, Floats]]:
        """Return the status at a state, and the outputs by field, on structs that hold rubbish beforehand."""
        first = () if contacts is None else (contacts,)
        return self._run("solve", "workspace", "outputs", self.export.outputs, first, (q, qd, y, *weights))

    def check(self, q: Floats, qd: Floats, y: Floats, weights: Floats) -> tuple[int, dict[str, Floats]]:
        """Return the status of the monitor at a state, and what it writes by field, as `solve`."""
        assert self.export.monitor is not None
        shapes = self.export.monitor.shapes
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
        found = {
            field: np.array(getattr(written, field) if not shape else listed(written, field))
            for field, shape in shapes.items()
        }
        assert {field: values.shape for field, values in found.items()} == dict(shapes)
        return status, found


def sources(export: CExport) -> list[str]:
    """Return the names of the files of C of an export, but for its example."""
    return [file for file in export.files if file.endswith(".c") and file != "main.c"]


def listed(struct: Any, field: str) -> list[Any]:
    """Return a field of a struct as (nested) lists."""
    return [list(row) if not isinstance(row, float) else row for row in getattr(struct, field)]

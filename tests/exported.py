"""Exported C for tests: compiled under every warning, loaded by what its own header declares, and run on states."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import cffi
import numpy as np
from numpy.typing import NDArray

from nori_dyn.io.export import write_folder
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.c_export import CExport, c_export
from nori_dyn.program.compiler import find_compiler

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
    def of(plan: EliminationPlan, folder: Path, *flags: str, name: str | None = None) -> Exported:
        """Return the export of a plan, compiled in a folder of its own."""
        made = c_export(plan, name)
        write_folder(folder, made.files)
        compiler, library = find_compiler(), folder / ".library.so"
        assert compiler is not None
        code = folder / ".code.o"
        compile_c("-O1", *flags, "-fPIC", "-c", "-o", code, folder / f"{made.name}.c")
        compile_c("-shared", "-o", library, code, "-lm")  # linked with -ffast-math, it would change this process
        ffi = cffi.FFI()
        ffi.cdef(checked([*compiler.command, "-E", "-P", folder / f"{made.name}.h"]))
        return Exported(made, folder, ffi, ffi.dlopen(str(library)))

    def solve(self, q: Floats, qd: Floats, y: Floats, *weights: Floats) -> tuple[int, dict[str, Floats]]:
        """Return the status at a state, and the outputs by field, on structs that hold rubbish beforehand."""
        name, ffi = self.export.name, self.ffi
        structs = {part: ffi.new(f"{name}_{part} *") for part in ("inputs", "workspace", "outputs")}
        for struct in structs.values():
            ffi.memmove(struct, b"\x3f" * ffi.sizeof(struct[0]), ffi.sizeof(struct[0]))
        for field, values in zip(("q", "qd", "y", "weights"), (q, qd, y, *weights), strict=False):
            if len(values):
                setattr(structs["inputs"], field, np.asarray(values, dtype=float).tolist())
        before = bytes(ffi.buffer(structs["inputs"]))
        status = getattr(self.library, f"{name}_solve")(structs["inputs"], structs["workspace"], structs["outputs"])
        assert bytes(ffi.buffer(structs["inputs"])) == before
        numbers = np.frombuffer(bytes(ffi.buffer(structs["outputs"])))
        assert len(numbers) == sum(int(np.prod(shape)) for shape in self.export.outputs.values())
        found = {
            field: np.array(getattr(structs["outputs"], field) if not shape else listed(structs["outputs"], field))
            for field, shape in self.export.outputs.items()
        }
        assert {field: values.shape for field, values in found.items()} == dict(self.export.outputs)
        return status, found


def listed(struct: Any, field: str) -> list[Any]:
    """Return a field of a struct as (nested) lists."""
    return [list(row) if not isinstance(row, float) else row for row in getattr(struct, field)]

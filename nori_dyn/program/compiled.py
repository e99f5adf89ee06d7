"""What a compiled plan needs to run again: sizes, limits and the addresses of its libraries, kept beside them.

So a plan that was compiled before is loaded without tracing its equations again. The record is data only; the libraries
are sealed and private (see `compiler`), and what is damaged or from another version is made anew.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiler import FLAGS, Compiler, usable_folder


class Compiled(BaseModel):
    """A compiled plan.

    Attributes:
        n_work: length of the workspace.
        limits: smallest size that each guarded pivot may have.
        single: address of the library for single states.
        batch: address of that for batches; it is compiled when it is first needed.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_work: int
    limits: list[FiniteFloat]
    single: str
    batch: str


def identity(plan: EliminationPlan, compiler: Compiler, checked: bool) -> str:
    """Return a hash of all that a compiled program depends on: plan, compiler, and this package's own code.

    Args:
        plan: the plan.
        compiler: the compiler.
        checked: whether the program computes the residual.
    """
    order = plan.program_rows.tobytes() + plan.program_columns.tobytes()
    parts = [
        plan.system.fingerprint,
        repr([output.name for output in plan.outputs]),
        hashlib.sha256(order).hexdigest(),
        repr((plan.regrouped, plan.seed, checked)),
        compiler.identity,
        *compiler.command,
        *FLAGS,
        _own_code(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def recall(key: str) -> Compiled | None:
    """Return the record of an identity; None where there is none that can be read."""
    folder = usable_folder()
    if isinstance(folder, OSError):
        return None
    try:
        checksum, text = _path(folder, key).read_text().split("\n", 1)
        return Compiled.model_validate_json(text) if checksum == _checksum(text) else None
    except (OSError, ValueError, ValidationError):
        return None


def remember(key: str, compiled: Compiled) -> None:
    """Keep the record of an identity, whole or not at all."""
    folder = usable_folder()
    if isinstance(folder, OSError):
        return
    text = compiled.model_dump_json()
    with tempfile.NamedTemporaryFile("w", dir=folder, prefix=".record-", delete=False) as file:
        file.write(f"{_checksum(text)}\n{text}")
    os.replace(file.name, _path(folder, key))


def _path(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _own_code() -> str:
    package = Path(__file__).parents[1]
    hasher = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        hasher.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return hasher.hexdigest()

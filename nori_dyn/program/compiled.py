"""What a compiled plan needs to run again: sizes, limits and the addresses of its libraries, kept beside them.

So a plan that was compiled before is loaded without tracing its equations again. The record is data only; the libraries
are sealed and private (see `compiler`), and what is damaged or from another version is made anew.
"""

import hashlib
import warnings
from functools import cache
from pathlib import Path

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from nori_dyn.errors import NoriWarning
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.cache_files import read_entry, write_entry
from nori_dyn.program.compiler import Compiler, c_identity, usable_folder
from nori_dyn.program.kernel.native import Sizes


class Compiled(BaseModel):
    """A compiled plan.

    Attributes:
        sizes: what its kernel has to know.
        limits: what its kernel holds states against, see `state` in c/program.h.
        guards: the unknown that each guarded pivot is of.
        single: address of the library for single states.
        batch: address of that for batches; None before the first.
        packed: how many of its operations are computed two at a time, four and so on.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    sizes: Sizes
    limits: list[FiniteFloat]
    guards: list[str]
    single: str
    batch: str | None = None
    packed: dict[int, int]


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
        c_identity(compiler),
        _own_code(),
    ]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def recall(key: str) -> Compiled | None:
    """Return the record of an identity; None where there is none that can be read."""
    folder = usable_folder()
    content = None if isinstance(folder, OSError) else read_entry(_path(folder, key))
    if content is None:
        return None
    checksum, _, record = content.partition(b"\n")
    try:
        return Compiled.model_validate_json(record) if checksum == _checksum(record) else None
    except ValidationError:
        return None


def remember(key: str, compiled: Compiled) -> None:
    """Keep the record of an identity, whole or not at all."""
    folder = usable_folder()
    if isinstance(folder, OSError):
        return
    record = compiled.model_dump_json().encode()
    try:
        write_entry(_path(folder, key), _checksum(record) + b"\n" + record)
    except OSError as error:
        warnings.warn(f"the compiled program is not cached: {error}", NoriWarning, stacklevel=2)


def _path(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def _checksum(record: bytes) -> bytes:
    return hashlib.sha256(record).hexdigest().encode()


@cache
def _own_code() -> str:
    package = Path(__file__).parents[1]
    hasher = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        hasher.update(path.relative_to(package).as_posix().encode() + path.read_bytes())
    return hasher.hexdigest()

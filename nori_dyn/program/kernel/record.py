"""The record of a compiled program in the cache: sizes, limits and the addresses of its libraries.

So a plan that was compiled before is loaded without tracing its equations again. The record is data only; the libraries
are sealed and private (see `compiler`), and damaged files, or those from another version, are made anew.
"""

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from nori_dyn.errors import NoriWarning
from nori_dyn.io.cache_files import read_entry, write_entry
from nori_dyn.planning.identity import code_identity
from nori_dyn.program.compiler import Compiler, c_identity, usable_folder
from nori_dyn.program.emit import Unit
from nori_dyn.program.kernel.caller import LONG
from nori_dyn.program.program import Program

Record = TypeVar("Record", bound=BaseModel)


class LibraryEntry(BaseModel):
    """A library for single states.

    Attributes:
        address: its address in the cache.
        n_work: length of the workspace.
        first_pivot: the offset of the pivots in it; steps of refinement, or watched values, come next.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    address: str
    n_work: int
    first_pivot: int


class KernelRecord(BaseModel):
    """A compiled program.

    Attributes:
        n_pivots, n_steps: how many there are.
        has_fast_path: whether there is a fast path.
        has_residual, has_single: see `Kernel`.
        is_long: whether a state takes long, see `caller.LONG`.
        packed: how many of its operations are computed two at a time, four and so on.
        pivot_names: the name of each pivot; empty where they have none.
        limits: the limits of its guards, see `state` in c/program.h.
        single: the library for single states, the fast path where there is one.
        refined: that for states off the fast path; None before the first.
        batches: addresses of those for batches, by the type of their numbers, as far as there were any.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_pivots: int
    n_steps: int
    has_fast_path: bool
    has_residual: bool
    has_single: bool
    is_long: bool
    packed: dict[int, int]
    pivot_names: tuple[str, ...]
    single: LibraryEntry
    refined: LibraryEntry | None = None
    batches: dict[str, str] = {}
    limits: tuple[FiniteFloat, ...]

    @staticmethod
    def of(program: Program, unit: Unit, single: LibraryEntry, limits: Sequence[float]) -> "KernelRecord":
        """The record of a program, with the unit and the library for single states."""
        return KernelRecord(
            n_pivots=len(program.pivots),
            n_steps=len(program.refinement.steps),
            has_fast_path=program.has_fast_path(limits),
            has_residual=bool(program.equations),
            has_single=program.has_single,
            is_long=program.cost.total > LONG,
            packed=unit.packed,
            pivot_names=program.pivot_names,
            single=single,
            limits=tuple(limits),
        )


def record_key(compiler: Compiler, *parts: str) -> str:
    """The identity of a program: of what it is made, the compiler, and the source of this package."""
    return hashlib.sha256("\0".join((*parts, c_identity(compiler), code_identity())).encode()).hexdigest()[:32]


def recall(key: str, kind: type[Record]) -> Record | None:
    """The record of an identity; None where there is none that can be read."""
    folder = usable_folder()
    content = None if isinstance(folder, OSError) else read_entry(_path(folder, key))
    if content is None:
        return None
    checksum, _, record = content.partition(b"\n")
    try:
        return kind.model_validate_json(record) if checksum == _checksum(record) else None
    except ValidationError:
        return None


def remember(key: str, record: BaseModel) -> None:
    """Keep the record of an identity, whole or not at all."""
    folder = usable_folder()
    if isinstance(folder, OSError):
        return
    content = record.model_dump_json().encode()
    try:
        write_entry(_path(folder, key), _checksum(content) + b"\n" + content)
    except OSError as error:
        warnings.warn(f"the compiled program is not cached: {error}", NoriWarning, stacklevel=2)


def _path(folder: Path, key: str) -> Path:
    return folder / f"{key}.json"


def _checksum(content: bytes) -> bytes:
    return hashlib.sha256(content).hexdigest().encode()

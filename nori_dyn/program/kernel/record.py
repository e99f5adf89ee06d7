"""The record of a compiled program in the cache: sizes, limits and the addresses of its libraries.

So a plan that was compiled before is loaded without tracing its equations again. The record is data only; the libraries
are sealed and private (see `compiler`), and damaged files, or those from another version, are made anew.
"""

import hashlib
import warnings
from collections.abc import Sequence
from pathlib import Path

from pydantic import BaseModel, ConfigDict, FiniteFloat, ValidationError

from nori_dyn.errors import NoriWarning
from nori_dyn.program.cache_files import read_entry, write_entry
from nori_dyn.program.compiler import usable_folder
from nori_dyn.program.emit import Unit
from nori_dyn.program.kernel.caller import LONG
from nori_dyn.program.program import Program


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
        n_inputs, n_outputs: numbers of a state.
        n_pivots, n_steps, n_watched, n_weights: how many there are.
        has_residual: whether the residual is computed.
        is_long: whether a state takes long, see `caller.LONG`.
        packed: how many of its operations are computed two at a time, four and so on.
        pivot_names: the name of each pivot; empty where they have none.
        limits: the limits of its guards, see `state` in c/program.h.
        single: the library for single states, the fast path where there is one.
        refined: that for states off the fast path; None before the first.
        batches: addresses of those for batches, by the type of their numbers, as far as there were any.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    n_inputs: int
    n_outputs: int
    n_pivots: int
    n_steps: int
    n_watched: int
    n_weights: int
    has_residual: bool
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
            n_inputs=len(program.scalars),
            n_outputs=len(program.outputs),
            n_pivots=len(program.pivots),
            n_steps=len(program.refinement.steps),
            n_watched=len(program.refinement.watched),
            n_weights=program.n_weights,
            has_residual=bool(program.equations),
            is_long=program.cost.total > LONG,
            packed=unit.packed,
            pivot_names=program.pivot_names,
            single=single,
            limits=tuple(limits),
        )

    @property
    def has_fast_path(self) -> bool:
        """Whether there is a fast path."""
        return has_fast_path(self.limits, self.n_pivots + self.n_steps, self.n_inputs)


def has_fast_path(limits: Sequence[float], n: int, n_inputs: int) -> bool:
    """Whether some state is on the fast path, by the limits after the first n: no range of an input is empty."""
    return len(limits) > n and limits[n] <= limits[n + n_inputs]


def recall(key: str) -> KernelRecord | None:
    """Return the record of an identity; None where there is none that can be read."""
    folder = usable_folder()
    content = None if isinstance(folder, OSError) else read_entry(_path(folder, key))
    if content is None:
        return None
    checksum, _, record = content.partition(b"\n")
    try:
        return KernelRecord.model_validate_json(record) if checksum == _checksum(record) else None
    except ValidationError:
        return None


def remember(key: str, record: KernelRecord) -> None:
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

"""Interface of files of estimates of any format: their fields, with names and units, and their writer."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np

from nori_dyn.typing import Floats

TIME = "t"
"""What the times of estimates are called [s]."""

SIGMA = "sigma:"
"""How the names of standard deviations begin."""

DIGEST = "nori_dyn.sha256"
"""Metadata that stand beside a file name its content by this."""


@dataclass(frozen=True, slots=True)
class Field:
    """An estimated quantity, or a remark on an estimate.

    Attributes:
        name: "tau", "fx", "fx:l_sole", "sigma:tau", "residual", "fell_back", "p_value".
        shape: the shape of one sample: () or (nv,) or (n_links, 6).
        labels: the name of each number: "tau:l_knee", "fx:l_sole.mx".
        units: its unit each; "" where it has none.
        kind: the kind of variable, "tau", "fx", "a", ...; "" of flags of an estimate.
        owners: the joint or link of each row: of (nv,) the joint of each number, of (n_links, 6) the links.
    """

    name: str
    shape: tuple[int, ...]
    labels: tuple[str, ...]
    units: tuple[str, ...]
    kind: str = ""
    owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class FileSchema:
    """Schema of a file of estimates.

    Attributes:
        fields: what is written of each sample, beside its time.
        has_time: whether the times of samples are known.
        metadata: `nori_dyn.fingerprint` of the plan, `nori_dyn.version`, `nori_dyn.robot`, `nori_dyn.sensors`, and so
            on: text.
    """

    fields: tuple[Field, ...]
    has_time: bool
    metadata: Mapping[str, str]

    @property
    def arrays(self) -> tuple[Field, ...]:
        """The fields, and before them the time where it is known."""
        return (*((Field(TIME, (), (TIME,), ("s",)),) if self.has_time else ()), *self.fields)

    @property
    def labels(self) -> tuple[str, ...]:
        """The names of all columns, the time first where it is known."""
        return tuple(label for each in self.arrays for label in each.labels)

    @property
    def units(self) -> tuple[str, ...]:
        """The unit of each column."""
        return tuple(unit for each in self.arrays for unit in each.units)


class Writer(ABC):
    """A file of estimates that is being written.

    Laws, tested over the registry in tests/contracts/test_log_formats.py:
    what is written is read back by the `LogSource` of the same format, to the last bit, with its names, units and
    metadata. What does not fit into the file is written beside it, in its folder.

    Args:
        path: the file.
        schema: what it holds.
    """

    def __init__(self, path: Path, schema: FileSchema) -> None:
        self.path, self.schema = path, schema

    @abstractmethod
    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        """Write samples.

        Args:
            t: their times (n,) [s], where they are known.
            values: each field (n, *shape), by name.

        Raises:
            OSError: the disk is full, or the like.
        """

    @abstractmethod
    def close(self) -> None:
        """Write what is left, so that the file is whole."""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()


def with_time(t: Floats | None, values: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """The arrays of samples by name, their times too where they are known."""
    return values if t is None else {TIME: t, **values}


def columns_of(schema: FileSchema, t: Floats | None, values: Mapping[str, Floats]) -> Iterator[Floats]:
    """Yield the columns (n,) of samples, the time first where it is known."""
    if t is not None:
        yield t
    for each in schema.fields:
        yield from values[each.name].reshape(-1, len(each.labels)).T


def flat(schema: FileSchema, t: Floats | None, values: Mapping[str, Floats]) -> Floats:
    """Samples as a table (n, columns), the time first where it is known."""
    return np.column_stack(list(columns_of(schema, t, values)))


def digest_of(path: Path) -> str:
    """SHA-256 of a file.

    Raises:
        OSError: it cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()

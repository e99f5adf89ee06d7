"""The columns of a file of numbers by name, CSV or NPZ, and where in the file each sample stands."""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from nori_dyn.errors import FileFormatError
from nori_dyn.io.csv_columns import csv_columns
from nori_dyn.io.npz_columns import npz_columns
from nori_dyn.typing import Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class Columns:
    """The columns of a file; it keeps count of those that are used.

    Attributes:
        path: the file.
        values: the columns (N,) by name.
        lines: in which line of a text file each sample stands (N,).
        used: names of those that were taken.
    """

    path: str | Path
    values: Mapping[str, Floats]
    lines: Indices | None
    used: set[str] = field(default_factory=set)

    def take(self, names: Iterable[str]) -> Floats | None:
        """Return the first column that there is of some names; None where there is none."""
        name = self.take_name(names)
        return None if name is None else self.values[name]

    def take_name(self, names: Iterable[str]) -> str | None:
        """Return the first of some names that a column has, which is used from now on; None where there is none."""
        name = next((name for name in names if name in self.values), None)
        if name is not None:
            self.used.add(name)
        return name

    def place(self, sample: int) -> str:
        """Return where a sample stands: "log.csv:17", or "log.npz, sample 15" (from 0)."""
        return f"{self.path}, sample {sample}" if self.lines is None else f"{self.path}:{self.lines[sample]}"

    @property
    def unused(self) -> tuple[str, ...]:
        """The columns that were not taken, those with a number each together: "q_d (7 columns)"."""
        return _together(name for name in self.values if name not in self.used)

    def suggestion(self, name: str, known: Iterable[str] = ()) -> str:
        """Return a sentence on what there is instead of a column; columns of known kinds are none that it could be."""
        others = [each for each in self.values if re.split(r"[:\[]", each)[0] not in known]
        close = difflib.get_close_matches(name, others, n=1, cutoff=0.5)
        if close:
            return f"Did you mean its column '{close[0]}'?"
        names = _together(self.values)
        return f"Its columns are {', '.join(names[:8])}{', ...' if len(names) > 8 else ''}."


def read_columns(path: str | Path, blocks: Mapping[str, tuple[str, ...]] | None = None) -> Columns:
    """Return the columns of a `.csv`, `.csv.gz` or `.npz`.

    Args:
        path: the file.
        blocks: see `npz_columns`.

    Raises:
        FileFormatError: the file cannot be read, or is neither CSV nor NPZ.
        InputError: it holds no samples, or different numbers of them.
    """
    check_table_name(path)
    if str(path).endswith(".npz"):
        return Columns(path, npz_columns(path, blocks or {}), None)
    return Columns(path, *csv_columns(path))


def check_table_name(path: str | Path) -> None:
    """Check that a file's name says what it is.

    Raises:
        FileFormatError: it ends neither in .csv, .csv.gz nor .npz.
    """
    if not str(path).endswith((".csv", ".csv.gz", ".npz")):
        raise FileFormatError(f"{path}: must end in .csv, .csv.gz or .npz.")


def shown_value(value: float) -> str:
    """Return what a message says of a number that is none."""
    return "empty or nan" if math.isnan(value) else f"{value:g}"


def _together(names: Iterable[str]) -> tuple[str, ...]:
    counts: dict[str, int] = {}
    for name in names:
        kind = re.sub(r"\[\d+\]$", "", name)
        counts[kind] = counts.get(kind, 0) + 1
    return tuple(name if n == 1 else f"{name} ({n} columns)" for name, n in counts.items() if name)

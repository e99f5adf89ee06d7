"""Spool on disk for a backward pass, in an unnamed file that dies with its process."""

from __future__ import annotations

import pickle
import tempfile
from pathlib import Path
from typing import Any, Self


class Spool:
    """Items in a file, in order and in constant memory.

    Args:
        folder: the folder on whose disk the file is.

    Raises:
        OSError: the disk is full, or the like.
    """

    def __init__(self, folder: Path) -> None:
        self._file = tempfile.TemporaryFile(dir=folder, prefix=".partial-")  # noqa: SIM115, it lives with this object
        self._starts: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._file.close()

    def __len__(self) -> int:
        return len(self._starts)

    def append(self, item: Any) -> None:
        """Take an item."""
        self._starts.append(self._file.seek(0, 2))
        pickle.dump(item, self._file, pickle.HIGHEST_PROTOCOL)

    def __getitem__(self, number: int) -> Any:
        """The item of a number."""
        self._file.seek(self._starts[number])
        return pickle.load(self._file)

    def pop(self) -> Any:
        """Remove and return the last item."""
        last = self[-1]
        self._file.seek(self._starts.pop())
        self._file.truncate()
        return last

"""Arrays that wait on the disk: what is read forward, and used backward."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nori_dyn.typing import Array


class Spool:
    """Sets of arrays by name, one after the other, each in a file of its own; flat memory, however many there are.

    Args:
        folder: where they wait; whoever makes it removes it.

    Raises:
        OSError: the disk is full, or the like.
    """

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder, self._n = folder, 0

    def __len__(self) -> int:
        return self._n

    def append(self, arrays: Mapping[str, Array]) -> None:
        """Take a set of arrays."""
        with self._path(self._n).open("wb") as file:
            np.savez(file, **dict(arrays))
        self._n += 1

    def __getitem__(self, number: int) -> dict[str, Array]:
        """Return a set of arrays."""
        if not 0 <= number < self._n:
            raise IndexError(number)
        with np.load(self._path(number)) as found:
            return dict(found)

    def remove(self, number: int) -> None:
        """Let go of a set of arrays that nobody wants any more."""
        self._path(number).unlink()

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:09d}.npz"

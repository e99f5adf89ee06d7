"""Arrays that wait on the disk: what is read forward, and used backward."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nori_dyn.typing import Array


class Spool:
    """Groups of arrays, one after the other, each in a file of its own: flat memory, however many there are.

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

    def append(self, arrays: Sequence[Array]) -> None:
        """Take a group of arrays."""
        with self._path(self._n).open("wb") as file:
            np.savez(file, *arrays)
        self._n += 1

    def __getitem__(self, number: int) -> list[Array]:
        """Return a group of arrays."""
        if not 0 <= number < self._n:
            raise IndexError(number)
        with np.load(self._path(number)) as found:
            return [found[name] for name in found.files]

    def pop(self) -> list[Array]:
        """Return the last group of arrays, and let go of it."""
        last = self[self._n - 1]
        self._n -= 1
        self._path(self._n).unlink()
        return last

    def _path(self, number: int) -> Path:
        return self._folder / f"{number:09d}.npz"

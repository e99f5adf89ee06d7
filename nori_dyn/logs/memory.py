"""Memory that is used again once nothing looks at it: the system clears what is new, which takes its time."""

from __future__ import annotations

import weakref
from dataclasses import dataclass, field

import numpy as np

from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class BufferPool:
    """Blocks of memory, given again when the last array that looks at one is gone."""

    unused: list[Floats] = field(default_factory=list)

    def take(self, rows: int, columns: int) -> Floats:
        """Return an array (rows, columns) that holds anything."""
        size = rows * columns
        block = next((each for each in self.unused if len(each) >= size), None)
        if block is None:
            self.unused.clear()  # all of them are too small
            block = np.empty(size)
        else:
            self.unused[:] = [each for each in self.unused if each is not block]
        # Views know their memory by the first array on it, this one: while there are views, it is there.
        first = np.frombuffer(block.data, count=size)
        weakref.finalize(first, self.unused.append, block).atexit = False
        return first.reshape(rows, columns)

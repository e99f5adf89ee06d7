"""Memory for chunks, used again once nothing looks at it: the system clears what is new, which takes its time."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field

import numpy as np

from nori_dyn.typing import Floats

UNSEEN = 3
"""References to a block that has no views, while it is asked: the list's, the loop's, and that of asking."""


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """Blocks of numbers, of which those that no array looks at are given again."""

    blocks: list[Floats] = field(default_factory=list)

    def take(self, rows: int, columns: int) -> Floats:
        """Return an array (rows, columns) that holds anything."""
        size = rows * columns
        unseen = [block for block in self.blocks if sys.getrefcount(block) <= UNSEEN]
        found = next((block for block in unseen if len(block) >= size), None)
        if found is None:
            found = np.empty(size)
            self.blocks[:] = [block for block in self.blocks if all(block is not each for each in unseen)]
            self.blocks.append(found)
        return found[:size].reshape(rows, columns)

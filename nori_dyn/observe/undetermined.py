"""What a set of sensors leaves open, and how much of it a further reading settles: exactly, or at a configuration.

Source: own derivation (tests/unit/observe/test_additions.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
import scipy.linalg as la

from nori_dyn.observe.field import Span, Vector
from nori_dyn.typing import Floats

SETTLED = 1e-7
"""Share of the largest number below which one is taken as zero at a configuration."""


class Open(Protocol):
    """What is not determined, of which sensors settle some."""

    @property
    def dimension(self) -> int:
        """How many independent combinations are open."""

    def gain(self, columns: Sequence[int]) -> int:
        """How many of them are settled by reading some numbers of d."""

    def settle(self, columns: Sequence[int]) -> None:
        """Read some numbers of d."""

    def copy(self) -> Open:
        """A copy of which numbers are read on its own."""


@dataclass(slots=True)
class ExactlyOpen:
    """What is open for almost all q, over the field.

    Attributes:
        remainders: by number of d what the sensors leave of it; absent ones are determined.
        total: how many independent combinations the sensors leave open.
        settled: what was read since.
    """

    remainders: Mapping[int, Vector]
    total: int
    settled: Span = field(default_factory=Span)

    @property
    def dimension(self) -> int:
        return self.total - self.settled.dimension

    def gain(self, columns: Sequence[int]) -> int:
        return Span.of(self.settled.remainder(self.remainders.get(k, {})) for k in columns).dimension

    def settle(self, columns: Sequence[int]) -> None:
        self.settled.extend(self.remainders.get(k, {}) for k in columns)

    def copy(self) -> ExactlyOpen:
        return ExactlyOpen(self.remainders, self.total, self.settled.copy())


@dataclass(slots=True)
class NumericallyOpen:
    """What is open at a configuration.

    Attributes:
        changes: changes of d that no row sees, a basis (n, dimension).
    """

    changes: Floats

    @property
    def dimension(self) -> int:
        return int(self.changes.shape[1])

    def gain(self, columns: Sequence[int]) -> int:
        return self.dimension - int(self._left(columns).shape[1])

    def settle(self, columns: Sequence[int]) -> None:
        self.changes = self.changes @ self._left(columns)

    def copy(self) -> NumericallyOpen:
        return NumericallyOpen(self.changes)

    def _left(self, columns: Sequence[int]) -> Floats:
        """The combinations (dimension, n) of changes that reading some numbers of d does not see."""
        size = np.abs(self.changes).max(axis=0)
        seen = self.changes[list(columns)] / size
        seen[np.abs(seen) < SETTLED] = 0.0
        return np.asarray(la.null_space(seen, rcond=SETTLED) / size[:, None])

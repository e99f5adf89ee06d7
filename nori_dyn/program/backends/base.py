"""What a backend does: from states to the unknowns, with a word on how much they can be trusted."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

RCOND_LIMIT = 1e-13
"""Smallest ratio of pivots of the equilibrated matrix; below it the system counts as singular at this state."""


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The unknowns of one state, or of N states with a leading N in every field.

    Attributes:
        d: the unknowns (n,), nan where not requested and where the system is singular.
        residual: largest row of |D d + b|, relative to the largest of |D| |d| + |b|; nan when not computed.
        fell_back: whether the planned order was given up for a freshly pivoted factorisation.
        rcond: smallest pivot relative to the largest of that factorisation, 1 where the planned order held;
            below RCOND_LIMIT the system is singular.
    """

    d: Floats
    residual: Floats
    fell_back: NDArray[np.bool_]
    rcond: Floats


class Backend(Protocol):
    """A way to run a plan. Laws, tested over the registry in tests/contracts/test_backends.py.

    - `solve` is `solve_batch` of one state;
    - a state at which the system is singular gives nan in d and rcond below RCOND_LIMIT, never numbers;
    - nothing depends on the states solved before.
    """

    @property
    def name(self) -> str:
        """The backend's name."""

    def solve(self, q: Floats, qd: Floats, y: Floats) -> Solution:
        """Solve one state: q (nq,), qd (nv,), y (ny,)."""

    def solve_batch(self, Q: Floats, Qd: Floats, Y: Floats) -> Solution:
        """Solve N states: Q (N, nq), Qd (N, nv), Y (N, ny)."""


def relative_residual(D_d: Floats, magnitude: Floats, b: Floats) -> Floats:
    """Return max |D d + b| / max(|D| |d| + |b|) over the rows, the first axis; 0 / 0 is 0."""
    scale = np.max(magnitude + np.abs(b), axis=0)
    worst = np.max(np.abs(D_d + b), axis=0)
    return np.asarray(np.where(worst == 0, 0.0, worst / np.where(scale == 0, 1.0, scale)))

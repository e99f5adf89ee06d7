"""What a filter knows of its memory at a time: in, out, and in words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.arrays import checked, shaped
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.filtering.square_root import SquareRootInformation
from nori_dyn.tables import Shown
from nori_dyn.typing import Floats

SYMMETRIC = 1e-6
"""How far two entries of a covariance that should be the same may be apart, as a correlation."""


class NamedNumbers:
    """Numbers of the memory (..., k), by the names of variables.

    Attributes:
        names: the name of each (k).
        mean: the estimates (..., k).
    """

    names: tuple[str, ...]
    mean: Floats

    def __getitem__(self, name: str) -> Floats:
        """The estimates of a variable, "offset:l_leg_ft", or of one number of it, "offset:l_leg_ft.mz" (..., n).

        Raises:
            UnknownNameError: it does not persist.
        """
        return self.mean[..., self.places(name)]

    def places(self, name: str) -> list[int]:
        """Where the numbers of a variable are.

        Raises:
            UnknownNameError: it does not persist.
        """
        return places_of(self.names, name)


@dataclass(frozen=True, eq=False)
class MemoryState(NamedNumbers, Shown):
    """What is known of what persists: a mean and a covariance.

    Attributes:
        names: the name of each number (k).
        units: the unit of each.
        mean: the estimate (k,).
        covariance: of that (k, k); infinite variances where nothing is known.
        time: time since the first tick [s].
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    mean: Floats
    covariance: Floats
    time: float = 0.0

    @property
    def deviations(self) -> Floats:
        """The standard deviation of each number (k,)."""
        return np.sqrt(np.diagonal(self.covariance))

    def __repr__(self) -> str:
        return f"MemoryState({len(self.names)} numbers at {self.time:g} s)"


def places_of(names: Sequence[str], name: str) -> list[int]:
    """Where the numbers of a variable are among those of a memory; a number has its own name too.

    Raises:
        UnknownNameError: it does not persist.
    """
    found = [k for k, own in enumerate(names) if name in (own, own.rpartition(".")[0])]
    if not found:
        raise UnknownNameError("variable of the memory", name, names)
    return found


def memory_state(
    names: Sequence[str], units: Sequence[str], mean: Floats, covariance: Floats, time: float
) -> MemoryState:
    """State of a memory of which nan says that nothing is known: then variances are infinite."""
    P, unknown = covariance.copy(), ~np.isfinite(mean) | ~np.isfinite(np.diagonal(covariance))
    P[unknown, :] = P[:, unknown] = 0.0
    P[unknown, unknown] = np.inf
    return MemoryState(tuple(names), tuple(units), np.where(unknown, 0.0, mean), P, time)


def information(state: MemoryState) -> SquareRootInformation:
    """The square-root form of what is known.

    Raises:
        InputError: a mean or a covariance of a wrong shape, or that is none; it may hold infinite variances.
    """
    k = len(state.names)
    mean = checked("the mean of the memory", state.mean, (k,), state.names)
    P = shaped("the covariance of the memory", state.covariance, (k, k))
    known = np.diagonal(P) != np.inf
    within = P[np.ix_(known, known)]
    own = [name for name, is_known in zip(state.names, known, strict=True) if is_known]
    checked("the covariance of the memory", within, within.shape, own)
    spread = np.sqrt(np.abs(np.diagonal(within)))
    if (np.abs(within - within.T) > SYMMETRIC * np.outer(spread, spread)).any():
        raise InputError("the covariance of the memory is not symmetric. Give (P + P^T) / 2 where that is rounding.")
    found = SquareRootInformation.of_covariance(mean[known], within)
    R, z = np.zeros((k, k)), np.zeros(k)
    R[np.ix_(known, known)], z[known] = found.R, found.z
    return SquareRootInformation(R, z)

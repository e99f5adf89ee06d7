"""Ranks in doubles: how many singular values count, how clearly, and which of several ranks is that of almost all.

Where a mechanism is next to a singular configuration, singular values are small that are not small elsewhere, or that
are zero wherever it is closed: such a rank is the least clear, and does not count where others are clear.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.linalg as la

from nori_dyn.typing import Floats, Indices

CLEAR = 1e4
"""Least ratio of the singular values of a clear rank to those taken as zero, and to the tolerance."""


def clear_rank(values: Floats, tolerance: float) -> tuple[int, float]:
    """The rank by singular values, and how clear it is: their distance from the tolerance and from each other.

    Args:
        values: singular values (n,) in descending order, relative to a large one.
        tolerance: values below it are taken as zero.
    """
    rank = int(np.sum(values > tolerance))
    smallest = float(values[rank - 1]) if rank else 1.0
    dropped = float(values[rank]) if rank < len(values) else 0.0
    return rank, smallest / max(dropped, tolerance)


def largest_clear(ranks: Sequence[int], clarities: Sequence[float]) -> int:
    """The largest of the ranks that are clear, or of all where none is."""
    clear = [rank for rank, clarity in zip(ranks, clarities, strict=True) if clarity >= CLEAR]
    return max(clear or ranks)


def independent_columns(A: Floats, tolerance: float, sizes: Floats | None = None) -> Indices:
    """Numbers of columns of A (m, n) of which each is more than that share beside the others, by pivoted QR.

    Args:
        A: the columns.
        tolerance: what others leave of a column below this share of its size is taken as zero.
        sizes: sizes of the columns (n,), infinite of those that do not count; their norms when None.
    """
    sizes = np.linalg.norm(A, axis=0) if sizes is None else sizes
    R, order = la.qr(A / np.where(sizes > 0, sizes, 1.0), mode="r", pivoting=True)
    return np.asarray(order[: int((np.abs(np.diag(R)) > tolerance).sum())])

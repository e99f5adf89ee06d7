"""The assembly of D from the blocks of its equations: one for doubles, batches of them, and expressions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nori_dyn.algebra.scalars import is_numeric, is_zero
from nori_dyn.algebra.spatial import spread
from nori_dyn.typing import Array, Indices


@dataclass(frozen=True, slots=True, eq=False)
class Nonzeros:
    """The numbers of a matrix that are not zero, block by block; none of those left out is nonzero anywhere.

    Attributes:
        shape: number of rows and columns.
        rows: row of each (nnz,).
        columns: column of each (nnz,).
        values: value of each (nnz, ...), over any scalar, batch axes last.
    """

    shape: tuple[int, int]
    rows: Indices
    columns: Indices
    values: Array

    def matrix(self) -> sp.csc_array:
        """The matrix, of doubles (nnz,)."""
        return sp.csc_array((np.asarray(self.values, dtype=float), (self.rows, self.columns)), shape=self.shape)

    def matrices(self) -> Iterator[sp.csc_array]:
        """Yield the matrix of each of a batch of doubles (nnz, N), sorted once for all."""
        places = np.arange(len(self.values))
        pattern = sp.csc_array((places, (self.rows, self.columns)), shape=self.shape)
        for numbers in self.values.astype(float)[pattern.data].T:
            yield sp.csc_array((numbers, pattern.indices, pattern.indptr), shape=self.shape)


def assemble(
    blocks: Iterable[tuple[slice, slice, Array]], shape: tuple[int, int], batch: tuple[int, ...] = ()
) -> Nonzeros:
    """Return the nonzeros of a matrix.

    Args:
        blocks: its blocks as (rows, columns, values), the values with the batch axes or, where constant, without; no
            two of them overlap.
        shape: of the matrix.
        batch: the batch axes.
    """
    rows, columns, values = [np.zeros(0, dtype=np.intp)], [np.zeros(0, dtype=np.intp)], [np.zeros((0, *batch))]
    for row, column, block in blocks:
        r, c = _filled(block).nonzero()
        rows.append(r + row.start)
        columns.append(c + column.start)
        values.append((spread(block, block.shape[:2], batch) if batch else block)[r, c])
    return Nonzeros(shape, np.concatenate(rows), np.concatenate(columns), np.concatenate(values))


def _filled(block: Array) -> Array:
    """Return a matrix (m, n) that is true, or not zero, where a block (m, n, ...) is nonzero in any of a batch."""
    if not is_numeric(block):
        return np.array([not is_zero(x) for x in block.flat], dtype=bool).reshape(block.shape)
    return block if block.ndim == 2 else np.asarray(block.any(axis=tuple(range(2, block.ndim))))

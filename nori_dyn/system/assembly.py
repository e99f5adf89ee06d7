"""The assembly of D from the blocks of its equations, and checks of the shapes that these return."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from nori_dyn.algebra.scalars import is_numeric, is_zero
from nori_dyn.algebra.spatial import spread
from nori_dyn.errors import SensorConfigError
from nori_dyn.system.equation import Equation
from nori_dyn.system.variables import VariableKey
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
    """The nonzeros of a matrix.

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
    """A matrix (m, n) that is true, or not zero, where a block (m, n, ...) is nonzero in any of a batch."""
    if not is_numeric(block):
        return np.array([not is_zero(x) for x in block.flat], dtype=bool).reshape(block.shape)
    return block if block.ndim == 2 else np.asarray(block.any(axis=tuple(range(2, block.ndim))))


def check_sigma(sensors: str, equation: Equation, sigma: tuple[float, ...] | None) -> None:
    """Check that there is a standard deviation for each row, or none.

    Raises:
        SensorConfigError: there are more or fewer.
    """
    n = len(equation.components)
    if sigma is not None and len(sigma) != n:
        raise SensorConfigError(f"{_named(sensors, equation)}: its sigma has {len(sigma)} numbers, expected {n}.")


def columns_of(
    sensors: str, equation: Equation, key: VariableKey, block: object, columns: Mapping[VariableKey, slice]
) -> slice:
    """The columns of a block of an equation, which must have their number, and the equation's rows.

    Raises:
        SensorConfigError: the variable is none of the robot's, or the block has another shape.
    """
    if key not in columns:
        known = f"VariableKey of a kind ({', '.join(dict.fromkeys(k.kind for k in columns))}) and the number of a body"
        raise SensorConfigError(f"{_named(sensors, equation)}: it has a block for {key!r}, expected a {known}.")
    found = columns[key]
    shape = (len(equation.components), found.stop - found.start)
    if not _fits(block, shape):
        more = ", a column for each number of the variable"
        raise _misfit(sensors, equation, f"its block for {key.kind} of body {key.body}", block, shape, more)
    return found


def check_bias(sensors: str, equation: Equation, bias: object) -> None:
    """Check that the rows of b are as many as the equation's.

    Raises:
        SensorConfigError: they are not.
    """
    shape = (len(equation.components),)
    if not _fits(bias, shape):
        raise _misfit(sensors, equation, "its bias", bias, shape, "")


def _fits(values: object, expected: tuple[int, ...]) -> bool:
    """Whether the first axes of an array are as expected; further ones are those of a batch."""
    shape = getattr(values, "shape", None)
    return shape is not None and shape[: len(expected)] == expected


def _misfit(
    sensors: str, equation: Equation, what: str, values: object, expected: tuple[int, ...], more: str
) -> SensorConfigError:
    shape = getattr(values, "shape", None)
    found = f"is a {type(values).__name__}" if shape is None else f"has the shape {shape}"
    return SensorConfigError(
        f"{_named(sensors, equation)}: {what} {found}, expected an array of the shape {expected}: a row for each of "
        f"its components{more}."
    )


def _named(sensors: str, equation: Equation) -> str:
    return f"sensors '{sensors}', '{equation.name}' ({equation.group})"

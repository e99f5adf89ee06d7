"""LTL and LTDL factorisations of a matrix with branch-induced sparsity, and products and solves with the factors.

H = L^T L or H = L^T D L with L lower triangular: neither ever touches a branch-induced zero, on either side, and there
is no fill-in. Everything here works over any scalar and with batch axes last, and reads the lower triangle only.

Source: RBDA ch. 6.5, tables 6.3, 6.5 and 6.6.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.counting import Cost
from nori_dyn.algebra.rows import combination, divided
from nori_dyn.algebra.scalars import is_numeric, is_zero, sqrt
from nori_dyn.algebra.spatial import transpose, zeros
from nori_dyn.errors import InputError, NotPositiveDefiniteError
from nori_dyn.model.paths import ancestors, descendants, path
from nori_dyn.recursions.sparsity import checked_parents, depth_sums, inertia_pattern
from nori_dyn.recursions.state import scalars
from nori_dyn.typing import Array

SYMMETRY = 1e-9
"""Largest difference between H and its transpose, relative to the largest entry; a branch-induced zero likewise."""


class LTDL(NamedTuple):
    """H = L^T D L.

    Attributes:
        L: unit lower triangular (n, n, ...).
        D: the diagonal (n, ...).
    """

    L: Array
    D: Array


def ltl(H: ArrayLike, parents: Sequence[int]) -> Array:
    """The lower triangular L (n, n, ...) with H = L^T L.

    Args:
        H: symmetric positive definite (n, n, ...), zero outside `inertia_pattern`.
        parents: of each freedom (n), see `expanded_parents`; n - 1 in a row for a matrix without zeros.

    Raises:
        InputError: parents that are not those of a tree, H of another size, not symmetric, not finite, with entries
            where the tree has none, or not positive definite: names the entry.

    Source: RBDA table 6.3.

    Example:
        >>> H = nd.crba(nd.autotree(2), np.zeros(2))
        >>> L = nd.ltl(H, parents=[-1, 0])
        >>> np.allclose(L.T @ L, H)
        True
    """
    L, parents = _checked(H, parents)
    ltl_in_place(L, parents)
    return L


def ltdl(H: ArrayLike, parents: Sequence[int]) -> LTDL:
    """The unit lower triangular L (n, n, ...) and the diagonal D (n, ...) with H = L^T D L.

    Arguments and errors are those of `ltl`. Source: RBDA table 6.3.

    Example:
        >>> L, D = nd.ltdl(np.array([[5.0, 2.0], [2.0, 1.0]]), parents=[-1, 0])
        >>> print(L, D)
        [[1. 0.]
         [2. 1.]] [1. 1.]
    """
    L, parents = _checked(H, parents)
    ltdl_in_place(L, parents)
    n = len(L)
    D = np.array(L[range(n), range(n)])
    L[range(n), range(n)] = 1
    return LTDL(L, D)


def ltl_in_place(H: Array, parents: Sequence[int]) -> None:
    """Replace the lower triangle of H (n, n, ...) by that of L, H = L^T L, where the tree has entries.

    Raises:
        NotPositiveDefiniteError: a pivot is not positive.
    """
    for k in reversed(range(len(H))):
        _check_pivot(H[k, k], k)
        H[k, k] = sqrt(H[k, k])
        path = tuple(ancestors(parents, k))
        for i in path:
            H[k, i] = H[k, i] / H[k, k]
        for place, i in enumerate(path):
            for j in path[place:]:
                H[i, j] = H[i, j] - H[k, i] * H[k, j]


def ltdl_in_place(H: Array, parents: Sequence[int]) -> None:
    """Replace the lower triangle of H (n, n, ...) by those of L and D, H = L^T D L, where the tree has entries.

    D is on the diagonal, where L is 1.

    Raises:
        NotPositiveDefiniteError: a pivot is not positive.
    """
    n, below = len(H), descendants(parents)
    rows, L = list(H), list(H)
    for k in reversed(range(n)):
        way = list(path(parents, k))
        begin = zeros((n,), H[k])
        begin[way] = H[k, way]
        rows[k] = combination(
            begin, [L[j][k] for j in below[k]], [rows[j] for j in below[k]], slice(k + 1), subtracted=True
        )
        _check_pivot(rows[k][k], k)
        L[k] = divided(rows[k], rows[k][k], slice(k))
        H[k, k], H[k, way[1:]] = rows[k][k], L[k][way[1:]]


def times_L(L: Array, parents: Sequence[int], x: Array, unit: bool = False) -> Array:
    """L x (n, ...) for x (n, ...); `unit` takes the diagonal of L for ones. Source: RBDA table 6.5."""
    y = _copy(x)
    for i in reversed(range(len(L))):
        if not unit:
            y[i] = L[i, i] * y[i]
        for j in ancestors(parents, i):
            y[i] = y[i] + L[i, j] * x[j]
    return y


def times_L_transpose(L: Array, parents: Sequence[int], x: Array, unit: bool = False) -> Array:
    """L^T x (n, ...), see `times_L`."""
    y = _copy(x)
    for i in range(len(L)):
        if not unit:
            y[i] = L[i, i] * y[i]
        for j in ancestors(parents, i):
            y[j] = y[j] + L[i, j] * x[i]
    return y


def solve_L(L: Array, parents: Sequence[int], x: Array, unit: bool = False) -> Array:
    """L^-1 x (n, ...), see `times_L`."""
    y = _copy(x)
    for i in range(len(L)):
        for j in ancestors(parents, i):
            y[i] = y[i] - L[i, j] * y[j]
        if not unit:
            y[i] = y[i] / L[i, i]
    return y


def solve_L_transpose(L: Array, parents: Sequence[int], x: Array, unit: bool = False) -> Array:
    """L^-T x (n, ...), see `times_L`."""
    y = _copy(x)
    for i in reversed(range(len(L))):
        if not unit:
            y[i] = y[i] / L[i, i]
        for j in ancestors(parents, i):
            y[j] = y[j] - L[i, j] * y[i]
    return y


def times_H(H: Array, parents: Sequence[int], x: Array) -> Array:
    """H x (n, ...) for x (n, ...). Source: RBDA table 6.5."""
    y = _copy(x)
    for i in range(len(H)):
        y[i] = H[i, i] * x[i]
        for j in ancestors(parents, i):
            y[i] = y[i] + H[i, j] * x[j]
            y[j] = y[j] + H[i, j] * x[i]
    return y


def solve_ltl(L: Array, parents: Sequence[int], b: Array) -> Array:
    """H^-1 b (n, ...) for H = L^T L."""
    return solve_L(L, parents, solve_L_transpose(L, parents, b))


def solve_ltdl(factors: LTDL, parents: Sequence[int], b: Array) -> Array:
    """H^-1 b (n, ...) for H = L^T D L."""
    L, D = factors
    y = solve_L_transpose(L, parents, b, unit=True)
    return solve_L(L, parents, np.array([x / d for x, d in zip(y, D, strict=True)], dtype=y.dtype), unit=True)


def forward_rows(factors: LTDL, parents: Sequence[int], B: Array) -> list[Array]:
    """L^-T B for H = L^T D L and B (n, m, ...), row by row."""
    L, rows = factors.L, list(B)
    for k, below in reversed(list(enumerate(descendants(parents)))):
        rows[k] = combination(rows[k], [L[j, k] for j in below], [rows[j] for j in below], subtracted=True)
    return rows


def solve_rows(factors: LTDL, parents: Sequence[int], B: Array) -> Array:
    """H^-1 B (n, m, ...) for H = L^T D L and B (n, m, ...), whole rows at a time."""
    L, D = factors
    rows = forward_rows(factors, parents, B)
    for k, row in enumerate(rows):
        above = list(ancestors(parents, k))
        rows[k] = combination(divided(row, D[k]), [L[k, j] for j in above], [rows[j] for j in above], subtracted=True)
    return np.stack(rows)


def ltdl_cost(parents: Sequence[int]) -> Cost:
    """The operations of `ltdl`: D_1 divisions, D_2 multiplications and additions.

    Source: RBDA table 6.6.
    """
    D_1, D_2 = depth_sums(parents)
    return Cost(D_2, D_2, D_1)


def inverse_of(factors: LTDL, parents: Sequence[int]) -> Array:
    """The inverse (n, n, ...) of L^T D L with the sparsity of a tree."""
    D = factors.D
    n = len(D)

    # Rows of Y = L^-T: L^T Y = 1.
    one = zeros((n, n), D)
    one[range(n), range(n)] = 1
    Y = forward_rows(factors, parents, one)

    # Rows of Y^T D^-1 Y, from the diagonal on.
    scaled = [divided(Y_k, D_k) for D_k, Y_k in zip(D, Y, strict=True)]
    Minv = zeros((n, n), D)
    for i in range(n):
        way, later = list(path(parents, i)), slice(i, n)
        row = combination(zeros((n,), D), [Y[k][i] for k in way], [scaled[k] for k in way], later)
        Minv[i, later] = Minv[later, i] = row[later]
    return Minv


def inverse(A: Array) -> Array:
    """The inverse of a symmetric positive definite matrix (n, n, ...) without zeros.

    Raises:
        NotPositiveDefiniteError: a pivot is not positive.
    """
    n = len(A)
    if n == 0:
        return A
    chain = tuple(range(-1, n - 1))
    factors = np.array(A)
    ltdl_in_place(factors, chain)
    return inverse_of(LTDL(factors, factors[range(n), range(n)]), chain)


def _copy(x: Array) -> Array:
    x = np.asarray(x)
    return x.astype(float) if is_numeric(x) else x.copy()


def _check_pivot(pivot: Any, k: int) -> None:
    if is_zero(pivot):
        raise NotPositiveDefiniteError(k, 0.0)
    if isinstance(pivot, np.ndarray | np.floating) and is_numeric(np.asarray(pivot)):
        smallest = np.min(pivot)
        if not smallest > 0:
            raise NotPositiveDefiniteError(k, float(smallest))


def _checked(H: ArrayLike, parents: Sequence[int]) -> tuple[Array, tuple[int, ...]]:
    """A lower triangular copy of H, and its parents."""
    parents = checked_parents(parents)
    n = len(parents)
    H = scalars("H", H, ())
    if H.shape[:2] != (n, n):
        raise InputError(f"H has shape {H.shape}, but there are {n} parents: expected ({n}, {n}).")
    if is_numeric(H):
        _check_values(H, parents)
    lower = np.tril(np.ones((n, n), dtype=bool)).reshape((n, n) + (1,) * (H.ndim - 2))
    return np.where(lower, H, 0), parents


def _check_values(H: Array, parents: Sequence[int]) -> None:
    def refuse(wrong: Any, what: str) -> None:
        if wrong.any():
            place = tuple(int(k) for k in np.argwhere(wrong)[0])
            i, j = place[:2]
            name = f"H[{', '.join(map(str, place))}]"
            raise InputError(f"{name} is {what.format(H[place], H[(j, i, *place[2:])], i=i, j=j)}")

    size = SYMMETRY * np.abs(H).max(initial=0.0)
    refuse(np.abs(H - transpose(H)) > size, "{0:.6g}, but {1:.6g} across the diagonal: H must be symmetric.")
    outside = ~inertia_pattern(parents).reshape((len(H), len(H)) + (1,) * (H.ndim - 2))
    refuse(
        (np.abs(H) > size) & outside,
        "{0:.6g}, but freedoms {i} and {j} lie on different branches of the tree: it must be zero.",
    )

"""Derivatives of estimates in eighty digits: of the rows by complex steps, of what they determine by linear algebra.

With h the step, an analytic function f of q, qd and y has f(x + ih) = f(x) + ih f'(x) up to h^2, and nothing cancels.
The estimate obeys K x + k = 0, the conditions of weighted least squares with exact rows, so that its derivative obeys
K x' + (K' x + k') = 0. Heavy and light rows meet in K, which has digits enough for both.

Source: Squire and Trapp, Using complex variables to estimate derivatives of real functions (1998); Björck, Numerical
Methods for Least Squares Problems, ch. 5.1 (equality constraints).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

from nori_dyn.model.tree import KinematicTree
from tests.attack.oracle import Extended, Reading, States, rows
from tests.oracles import motion_of

DIGITS = 80

STEP = np.longdouble(1e-200)
"""What inputs are moved by: its square is nothing."""

Numbers = NDArray[np.object_]
"""Numbers of mpmath."""


class Moving(NamedTuple):
    """Rows that are affine in z (m, 1 + nz), the constant term first; their rates along K directions (K, m, 1 + nz)."""

    values: Extended
    rates: Extended

    def nudged(self, nudge: Callable[[Extended], Extended]) -> Moving:
        """Them changed a little, by what changes rows (N, m, 1 + nz)."""
        return Moving(nudge(self.values[None])[0], nudge(self.rates))


class Parts(NamedTuple):
    """What an estimate is made of at one state.

    Attributes:
        d: the variables.
        exact, weighed: the rows that are to be zero, and those whose weighed squares are to be small.
        weights: of each weighed row (m,).
        weight_of: the number of the weight of each (m,).
    """

    d: Moving
    exact: Moving
    weighed: Moving
    weights: Extended
    weight_of: NDArray[np.intp]


def parts(
    tree: KinematicTree,
    state: States,
    known: Mapping[int, float],
    noisy: Sequence[str],
    readings: Sequence[Reading],
    kinds: Sequence[str],
) -> Parts:
    """What the estimate of one state (1, ...) is made of, as it moves along q, then with qd, then with y."""
    moved = _moved(tree, state)
    found = motion_of(tree, moved.q, moved.qd, known, noisy)
    given = list(rows(found, readings, moved))
    d = [x for kind in kinds for x in found.of[kind]]
    exact = [row.values for row in given if row.weights is None]
    weighed = [row for row in given if row.weights is not None]
    weights = [row.weights[0] for row in weighed if row.weights is not None]
    return Parts(
        _split(d),
        _split([d[0][:, :0], *exact]),
        _split([d[0][:, :0], *(row.values for row in weighed)]),
        np.concatenate([np.zeros(0, np.longdouble), *weights]),
        _weight_of_rows(tree, noisy, readings),
    )


def _moved(tree: KinematicTree, state: States) -> States:
    """One state (1, ...) moved along each freedom of q, then by each number of qd and y, by a complex step."""
    nv, N = tree.nv, 2 * tree.nv + state.y.shape[1]
    q, qd, y = (np.repeat(x.astype(np.clongdouble), N, axis=0) for x in (state.q, state.qd, state.y))
    for joint, part, own in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        for k, v in enumerate(range(own.start, own.stop)):
            q[v, part] += 1j * STEP * _rate(joint, state.q[0, part].astype(np.longdouble), k)
    qd[nv + np.arange(nv), np.arange(nv)] += 1j * STEP
    y[np.arange(2 * nv, N), np.arange(N - 2 * nv)] += 1j * STEP
    return States(q, qd, y, np.repeat(state.weights, N, axis=0))


def _rate(joint: Any, q: Extended, k: int) -> Extended:
    """The rate (nq,) of a joint's coordinates along its freedom k."""
    unit = np.eye(joint.nv, dtype=np.longdouble)[k]
    if joint.kind == "spherical":
        return _turning(q, unit)
    if joint.kind != "free":
        return unit
    v, s, along = q[3:6], q[6], unit[3:]
    turned = along + 2 * np.cross(v, np.cross(v, along) + s * along)
    return np.concatenate([turned, _turning(q[3:], unit[:3])])


def _turning(quaternion: Extended, w: Extended) -> Extended:
    """Half the quaternion times (w, 0), w being in the axes of the child."""
    v, s = quaternion[:3], quaternion[3]
    return np.append(s * w + np.cross(v, w), -(v @ w)) / 2


def _split(blocks: Sequence[Any]) -> Moving:
    values = np.concatenate(blocks, axis=1)
    return Moving(values[0].real, values.imag / STEP)


def _weight_of_rows(tree: KinematicTree, noisy: Sequence[str], readings: Sequence[Reading]) -> NDArray[np.intp]:
    """The number of the weight of each weighed row, in the order of `oracle.rows`."""
    of_noise = [joint.nv if law == "3tau" else 6 for joint in tree.joints for law in noisy]
    found = [np.full(size, k) for k, size in enumerate(size for size in of_noise if size)]
    count = len(found)
    for reading in readings:
        if not reading.is_exact:
            size = len(reading.components)
            found.append(count + (np.arange(size) if reading.n_weights > 1 else np.zeros(size)))
            count += reading.n_weights
    return np.concatenate([np.zeros(0), *found]).astype(np.intp)


def derivatives(given: Parts, n_weights: int) -> NDArray[np.float64] | None:
    """The derivatives (n, K + n_weights) of d by the directions, then by the weights; None where singular."""
    with mp.workdps(DIGITS):
        zero = mp.mpf(0)
        C, A, V = (_exactly(part.values) for part in (given.exact, given.weighed, given.d))
        W = _exactly(given.weights)
        n, m = C.shape[1] - 1, len(C)
        WA = W[:, None] * A
        H = A[:, 1:].T @ WA[:, 1:] + zero if len(A) else np.full((n, n), zero)
        K = np.block([[H, C[:, 1:].T], [C[:, 1:], np.full((m, m), zero)]])
        solve = _factorised(K)
        if solve is None:
            return None
        x = solve(-np.concatenate([_product(A[:, 1:].T, WA[:, 0]), C[:, 0]])[:, None])[:, 0]
        z = np.concatenate([[mp.mpf(1)], x[:n]])
        left, right = _product(A, z), []
        for dC, dA in zip(*(map(_exactly, part.rates) for part in (given.exact, given.weighed)), strict=True):
            force = _product(dA[:, 1:].T, W * left) + _product(WA[:, 1:].T, _product(dA, z))
            right.append(np.concatenate([_product(dC[:, 1:].T, x[n:]) + force, _product(dC, z)]))
        for k in range(n_weights):
            mine = given.weight_of == k
            right.append(np.concatenate([_product(A[mine, 1:].T, left[mine]), np.full(m, zero)]))
        found = V[:, 1:] @ solve(-np.array(right, dtype=object).T)[:n]
        for k, rate in enumerate(given.d.rates):
            found[:, k] += _product(_exactly(rate), z)
        return found.astype(float)


def _product(A: Numbers, x: Numbers) -> Numbers:
    """A x; most of a matrix of rates is zero."""
    found = np.full(len(A), mp.mpf(0))
    for i, k in zip(*A.nonzero(), strict=True):
        found[i] += A[i, k] * x[k]
    return found


def _exactly(array: Extended) -> Numbers:
    """Numbers in extended precision as such of mpmath, exactly: as the sum of two doubles."""
    high = array.astype(np.float64)
    low = (array - high).astype(np.float64)
    found = np.full(array.shape, mp.mpf(0))
    some = np.nonzero(array)
    found[some] = [mp.mpf(a) + b for a, b in zip(high[some].tolist(), low[some].tolist(), strict=True)]
    return found


def _factorised(K: Numbers) -> Callable[[Numbers], Numbers] | None:
    """What solves K x = b for columns b (n, k), by Gaussian elimination with pivoting; None where singular."""
    LU, n = K.copy(), len(K)
    order = np.arange(n)
    for k in range(n):
        best = k + int(np.argmax([abs(x) for x in LU[k:, k]]))
        if not LU[best, k]:
            return None
        LU[[k, best]], order[[k, best]] = LU[[best, k]], order[[best, k]]
        below, after = k + 1 + np.flatnonzero(LU[k + 1 :, k]), k + 1 + np.flatnonzero(LU[k, k + 1 :])
        LU[below, k] = LU[below, k] / LU[k, k]
        LU[np.ix_(below, after)] -= LU[below, k][:, None] * LU[k, after]

    def solve(b: Numbers) -> Numbers:
        x = b[order].copy()
        for k in range(n):
            below = k + 1 + np.flatnonzero(LU[k + 1 :, k])
            x[below] -= LU[below, k][:, None] * x[k]
        for k in reversed(range(n)):
            x[k] = x[k] / LU[k, k]
            above = np.flatnonzero(LU[:k, k])
            x[above] -= LU[above, k][:, None] * x[k]
        return x

    return solve

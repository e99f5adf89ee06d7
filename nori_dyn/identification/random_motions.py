"""Rows of regressions at random motions in doubles, closed ones where a robot has loops or couplings.

Almost no configuration is closed, so that a random point of a prime field is no motion of such a robot. Its rank is
taken in doubles, as that of D is (`nori_dyn/observe/generic.py`): at closed configurations, at velocities that keep
them closed, and at accelerations that do.

Source: own derivation (tests/unit/identification/test_closed_robots.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.linalg import lstsq

from nori_dyn.algebra.derivatives import directional, replaced
from nori_dyn.algebra.expressions import Expr
from nori_dyn.algebra.ranges import numbers
from nori_dyn.algebra.ranks import CLEAR, clear_rank, largest_clear
from nori_dyn.errors import NotClosedError
from nori_dyn.identification.elimination import annihilator
from nori_dyn.identification.moments import triangular
from nori_dyn.identification.regression import Regression
from nori_dyn.model.closure import closed, gap_rate
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats, Indices

RANK_TOLERANCE = 1e-7
"""Share of a column of unit length below which what others leave of it is taken for rounding."""

REPEATED = 1e-7
"""Singular values of loops below this share of the largest are those of rows that repeat others."""

Values = Mapping[int, Floats]
"""Values (n,) of inputs, by their index."""


def still_numbers(regression: Regression, bodies: Iterable[int]) -> tuple[list[int], list[int]]:
    """Numbers of q, and freedoms, of joints that stand still."""
    tree, bodies = regression.system.tree, list(bodies)
    return [k for i in bodies for k in numbers(tree.q_slices[i])], [
        k for i in bodies for k in numbers(tree.v_slices[i])
    ]


def random_motions(regression: Regression, bodies: Sequence[int], n: int, rng: np.random.Generator) -> Values:
    """Random motions at which the joints of some bodies stand still, and readings of any size."""
    tree = regression.system.tree
    still_q, still_v = still_numbers(regression, bodies)
    Q = tree.random_configurations(n, rng)
    Q[:, still_q] = Q[0, still_q]
    Qd, Qdd = rng.normal(size=(2, n, tree.nv))
    Qd[:, still_v] = Qdd[:, still_v] = 0.0
    if tree.closing_parts:
        if bodies:
            Q = _closed_with(tree, Q, [name for i, name in enumerate(tree.joint_names) if i not in bodies])
        J = np.moveaxis(gap_rate(positions(tree, Q.T)), 2, 0)
        J[:, :, still_v] = 0.0
        clear = _clear(J)
        Q, J = Q[clear], J[clear]
        Qd -= (np.linalg.pinv(J, rcond=REPEATED) @ (J @ Qd[:, :, None]))[:, :, 0]
    state = {"q": Q, "qd": Qd, "qdd": Qdd, "y": rng.normal(size=(n, regression.system.ny))}
    values = {x.index: state[name][:, k] for name, array in regression.inputs.items() for k, x in enumerate(array)}
    moved = [x for k, x in enumerate(regression.inputs["qdd"]) if k not in still_v]
    return _corrected(regression, values, regression.closing, moved)


def _closed_with(tree: KinematicTree, Q: Floats, free: Sequence[str]) -> Floats:
    """Closed configurations next to some (n, nq), by moving some joints; the first for those that are not closed so."""
    found = Q.copy()
    for k, q in enumerate(Q):
        try:
            found[k] = closed(tree, q, free=free)
        except NotClosedError:
            found[k] = found[0]
    return found


def _clear(J: Floats) -> Indices:
    """As many closed configurations as there are, of those that are next to no singular one, by their Jacobians."""
    values = np.linalg.svd(J, compute_uv=False)
    largest = np.maximum(values.max(axis=1, initial=0.0), np.finfo(float).tiny)
    found = [clear_rank(each, REPEATED) for each in values / largest[:, None]]
    rank = largest_clear(*zip(*found, strict=True))
    clear = [k for k, (own, clarity) in enumerate(found) if own == rank and clarity >= CLEAR]
    chosen = clear or [k for k, (own, _) in enumerate(found) if own == rank]
    return np.resize(np.array(chosen, dtype=np.intp), len(J))


def possible_motions(
    regression: Regression, bodies: Sequence[int], n: int, rng: np.random.Generator, phi: Floats
) -> Values:
    """Those of random motions that a robot of parameters phi (n_parameters,) can make, with what it reads."""
    _, still_v = still_numbers(regression, bodies)
    values = dict(random_motions(regression, bodies, n, rng))
    values |= {x.index: np.full(n, value) for x, value in zip(regression.phi, phi, strict=True)}
    values |= {x.index: rng.normal(size=n) for x in regression.w}
    unread = [regression.total[row] for row, reading in enumerate(regression.reads) if reading < 0]
    moved = [x for k, x in enumerate(regression.inputs["qdd"]) if k not in still_v] + list(regression.w)
    values = dict(_corrected(regression, values, [*regression.closing, *unread], moved))
    own = {regression.inputs["y"][k].index: row for row, k in enumerate(regression.reads) if k >= 0}
    graph, place = regression.graph, regression.parameters.place
    total = graph.evaluate(replaced(regression.total, dict.fromkeys(own, graph.zero)), values)
    for index, row in own.items():
        gain = place.get(f"gain:{regression.row_names[row]}")
        values[index] = total[row] / (1.0 if gain is None else phi[gain])
    return values


def rows_at(regression: Regression, values: Values) -> Floats:
    """Rows (n_rows, columns) of W at some motions, unknown wrenches eliminated."""
    W, N = _dense(regression, values)
    rows: Floats = annihilator(N, np.zeros(regression.n_rows, dtype=bool)) @ W if regression.unknowns else W
    return rows.reshape(-1, W.shape[2])


def unknowns_at(regression: Regression, values: Values) -> int:
    """How many of the unknown wrenches of a sample its rows determine."""
    _, N = _dense(regression, values)
    return int(np.max(np.linalg.matrix_rank(N, rtol=REPEATED), initial=0)) if N.size else 0


def _dense(regression: Regression, values: Values) -> tuple[Floats, Floats]:
    """W (n, rows, columns) and N (n, rows, unknowns) at n motions."""
    entries = regression.graph.evaluate([*regression.W.values(), *regression.N.values(), *regression.c], values)
    n = max(len(value) for value in values.values())
    return regression.dense(np.broadcast_to(entries, (len(entries), n)).T)[:2]


def enough(regression: Regression, rank: int) -> int:
    """Number of motions that determine as many combinations well."""
    return 4 * (rank // max(regression.n_rows - len(regression.unknowns), 1) + 8)


def _corrected(regression: Regression, values: Values, rows: Sequence[Expr], moved: Sequence[Expr]) -> Values:
    """Motions next to some at which rows hold, that are linear in what is moved."""
    if not rows or not moved:
        return values
    slopes = directional(rows, [{x.index: regression.graph.one} for x in moved], "reverse")
    n = max(len(value) for value in values.values())
    J = np.zeros((n, len(rows), len(moved)))
    found = np.broadcast_to(regression.graph.evaluate([*slopes.values(), *rows], values), (len(slopes) + len(rows), n))
    for (row, column), slope in zip(slopes, found, strict=False):
        J[:, row, column] = slope
    step = np.linalg.pinv(J, rcond=REPEATED) @ found[len(slopes) :].T[:, :, None]
    return {**values, **{x.index: values[x.index] - step[:, k, 0] for k, x in enumerate(moved)}}


@dataclass(frozen=True, slots=True, eq=False)
class NumericSpan:
    """What rows span, by their columns in order.

    Attributes:
        independent: the first columns on which all others depend.
        factors: of each other column over these (n_independent, n_columns).
        gap: how many times less, at the least, is left of columns that are taken as dependent than of others.
    """

    independent: tuple[int, ...]
    factors: Floats
    gap: float

    @staticmethod
    def of(rows: Floats) -> NumericSpan:
        """What rows (n, columns) span."""
        sizes = np.linalg.norm(rows, axis=0)
        felt = sizes > RANK_TOLERANCE * sizes.max(initial=0.0)
        scale = np.where(felt, sizes, 1.0)
        R = triangular(np.asfortranarray(np.where(felt, rows / scale, 0.0)))
        basis, independent, kept, dropped = np.zeros((len(R), 0)), list[int](), 1.0, float(np.finfo(float).eps)
        for k, column in enumerate(R.T):
            left = column - basis @ (basis.T @ column)
            left -= basis @ (basis.T @ left)
            size = float(np.linalg.norm(left))
            if size > RANK_TOLERANCE:
                basis, kept = np.column_stack([basis, left / size]), min(kept, size)
                independent.append(k)
            else:
                dropped = max(dropped, size)
        factors = np.zeros((len(independent), len(R)))
        if independent:
            factors = lstsq(R[:, independent], R)[0]
        factors[np.abs(factors) < RANK_TOLERANCE] = 0.0
        return NumericSpan(tuple(independent), factors * scale / scale[independent, None], kept / dropped)


def stacked(regressions: Sequence[Regression], motions: Sequence[Values], order: Indices) -> NumericSpan:
    """What the rows of contact states span at some motions of each, over the parameters in an order."""
    each = zip(regressions, motions, strict=True)
    return NumericSpan.of(np.vstack([rows_at(regression, values)[:, order] for regression, values in each]))

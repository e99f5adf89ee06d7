"""Base parameters: which combinations of parameters are identifiable from some sensors at all, exactly.

However long a robot moves, its readings depend on combinations of parameters only: the rank of W, stacked over many
motions, is less than their number. Over a prime field, at random motions, that rank is exact, without a tolerance:
motions are added until one more adds nothing, and as that one is as random as all others, none would.

A robot makes those motions only at which rows without a reading hold, as no motor moves its base; and gains multiply
what its parameters make it read. So there are combinations that motions at will would
identify, and possible ones do not: a robot that flies freely moves the same way with all of its masses doubled. These
are ties.

Robots with loops or couplings make closed motions only, and the rank is taken in doubles there: `random_motions`.

Of dependent columns the first, from the root to the tips, are kept as independent, and the others are combinations of
these: W phi = W_B (phi_B + K phi_D), as the rules of Khalil and Dombre regroup parameters into the link before.

Source: Gautier, Numerical calculation of the base inertial parameters of robots (1991); Khalil and Dombre, ch. 9; the
rank over a field is ours (tests/unit/identification/test_base_parameters.py).
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lstsq

from nori_dyn.algebra.derivatives import directional, replaced
from nori_dyn.algebra.expressions import Expr
from nori_dyn.algebra.field_points import FieldPoints, random_numbers
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.algebra.ranges import numbers
from nori_dyn.algebra.ranks import CLEAR, clear_rank, largest_clear
from nori_dyn.errors import NotClosedError
from nori_dyn.identification.elimination import annihilator
from nori_dyn.identification.moments import triangular
from nori_dyn.identification.parameters import Parameters
from nori_dyn.identification.regression import Regression
from nori_dyn.model.closure import closed, gap_rate
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.field import FieldPositions, FieldVector, Span
from nori_dyn.tables import describe_sum, spaced
from nori_dyn.typing import Array, Floats, Indices

ENTRY_DEGREE = 64
"""Bound on the degree of an entry of W a joint on the way to it, in the random numbers, cleared of denominators."""

WHOLE = 1e-9
"""Distance from a whole number below which a factor in doubles is taken for it."""

AT_ONCE = 8
"""Random motions that are looked at together."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Which combinations of parameters are identifiable.

    Attributes:
        parameters: all of them.
        independent: the columns that are kept, in order: as many as there are combinations.
        dependent: the columns that are combinations of these.
        K: of the dependent columns over the independent ones (n_independent, n_dependent).
        ties: of the independent columns those that are identifiable up to a factor only, which each has in common with
            others of the independent ones: these.
        locked: the joints that stand still.
        n_unknown: how many of the unknown wrenches of a sample its rows determine; these rows say nothing more.
        error: bound on the probability that the number of combinations is wrong; None where it is numerical.
        gap: there, how many times less, at the least, is left of columns that are taken as dependent than of others;
            infinite where the rank is exact.
    """

    parameters: Parameters
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    K: Floats
    ties: Mapping[int, tuple[int, ...]]
    locked: tuple[str, ...]
    n_unknown: int
    error: float | None
    gap: float = np.inf

    @property
    def rank(self) -> int:
        """The number of identifiable combinations, a common factor less for each tie."""
        return len(self.independent) - len(self.ties)

    @cached_property
    def G(self) -> Floats:
        """The combinations as rows over all parameters (n_independent, n): beta = G phi."""
        G = np.zeros((len(self.independent), len(self.parameters)))
        G[np.arange(len(G)), list(self.independent)] = 1.0
        G[:, list(self.dependent)] = self.K
        return G

    @cached_property
    def alone(self) -> tuple[int, ...]:
        """The parameters that are identifiable by themselves."""
        return tuple(c for k, c in enumerate(self.independent) if not self.K[k].any())

    def terms(self, k: int) -> dict[str, float]:
        """Factors of the k-th combination by the names of parameters, its independent one first."""
        names = self.parameters.names
        others = {names[c]: factor for factor, c in zip(self.K[k].tolist(), self.dependent, strict=True) if factor}
        return {names[self.independent[k]]: 1.0, **others}

    def combination(self, k: int) -> str:
        """The k-th combination in words: "I:l2.zz + 0.25 m:l3"."""
        return spaced(describe_sum(self.terms(k)))

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each combination: its independent parameter, with a + where there is more to it."""
        names = self.parameters.names
        return tuple(names[c] + ("" if c in self.alone else " +") for c in self.independent)


def base_parameters(
    regressions: Regression | Sequence[Regression], locked: Iterable[str] = (), seed: int = 0
) -> BaseParameters:
    """Base parameters of a regression, or of those of a robot's contact states together.

    Args:
        regressions: the regressions, over the same parameters.
        locked: joints that stand still, wherever.
        seed: seed of the random motions.

    Raises:
        UnknownModelNameError: a joint that the robot does not have.
        NotClosedError: loops that cannot be closed.
    """
    regressions = (regressions,) if isinstance(regressions, Regression) else tuple(regressions)
    tree, locked = regressions[0].system.tree, tuple(locked)
    bodies = [tree.joint(name) for name in locked]
    of = _where_closed if tree.closing_parts else _exactly
    return of(regressions, bodies, locked, seed)


def _exactly(
    regressions: Sequence[Regression], bodies: Sequence[int], locked: tuple[str, ...], seed: int
) -> BaseParameters:
    """Base parameters over a prime field."""
    rng = random.Random(seed)
    parameters = regressions[0].parameters
    order, phi = column_order(parameters), random_numbers(rng, len(parameters))
    states = [_FieldMotions(each, bodies, rng, phi) for each in regressions]
    anyhow, n_unknown, n_motions = _span_of([each.rows for each in states])
    possible = anyhow
    if any(each.are_limited for each in states):
        possible, _, n_able = _span_of([each.possible_rows for each in states])
    else:
        n_able = n_motions
    independent = [order[pivot] for pivot in sorted(anyhow.basis)]
    seen = set(independent)
    dependent = [column for column in order if column not in seen]
    K = np.zeros((len(independent), len(dependent)))
    if K.size:  # the field says where it is zero; the rest is of as many random motions as determine it well
        doubles, n = np.random.default_rng(seed), len(independent)
        motions = (random_motions(each, bodies, enough(each, n), doubles) for each in regressions)
        rows = np.vstack([rows_at(each, motion) for each, motion in zip(regressions, motions, strict=True)])
        scale = np.linalg.norm(rows[:, independent], axis=0)
        found = lstsq(rows[:, independent] / scale, rows[:, dependent])[0] / scale[:, None]
        place, whole = {column: k for k, column in enumerate(dependent)}, {v % PRIME: v for v in (1, -1, 2, -2)}
        for k, pivot in enumerate(sorted(anyhow.basis)):
            for at, value in anyhow.basis[pivot].items():
                if at != pivot:
                    column = place[order[at]]
                    K[k, column] = whole.get(int(value), found[k, column])
    ties = {
        order[tied]: tuple(order[pivot] for pivot in sorted(possible.basis) if tied in possible.basis[pivot])
        for tied in sorted(anyhow.basis.keys() - possible.basis.keys())
    }
    degree = ENTRY_DEGREE * (max(regressions[0].system.tree.depths()) + 1)
    error = min(1.0, (len(independent) + 1) * (n_motions + n_able + 1) * degree / PRIME)
    return BaseParameters(parameters, tuple(independent), tuple(dependent), K, ties, locked, n_unknown, error)


def _where_closed(
    regressions: Sequence[Regression], bodies: Sequence[int], locked: tuple[str, ...], seed: int
) -> BaseParameters:
    """Base parameters in doubles, at closed motions."""
    rng = np.random.default_rng(seed)
    parameters = regressions[0].parameters
    order, n = np.array(column_order(parameters), dtype=np.intp), len(parameters)
    motions = [random_motions(each, bodies, enough(each, n), rng) for each in regressions]
    anyhow = stacked(regressions, motions, order)
    independent = order[list(anyhow.independent)]
    is_dependent = np.isin(order, independent, invert=True)
    K = anyhow.factors[:, is_dependent]
    for value in (1, -1, 2, -2):
        K[np.abs(K - value) < WHOLE] = value
    phi = rng.uniform(0.5, 2.0, size=n)
    able = [possible_motions(each, bodies, enough(each, n), rng, phi) for each in regressions]
    possible = stacked(regressions, able, independent)
    ties = {
        int(independent[k]): tuple(independent[j] for j in np.array(possible.independent)[possible.factors[:, k] != 0])
        for k in range(len(independent))
        if k not in possible.independent
    }
    n_unknown = max(unknowns_at(each, values) for each, values in zip(regressions, motions, strict=True))
    gap = min(anyhow.gap, possible.gap)
    return BaseParameters(
        parameters,
        tuple(independent.tolist()),
        tuple(order[is_dependent].tolist()),
        K,
        ties,
        locked,
        n_unknown,
        None,
        gap,
    )


def _span_of(
    states: Iterable[Callable[[int], Iterator[tuple[list[FieldVector], int]]]],
) -> tuple[Span, int, int]:
    """The span of the rows of motions in each contact state, of which some at once are given, until one adds nothing.

    Returns:
        The span, how many of the unknown wrenches the rows determine, of each motion, and how many motions there were.
    """
    span, n_unknown, n_motions = Span(), 0, 0
    for rows_of in states:
        is_more = True
        while is_more:
            for rows, n in rows_of(AT_ONCE):
                n_unknown, n_motions = max(n_unknown, n), n_motions + 1
                if not span.extend(rows):
                    is_more = False
                    break
    return span, n_unknown, n_motions


def column_order(parameters: Parameters) -> tuple[int, ...]:
    """Order of the columns, those first that are kept as independent: offsets and friction, then links from the root.

    Of a link rotational inertia and first moments come before the mass, which is regrouped into the link before.
    """
    tree, after = parameters.tree, {"I": 0, "mc": 1, "m": 2}

    def key(k: int) -> tuple[int, int, int, int]:
        each = parameters.each[k]
        if each.kind == "gain":
            return 2, 0, 0, k
        return (1, tree.link(each.owner), after[each.kind], k) if each.kind in after else (0, 0, 0, k)

    return tuple(sorted(range(len(parameters)), key=key))


class _FieldMotions:
    """Rows of W at random motions of the field, unknown wrenches eliminated.

    Args:
        regression: the regression.
        bodies: whose joints stand still.
        rng: draws the motions.
        phi: the parameters of a robot, for motions that it can make (n_parameters,).
    """

    def __init__(self, regression: Regression, bodies: Sequence[int], rng: random.Random, phi: Array) -> None:
        self._regression, self._rng, self._phi = regression, rng, phi
        self._place = {column: k for k, column in enumerate(column_order(regression.parameters))}
        self._still_q, self._still_v = still_numbers(regression, bodies)
        self._positions = FieldPositions(regression.graph, regression.system.tree, regression.inputs["q"], rng)
        self._unread = [row for row, reading in enumerate(regression.reads) if reading < 0]
        self._own = {regression.inputs["y"][k].index: row for row, k in enumerate(regression.reads) if k >= 0}

    @property
    def are_limited(self) -> bool:
        """Whether not every motion is possible, or readings multiply a gain."""
        return bool(self._unread or self._regression.parameters.of_kinds("gain"))

    def rows(self, n: int) -> Iterator[tuple[list[FieldVector], int]]:
        """Yield the rows of n motions over the columns in their order, and how many unknowns they determine besides."""
        return self._rows_at(self._points(n), n)

    def possible_rows(self, n: int) -> Iterator[tuple[list[FieldVector], int]]:
        """Yield those of n motions that a robot of some parameters can make, with what it reads."""
        regression = self._regression
        points = self._points(n)
        points.set_inputs({x.index: np.repeat(value, n) for x, value in zip(regression.phi, self._phi, strict=True)})
        points.set_inputs({x.index: self._random(n) for x in regression.w})
        if self._unread:
            points = points.elsewhere(self._corrected(points, n))
        total = points.values(replaced(regression.total, dict.fromkeys(self._own, regression.graph.zero)))
        read = {index: total[row] for index, row in self._own.items()}
        for index, row in self._own.items():
            gain = regression.parameters.place.get(f"gain:{regression.row_names[row]}")
            if gain is not None:
                read[index] = read[index] * pow(int(self._phi[gain]), -1, PRIME) % PRIME
        return self._rows_at(points.elsewhere(read), n)

    def _corrected(self, points: FieldPoints, n: int) -> dict[int, Array]:
        """Accelerations and unknown wrenches (n,), by their index, at which rows without a reading hold.

        Rows that none of them moves are left as they are.
        """
        regression, still = self._regression, set(self._still_v)
        moved = [x for k, x in enumerate(regression.inputs["qdd"]) if k not in still] + list(regression.w)
        unread = [regression.total[row] for row in self._unread]
        slopes = directional(unread, [{x.index: regression.graph.one} for x in moved], "reverse")
        values, errors = points.values(list(slopes.values())), points.values(unread)
        corrected = points.values(moved)
        end = len(moved)
        for motion in range(n):
            rows: list[dict[int, int]] = [{end: int(error)} for error in errors[:, motion]]
            for (row, column), value in zip(slopes, values[:, motion].tolist(), strict=True):
                if value:
                    rows[row][column] = value
            span = Span(end=end)
            span.extend(rows)
            for pivot, vector in span.basis.items():
                corrected[pivot, motion] = (corrected[pivot, motion] - int(vector.get(end, 0))) % PRIME
        return {x.index: values for x, values in zip(moved, corrected, strict=True)}

    def _rows_at(self, points: FieldPoints, n: int) -> Iterator[tuple[list[FieldVector], int]]:
        regression, n_w = self._regression, len(self._regression.unknowns)
        places = [(row, n_w + self._place[k]) for row, k in regression.W] + list(regression.N)
        values = points.values([*regression.W.values(), *regression.N.values()])
        for motion in range(n):
            rows: list[dict[int, int]] = [{} for _ in range(regression.n_rows)]
            for (row, column), value in zip(places, values[:, motion].tolist(), strict=True):
                if value:
                    rows[row][column] = value
            span = Span.of(row for row in rows if row) if n_w else None
            left = rows if span is None else [vector for pivot, vector in span.basis.items() if pivot >= n_w]
            yield (
                [{k - n_w: int(value) for k, value in row.items()} for row in left if row],
                0 if span is None else span.dimension - len(left),
            )

    def _points(self, n: int) -> FieldPoints:
        """Random motions, and readings of any size."""
        regression = self._regression
        inputs, tangents = self._positions.draw(n, self._still_q)
        for name in ("qd", "qdd"):
            inputs |= {x.index: self._random(n) for x in regression.inputs[name]}
            inputs |= {regression.inputs[name][k].index: np.zeros(n, dtype=object) for k in self._still_v}
        inputs |= {x.index: self._random(n) for x in regression.inputs["y"]}
        return FieldPoints(regression.graph, n, self._rng, inputs, tangents)

    def _random(self, n: int) -> Array:
        return random_numbers(self._rng, n)


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
    """Random motions at which the joints of some bodies stand still, and readings of any size.

    Almost no configuration is closed, so that a random point of a prime field is no motion of a robot with loops. Its
    rank is taken in doubles, as that of D is (`nori_dyn/observe/generic.py`): at closed configurations, at velocities
    that keep them closed, and at accelerations that do.

    Source: own derivation (tests/unit/identification/test_closed_robots.py).
    """
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
    layout, entries = regression.entries(range(len(regression.parameters)))
    found, n = regression.graph.evaluate(entries, values), max(len(value) for value in values.values())
    return layout.dense(np.broadcast_to(found, (len(entries), n)).T)[:2]


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

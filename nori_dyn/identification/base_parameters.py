"""Base parameters: which combinations of parameters some sensors tell at all, exactly.

However long a robot moves, its readings depend on combinations of parameters only: the rank of W, stacked over many
motions, is less than their number. Over a prime field, at random motions, that rank is exact, without a tolerance:
motions are added until one more adds nothing, and as that one is as random as all others, none would.

Of dependent columns the first, from the root to the tips, are kept as independent, and the others are combinations of
these: W phi = W_B (phi_B + K phi_D), as the rules of Khalil and Dombre regroup parameters into the link before.

Source: Gautier, Numerical calculation of the base inertial parameters of robots (1991); Khalil and Dombre, ch. 9; the
rank over a field is ours (tests/unit/identification/test_base_parameters.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg import lstsq

from nori_dyn.algebra.derivatives import replaced
from nori_dyn.algebra.expressions import PRIME
from nori_dyn.algebra.field_points import FieldPoints, random_numbers, random_quaternions
from nori_dyn.algebra.ranges import numbers
from nori_dyn.identification.elimination import without_unknowns
from nori_dyn.identification.parameters import Parameters
from nori_dyn.identification.regression import Regression
from nori_dyn.observe.field import FieldVector, Span
from nori_dyn.typing import Array, Floats

ENTRY_DEGREE = 64
"""Bound on the degree of an entry of W a joint on the way to it, in the random numbers, cleared of denominators."""

AT_ONCE = 8
"""Random motions that are looked at together."""


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Which combinations of parameters are told.

    Attributes:
        parameters: all of them.
        independent: the columns that are kept, in order: as many as there are combinations.
        dependent: the columns that are combinations of these.
        K: of the dependent columns over the independent ones (n_independent, n_dependent).
        locked: the joints that stand still.
        n_unknown: how many of the unknown wrenches of a sample its rows tell; these rows say nothing more.
        error: bound on the probability that the number of combinations is wrong.
    """

    parameters: Parameters
    independent: tuple[int, ...]
    dependent: tuple[int, ...]
    K: Floats
    locked: tuple[str, ...]
    n_unknown: int
    error: float

    @property
    def rank(self) -> int:
        """The number of combinations that are told."""
        return len(self.independent)

    @cached_property
    def G(self) -> Floats:
        """The combinations as rows over all parameters (rank, n): beta = G phi."""
        G = np.zeros((self.rank, len(self.parameters)))
        G[np.arange(self.rank), list(self.independent)] = 1.0
        G[:, list(self.dependent)] = self.K
        return G

    @cached_property
    def alone(self) -> tuple[int, ...]:
        """The parameters that are told by themselves."""
        return tuple(c for k, c in enumerate(self.independent) if not self.K[k].any())

    @cached_property
    def untold(self) -> tuple[int, ...]:
        """The parameters that no reading depends on, or only through an offset that is none of these parameters."""
        return tuple(c for k, c in enumerate(self.dependent) if not self.K[:, k].any())

    def combination(self, k: int, digits: int = 3) -> str:
        """Return what the k-th combination is: "I:l2.zz + 0.25 m:l3"."""
        terms = [(1.0, self.independent[k])]
        terms += [(factor, c) for factor, c in zip(self.K[k].tolist(), self.dependent, strict=True) if factor]
        shown = ""
        for factor, c in terms:
            sign = ("-" if factor < 0 else "") if not shown else (" - " if factor < 0 else " + ")
            size = "" if abs(factor) == 1 else f"{abs(factor):.{digits}g} "
            shown += f"{sign}{size}{self.parameters.names[c]}"
        return shown

    @property
    def names(self) -> tuple[str, ...]:
        """What to call each combination: its independent parameter, with a + where there is more to it."""
        names = self.parameters.names
        return tuple(names[c] + ("" if c in self.alone else " +") for c in self.independent)


def base_parameters(found: Regression, locked: Iterable[str] = (), seed: int = 0) -> BaseParameters:
    """Return which combinations of parameters the readings of a regression tell.

    With gains among the parameters, what they are a combination of hangs on the robot's true parameters: K is that of
    one robot then.

    Args:
        found: the regression.
        locked: joints that stand still, wherever.
        seed: seed of the random motions.

    Raises:
        UnknownModelNameError: a joint that the robot does not have.
    """
    tree, locked = found.system.tree, tuple(locked)
    bodies = [tree.joint(name) for name in locked]
    motions = _FieldMotions(found, bodies, random.Random(seed))
    span, n_unknown, n_motions = Span(), 0, 0
    grows = True
    while grows:
        for rows, told in motions.rows(AT_ONCE):
            grows = bool(span.extend(rows))
            n_unknown = max(n_unknown, told)
            n_motions += 1
            if not grows:
                break
    order = motions.order
    independent = tuple(order[pivot] for pivot in sorted(span.basis))
    seen = set(independent)
    dependent = tuple(column for column in order if column not in seen)
    exact = np.zeros((len(independent), len(dependent)), dtype=object)
    place = {column: k for k, column in enumerate(dependent)}
    for k, pivot in enumerate(sorted(span.basis)):
        for at, value in span.basis[pivot].items():
            if at != pivot:
                exact[k, place[order[at]]] = value
    K = _in_doubles(found, bodies, independent, dependent, exact, seed)
    degree = ENTRY_DEGREE * (max(tree.depths()) + 1)
    error = min(1.0, (len(independent) + 1) * (n_motions + 1) * degree / PRIME)
    return BaseParameters(found.parameters, independent, dependent, K, locked, n_unknown, error)


def column_order(parameters: Parameters) -> tuple[int, ...]:
    """Return the columns, those first that are kept as independent: offsets and friction, then links from the root on.

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
        found: the regression.
        bodies: whose joints stand still.
        rng: draws the motions.
    """

    def __init__(self, found: Regression, bodies: Sequence[int], rng: random.Random) -> None:
        self._found, self._rng = found, rng
        self.order = column_order(found.parameters)
        self._place = {column: k for k, column in enumerate(self.order)}
        self._of_gains = [found.parameters.each[k].kind == "gain" for _, k in found.W]
        self._still_q, self._still_v = _still(found, bodies)
        self._posture = {k: self._random(1) for k in self._still_q}
        self._phi, self._w = self._random(len(found.parameters)), self._random(len(found.unknowns))

    def rows(self, n: int) -> Iterator[tuple[list[FieldVector], int]]:
        """Yield the rows of n motions over the columns in their order, and how many unknowns they told besides."""
        found, n_w = self._found, len(self._found.unknowns)
        places = [(row, n_w + self._place[k]) for row, k in found.W] + list(found.N)
        values = self._values(n)
        for motion in range(n):
            rows: list[dict[int, int]] = [{} for _ in range(found.n_rows)]
            for (row, column), value in zip(places, values[:, motion].tolist(), strict=True):
                if value:
                    rows[row][column] = value
            told = Span.of(row for row in rows if row) if n_w else None
            left = rows if told is None else [vector for pivot, vector in told.basis.items() if pivot >= n_w]
            yield (
                [{k - n_w: int(value) for k, value in row.items()} for row in left if row],
                0 if told is None else told.dimension - len(left),
            )

    def _values(self, n: int) -> Array:
        """Return the entries of W, then those of N, at n motions; readings are what gains and all others make them."""
        found = self._found
        points = self._points(n)
        others = [x for x, is_gain in zip(found.W.values(), self._of_gains, strict=True) if not is_gain]
        values = points.values([*others, *found.N.values()])
        if any(self._of_gains):
            points.tell(self._readings(values, points))
        return points.values([*found.W.values(), *found.N.values()])

    def _points(self, n: int) -> FieldPoints:
        found, tree, rng = self._found, self._found.system.tree, self._rng
        graph, q = found.graph, found.inputs["q"]
        inputs = {x.index: self._random(n) for name in ("qd", "qdd") for x in found.inputs[name]}
        inputs |= {
            found.inputs[name][k].index: np.zeros(n, dtype=object) for name in ("qd", "qdd") for k in self._still_v
        }
        inputs |= {x.index: self._random(n) for x in q}
        for part in tree.quaternions:
            inputs |= {x.index: values for x, values in zip(q[part], random_quaternions(rng, n), strict=True)}
        tangents = {x.index: self._random(n) for x in q if graph.takes_sine(x)}
        for k, drawn in self._posture.items():
            same = np.repeat(drawn, n)
            (tangents if q[k].index in tangents else inputs)[q[k].index] = same
        if not any(self._of_gains):
            inputs |= {x.index: self._random(n) for x in found.inputs["y"]}
        return FieldPoints(graph, n, rng, inputs, tangents)

    def _readings(self, values: Array, points: FieldPoints) -> dict[int, Array]:
        """Return what a robot with some parameters reads at points where the entries have these values."""
        found, parameters = self._found, self._found.parameters
        y = found.inputs["y"]
        without = dict.fromkeys((x.index for x in y), found.graph.zero)
        total = points.values(replaced(found.c, without))
        places = [place for place, is_gain in zip(found.W, self._of_gains, strict=True) if not is_gain]
        factors = [self._phi[k] for _, k in places] + [self._w[k] for _, k in found.N]
        for (row, _), factor, value in zip([*places, *found.N], factors, values, strict=True):
            total[row] = (total[row] + factor * value) % PRIME
        told = {}
        for row, k in enumerate(found.reads):
            if k >= 0:
                gain = parameters.place.get(f"gain:{found.row_names[row]}")
                scale = 1 if gain is None else pow(int(self._phi[gain]), -1, PRIME)
                told[y[k].index] = total[row] * scale % PRIME
        n = total.shape[1]
        return {x.index: told.get(x.index, np.zeros(n, dtype=object)) for x in y}

    def _random(self, n: int) -> Array:
        return random_numbers(self._rng, n)


def _still(found: Regression, bodies: Sequence[int]) -> tuple[list[int], list[int]]:
    """Return which numbers of q, and which freedoms, are of joints that stand still."""
    tree = found.system.tree
    return [k for i in bodies for k in numbers(tree.q_slices[i])], [
        k for i in bodies for k in numbers(tree.v_slices[i])
    ]


def _in_doubles(
    found: Regression,
    bodies: Sequence[int],
    independent: Sequence[int],
    dependent: Sequence[int],
    exact: Array,
    seed: int,
) -> Floats:
    """Return K of which the field says where it is zero, from as many random motions as tell it well."""
    if not independent or not dependent:
        return np.zeros(exact.shape)
    tree, rng = found.system.tree, np.random.default_rng(seed)
    n = 4 * (len(independent) // max(found.n_rows - len(found.unknowns), 1) + 8)
    still_q, still_v = _still(found, bodies)
    Q = tree.random_configurations(n, rng)
    Q[:, still_q] = Q[0, still_q]
    Qd, Qdd = rng.normal(size=(2, n, tree.nv))
    Qd[:, still_v] = Qdd[:, still_v] = 0.0
    state = {"q": Q, "qd": Qd, "qdd": Qdd, "y": np.zeros((n, found.system.ny))}
    values = {x.index: state[name][:, k] for name, array in found.inputs.items() for k, x in enumerate(array)}
    entries = found.graph.evaluate([*found.W.values(), *found.N.values(), *found.c], values)
    W, N, c = found.dense(np.broadcast_to(entries, (len(entries), n)).T)
    gains = found.parameters.of_kinds("gain")
    if gains:
        phi = found.parameters.prior + rng.normal(size=len(found.parameters))
        phi[gains] = 0.0
        read = np.einsum("nij,j->ni", W, phi) + c
        for k in gains:
            row = found.row_names.index(found.parameters.each[k].owner)
            W[:, row, k] = -read[:, row]
    if found.unknowns:
        W = without_unknowns(W, N, np.zeros(found.n_rows, dtype=bool))
    rows = W.reshape(-1, W.shape[2])
    scale = np.linalg.norm(rows[:, independent], axis=0)
    K: Floats = lstsq(rows[:, independent] / scale, rows[:, dependent])[0] / scale[:, None]
    K[exact == 0] = 0.0
    for value in (1, -1, 2, -2):
        K[exact == value % PRIME] = value
    return K

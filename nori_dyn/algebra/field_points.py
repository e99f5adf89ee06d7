"""The values of expressions at further random points of the prime field, where their fingerprints are one."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nori_dyn.algebra.expressions import Expr, Graph, Op
from nori_dyn.algebra.prime_field import PRIME, sphere_point, turn_point
from nori_dyn.typing import Array


def random_numbers(rng: random.Random, n: int) -> Array:
    """Random numbers of the field (n,)."""
    return np.array([rng.randrange(2, PRIME) for _ in range(n)], dtype=object)


def random_quaternions(rng: random.Random, n: int) -> Array:
    """Random unit quaternions of the field (4, n)."""
    return np.array([sphere_point([rng.randrange(2, PRIME) for _ in range(3)]) for _ in range(n)], dtype=object).T


class FieldPoints:
    """Some points of the field, and the values there of the expressions that were asked for.

    Args:
        graph: the expressions.
        n: number of points.
        rng: draws roots, of which the field knows nothing.
        inputs: the values (n,) of inputs, by their index; others are added with `set_inputs` before they are needed.
        tangents: those (n,) of half of each angle of which sines are taken, by the index of the angle.
    """

    def __init__(
        self, graph: Graph, n: int, rng: random.Random, inputs: Mapping[int, Array], tangents: Mapping[int, Array]
    ) -> None:
        self._graph, self._n, self._rng = graph, n, rng
        self._roots: dict[int, Array] = {}
        self._given: dict[int, Array] = dict(inputs)
        for angle, t in tangents.items():
            points = np.array([turn_point(each) for each in t.tolist()], dtype=object).T
            for node, values in zip(graph.sin_cos(Expr(graph, angle)), points, strict=True):
                self._given[node.index] = values
        self._found = dict(self._given)

    def set_inputs(self, inputs: Mapping[int, Array]) -> None:
        """Add the values (n,) of further inputs, by their index."""
        self._given |= inputs
        self._found |= inputs

    def elsewhere(self, inputs: Mapping[int, Array]) -> FieldPoints:
        """The same points but for the values (n,) of some inputs, on which no root depends."""
        other = FieldPoints(self._graph, self._n, self._rng, {**self._given, **inputs}, {})
        other._roots = self._roots
        return other

    def values(self, outputs: Sequence[Expr]) -> Array:
        """The values (outputs, n) of some expressions."""
        found, graph = self._found, self._graph
        for i in graph.reachable(outputs):
            if i not in found:
                found[i] = self._value(i)
        values = np.empty((len(outputs), self._n), dtype=object)
        for k, x in enumerate(outputs):
            values[k] = found[x.index]
        return values

    def _value(self, i: int) -> Array:
        """The values (n,) of a node whose operands have theirs."""
        graph, found = self._graph, self._found
        x: Any = found.get(graph.left[i])
        y: Any = found.get(graph.right[i])
        match graph.ops[i]:
            case Op.CONSTANT:
                return np.full(self._n, graph.fingerprints[i], dtype=object)
            case Op.ADD:
                return np.asarray((x + y) % PRIME)
            case Op.SUB:
                return np.asarray((x - y) % PRIME)
            case Op.MUL:
                return np.asarray(x * y % PRIME)
            case Op.NEG:
                return np.asarray(-x % PRIME)
            case Op.RECIPROCAL:
                return np.array([pow(value, -1, PRIME) for value in x.tolist()], dtype=object)
            case Op.SQRT | Op.OPAQUE:
                if i not in self._roots:
                    self._roots[i] = random_numbers(self._rng, self._n)
                return self._roots[i]
        raise KeyError(f"{graph.labels.get(i, Expr(graph, i))} has no value at these points")

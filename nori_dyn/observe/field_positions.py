"""Random configurations over the prime field, some joints of which may stay where they are.

A free root is at the origin. Nothing depends on where it is; the velocity of a base that is state stands there, see
`measurements.floating_base`, and is that of a base at rest.

Source: own derivation (tests/unit/observe/test_learned.py).
"""

from __future__ import annotations

import random
from collections.abc import Iterable

import numpy as np

from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.algebra.field_points import random_numbers, random_quaternions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array


class FieldPositions:
    """Draws configurations, all of which agree in the numbers that stay.

    Args:
        graph: the expressions.
        tree: the robot.
        q: its inputs (nq,).
        rng: draws the numbers.
    """

    def __init__(self, graph: Graph, tree: KinematicTree, q: Array, rng: random.Random) -> None:
        self._graph, self._tree, self._q, self._rng = graph, tree, q, rng
        self._first = self._draw(1)

    def draw(self, n: int, still: Iterable[int] = ()) -> tuple[dict[int, Array], dict[int, Array]]:
        """Random values (n,) of q, and of the tangents of half of its angles, by the index of the input.

        Args:
            n: number of configurations.
            still: the numbers of q that stay.
        """
        inputs, tangents = self._draw(n)
        staying = {self._q[k].index for k in still}
        for drawn, once in zip((inputs, tangents), self._first, strict=True):
            drawn |= {index: np.repeat(once[index], n) for index in staying & once.keys()}
        return inputs, tangents

    def _draw(self, n: int) -> tuple[dict[int, Array], dict[int, Array]]:
        q = self._q
        inputs = {x.index: random_numbers(self._rng, n) for x in q}
        for part in self._tree.quaternions:
            inputs |= {x.index: values for x, values in zip(q[part], random_quaternions(self._rng, n), strict=True)}
        inputs |= {q[k].index: inputs[q[k].index] * 0 for k in origins(self._tree)}
        return inputs, {x.index: random_numbers(self._rng, n) for x in self._angles()}

    def _angles(self) -> list[Expr]:
        """The inputs of which sines are taken."""
        return [x for x in self._q if self._graph.takes_sine(x)]


def origins(tree: KinematicTree) -> list[int]:
    """The numbers of q that say where free roots are."""
    roots = (
        part
        for i, (part, joint) in enumerate(zip(tree.q_slices, tree.joints, strict=True))
        if tree.is_root(i) and joint.kind == "free"
    )
    return [k for part in roots for k in range(part.start, part.start + 3)]

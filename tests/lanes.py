"""How much of a program is the same for two limbs: operations of the one that correspond to operations of the other.

Two operations correspond when they are the same on operands that correspond. Inputs correspond by the joints that they
are of; what both limbs read corresponds to itself. Constants may differ, as may signs, which fold into additions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from nori_dyn.algebra.expressions import Graph, Op

LEAVES = (Op.INPUT, Op.CONSTANT, Op.SIN, Op.COS)


class Correspondence:
    """What corresponds in two limbs.

    Attributes:
        image: for each operation of one limb that of the other.

    Args:
        graph: where a program lives.
        inputs: for each input of one limb that of the other, and the other way round, by their indices.
    """

    def __init__(self, graph: Graph, inputs: Mapping[int, int]) -> None:
        self.image: dict[int, int] = {}
        self._graph = graph
        self._inputs = inputs
        self._known: dict[tuple[int, int], bool] = {}

    def follow(self, one: int, other: int) -> bool:
        """Return whether two expressions correspond, and remember what of them does."""
        one, other = self._unsigned(one), self._unsigned(other)
        if (one, other) not in self._known:
            self._known[one, other] = False
            self._known[one, other] = self._follow(one, other)
        return self._known[one, other]

    def _follow(self, one: int, other: int) -> bool:
        graph = self._graph
        kinds = graph.ops[one], graph.ops[other]
        if kinds == (Op.CONSTANT, Op.CONSTANT):
            return True
        if one in self._inputs or kinds[0] in LEAVES:
            return self._inputs.get(one, one) == other
        if one == other:
            return True
        if _kind(kinds[0]) != _kind(kinds[1]):
            return False
        mine, theirs = self._operands(one), self._operands(other)
        if not any(all(map(self.follow, mine, order)) for order in (theirs, theirs[::-1])):
            return False
        return self.image.setdefault(one, other) == other

    def follow_upwards(self, nodes: Sequence[int]) -> None:
        """Find what corresponds of a program, what is needed first, on top of what corresponds already."""
        of_operands: dict[tuple[object, ...], list[int]] = {}
        own = [node for node in nodes if self._graph.ops[node] not in (*LEAVES, Op.NEG)]
        for node in own:
            of_operands.setdefault(self._shape(node, self._unsigned), []).append(node)
        for node in own:
            if node not in self.image:
                for other in of_operands.get(self._shape(node, self._counterpart), ()):
                    if other != node:
                        self.image.setdefault(node, other)

    def _counterpart(self, node: int) -> int:
        node = self._unsigned(node)
        return self._inputs.get(node, self.image.get(node, node))

    def _shape(self, node: int, counterpart: Callable[[int], int]) -> tuple[object, ...]:
        parts = [-1 if self._graph.ops[i] is Op.CONSTANT else counterpart(i) for i in self._operands(node)]
        return _kind(self._graph.ops[node]), *sorted(parts)

    def _operands(self, node: int) -> list[int]:
        return [operand for operand in (self._graph.left[node], self._graph.right[node]) if operand >= 0]

    def _unsigned(self, node: int) -> int:
        while self._graph.ops[node] is Op.NEG:
            node = self._graph.left[node]
        return node


def _kind(op: Op) -> Op:
    return Op.ADD if op is Op.SUB else op

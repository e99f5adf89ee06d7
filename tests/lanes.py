"""How much of a program is the same for two limbs: operations of the one that correspond to operations of the other.

Two operations correspond when they are the same on operands that correspond. Inputs correspond by the joints that they
are of; what both limbs read corresponds to itself. Constants may differ, as may signs, which fold into additions.
"""

from collections.abc import Mapping

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

    def _operands(self, node: int) -> list[int]:
        return [operand for operand in (self._graph.left[node], self._graph.right[node]) if operand >= 0]

    def _unsigned(self, node: int) -> int:
        while self._graph.ops[node] is Op.NEG:
            node = self._graph.left[node]
        return node


def _kind(op: Op) -> Op:
    return Op.ADD if op is Op.SUB else op

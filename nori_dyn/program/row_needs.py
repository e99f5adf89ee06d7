"""The needs of a program some of whose rows are vector operations: which columns, and which other nodes.

Source: docs/design.md, 4.8; own derivation (tests/unit/program/test_rows.py).
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from nori_dyn.algebra.expressions import Expr, Graph, Nodes, RowMap, RowSum
from nori_dyn.program.statements import GIVEN

BLOCK = 8
"""Columns of a block: a cache line, one vector of AVX-512, two of AVX2."""

TERM = 1
"""Instructions of a term besides one a block."""


class NeededRows:
    """The nodes and columns that are needed where some combinations are row operations.

    Attributes:
        made: the combination, or the map, that makes each row, of those that are chosen and needed.
        chosen: their numbers among the combinations.
        support: the columns, as bits, in which the terms of a row may differ from zero.
        beyond: those among them that the row does not have: the sum there is not zero, as the row is.
        masked: rows in which such columns are made zero.
        to_mask: others in which that is needed, as such columns would be read.
        columns: the columns that are needed, of rows that are made and of those that are gathered.
        owner: the row and column of which a node is an element, and nowhere else computed.
        needed: which nodes are.
        coefficients: those that rows are multiplied by.
        order: the combinations, with their numbers, in the order in which they can be computed.

    Args:
        graph: the expressions.
        targets: those that are wanted.
        chosen: numbers of the combinations to be computed as rows, where they are needed.
        masked: rows in which columns that they do not have are made zero.
    """

    def __init__(
        self, graph: Graph, targets: Sequence[Expr], chosen: Collection[int], masked: frozenset[Nodes] = frozenset()
    ) -> None:
        self.graph = graph
        self.masked, self.to_mask = masked, frozenset[Nodes]()
        self._gathered: set[Nodes] = set()
        self.made: dict[Nodes, RowSum | RowMap] = {}
        self.support: dict[Nodes, int] = {}
        self.beyond: dict[Nodes, int] = {}
        self.owner: dict[int, tuple[Nodes, int]] = {}
        self.order: list[tuple[int, RowSum | RowMap]] = []
        for number in sorted(chosen):
            self._take(number, graph.combinations[number])
        self.columns: dict[Nodes, int] = {}
        self.needed = bytearray(len(graph))
        self.coefficients: set[int] = set()
        self._sweep(targets)
        self.order = [(number, c) for number, c in self.order if self.wanted(c)]
        self.chosen = frozenset(number for number, _ in self.order)

    def wanted(self, c: RowSum | RowMap) -> int:
        """The needed columns of a combination, as bits."""
        found = 0
        for row in c.made:
            if self.made.get(row) is c:
                found |= self.columns.get(row, 0)
        return found

    def _take(self, number: int, c: RowSum | RowMap) -> None:
        new = [row for row in c.made if any(row) and not (row in self.made or row in c.read or row in self._gathered)]
        if not new:
            return
        self._gathered.update(row for row in c.read if row not in self.made)
        for row in new:
            self.made[row], self.support[row], self.beyond[row] = c, (1 << len(row)) - 1, 0
            if isinstance(c, RowSum):
                support = self.support_of(c)
                kept = c.columns if row in self.masked else support
                self.support[row], self.beyond[row] = support & kept, support & kept & ~c.columns
            for column, node in enumerate(row):
                if node >= c.first and self.graph.ops[node] not in GIVEN:
                    self.owner.setdefault(node, (row, column))
        self.order.append((number, c))

    def support_of(self, c: RowSum) -> int:
        """The columns in which the sum of a combination may differ from zero, as bits."""
        support = 0
        for row in c.read:
            support |= self._support(row)
        return support

    def _support(self, row: Nodes) -> int:
        found = self.support.get(row)
        if found is None:
            found = self.support[row] = sum(1 << column for column, node in enumerate(row) if node)
        return found

    def _sweep(self, targets: Sequence[Expr]) -> None:
        """Find the needed nodes and columns, from the last node to the first."""
        graph, needed = self.graph, self.needed
        for target in targets:
            needed[target.index] = 1
        waiting = list(self.order)
        for i in range(len(graph) - 1, -1, -1):
            while waiting and waiting[-1][1].first > i:
                self._read(waiting.pop()[1])
            if needed[i]:
                if i in self.owner:
                    row, column = self.owner[i]
                    self.columns[row] = self.columns.get(row, 0) | 1 << column
                else:
                    for source in (graph.left[i], graph.right[i]):
                        if source >= 0:
                            needed[source] = 1

    def _read(self, c: RowSum | RowMap) -> None:
        """Mark the operands of the needed columns of a row."""
        wanted = self.wanted(c)
        self.to_mask |= {row for row in c.read if wanted & self.beyond.get(row, 0)}
        if isinstance(c, RowSum):
            for coefficient, _, row in c.terms:
                if wanted & self.support[row]:
                    self.needed[coefficient] = 1
                    self.coefficients.add(coefficient)
        for row in c.read:
            self._use(row, wanted & self._support(row))

    def _use(self, row: Nodes, columns: int) -> None:
        if not columns:
            return
        self.columns[row] = self.columns.get(row, 0) | columns
        if row not in self.made:
            for column in bits(columns):
                self.needed[row[column]] = 1

    def wasteful(self) -> frozenset[int]:
        """The combinations that take more instructions as rows than as statements."""
        return frozenset(number for number, c in self.order if self._takes_more(c))

    def _takes_more(self, c: RowSum | RowMap) -> bool:
        wanted = self.wanted(c)
        if isinstance(c, RowMap):
            return c.statements <= len(blocks(wanted)) * c.instructions
        single = rows = 0
        for _, _, row in c.terms:
            columns = wanted & self.support[row]
            single += 2 * columns.bit_count()
            rows += TERM + len(blocks(columns)) if columns else 0
        return single <= rows


def bits(columns: int) -> Iterator[int]:
    """Yield the numbers of the columns that are set."""
    while columns:
        low = columns & -columns
        yield low.bit_length() - 1
        columns ^= low


def blocks(columns: int) -> list[int]:
    """The blocks in which columns lie."""
    return sorted({column // BLOCK for column in bits(columns)})

"""When rows of a program are computed, and where they lie.

Source: docs/design.md, 4.8; own derivation (tests/unit/program/test_rows.py).
"""

from __future__ import annotations

from nori_dyn.algebra.rows import Combination, Nodes
from nori_dyn.program.row_needs import BLOCK, NeededRows, bits, blocks


class Stages:
    """In which phase nodes and rows are computed: statements wait for rows of an earlier one.

    Attributes:
        of_node: that of each needed node.
        of_row: that of each row.
        n: how many there are.
        order: the combinations in the order in which they are computed.
    """

    def __init__(self, rows: NeededRows) -> None:
        graph = rows.graph
        self.of_node: dict[int, int] = {}
        self.of_row: dict[Nodes, int] = {}
        self.n = 1
        waiting = rows.order[::-1]
        for i in range(len(graph)):
            while waiting and waiting[-1][1].first <= i:
                self._add_row(rows, waiting.pop()[1])
            if rows.needed[i] and i not in rows.owner:
                self.of_node[i] = max((self._before(rows, s) for s in (graph.left[i], graph.right[i])), default=0)
        for _, c in reversed(waiting):
            self._add_row(rows, c)
        self.n += max((*self.of_node.values(), *self.of_row.values()))
        self.order = sorted((c for _, c in rows.order), key=lambda c: self.of_row[c.row])

    def _before(self, rows: NeededRows, source: int) -> int:
        """Return the phase in which a statement can read a node."""
        if source < 0:
            return 0
        return self.of_row[rows.owner[source][0]] + 1 if source in rows.owner else self.of_node[source]

    def _add_row(self, rows: NeededRows, c: Combination) -> None:
        wanted, stage = rows.columns[c.row], 0
        for coefficient, _, row in c.terms:
            if wanted & rows.support[row]:
                stage = max(stage, self._in_row(rows, coefficient), self._of(rows, row))
        self.of_row[c.row] = max(stage, self._of(rows, c.initial))

    def _in_row(self, rows: NeededRows, node: int) -> int:
        """Return the phase in which a row can read a node."""
        return self.of_row[rows.owner[node][0]] if node in rows.owner else self.of_node[node]

    def _of(self, rows: NeededRows, row: Nodes) -> int:
        if row in rows.made:
            return self.of_row.get(row, 0)
        return max((self._in_row(rows, row[k]) for k in bits(rows.columns.get(row, 0))), default=0)


class Storage:
    """Where rows lie: the blocks of each that are needed, from the first to the last.

    Attributes:
        size: how many numbers it has.
    """

    def __init__(self, rows: NeededRows) -> None:
        self.size = 0
        self._start: dict[Nodes, int] = {}
        for row, wanted in rows.columns.items():
            needed = blocks(wanted)
            self._start[row] = self.size - BLOCK * needed[0]
            self.size += BLOCK * (needed[-1] - needed[0] + 1)

    def place(self, row: Nodes, column: int) -> int:
        """Return where a column of a row is."""
        return self._start[row] + column

"""Which rows of a program are vector operations, their storage, and their order.

What a graph remembers as combinations of rows (`algebra.rows`) can be computed element by element, as all else, or a
block of columns at a time. Rows are laid out over one grid of blocks, column j in lane j % BLOCK, with zeros elsewhere,
so that an operation is the same for all lanes and aligned; a mask only where columns that a row does not have would be
read. What is taken row by row is chosen by counts, the same on every machine.

Source: docs/design.md, 4.8; own derivation (tests/unit/program/test_rows.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nori_dyn.algebra.counting import Cost
from nori_dyn.algebra.expressions import Expr, Graph, Nodes, Op, RowMap, RowSum
from nori_dyn.model.limbs import Limbs
from nori_dyn.program.packs import find_packs, in_lanes
from nori_dyn.program.row_needs import BLOCK, TERM, NeededRows, bits, blocks
from nori_dyn.program.schedule import schedule
from nori_dyn.program.statements import GIVEN, n_statements

ALL = (1 << BLOCK) - 1
"""The columns of a block, as bits."""

WIDEST = 6
"""Blocks that an operation keeps in registers."""

COPIED = 2
"""Instructions of an element that is copied."""

GAIN = 1.0
"""Share of the instructions of straight lines, with SIMD packs of limbs, that rows take at most."""

LEAST = 4000
"""Statements below which a program stays without: they fit the first cache, and no number has to go through memory."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Some blocks of a row: initial + sum of coefficient times blocks of other rows.

    Attributes:
        width: how many blocks.
        target: where they go in the rows' storage.
        initial: where they begin, there too; None for zero.
        added, subtracted: the coefficient's node and where the blocks are, of each term.
        mask: the columns of the block that are kept, as bits, where others are to be zero in the end.
    """

    width: int
    target: int
    initial: int | None
    added: tuple[tuple[int, int], ...]
    subtracted: tuple[tuple[int, int], ...]
    mask: int | None = None

    @property
    def terms(self) -> tuple[tuple[int, int], ...]:
        """All terms, those added first."""
        return self.added + self.subtracted

    @property
    def instructions(self) -> int:
        """About how many instructions it takes."""
        return 2 * self.width + (TERM + self.width) * len(self.terms)


@dataclass(frozen=True, slots=True, eq=False)
class ColumnLoop:
    """The same operations in each column of some blocks.

    Attributes:
        width: how many blocks.
        sources: the input of the operations, and where its blocks are, of each row that is read.
        targets: the outcome of the operations, and where its blocks go, of each row that is made.
        statements: the operations.
    """

    width: int
    sources: tuple[tuple[Expr, int], ...]
    targets: tuple[tuple[Expr, int], ...]
    statements: tuple[int, ...]

    @property
    def graph(self) -> Graph:
        """The expressions of a column."""
        return self.targets[0][0].graph

    @property
    def instructions(self) -> int:
        """About how many instructions it takes."""
        return self.width * (len(self.sources) + len(self.targets) + len(self.statements))


@dataclass(slots=True, eq=False)
class Phase:
    """Statements, and then rows that need them.

    Attributes:
        statements: nodes to be computed by statements, in topological order.
        wanted: those that later phases, rows and outputs read.
        copies: elements of rows that are copied into others: from, to, in the rows' storage, before which operation.
        operations: the operations of the rows, in order.
    """

    statements: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    copies: list[tuple[int, int, int]] = field(default_factory=list)
    operations: list[Operation | ColumnLoop] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """The row operations of a program.

    Attributes:
        phases: the phases, one after the other.
        where: nodes that are computed as elements of rows, and where they lie in the rows' storage.
        filled: where else, in that storage, nodes go that are no elements of rows: statements, inputs, numbers.
        coefficients: nodes that the operations read by themselves, and not as elements of rows.
        given: inputs, sines and cosines among the needed nodes.
        size: numbers in the storage.
        cost: counted operations; all columns of a block are counted, zeros or not.
    """

    phases: tuple[Phase, ...]
    where: Mapping[int, int]
    filled: Mapping[int, tuple[int, ...]]
    coefficients: tuple[int, ...]
    given: tuple[int, ...]
    size: int
    cost: Cost


def row_plan(graph: Graph, targets: Sequence[Expr], limbs: Limbs = ()) -> RowPlan | None:
    """The row operations for some expressions of a program; None where straight lines are shorter.

    Args:
        graph: the expressions.
        targets: those that are wanted.
        limbs: corresponding inputs of isomorphic limbs, by their nodes, which share vectors in straight lines.
    """
    if not graph.combinations:
        return None
    nodes = graph.reachable(targets)
    straight = n_statements(graph, nodes)
    if straight < LEAST:
        return None
    rows = NeededRows(graph, targets, range(len(graph.combinations)))
    while (dropped := rows.wasteful()) or rows.to_mask:
        rows = NeededRows(graph, targets, rows.chosen - dropped, rows.masked | rows.to_mask)
    if not rows.chosen:
        return None
    found, instructions = _laid_out(rows)
    in_packs = in_lanes(limbs, BLOCK)
    if instructions * max(map(len, in_packs), default=1) > straight:  # else packs save less in any case
        straight -= find_packs(graph, nodes, in_packs).saved
    return found if instructions <= GAIN * straight else None


class _Storage:
    """Where rows lie: the blocks of each that are needed, from the first to the last."""

    def __init__(self, rows: NeededRows) -> None:
        self.size = 0
        self._start: dict[Nodes, int] = {}
        room = dict(rows.columns)
        for _, c in rows.order:
            if isinstance(c, RowMap):  # a loop goes over the same blocks of all
                for row in (*c.read, *(row for row in c.made if row in room)):
                    room[row] = room.get(row, 0) | rows.wanted(c)
        for row, wanted in room.items():
            needed = blocks(wanted)
            self._start[row] = self.size - BLOCK * needed[0]
            self.size += BLOCK * (needed[-1] - needed[0] + 1)

    def place(self, row: Nodes, column: int) -> int:
        """Where a column of a row is."""
        return self._start[row] + column


def _laid_out(rows: NeededRows) -> tuple[RowPlan, int]:
    """The plan, and about how many instructions it takes."""
    graph = rows.graph
    storage = _Storage(rows)
    stages = _Stages(rows)
    phases = [Phase() for _ in range(stages.n)]
    where = {
        node: storage.place(row, column)
        for node, (row, column) in rows.owner.items()
        if row in rows.columns and rows.columns[row] >> column & 1
    }
    given = []
    for i, needed in enumerate(rows.needed):
        if needed and i not in where:
            if graph.ops[i] in GIVEN:
                given.append(i)
            else:
                phases[stages.of_node[i]].statements.append(i)
    filled: dict[int, list[int]] = {}
    copied: set[Nodes] = set()
    for number, c in sorted(rows.order, key=lambda item: stages.of_number[item[0]]):
        phase = phases[stages.of_number[number]]
        for row in c.read:
            if row in rows.made or row not in rows.columns or row in copied:
                continue
            copied.add(row)
            for column in bits(rows.columns[row]):
                node, place = row[column], storage.place(row, column)
                if node in where:
                    phase.copies.append((where[node], place, len(phase.operations)))
                else:
                    filled.setdefault(node, []).append(place)
        phase.operations += [_loop(rows, storage, c)] if isinstance(c, RowMap) else _operations(rows, storage, c)
    coefficients = tuple(sorted(i for i in rows.coefficients if i not in where))
    _mark_wanted(rows, phases, stages, {*filled, *coefficients})
    operations = [operation for phase in phases for operation in phase.operations]
    statements = [i for phase in phases for i in phase.statements]
    copies = sum(len(phase.copies) for phase in phases)
    stored = sum(map(len, filled.values())) + len(coefficients)
    instructions = len(statements) + sum(o.instructions for o in operations) + COPIED * copies + stored
    plan = RowPlan(
        tuple(phases),
        where,
        {node: tuple(places) for node, places in filled.items()},
        coefficients,
        tuple(given),
        storage.size,
        _cost(graph, statements, operations),
    )
    return plan, instructions


def _loop(rows: NeededRows, storage: _Storage, c: RowMap) -> ColumnLoop:
    """The operations on the blocks that are needed."""
    found = blocks(rows.wanted(c))
    first = BLOCK * found[0]
    targets = {
        row: (x, storage.place(row, first))
        for row, x in zip(c.made, c.outputs, strict=True)
        if rows.made.get(row) is c and rows.columns.get(row)
    }
    wanted = [x for x, _ in targets.values()]
    graph = wanted[0].graph
    needed = graph.reachable(wanted)
    read = set(needed)
    sources = tuple(
        (x, storage.place(row, first))
        for row, x in zip(c.read, c.inputs, strict=True)
        if x.index in read and not x.is_constant
    )
    operations = {i for i in needed if graph.ops[i] not in GIVEN}
    operands = {i: [s for s in (graph.left[i], graph.right[i]) if s in operations] for i in needed if i in operations}
    statements = schedule(operands, [x.index for x in wanted if x.index in operations])
    return ColumnLoop(found[-1] - found[0] + 1, sources, tuple(targets.values()), tuple(statements))


def _cost(graph: Graph, statements: Sequence[int], all_operations: Sequence[Operation | ColumnLoop]) -> Cost:
    loops = [o for o in all_operations if isinstance(o, ColumnLoop)]
    operations = [o for o in all_operations if isinstance(o, Operation)]
    ops = [graph.ops[i] for i in statements]
    ops += [loop.graph.ops[i] for loop in loops for i in loop.statements * (BLOCK * loop.width)]
    elements = BLOCK * sum(o.width * len(o.terms) for o in operations)
    begun = BLOCK * sum(o.width for o in operations if o.initial is None)  # the first term is added to nothing
    return Cost(
        additions=sum(op in (Op.ADD, Op.SUB, Op.NEG) for op in ops) + elements - begun,
        multiplications=sum(op is Op.MUL for op in ops) + elements,
        divisions=sum(op is Op.RECIPROCAL for op in ops),
        square_roots=sum(op is Op.SQRT for op in ops),
    )


class _Stages:
    """In which phase nodes and rows are computed: statements wait for rows of an earlier one.

    Attributes:
        of_node: that of each needed node.
        of_row: that of each row.
        of_number: that of a combination, by its number.
        n: how many there are.
    """

    def __init__(self, rows: NeededRows) -> None:
        graph = rows.graph
        self.of_node: dict[int, int] = {}
        self.of_row: dict[Nodes, int] = {}
        self.of_number: dict[int, int] = {}
        self.n = 1
        waiting = rows.order[::-1]
        for i in range(len(graph)):
            while waiting and waiting[-1][1].first <= i:
                self._add(rows, *waiting.pop())
            if rows.needed[i] and i not in rows.owner:
                self.of_node[i] = max((self._before(rows, s) for s in (graph.left[i], graph.right[i])), default=0)
        for number, c in reversed(waiting):
            self._add(rows, number, c)
        self.n += max((*self.of_node.values(), *self.of_row.values()))

    def _before(self, rows: NeededRows, source: int) -> int:
        """The phase in which a statement can read a node."""
        if source < 0:
            return 0
        return self.of_row[rows.owner[source][0]] + 1 if source in rows.owner else self.of_node[source]

    def _add(self, rows: NeededRows, number: int, c: RowSum | RowMap) -> None:
        wanted = rows.wanted(c)
        stage = max(self._of(rows, row) for row in c.read)
        if isinstance(c, RowSum):
            for coefficient, _, row in c.terms:
                if wanted & rows.support[row]:
                    stage = max(stage, self._in_row(rows, coefficient))
        self.of_number[number] = stage
        self.of_row |= {row: stage for row in c.made if rows.made.get(row) is c}

    def _in_row(self, rows: NeededRows, node: int) -> int:
        """The phase in which a row can read a node."""
        return self.of_row[rows.owner[node][0]] if node in rows.owner else self.of_node[node]

    def _of(self, rows: NeededRows, row: Nodes) -> int:
        if row in rows.made:
            return self.of_row.get(row, 0)
        return max((self._in_row(rows, row[k]) for k in bits(rows.columns.get(row, 0))), default=0)


def _operations(rows: NeededRows, storage: _Storage, c: RowSum) -> Iterator[Operation]:
    """Yield the operations of a row: terms of the same blocks together, the widest first."""
    wanted = rows.columns[c.row]
    groups: dict[tuple[int, ...], list[tuple[int, bool, Nodes]]] = {}
    initial, terms = c.initial, list(c.terms)
    if not any(initial):
        for term in terms:
            if term[0] == 1 and not term[1]:  # a row as it is
                terms.remove(term)
                initial = term[2]
                break
    for term in terms:
        found = blocks(wanted & rows.support[term[2]])
        if found:
            groups.setdefault(tuple(found), []).append(term)
    begun = dict.fromkeys(blocks(wanted), False)
    begins = set(blocks(wanted & rows.support[initial]))
    for together, group in sorted(groups.items(), key=lambda item: -len(item[0])):
        for run in _runs(together, begun, begins):
            first = BLOCK * run[0]
            target, source = storage.place(c.row, first), None
            if begun[run[0]]:
                source = target
            elif run[0] in begins:
                source = storage.place(initial, first)
            added, subtracted = (
                tuple((coefficient, storage.place(row, first)) for coefficient, minus, row in group if minus is sign)
                for sign in (False, True)
            )
            yield Operation(len(run), target, source, added, subtracted)
            begun.update(dict.fromkeys(run, True))
    for run in _runs([b for b in begun if not begun[b]], begun, begins):
        first = BLOCK * run[0]
        yield Operation(
            len(run), storage.place(c.row, first), storage.place(initial, first) if run[0] in begins else None, (), ()
        )
    if c.row in rows.masked:
        made = rows.support_of(c)
        for b in blocks(wanted):
            kept = c.columns >> BLOCK * b & ALL
            if made >> BLOCK * b & ALL & ~kept:
                place = storage.place(c.row, BLOCK * b)
                yield Operation(1, place, place, (), (), kept)


def _runs(needed: Sequence[int], begun: Mapping[int, bool], begins: set[int]) -> list[list[int]]:
    """Blocks as contiguous runs of equal alignment, each no longer than the registers hold."""
    found: list[list[int]] = []
    for b in needed:
        last = found[-1] if found else []
        alike = last and last[-1] == b - 1 and (begun[b], b in begins) == (begun[b - 1], b - 1 in begins)
        if alike and len(last) < WIDEST:
            last.append(b)
        else:
            found.append([b])
    return found


def _mark_wanted(rows: NeededRows, phases: Sequence[Phase], stages: _Stages, read: set[int]) -> None:
    """Record which statements of each phase are read by rows, or in later phases."""
    graph = rows.graph
    for number, phase in enumerate(phases):
        for i in phase.statements:
            for s in (graph.left[i], graph.right[i]):
                if s >= 0 and stages.of_node.get(s, number) < number:
                    read.add(s)
    for phase in phases:
        phase.wanted = [i for i in phase.statements if i in read]

"""Which rows of a program are computed as rows, as vectors, where they lie, and in which order.

What a graph remembers as combinations of rows (`algebra.rows`) can be computed element by element, as all else, or a
block of columns at a time. Rows are laid out over one grid of blocks, column j in lane j % BLOCK, with zeros elsewhere,
so that an operation is the same for all lanes, aligned, and without masks. What is taken row by row is chosen by
counts, the same on every machine.

Source: docs/design.md, 4.8; own derivation (tests/unit/program/test_rows.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from nori_dyn.algebra.counting import Cost
from nori_dyn.algebra.expressions import Expr, Graph, Op
from nori_dyn.algebra.rows import Combination, Nodes
from nori_dyn.program.row_needs import BLOCK, GIVEN, TERM, NeededRows, bits, blocks
from nori_dyn.program.row_order import Stages, Storage

WIDEST = 6
"""Blocks that an operation keeps in registers."""

COPIED = 2
"""Instructions of an element that is copied."""

GAIN = 0.6
"""Share of the instructions, at most, to which rows must bring a program, or it stays without."""

LEAST = 4000
"""Statements below which a program stays without: they fit the first cache, limbs share vectors as well, and no number
has to go through memory."""


@dataclass(frozen=True, slots=True)
class Operation:
    """Some blocks of a row: initial + sum of coefficient times blocks of other rows.

    Attributes:
        width: how many blocks.
        target: where they go in the rows' storage.
        initial: where they begin, there too; None for zero.
        added, subtracted: the coefficient's node and where the blocks are, of each term.
    """

    width: int
    target: int
    initial: int | None
    added: tuple[tuple[int, int], ...]
    subtracted: tuple[tuple[int, int], ...]

    @property
    def terms(self) -> tuple[tuple[int, int], ...]:
        """All terms, those added first."""
        return self.added + self.subtracted

    @property
    def instructions(self) -> int:
        """About how many instructions it takes."""
        return 2 * self.width + (TERM + self.width) * len(self.terms)


@dataclass(slots=True, eq=False)
class Phase:
    """Statements, and then rows that need them.

    Attributes:
        statements: nodes to be computed by statements, in topological order.
        wanted: those that later phases, rows and outputs read.
        copies: elements of rows that are copied into others: from, to, in the rows' storage, before which operation.
        operations: what computes the rows, in order.
    """

    statements: list[int] = field(default_factory=list)
    wanted: list[int] = field(default_factory=list)
    copies: list[tuple[int, int, int]] = field(default_factory=list)
    operations: list[Operation] = field(default_factory=list)


@dataclass(frozen=True, slots=True, eq=False)
class RowPlan:
    """What is computed as rows.

    Attributes:
        phases: what is done, one after the other.
        where: nodes that are computed as elements of rows, and where they lie in the rows' storage.
        filled: where else, in that storage, nodes go that are no elements of rows: statements, inputs, numbers.
        coefficients: nodes that the operations read by themselves, and not as elements of rows.
        given: inputs, sines and cosines among what is needed.
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


def row_plan(graph: Graph, targets: Sequence[Expr]) -> RowPlan | None:
    """Return what to compute as rows in a program for some expressions; None where straight lines are shorter."""
    if not graph.combinations:
        return None
    straight = _statements(graph, graph.reachable(targets))
    if straight < LEAST:
        return None
    rows = NeededRows(graph, targets, range(len(graph.combinations)))
    while dropped := rows.wasteful():
        rows = NeededRows(graph, targets, rows.chosen - dropped)
    if not rows.chosen:
        return None
    found, instructions = _laid_out(rows)
    return found if instructions <= GAIN * straight else None


def _statements(graph: Graph, nodes: Iterable[int]) -> int:
    return sum(graph.ops[i] not in GIVEN for i in nodes)


def _laid_out(rows: NeededRows) -> tuple[RowPlan, int]:
    """Return the plan, and about how many instructions it takes."""
    graph = rows.graph
    stages = Stages(rows)
    storage = Storage(rows)
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
    for c in stages.order:
        phase = phases[stages.of_row[c.row]]
        for row in (c.initial, *(row for _, _, row in c.terms)):
            if row in rows.made or row not in rows.columns or row in copied:
                continue
            copied.add(row)
            for column in bits(rows.columns[row]):
                node, place = row[column], storage.place(row, column)
                if node in where:
                    phase.copies.append((where[node], place, len(phase.operations)))
                else:
                    filled.setdefault(node, []).append(place)
        phase.operations += _operations(rows, storage, c)
    coefficients = tuple(sorted(i for i in rows.coefficients if i not in where))
    _say_wanted(rows, phases, stages, {*filled, *coefficients})
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


def _cost(graph: Graph, statements: Sequence[int], operations: Sequence[Operation]) -> Cost:
    ops = [graph.ops[i] for i in statements]
    elements = BLOCK * sum(o.width * len(o.terms) for o in operations)
    begun = BLOCK * sum(o.width for o in operations if o.initial is None)  # the first term is added to nothing
    return Cost(
        additions=sum(op in (Op.ADD, Op.SUB, Op.NEG) for op in ops) + elements - begun,
        multiplications=sum(op is Op.MUL for op in ops) + elements,
        divisions=sum(op is Op.RECIPROCAL for op in ops),
        square_roots=sum(op is Op.SQRT for op in ops),
    )


def _operations(rows: NeededRows, storage: Storage, c: Combination) -> Iterator[Operation]:
    """Yield what computes a row: terms of the same blocks together, the widest first."""
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


def _runs(needed: Sequence[int], begun: Mapping[int, bool], begins: set[int]) -> list[list[int]]:
    """Return blocks as neighbours that begin alike, no more than registers can hold."""
    found: list[list[int]] = []
    for b in needed:
        last = found[-1] if found else []
        alike = last and last[-1] == b - 1 and (begun[b], b in begins) == (begun[b - 1], b - 1 in begins)
        if alike and len(last) < WIDEST:
            last.append(b)
        else:
            found.append([b])
    return found


def _say_wanted(rows: NeededRows, phases: Sequence[Phase], stages: Stages, read: set[int]) -> None:
    """Say what of each phase's statements is read by rows, or in later phases."""
    graph = rows.graph
    for number, phase in enumerate(phases):
        for i in phase.statements:
            for s in (graph.left[i], graph.right[i]):
                if s >= 0 and stages.of_node.get(s, number) < number:
                    read.add(s)
    for phase in phases:
        phase.wanted = [i for i in phase.statements if i in read]

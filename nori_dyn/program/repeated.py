"""Repeated blocks of a straight-line program: statements that differ only in their operands.

The links of a chain are one text with other constants, inputs and places. Statements stand in the order in which they
were made, which goes link by link; a block is a phrase of that text. Phrases are found by pairs: the pairs of
neighbours that are there most often become one symbol, until none is there often enough (Larsson and Moffat, Off-line
dictionary-based compression, 2000, with many pairs a round). Phrases with equal operations may still join
them in other ways: those that join them in the same way are a *form*.

Source: docs/design.md, 4.8; own derivation otherwise (tests/unit/program/test_repeated.py).
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.algebra.expressions import Graph, Op
from nori_dyn.typing import Indices

LEAST = 8
"""Number of times that something is there before it counts as repeated, and number of statements of a block at least:
for fewer, tables and loop cost more than they save."""

LONGEST = 1500
"""Statements of a block, at most: compilers are more than linear in them."""

SHORT = 24
"""Statements up to which any two neighbours that repeat are joined; longer ones where most of either stand together."""

STATEMENT, TURN, INPUT, CONSTANT, NONE = range(5)
"""What an operand is: another statement, a sine, cosine or number of a quaternion, an input, a constant, or none."""

_KINDS = np.full(max(Op) + 1, STATEMENT)
_KINDS[[Op.CONSTANT, Op.INPUT, Op.SIN, Op.COS]] = CONSTANT, INPUT, TURN, TURN

_COMMUTES = np.zeros(max(Op) + 1, dtype=bool)
_COMMUTES[[Op.ADD, Op.MUL]] = True


@dataclass(frozen=True, slots=True, eq=False)
class Statements:
    """The statements of a program, in the order in which they were made.

    Attributes:
        ops: the operation of each (n,).
        kinds: the kinds of its left and right operands (2, n).
        refs: which (2, n): the number of a statement, the node of anything else; -1 for none.
    """

    ops: Indices
    kinds: Indices
    refs: Indices

    @staticmethod
    def of(graph: Graph, nodes: Sequence[int], turns: Collection[int] = ()) -> Statements:
        """The statements of some nodes, each after those that it reads.

        Args:
            graph: the expressions.
            nodes: the nodes.
            turns: inputs that lie where sines and cosines do.
        """
        every = np.array(graph.ops, dtype=np.intp)
        index = np.array(nodes, dtype=np.intp)
        number = np.full(len(graph) + 1, -1, dtype=np.intp)
        number[index] = np.arange(len(index))
        sources = np.array([graph.left, graph.right], dtype=np.intp)[:, index]
        kinds = np.where(sources < 0, NONE, _KINDS[every[sources]])
        kinds[np.isin(sources, list(turns))] = TURN
        return Statements(every[index], kinds, np.where(kinds == STATEMENT, number[sources], sources))

    def __len__(self) -> int:
        return len(self.ops)

    def tokens(self) -> Indices:
        """A number for each statement: of its operation, and those of its operands."""
        is_statement = self.kinds == STATEMENT
        read = np.where(is_statement, self.ops[np.where(is_statement, self.refs, 0)] + NONE + 1, self.kinds)
        read = np.where(_COMMUTES[self.ops], np.sort(read, axis=0), read)
        base = len(_KINDS) + NONE + 1
        _, tokens = np.unique((self.ops * base + read[0]) * base + read[1], return_inverse=True)
        return tokens


@dataclass(frozen=True, slots=True, eq=False)
class Form:
    """Blocks of the same form.

    Attributes:
        starts: number of the first statement of each (blocks,).
        ops: the operations of their statements (length,).
        operands: for each statement its operands (length, 2): the place of a statement in the same block, or
            `length` + the number of something read from outside, or -1 for none.
        kinds: the kind of each of these (n_read,).
        reads: which, for each block (blocks, n_read): as `Statements.refs`.
    """

    starts: Indices
    ops: Indices
    operands: Indices
    kinds: Indices
    reads: Indices

    def __len__(self) -> int:
        return len(self.starts)

    @property
    def length(self) -> int:
        """Statements of a block."""
        return len(self.ops)

    @property
    def numbers(self) -> Indices:
        """The numbers of the statements of each block (blocks, length)."""
        return self.starts[:, None] + np.arange(self.length)


def repeated_forms(statements: Statements, roles: Indices, edges: Sequence[int] = ()) -> list[Form]:
    """Return the forms of blocks that repeat, no two of which share a statement.

    Args:
        statements: the program.
        roles: for each statement the other uses of its value (n,): equal ones in blocks of one form.
        edges: numbers of statements before which every block ends.
    """
    if len(statements) < 2:
        return []
    symbols, starts, lengths = _phrases(statements.tokens(), edges)
    counts = np.bincount(symbols, minlength=len(lengths))
    forms = []
    for symbol in np.flatnonzero((counts >= LEAST) & (lengths >= LEAST)).tolist():
        forms += _forms(statements, roles, starts[symbols == symbol], int(lengths[symbol]))
    return forms


def _phrases(tokens: Indices, edges: Sequence[int]) -> tuple[Indices, Indices, Indices]:
    """A text as symbols, the offset of each in it, and the length that each symbol stands for."""
    text, starts = tokens, np.arange(len(tokens))
    lengths = np.ones(int(tokens.max()) + 1, dtype=np.intp)
    while True:
        pairs = text[:-1] * len(lengths) + text[1:]
        pairs[np.isin(starts[1:], edges)] = -1
        chosen = _pairs_to_join(pairs, np.bincount(text, minlength=len(lengths)), lengths)
        if not len(chosen):
            return text, starts, lengths
        number = np.minimum(np.searchsorted(chosen, pairs), len(chosen) - 1)
        joined = _without_overlaps(np.flatnonzero(chosen[number] == pairs))
        text = text.copy()
        text[joined] = len(lengths) + number[joined]
        left = np.ones(len(text), dtype=bool)
        left[joined + 1] = False
        text, starts = text[left], starts[left]
        first, second = np.divmod(chosen, len(lengths))
        lengths = np.concatenate([lengths, lengths[first] + lengths[second]])


def _without_overlaps(places: Indices) -> Indices:
    """Every other one of consecutive offsets: there a symbol is joined with itself."""
    begins = np.diff(places, prepend=-2) > 1
    run = np.maximum.accumulate(np.where(begins, np.arange(len(places)), 0))
    left: Indices = places[(np.arange(len(places)) - run) % 2 == 0]
    return left


def _pairs_to_join(pairs: Indices, counts: Indices, lengths: Indices) -> Indices:
    """Return the pairs of neighbours, sorted, that become one symbol in one round.

    No symbol is the first of one and the second of another, so that none overlap but those of a symbol with itself.
    """
    found, times = np.unique(pairs, return_counts=True)
    first, second = np.divmod(found, len(lengths))
    together = lengths[first] + lengths[second]
    most = np.maximum(counts[first], counts[second])
    good = (found >= 0) & (times >= LEAST) & (together <= LONGEST)
    good &= (together <= SHORT) | ((first != second) & (2 * times >= most))
    found, times, first, second = found[good], times[good], first[good], second[good]
    side: dict[int, int] = {}
    chosen = []
    for k in np.lexsort((found, -times)).tolist():
        one, other = int(first[k]), int(second[k])
        alone = one == other and one not in side
        if alone or (one != other and side.get(one, 0) == 0 and side.get(other, 1) == 1):
            side[one], side[other] = (2, 2) if alone else (0, 1)
            chosen.append(int(found[k]))
    return np.array(sorted(chosen), dtype=np.intp)


def _forms(statements: Statements, roles: Indices, starts: Indices, length: int) -> list[Form]:
    """Return the forms of phrases of one symbol that repeat."""
    numbers = starts[:, None] + np.arange(length)
    kinds, refs = statements.kinds[:, numbers], statements.refs[:, numbers]
    inside = (kinds == STATEMENT) & (refs >= starts[:, None])
    places = refs - starts[:, None]
    far = int(statements.refs.max()) + 1
    keys = np.where(inside, places, length + far * kinds + refs)  # the operands read last in the block come last
    turned = _COMMUTES[statements.ops[numbers]] & (keys[0] > keys[1])
    kinds, refs, places, keys = (_in_turn(np.where(turned, x[::-1], x)) for x in (kinds, refs, places, keys))
    inside = _in_turn(np.where(turned, inside[::-1], inside).astype(np.intp)) == 1
    outside = ~inside & (kinds != NONE)
    first = _first_places(np.where(outside, keys, -1 - np.arange(2 * length)))
    what = np.where(inside, places, np.where(outside, length + kinds * 2 * length + first, -1))
    alike = np.hstack([what, roles[numbers]])
    forms = []
    for group in _equal_rows(alike):
        if len(group) < LEAST:
            continue
        own = np.flatnonzero(outside[group[0]] & (first[group[0]] == np.arange(2 * length)))
        read = np.full(2 * length, -1)
        read[own] = np.arange(len(own))
        operands = np.where(inside[group[0]], places[group[0]], np.where(outside[group[0]], length, -1))
        operands[outside[group[0]]] += read[first[group[0]][outside[group[0]]]]
        forms.append(
            Form(
                starts=starts[group],
                ops=statements.ops[numbers[group[0]]],
                operands=operands.reshape(length, 2),
                kinds=kinds[group[0]][own],
                reads=refs[group][:, own],
            )
        )
    return forms


def _in_turn(array: Indices) -> Indices:
    """Return left and right operands (2, blocks, length) in turn (blocks, 2 length)."""
    return np.ascontiguousarray(np.moveaxis(array, 0, -1)).reshape(array.shape[1], -1)


def _first_places(keys: Indices) -> Indices:
    """For each number of a row (rows, n) its first index in the row."""
    order = np.argsort(keys, axis=1, kind="stable")
    ordered = np.take_along_axis(keys, order, axis=1)
    begins = np.ones(keys.shape, dtype=bool)
    begins[:, 1:] = ordered[:, 1:] != ordered[:, :-1]
    group = np.maximum.accumulate(np.where(begins, np.arange(keys.shape[1]), 0), axis=1)
    found = np.empty_like(order)
    np.put_along_axis(found, order, np.take_along_axis(order, group, axis=1), axis=1)
    return found


def _equal_rows(rows: Indices) -> list[Indices]:
    """Return the groups of equal rows, the numbers in each."""
    rng = np.random.default_rng(0)
    hashes = rows.astype(np.uint64) @ rng.integers(1, 2**63, size=rows.shape[1], dtype=np.uint64)
    _, first, group = np.unique(hashes, return_index=True, return_inverse=True)
    same = (rows == rows[first[group]]).all(axis=1)
    return [np.flatnonzero((group == k) & same) for k in range(len(first))]

"""Programs with repeated blocks as C: one loop a form, with tables of constants and of offsets.

What a block reads comes from few sources: the same link in an earlier pass, its parent, a child, its inputs. The
workspace holds the results of a block for others side by side, in the same order for all blocks of a form; so a block
needs the place of one number of each source, from which the others follow. What does not repeat stays as it is, between
the loops; values that it leaves to a block are put where that block expects them.

Source: docs/design.md, 4.8; own derivation (tests/unit/program/test_repeated.py).
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from nori_dyn.algebra.expressions import Op
from nori_dyn.program.packs import Packing
from nori_dyn.program.program import Program
from nori_dyn.program.repeated import CONSTANT, INPUT, NONE, STATEMENT, TURN, Form, Statements, repeated_forms
from nori_dyn.program.statements import FORMATS, n_statements
from nori_dyn.program.writer import CHUNK, PARAMETERS, StatementWriter
from nori_dyn.typing import Floats, Indices

LARGE = 120_000
"""Statements that loops have to save: the code of so many fills a megabyte of second-level cache. Where they save less,
straight lines are as fast, or faster, as their values stay in fewer places."""

SHRINKS = 0.5
"""Share of the statements to which loops must bring the text, or it stays as it is."""

WORK, IN, OUT = "w", "in", "out"


@dataclass(frozen=True, slots=True, eq=False)
class Strided:
    """Numbers that the blocks of a form find, or leave, at fixed distances from each other.

    Attributes:
        array: where: the workspace, the inputs or the outputs.
        start: the place of the first, for each block (blocks,).
    """

    array: str
    start: Indices


@dataclass(slots=True, eq=False)
class BlockLoop:
    """A form, and where its blocks read and write.

    Attributes:
        form: the form.
        exported: places, in a block, of the statements whose values others read.
        arena: where the values that the first block leaves begin in the workspace; one block's follow another's.
        sources: the arrays of the tables' offsets.
        names: of operands, and of further targets of values (by statement), as C.
        constants: numbers that differ from block to block (blocks, n).
    """

    form: Form
    exported: Indices
    arena: int
    sources: list[Strided] = field(default_factory=list)
    read_names: list[str] = field(default_factory=list)
    left_names: dict[int, list[str]] = field(default_factory=dict)
    constants: Floats = field(default_factory=lambda: np.zeros((0, 0)))


def writer_of(
    program: Program,
    lanes: int = 1,
    padding: int = 1,
    large: int = LARGE,
    prefix: str = "",
    angles: Sequence[int] = (),
    out_places: Sequence[int] | None = None,
    suffix: str = "",
) -> StatementWriter:
    """The writer of a program: with loops where it is large and they make its text much shorter.

    Args:
        program: the program.
        lanes: see `StatementWriter`.
        padding: see `StatementWriter`.
        large: statements that loops have to save.
        prefix: see `StatementWriter`.
        angles: see `StatementWriter`.
        out_places: see `StatementWriter`.
        suffix: see `StatementWriter`.
    """
    if program.rows is None:
        straight = n_statements(program.graph, program.graph.reachable([x for part in program.parts for x in part]))
        if straight >= large:
            found = LoopWriter(program, padding, prefix, angles, out_places, suffix)
            if found.n_written <= min(SHRINKS * straight, straight - large):
                return found
    return StatementWriter(program, lanes, padding, prefix, angles, None, out_places, suffix)


class LoopWriter(StatementWriter):
    """Lays a program out with a loop for each form of blocks that repeat.

    Attributes:
        n_written: statements in the text.
        loops: the loops.

    Args: as `StatementWriter`.
    """

    def __init__(
        self,
        program: Program,
        padding: int = 1,
        prefix: str = "",
        angles: Sequence[int] = (),
        out_places: Sequence[int] | None = None,
        suffix: str = "",
    ) -> None:
        self._begin(program, padding, prefix, None, out_places, suffix)
        self.packing, graph, by = Packing(), program.graph, program.refinement
        kept = program.of_equations
        first = graph.reachable([*program.pivots, *by.steps, *program.outputs, *kept])
        already = set(first)
        second = [i for i in graph.reachable([*by.twice, *by.further]) if i not in already]
        self._nodes = [i for i in (*first, *second) if graph.ops[i] in FORMATS]
        self._number = {i: s for s, i in enumerate(self._nodes)}
        self._n_first = sum(graph.ops[i] in FORMATS for i in first)
        turns = [i for i in (*first, *second) if graph.ops[i] in (Op.SIN, Op.COS)]
        self._place_sines(turns, [*angles, *sorted({self._input_place[graph.left[i]] for i in turns})])
        self._chunk: dict[int, int] = {}
        self.chunk_numbers = range(1), range(1, 1 + bool(second))
        self.rows, self.calls = "", ["chunk0"]
        self.n_chunks = 1 + bool(second)
        self._given_places = self._places_given()
        self._find_loops()
        self._place_values([node.index for node in kept])

    def _places_given(self) -> dict[int, list[tuple[str, int]]]:
        """The slots of values, by node: outputs and guarded ones."""
        places: dict[int, list[tuple[str, int]]] = {}
        for i, place in self._output_places({*self._nodes[self._n_first :]}):
            places.setdefault(i, []).append((OUT, place))
        for k, guarded in enumerate(self._guarded):
            places.setdefault(guarded.index, []).append((WORK, self.first_pivot + k))
        return places

    def _find_loops(self) -> None:
        """Find repeated blocks, and cut the rest into pieces."""
        self._statements = statements = Statements.of(self.program.graph, self._nodes, self._quaternion_slot)
        roles = np.zeros(len(statements), dtype=np.intp)
        numbers: dict[tuple[str, ...], int] = {(): 0}
        for i, places in self._given_places.items():
            if i in self._number:
                kinds = tuple(array for array, _ in places)
                roles[self._number[i]] = numbers.setdefault(kinds, len(numbers))
        forms = repeated_forms(statements, roles, [self._n_first])
        unit = np.full(len(statements), -1, dtype=np.intp)
        self._blocks: list[tuple[int, int, int]] = []  # first statement, number of the form, and of the block in it
        for f, form in enumerate(forms):
            unit[form.numbers] = len(self._blocks) + np.arange(len(form))[:, None]
            self._blocks += [(start, f, k) for k, start in enumerate(form.starts.tolist())]
        loose = np.flatnonzero(unit < 0)
        cuts = np.flatnonzero(np.diff(loose, prepend=-2) > 1).tolist()
        self._pieces: list[Indices] = []
        for a, b in pairwise([*cuts, len(loose)]):
            run = loose[a:b]
            cut = np.searchsorted(run, self._n_first)
            for part in (run[:cut], run[cut:]):
                self._pieces += [part[k : k + CHUNK] for k in range(0, len(part), CHUNK)]
        for number, piece in enumerate(self._pieces):
            unit[piece] = len(self._blocks) + number
        self._unit = unit
        self.n_written = len(loose) + sum(form.length for form in forms)
        self.loops = [BlockLoop(form, np.zeros(0, dtype=np.intp), 0) for form in forms]

    def _place_values(self, kept: Sequence[int]) -> None:
        """Give a slot in the workspace to each value that is read outside its block or piece, or kept."""
        statements, unit = self._statements, self._unit
        is_read = statements.kinds == STATEMENT
        sources, readers = statements.refs[is_read], np.broadcast_to(np.arange(len(unit)), is_read.shape)[is_read]
        exported = np.zeros(len(unit), dtype=bool)
        exported[sources[unit[sources] != unit[readers]]] = True
        exported[[self._number[i] for i in kept if i in self._number]] = True
        self._home = np.full(len(unit), -1, dtype=np.intp)
        for loop in self.loops:
            numbers = loop.form.numbers
            loop.exported, loop.arena = np.flatnonzero(exported[numbers].any(axis=0)), self.n_work
            n = len(loop.exported)
            self._home[numbers[:, loop.exported]] = self.n_work + np.arange(n * len(numbers)).reshape(len(numbers), n)
            self.n_work += n * len(numbers)
        self._copies: dict[int, list[int]] = {}  # further places of values of pieces
        for loop in self.loops:
            self._find_sources(loop)
        for s in np.flatnonzero(exported & (self._home < 0)).tolist():
            self._home[s] = self._copies[s].pop() if self._copies.get(s) else self.n_work
            self.n_work += int(self._home[s] == self.n_work)
        for s in np.flatnonzero(self._home >= 0).tolist():
            self._slot[self._nodes[s]] = int(self._home[s])

    def _find_sources(self, loop: BlockLoop) -> None:
        """Find the operands and results of a loop's blocks at fixed strides, and name each number by them."""
        form = loop.form
        places = np.zeros(form.reads.shape, dtype=np.intp)
        arrays = np.full(len(form.kinds), WORK, dtype=object)
        slots = self._slot | self._quaternion_slot
        for n, kind in enumerate(form.kinds.tolist()):
            nodes = form.reads[:, n].tolist()
            if kind == STATEMENT:
                places[:, n] = self._home[form.reads[:, n]]
            elif kind == TURN:
                places[:, n] = [slots[i] for i in nodes]
            elif kind == INPUT:
                arrays[n], places[:, n] = IN, [self._input_place[i] for i in nodes]
        loop.read_names = self._constant_names(loop)
        for array in (WORK, IN):
            reads = np.flatnonzero((arrays == array) & (form.kinds != CONSTANT))
            for columns in _rigid(places[:, reads]):
                self._add_source(loop, array, places, reads[columns])
        for k, s in enumerate(form.numbers[0].tolist()):
            for which, (array, _) in enumerate(self._given_places.get(self._nodes[s], ())):
                column = [self._given_places[self._nodes[n]][which][1] for n in form.numbers[:, k].tolist()]
                loop.left_names.setdefault(k, []).append(self._left_name(loop, array, np.array(column)))

    def _constant_names(self, loop: BlockLoop) -> list[str]:
        """Return the names of the constants that a block reads, others left empty; keep those that differ."""
        form, values = loop.form, self.program.graph.values
        names = [""] * len(form.kinds)
        differing: list[Floats] = []
        for n in np.flatnonzero(form.kinds == CONSTANT).tolist():
            column = np.array([values[i] for i in form.reads[:, n].tolist()])
            if (column == column[0]).all():
                names[n] = self._name(int(form.reads[0, n]), None)
            else:
                names[n] = f"k[{len(differing)}]"
                differing.append(column)
        loop.constants = np.array(differing).T.reshape(len(form), -1)
        return names

    def _add_source(self, loop: BlockLoop, array: str, places: Indices, columns: Indices) -> None:
        """Add a strided array to a loop: some of the numbers that it reads, by their offsets (blocks, n_read)."""
        found = places[:, columns]
        known = np.flatnonzero((found >= 0).all(axis=1))
        if not len(known):  # all from pieces
            steps = np.arange(len(columns))
        else:
            steps = found[known[0]] - found[known[0]].min()
        start = np.where((found >= 0).all(axis=1), found[:, 0] - steps[0], -1)
        for block in np.flatnonzero(start < 0).tolist():
            start[block] = self.n_work
            self.n_work += int(steps.max()) + 1
            for s, step in zip(loop.form.reads[block, columns].tolist(), steps.tolist(), strict=True):
                self._copies.setdefault(s, []).append(int(start[block]) + step)
        number = self._source(loop, array, start)
        for n, step in zip(columns.tolist(), steps.tolist(), strict=True):
            loop.read_names[n] = f"s{number}[{step}]"

    def _left_name(self, loop: BlockLoop, array: str, places: Indices) -> str:
        for number, source in enumerate(loop.sources):
            step = places - source.start
            if source.array == array and (step == step[0]).all() and step[0] >= 0:
                return f"s{number}[{step[0]}]"
        return f"s{self._source(loop, array, places)}[0]"

    def _source(self, loop: BlockLoop, array: str, start: Indices) -> int:
        """Return the number of a new source of a loop."""
        loop.sources.append(Strided(array, start))
        return len(loop.sources) - 1

    def _value(self, k: int, op: int, operands: Sequence[str]) -> str:
        return f"const real t{k} = {FORMATS[Op(op)].format(*operands)};"

    def _loop_text(self, number: int, loop: BlockLoop) -> str:
        """Return the tables of a loop, and its function."""
        form, own = loop.form, self._prefix
        at = np.array([source.start for source in loop.sources], dtype=np.intp).T.reshape(len(form), -1)
        lines = [f"static const int {own}at{number}[] = {{{', '.join(map(str, at.ravel().tolist())) or '0'}}};"]
        numbers = ", ".join(map(repr, loop.constants.ravel().tolist())) or "0"
        lines.append(f"static const number {own}k{number}[] = {{{numbers}}};")
        lines.append(f"static void {own}loop{number}(int first, int end, {PARAMETERS}) {{")
        lines.append("for (int b = first; b < end; ++b) {")
        lines.append(f"const int *const at = {own}at{number} + {at.shape[1]} * b;")
        lines.append(f"const number *const k = {own}k{number} + {loop.constants.shape[1]} * b;")
        left_at = {name.partition("[")[0] for names in loop.left_names.values() for name in names}
        for n, source in enumerate(loop.sources):
            const = "" if f"s{n}" in left_at else "const "
            lines.append(f"{const}real *const s{n} = {source.array} + at[{n}];")
        lines.append(f"real *restrict const own = w + ({loop.arena} + {len(loop.exported)} * b);")
        left = {k: [f"own[{place}]"] for place, k in enumerate(loop.exported.tolist())}
        for k, names in loop.left_names.items():
            left.setdefault(k, []).extend(names)
        for k, (op, operands) in enumerate(zip(form.ops.tolist(), form.operands.tolist(), strict=True)):
            names = [f"t{x}" if x < form.length else loop.read_names[x - form.length] for x in operands if x >= 0]
            lines.append(self._value(k, op, names))
            lines.extend(f"{place} = t{k};" for place in left.get(k, ()))
        lines.append("(void)at; (void)k; (void)own;\n}\n(void)in; (void)w; (void)out;\n}")
        return "\n".join(lines)

    def _piece_text(self, number: int, piece: Indices) -> str:
        """Return the function of statements that do not repeat."""
        graph, statements = self.program.graph, self._statements
        before = "RARELY" if piece[0] >= self._n_first else "STRAIGHT"
        lines = [f"{before} static void {self._prefix}piece{number}({PARAMETERS}) {{"]
        here = {s: k for k, s in enumerate(piece.tolist())}
        for s, k in here.items():
            i = self._nodes[s]
            names = []
            for kind, ref in zip(statements.kinds[:, s].tolist(), statements.refs[:, s].tolist(), strict=True):
                if kind == STATEMENT:
                    names.append(f"t{here[ref]}" if ref in here else f"w[{self._home[ref]}]")
                elif kind != NONE:
                    names.append(self._name(ref, None))
            lines.append(self._value(k, graph.ops[i], names))
            places = [self._home[s], *self._copies.get(s, ())] if self._home[s] >= 0 else []
            lines.extend(f"w[{place}] = t{k};" for place in places)
            lines.extend(f"{array}[{place}] = t{k};" for array, place in self._given_places.get(i, ()))
        lines.append("(void)in; (void)w; (void)out;\n}")
        return "\n".join(lines)

    def chunks(self) -> Iterator[str]:
        """Yield the loops, the pieces between them, and the functions that call them all."""
        for number, loop in enumerate(self.loops):
            yield self._loop_text(number, loop)
        for number, piece in enumerate(self._pieces):
            yield self._piece_text(number, piece)
        calls: list[list[str]] = [[], []]
        prefix = self._prefix
        steps = [(int(piece[0]), -1, number) for number, piece in enumerate(self._pieces)]
        steps = sorted([*steps, *self._blocks])
        at = 0
        while at < len(steps):
            start, form, number = steps[at]
            at += 1
            part = calls[start >= self._n_first]
            if form < 0:
                part.append(f"{prefix}piece{number}(in, w, out);")
                continue
            end = number + 1
            while (
                at < len(steps)
                and steps[at][1:] == (form, end)
                and (steps[at][0] >= self._n_first) == (start >= self._n_first)
            ):
                at, end = at + 1, end + 1
            part.append(f"{prefix}loop{form}({number}, {end}, in, w, out);")
        for i, places in self._given_places.items():  # constants, inputs, sines and cosines
            if i not in self._number and not self._is_written_once(i):
                calls[0].extend(self._fills(i, [f"{array}[{place}]" for array, place in places]))
        for number in range(self.n_chunks):
            rarely = "RARELY " if number else ""
            body = "\n".join(calls[number])
            yield f"{rarely}static void {prefix}chunk{number}({PARAMETERS}) {{\n{body}\n}}"


def _rigid(places: Indices) -> list[Indices]:
    """The groups of columns (blocks, n) that stay at fixed strides; -1 is an offset that is still open."""
    free = places < 0
    whole = np.flatnonzero(~free.any(axis=1))
    reference = places[whole[0]] if len(whole) else np.where(free, 0, places).max(axis=0, initial=0)
    moved = np.where(free, np.iinfo(np.intp).min, places - reference)
    if not places.shape[1]:
        return []
    _, group = np.unique(moved, axis=1, return_inverse=True)
    group = group.ravel()
    return [np.flatnonzero(group == k) for k in range(group.max() + 1)]

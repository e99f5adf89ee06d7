"""The statements of a program as C: their order, their chunks, and the workspace that these share.

Source: docs/design.md, 4.8.
"""

from collections.abc import Container, Iterable, Iterator, Sequence
from copy import copy
from itertools import zip_longest
from typing import Self

from nori_dyn.algebra.expressions import Expr, Op
from nori_dyn.program.pack_text import pack_text
from nori_dyn.program.packs import find_packs, in_lanes
from nori_dyn.program.program import Program
from nori_dyn.program.residual import NUMBERS, residual_source
from nori_dyn.program.row_needs import BLOCK
from nori_dyn.program.row_plan import Phase, RowPlan
from nori_dyn.program.row_source import rows_source
from nori_dyn.program.schedule import schedule
from nori_dyn.program.statements import FORMATS, GIVEN

CHUNK = 400
"""Statements a function: compilers are more than linear in the size of one."""

PARAMETERS = "const real *restrict in, real *restrict w, real *restrict out"
"""Of a function of statements: inputs, workspace, outputs."""


class StatementWriter:
    """Lays a program out: the order of its statements, their chunks, and the workspace.

    The workspace begins with the quaternions; sines and cosines come next. They must be there before the first chunk.

    Attributes:
        angles: places, among the inputs, of those whose sine and cosine are needed.
        padded: how many sines, and how many cosines, the workspace has room for.
        first_pivot: where the chunks leave the pivots, and after them the steps, in the workspace.
        n_work: length of the workspace.
        packing: the statements that are packed.
        chunk_numbers: of the functions of statements, `chunk0`, `chunk1`, ..., those to be called in any case, and
            those to be called where steps are not small.
        calls: the functions to be called in any case, those of rows among them.
        rows: the functions of rows.

    Args:
        program: the program.
        lanes: numbers of a vector in which statements of isomorphic limbs may be packed, at most.
        padding: the room for sines is a multiple of it.
        prefix: the prefix of the functions' names.
        angles: those that come first, whether they are needed or not.
        places: where each input lies among those of the caller; in order when None.
        out_places: where each output goes; in order when None.
        suffix: what C's numbers end in: "f" for floats.
    """

    n_work: int

    def __init__(
        self,
        program: Program,
        lanes: int = 1,
        padding: int = 1,
        prefix: str = "",
        angles: Sequence[int] = (),
        places: Sequence[int] | None = None,
        out_places: Sequence[int] | None = None,
        suffix: str = "",
    ) -> None:
        self.program, self._prefix, self._suffix, self._has_vectors = program, prefix, suffix, True
        self._guarded = (*program.pivots, *program.refinement.steps, *program.refinement.further)
        self._input_place = {scalar.index: k for k, scalar in enumerate(program.scalars)}
        self._outside = range(len(program.scalars)) if places is None else places
        self._out_places = range(len(program.outputs)) if out_places is None else out_places
        self._quaternion_slot = {
            program.scalars[place + l].index: 4 * k + l for k, place in enumerate(program.quaternions) for l in range(4)
        }
        rows, graph, by, kept = program.rows, program.graph, program.refinement, program.of_equations
        first = [*program.pivots, *by.steps, *program.outputs, *kept]
        again = [*by.twice, *by.further]
        phases = rows.phases if rows else (Phase(graph.reachable(first)),)
        given = rows.given if rows else graph.reachable([*first, *again])
        at_once = sorted({*phases[0].statements, *(rows.given if rows else ())})
        self.packing = find_packs(graph, at_once, in_lanes(program.limb_nodes, lanes))
        self._place_sines([i for i in given if graph.ops[i] in (Op.SIN, Op.COS)], angles, padding)
        self._chunks: list[list[int]] = []
        self._placed: set[int] = set()
        numbers = [
            self._add_chunks(phase.statements, [*first, *(Expr(graph, i) for i in phase.wanted)]) for phase in phases
        ]
        n_first = len(self._chunks)
        self.chunk_numbers = range(n_first), self._add_chunks(graph.reachable(again), again)
        self._chunk = {i: number for number, statements in enumerate(self._chunks) for i in statements}
        self._place = {i: place for place, i in enumerate(self._chunk)}

        self._pack_slot: dict[int, int] = {}
        for k, guarded in enumerate(self._guarded):
            self._slot.setdefault(guarded.index, self.first_pivot + k)
        for node in kept:  # values in tables of the residual keep their sign
            if self._is_negated(node.index):
                self._slot.setdefault(node.index, self.n_work)
                self.n_work = max(self.n_work, self._slot[node.index] + 1)
        if rows:
            self._place_rows(rows)
        self._allocate(self._last_readers(kept))
        self.rows, names = self._rows_source(rows) if rows else ("", [])
        self.calls = [
            name
            for chunks, functions in zip_longest(numbers, names, fillvalue=())
            for name in (*(f"{prefix}chunk{k}" for k in chunks), *functions)
        ]

    def _place_sines(self, trigonometric: Sequence[int], angles: Sequence[int], padding: int) -> None:
        """Give sines and cosines their slots in the workspace, and after them guarded values."""
        self.angles = list(dict.fromkeys([*angles, *self._ordered_angles(trigonometric)]))
        self.padded = -(-len(self.angles) // padding) * padding
        first, graph = 4 * len(self.program.quaternions), self.program.graph
        number = {angle: k for k, angle in enumerate(self.angles)}
        self._slot = {
            i: first + self.padded * (graph.ops[i] is Op.COS) + number[self._input_place[graph.left[i]]]
            for i in trigonometric
        }
        self.first_pivot = first + 2 * self.padded
        self.n_work = self.first_pivot + len(self._guarded)

    @property
    def n_outputs(self) -> int:
        """How many outputs it leaves."""
        return max(self._out_places) + 1

    @property
    def packed(self) -> dict[int, int]:
        """How many statements are computed two at a time, four and so on, those for the residual alone left out."""
        program = self.program
        targets = [*program.pivots, *program.refinement.steps, *program.outputs]
        return self.packing.count(program.graph.reachable(targets))

    def _add_chunks(self, nodes: Iterable[int], targets: Sequence[Expr]) -> range:
        """Add functions of those of some nodes that are statements, and in none yet; return their numbers."""
        graph, head, n_before = self.program.graph, self.packing.head, len(self._chunks)
        needed = [i for i in nodes if graph.ops[i] in FORMATS and i not in self._placed]
        self._placed.update(needed)
        sources = self.packing.sources(graph, needed)
        statements = schedule(sources, (h for target in targets if (h := head(target.index)) in sources))
        self._chunks += [statements[k : k + CHUNK] for k in range(0, len(statements), CHUNK)]
        self._chunks = self._chunks or [[]]
        return range(n_before, len(self._chunks))

    def _place_rows(self, rows: RowPlan) -> None:
        """Give rows, and their coefficients, fixed slots in the workspace."""
        self._storage = -(-self.n_work // BLOCK) * BLOCK
        self.n_work = self._storage + rows.size
        for i, place in rows.where.items():
            self._slot[i] = self._storage + place
        for i in rows.coefficients:
            if i not in self._slot:
                self._slot[i] = self.n_work
                self.n_work += 1

    def _row_places(self) -> dict[int, list[str]]:
        """Where rows expect numbers that are no elements of rows made by them."""
        if self.program.rows is None:
            return {}
        found = {
            i: [f"w[{self._storage + place}]" for place in places] for i, places in self.program.rows.filled.items()
        }
        for i in self.program.rows.coefficients:
            if self.program.graph.ops[i] in (Op.CONSTANT, Op.INPUT):
                found.setdefault(i, []).append(f"w[{self._slot[i]}]")
        return found

    def _rows_source(self, rows: RowPlan) -> tuple[str, list[list[str]]]:
        """The functions of rows, and the names of those of each phase."""
        outputs = {k: x.index for k, x in enumerate(self.program.outputs) if x.index in rows.where}
        guarded = {self.first_pivot + k: x.index for k, x in enumerate(self._guarded) if x.index in rows.where}
        return rows_source(rows, self._storage, self._slot.__getitem__, outputs, guarded)

    def _output_places(self, computed: Container[int]) -> Iterable[tuple[int, int]]:
        """Each node that is an output, with its places; of those refined once more, the ones that are computed."""
        again = zip(self.program.refinement.twice, self._out_places, strict=False)
        found = [(x.index, place) for x, place in zip(self.program.outputs, self._out_places, strict=True)]
        found += [(x.index, place) for x, place in again if self.packing.head(x.index) in computed]
        return dict.fromkeys(found)

    def without_vectors(self) -> Self:
        """A writer with the same layout for compilers without vectors: packs stand lane by lane."""
        twin = copy(self)
        twin._has_vectors = False
        return twin

    def _ordered_angles(self, trigonometric: Sequence[int]) -> list[int]:
        """The indices of angles among the inputs, those in the lanes of a pack side by side."""
        places = {i: self._input_place[self.program.graph.left[i]] for i in trigonometric}
        packed = [pack.nodes for pack in self.packing.packs if pack.op in (Op.SIN, Op.COS)]
        first = [places[i] for nodes in packed for i in nodes]
        return list(dict.fromkeys([*first, *sorted(places.values())]))

    def _last_readers(self, kept: Sequence[Expr]) -> dict[int, int]:
        """For each statement whose value is read outside its chunk the last chunk that reads it."""
        last: dict[int, int] = {}
        for i in self._chunk:
            for source in map(self.packing.head, self.packing.reads(self.program.graph, i)):
                if source in self._chunk and self._chunk[source] != self._chunk[i]:
                    last[source] = self._chunk[i]
        heads = (self.packing.head(node.index) for node in kept)
        return last | {head: len(self._chunks) for head in heads if head in self._chunk}

    def _allocate(self, last: dict[int, int]) -> None:
        """Give each of these values a slot in the workspace; a value that is no longer read frees its slot."""
        free: dict[int, list[int]] = {}
        ending: dict[int, list[tuple[int, int]]] = {}
        chunk = 0
        for i in self._chunk:
            width = len(self.packing.members(i))
            if i not in last or (width == 1 and i in self._slot):
                continue
            while chunk < self._chunk[i]:
                for n, slot in ending.pop(chunk, ()):
                    free.setdefault(n, []).append(slot)
                chunk += 1
            places = free.setdefault(width, [])
            if not places:
                places.append(self.n_work)
                self.n_work += width
            slot = places.pop()
            if width == 1:
                self._slot[i] = slot
            else:
                self._pack_slot[i] = slot
            ending.setdefault(last[i], []).append((width, slot))

    def _name(self, i: int, chunk: int | None) -> str:
        """How a chunk refers to a node."""
        op = self.program.graph.ops[i]
        if op is Op.CONSTANT:
            number = repr(self.program.graph.values[i]) + self._suffix
            return f"({number})" if number.startswith("-") else number
        if op is Op.INPUT:
            return self._input_name(i)
        head = self.packing.head(i)
        is_here = chunk is not None and self._chunk.get(head) == chunk
        if head not in self._chunk or self.packing.pack_of(i) is None:
            return self._local(i) if is_here else f"w[{self._slot[i]}]"
        if i in self._slot and not is_here:
            return f"w[{self._slot[i]}]"
        lane = self.packing.places[i][1]
        name = self._lane(head, lane) if is_here else f"w[{self._pack_slot[head] + lane}]"
        return f"(-{name})" if self._is_negated(i) else name

    def _input_name(self, i: int) -> str:
        slot = self._quaternion_slot.get(i)
        return f"in[{self._outside[self._input_place[i]]}]" if slot is None else f"w[{slot}]"

    def _lane(self, head: int, lane: int) -> str:
        return f"{self._local(head)}{f'[{lane}]' if self._has_vectors else f'_{lane}'}"

    def _is_negated(self, i: int) -> bool:
        """Whether a pack has a value with the opposite sign."""
        return self._has_vectors and self.packing.is_negated(i)

    def _vector(self, number: int, chunk: int) -> str | None:
        """The C expression of a pack in a chunk; None where its numbers are in no vector."""
        pack = self.packing.packs[number]
        head, n = pack.nodes[0], len(pack.nodes)
        if self._chunk.get(head) == chunk:
            return self._local(head)
        if pack.op is Op.INPUT:  # one that is an output, too, has a place there, but is written last
            return None
        if pack.op in GIVEN:
            places = [self._slot.get(i, -n) for i in pack.nodes]
            return f"*(const u{n} *)(w + {places[0]})" if places == [*range(places[0], places[0] + n)] else None
        return f"*(const u{n} *)(w + {self._pack_slot[head]})"

    def _local(self, i: int) -> str:
        """The name of a statement's value by its number in the order: the source is independent of node indices."""
        return f"t{self._place[i]}"

    def _written(self, head: int, chunk: int) -> Iterator[str]:
        """Yield the statements of a value, or of a pack of values, with a store where others read it."""
        graph, pack, slot = self.program.graph, self.packing.pack_of(head), self._pack_slot.get(head)
        if pack is not None and self._has_vectors:
            name, n = self._local(head), len(pack.nodes)
            value = pack_text(pack, lambda number: self._vector(number, chunk), lambda i: self._name(i, chunk))
            yield f"const v{n} {name} = {value};"
            if slot is not None:
                yield f"*(u{n} *)(w + {slot}) = {name};"
            return
        for lane, i in enumerate(self.packing.members(head)):
            name = self._local(head) if pack is None else self._lane(head, lane)
            operands = [self._name(s, chunk) for s in (graph.left[i], graph.right[i]) if s >= 0]
            yield f"const real {name} = {FORMATS[graph.ops[i]].format(*operands)};"
            if slot is not None:
                yield f"w[{slot + lane}] = {name};"

    def _stores(self) -> dict[int, list[str]]:
        """Where each node goes that is read outside its chunk, is guarded, or is an output."""
        kept = self._row_places()
        for i, place in self._output_places(self._chunk):
            kept.setdefault(i, []).append(f"out[{place}]")
        for k, guarded in enumerate(self._guarded):
            kept.setdefault(guarded.index, []).append(f"w[{self.first_pivot + k}]")
        if self.program.rows:
            kept = {i: places for i, places in kept.items() if i not in self.program.rows.where}
        for i, slot in self._slot.items():
            if self.packing.head(i) in self._chunk and f"w[{slot}]" not in kept.get(i, ()):
                kept.setdefault(i, []).append(f"w[{slot}]")
        return kept

    def chunks(self) -> Iterator[str]:
        """Yield the functions of all statements, each with its stores of shared, guarded and output values."""
        kept, last = self._stores(), self.chunk_numbers[0][-1]
        filled_in = 0 if self.program.rows else last
        for chunk, statements in enumerate(self._chunks):
            before = "RARELY" if chunk > last else "STRAIGHT"
            lines = [f"{before} static void {self._prefix}chunk{chunk}({PARAMETERS}) {{"]
            for head in statements:
                lines.extend(self._written(head, chunk))
                for i in self.packing.members(head):
                    lines.extend(f"{place} = {self._name(i, chunk)};" for place in kept.get(i, ()))
            if chunk == filled_in:  # constants, inputs, sines and cosines
                for i, places in kept.items():
                    if self.packing.head(i) not in self._chunk and not self._is_written_once(i):
                        lines.extend(self._fills(i, places))
            lines.append("(void)in; (void)w; (void)out;\n}")
            yield "\n".join(lines)

    def constants(self) -> str:
        """The function that writes the constants, where the program wants that once."""
        lines = [f"static void constants({PARAMETERS}) {{"]
        for i, places in self._stores().items():
            if self._is_written_once(i):
                lines.extend(self._fills(i, places))
        return "\n".join([*lines, "(void)in; (void)w; (void)out;\n}"])

    def _is_written_once(self, i: int) -> bool:
        return self.program.constants_once and self.program.graph.ops[i] is Op.CONSTANT

    def _fills(self, i: int, places: Sequence[str]) -> list[str]:
        value = self._name(i, None)
        return [f"{place} = (real){{0}} + {value};" for place in places]

    def residual(self) -> str:
        """The function that compares each equation of D d + b with the size of its terms."""
        places = self._out_places
        equations = [
            [(b, tuple((x, places[unknown]) for x, unknown in terms)) for b, terms in rows]
            for rows in self.program.equations
        ]
        return residual_source(equations, self._where)

    def _where(self, node: Expr) -> tuple[str, float]:
        """The array of a node's value after the last chunk, and its index there; or a number."""
        if node.is_constant:
            return NUMBERS, node.value
        array, _, place = self._name(node.index, None).rstrip("]").partition("[")
        return array, int(place)

"""SIMD packs: the same operation on numbers of several isomorphic limbs, in the lanes of a vector.

Isomorphic limbs go through the same operations with other numbers. Which statements correspond is found on
the program: inputs of the limbs correspond by the robot; two statements do whose operands correspond, are the same, or
are constants. Signs are free: a pack may hold its numbers with the other sign in some lanes, so that mirrored limbs are
alike as well. Any packs are right, being ways to compute the same numbers; only their number matters.

Source: docs/design.md, 4.8; own derivation (tests/unit/program/test_packs.py).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from nori_dyn.algebra.expressions import Graph, Op
from nori_dyn.model.limbs import Limbs
from nori_dyn.program.statements import GIVEN, n_statements

Signs: TypeAlias = tuple[int, ...]

SUMS = (Op.ADD, Op.SUB)
LEAST = 0.05
"""Share of the operations that packs must save."""


@dataclass(frozen=True, slots=True)
class Operand:
    """An operand of a pack: a number for each lane.

    Attributes:
        nodes: the node of each lane.
        pack: the pack that holds them in these lanes, -1 for none.
        signs: the factor of each: 1 or -1.
    """

    nodes: tuple[int, ...]
    pack: int
    signs: Signs


@dataclass(frozen=True, slots=True)
class Pack:
    """Statements in SIMD lanes.

    Attributes:
        nodes: the node of each lane.
        op: the operation; of sums, ADD.
        operands: the operands.
        signs: the factor of the value of each lane in the vector: 1 or -1.
    """

    nodes: tuple[int, ...]
    op: Op
    operands: tuple[Operand, ...]
    signs: Signs


@dataclass(slots=True, eq=False)
class Packing:
    """The packs of a program.

    Attributes:
        packs: the packs, after their operands.
        places: for each node in a pack, inputs included, the number of the pack and the lane.
        saved: how many operations the packs save.
    """

    packs: list[Pack] = field(default_factory=list)
    places: dict[int, tuple[int, int]] = field(default_factory=dict)
    saved: int = 0

    @property
    def statements(self) -> list[Pack]:
        """The packs of operations."""
        return [pack for pack in self.packs if pack.op not in GIVEN]

    def count(self, nodes: Iterable[int]) -> dict[int, int]:
        """How many of some nodes are statements that are computed two at a time, four and so on."""
        packs = (self.pack_of(i) for i in nodes)
        return dict(Counter(len(pack.nodes) for pack in packs if pack is not None and pack.op not in GIVEN))

    def pack_of(self, i: int) -> Pack | None:
        """The pack of a node, or None."""
        place = self.places.get(i)
        return None if place is None else self.packs[place[0]]

    def head(self, i: int) -> int:
        """The node that represents a pack, or the node itself."""
        pack = self.pack_of(i)
        return i if pack is None else pack.nodes[0]

    def members(self, head: int) -> tuple[int, ...]:
        """The nodes for which a node stands."""
        pack = self.pack_of(head)
        return (head,) if pack is None else pack.nodes

    def is_negated(self, i: int) -> bool:
        """Whether a pack has a node's value with the opposite sign."""
        place = self.places.get(i)
        return place is not None and self.packs[place[0]].signs[place[1]] < 0

    def reads(self, graph: Graph, head: int) -> list[int]:
        """The operands of a statement, or of a pack of statements."""
        return [s for i in self.members(head) for s in _operands(graph, i)]

    def sources(self, graph: Graph, needed: Sequence[int]) -> dict[int, tuple[int, ...]]:
        """For each statement, or pack of statements, its operands; these come before it.

        Args:
            graph: the expressions.
            needed: the nodes to be computed by statements, in topological order.
        """
        known = set(needed)
        sources: dict[int, tuple[int, ...]] = {}
        for i in needed:
            stack = [self.head(i)]
            while stack:
                head = stack[-1]
                if head not in sources:
                    read = tuple(dict.fromkeys(self.head(s) for s in self.reads(graph, head) if s in known))
                    missing = [s for s in read if s not in sources]
                    if missing:
                        stack += missing
                        continue
                    sources[head] = read
                stack.pop()
        return sources


class _Finder:
    """Finds the packs of a program, level by level: corresponding nodes have the same distance from the inputs."""

    def __init__(self, graph: Graph, limbs: Limbs) -> None:
        self._graph = graph
        self._n_lanes = [len(group) for group in limbs]
        self._group: list[int] = []  # of each pack
        self.found = Packing()
        for k, group in enumerate(limbs):
            for nodes in zip(*group, strict=True):
                self._add(k, nodes)

    def _add(self, group: int, nodes: tuple[int, ...]) -> None:
        number = len(self.found.packs)
        self._group.append(group)
        self.found.places.update({i: (number, lane) for lane, i in enumerate(nodes)})
        self.found.packs.append(_signed(self._graph, self.found, nodes))

    def level(self, nodes: Iterable[int]) -> None:
        """Find the packs among nodes with the same distance from the inputs."""
        graph, exact, others = self._graph, _LaneCandidates(), _LaneCandidates()
        for i in nodes:
            refs, lanes = [], set()
            for s in _operands(graph, i):
                if s in self.found.places:
                    number, lane = self.found.places[s]
                    refs.append((0, number))
                    lanes.add((self._group[number], lane))
                elif graph.ops[s] is Op.CONSTANT:
                    refs.append((1, 0))
                else:
                    refs.append((2, s))
            if len(lanes) == 1:
                ((group, lane),) = lanes
                exact.add((group, _kind(graph, i), *sorted(refs)), lane, i)
        for key, by_lane in exact.items():
            if not self._form(key[0], by_lane):
                loose = (*key[:2], *(ref for ref in key[2:] if ref[0] == 0))
                for lane, members in by_lane.items():
                    for i in members:
                        others.add(loose, lane, i)
        for key, by_lane in others.items():
            self._form(key[0], by_lane)

    def _form(self, group: int, by_lane: dict[int, list[int]]) -> bool:
        """Form packs of candidates, each lane of which must have as many."""
        lanes = [by_lane.get(lane, []) for lane in range(self._n_lanes[group])]
        if any(len(members) != len(lanes[0]) for members in lanes):
            return False
        for nodes in zip(*lanes, strict=True):
            self._add(group, nodes)
        return True


class _LaneCandidates(defaultdict):  # type: ignore[type-arg]
    """Nodes that may correspond, by their key and by lane."""

    def __init__(self) -> None:
        super().__init__(lambda: defaultdict(list))

    def add(self, key: tuple[object, ...], lane: int, i: int) -> None:
        self[key][lane].append(i)


def _operands(graph: Graph, i: int) -> Iterator[int]:
    return (s for s in (graph.left[i], graph.right[i]) if s >= 0)


def _kind(graph: Graph, i: int) -> Op:
    return Op.ADD if graph.ops[i] in SUMS else graph.ops[i]


def _signed(graph: Graph, packing: Packing, nodes: tuple[int, ...]) -> Pack:
    """A pack of nodes: the pairing of the operands of all lanes, and the signs with the fewest changes."""
    plain = (1,) * len(nodes)
    if graph.ops[nodes[0]] in GIVEN:
        return Pack(nodes, graph.ops[nodes[0]], (), plain)

    def order(s: int) -> tuple[int, int]:
        if s in packing.places:
            return 0, packing.places[s][0]
        return (1, 0) if graph.ops[s] is Op.CONSTANT else (2, s)

    columns: list[list[int]] = []
    signs: list[list[int]] = []
    for i in nodes:
        terms = [(s, 1) for s in _operands(graph, i)]
        if graph.ops[i] is Op.SUB:
            terms[1] = terms[1][0], -1
        terms.sort(key=lambda term: order(term[0]))
        columns.append([s for s, _ in terms])
        signs.append([sign for _, sign in terms])
    read = [
        _read(graph, packing, tuple(column), tuple(sign))
        for column, sign in zip(zip(*columns, strict=True), zip(*signs, strict=True), strict=True)
    ]
    own, operands = _balanced(_kind(graph, nodes[0]), read)
    return Pack(nodes, _kind(graph, nodes[0]), operands, own)


def _read(graph: Graph, packing: Packing, nodes: tuple[int, ...], signs: Signs) -> tuple[Operand, bool]:
    """An operand with the signs that its pack requires, and whether others cost nothing."""
    places = [packing.places.get(i) for i in nodes]
    if places[0] is not None and places == [(places[0][0], lane) for lane in range(len(nodes))]:
        number = places[0][0]
        held = packing.packs[number].signs
        return Operand(nodes, number, tuple(a * b for a, b in zip(signs, held, strict=True))), False
    is_one = len(set(nodes)) == 1 and graph.ops[nodes[0]] is not Op.CONSTANT
    return Operand(nodes, -1, signs), not is_one


def _balanced(op: Op, read: Sequence[tuple[Operand, bool]]) -> tuple[Signs, tuple[Operand, ...]]:
    """The signs of a pack, and its operands with the remaining signs."""
    operands = [operand for operand, _ in read]
    n = len(operands[0].nodes)
    plain = (1,) * n
    if op is Op.ADD:
        bound = [operand.signs for operand, free in read if not free]
        own = bound[0] if bound else plain
        return own, tuple(_times(operand, own) for operand in operands)
    if op is Op.MUL:
        product, k = plain, next((k for k, (_, free) in enumerate(read) if free), None)
        for operand in operands:
            product = tuple(a * b for a, b in zip(product, operand.signs, strict=True))
        own, left = (product, plain) if k is None else (plain, product)
        return own, tuple(Operand(x.nodes, x.pack, left if j == k else plain) for j, x in enumerate(operands))
    (operand,) = operands
    return operand.signs, (Operand(operand.nodes, operand.pack, plain),)


def _times(operand: Operand, signs: Signs) -> Operand:
    return Operand(operand.nodes, operand.pack, tuple(a * b for a, b in zip(operand.signs, signs, strict=True)))


def find_packs(graph: Graph, nodes: Sequence[int], limbs: Limbs) -> Packing:
    """The packs of a program; none where they would not save enough.

    Args:
        graph: the expressions.
        nodes: the needed nodes, inputs included, in topological order.
        limbs: inputs that correspond, as many limbs a group as a vector has lanes.
    """
    if not limbs:
        return Packing()
    finder = _Finder(graph, limbs)
    levels: dict[int, list[int]] = defaultdict(list)
    depth: dict[int, int] = {}
    for i in nodes:
        depth[i] = max((depth[s] + 1 for s in _operands(graph, i)), default=0)
        if depth[i] and graph.ops[i] not in (Op.NEG, Op.SQRT):
            levels[depth[i]].append(i)
    for k in sorted(levels):
        finder.level(levels[k])
    found = finder.found
    found.saved = _saved(graph, nodes, found)
    return found if found.saved >= LEAST * n_statements(graph, nodes) else Packing()


def _saved(graph: Graph, nodes: Sequence[int], packing: Packing) -> int:
    """How many operations packs save: to put numbers into a vector, or take them out of one, costs some."""
    taken: set[int] = set()
    for i in nodes:
        lane = packing.places[i][1] if i in packing.places else -1
        taken.update(s for s in _operands(graph, i) if s in packing.places and packing.places[s][1] != lane)
    saved = 0
    for pack in packing.statements:
        gathered = [x.nodes for x in pack.operands if x.pack < 0 and graph.ops[x.nodes[0]] is not Op.CONSTANT]
        saved += len(pack.nodes) - 1 - len(taken.intersection(pack.nodes))
        saved -= sum(len(each) for each in gathered if len(set(each)) > 1)
    return saved


def in_lanes(limbs: Limbs, lanes: int) -> Limbs:
    """Groups of limbs that fill vectors of at most some lanes: of five, four in one."""
    groups = []
    for group in limbs:
        left, n = group, lanes
        while n > 1:
            while len(left) >= n:
                groups.append(left[:n])
                left = left[n:]
            n //= 2
    return tuple(groups)

"""First derivatives of expressions, forward and reverse, kept sparse; and expressions with inputs replaced.

Source: Griewank and Walther, Evaluating Derivatives, ch. 3, for the two modes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from heapq import heapify, heappop, heappush
from typing import Literal, TypeAlias

from nori_dyn.algebra.counting import expression_cost
from nori_dyn.algebra.expressions import Expr, Graph, Op, accumulate

Direction: TypeAlias = Mapping[int, Expr]
"""How inputs, by their index, move: the rate of each; the others stand still."""

Sparse: TypeAlias = dict[tuple[int, int], Expr]
"""The derivatives that are not zero, by the number of the output and of the direction."""

_ADD, _SUB, _MUL, _NEG = Op.ADD, Op.SUB, Op.MUL, Op.NEG  # found sooner than as members of a class

Mode: TypeAlias = Literal["auto", "forward", "reverse"]


def directional(outputs: Sequence[Expr], directions: Sequence[Direction], mode: Mode = "auto") -> Sparse:
    """The derivatives of some outputs along some directions.

    Where nodes were merged because inputs obey an equation, as those of a unit quaternion do, the directions must obey
    its derivative.

    Args:
        outputs: the expressions, of one graph.
        directions: how the inputs move.
        mode: "forward" carries derivatives from the inputs to all outputs, "reverse" from each output to the inputs;
            "auto" takes whichever needs fewer operations.
    """
    if mode != "auto":
        return _forward(outputs, directions) if mode == "forward" else _reverse(outputs, directions)
    graph = outputs[0].graph
    size, costs = len(graph), dict[Mode, int]()
    likely: Mode = "forward" if len(directions) <= len(outputs) else "reverse"
    for way in ("reverse" if likely == "forward" else "forward", likely):
        graph.forget(size)
        found = directional(outputs, directions, way)
        costs[way] = expression_cost(found.values()).total
    best: Mode = "forward" if costs["forward"] <= costs["reverse"] else "reverse"
    if best == likely:
        return found
    graph.forget(size)
    return directional(outputs, directions, best)


def gradient(
    outputs: Sequence[Expr], factors: Sequence[Expr], inputs: Sequence[Expr], moves: bytearray | None = None
) -> list[Expr]:
    """Gradient of sum_m factor_m output_m by each input, the factors held constant: one reverse sweep.

    Args:
        outputs: the expressions, of one graph.
        factors: as many.
        inputs: the inputs to derive by.
        moves: what `depends_on` says of these inputs and outputs, of further ones perhaps.
    """
    graph = outputs[0].graph
    moves = depends_on(graph, outputs, [x.index for x in inputs]) if moves is None else moves
    adjoints: dict[int, Expr] = {}
    for output, factor in zip(outputs, factors, strict=True):
        accumulate(adjoints, output.index, factor)
    waiting = [-i for i in adjoints if moves[i]]  # the last node comes first
    heapify(waiting)
    while waiting:
        i = -heappop(waiting)
        if adjoints[i].is_zero:
            continue
        for source, partial in partials(graph, i):
            if moves[source]:
                if source not in adjoints:
                    heappush(waiting, -source)
                accumulate(adjoints, source, partial * adjoints[i])
    return [adjoints.get(x.index, graph.zero) for x in inputs]


def replaced(outputs: Sequence[Expr], values: Mapping[int, Expr]) -> list[Expr]:
    """Outputs with some inputs, by their index, replaced by expressions; no sine is taken of these."""
    graph = outputs[0].graph
    found = dict(values)
    for i in graph.reachable(outputs):
        if i in found:
            continue
        parts = [found[part] for part in _operands(graph, i)]
        changed = any(part.index != old for part, old in zip(parts, _operands(graph, i), strict=True))
        found[i] = _again(graph, graph.ops[i], parts) if changed else Expr(graph, i)
    return [found[output.index] for output in outputs]


def _again(graph: Graph, op: Op, parts: Sequence[Expr]) -> Expr:
    match op:
        case Op.ADD:
            return parts[0] + parts[1]
        case Op.SUB:
            return parts[0] - parts[1]
        case Op.MUL:
            return parts[0] * parts[1]
        case Op.NEG:
            return -parts[0]
        case Op.RECIPROCAL:
            return graph.reciprocal(parts[0])
        case Op.SQRT:
            return graph.sqrt(parts[0])
        case Op.OPAQUE:
            return graph.opaque(parts[0])
    raise TypeError(f"an expression under {op.name.lower()} cannot be replaced")


def _operands(graph: Graph, i: int) -> tuple[int, ...]:
    return tuple(part for part in (graph.left[i], graph.right[i]) if part >= 0)


def partials(graph: Graph, i: int) -> tuple[tuple[int, Expr], ...]:
    """The operands of a node and the derivative of the node by each."""
    left, right, one, op = graph.left[i], graph.right[i], graph.one, graph.ops[i]
    if op is _MUL:
        return (left, Expr(graph, right)), (right, Expr(graph, left))
    if op is _ADD:
        return (left, one), (right, one)
    if op is _SUB:
        return (left, one), (right, -one)
    if op is _NEG:
        return ((left, -one),)
    node = Expr(graph, i)
    match op:
        case Op.RECIPROCAL:
            return ((left, -(node * node)),)
        case Op.SIN:
            return ((left, Expr(graph, left).cos()),)
        case Op.COS:
            return ((left, -Expr(graph, left).sin()),)
        case Op.OPAQUE:
            return ((left, one),)
        case Op.SQRT:
            return ((left, 0.5 * graph.reciprocal(node)),)
    return ()


def seeds_of(directions: Sequence[Direction], first: int = 0) -> dict[int, dict[int, Expr]]:
    """The rates of inputs by their node and by column: that of the first direction is `first`."""
    seeds: dict[int, dict[int, Expr]] = {}
    for k, direction in enumerate(directions, first):
        for node, rate in direction.items():
            seeds.setdefault(node, {})[k] = rate
    return seeds


class Rates:
    """Derivatives of expressions, by directions and by nodes of which they are functions: the forward mode.

    Attributes:
        inner: the derivatives of these nodes themselves.

    Args:
        graph: the expressions.
        wanted: which to derive.
        seeds: the rates of inputs, by column.
        cuts: the column of each node that counts as given.
    """

    def __init__(
        self, graph: Graph, wanted: Sequence[Expr], seeds: Mapping[int, Mapping[int, Expr]], cuts: Mapping[int, int]
    ) -> None:
        self._rates: dict[int, Mapping[int, Expr]] = dict(seeds)
        self.inner: dict[int, Mapping[int, Expr]] = {}
        for node in graph.reachable(wanted):
            if graph.ops[node] in (Op.CONSTANT, Op.INPUT):
                continue
            moving = [(partial, self._rates[i]) for i, partial in partials(graph, node) if i in self._rates]
            found: dict[int, Expr] = {}
            for partial, rates in moving:
                for column, rate in rates.items():
                    accumulate(found, column, partial * rate)
            if found and node in cuts:
                self.inner[node], found = found, {cuts[node]: graph.one}
            if found:
                self._rates[node] = found

    def of(self, x: Expr) -> Mapping[int, Expr]:
        """The rates of an expression by column; absent ones are zero."""
        return self._rates.get(x.index, {})


def _forward(outputs: Sequence[Expr], directions: Sequence[Direction]) -> Sparse:
    rates = Rates(outputs[0].graph, outputs, seeds_of(directions), {})
    found = (((m, k), rate) for m, output in enumerate(outputs) for k, rate in rates.of(output).items())
    return {place: rate for place, rate in found if not rate.is_zero}


def _reverse(outputs: Sequence[Expr], directions: Sequence[Direction]) -> Sparse:
    graph = outputs[0].graph
    result: Sparse = {}
    inputs = [Expr(graph, i) for i in sorted({i for direction in directions for i in direction})]
    moves = depends_on(graph, outputs, [x.index for x in inputs])
    for m, output in enumerate(outputs):
        adjoints = dict(zip((x.index for x in inputs), gradient([output], [graph.one], inputs, moves), strict=True))
        for k, direction in enumerate(directions):
            total = graph.zero
            for i, rate in direction.items():
                if i in adjoints:
                    total = total + adjoints[i] * rate
            if not total.is_zero:
                result[m, k] = total
    return result


def depends_on(graph: Graph, outputs: Sequence[Expr], inputs: Iterable[int]) -> bytearray:
    """For each node, whether it depends on some inputs."""
    moves = bytearray(len(graph))
    for i in inputs:
        moves[i] = 1
    for i in graph.reachable(outputs):
        if any(moves[part] for part in _operands(graph, i)):
            moves[i] = 1
    return moves

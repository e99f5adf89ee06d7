"""Scalar expressions with fingerprints: equal functions are one node, and a structural zero is known exactly.

Every node carries its value at one random point of a prime field, p near 2^127. A constant is its exact rational
value mod p (a double is m 2^e), and no two doubles are the same there; the sine and cosine of an angle are
2t/(1+t^2) and (1-t^2)/(1+t^2) for one random t, so sin^2 + cos^2 is 1 in the field as well; a unit quaternion is
a random point of the sphere. Two nodes with equal fingerprints are merged, and a zero fingerprint is the zero
function.

Two different functions of total degree d (numerator and denominator, in the t's and inputs) agree at the point
with probability at most d/p (Schwartz-Zippel); over all pairs of n nodes the bound is n^2 d / p. With
n = 4e5 nodes of degree 1e4 it is 1e-23, so one point of this field is enough for any robot.

Source: docs/design.md, 4.2 (own derivation; tests/unit/algebra/test_expressions.py).
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import IntEnum
from itertools import compress
from typing import Any, TypeAlias, TypeVar

import numpy as np

from nori_dyn.algebra.prime_field import PRIME, field_value, sphere_point, turn_point
from nori_dyn.algebra.scalars import cos, sin, sqrt
from nori_dyn.typing import Floats

Operand: TypeAlias = "Expr | float | int"
Key = TypeVar("Key", bound=Hashable)


class Op(IntEnum):
    """The operation of a node: RECIPROCAL is 1/left, OPAQUE is left.

    SQRT comes from no equation of motion, but from factorisations; OPAQUE from the correction of rounding.
    """

    CONSTANT = 0
    INPUT = 1
    SIN = 2
    COS = 3
    ADD = 4
    SUB = 5
    MUL = 6
    NEG = 7
    RECIPROCAL = 8
    SQRT = 9
    OPAQUE = 10


_CONSTANT, _INPUT, _ADD, _SUB, _MUL, _NEG = Op.CONSTANT, Op.INPUT, Op.ADD, Op.SUB, Op.MUL, Op.NEG
"""By their own names they are found sooner than as members of a class."""

_ONE, _MINUS_ONE = 1, 2
"""The nodes 1 and -1; node 0 is zero."""

_UFUNCS: dict[Op, Callable[..., Any]] = {
    Op.SIN: sin,
    Op.COS: cos,
    Op.ADD: np.add,
    Op.SUB: np.subtract,
    Op.MUL: np.multiply,
    Op.NEG: np.negative,
    Op.RECIPROCAL: np.reciprocal,
    Op.SQRT: sqrt,
    Op.OPAQUE: np.positive,
}


class Graph:
    """An arena of merged scalar nodes; node `i` may only refer to nodes before it.

    Attributes:
        combinations: which nodes are, as rows, made of which others; see `algebra.rows`.

    Args:
        seed: seed of the random point at which fingerprints are taken.
    """

    __slots__ = (
        "_by_fingerprint",
        "_numbers",
        "_rng",
        "_roots",
        "_sines",
        "combinations",
        "fingerprints",
        "labels",
        "left",
        "one",
        "ops",
        "right",
        "values",
        "zero",
    )

    def __init__(self, seed: int = 0) -> None:
        self._rng = random.Random(seed)
        self.ops: list[Op] = []
        self.left: list[int] = []
        self.right: list[int] = []
        self.values: list[float] = []
        self.fingerprints: list[int] = []
        self.labels: dict[int, str] = {}
        self.combinations: list[RowSum | RowMap] = []
        self._by_fingerprint: dict[int, Expr] = {}
        self._numbers: dict[float, Expr] = {}
        self._sines: dict[int, tuple[Expr, Expr]] = {}
        self._roots: dict[int, Expr] = {}
        self.zero = self._node(_CONSTANT, 0, value=0.0)
        self.one = self._node(_CONSTANT, 1, value=1.0)
        self._node(_CONSTANT, PRIME - 1, value=-1.0)

    def __len__(self) -> int:
        return len(self.ops)

    def __repr__(self) -> str:
        return f"Graph({len(self)} nodes, {len(self.labels)} inputs)"

    def _node(self, op: Op, fingerprint: int, left: int = -1, right: int = -1, value: float = 0.0) -> Expr:
        found = self._by_fingerprint.get(fingerprint)
        return self._new(op, fingerprint, left, right, value) if found is None else found

    def _new(self, op: Op, fingerprint: int, left: int = -1, right: int = -1, value: float = 0.0) -> Expr:
        """A new node, of a function that has none yet."""
        index = len(self.ops)
        self.ops.append(op)
        self.left.append(left)
        self.right.append(right)
        self.values.append(value)
        self.fingerprints.append(fingerprint)
        node = Expr(self, index)
        self._by_fingerprint[fingerprint] = node
        return node

    def forget(self, size: int) -> None:
        """Forget all nodes but the first `size`; expressions that refer to later ones must not be used any more."""
        for fingerprint in self.fingerprints[size:]:
            del self._by_fingerprint[fingerprint]
        self._numbers = {value: node for value, node in self._numbers.items() if node.index < size}
        self._roots = {i: root for i, root in self._roots.items() if root.index < size}
        self._sines = {i: pair for i, pair in self._sines.items() if max(x.index for x in pair) < size}
        self.labels = {i: label for i, label in self.labels.items() if i < size}
        for column in (self.ops, self.left, self.right, self.values, self.fingerprints):
            del column[size:]

    def reachable(self, outputs: Iterable[Expr]) -> list[int]:
        """The indices of the nodes that some outputs depend on, themselves included, in topological order."""
        indices = [output.index for output in outputs]
        size = max(indices, default=-1) + 1
        needed = bytearray(size + 1)  # what a node has no operand for, -1, is the last
        for i in indices:
            needed[i] = 1
        left, right = self.left, self.right
        for i in range(size - 1, -1, -1):
            if needed[i]:
                needed[left[i]] = needed[right[i]] = 1
        return list(compress(range(size), needed))

    def evaluate(self, outputs: Sequence[Expr], inputs: Mapping[int, Floats]) -> Floats:
        """The values (outputs, N) of some expressions.

        Args:
            outputs: the expressions.
            inputs: the values (N,) of each input that they depend on, by its index.
        """
        values: dict[int, Floats] = dict(inputs)
        left, right = self.left, self.right
        for i in self.reachable(outputs):
            op = self.ops[i]
            if op is _CONSTANT:
                values[i] = np.asarray(self.values[i])
            elif op is not _INPUT:
                operands = (values[left[i]],) if right[i] < 0 else (values[left[i]], values[right[i]])
                values[i] = _UFUNCS[op](*operands)
        shape = np.broadcast_shapes(*(x.shape for x in inputs.values()))
        found = np.empty((len(outputs), *shape), dtype=np.result_type(*inputs.values(), float))
        for k, output in enumerate(outputs):
            found[k] = values[output.index]
        return found

    def expr(self, operand: Operand) -> Expr:
        """The operand as a node: itself, or the constant of a number."""
        if isinstance(operand, Expr):
            if operand.graph is not self:
                raise ValueError("expressions of two graphs cannot be mixed")
            return operand
        value = float(operand)
        known = self._numbers.get(value)
        if known is not None:
            return known
        node = self._node(_CONSTANT, field_value(value), value=value)
        if self.values[node.index] != value:
            node = self._made_constant(node, value)
        self._numbers[value] = node
        return node

    def _made_constant(self, node: Expr, value: float) -> Expr:
        """Turn a node that equals a number into that constant.

        It was made as an expression, or as a fold of constants that is rounded in doubles.
        """
        i = node.index
        self.ops[i], self.left[i], self.right[i], self.values[i] = _CONSTANT, -1, -1, value
        return node

    def input(self, label: str) -> Expr:
        """A new independent input, with a label for messages."""
        return self._labelled(label, self._rng.randrange(2, PRIME))

    def unit_quaternion(self, labels: Iterable[str]) -> tuple[Expr, Expr, Expr, Expr]:
        """Four inputs (x, y, z, w) whose fingerprints satisfy x^2 + y^2 + z^2 + w^2 = 1.

        The point is a stereographic image of three random numbers, generic on the sphere.
        """
        point = sphere_point([self._rng.randrange(2, PRIME) for _ in range(3)])
        x, y, z, w = (self._labelled(label, value) for label, value in zip(labels, point, strict=True))
        return x, y, z, w

    def _labelled(self, label: str, fingerprint: int) -> Expr:
        node = self._node(_INPUT, fingerprint)
        if node.index in self.labels:
            raise RuntimeError(f"two inputs drew the same random point: {self.labels[node.index]}, {label}")
        self.labels[node.index] = label
        return node

    def sin_cos(self, angle: Expr) -> tuple[Expr, Expr]:
        """The sine and cosine of an input (of inputs only: no angle is a sum in the equations)."""
        if self.ops[angle.index] is _CONSTANT:
            raise TypeError("take the sine of a constant with math.sin")
        if self.ops[angle.index] is not _INPUT:
            raise TypeError("sines and cosines are defined for inputs only")
        pair = self._sines.get(angle.index)
        if pair is None:
            s, c = turn_point(self._rng.randrange(2, PRIME))
            pair = self._node(Op.SIN, s, angle.index), self._node(Op.COS, c, angle.index)
            self._sines[angle.index] = pair
        return pair

    def takes_sine(self, angle: Expr) -> bool:
        """Whether a sine or cosine of an input has been taken."""
        return angle.index in self._sines

    def fixed_turn(self, c: float, s: float) -> tuple[Expr, Expr]:
        """The constants c and s of a fixed angle, for which c^2 + s^2 is exactly 1.

        Doubles are not on the circle but to rounding; the rational point next to them is, and is what the fingerprints
        stand for. The values are the doubles given.
        """
        sine, cosine = turn_point(field_value(s / (1 + abs(c))))
        return (
            self._node(_CONSTANT, cosine if c >= 0 else PRIME - cosine, value=float(c)),
            self._node(_CONSTANT, sine, value=float(s)),
        )

    def add(self, x: Expr, y: Expr) -> Expr:
        """The sum x + y."""
        i, j = x.index, y.index
        if i == 0:
            return y
        if j == 0:
            return x
        fingerprint = (self.fingerprints[i] + self.fingerprints[j]) % PRIME
        known = self._by_fingerprint
        if fingerprint in known:
            return known[fingerprint]
        if PRIME - fingerprint in known:
            return self.neg(known[PRIME - fingerprint])
        ops = self.ops
        if ops[i] is _CONSTANT and ops[j] is _CONSTANT:
            return self._new(_CONSTANT, fingerprint, value=self.values[i] + self.values[j])
        if ops[j] is _NEG:
            return self.sub(x, Expr(self, self.left[j]))
        if ops[i] is _NEG:
            return self.sub(y, Expr(self, self.left[i]))
        return self._new(_ADD, fingerprint, i, j)

    def sub(self, x: Expr, y: Expr) -> Expr:
        """The difference x - y."""
        i, j = x.index, y.index
        if j == 0:
            return x
        if i == 0:
            return self.neg(y)
        fingerprint = (self.fingerprints[i] - self.fingerprints[j]) % PRIME
        known = self._by_fingerprint
        if fingerprint in known:
            return known[fingerprint]
        if PRIME - fingerprint in known:
            return self.neg(known[PRIME - fingerprint])
        ops = self.ops
        if ops[i] is _CONSTANT and ops[j] is _CONSTANT:
            return self._new(_CONSTANT, fingerprint, value=self.values[i] - self.values[j])
        if ops[j] is _NEG:
            return self.add(x, Expr(self, self.left[j]))
        if ops[i] is _NEG:
            return self.neg(self.add(Expr(self, self.left[i]), y))
        return self._new(_SUB, fingerprint, i, j)

    def neg(self, x: Expr) -> Expr:
        """-x: nodes that read it absorb the sign, so that only an output ever computes one."""
        i = x.index
        fingerprint = -self.fingerprints[i] % PRIME
        found = self._by_fingerprint.get(fingerprint)
        if found is not None:
            return found
        if self.ops[i] is _CONSTANT:
            return self._new(_CONSTANT, fingerprint, value=-self.values[i])
        return self._new(_NEG, fingerprint, i)

    def mul(self, x: Expr, y: Expr) -> Expr:
        """The product x y; factors 0, 1 and -1 cost nothing."""
        i, j = x.index, y.index
        if i <= _MINUS_ONE:
            return y if i == _ONE else self.neg(y) if i else x
        if j <= _MINUS_ONE:
            return x if j == _ONE else self.neg(x) if j else y
        fingerprint = self.fingerprints[i] * self.fingerprints[j] % PRIME
        known = self._by_fingerprint
        if fingerprint in known:
            return known[fingerprint]
        if PRIME - fingerprint in known:
            return self.neg(known[PRIME - fingerprint])
        ops = self.ops
        if ops[i] is _CONSTANT and ops[j] is _CONSTANT:
            return self._new(_CONSTANT, fingerprint, value=self.values[i] * self.values[j])
        if ops[i] is _NEG:
            return self.neg(self.mul(Expr(self, self.left[i]), y))
        if ops[j] is _NEG:
            return self.neg(self.mul(x, Expr(self, self.left[j])))
        return self._new(_MUL, fingerprint, i, j)

    def reciprocal(self, x: Expr) -> Expr:
        """1 / x.

        Raises:
            ZeroDivisionError: x is the zero function.
        """
        i = x.index
        if i == 0:
            raise ZeroDivisionError("the divisor is zero for every value of the inputs")
        fingerprint = pow(self.fingerprints[i], -1, PRIME)
        if self.ops[i] is _CONSTANT:
            return self._node(_CONSTANT, fingerprint, value=1.0 / self.values[i])
        if self.ops[i] is _NEG:
            return self.neg(self.reciprocal(Expr(self, self.left[i])))
        return self._node(Op.RECIPROCAL, fingerprint, i)

    def sqrt(self, x: Expr) -> Expr:
        """The square root of x, an opaque function: not even its square is known to be x.

        A root in the field would be one of two; which of them is the positive one, the field cannot tell.
        """
        root = self._roots.get(x.index)
        if root is None:
            if self.ops[x.index] is _CONSTANT:
                return self.expr(math.sqrt(self.values[x.index]))
            root = self._roots[x.index] = self._node(Op.SQRT, self._rng.randrange(2, PRIME), x.index)
        return root

    def opaque(self, x: Expr) -> Expr:
        """An opaque copy of x: what is computed from it is kept, even where it is zero on paper.

        It stands for numbers that differ from zero by rounding alone; a constant stays a constant.
        """
        if self.ops[x.index] is _CONSTANT:
            return x
        return self._node(Op.OPAQUE, self._rng.randrange(2, PRIME), x.index)


class Expr:
    """One scalar node of a graph, with the plain operators; NumPy arrays of dtype object hold them.

    `np.sin` and `np.cos` of such an array call the methods of the same name.
    """

    __slots__ = ("graph", "index")

    def __init__(self, graph: Graph, index: int) -> None:
        self.graph = graph
        self.index = index

    @property
    def op(self) -> Op:
        """The operation of the node."""
        return self.graph.ops[self.index]

    @property
    def fingerprint(self) -> int:
        """The value at the random point of the field."""
        return self.graph.fingerprints[self.index]

    @property
    def is_zero(self) -> bool:
        """Whether this is the zero function."""
        return self.index == 0

    @property
    def is_constant(self) -> bool:
        """Whether this is a constant."""
        return self.graph.ops[self.index] is Op.CONSTANT

    @property
    def is_unit(self) -> bool:
        """Whether this is the constant 1 or -1."""
        return self.fingerprint in (1, PRIME - 1)

    @property
    def value(self) -> float:
        """The number, where this is a constant."""
        if not self.is_constant:
            raise TypeError(f"{self!r} is not a constant")
        return self.graph.values[self.index]

    def sin(self) -> Expr:
        """The sine of an input [rad]."""
        return self.graph.sin_cos(self)[0]

    def cos(self) -> Expr:
        """The cosine of an input [rad]."""
        return self.graph.sin_cos(self)[1]

    def sqrt(self) -> Expr:
        """The square root."""
        return self.graph.sqrt(self)

    def __add__(self, other: Operand) -> Expr:
        graph = self.graph
        return graph.add(self, other if isinstance(other, Expr) and other.graph is graph else graph.expr(other))

    def __radd__(self, other: Operand) -> Expr:
        return self.graph.add(self.graph.expr(other), self)

    def __sub__(self, other: Operand) -> Expr:
        graph = self.graph
        return graph.sub(self, other if isinstance(other, Expr) and other.graph is graph else graph.expr(other))

    def __rsub__(self, other: Operand) -> Expr:
        return self.graph.sub(self.graph.expr(other), self)

    def __mul__(self, other: Operand) -> Expr:
        graph = self.graph
        return graph.mul(self, other if isinstance(other, Expr) and other.graph is graph else graph.expr(other))

    def __rmul__(self, other: Operand) -> Expr:
        return self.graph.mul(self.graph.expr(other), self)

    def __truediv__(self, other: Operand) -> Expr:
        return self.graph.mul(self, self.graph.reciprocal(self.graph.expr(other)))

    def __rtruediv__(self, other: Operand) -> Expr:
        return self.graph.mul(self.graph.expr(other), self.graph.reciprocal(self))

    def __neg__(self) -> Expr:
        return self.graph.neg(self)

    def __repr__(self) -> str:
        op = self.op
        if op is Op.CONSTANT:
            return f"Expr({self.value!r})"
        if op is Op.INPUT:
            return f"Expr({self.graph.labels[self.index]})"
        return f"Expr({op.name.lower()} #{self.index})"


Nodes: TypeAlias = tuple[int, ...]
"""The nodes of a row, by their indices; node 0 is zero."""


@dataclass(frozen=True, slots=True, eq=False)
class RowSum:
    """A row that is initial + sum of coefficient times row.

    Attributes:
        first: nodes from this one on came with it, all that it reads was there before.
        row: the result.
        columns: those that it has, as bits; elsewhere the row is zero, whatever the sum is.
        initial: the initial row.
        terms: the coefficient, whether it is subtracted, and the row, of each term.
    """

    first: int
    row: Nodes
    columns: int
    initial: Nodes
    terms: tuple[tuple[int, bool, Nodes], ...]

    @property
    def made(self) -> tuple[Nodes, ...]:
        """The rows that are made."""
        return (self.row,)

    @property
    def read(self) -> tuple[Nodes, ...]:
        """The rows that are read."""
        return (self.initial, *(row for _, _, row in self.terms))


@dataclass(frozen=True, slots=True, eq=False)
class RowMap:
    """Rows that result from others by the same operations in each column.

    Attributes:
        first: nodes from this one on came with it, all that it reads was there before.
        statements: how many came.
        made: the rows that are made.
        read: the rows that are read.
        inputs: placeholders for an element of each of these; a number where all elements are equal.
        outputs: the results of a column, as expressions of these.
    """

    first: int
    statements: int
    made: tuple[Nodes, ...]
    read: tuple[Nodes, ...]
    inputs: tuple[Expr, ...]
    outputs: tuple[Expr, ...]

    @property
    def instructions(self) -> int:
        """About how many instructions a block takes."""
        graph = self.outputs[0].graph
        return len(graph.reachable(self.outputs)) + len(self.outputs)


def accumulate(sums: dict[Key, Expr], key: Key, value: Expr) -> None:
    """Add a value to one of some sums."""
    known = sums.get(key)
    sums[key] = value if known is None else known.graph.add(known, value)

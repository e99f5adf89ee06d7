"""A straight-line program: its inputs, outputs and guards.

Everything compiled is described by one: a function of a robot, an elimination, a monitor, the rows of a filter. It is
run by NumPy (`kernel.numpy`), or written as C (`emit`).

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import zip_longest
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.counting import Cost, expression_cost
from nori_dyn.algebra.expressions import Expr, Graph
from nori_dyn.model.limbs import Limbs
from nori_dyn.program.row_plan import RowPlan

Row: TypeAlias = tuple[Expr, tuple[tuple[Expr, int], ...]]
"""A row of D d + b: b, and each entry with the place of its unknown among the outputs."""


@dataclass(frozen=True, slots=True, eq=False)
class Refinement:
    """Steps of iterative refinement of the outputs; all fields are empty where there is none.

    Attributes:
        steps: the change of each output by one step; it must be small.
        twice: the outputs once more refined, where it is not.
        further: the change by that.
        first: the outputs before any refinement, which are returned on the fast path.
        watched: expressions that have their usual size there.
    """

    steps: tuple[Expr, ...] = ()
    twice: tuple[Expr, ...] = ()
    further: tuple[Expr, ...] = ()
    first: tuple[Expr, ...] = ()
    watched: tuple[Expr, ...] = ()


@dataclass(frozen=True, eq=False)
class Program:
    """A straight-line program over expressions.

    Attributes:
        inputs: the arguments: for each array its scalars.
        outputs: the expressions returned.
        pivots: the expressions that must not be small.
        pivot_names: the name of each, for people; empty where they have none.
        refinement: of the outputs.
        equations: for the residual, the rows of each equation of D d + b = 0; none where it is not computed.
        quaternions: the place, among all inputs, of the first number of each unit quaternion.
        n_weights: how many of the last inputs are weights, which must not be negative.
        n_noise_weights: how many of these, the first, are of equations of motion.
        constants_once: whether outputs that no input changes are written once, instead of at every state.
        rows: the row operations of single states, if any; such a program has no equations and no refinement.
        limbs: for each group of isomorphic limbs, the places among the inputs of those of each limb, in the same order.
    """

    inputs: Mapping[str, tuple[Expr, ...]]
    outputs: tuple[Expr, ...]
    pivots: tuple[Expr, ...] = ()
    pivot_names: tuple[str, ...] = ()
    refinement: Refinement = Refinement()
    equations: tuple[tuple[Row, ...], ...] = ()
    quaternions: tuple[int, ...] = ()
    n_weights: int = 0
    n_noise_weights: int = 0
    constants_once: bool = False
    rows: RowPlan | None = None
    limbs: Limbs = ()

    def __post_init__(self) -> None:
        if not self.outputs:
            raise ValueError("a program without outputs computes nothing")

    @property
    def graph(self) -> Graph:
        """The expressions."""
        return self.outputs[0].graph

    @cached_property
    def scalars(self) -> tuple[Expr, ...]:
        """All inputs, one array after the other."""
        return tuple(x for scalars in self.inputs.values() for x in scalars)

    @property
    def limb_nodes(self) -> Limbs:
        """The limbs, by the nodes of their inputs instead of the places of these."""
        return tuple(tuple(tuple(self.scalars[k].index for k in limb) for limb in group) for group in self.limbs)

    @property
    def of_equations(self) -> tuple[Expr, ...]:
        """The expressions of the residual: b of all rows, then all entries."""
        rows = [row for equation in self.equations for row in equation]
        return *(b for b, _ in rows), *(entry for _, terms in rows for entry, _ in terms)

    @property
    def parts(self) -> tuple[tuple[Expr, ...], ...]:
        """All expressions: outputs, pivots, steps, twice, further, and those of the residual."""
        by = self.refinement
        return self.outputs, self.pivots, by.steps, by.twice, by.further, self.of_equations

    @property
    def digest(self) -> str:
        """A hash of the program as it was traced, its rows left out, which follow from the rest."""
        graph, by = self.graph, self.refinement
        parts = [[x.index for x in part] for part in (self.scalars, *self.parts, by.first, by.watched)]
        places = [[[place for _, place in terms] for _, terms in rows] for rows in self.equations]
        size = max((i for part in parts for i in part), default=-1) + 1
        hasher = hashlib.sha256(repr((parts, places, [*self.inputs], self.quaternions, self.limbs)).encode())
        hasher.update(repr((self.n_weights, self.n_noise_weights, self.constants_once, self.pivot_names)).encode())
        for column in (graph.ops, graph.left, graph.right, graph.values):
            hasher.update(np.array(column[:size], dtype=float).tobytes())
        return hasher.hexdigest()

    @cached_property
    def packed_outputs(self) -> tuple[int, ...]:
        """The place of each output where those that are the same expressions have one place."""
        by = self.refinement
        pairs = zip_longest(*([x.index for x in part] for part in (self.outputs, by.twice, by.first)))
        places: dict[tuple[int, ...], int] = {}
        return tuple(places.setdefault(pair, len(places)) for pair in pairs)

    @property
    def cost(self) -> Cost:
        """Counted operations of the outputs, sines and cosines not counted."""
        return expression_cost(self.outputs) if self.rows is None else self.rows.cost

    @property
    def fast_path(self) -> Program:
        """The expressions of the fast path; the watched ones come after the pivots."""
        by = self.refinement
        return replace(self, outputs=by.first, pivots=(*self.pivots, *by.watched), refinement=Refinement())

    def has_fast_path(self, limits: Sequence[float]) -> bool:
        """Whether some state is on the fast path, by the limits of a kernel: no range of an input is empty."""
        n = len(self.pivots) + len(self.refinement.steps)
        return len(limits) > n and limits[n] <= limits[n + len(self.scalars)]

    @property
    def has_single(self) -> bool:
        """Whether it runs in single precision: it is without weights, whose ratios exceed the digits of floats."""
        return not (self.refinement.steps or self.n_weights)

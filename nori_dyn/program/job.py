"""What a program in C is to compute, and how its statements refer to what they read and write.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from nori_dyn.algebra.expressions import Expr, Graph, Op
from nori_dyn.model.limbs import Limbs
from nori_dyn.program.residual import Row
from nori_dyn.program.row_plan import RowPlan

FORMATS = {
    Op.ADD: "{0} + {1}",
    Op.SUB: "{0} - {1}",
    Op.MUL: "{0} * {1}",
    Op.NEG: "-{0}",
    Op.RECIPROCAL: "1.0 / {0}",
    Op.SQRT: "{root}({0})",
    Op.OPAQUE: "{0}",
}
"""How a statement computes what it does."""


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """What the C is to compute.

    Attributes:
        graph: the expressions.
        inputs: the scalars of the input arrays, in this order: of q, qd and y for a plan.
        outputs: the expressions returned.
        pivots: the expressions that must not be small.
        equations: for the residual, the rows of each equation of D d + b = 0: b, and (entry, place of its unknown in
            `outputs`); empty when not all unknowns are computed.
        quaternions: the place, among the inputs, of the first number of each unit quaternion.
        n_arrays: number of input arrays.
        n_weights: how many of the last inputs are weights, which must not be negative.
        n_noise_weights: how many of these, the first, are of equations of motion.
        weight_spread: the largest ratio that the others may span, those of 0 left out.
        constants_once: whether outputs that no input changes are written by `prepare`, instead of by every `run`.
        steps: expressions that must be small beside the outputs, one of each, or none.
        again: where they are not, other outputs to return, and their steps.
        first: what may be returned instead of the outputs at a usual state; none where there is nothing cheaper.
        watched: expressions that have their usual size there.
        rows: what single states compute as rows, where some is; such a job has no equations, and nothing to do again.
        limbs: for each group of isomorphic limbs, the places among the inputs of those of each limb, in the same order.
    """

    graph: Graph
    inputs: tuple[Expr, ...]
    outputs: tuple[Expr, ...]
    pivots: tuple[Expr, ...]
    equations: tuple[tuple[Row, ...], ...]
    quaternions: tuple[int, ...] = ()
    n_arrays: int = 3
    n_weights: int = 0
    n_noise_weights: int = 0
    weight_spread: float = 1.0
    constants_once: bool = False
    steps: tuple[Expr, ...] = ()
    again: tuple[tuple[Expr, ...], tuple[Expr, ...]] = ((), ())
    first: tuple[Expr, ...] = ()
    watched: tuple[Expr, ...] = ()
    rows: RowPlan | None = None
    limbs: Limbs = ()

    @property
    def of_usual(self) -> Job:
        """What is computed at a usual state; what is watched comes after the pivots."""
        pivots = (*self.pivots, *self.watched)
        return replace(self, outputs=self.first, pivots=pivots, steps=(), again=((), ()), first=(), watched=())


@dataclass(frozen=True, slots=True)
class Notation:
    """How statements refer to what they read and write.

    Attributes:
        inputs: each input of the job.
        outputs: each output of the job.
        parameters: of a function of statements; the workspace among them is `w`.
        real: the type of a number.
        fill: a number of that type from a double, `{0}`.
        rarely: what stands before functions that are called where steps are not small.
        root: the function that takes square roots of such numbers.
        straight: what stands before the other functions of statements.
        prefix: what the names of all functions begin with.
        lanes: numbers of a vector in which statements of several limbs may be packed, at most.
        has_vectors: whether the compiler knows vectors; for one that does not, packs are written lane by lane.
    """

    inputs: Sequence[str]
    outputs: Sequence[str]
    parameters: str = "const real *restrict in, real *restrict w, real *restrict out"
    real: str = "real"
    fill: str = "(real){{0}} + {0}"
    rarely: str = "RARELY "
    root: str = "ROOT"
    straight: str = ""
    prefix: str = ""
    lanes: int = 1
    has_vectors: bool = True

"""Functions of a robot's motion, and derivatives of a sum of their outputs, each times a factor: one reverse sweep.

Source: Griewank and Walther, Evaluating Derivatives, ch. 3.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.derivatives import gradient
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import Traced
from nori_dyn.system.trace import freedoms
from nori_dyn.typing import Floats

FACTORS = "factors"
"""The name of the input that the factors are."""

Pullback: TypeAlias = Callable[[Floats], Floats]
"""From factors of what a motion gives to derivatives by the motion: (3, N, n) by q, qd and qdd of freedoms."""


@dataclass(frozen=True, eq=False)
class MotionFunction:
    """A function of q, qd and qdd, and derivatives of sum_m factor_m output_m by those of some freedoms, compiled.

    Attributes:
        value: the outputs, of q, qd and qdd.
        sweep: of these and the factors (n_outputs,); the derivatives along unit velocities of the freedoms come first,
            then those by qd and qdd.
    """

    value: CompiledFunction
    sweep: CompiledFunction

    @staticmethod
    def of(traced: Traced, moved: Sequence[int]) -> MotionFunction:
        """Compile a function of q, qd and qdd, whose outputs one after the other have factors.

        Args:
            traced: the function.
            moved: the freedoms.

        Raises:
            CompilerError: as for `compile`.
        """
        graph, outputs = traced.graph, [x for array in traced.outputs.values() for x in array.flat]
        factors = np.array([graph.input(f"{FACTORS}[{k}]") for k in range(len(outputs))], dtype=object)
        q, directions = traced.inputs["q"], [*freedoms(graph, traced.tree, traced.inputs["q"])]
        inputs = [*q, *(traced.inputs[name][k] for name in ("qd", "qdd") for k in moved)]
        slopes = gradient(outputs, list(factors), inputs)
        by_q = {x.index: slope for x, slope in zip(q, slopes, strict=False)}
        along = [sum((by_q[i] * rate for i, rate in directions[k].items()), graph.zero) for k in moved]
        found = np.array([*along, *slopes[len(q) :]], dtype=object)
        both = {**traced.inputs, FACTORS: factors}
        swept = replace(
            traced, name=f"sweep of {traced.name}", inputs=both, outputs={"sweep": found}, kind=None, rule=None
        )
        return MotionFunction(CompiledFunction(traced), CompiledFunction(swept))

    def __call__(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """The outputs (N, ...) at N samples q (N, nq), qd and qdd (N, nv)."""
        return np.asarray(self.value.batch(q, qd, qdd))

    def pullback(self, q: Floats, qd: Floats, qdd: Floats, factors: Floats) -> Floats:
        """Derivatives (3, N, n_moved) at N samples, for factors (N, n_outputs)."""
        slopes = np.asarray(self.sweep.batch(q, qd, qdd, factors))
        return np.moveaxis(slopes.reshape(len(q), 3, -1), 1, 0)

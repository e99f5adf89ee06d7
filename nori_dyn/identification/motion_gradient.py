"""Derivatives by a motion of a sum of outputs, each times a factor: one reverse sweep, whatever the factors will be.

Source: Griewank and Walther, Evaluating Derivatives, ch. 3.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from nori_dyn.algebra.derivatives import gradient
from nori_dyn.identification.trajectory import MovingJoints
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import Traced
from nori_dyn.typing import Floats

FACTORS = "factors"
"""The name of the input that the factors are."""


@dataclass(frozen=True, eq=False)
class MotionGradient:
    """Derivatives of sum_m factor_m output_m by q, qd and qdd of the joints that move, compiled.

    Attributes:
        function: of q, qd, qdd and the factors (n_outputs,); the derivatives by q come first, then those by qd and qdd.
    """

    function: CompiledFunction

    @staticmethod
    def of(traced: Traced, joints: MovingJoints) -> MotionGradient:
        """Compile those of a function of q, qd and qdd, whose outputs one after the other have factors.

        Raises:
            CompilerError: as for `compile`.
        """
        outputs = [x for array in traced.outputs.values() for x in array.flat]
        factors = np.empty(len(outputs), dtype=object)
        factors[:] = [traced.graph.input(f"{FACTORS}[{k}]") for k in range(len(outputs))]
        moved = {"q": joints.of_q, "qd": joints.of_v, "qdd": joints.of_v}
        inputs = [traced.inputs[name][k] for name, numbers in moved.items() for k in numbers]
        slopes = np.empty(len(inputs), dtype=object)
        slopes[:] = gradient(outputs, list(factors), inputs)
        both = {**traced.inputs, FACTORS: factors}
        swept = replace(
            traced, name=f"sweep of {traced.name}", inputs=both, outputs={"sweep": slopes}, kind=None, rule=None
        )
        return MotionGradient(CompiledFunction(swept))

    def __call__(self, q: Floats, qd: Floats, qdd: Floats, factors: Floats) -> Floats:
        """Derivatives (3, N, n_joints) at N samples, for factors (N, n_outputs)."""
        slopes = np.asarray(self.function.batch(q, qd, qdd, factors))
        return np.moveaxis(slopes.reshape(len(q), 3, -1), 1, 0)

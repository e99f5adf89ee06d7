"""Derivatives of a sum of outputs, each times a factor, as a program: one reverse sweep, whatever the factors will be.

Source: Griewank and Walther, Evaluating Derivatives, ch. 3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nori_dyn.algebra.derivatives import gradient
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import Traced

FACTORS = "factors"
"""The name of the input that the factors are."""


def swept(of: Traced, wrt: Sequence[str], freedoms: Sequence[Sequence[int]], backend: str = "auto") -> CompiledFunction:
    """Compile the derivatives of sum_m factor_m output_m by some numbers of some inputs.

    Args:
        of: the function; its outputs one after the other are those that have factors.
        wrt: names of the inputs.
        freedoms: which numbers of each input; those of joints of one freedom.
        backend: as for `compile`.

    Returns:
        The function of the inputs of the other, and of the factors (n_outputs,), whose result are the derivatives
        by the numbers of the first input, then of the next, and so on.

    Raises:
        CompilerError: as for `compile`.
    """
    graph = of.graph
    outputs = [x for array in of.outputs.values() for x in array.flat]
    factors = np.empty(len(outputs), dtype=object)
    factors[:] = [graph.input(f"{FACTORS}[{k}]") for k in range(len(outputs))]
    inputs = [of.inputs[name][k] for name, numbers in zip(wrt, freedoms, strict=True) for k in numbers]
    found = np.empty(len(inputs), dtype=object)
    found[:] = gradient(outputs, list(factors), inputs)
    name = f"sweep of {of.name}"
    swept_of = replace(
        of, name=name, inputs={**of.inputs, FACTORS: factors}, outputs={"sweep": found}, kind=None, rule=None
    )
    return CompiledFunction(swept_of, backend)

"""A program as straight-line Python: one function that runs on floats and on NumPy batches alike.

The source holds operations, register numbers and constants only: no name from a model gets into it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from nori_dyn.algebra.expressions import Op
from nori_dyn.program.straight_line import Program
from nori_dyn.typing import Floats

Function = Callable[..., Sequence[Any]]

_FORMATS = {
    Op.SIN: "{0} = sin({1})",
    Op.COS: "{0} = cos({1})",
    Op.ADD: "{0} = {1} + {2}",
    Op.SUB: "{0} = {1} - {2}",
    Op.MUL: "{0} = {1} * {2}",
    Op.NEG: "{0} = -{1}",
    Op.RECIPROCAL: "{0} = 1.0 / {1}",
    Op.SQRT: "{0} = ({1}) ** 0.5",
    Op.OPAQUE: "{0} = {1}",
}


def python_source(program: Program) -> str:
    """Return the source of `run(sin, cos, out, *inputs)`, which fills `out` with the outputs.

    Registers are reused once their last reader has run, so a batch holds only what is live.
    """
    graph = program.graph
    last = program.last_uses()
    places: dict[int, list[int]] = {}
    for k, output in enumerate(program.outputs):
        places.setdefault(output.index, []).append(k)
    names: dict[int, str] = {}
    lines = [f"def run(sin, cos, out, {', '.join(program.inputs)}):"]
    used = set(program.nodes)
    for array, scalars in program.inputs.items():
        for k, scalar in enumerate(scalars):
            if scalar.index in used:
                names[scalar.index] = f"{array}_{k}"
                lines.append(f" {array}_{k} = {array}[{k}]")
    free: list[str] = []
    count = 0
    for place, i in enumerate(program.nodes):
        op = graph.ops[i]
        if op is Op.CONSTANT:
            names[i] = f"({graph.values[i]!r})"
        elif op is not Op.INPUT:
            sources = [s for s in (graph.left[i], graph.right[i]) if s >= 0]
            operands = [names[s] for s in sources]
            free.extend(names[s] for s in set(sources) if last[s] == place and names[s].startswith("t"))
            if free and i in last:
                names[i] = free.pop()
            else:
                names[i] = f"t{count}"
                count += 1
            lines.append(" " + _FORMATS[op].format(names[i], *operands))
        lines.extend(f" out[{k}] = {names[i]}" for k in places.get(i, ()))
        if i not in last and names[i].startswith("t"):
            free.append(names[i])
    return "\n".join(lines)


def python_function(program: Program) -> Function:
    """Return the compiled function of `python_source`."""
    namespace: dict[str, Any] = {"__builtins__": {}}
    exec(compile(python_source(program), "<straight-line program>", "exec"), namespace)
    function: Function = namespace["run"]
    return function


class PythonProgram:
    """A program run by Python on single states and by NumPy on batches.

    Args:
        program: the program.
    """

    def __init__(self, program: Program) -> None:
        self.n_outputs = len(program.outputs)
        self._run = python_function(program)

    def single(self, *inputs: Floats) -> Floats:
        """Return the outputs (n_outputs,) of one state.

        Raises:
            ZeroDivisionError: a divisor is exactly zero.
        """
        out = [0.0] * self.n_outputs
        self._run(math.sin, math.cos, out, *(values.tolist() for values in inputs))
        return np.array(out)

    def batch(self, *inputs: Floats) -> Floats:
        """Return the outputs (n_outputs, N) of inputs with a leading N; a zero divisor gives inf or nan."""
        out = np.empty((self.n_outputs, len(inputs[0])))
        with np.errstate(all="ignore"):
            self._run(np.sin, np.cos, out, *(np.ascontiguousarray(values.T) for values in inputs))
        return out

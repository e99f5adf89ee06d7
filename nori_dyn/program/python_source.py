"""A program as straight-line Python: one function that runs on floats and on NumPy batches alike.

The source holds operations, register numbers and constants only: no name from a model gets into it.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nori_dyn.algebra.expressions import Expr, Graph, Op
from nori_dyn.program.statements import FORMATS
from nori_dyn.typing import Floats

Function = Callable[..., Sequence[Any]]

CHUNK = 256
"""States taken at a time: what is live then fits the processor's cache."""

_FORMATS = FORMATS | {Op.SIN: "sin({0})", Op.COS: "cos({0})", Op.SQRT: "({0}) ** 0.5"}


def python_source(inputs: Mapping[str, Sequence[Expr]], outputs: Sequence[Expr]) -> str:
    """The source of `run(sin, cos, out, *inputs)`, which fills `out` with the outputs.

    Registers are reused once their last reader has run, so a batch holds only what is live.
    """
    graph = outputs[0].graph
    nodes = graph.reachable(outputs)
    last = _last_uses(graph, nodes)
    places: dict[int, list[int]] = {}
    for k, output in enumerate(outputs):
        places.setdefault(output.index, []).append(k)
    names: dict[int, str] = {}
    lines = [f"def run(sin, cos, out, {', '.join(inputs)}):"]
    used = set(nodes)
    for array, scalars in inputs.items():
        for k, scalar in enumerate(scalars):
            if scalar.index in used:
                names[scalar.index] = f"{array}_{k}"
                lines.append(f" {array}_{k} = {array}[{k}]")
    free: list[str] = []
    count = 0
    for place, i in enumerate(nodes):
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
            lines.append(f" {names[i]} = {_FORMATS[op].format(*operands)}")
        lines.extend(f" out[{k}] = {names[i]}" for k in places.get(i, ()))
        if i not in last and names[i].startswith("t"):
            free.append(names[i])
    return "\n".join(lines)


def _last_uses(graph: Graph, nodes: Sequence[int]) -> dict[int, int]:
    """For each node the index of the last statement that reads it; outputs are kept to the end."""
    last: dict[int, int] = {}
    for place, i in enumerate(nodes):
        if graph.ops[i] not in (Op.CONSTANT, Op.INPUT):
            last.update((s, place) for s in (graph.left[i], graph.right[i]) if s >= 0)
    return last


class PythonProgram:
    """Expressions computed by Python at single states and by NumPy at batches.

    Args:
        inputs: for each array its scalars.
        outputs: the expressions.
    """

    def __init__(self, inputs: Mapping[str, Sequence[Expr]], outputs: Sequence[Expr]) -> None:
        self.n_outputs = len(outputs)
        namespace: dict[str, Any] = {"__builtins__": {}}
        exec(compile(python_source(inputs, outputs), "<straight-line program>", "exec"), namespace)
        self._run: Function = namespace["run"]

    def single(self, *inputs: Floats) -> Floats:
        """The outputs (n_outputs,) of one state.

        Raises:
            ZeroDivisionError: a divisor is exactly zero.
        """
        out = [0.0] * self.n_outputs
        self._run(math.sin, math.cos, out, *(values.tolist() for values in inputs))
        return np.array(out)

    def batch(self, *inputs: Floats) -> Floats:
        """The outputs (n_outputs, N) of inputs with a leading N; a zero divisor gives inf or nan."""
        out = np.empty((self.n_outputs, len(inputs[0])), dtype=np.result_type(*inputs))
        with np.errstate(all="ignore"):
            self._run(np.sin, np.cos, out, *(np.ascontiguousarray(values.T) for values in inputs))
        return out

    def at(self, *inputs: Floats) -> Floats:
        """The outputs (n_outputs,) of one state; a zero divisor yields infinities."""
        try:
            return self.single(*inputs)
        except (ZeroDivisionError, OverflowError, ValueError):
            return self.batch(*(array[None] for array in inputs))[:, 0]

    def chunks(self, *inputs: Floats) -> Iterator[tuple[slice, Floats]]:
        """Yield which of N states were run, and their outputs (n_outputs, n)."""
        for start in range(0, len(inputs[0]), CHUNK):
            part = slice(start, start + CHUNK)
            yield part, self.batch(*(array[part] for array in inputs))

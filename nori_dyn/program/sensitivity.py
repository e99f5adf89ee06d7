"""Derivatives of a plan's estimate as a function to compile.

Source: docs/design.md, 4.9.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nori_dyn.algebra.derivatives import Direction
from nori_dyn.algebra.expressions import Expr
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.planning.outputs import determined_outputs, output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.planning.sensitivity import Probe, sensitivities
from nori_dyn.program.backends.base import PIVOT_LIMIT, STEP_LIMIT, pivot_guards
from nori_dyn.program.layout import Part, output_parts, sums_of
from nori_dyn.program.tracing import Traced, input_directions
from nori_dyn.typing import Array

NAMED: Any = namedtuple

LEAST = 1e-100
"""What is added to a square that may be zero, as a share of the usual one."""


def traced_derivative(plan: EliminationPlan, wrt: Sequence[str], outputs: Sequence[str] | None = None) -> Traced:
    """Return the derivatives of outputs of a plan's system by some of its inputs, over the expressions of the plan.

    Args:
        plan: the plan.
        wrt: names of inputs: q, qd, y, weights.
        outputs: names of outputs, whether the plan computes them or not; those of the plan when None.

    Raises:
        InputError: no input.
        UnknownNameError: an input that the system does not have.
        UnknownOutputError, PlanError: an output that there is not, or that is not determined.
    """
    wanted = plan.outputs if outputs is None else determined_outputs(plan.system, outputs, plan.undetermined)
    known = plan.system.input_sizes
    if not wrt:
        raise InputError(f"derivatives by which input? Those of the plan are {', '.join(known)}.")
    for name in wrt:
        if name not in known:
            raise UnknownNameError("input", name, known, f"the plan of {plan.system!r}")
    plan = plan.untouched()
    symbolic = plan.symbolic
    inputs = {name: _array(scalars) for name, scalars in symbolic.inputs.items()}
    estimate = Traced("estimate", plan.system.tree, symbolic.graph, inputs, {}, None, None)
    directions: list[Direction] = []
    shapes: dict[str, tuple[int, slice]] = {}
    for name in dict.fromkeys(wrt):
        own, _ = input_directions(estimate, name)
        shapes[name] = len(own), slice(len(directions), len(directions) + len(own))
        directions += own
    parts = list(output_parts(plan.system, wanted))
    probes = [_probe(estimate, name, part, plan.seed) for name, (_, part) in shapes.items()]
    sums = [sums_of(plan.system, output) for output in wanted]
    found = sensitivities(plan, sums, directions, probes if plan.system.is_weighted else ())
    whole = np.full((sum(map(len, sums)), len(directions)), symbolic.graph.zero, dtype=object)
    for place, value in found.derivatives.items():
        whole[place] = value
    results = {
        f"d{part.output.name}_d{name}": whole[part.slice, columns].reshape(*part.shape, n)
        for name, (n, columns) in shapes.items()
        for part in parts
    }
    flat = [x for array in results.values() for x in array.flat]
    guards = (*pivot_guards(plan, flat, PIVOT_LIMIT), *_doubts(plan, parts, found.probes))
    name = f"d estimate / d {', '.join(shapes)}"
    return Traced(name, plan.system.tree, symbolic.graph, inputs, results, _kind(results), None, guards)


def _probe(of: Traced, name: str, part: slice, seed: int) -> dict[int, Expr]:
    """Return a direction in which all numbers of an input move: weights in proportion to their size."""
    signs = np.random.default_rng(seed).choice([-1.0, 1.0], size=part.stop - part.start)
    factors = [of.graph.expr(sign) for sign in signs.tolist()]
    if name == "weights":
        factors = [factor * x for factor, x in zip(factors, of.inputs[name], strict=True)]
    return dict(zip(range(part.start, part.stop), factors, strict=True))


def _doubts(plan: EliminationPlan, parts: Sequence[Part], probes: Sequence[Probe]) -> Iterator[tuple[Expr, float]]:
    """Yield what is small where a step of refinement is not: for each output and each input, sizes squared."""
    if not probes:
        return
    graph, (_, natural) = plan.symbolic.graph, natural_scaling(plan.system, plan.symbolic, plan.seed)
    for part in parts:
        usual = float(np.sum(natural[output_columns(plan.system, [part.output])] ** 2))
        for probe in probes:
            found, steps = (
                sum((x * x for x in values[part.slice]), graph.zero) for values in (probe.found, probe.steps)
            )
            if not steps.is_zero:
                yield (found + usual) / (steps + LEAST * usual), STEP_LIMIT**-2


def _kind(results: Iterable[str]) -> Callable[..., Any]:
    """Return what makes a tuple of some results, named as Python takes it."""
    names = [re.sub(r"\W", "_", name) for name in results]
    made: Callable[..., Any] = NAMED("Derivatives", names, rename=len(set(names)) < len(names))._make
    return made


def _array(values: Sequence[Expr]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

"""Derivatives of a plan's estimate as a function to compile.

Source: docs/design.md, 4.10.
"""

from __future__ import annotations

import re
from collections import namedtuple
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.planning.outputs import Output, determined_outputs, output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.sensitivity import directions_of, sensitivities
from nori_dyn.program.guards import Guards, pivot_guards
from nori_dyn.program.hybrid import HybridReadings
from nori_dyn.program.layout import output_parts, sums_of
from nori_dyn.program.limits import PIVOT_LIMIT, STEP_LIMIT
from nori_dyn.program.tracing import Traced, filled
from nori_dyn.typing import Array

NAMED: Any = namedtuple

LEAST = 1e-100
"""What is added to a square that may be zero."""


@dataclass(frozen=True, slots=True, eq=False)
class Derivatives:
    """Derivatives of outputs of a plan's system by some of its inputs.

    Attributes:
        plan: the plan.
        wrt: names of inputs: q, qd, y, weights.
        outputs: the outputs, whether the plan computes them or not.
    """

    plan: EliminationPlan
    wrt: tuple[str, ...]
    outputs: tuple[Output, ...]

    @staticmethod
    def of(plan: EliminationPlan, wrt: Sequence[str], outputs: Sequence[str] | None) -> Derivatives:
        """The derivatives by name; of the outputs of the plan when None.

        Raises:
            InputError: no input.
            UnknownNameError: an input that the system does not have.
            UnknownOutputError, PlanError: an output that there is not, or that is not determined.
        """
        known = plan.system.input_sizes
        if not wrt:
            raise InputError(f"derivatives by which input? Those of the plan are {', '.join(known)}.")
        for name in wrt:
            if name not in known:
                raise UnknownNameError("input", name, known, f"the plan of {plan.system!r}")
        wanted = plan.outputs if outputs is None else determined_outputs(plan.system, outputs, plan.undetermined)
        return Derivatives(plan, tuple(dict.fromkeys(wrt)), wanted)

    @property
    def sums(self) -> list[list[dict[int, float]]]:
        """The numbers of each output, as sums of unknowns."""
        return [sums_of(self.plan.system, output) for output in self.outputs]

    def arranged(self, whole: Array) -> dict[str, Array]:
        """Derivatives (n_sums, n_directions) by name, all outputs by the first input first."""
        parts = list(output_parts(self.plan.system, self.outputs))
        freedoms = {**self.plan.system.input_sizes, "q": self.plan.system.tree.nv}
        ends = np.cumsum([0, *(freedoms[name] for name in self.wrt)]).tolist()
        return {
            f"d{part.output.name}_d{name}": whole[part.slice, a:b].reshape(*part.shape, b - a)
            for name, (a, b) in zip(self.wrt, pairwise(ends), strict=True)
            for part in parts
        }

    def traced(self) -> Traced:
        """The derivatives over the expressions of the plan, and their guards."""
        plan = self.plan.retraced()
        system, symbolic = plan.system, plan.symbolic
        inputs = {name: np.array(scalars, dtype=object) for name, scalars in symbolic.inputs.items()}
        hybrid = HybridReadings.of(system)
        closed = hybrid.derivatives(plan, self.wrt, output_columns(system, self.outputs).tolist()) if hybrid else None
        whole, guards = self._planned(plan) if closed is None else closed
        results = self.arranged(whole)
        name = f"derivative by {', '.join(self.wrt)}"
        weights = len(symbolic.weights), system.n_noise_weights
        return Traced(name, system.tree, symbolic.graph, inputs, results, _kind(results), None, guards, *weights)

    def _planned(self, plan: EliminationPlan) -> tuple[Array, Guards]:
        """The derivatives by the planned elimination (n_sums, n_directions), and their guards."""
        directions, places = directions_of(plan, self.wrt)
        found = sensitivities(plan, self.sums, directions, places)
        whole = filled(plan.symbolic.graph, sum(map(len, self.sums)), len(directions), found.derivatives)
        guards = pivot_guards(plan, list(whole.flat), PIVOT_LIMIT)
        if found.squared_error is not None:
            guards = (*guards, (1 / (found.squared_error + LEAST), STEP_LIMIT**-2))
        return whole, guards


def _kind(results: Iterable[str]) -> Callable[..., Any]:
    """A maker of a named tuple of some results."""
    names = [re.sub(r"\W", "_", name) for name in results]
    made: Callable[..., Any] = NAMED("Derivatives", names, rename=len(set(names)) < len(names))._make
    return made

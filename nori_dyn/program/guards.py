"""The limits of the guards of a plan's program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.expressions import Expr
from nori_dyn.planning.outputs import output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.program.limits import PIVOT_LIMIT
from nori_dyn.program.lowering import SolutionProgram
from nori_dyn.system.builder import System
from nori_dyn.typing import Floats, Indices

PIVOT_STATES = 32
"""Number of random states that give the usual size of each pivot."""


Guards: TypeAlias = tuple[tuple[Expr, float], ...]
"""What must not be small where outputs are to be trusted, and the least size of each."""


def find_wrong_input(system: System, state: Sequence[Floats]) -> str:
    """Which number of a state is not finite, or which weight below zero; nothing where none is."""
    for name, array in zip(system.input_sizes, state, strict=True):
        wrong = np.flatnonzero(~np.isfinite(array))
        if len(wrong):
            return f"{name}[{wrong[0]}] is {array[wrong[0]]}"
    if system.is_weighted and (state[-1] < 0).any():
        k = int(np.argmax(state[-1] < 0))
        return f"the weight of '{system.weight_names[k]}' is {state[-1][k]:g}, below zero"
    return ""


def equation_starts(plan: EliminationPlan) -> Indices:
    """The first row of each equation of a plan's system.

    Of the conditions of a weighed one that is: of the derivative by each variable, and of each row with a multiplier.
    """
    system = plan.system
    sizes = [row.slice.stop - row.slice.start for row in system.rows if row.has_multiplier]
    if system.is_weighted:
        sizes = [v.slice.stop - v.slice.start for v in system.variables] + sizes
    sizes = [size for size in sizes if size]
    return np.cumsum([0, *sizes[:-1]], dtype=np.intp)


def computes_residual(plan: EliminationPlan) -> bool:
    """Whether the unknowns wanted are enough for the residual: all of d, in an exact problem."""
    columns = output_columns(plan.system, plan.outputs)
    return not plan.system.is_weighted and len(set(columns.tolist())) == plan.system.shape[1]


def pivot_ensemble(plan: EliminationPlan) -> list[Floats]:
    """Random configurations (PIVOT_STATES, nq) at rest, for the usual size of the pivots.

    These depend on q only where they are guarded, see `StaticElimination.guards`.
    """
    system = plan.system
    rng = np.random.default_rng(plan.seed)
    Q = system.tree.random_configurations(PIVOT_STATES, rng)
    states = [Q, np.zeros((PIVOT_STATES, system.tree.nv)), np.zeros((PIVOT_STATES, system.ny))]
    return [*states, np.tile(system.weights, (PIVOT_STATES, 1))] if system.is_weighted else states


def guard_limits(plan: EliminationPlan, solution: SolutionProgram) -> Floats:
    """The least size of each guarded pivot, then the usual size of each unknown with a step of refinement."""
    usual = usual_sizes(plan, solution.program.pivots, solution.program.inputs)
    given = [guard.least for guard in solution.guards]
    least = np.array([PIVOT_LIMIT * x if own is None else own for x, own in zip(usual, given, strict=True)])
    if not solution.program.refinement.steps:
        return least
    _, natural = natural_scaling(plan.system, plan.symbolic, plan.seed)
    return np.concatenate([least, natural[solution.columns]])


def pivot_guards(plan: EliminationPlan, outputs: Sequence[Expr], share: float) -> Guards:
    """The guarded pivots that some expressions over a plan depend on, and the least size of each.

    Args:
        plan: the plan.
        outputs: the expressions.
        share: of its usual size, that a pivot which has no least size of its own must have.
    """
    needed = set(plan.symbolic.graph.reachable(outputs))
    guards = [guard for guard in plan.solved.pivots if guard.value.index in needed]
    usual = usual_sizes(plan, [guard.value for guard in guards], plan.symbolic.inputs)
    return tuple(
        (guard.value, share * float(size) if guard.least is None else guard.least)
        for guard, size in zip(guards, usual, strict=True)
    )


def usual_sizes(plan: EliminationPlan, values: Sequence[Expr], inputs: Mapping[str, Sequence[Expr]]) -> Floats:
    """The median size over `pivot_ensemble` of expressions over a plan (n,)."""
    if not len(values):
        return np.zeros(0)
    return np.asarray(np.median(np.abs(evaluated(values, inputs, pivot_ensemble(plan))), axis=-1))


def evaluated(values: Sequence[Expr], inputs: Mapping[str, Sequence[Expr]], states: Sequence[Floats]) -> Floats:
    """The values (n, N) of expressions at N states, arrays (N, size) of the inputs."""
    given = zip(inputs.values(), states, strict=True)
    numbers = {x.index: own for scalars, X in given for x, own in zip(scalars, X.T, strict=True)}
    with np.errstate(all="ignore"):
        return values[0].graph.evaluate(values, numbers)

"""For which states of a weighed system the first solution does, without a step of refinement.

A step costs as much as the first solution. Over states and weights near those that were planned for it is drawn
beforehand how small steps are; where they are far below what is allowed, states like these are *usual*: their weights
lie in the range that was drawn from, no pivot is smaller than it was there, readings and velocities have a size that
leaves the share of rounding where it was. All others are refined.

Source: docs/design.md, 5.4.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import chain

import numpy as np

from nori_dyn.algebra.expressions import Op
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.lowering import SolutionProgram
from nori_dyn.typing import Booleans, Floats

DECADES = (1.0, 0.5, 0.2, 0.1)
"""How far from those of the plan weights of usual states may be, the widest first that will do."""

USUAL_STATES = 64
"""Number of states that are drawn."""

USUAL_STEP = 1e-11
"""Share of an unknown, or of its usual size, that no step may exceed at any of them: what `STEP_LIMIT` allows is three
hundred times as much."""

LEAST_PIVOT = 0.1
"""Share of the smallest size of a pivot at any of them below which a state is not usual."""

LARGEST_READING, LARGEST_VELOCITY, LARGEST_WAY = 1e3, 30.0, 10.0
"""Readings, velocities and ways of sliding joints of usual states, as multiples of those drawn, which are about 1."""

ANY = sys.float_info.max


def usual_states(plan: EliminationPlan, decades: float) -> Iterator[tuple[Floats, ...]]:
    """Yield random states of a plan: q, qd, y, and weights up to some decades from those of the sensors."""
    system, rng = plan.system, np.random.default_rng(plan.seed)
    Q = system.tree.random_configurations(USUAL_STATES, plan.seed)
    for q in Q:
        factors = 10.0 ** rng.uniform(-decades, decades, size=system.n_weights)
        yield q, rng.normal(size=system.tree.nv), rng.normal(size=system.ny), system.weights * factors


def usual_limits(
    plan: EliminationPlan,
    solution: SolutionProgram,
    sizes: Floats,
    refined: Callable[[Sequence[Floats]], tuple[Floats, Floats]],
    watched: Callable[[Sequence[Floats]], Floats],
) -> Floats:
    """Return the least and the largest of each input of a usual state, then the least size of each watched pivot.

    Where steps are not small enough at any range of weights, no state is usual.

    Args:
        plan: the plan.
        solution: its program.
        sizes: the usual size of each unknown that has a step.
        refined: solves a state; returns its unknowns and their steps.
        watched: solves a state without a step; returns the watched pivots.
    """
    for decades in DECADES:
        states = list(usual_states(plan, decades))
        found = (refined(state) for state in states)
        if all(np.all(np.abs(steps) <= USUAL_STEP * (np.abs(values) + sizes)) for values, steps in found):
            least = np.min([np.abs(watched(state)) for state in states], axis=0)
            return np.concatenate([*_ranges(plan, decades), LEAST_PIVOT * least])
    return unusual_limits(plan, solution)


def unusual_limits(plan: EliminationPlan, solution: SolutionProgram) -> Floats:
    """Return such limits that no state keeps."""
    n = sum(plan.system.input_sizes.values())
    return np.concatenate([np.full(n, ANY), np.full(n, -ANY), np.full(len(solution.watched), ANY)])


def any_limits(plan: EliminationPlan, solution: SolutionProgram) -> Floats:
    """Return such limits that every state keeps."""
    n = sum(plan.system.input_sizes.values())
    return np.concatenate([np.full(n, -ANY), np.full(n, ANY), np.zeros(len(solution.watched))])


def _ranges(plan: EliminationPlan, decades: float) -> tuple[Floats, Floats]:
    """Return the least and the largest of each input: q, qd, y and weights."""
    system = plan.system
    ways = LARGEST_WAY * np.abs(system.tree.random_configurations(USUAL_STATES, plan.seed)).max(axis=0)
    of_q = np.where(_read_plainly(plan), ways, ANY)
    of_qd, of_y = np.full(system.tree.nv, LARGEST_VELOCITY), np.full(system.ny, LARGEST_READING)
    factor = 10.0**decades
    signed = np.concatenate([of_q, of_qd, of_y])
    return np.concatenate([-signed, system.weights / factor]), np.concatenate([signed, system.weights * factor])


def _read_plainly(plan: EliminationPlan) -> Booleans:
    """Return for each number of q whether an entry depends on it otherwise than by its sine and cosine."""
    symbolic = plan.refined.symbolic
    graph = symbolic.graph
    nodes = [i for i in graph.reachable(symbolic.entries) if graph.ops[i] not in (Op.SIN, Op.COS)]
    read = set(chain(*((graph.left[i], graph.right[i]) for i in nodes)))
    return np.array([x.index in read for x in symbolic.q], dtype=bool)

"""The fast path of a weighed system: the states at which the first solution does without a step of refinement.

A step costs as much as the first solution. Over states and weights near those that were planned for it is drawn
beforehand how small steps are; where they are far below the limit, states like these are on the *fast path*: their
weights lie in the range that was drawn from, no pivot is much smaller than it was there, readings and velocities have a
size that leaves the share of rounding where it was. All others are refined, and so are the few of those drawn whose
steps are larger, near special poses, and states that a pivot shows to be like them.

Source: docs/design.md, 5.4.
"""

import sys
from itertools import chain

import numpy as np

from nori_dyn.algebra.expressions import Op
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.guards import evaluated, guard_limits
from nori_dyn.program.lowering import SolutionProgram
from nori_dyn.typing import Booleans, Floats

DECADES = (1.0, 0.5, 0.2, 0.1)
"""Largest ratio of weights on the fast path to those of the plan, the widest first that will do."""

USUAL_STATES = 64
"""Number of states that are drawn."""

USUAL_STEP = 1e-11
"""Share of an unknown, or of its usual size, that no step may exceed on the fast path: `STEP_LIMIT` is
three hundred times as much."""

MOST = 0.9
"""Share of the states drawn that are on the fast path, at least."""

LEAST_PIVOT = 0.1
"""Share of the smallest pivot at any sampled state whose steps are small, below which a state is off the path."""

APART = 2.0
"""What is off the path has a pivot that is smaller by this factor than any on the path, where its steps are larger."""

LARGEST_READING, LARGEST_VELOCITY, LARGEST_WAY = 1e3, 30.0, 10.0
"""Readings, velocities and ways of sliding joints on the fast path, as multiples of the samples, which are about 1."""

ANY = sys.float_info.max


def fast_path_states(plan: EliminationPlan, decades: float) -> list[Floats]:
    """Random states of a plan: q, qd, y, and weights up to some decades from those of the sensors (N, ...)."""
    system, rng = plan.system, np.random.default_rng(plan.seed)
    states = []
    for q in system.tree.random_configurations(USUAL_STATES, plan.seed):
        factors = 10.0 ** rng.uniform(-decades, decades, size=system.n_weights)
        states.append((q, rng.normal(size=system.tree.nv), rng.normal(size=system.ny), system.weights * factors))
    return [np.array(each) for each in zip(*states, strict=True)]


def measured_limits(plan: EliminationPlan, solution: SolutionProgram) -> Floats:
    """The limits of a kernel for states of a plan, by the program at ensembles of states."""
    program, limits = solution.program, guard_limits(plan, solution)
    by, sizes = program.refinement, limits[len(solution.guards) :, None]
    if not by.steps:
        return limits
    for decades in DECADES:
        found = evaluated([*program.outputs, *by.steps, *by.watched], program.inputs, fast_path_states(plan, decades))
        values, steps, watched = np.split(np.abs(found), np.cumsum([len(program.outputs), len(by.steps)]))
        least = least_pivots(watched, np.all(steps <= USUAL_STEP * (values + sizes), axis=0))
        if least is not None:
            return np.concatenate([limits, *_ranges(plan, decades), least])
    n_inputs = len(program.scalars)
    return np.concatenate([limits, np.full(n_inputs, ANY), np.full(n_inputs, -ANY), np.full(len(by.watched), ANY)])


def least_pivots(pivots: Floats, is_small: Booleans) -> Floats | None:
    """The least size (n,) of each pivot on the fast path; None without a fast path.

    A state whose steps are larger shows by the pivot that leaves the most of the others on the path.

    Args:
        pivots: the sizes of the pivots of the states drawn (n, N).
        is_small: of which of these steps are small (N,).
    """
    if np.mean(is_small) < MOST:
        return None
    usual = pivots[:, is_small]
    least = LEAST_PIVOT * usual.min(axis=1)
    for larger in pivots.T[~is_small]:
        if (larger >= least).all():
            k = np.argmin((usual < APART * larger[:, None]).sum(axis=1))
            least[k] = APART * larger[k]
    return least if np.mean((pivots >= least[:, None]).all(axis=0)) >= MOST else None


def _ranges(plan: EliminationPlan, decades: float) -> tuple[Floats, Floats]:
    """The least and the largest of each input: q, qd, y and weights."""
    system = plan.system
    ways = LARGEST_WAY * np.abs(system.tree.random_configurations(USUAL_STATES, plan.seed)).max(axis=0)
    of_q = np.where(_read_plainly(plan), ways, ANY)
    of_qd, of_y = np.full(system.tree.nv, LARGEST_VELOCITY), np.full(system.ny, LARGEST_READING)
    factor = 10.0**decades
    signed = np.concatenate([of_q, of_qd, of_y])
    return np.concatenate([-signed, system.weights / factor]), np.concatenate([signed, system.weights * factor])


def _read_plainly(plan: EliminationPlan) -> Booleans:
    """For each number of q, whether an entry depends on it otherwise than by its sine and cosine."""
    symbolic = plan.refined.symbolic
    graph = symbolic.graph
    nodes = [i for i in graph.reachable(symbolic.entries) if graph.ops[i] not in (Op.SIN, Op.COS)]
    read = set(chain(*((graph.left[i], graph.right[i]) for i in nodes)))
    return np.array([x.index in read for x in symbolic.q], dtype=bool)

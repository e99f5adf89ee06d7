"""Error estimate of the derivatives of a weighed estimate, input by input, at the price of two solutions.

Where heavy and light rows have met in K, its L and U are those of K + E. Each column X_k of derivatives, that by one
input, is then off by K^-1 E X_k, which a step of refinement estimates; but a step of each column would cost as much as
all of them. The error is linear in the column. So one step is made of a sum of the columns, each with a factor that
makes it one of size 1 in natural units: whatever the units of the inputs are, and however little a reading weighs, what
is off in a column is as much of the sum, but for chance.

Source: own derivation (tests/agreement/test_plan_derivatives.py, tests/attack/test_derivatives.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from nori_dyn.algebra.derivatives import Sparse
from nori_dyn.algebra.expressions import Expr
from nori_dyn.algebra.ranges import numbers
from nori_dyn.planning.bordered import APART, Bordered, Sum
from nori_dyn.planning.elimination import Factors
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import LIGHTEST, SIZE_STATES, natural_scaling, natural_sizes, sample_inputs
from nori_dyn.typing import Floats

MOST_SQUARES = 8
"""Most numbers of a column that its size is computed from."""

MOST_COMPARED = 8
"""Most outputs whose derivatives are summed up, to be compared with the solution."""

NOTHING = 1e-9
"""Outputs that move by less than this share of the others at random states, do so by rounding."""

LEAST = 1e-100
"""What is added to a square that may be zero."""


def squared_error(
    problem: Bordered,
    factors: Factors[Expr],
    outputs: Sequence[Sum],
    derivatives: Sparse,
    places: Mapping[str, slice],
) -> Expr:
    """The squared error in a sum of the columns of derivatives, each scaled to about size 1.

    Of some outputs that is a sum of the derivatives that were found, which takes an operation for each. It may be off
    by more than the solution, where one function stands for two that lose their digits in different ways. Of the
    other outputs it is the solution.

    Args:
        problem: K and R.
        factors: L and U.
        outputs: the differentiated outputs.
        derivatives: its derivatives.
        places: which directions are of which input.
    """
    plan, graph = problem.plan, problem.graph
    size = natural_sizes(plan.system, plan.symbolic, plan.seed)
    natural = [max(abs(factor) * float(size[column]) for column, factor in row.items()) for row in outputs]
    combined = _sum_of_columns(problem, derivatives, natural, _Usual.of(problem, outputs, natural), places)
    found, steps = problem.refined(factors, outputs, combined)
    compared = np.random.default_rng(plan.seed).permutation(len(outputs))[:MOST_COMPARED].tolist()
    sums = dict.fromkeys(compared, graph.zero)
    for (m, k), value in derivatives.items():
        if m in sums:
            sums[m] += graph.opaque(value) * combined[k]
    errors = [steps[m] + (found[m] - sums[m]) if m in sums else steps[m] for m in range(len(outputs))]
    return _square(list(zip(natural, errors, strict=True)), graph.zero)


def _sum_of_columns(
    problem: Bordered,
    derivatives: Sparse,
    natural: Sequence[float],
    usual: _Usual,
    places: Mapping[str, slice],
) -> dict[int, Expr]:
    """A factor for each column, of either sign, that makes it one of about the size 1, a weight being the unit.

    No column counts as smaller than a share of its usual size, and of its weight among the others: at special poses
    some are zero but for rounding. Factors differ, so that errors in equal columns do not cancel.
    """
    graph, rng = problem.graph, np.random.default_rng(problem.plan.seed)
    plan, shares = problem.plan, _shares_of_weights(problem.plan, places)
    of_weights = {k: number for number, k in enumerate(numbers(places["weights"]))} if "weights" in places else {}
    columns: defaultdict[int, list[int]] = defaultdict(list)
    for m, k in derivatives:
        columns[k].append(m)
    found = {}
    for k, column in columns.items():
        largest = sorted(column, key=lambda m: -usual.sizes[m, k])[:MOST_SQUARES]
        unit, size, share = graph.one, usual.least[k], shares.get(k, graph.one)
        if k in of_weights:
            unit, size = plan.symbolic.weights[of_weights[k]], size * plan.system.weights[of_weights[k]]
        square = unit * unit * _square([(natural[m], derivatives[m, k]) for m in largest], graph.zero)
        least = share * share * float(size**2) + LEAST
        factor = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.5, 1.0))
        found[k] = unit * (factor / graph.sqrt(square + least))
    return found


def _square(values: Sequence[tuple[float, Expr]], zero: Expr) -> Expr:
    """The sum of the squares of numbers, each over its natural size."""
    alike: defaultdict[float, list[Expr]] = defaultdict(list)
    for natural, x in values:
        alike[natural].append(x)
    return sum((sum((x * x for x in own), zero) * natural**-2 for natural, own in alike.items()), zero)


def _shares_of_weights(plan: EliminationPlan, places: Mapping[str, slice]) -> dict[int, Expr]:
    """By direction the share of a sensor's weight among all weights, for its weight and its readings.

    How far a reading moves its own estimate falls no further than this.
    """
    system, weights = plan.system, plan.symbolic.weights
    usual = {k: weights[k] * float(1 / system.weights[k]) for k in range(system.n_noise_weights, len(weights))}
    if not usual:
        return {}
    whole = 1 / sum(usual.values(), plan.symbolic.graph.zero)
    share = {k: x * whole for k, x in usual.items()}
    found = {places["weights"].start + k: x for k, x in share.items()} if "weights" in places else {}
    for row in system.measurements if "y" in places else ():
        if not row.is_exact:
            of_rows = zip(numbers(row.y), row.weight_of_rows, strict=True)
            found |= {places["y"].start + k: share[which] for k, which in of_rows}
    return found


@dataclass(frozen=True, slots=True, eq=False)
class _Usual:
    """Usual sizes of columns of derivatives, at random states and the sensors' weights, by a unit of their inputs.

    Attributes:
        sizes: of each output and column (n_outputs, n_directions), in natural units.
        least: the least size of each column (n_directions,): `LIGHTEST` of the largest unknown of its solution,
            or all of that where the outputs hardly move beside it: by rounding, for all that is known.
    """

    sizes: Floats
    least: Floats

    @staticmethod
    def of(problem: Bordered, outputs: Sequence[Sum], natural: Sequence[float]) -> _Usual:
        """The same for outputs whose natural sizes are given."""
        plan, n = problem.plan, problem.n
        row, column = np.ones(problem.n_core), np.ones(problem.n_core)
        row[:n], column[:n] = natural_scaling(plan.system, plan.refined.symbolic, plan.seed)
        E = np.zeros((len(outputs), problem.n_core))
        for m, (one, size) in enumerate(zip(outputs, natural, strict=True)):
            E[m, list(one)] = column[list(one)] * [*one.values()] / size
        in_K = np.array([*problem.entries]).T
        in_R = np.array([(i, k) for k, own in enumerate(problem.columns) for i in own], dtype=np.intp).reshape(-1, 2).T
        of_R = [x for own in problem.columns for x in own.values()]
        states = sample_inputs(plan.system, plan.symbolic, plan.seed, SIZE_STATES)
        sizes, whole = [], []
        for values in problem.graph.evaluate([*problem.entries.values(), *of_R], states).T:
            R = np.zeros((problem.n_core, len(problem.columns)))
            R[*in_R] = row[in_R[0]] * values[len(in_K[0]) :]
            K = sp.csc_array(
                (row[in_K[0]] * values[: len(in_K[0])] * column[in_K[1]], in_K), shape=(problem.n_core,) * 2
            )
            try:
                x = spla.splu(K).solve(R)
            except RuntimeError:  # this state is exactly singular: it gives no size
                continue
            sizes.append(np.abs(E @ x))
            whole.append(np.abs(x[:n]).max(axis=0) / APART)
        if not sizes:
            return _Usual(np.zeros((len(outputs), len(problem.columns))), np.zeros(len(problem.columns)))
        size, largest = (np.nan_to_num(np.median(found, axis=0)) for found in (sizes, whole))
        hardly = size.max(axis=0, initial=0.0) < NOTHING * largest
        return _Usual(size, np.where(hardly, largest, LIGHTEST * largest))

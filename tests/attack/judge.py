"""Who is right: an estimate against the oracle, and how much of a difference the problem itself explains."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tests.attack.oracle import Extended, Row, States, rows, solve
from tests.attack.problems import Problem
from tests.oracles import motion_of

KINDS = ("a", "f", "tau", "fx", "qdd")
MOTIONS = ("a", "qdd")

TOLERANCE = 1e-8
"""Error, relative to the size of a body's accelerations or forces, that counts as none."""

NUDGE = 4 * np.finfo(float).eps
"""Relative change of the data, of a few units in the last place, whose effect an estimate may have."""

NUDGES = 4
"""Times that the data are changed at random."""

EXPLAINED = 10.0
"""What an estimate may be off, as a multiple of what such changes do."""


@dataclass(frozen=True)
class Truth:
    """What is true at some states.

    Attributes:
        d: the variables (N, size), kind by kind and body by body.
        size: what each number of them is measured by (N, size): the largest of its body's motions or forces.
    """

    d: Extended
    size: Extended


def find_truth(problem: Problem, states: States, nudge: Callable[[Extended], Extended] | None = None) -> Truth:
    """The variables at some states by the oracle; `nudge` changes the rows (N, rows, 1 + nz) before."""
    found = motion_of(problem.tree, states.q, states.qd, problem.known, problem.noisy)
    given = rows(found, problem.readings, states)
    z = solve([row if nudge is None else Row(nudge(row.values), row.weights) for row in given])
    with_one = np.concatenate([np.ones((len(z), 1), z.dtype), z], axis=1)
    d, group = [], []
    for kind in KINDS:
        for i, affine in enumerate(found.of[kind]):
            d.append((affine @ with_one[..., None])[..., 0])
            group += [2 * i + (kind not in MOTIONS)] * affine.shape[1]
    values, groups = np.concatenate(d, axis=1), np.array(group)
    size = np.zeros_like(values)
    for number in np.unique(groups):
        mine = groups == number
        largest = np.abs(values[:, mine]).max(axis=1)
        usual = np.nanmedian(np.where(np.isfinite(largest), largest, np.nan))
        size[:, mine] = np.maximum(largest, usual)[:, None]
    return Truth(values, np.where(size > 0, size, 1))


def errors(truth: Truth, d: NDArray[np.float64]) -> NDArray[np.float64]:
    """The largest error of each state (N,), relative to what each number is measured by."""
    return np.max(np.abs(d - truth.d) / truth.size, axis=1).astype(float)


def explained(problem: Problem, states: States, seed: int) -> NDArray[np.float64]:
    """How far an estimate may be off (N,): how far the truth itself moves when data or rows change."""
    here, largest = find_truth(problem, states), np.zeros(len(states.q))
    for other, moved, nudge in nudged_problems(problem, states, NUDGES, seed):
        there = find_truth(other, moved, nudge)
        change = np.max(np.abs(there.d - here.d) / here.size, axis=1).astype(float)
        largest = np.maximum(largest, np.where(np.isfinite(change), change, np.inf))
    return EXPLAINED * largest


def nudged_problems(
    problem: Problem, states: States, n: int, seed: int = 0
) -> Iterator[tuple[Problem, States, Callable[[Extended], Extended] | None]]:
    """Yield a problem n times with its data changed by some units in the last place, and n times what changes its rows.

    That changes rows (N, rows, 1 + nz) relative to the largest entry of each, as adding it up in doubles does.
    """
    rng = np.random.default_rng(seed)

    def nudged(array: NDArray[Any]) -> NDArray[Any]:
        return np.asarray(array * (1 + NUDGE * rng.uniform(-1, 1, array.shape)))

    def nudged_rows(values: Extended) -> Extended:
        size = np.abs(values).max(axis=2, keepdims=True, initial=0)
        return values + NUDGE * size * rng.uniform(-1, 1, values.shape)

    for _ in range(n):
        tree = problem.tree
        I = nudged(tree.I)
        X = tuple(type(X)(nudged(X.E), nudged(X.r)) for X in tree.X_tree)
        other = replace(problem, tree=tree.replace(I=(I + np.swapaxes(I, 1, 2)) / 2, X_tree=X))
        yield other, States(nudged(states.q), nudged(states.qd), nudged(states.y), states.weights), None
        yield problem, states, nudged_rows

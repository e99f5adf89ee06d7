"""Parameters of joints that logs do not show, which are left out: Stribeck's curve, and harmonics.

A joint that moves in a small range determines six waves by their smallest differences: unbounded they are large, cancel
each other there, and are wrong elsewhere. So each is expected to be as large as one that would be all that is left.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from scipy.special import chdtrc

from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.formulation import Formulation, LogMoments
from nori_dyn.identification.parameters import WAVES
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.typing import Floats

NONE = 1e-9
"""Deviation of harmonics that are none [N m]."""

BY_CHANCE = 1e-3
"""Chance of a joint's harmonics by noise, from which on that is what they are."""

CLEARLY = 3.0
"""Standard deviations by which friction is more at rest, from which on there is a Stribeck's curve."""


def flat_joints(problem: IdentificationProblem, solution: Solution) -> list[str]:
    """Joints whose friction is not clearly more at rest: noise determines where it would be."""
    parameters = (problem.all_parameters[k] for k in problem.free)
    each = zip(parameters, solution.values, solution.deviations, strict=True)
    return [one.owner for one, excess, off in each if one.kind == "excess" and excess < CLEARLY * off]


def significant(
    formulation: Formulation, logs: Sequence[LogMoments], prior: ParameterPrior, solution: Solution
) -> tuple[Formulation, ParameterPrior, Solution, tuple[str, ...]]:
    """The regression with those harmonics that logs show, their prior, its estimate, and joints of which they do not.

    Args:
        formulation: the regression.
        logs: moments of the logs.
        prior: the prior, which says nothing of harmonics.
        solution: the estimate with that.

    Raises:
        InputError: nothing else was looked for, and logs show no harmonics.
    """
    if not (groups := _groups(formulation)):
        return formulation, prior, solution, ()
    none = prior.with_deviation([place for places in groups.values() for place in places], NONE)
    left = formulation.solution(logs, none).sigma
    insignificant: tuple[str, ...] = ()
    while True:
        groups = _groups(formulation)
        for places in groups.values():
            prior = prior.with_deviation(places, math.sqrt(2.0) * _left_of(formulation, logs, left, places))
        solution = formulation.solution(logs, prior)
        found = tuple(name for name, places in groups.items() if _chance(solution, places) > BY_CHANCE)
        if not found:
            return formulation, prior, solution, insignificant
        insignificant += found
        formulation = formulation.without(WAVES, found, "show no harmonics", "Ask for other parameters.")
        prior = formulation.prior(logs)


def _groups(formulation: Formulation) -> Mapping[str, list[int]]:
    """Places of the harmonics of each joint among free parameters."""
    problem = formulation.problem
    found: dict[str, list[int]] = {}
    for place, k in enumerate(problem.free.tolist()):
        each = problem.all_parameters[k]
        if each.kind in WAVES:
            found.setdefault(each.owner, []).append(place)
    return found


def _left_of(formulation: Formulation, logs: Sequence[LogMoments], left: Floats, places: Sequence[int]) -> float:
    """What is left of the rows that some parameters are in, at the most; nothing where they are in none."""
    rows = {
        k
        for log in map(formulation.evidence, logs)
        for k, row in enumerate(log.rows)
        if log.E[row.columns][:, places].any()
    }
    return float(max((left[k] for k in rows), default=NONE))


def _chance(solution: Solution, places: Sequence[int]) -> float:
    """Chance that noise makes them so large, by how far the estimate is off."""
    own = solution.values[places]
    chi_square = own @ np.linalg.solve(solution.covariance[np.ix_(places, places)], own)
    return float(chdtrc(len(places), chi_square))

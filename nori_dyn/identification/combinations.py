"""Identifiable combinations of parameters, as logs estimate them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.typing import Floats

IDENTIFIED = 0.5
"""Share of the prior deviation that is left of a combination that counts as identified by a log."""


@dataclass(frozen=True, slots=True)
class BaseParameterEstimate:
    """Estimate of an identifiable combination of parameters.

    Attributes:
        name: its first parameter, with a + where there is more to it.
        terms: the factor of each parameter.
        unit: that of the first one.
        before: what it is by the model as it was.
        value: the estimate.
        deviation: its standard deviation.
        left: the share of the prior deviation that is left; all of it where nothing was open.
    """

    name: str
    terms: Mapping[str, float]
    unit: str
    before: float
    value: float
    deviation: float
    left: float

    @property
    def is_identified(self) -> bool:
        """Whether the log determines it much better than it was known."""
        return self.left < IDENTIFIED


def combinations_of(
    problem: IdentificationProblem, solution: Solution, values: Floats, prior_covariance: Floats
) -> tuple[BaseParameterEstimate, ...]:
    """Estimates of the identifiable combinations.

    Args:
        problem: the parameters.
        solution: the estimate.
        values: of all parameters (n,).
        prior_covariance: of the free parameters (n_free, n_free).
    """
    names = [each.name for each in problem.all_parameters]
    before = problem.before.copy()
    before[: len(problem.parameters)] = problem.parameters.prior
    found = []
    for name, independent, over_all in problem.combinations:
        free = over_all[problem.free]
        deviation = float(np.sqrt(free @ solution.covariance @ free))
        prior = float(np.sqrt(free @ prior_covariance @ free))
        found.append(
            BaseParameterEstimate(
                name=name,
                terms={names[c]: float(over_all[c]) for c in np.flatnonzero(over_all)},
                unit=problem.parameters.each[independent].unit,
                before=float(over_all @ before),
                value=float(over_all @ values),
                deviation=deviation,
                left=deviation / prior if prior > 0 else 1.0,
            )
        )
    return tuple(found)

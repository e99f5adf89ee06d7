"""What was found of a robot's parameters: values, how sure they are, how well readings fit, what is odd."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.identification.base_parameters import BaseParameters
from nori_dyn.identification.estimation import Evidence, Solution
from nori_dyn.identification.information import Moments
from nori_dyn.identification.parameters import Parameters
from nori_dyn.identification.problem import LOAD, Problem
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

TOLD = 0.5
"""Share of the prior deviation that is left of a combination that counts as told by a log."""


@dataclass(frozen=True, slots=True)
class Fit:
    """How well a reading is explained.

    Attributes:
        name: the reading, or the row of known value.
        unit: its SI unit.
        n: number of samples.
        spread: standard deviation of what was read.
        before: rms of the residual by the model as it was.
        after: by the parameters found.
        held_out: by parameters found without the samples held out, on these; None where none were.
        correlation: of what was read with what is explained, on samples held out where there are some.
        sigma: standard deviation of the residual by which the reading was weighed.
        delay: by how much the reading seems to come after the motion [s]; None where that explains nothing.
    """

    name: str
    unit: str
    n: int
    spread: float
    before: float
    after: float
    held_out: float | None
    correlation: float
    sigma: float
    delay: float | None


@dataclass(frozen=True, slots=True)
class Combination:
    """A combination of parameters that the sensors tell.

    Attributes:
        name: its first parameter, with a + where there is more to it.
        terms: the factor of each parameter.
        unit: that of the first one.
        before: what it is by the model as it was.
        value: what was found.
        deviation: its standard deviation.
        left: the share of the prior deviation that is left.
    """

    name: str
    terms: Mapping[str, float]
    unit: str
    before: float
    value: float
    deviation: float
    left: float

    @property
    def is_told(self) -> bool:
        """Whether the log tells it much better than it was known."""
        return self.left < TOLD


@dataclass(frozen=True, eq=False)
class Identification:
    """What was found.

    Attributes:
        problem: what was looked for.
        values: all parameters (n,): those that were looked for as bodies can have them, where that was asked.
        plain: the same by least squares alone, which may be what no body can have.
        solution: the latter with its covariance, over the parameters that were looked for.
        fits: how well each reading is explained.
        combinations: what the sensors can tell, in the order of the base parameters.
        directions: how much of the prior deviation is left along the independent directions of what the log tells, the
            best told first.
        notes: what was done, and what is odd, in sentences.
        n_samples: number of samples.
        is_physical: whether `values` are inertias that bodies can have.
    """

    problem: Problem
    values: Floats
    plain: Floats
    solution: Solution
    fits: tuple[Fit, ...]
    combinations: tuple[Combination, ...]
    directions: Floats
    notes: tuple[str, ...]
    n_samples: int
    is_physical: bool

    @property
    def parameters(self) -> Parameters:
        """The parameters of the robot."""
        return self.problem.parameters

    @property
    def base(self) -> BaseParameters:
        """Which combinations of them the sensors tell."""
        return self.problem.base

    @cached_property
    def robot(self) -> KinematicTree:
        """The robot with the parameters found; offsets, gains and a load are no part of it."""
        return self.parameters.applied(self.values[: len(self.parameters)])

    @cached_property
    def each(self) -> dict[str, float]:
        """The value found of each parameter, by its name."""
        return {p.name: float(v) for p, v in zip(self.problem.all_parameters, self.values, strict=True)}

    @cached_property
    def deviations(self) -> dict[str, float]:
        """The standard deviation of each parameter by its name, 0 of known ones; prior knowledge is counted in."""
        found = np.zeros(len(self.values))
        found[self.problem.free] = self.solution.deviations
        return {p.name: float(v) for p, v in zip(self.problem.all_parameters, found, strict=True)}

    @property
    def n_told(self) -> int:
        """The number of independent directions that the log tells better than they were known."""
        return int(np.count_nonzero(self.directions < TOLD))

    @cached_property
    def offsets(self) -> dict[str, float]:
        """The offset found of each reading that has one."""
        return self._of("offset")

    @cached_property
    def gains(self) -> dict[str, float]:
        """The gain found of each reading that has one."""
        return self._of("gain")

    @cached_property
    def load(self) -> dict[str, float]:
        """The parameters found of the load, by their names."""
        return {p.name: self.each[p.name] for p in self.problem.all_parameters if p.owner == LOAD}

    def correlation(self, first: str, second: str) -> float:
        """Return the correlation of two parameters, by their names."""
        names = [self.problem.all_parameters[k].name for k in self.problem.free]
        i, j = names.index(first), names.index(second)
        C = self.solution.covariance
        return float(C[i, j] / np.sqrt(C[i, i] * C[j, j]))

    def _of(self, kind: str) -> dict[str, float]:
        return {p.owner: self.each[p.name] for p in self.parameters.each if p.kind == kind}


def combinations_of(
    problem: Problem, solution: Solution, values: Floats, prior_covariance: Floats
) -> tuple[Combination, ...]:
    """Return what was found of each combination that the sensors tell.

    Args:
        problem: what was looked for.
        solution: the estimate.
        values: of all parameters (n,).
        prior_covariance: of what was looked for (n_free, n_free).
    """
    names, n = problem.parameters.names, len(problem.parameters)
    found = []
    for k, own in enumerate(problem.base.G):
        over_all = np.zeros(len(problem.all_parameters))
        over_all[:n] = own
        free = over_all[problem.free]
        deviation = float(np.sqrt(free @ solution.covariance @ free))
        prior = float(np.sqrt(free @ prior_covariance @ free))
        found.append(
            Combination(
                name=problem.base.names[k],
                terms={names[c]: float(own[c]) for c in np.flatnonzero(own)},
                unit=problem.parameters.each[problem.base.independent[k]].unit,
                before=float(own @ problem.parameters.prior),
                value=float(over_all @ values),
                deviation=deviation,
                left=deviation / prior if prior > 0 else 0.0,
            )
        )
    return tuple(found)


def fits_of(
    names: Sequence[str],
    units: Mapping[str, str],
    logs: Sequence[Evidence],
    held_out: Sequence[Evidence],
    before: Floats,
    values: Floats,
    values_without: Floats,
    sigma: Floats,
    delays: Mapping[str, float],
) -> tuple[Fit, ...]:
    """Return how well each reading is explained.

    Args:
        names: of the rows.
        units: of those that are readings.
        logs: what the logs say, all samples.
        held_out: what the samples say that were held out; none where none were.
        before: parameters by the model as it was.
        values: those found.
        values_without: those found without what was held out.
        sigma: standard deviation of each row.
        delays: by how much readings are late, where they are.
    """
    found = []
    for k, name in enumerate(names):
        own = [(log, log.rows[k]) for log in logs]
        kept = [(log, log.rows[k]) for log in held_out]
        n = sum(m.n for _, m in own)

        log, m = (kept or own)[-1]
        by = values_without if kept else values
        reading = m.unit("reading")
        found.append(
            Fit(
                name=name,
                unit=units.get(name, ""),
                n=n,
                spread=m.spread(reading),
                before=_rms(own, before),
                after=_rms(own, values),
                held_out=_rms(kept, values_without) if kept else None,
                correlation=m.correlation(reading, m.prediction(log.beta(by))),
                sigma=float(sigma[k]),
                delay=delays.get(name),
            )
        )
    return tuple(found)


def _rms(rows: Sequence[tuple[Evidence, Moments]], values: Floats) -> float:
    """Return the root mean square of the residuals of a row over some logs."""
    total = sum(m.rms(m.residual(log.beta(values))) ** 2 * m.n for log, m in rows)
    return float(np.sqrt(total / max(sum(m.n for _, m in rows), 1)))

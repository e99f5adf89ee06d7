"""What logs say: identifiable combinations, how well parameters explain readings, and readings over the time."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.components.friction import Stiction
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.formulation import Formulation
from nori_dyn.identification.moments import LEAST, Evidence
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True)
class ReadingFit:
    """How well a reading is explained.

    Attributes:
        name: the reading, or the row of known value.
        unit: its SI unit.
        n: number of samples, each by the share of it that unknown wrenches leave.
        spread: standard deviation of what was read.
        before: rms of the residual by the model as it was.
        after: by the parameters found.
        held_out: by parameters found without the samples held out, on these; None where none were.
        correlation: of what was read with what is explained, on samples held out where there are some.
        sigma: standard deviation of the residual by which the reading was weighed.
        delay: by how much the reading seems to come after the motion [s]; None where that explains nothing.
        noise: standard deviation of what the filter takes off it, where it counts; nan without a filter.
        noise_at_rest: the same while its joint stands still; nan where `moving` was not given, or the joint never does.
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
    noise: float
    noise_at_rest: float

    @property
    def ripple(self) -> float:
        """The noise that it has in motion alone; 0 where that at rest is not known."""
        more = self.noise**2 - self.noise_at_rest**2
        return math.sqrt(more) if more > 0 else 0.0


def fits_of(
    formulation: Formulation,
    logs: Sequence[Evidence],
    held_out: Sequence[Evidence],
    values: Floats,
    values_without: Floats,
    sigma: Floats,
    delays: Mapping[str, float],
    noise: Floats,
) -> tuple[ReadingFit, ...]:
    """Fit of each reading, by the free parameters as the model has them and as they were found.

    Args:
        formulation: the regression.
        logs: evidence of all samples.
        held_out: evidence of samples that were held out.
        values: the parameters found.
        values_without: those found without what was held out.
        sigma: standard deviation of each row.
        delays: by how much readings are late, where they are.
        noise: at rest and where rows count (2, rows), see `FilterNoise`.
    """
    fits, before = [], formulation.problem.before[formulation.problem.free]
    for k, name in enumerate(formulation.row_names):
        if not any(log.rows[k].n for log in logs):
            continue  # unknown wrenches explain whatever it reads
        others = [log for log in held_out if log.rows[k].n > LEAST]  # in which it counts
        log, by = (others[-1], values_without) if others else (logs[-1], values)
        m, reading = log.rows[k], log.rows[k].unit("reading")
        fits.append(
            ReadingFit(
                name=name,
                unit=formulation.readings.get(name, ""),
                n=round(sum(log.rows[k].n for log in logs)),
                spread=m.spread(reading),
                before=_rms(k, logs, before),
                after=_rms(k, logs, values),
                held_out=_rms(k, others, values_without) if others else None,
                correlation=m.correlation(reading, log.residual(k, by) + reading),
                sigma=float(sigma[k]),
                delay=delays.get(name),
                noise=float(noise[1, k]),
                noise_at_rest=float(noise[0, k]),
            )
        )
    return tuple(fits)


def _rms(row: int, logs: Sequence[Evidence], values: Floats) -> float:
    """Root mean square over some logs of the residuals of a row, in units of its reading."""
    total = sum(log.rows[row].rms(log.residual(row, values)) ** 2 * log.rows[row].n for log in logs)
    return float(np.sqrt(total / max(sum(log.rows[row].n for log in logs), LEAST)))


@dataclass(frozen=True, slots=True, eq=False)
class Curves:
    """Readings over the time, beside what the model makes of the motion.

    Attributes:
        log: name of the log.
        t: times from its beginning (n,) [s], or numbers of samples.
        unit: "s", or "sample".
        read: the readings (rows, n), filtered as for the estimate.
        before: by the model as it was (rows, n).
        found: by the parameters found (rows, n).
    """

    log: str
    t: Floats
    unit: str
    read: Floats
    before: Floats
    found: Floats


class Thinned:
    """Rows that come one after the other, of which each second one is left out whenever there are too many.

    Args:
        most: how many are kept.
    """

    def __init__(self, most: int = 20_000) -> None:
        self._most, self._step, self._next = most, 1, 0
        self._parts: list[Floats] = []

    def add(self, rows: Floats) -> None:
        """Add rows (n, k)."""
        self._parts.append(rows[self._next :: self._step])
        self._next = (self._next - len(rows)) % self._step
        if sum(map(len, self._parts)) > self._most:
            kept = len(self.rows)
            self._parts = [self.rows[::2]]
            self._next += self._step * (kept % 2)
            self._step *= 2

    @property
    def rows(self) -> Floats:
        """Those that are kept."""
        return np.concatenate(self._parts)


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
    """Estimates of the identifiable combinations, without those of known parameters alone.

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
        if not free.any():
            continue
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


LEAST_LEFT = 1e-9
"""Share of the residual that drift leaves at the least."""


def stictions(
    problem: IdentificationProblem,
    row_names: Sequence[str],
    fits: Sequence[ReadingFit],
    logs: Sequence[Evidence],
    values: Floats,
    are_others: bool,
) -> Iterator[tuple[str, Stiction | None]]:
    """Yield what the friction of each joint whose torque is read leaves open, None if nothing, by the reading's name.

    Of viscous friction it is known how it differs from log to log, as temperature has it: in each the residual r says
    by how much, W r / W W with its column W. What is left of r is scatter about the law.

    Args:
        problem: the parameters.
        row_names: the names of the rows.
        fits: how well each reading is explained.
        logs: evidence by which it is judged.
        values: the free parameters (n,) by which it is.
        are_others: whether none of these logs is one from which parameters were found.
    """
    columns = [problem.parameters.names[k] for k in problem.columns]
    place, all_values = problem.parameters.place, problem.whole(values)
    for fit in fits:
        kind, _, joint = fit.name.partition(":")
        if kind != "tau":
            continue
        row, viscous, drift = row_names.index(fit.name), f"viscous:{joint}", 0.0
        moving = [log for log in logs if log.rows[row].n > LEAST]
        scatter = fit.after if fit.held_out is None else fit.held_out
        law = all_values[place[viscous]] if viscous in columns else 0.0
        if law > 0 and len(moving) > (0 if are_others else 1):
            column = columns.index(viscous)
            shifts, information = np.array([log.shift_of(row, column, values) for log in moving]).T
            squares = float(shifts**2 @ information)
            part = squares / sum(log.rows[row].n for log in moving)
            scatter = math.sqrt(max(scatter**2 - part, (LEAST_LEFT * scatter) ** 2))
            biased = 1.0 if are_others else 1 - 1 / len(moving)
            drift = math.sqrt(squares / float(np.sum(information)) / biased) / law
        yield fit.name, Stiction(scatter=scatter, ripple=fit.ripple, drift=drift) if scatter else None

"""An identification as a regression, before any log is read: its rows, its parameters, and how they are weighed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.identification.base_parameters import base_parameters
from nori_dyn.identification.bodies import check_known, consistent_estimate
from nori_dyn.identification.estimation import Solution, solved
from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.moment_accumulator import HuberPseudoValues
from nori_dyn.identification.moments import Moments
from nori_dyn.identification.parameters import OF_MOTION
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.identification.regression import Regression
from nori_dyn.logs.log import Log
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.measurements.base import VariableReading
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.system.variables import OFFSET
from nori_dyn.tables import listed, spaced
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class IdentifyOptions:
    """How logs are identified from; see `identify`."""

    system: System
    differentiation: Differentiator | None
    dt: float | None
    moving: float | None
    cutoff: float | None
    missing: Missing
    backend: str
    is_physical: bool
    hulls: Mapping[str, Any]
    has_curves: bool


@dataclass(frozen=True, slots=True, eq=False)
class LogMoments:
    """Moments of a log: all that the estimate needs of its samples.

    Attributes:
        log: the log.
        segments: moments of each row, segment by segment.
        is_loaded: whether the robot carries the load in it.
        n_samples: number of samples.
        dt: time between them [s], where it is known.
        low, high: the smallest and the largest of each number of q (nq,).
        doubts: what is implausible about the log.
    """

    log: Log
    segments: list[list[Moments]]
    is_loaded: bool
    n_samples: int
    dt: float | None
    low: Floats
    high: Floats
    doubts: tuple[PlausibilityWarning, ...]

    @property
    def name(self) -> str:
        """Name of the file, and whether the robot carries the load."""
        return self.log.path.name + (" (loaded)" if self.is_loaded else "")


@dataclass(frozen=True, eq=False)
class Formulation:
    """The regression of an identification.

    Attributes:
        options: how logs are read.
        regression: the rows.
        problem: the parameters.
        sigma: standard deviation of each row by its sensor (n_rows,), 1 where it has none.
        is_declared: whether all have one.
    """

    options: IdentifyOptions
    regression: Regression
    problem: IdentificationProblem
    sigma: Floats
    is_declared: bool

    @staticmethod
    def of(
        options: IdentifyOptions,
        wanted: Sequence[str],
        load_on: str | None,
        known: Mapping[str, float],
        taken_at: Floats | None = None,
    ) -> Formulation:
        """Formulate the regression.

        Args:
            options: how logs are read.
            wanted: the parameters, see `Parameters.of`.
            load_on: the link that carries a load, in some logs.
            known: values of parameters that are known.
            taken_at: the inertias whose weight friction depends on, see `Regression.of`.

        Raises:
            InputError, UnknownNameError: see `identify`.
        """
        system = options.system
        if load_on is not None:
            system.tree.link(load_on)
            wanted = [*wanted, f"m:{load_on}", f"mc:{load_on}.*", f"I:{load_on}.*"]
        regression = Regression.of(system, wanted, taken_at=taken_at)
        problem = IdentificationProblem(base_parameters(regression.without_gains()), load_on, known)
        if not problem.columns:
            raise InputError(
                f"sensors '{system.sensors.name}' identify no combination of these parameters of '{system.tree.name}', "
                f"however it moves: {_why_unidentifiable(regression)}"
            )
        _check_scale(regression, problem)
        if options.is_physical:
            check_known(problem)
        given: dict[str, float] = {}
        for row in system.rows:
            if row.equation.sigma is not None:
                given |= zip(row.component_names, row.equation.sigma, strict=True)
        sigma = np.array([given.get(name, 1.0) for name in regression.row_names])
        return Formulation(options, regression, problem, sigma, all(name in given for name in regression.row_names))

    @property
    def row_names(self) -> tuple[str, ...]:
        """The rows whose residuals have a standard deviation of their own: all together where wrenches are unknown."""
        return ("all rows, unknown wrenches taken out",) if self.regression.unknowns else self.regression.row_names

    def without_still(self, still: Sequence[str]) -> Formulation:
        """Take friction and rotors of joints that stand still as known: noise would determine these.

        Raises:
            InputError: nothing is left to look for.
        """
        problem = self.problem
        own = {
            each.name: float(value)
            for each, value in zip(problem.parameters.each, problem.parameters.prior, strict=True)
            if each.owner in still and each.kind in OF_MOTION and each.name not in problem.known
        }
        if len(own) == len(problem.free):
            raise InputError(
                f"{spaced(listed(still))} stood still all the time, so the logs do not identify "
                f"{spaced(listed(own))}. Give a log in which these joints move."
            )
        return replace(self, problem=replace(problem, known={**problem.known, **own}))

    def evidence(self, log: LogMoments, part: slice = slice(None)) -> Evidence:
        """Evidence of a log, or of some of its segments, on the free parameters."""
        E, shift = self.problem.evidence(log.is_loaded)
        return Evidence(log.segments[part], E, shift, self.problem.gains_of(self.row_names))

    def prior(self, logs: Sequence[LogMoments]) -> ParameterPrior:
        """Prior of the free parameters, with the offsets that sensors declare."""
        declared: dict[str, tuple[float, float]] = {}
        for row in self.options.system.rows:
            equation = row.equation
            if isinstance(equation, VariableReading) and equation.key.kind == OFFSET and equation.value is not None:
                sigma = equation.sigma or (np.inf,) * len(equation.value)
                names = (name.removeprefix("prior:") for name in row.component_names)
                declared |= dict(zip(names, zip(equation.value, sigma, strict=True), strict=True))
        return self.problem.prior([self.evidence(log).rows for log in logs], declared)

    def solution(
        self, logs: Sequence[LogMoments], prior: ParameterPrior, ends: Sequence[int | None] | None = None
    ) -> Solution:
        """Least-squares estimate from logs, each up to some segment."""
        parts = [slice(end) for end in ends or [None] * len(logs)]
        evidence = [self.evidence(log, part) for log, part in zip(logs, parts, strict=True)]
        sigma, is_known = (np.ones(1), False) if self.regression.unknowns else (self.sigma, self.is_declared)
        return solved(evidence, prior, sigma, is_known, self.problem.base_of_free)

    def robust(self, log: LogMoments, solution: Solution) -> HuberPseudoValues:
        """Residuals about an estimate, by which those of a log that are far off count less."""
        evidence = self.evidence(log)
        gains = [evidence.gain(k, solution.values) for k in range(len(self.row_names))]
        return HuberPseudoValues(evidence.beta(solution.values), np.abs(gains) * solution.sigma)

    def returned(self, solution: Solution) -> tuple[Floats, tuple[str, ...]]:
        """All parameters, inertias physically consistent where that was asked, and notes."""
        if self.options.is_physical:
            return consistent_estimate(self.problem, solution, self.options.hulls)
        return self.problem.whole(solution.values), ()


def _check_scale(regression: Regression, problem: IdentificationProblem) -> None:
    """Check that something gives the scale of forces, where all that read them have unknown gains.

    Raises:
        InputError: nothing does.
    """
    free = {problem.all_parameters[k].name for k in problem.free}
    readings = [name for name, reads in zip(regression.row_names, regression.reads, strict=True) if reads >= 0]
    has_gains = bool(readings) and all(f"gain:{name}" in free for name in readings)
    if has_gains and all(c.is_zero for c in regression.c) and not any(problem.known.values()):
        raise InputError(
            "the gains of all sensors are free, and nothing fixes the scale of forces: all gains, inertias and "
            "friction could be twice as large. Give one known value, known={'m:load': 2.5} (--known m:load=2.5) for a "
            "load in some logs, or leave out the gain of one sensor."
        )


def _why_unidentifiable(regression: Regression) -> str:
    """Say why the sensors determine nothing, and what to do."""
    if not regression.unknowns:
        return "no reading depends on one. Name others, or add force sensors."
    unknown = ", ".join(dict.fromkeys(name.rpartition(".")[0] or name for name in regression.unknowns))
    return f"unknown wrenches ({unknown}) could explain all that they read. Add sensors that measure these."

"""An identification as a regression, before any log is read: its rows, its parameters, and how they are weighed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.identification.base_parameters import base_parameters
from nori_dyn.identification.consistent import check_known, consistent_estimate
from nori_dyn.identification.elimination import row_names
from nori_dyn.identification.estimation import Solution, solved
from nori_dyn.identification.moments import Evidence, FilterNoise, HuberPseudoValues, Moments
from nori_dyn.identification.parameters import CURVE, Kind, Parameters
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.identification.regression import Regression, force_readings_of, regressions_of
from nori_dyn.logs.log import Log
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.logs.reading import SampleReader
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.system.variables import OFFSET
from nori_dyn.tables import listed, spaced
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class IdentifyOptions:
    """How logs are identified from; see `identify`."""

    systems: Mapping[ContactState, System]
    contact_names: tuple[str, ...]
    contacts: ContactState | None
    differentiation: Differentiator | None
    dt: float | None
    moving: float | None
    cutoff: float | None
    missing: Missing
    backend: str
    is_physical: bool
    hulls: Mapping[str, Any]
    has_curves: bool
    robots: tuple[str, ...] = ("",)
    own: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()

    @property
    def tree(self) -> KinematicTree:
        """The robot."""
        return next(iter(self.systems.values())).tree

    def reader(self, missing: Missing) -> SampleReader:
        """Reader of the samples of a log."""
        return SampleReader(self.systems, self.contact_names, self.contacts, self.differentiation, missing)

    @property
    def sensors(self) -> str:
        """The sensors, for messages."""
        return f"sensors '{' | '.join(system.sensors.name for system in self.systems.values())}'"


@dataclass(frozen=True, slots=True, eq=False)
class LogMoments:
    """Moments of a log: all that the estimate needs of its samples.

    Attributes:
        log: the log.
        segments: moments of each row, segment by segment.
        is_loaded: whether the robot carries the load in it.
        robot: which of a fleet it is of.
        n_samples: number of samples.
        dt: time between them [s], where it is known.
        low, high: the smallest and the largest of each number of q (nq,).
        doubts: what is implausible about the log.
        noise: noise of its readings, which a filter takes off.
    """

    log: Log
    segments: list[list[Moments]]
    is_loaded: bool
    robot: int
    n_samples: int
    dt: float | None
    low: Floats
    high: Floats
    doubts: tuple[PlausibilityWarning, ...]
    noise: FilterNoise

    @property
    def name(self) -> str:
        """Name of the file, and whether the robot carries the load."""
        return self.log.path.name + (" (loaded)" if self.is_loaded else "")


@dataclass(frozen=True, eq=False)
class Formulation:
    """The regression of an identification.

    Attributes:
        options: how logs are read.
        regressions: the rows of each contact state.
        problem: the parameters.
        sigma: standard deviation of each row by its sensor (n_rows,), 1 where it has none.
        is_declared: whether all have one.
    """

    options: IdentifyOptions
    regressions: tuple[Regression, ...]
    problem: IdentificationProblem
    sigma: Floats
    is_declared: bool

    @staticmethod
    def of(
        options: IdentifyOptions,
        wanted: Sequence[str],
        load_on: str | None,
        known: Mapping[str, float],
        taken_at: KinematicTree,
    ) -> Formulation:
        """Formulate the regression.

        Args:
            options: how logs are read.
            wanted: the parameters, see `Parameters.of`.
            load_on: the link that carries a load, in some logs.
            known: values of parameters that are known.
            taken_at: the robot about which equations are taken that are not linear, see `Regression.of`.

        Raises:
            InputError, UnknownNameError: see `identify`.
        """
        tree = options.tree
        if load_on is not None:
            tree.link(load_on)
            wanted = [*wanted, f"m:{load_on}", f"mc:{load_on}.*", f"I:{load_on}.*"]
        regressions = regressions_of([*options.systems.values()], wanted, taken_at=taken_at)
        base, robots = base_parameters([each.without_gains() for each in regressions]), options.robots
        readings = force_readings_of(options.systems.values())
        own = Parameters.of(tree, options.own, readings).each if len(robots) > 1 else ()
        if base.parameters.of_kinds("stribeck") and any(each.kind in CURVE for each in own):
            raise InputError(
                "Stribeck's curve is that of all robots of the type: leave it out of `own`, or identify one robot at "
                "a time."
            )
        places = (base.parameters.place[each.name] for each in own if each.name in base.parameters.place)
        problem = IdentificationProblem(base, load_on, known, robots, tuple(places))
        if not problem.columns:
            raise InputError(
                f"{options.sensors} identify no combination of these parameters of '{tree.name}', however it moves: "
                f"{_why_unidentifiable(regressions)}"
            )
        _check_scale(regressions, problem)
        if options.is_physical:
            check_known(problem)
        given: dict[str, float] = {}
        for row in (row for system in options.systems.values() for row in system.rows):
            if row.equation.sigma is not None:
                given = dict(zip(row.component_names, row.equation.sigma, strict=True)) | given
        names = row_names(regressions)
        sigma = np.array([given.get(name, 1.0) for name in names])
        return Formulation(options, regressions, problem, sigma, all(name in given for name in names))

    @cached_property
    def row_names(self) -> tuple[str, ...]:
        """The rows of all contact states."""
        return row_names(self.regressions)

    @cached_property
    def readings(self) -> dict[str, str]:
        """The readings that depend on forces, each with its unit."""
        return force_readings_of(self.options.systems.values())

    @property
    def is_weighed_anew(self) -> bool:
        """Whether samples depend on the deviations of rows, which are not declared: they weigh unknown wrenches."""
        return not self.is_declared and any(each.unknowns for each in self.regressions)

    def without(self, kinds: Sequence[Kind], joints: Sequence[str], why: str, advice: str) -> Formulation:
        """Take parameters of joints as known, of which the logs tell nothing: noise would determine these.

        Args:
            kinds: which parameters.
            joints: of which joints.
            why: in words, after the names of the joints.
            advice: what to do.

        Raises:
            InputError: nothing is left to look for.
        """
        problem = self.problem
        own = {
            each.name: float(value)
            for each, value in zip(problem.all_parameters, problem.before, strict=True)
            if each.owner in joints and each.kind in kinds and each.name not in problem.known
        }
        if own and len(own) == len(problem.free):
            raise InputError(
                f"{spaced(listed(joints))} {why}, so the logs do not identify {spaced(listed(own))}. {advice}"
            )
        return replace(self, problem=replace(problem, known={**problem.known, **own}))

    def evidence(self, log: LogMoments, part: slice = slice(None)) -> Evidence:
        """Evidence of a log, or of some of its segments, on the free parameters."""
        E, shift = self.problem.over_free(log.is_loaded, log.robot)
        return Evidence(log.segments[part], E, shift, self.problem.gains_of(self.row_names))

    def prior(self, logs: Sequence[LogMoments]) -> ParameterPrior:
        """Prior of the free parameters, with the offsets that sensors declare."""
        declared: dict[str, tuple[float, float]] = {}
        for row in next(iter(self.options.systems.values())).rows:
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
        return solved(evidence, prior, self.sigma, self.is_declared, self.problem.base_of_free)

    def weighed(self, log: LogMoments, solution: Solution) -> Floats:
        """Standard deviations of the rows of a log by an estimate, gains counted in (rows,)."""
        evidence = self.evidence(log)
        gains = [evidence.gain(k, solution.values) for k in range(len(self.row_names))]
        return np.asarray(np.abs(gains) * solution.sigma)

    def robust(self, log: LogMoments, solution: Solution) -> HuberPseudoValues:
        """Residuals about an estimate, by which those of a log that are far off count less."""
        return HuberPseudoValues(self.evidence(log).beta(solution.values), self.weighed(log, solution))

    def returned(self, solution: Solution) -> tuple[Floats, tuple[str, ...]]:
        """All parameters, inertias physically consistent where that was asked, and notes."""
        if self.options.is_physical:
            return consistent_estimate(self.problem, solution, self.options.hulls)
        return self.problem.whole(solution.values), ()


def _check_scale(regressions: Sequence[Regression], problem: IdentificationProblem) -> None:
    """Check that something gives the scale of forces, where all that read them have unknown gains.

    Raises:
        InputError: nothing does.
    """
    free = {problem.all_parameters[k].name for k in problem.free}
    rows = [row for each in regressions for row in zip(each.row_names, each.reads, each.c, strict=True)]
    readings = [name for name, reads, _ in rows if reads >= 0]
    has_gains = bool(readings) and all(f"gain:{name}" in free for name in readings)
    if has_gains and all(c.is_zero for *_, c in rows) and not any(problem.known.values()):
        raise InputError(
            "the gains of all sensors are free, and nothing fixes the scale of forces: all gains, inertias and "
            "friction could be twice as large. Give one known value, known={'m:load': 2.5} (--known m:load=2.5) for a "
            "load in some logs, or leave out the gain of one sensor."
        )


def _why_unidentifiable(regressions: Sequence[Regression]) -> str:
    """Say why the sensors determine nothing, and what to do."""
    unknowns = [name for each in regressions for name in each.unknowns]
    if not unknowns:
        return "no reading depends on one. Name others, or add force sensors."
    unknown = ", ".join(dict.fromkeys(name.rpartition(".")[0] or name for name in unknowns))
    return f"unknown wrenches ({unknown}) could explain all that they read. Add sensors that measure these."

"""Parameters of a robot looked for in logs: from what the logs say to what is told of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import solve_triangular
from threadpoolctl import threadpool_limits

from nori_dyn.errors import InputError
from nori_dyn.identification.base_parameters import base_parameters
from nori_dyn.identification.bodies import as_bodies, bodies, check_known
from nori_dyn.identification.curves import Curves
from nori_dyn.identification.doubts import (
    contradicted_priors,
    delays,
    late_readings,
    opposite_readings,
    said_of_motion,
    still_joints,
    turned_signs,
)
from nori_dyn.identification.estimation import Solution, solved
from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.findings import TOLD, Identification, combinations_of
from nori_dyn.identification.fits import fits_of
from nori_dyn.identification.gathering import Robust
from nori_dyn.identification.information import Moments, triangular
from nori_dyn.identification.log_reader import Gathered, IdentifyOptions, LogReader
from nori_dyn.identification.parameters import OF_MOTION
from nori_dyn.identification.physical import is_physical
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.identification.regression import force_readings, regression
from nori_dyn.logs.log import Log
from nori_dyn.measurements.base import VariableReading
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import OFFSET
from nori_dyn.tables import listed, spaced
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

ROBUST_ROUNDS = 4
"""Times that a log is read again where residuals that are far off are to count less."""


class IdentificationRun:
    """Looks for parameters of a robot in logs.

    Args:
        job: how.
        wanted: the parameters, see `Parameters.of`.
        load_on: the link that carries a load, in some logs.
        known: values of parameters that are known.
        stage: is told how far it is.

    Raises:
        InputError, UnknownNameError: see `identify`.
    """

    def __init__(
        self,
        job: IdentifyOptions,
        wanted: Sequence[str],
        load_on: str | None,
        known: Mapping[str, float],
        stage: Progress,
    ) -> None:
        self._job, self._stage = job, stage
        stage("which combinations can be told")
        if load_on is not None:
            job.system.tree.link(load_on)
            wanted = [*wanted, f"m:{load_on}", f"mc:{load_on}.*", f"I:{load_on}.*"]
        self._found = regression(job.system, wanted)
        self._problem = IdentificationProblem(base_parameters(self._found.without_gains()), load_on, known)
        if not self._problem.columns:
            raise InputError(
                f"sensors '{job.system.sensors.name}' tell no combination of these parameters of "
                f"'{job.system.tree.name}', however it moves: {self._unseen()}"
            )
        self._check_scale()
        if job.is_physical:
            check_known(self._problem)
        stage("compiling")
        program = self._found.program(self._problem.columns, job.backend)
        sigma, self._is_known = _sigma_of_rows(job.system, self._found.row_names)
        self._reader = LogReader(job, self._found, program, sigma, stage)
        if self._found.unknowns:
            self._row_names: tuple[str, ...] = ("all rows, unknown wrenches taken out",)
            self._first_sigma, self._is_known = np.ones(1), False
        else:
            self._row_names, self._first_sigma = self._found.row_names, sigma

    def _check_scale(self) -> None:
        """Check that something tells how large forces are, where all that read them have unknown gains.

        Raises:
            InputError: nothing does.
        """
        found, problem = self._found, self._problem
        free = {problem.all_parameters[k].name for k in problem.free}
        readings = [name for name, reads in zip(found.row_names, found.reads, strict=True) if reads >= 0]
        has_gains = bool(readings) and all(f"gain:{name}" in free for name in readings)
        if has_gains and all(c.is_zero for c in found.c) and not any(problem.known.values()):
            raise InputError(
                "gains of all sensors are looked for, and nothing tells how large forces are: all gains, inertias and "
                "frictions could be twice what they are. Say one that is known: known={'m:load': 2.5} (--known "
                "m:load=2.5), for a load in some logs, or leave out the gain of one sensor."
            )

    def _unseen(self) -> str:
        """Return why the sensors tell nothing, and what to do."""
        if not self._found.unknowns:
            return "no reading depends on one. Name others, or add sensors of forces."
        unknown = ", ".join(dict.fromkeys(name.rpartition(".")[0] or name for name in self._found.unknowns))
        return f"what they read could all be of wrenches that nothing tells ({unknown}). Add sensors that read these."

    def identified(
        self, logs: Sequence[Log], loaded: Sequence[Log], held_out: Sequence[Log], share: float
    ) -> Identification:
        """Return what is found.

        Args:
            logs: the logs.
            loaded: those in which the robot carries the load.
            held_out: those on which the fit is judged.
            share: of the end of each log on which it is judged, where there are no such logs.

        Raises:
            InputError, FileFormatError, MappingError, MissingExtraError: see `identify`.
        """
        if not logs and not loaded:
            raise InputError("there is no log to identify from.")
        if loaded and self._problem.load_on is None:
            tip = self._job.system.tree.names[-1]
            raise InputError(f"which link carries the load? Name it: load_on='{tip}' (--load-on {tip}).")
        with threadpool_limits(1):  # factors are small: threads of the BLAS would wait for each other
            read = self._reader.gather
            gathered = [*(read(log, False) for log in logs), *(read(log, True) for log in loaded)]
            unweighed = gathered
            others = [read(log, False) for log in held_out]
            self._stage("estimating")
            self._problem = self._without_still(gathered)
            prior = self._problem.prior([each.rows for each in map(self._evidence, gathered)], self._declared())
            solution = self._solved(gathered, prior)
            if self._job.is_robust:
                gathered, solution = self._robust(gathered, prior, solution)
            return self._identification(gathered, unweighed, others, share, prior, solution)

    def _evidence(self, gathered: Gathered, part: slice = slice(None)) -> Evidence:
        E, shift = self._problem.evidence(gathered.is_loaded)
        return Evidence(gathered.segments[part], E, shift, self._problem.gains_of(self._row_names))

    def _solved(
        self, gathered: Sequence[Gathered], prior: ParameterPrior, part: Sequence[slice] | None = None
    ) -> Solution:
        parts = [slice(None)] * len(gathered) if part is None else part
        logs = [self._evidence(each, own) for each, own in zip(gathered, parts, strict=True)]
        return solved(logs, prior, self._first_sigma, self._is_known, self._problem.base_of_free)

    def _all_curves(self, gathered: Sequence[Gathered], before: Floats, values: Floats) -> tuple[Curves, ...]:
        """Return the curves of the first log without the load and the first with it, where they are asked for."""
        if not self._job.has_curves or self._found.unknowns:
            return ()
        first = {each.is_loaded: each for each in reversed(gathered)}
        shown = [first[is_loaded] for is_loaded in sorted(first)]
        return tuple(self._reader.curves(each, self._evidence(each), before, values) for each in shown)

    def _robust(
        self, gathered: list[Gathered], prior: ParameterPrior, solution: Solution
    ) -> tuple[list[Gathered], Solution]:
        """Return what logs say where residuals that are far off count less, and the estimate from that."""
        for _ in range(ROBUST_ROUNDS):
            again = []
            for each in gathered:
                evidence = self._evidence(each)
                gains = [evidence.gain(k, solution.values) for k in range(len(self._row_names))]
                robust = Robust(evidence.beta(solution.values), np.abs(gains) * solution.sigma)
                again.append(self._reader.gather(each.log, each.is_loaded, robust))
            gathered = again
            solution = self._solved(gathered, prior)
        return gathered, solution

    def _declared(self) -> dict[str, tuple[float, float]]:
        """Return mean and standard deviation of the offsets of which sensors declare them."""
        found: dict[str, tuple[float, float]] = {}
        for row in self._job.system.rows:
            equation = row.equation
            if isinstance(equation, VariableReading) and equation.key.kind == OFFSET and equation.value is not None:
                sigma = equation.sigma or (np.inf,) * len(equation.value)
                names = (name.removeprefix("prior:") for name in row.component_names)
                found |= dict(zip(names, zip(equation.value, sigma, strict=True), strict=True))
        return found

    def _identification(
        self,
        gathered: list[Gathered],
        unweighed: list[Gathered],
        others: list[Gathered],
        share: float,
        prior: ParameterPrior,
        solution: Solution,
    ) -> Identification:
        """Return what is found of what logs say; fits are of `unweighed`, in which all residuals count alike."""
        problem = self._problem
        logs = [self._evidence(each) for each in gathered]
        ends = [_end(each.segments, share) for each in gathered]
        if others:
            held_out, without = [self._evidence(each) for each in others], solution
        elif share and all(0 < end < len(each.segments) for end, each in zip(ends, gathered, strict=True)):
            without = self._solved(gathered, prior, [slice(0, end) for end in ends])
            held_out = [self._evidence(each, slice(end, None)) for end, each in zip(ends, unweighed, strict=True)]
        else:
            held_out, without = [], solution
        before = problem.before[problem.free]
        plain = problem.whole(solution.values)
        values, notes = self._returned(solution)
        judged = values if without is solution else self._returned(without)[0]
        dt, names = gathered[0].dt, self._row_names
        late = {} if self._found.unknowns else delays(names, logs, solution.prior, solution.sigma, dt, solution.values)
        doubts = [f"{log.log.path.name}: {each.message}" for log in (*gathered, *others) for each in log.doubts]
        doubts += [*turned_signs(problem.parameters, plain), *contradicted_priors(solution.checks)]
        doubts += late_readings(late)
        if not self._found.unknowns:
            doubts += opposite_readings(self._row_names, logs, before)
        inverse = solve_triangular(triangular(np.array(solution.prior.L)), np.eye(len(before)))
        told = np.linalg.svd(solution.R @ inverse, compute_uv=False)[: len(problem.told)]
        directions = 1.0 / np.sqrt(1.0 + told**2)
        combinations = combinations_of(problem, solution, plain, inverse @ inverse.T)
        doubts += said_of_motion(
            self._still(gathered),
            [each.name for each in combinations if each.is_told],
            int(np.count_nonzero(directions < TOLD)),
            len(directions),
        )
        return Identification(
            problem=problem,
            values=values,
            plain=plain,
            solution=solution,
            fits=fits_of(
                self._row_names,
                force_readings(self._job.system),
                [self._evidence(each) for each in unweighed],
                held_out,
                before,
                values[problem.free],
                judged[problem.free],
                solution.sigma,
                late,
            ),
            combinations=combinations,
            directions=directions,
            doubts=tuple(doubts),
            remarks=notes,
            n_samples=sum(each.n_samples for each in gathered),
            is_physical=is_physical(bodies(problem, plain), values[problem.free]),
            prior_covariance=inverse @ inverse.T,
            logs=tuple(each.log.path.name + (" (loaded)" if each.is_loaded else "") for each in gathered),
            held_out=_held_out(others, share if held_out else 0.0),
            curves=self._all_curves(others or gathered, before, values[problem.free]),
        )

    def _still(self, gathered: Sequence[Gathered]) -> tuple[str, ...]:
        """Return the joints that stand still in all logs."""
        low, high = np.min([each.low for each in gathered], axis=0), np.max([each.high for each in gathered], axis=0)
        return still_joints(self._job.system.tree, low, high)

    def _without_still(self, gathered: Sequence[Gathered]) -> IdentificationProblem:
        """Return what is looked for, less friction and rotors of joints that stand still: noise would tell these."""
        problem, still = self._problem, self._still(gathered)
        own = [
            each.name
            for each in problem.parameters.each
            if each.owner in still and each.kind in OF_MOTION and each.name not in problem.known
        ]
        if len(own) == len(problem.free):
            raise InputError(
                f"{spaced(listed(still))} stood still all the time, so that the logs tell nothing of "
                f"{spaced(listed(own))}. Give a log "
                "in which these joints move."
            )
        values = dict(zip(problem.parameters.names, problem.parameters.prior.tolist(), strict=True))
        return replace(problem, known={**problem.known, **{name: values[name] for name in own}})

    def _returned(self, solution: Solution) -> tuple[Floats, tuple[str, ...]]:
        """Return all parameters, those of the robot as bodies can have them where that was asked, and notes."""
        if self._job.is_physical:
            return as_bodies(self._problem, solution, self._job.hulls)
        return self._problem.whole(solution.values), ()


def _end(segments: Sequence[Sequence[Moments]], share: float) -> int:
    """Return how many segments there are before the last ones that hold a share of the samples."""
    counts = np.cumsum([segment[0].n for segment in segments])
    return int(np.searchsorted(counts, (1.0 - share) * counts[-1], side="right"))


def _held_out(others: Sequence[Gathered], share: float) -> str:
    """Return what the fit is judged on, in words."""
    if others:
        return listed(each.log.path.name for each in others)
    return f"the last {100 * share:.2g} % of each log" if share else ""


def _sigma_of_rows(system: System, names: Sequence[str]) -> tuple[Floats, bool]:
    """Return the standard deviation that each row has by its sensor, 1 where it has none; and whether all have one."""
    given: dict[str, float] = {}
    for row in system.rows:
        given |= _own_sigma(row)
    return np.array([given.get(name, 1.0) for name in names]), all(name in given for name in names)


def _own_sigma(row: RowBlock) -> dict[str, float]:
    sigma = row.equation.sigma
    return {} if sigma is None else dict(zip(row.component_names, sigma, strict=True))

"""Logs read for the identification of a robot: what they say of its parameters, gathered with flat memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.identification.curves import Curves, Thinned
from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.filtering import Decimation
from nori_dyn.identification.gathering import Gathering, Moving, Robust
from nori_dyn.identification.information import Moments
from nori_dyn.identification.joint_accelerations import JointAccelerations
from nori_dyn.identification.regression import Regression, RegressorProgram, torques_of
from nori_dyn.logs.differentiation import JUMP, Derivation
from nori_dyn.logs.log import Log
from nori_dyn.logs.plausible import look_at
from nori_dyn.logs.reading import SampleReader
from nori_dyn.logs.record import ALWAYS
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.solve.plausibility.doubt import Doubt
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Booleans, Floats


@dataclass(frozen=True, slots=True, eq=False)
class IdentifyOptions:
    """How logs are identified from; see `identify`."""

    system: System
    differentiation: Derivation | None
    dt: float | None
    moving: float | None
    cutoff: float | None
    missing: Missing
    backend: str
    is_robust: bool
    is_physical: bool
    hulls: Mapping[str, Any]
    has_curves: bool


@dataclass(frozen=True, slots=True, eq=False)
class Gathered:
    """What a log says.

    Attributes:
        log: the log.
        segments: what each segment of it says of each row.
        is_loaded: whether the robot carries the load in it.
        n_samples: number of samples.
        dt: time between them [s], where it is known.
        low: the smallest of each number of q (nq,).
        high: the largest.
        doubts: what is not likely about the log.
    """

    log: Log
    segments: list[list[Moments]]
    is_loaded: bool
    n_samples: int
    dt: float | None
    low: Floats
    high: Floats
    doubts: tuple[Doubt, ...]


class LogReader:
    """Reads logs, and gathers what they say.

    Args:
        job: how.
        found: the regression.
        program: its columns that are wanted.
        sigma: standard deviation of each row; 1 where it is not known.
        stage: is told how far it is.

    Raises:
        InputError: the sensors do not tell the motion.
    """

    def __init__(
        self, job: IdentifyOptions, found: Regression, program: RegressorProgram, sigma: Floats, stage: Progress
    ) -> None:
        self._job, self._found, self._program, self._sigma, self._stage = job, found, program, sigma, stage
        self._motion = JointAccelerations(job.system)

    def gather(self, log: Log, is_loaded: bool, robust: Robust | None = None) -> Gathered:
        """Return what a log says."""
        job, report = self._job, LogReport()
        reading = SampleReader({ALWAYS: job.system}, differentiation=job.differentiation, missing=job.missing)
        gathering: Gathering | None = None
        last: Samples | None = None
        dt, n = job.dt, 0
        low, high = np.full(job.system.tree.nq, np.inf), np.full(job.system.tree.nq, -np.inf)
        for chunk in reading.chunks(log, report.counts):
            samples = _whole(chunk.samples)
            dt = _step(samples) if dt is None else dt
            if gathering is None:
                gathering = self.gathering(dt, robust)
            for part in _runs(samples, dt):
                if part.start or not _follows(samples, last, dt):
                    gathering.forget()
                q, qd, y = samples.q[part], samples.qd[part], samples.y[part]
                gathering.add(q, qd, self._motion.accelerations(q, qd, y), y, dt)
            look_at(report, {ALWAYS: job.system}, chunk.samples, n, dt, by_model=False, units=log.units_of_motion)
            n, last = n + len(samples), samples
            low = np.minimum(low, samples.q.min(axis=0, initial=np.inf))
            high = np.maximum(high, samples.q.max(axis=0, initial=-np.inf))
            self._stage(f"{log.path.name[-24:]}, {n / 1e3:,.0f} k samples", chunk.done)
        segments = [] if gathering is None else gathering.segments.each()
        if not segments:
            raise InputError(
                f"{log.path}: {n} samples are too few for a filter of {job.cutoff:g} Hz. Leave it out, or raise it."
                if job.cutoff is not None
                else f"{log.path}: holds no sample that says anything."
            )
        if job.moving is not None and not any(row.n for segment in segments for row in segment):
            raise InputError(
                f"{log.path}: no joint moves faster than {job.moving:g} rad/s or m/s for long. Say a lower speed: "
                "moving (--moving)."
            )
        return Gathered(log, segments, is_loaded, n, dt, low, high, report.doubts)

    def gathering(self, dt: float | None, robust: Robust | None) -> Gathering:
        cutoff = self._job.cutoff
        if cutoff is not None and dt is None:
            raise InputError("a cutoff needs the time between samples, and the log has no times: give dt (--dt).")
        decimation = None if cutoff is None or dt is None else Decimation(cutoff, dt)
        speed = self._job.moving
        moving = None if speed is None else Moving(speed, torques_of(self._job.system, self._found.row_names))
        return Gathering(self._found, self._program, self._sigma, decimation, robust, moving)

    def curves(self, gathered: Gathered, evidence: Evidence, before: Floats, values: Floats) -> Curves:
        """Return the readings of a log over the time, beside what parameters make of the motion.

        Args:
            gathered: the log.
            evidence: what it says.
            before: the parameters that are looked for, by the model as it was (n,).
            values: those that were found (n,).
        """
        n_rows = self._found.n_rows
        gains = np.array([evidence.gain(k, values) for k in range(n_rows)])
        gathering = self.gathering(gathered.dt, None)
        reading = SampleReader({ALWAYS: self._job.system}, differentiation=self._job.differentiation, missing="drop")
        thinned, last = Thinned(), None
        for chunk in reading.chunks(gathered.log, LogReport().counts):
            samples = _whole(chunk.samples)
            at = samples.numbers.astype(float) if samples.t is None else samples.t
            for part in _runs(samples, gathered.dt):
                if part.start or not _follows(samples, last, gathered.dt):
                    gathering.forget()
                q, qd, y = samples.q[part], samples.qd[part], samples.y[part]
                qdd = self._motion.accelerations(q, qd, y)
                made = gathering.filtered(q, qd, qdd, y, gathered.dt, at[part])
                old = made.read + gathering.residuals(made.entries, evidence.beta(before))
                new = made.read + gathering.residuals(made.entries, evidence.beta(values)) / gains
                thinned.add(np.column_stack([made.t, made.read, old, new]))
            last = samples
            self._stage(f"{gathered.log.path.name[-24:]}, curves", chunk.done)
            unit = "sample" if samples.t is None else "s"
        t, rows = thinned.rows[:, 0], thinned.rows[:, 1:].T
        name = gathered.log.path.name
        return Curves(name, t - t[0], unit, rows[:n_rows], rows[n_rows : 2 * n_rows], rows[2 * n_rows :])


def _whole(samples: Samples) -> Samples:
    """Return the samples all of whose readings are numbers."""
    is_whole: Booleans = np.asarray(np.isfinite(samples.y).all(axis=1))
    return samples if is_whole.all() else samples.at(is_whole)


def _step(samples: Samples) -> float | None:
    """Return the time between samples [s], where they have times."""
    return None if samples.t is None or len(samples) < 2 else float(np.median(np.diff(samples.t)))


def _follows(samples: Samples, last: Samples | None, dt: float | None) -> bool:
    """Return whether samples go on where the last ones ended."""
    if last is None or not len(last) or not len(samples):
        return False
    if samples.t is None or last.t is None or dt is None:
        return int(samples.numbers[0]) == int(last.numbers[-1]) + 1
    return bool(0 < samples.t[0] - last.t[-1] <= JUMP * dt)


def _runs(samples: Samples, dt: float | None) -> list[slice]:
    """Return the runs of samples that follow each other in time."""
    if samples.t is None or dt is None or len(samples) < 2:
        return [slice(0, len(samples))]
    steps = np.diff(samples.t)
    jumps = np.flatnonzero((steps > JUMP * dt) | (steps <= 0)) + 1
    return [slice(a, b) for a, b in pairwise([0, *jumps.tolist(), len(samples)])]

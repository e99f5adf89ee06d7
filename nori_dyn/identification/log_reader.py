"""Logs read for an identification: their moments, with flat memory, and their curves.

Joint accelerations of samples are as they are read, or estimated from accelerometers as well.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from nori_dyn.errors import InputError, SingularSystemError, SystemShapeError
from nori_dyn.identification.elimination import EliminatedRows, Motion
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.fits import Curves, Thinned
from nori_dyn.identification.formulation import Formulation, LogMoments
from nori_dyn.identification.moments import Decimation, Evidence, HuberPseudoValues, MomentAccumulator
from nori_dyn.identification.regression import MOTIONS, torques_of
from nori_dyn.logs.log import Log
from nori_dyn.logs.motion.differentiation import JUMP
from nori_dyn.logs.report import LogReport, look_at
from nori_dyn.logs.samples import Samples, samples_by_state
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.binding import scalar_rows, without_offset
from nori_dyn.model.joints import FORCE
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.planner import EliminationPlan, make_plan
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from nori_dyn.system.equation import Equation
from nori_dyn.system.inputs import Missing
from nori_dyn.system.rows import SensorRow
from nori_dyn.system.variables import VariableKey
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Booleans, Floats, Indices


class LogReader:
    """Reads logs for an identification.

    Args:
        formulation: the regression; its problem may change later, but not its columns.
        stage: receives how far it is.

    Raises:
        InputError: the sensors do not determine the motion.
    """

    def __init__(self, formulation: Formulation, stage: Progress) -> None:
        self._formulation, self._options, self._sigma = formulation, formulation.options, formulation.sigma
        columns, backend = formulation.problem.columns, self._options.backend
        self._rows = EliminatedRows.of(formulation.regressions, columns, backend)
        self._accelerations = {state: joint_accelerations(each) for state, each in self._options.systems.items()}
        self._stage = stage

    def read(
        self,
        log: Log,
        is_loaded: bool = False,
        robot: int = 0,
        sigma: Floats | None = None,
        robust: HuberPseudoValues | None = None,
    ) -> LogMoments:
        """Moments of a log, in which the robot carries the load or does not.

        Args:
            log: the log.
            is_loaded: whether it carries the load.
            robot: which of a fleet it is.
            sigma: standard deviations of the rows (rows,), by which unknown wrenches are weighed; those of the sensors
                when None.
            robust: estimates before; None counts all alike.

        Raises:
            InputError: no sample of it counts.
        """
        options, report = self._options, LogReport()
        accumulator: MomentAccumulator | None = None
        dt, n = options.dt, 0
        low, high = np.full(options.tree.nq, np.inf), np.full(options.tree.nq, -np.inf)
        for chunk, samples, dt, runs in self._chunks(log, options.missing, report, options.dt):
            accumulator = accumulator or self._accumulator(dt, sigma, robust)
            for part, is_new in runs:
                if is_new:
                    accumulator.restart()
                accumulator.add(self._motion(samples.at(part)), dt)
            look_at(report, options.systems, chunk, n, dt, by_model=False, units=log.units_of_motion)
            n += len(samples)
            low = np.minimum(low, samples.q.min(axis=0, initial=np.inf))
            high = np.maximum(high, samples.q.max(axis=0, initial=-np.inf))
            self._stage(f"{log.path.name[-24:]}, {n / 1e3:,.0f} k samples", report.counts.done)
        segments = [] if accumulator is None else accumulator.segments.each()
        if not segments:
            raise InputError(
                f"{log.path}: {n} samples are too few for a filter of {options.cutoff:g} Hz. Leave it out, or raise it."
                if options.cutoff is not None
                else f"{log.path}: holds no usable sample."
            )
        if options.moving is not None and not any(row.n for segment in segments for row in segment):
            raise InputError(
                f"{log.path}: no joint moves faster than {options.moving:g} rad/s or m/s for long. Give a lower speed: "
                "moving (--moving)."
            )
        assert accumulator is not None
        return LogMoments(log, segments, is_loaded, robot, n, dt, low, high, report.doubts, accumulator.noise)

    def read_again(self, logs: Sequence[LogMoments], solution: Solution, robust: bool = False) -> list[LogMoments]:
        """Moments of logs where an estimate weighs rows, and residuals that are far off count less."""
        by = self._formulation
        return [
            self.read(
                each.log,
                each.is_loaded,
                each.robot,
                by.weighed(each, solution) if by.is_weighed_anew else None,
                by.robust(each, solution) if robust else None,
            )
            for each in logs
        ]

    def curves(
        self, moments: LogMoments, evidence: Evidence, values: Sequence[Floats], sigma: Floats, shown: Sequence[str]
    ) -> Curves:
        """Readings of a log over time, beside what parameters predict.

        Args:
            moments: those of the log.
            evidence: its rows.
            values: the free parameters by the model as it was (n,), and their estimates.
            sigma: standard deviations of the rows (rows,), by which unknown wrenches are weighed.
            shown: the names of the rows that are wanted.
        """
        n_rows = len(self._rows.names)
        gains = np.array([evidence.gain(k, values[1]) for k in range(n_rows)])
        accumulator, thinned, report = self._accumulator(moments.dt, sigma, None), Thinned(), LogReport()
        for _, samples, dt, runs in self._chunks(moments.log, "drop", report, moments.dt):
            for part, is_new in runs:
                if is_new:
                    accumulator.restart()
                for made in accumulator.filtered(self._motion(samples.at(part)), dt):
                    left = [accumulator.residuals(made.entries, evidence.beta(each)) for each in values]
                    old, new = made.read + left[0], made.read + left[1] / gains
                    thinned.add(np.column_stack([made.t, made.read, old, new]))
            self._stage(f"{moments.log.path.name[-24:]}, curves", report.counts.done)
            unit = "sample" if samples.t is None else "s"
        t, rows = thinned.rows[:, 0], thinned.rows[:, 1:].T.reshape(3, n_rows, -1)
        own = [self._rows.names.index(name) for name in shown]
        return Curves(moments.log.path.name, t - t[0], unit, *rows[:, own])

    def _chunks(
        self, log: Log, missing: Missing, report: LogReport, dt: float | None
    ) -> Iterator[tuple[Samples, Samples, float | None, list[tuple[slice, bool]]]]:
        """Yield chunks of a log, their whole samples, the time between these, and their runs without a gap.

        Of each run it says whether it does not follow the samples before it.
        """
        reader = self._options.reader(missing)
        last: Samples | None = None
        for chunk in reader.chunks(log, report.counts):
            samples = _whole(chunk)
            if dt is None and samples.t is not None and len(samples) > 1:
                dt = float(np.median(np.diff(samples.t)))
            follows = _follows(samples, last, dt)
            yield chunk, samples, dt, [(part, bool(part.start) or not follows) for part in _runs(samples, dt)]
            last = samples

    def _motion(self, samples: Samples) -> Motion:
        """The motion of samples, with their accelerations."""
        qdd, state = np.zeros_like(samples.qd), np.zeros(len(samples), dtype=np.intp)
        numbers = {each: k for k, each in enumerate(self._accelerations)}
        for each, places in samples_by_state(samples).items():
            y = samples.record.own_readings(each, samples.y[places])
            qdd[places] = self._accelerations[each](samples.q[places], samples.qd[places], y)
            state[places] = numbers[each]
        t = samples.numbers.astype(float) if samples.t is None else samples.t
        return Motion(samples.q, samples.qd, qdd, samples.y, state, t)

    def _accumulator(
        self, dt: float | None, sigma: Floats | None, robust: HuberPseudoValues | None
    ) -> MomentAccumulator:
        cutoff, speed = self._options.cutoff, self._options.moving
        if cutoff is not None and dt is None:
            raise InputError("a cutoff needs the time between samples, and the log has no times: give dt (--dt).")
        decimation = None if cutoff is None or dt is None else Decimation(cutoff, dt)
        sigma = self._sigma if sigma is None else sigma
        moved = None if speed is None else torques_of(self._options.systems.values(), self._rows.names)
        return MomentAccumulator(self._rows, sigma, decimation, robust, speed or 0.0, moved)


def _whole(samples: Samples) -> Samples:
    """Samples all of whose readings are numbers."""
    is_whole: Booleans = np.zeros(len(samples), dtype=bool)
    for state, places in samples_by_state(samples).items():
        is_whole[places] = np.isfinite(samples.record.own_readings(state, samples.y[places])).all(axis=1)
    return samples if is_whole.all() else samples.at(is_whole)


def _follows(samples: Samples, last: Samples | None, dt: float | None) -> bool:
    """Whether samples go on where the last ones ended."""
    if last is None or not len(last) or not len(samples):
        return False
    if samples.t is None or last.t is None or dt is None:
        return int(samples.numbers[0]) == int(last.numbers[-1]) + 1
    return bool(0 < samples.t[0] - last.t[-1] <= JUMP * dt)


def _runs(samples: Samples, dt: float | None) -> list[slice]:
    """Runs of samples that follow each other in time."""
    if samples.t is None or dt is None or len(samples) < 2:
        return [slice(0, len(samples))]
    steps = np.diff(samples.t)
    jumps = np.flatnonzero((steps > JUMP * dt) | (steps <= 0)) + 1
    return [slice(a, b) for a, b in pairwise([0, *jumps.tolist(), len(samples)])]


@dataclass(frozen=True, slots=True, eq=False)
class MotionSensors:
    """The sensors of a system that read its motion, and no wrench from outside, which changes no motion.

    Attributes:
        of: the system's.
        chosen: which of its equations of sensors.
    """

    of: System
    chosen: frozenset[int]

    @property
    def name(self) -> str:
        """That of the system's set."""
        return f"{self.of.sensors.name}, motion only"

    @property
    def fingerprint(self) -> str:
        """A hash of all that its equations depend on."""
        return hashlib.sha256(f"{self.of.sensors.fingerprint} {sorted(self.chosen)}".encode()).hexdigest()

    def equations(self, tree: KinematicTree) -> Sequence[Equation]:
        """The rows on a tree."""
        own = [each for k, each in enumerate(self.of.sensors.equations(tree)) if k in self.chosen]
        return [*own, *(_no_wrench(tree, i) for i in range(tree.n_links))]


def _no_wrench(tree: KinematicTree, i: int) -> VariableReading:
    return VariableReading(
        name=f"fx:{tree.names[i]}",
        source="Nori (8)",
        group="external_wrench",
        components=FORCE,
        key=VariableKey("fx", i),
        matrix=np.eye(6),
        value=(0.0,) * 6,
        sigma=None,
    )


def joint_accelerations(system: System) -> Callable[[Floats, Floats, Floats], Floats]:
    """How joint accelerations (n, nv) come of positions (n, nq), velocities (n, nv) and readings (n, ny) of samples.

    Raises:
        InputError: the sensors of the system do not determine all joint accelerations.
    """
    read = _read_accelerations(system)
    if read is not None:
        places, factors = read
        return lambda q, qd, y: y[:, places] / factors
    solver, own = _solver(system)
    return lambda q, qd, y: solver.solve_batch(q, qd, y[:, own])["qdd"]


def _read_accelerations(system: System) -> tuple[Indices, Floats] | None:
    """Index of the reading of each joint acceleration, and its factor; None where some are not read."""
    places, factors = np.full(system.tree.nv, -1), np.ones(system.tree.nv)
    for row, k, freedom, factor in scalar_rows(system, system.measurements, "qdd"):
        if row.equation.is_measured and without_offset(row.equation) is row.equation:
            places[freedom], factors[freedom] = row.y.start + k, factor
    return None if (places < 0).any() else (places, factors)


def _solver(system: System) -> tuple[Solver, Indices]:
    """Solver for joint accelerations, and the readings that it takes.

    Raises:
        InputError: the sensors do not determine all joint accelerations.
    """
    at = positions(system.tree, system.tree.neutral_configuration())
    rows = [row for row in system.rows if isinstance(row.key, SensorRow)]
    chosen = [k for k, row in enumerate(rows) if all(key.kind in MOTIONS for key in row.equation.blocks(at))]
    own = [k for number in chosen for k in range(rows[number].y.start, rows[number].y.stop)]
    try:
        motion = system.replace(sensors=MotionSensors(system, frozenset(chosen)))
        plan: EliminationPlan = make_plan(motion, ["qdd"])
    except (SingularSystemError, SystemShapeError) as error:
        raise InputError(
            f"sensors '{system.sensors.name}' do not determine the motion of '{system.tree.name}': the accelerations "
            "of all joints, a floating base included, are needed. Add joint_acceleration for the joints, and an "
            f"accelerometer and a gyroscope's rate for the base. ({error})"
        ) from None
    return Solver(plan), np.array(own, dtype=np.intp)

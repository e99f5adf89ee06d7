"""Estimates of a log, as arrays and as a table: of single instants, by a filter, by a smoother."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from nori_dyn.errors import DoubtfulLogError, InputError, MissingExtraError
from nori_dyn.estimation.log_file import schema_for, values_of, write_whole
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.plan import Plan
from nori_dyn.estimation.preset_logs import preset_log
from nori_dyn.estimation.presets import Preset, preset
from nori_dyn.estimation.run_options import How, Unseen, options_of
from nori_dyn.filtering.false_alarms import Alarms, peaks_of
from nori_dyn.filtering.history import History, MemoryHistory
from nori_dyn.filtering.hypotheses import Hypotheses
from nori_dyn.logs.formats.writer import FileSchema, flat
from nori_dyn.logs.log import Log, read_log
from nori_dyn.logs.motion.differentiation import Differentiate
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.model.surface import Surface
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.over_ticks import joined
from nori_dyn.solve.solver import Singular
from nori_dyn.system.inputs import Missing
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Watched
from nori_dyn.typing import Floats

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True, eq=False)
class LogEstimate:
    """What a plan estimates from a log.

    Attributes:
        samples: the samples that were estimated: their numbers in the log, times, q, qd and readings.
        estimate: the estimates of all of them.
        diagnosis: what a monitor says of them, where it was asked.
        report: what was counted, left out, dropped, and is not likely.
        schema: the names and units of what is written.
        written: what is written of each sample, by the names of the fields.

    Example:
        >>> still = np.zeros((100, 2))
        >>> np.savez("log.npz", t=np.arange(100) * 1e-3, q=still, qd=still, qdd=still)
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
        >>> found = nd.estimate("log.npz", plan)
        >>> found.values["tau"].shape, found.report.samples
        ((100, 2), 100)
    """

    samples: Samples
    estimate: Estimate
    diagnosis: Diagnosis | None
    report: LogReport
    schema: FileSchema
    written: Mapping[str, Floats]

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.samples)} samples, {', '.join(self.values)})"

    @property
    def t(self) -> Floats | None:
        """The times of the samples (N,) [s], where they are known."""
        return self.samples.t

    @property
    def values(self) -> Mapping[str, Floats]:
        """The outputs by name, each with a leading N."""
        return self.estimate.values

    def __getitem__(self, name: str) -> Floats:
        """An output by name.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.estimate[name]

    def to_pandas(self) -> pd.DataFrame:
        """All that a file of the estimates holds as a table: a column a number, times as its index.

        The units of the columns are in `.attrs["units"]`, and in `.attrs` is also what a file says of itself.

        Raises:
            MissingExtraError: pandas is not installed.

        Example:
            >>> np.savez("log.npz", q=np.zeros((9, 2)), qd=np.zeros((9, 2)), qdd=np.ones((9, 2)))
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
            >>> list(nd.estimate("log.npz", plan).to_pandas().columns)
            ['tau:joint1', 'tau:joint2', 'fell_back']
        """
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtraError("a table of pandas", "logs") from None
        schema, samples = self.schema, self.samples
        labels = [label for each in schema.fields for label in each.labels]
        t = samples.t
        index = pd.Index(samples.numbers, name="sample") if t is None else pd.Index(t, name="t")
        table = pd.DataFrame(flat(schema, None, self.written), index=index, columns=labels)
        units = [unit for each in schema.fields for unit in each.units]
        table.attrs = {"units": dict(zip(labels, units, strict=True)), **schema.metadata}
        return table

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimates to a file of any format that is written, whole or not at all.

        Raises:
            FileFormatError: the file cannot be written, or its name ends in none that is known.
            MissingExtraError: the library for its format is not installed.

        Example:
            >>> np.savez("log.npz", q=np.zeros((9, 2)), qd=np.zeros((9, 2)), qdd=np.ones((9, 2)))
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
            >>> nd.estimate("log.npz", plan).save("tau.csv")
        """
        write_whole(Path(path), self.schema, self.samples.t, self.written)


@dataclass(frozen=True, eq=False, repr=False)
class LogHistory(LogEstimate, Shown):
    """What a filter or a smoother estimates from a log.

    Attributes:
        history: the estimates of all samples, with all that is known of how sure they are.

    Example:
        >>> t, rng = np.arange(500) * 0.01, np.random.default_rng(0)
        >>> np.savez("log.npz", t=t, q=np.zeros((500, 1)), qd=np.zeros((500, 1)), y=2 + 0.1 * rng.normal(size=(500, 1)))
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 10}}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}, "push": {"of": "offset", "walk": 0.1}}
        >>> content = {"name": "observer", "measurements": [torque, unloaded], "memory": memory}
        >>> system = nd.System(nd.autotree(1), nd.SensorSet.from_dict(content))
        >>> found = nd.smooth("log.npz", nd.plan(system, outputs=["qdd"]))
        >>> print(np.round(found.memory["offset:tau:joint1"][250], 1))
        [2.]
    """

    history: History

    @property
    def t(self) -> Floats:
        """The times of the samples (N,) [s]."""
        return self.history.t

    @property
    def deviations(self) -> Mapping[str, Floats]:
        """The standard deviations of the outputs by name, each with a leading N."""
        return self.history.deviations

    @property
    def bands(self) -> Mapping[str, Floats]:
        """Half of the width of the 95 % bands of the outputs by name, each with a leading N; see `nd.smooth`."""
        return self.history.bands

    @property
    def memory(self) -> MemoryHistory:
        """What persists, at each sample."""
        return self.history.memory


def estimate(
    log: Log | str | os.PathLike[str],
    plan: Plan | Preset | str | os.PathLike[str],
    differentiate: Differentiate = "auto",
    dt: float | None = None,
    missing: Missing = "refuse",
    singular: Singular = "refuse",
    monitor: bool = False,
    backend: str = "auto",
    contacts: Iterable[str] | Hypotheses | None = None,
    progress: Watched = None,
    what: str | Iterable[str] | None = None,
    accept: bool = False,
    alarms: Alarms | None = None,
    untouched: Iterable[Log | str | os.PathLike[str]] = (),
    surfaces: Mapping[str, Surface] | None = None,
) -> LogEstimate:
    """Estimate what a plan is for from a log, all of it in memory; see `read_log`.

    A plan of sensors with memory runs as a filter, and a `LogHistory` is returned; see `smooth` for a smoother.

    Of a robot that has a preset no plan is needed: `nd.estimate("log.mcap", "go2")`. The log is tied to the robot by
    the preset, or by a draft; what is doubtful about that, or about the log, is an error, unless `accept` says that it
    is right.

    Args:
        log: the log, or its file.
        plan: the plan, or the plans of contact states; or a preset, or its name, see `nd.preset`.
        differentiate: how joint accelerations that the log lacks are made from its velocities: by "kalman", a filter a
            joint over the samples so far, or "smoother", over all, whose deviations weigh accelerations that are
            weighed; by a Savitzky-Golay filter of an odd number of samples. "auto" is the smoother, and None refuses.
        dt: time between samples [s], for differentiating, and to compare q with qd; that of the log's times when None.
        missing: what to do with readings that are no numbers, or at an end of their sensor's range: "refuse" the log,
            or "drop" the sensor in that sample where it has a sigma, and the sample where q or qd is no number.
        singular: what to do with samples that have no unique solution: "refuse" the log, or give "nan".
        monitor: whether estimates and readings are judged as well; those of a filter by the readings before, see
            `History.diagnosis`.
        backend: as for `Plan.solver`.
        contacts: for a plan set, the contacts that are closed throughout; None takes them from the log. "recognise", or
            `nd.Hypotheses`, has them found out, where sensors have memory: see `History.contacts`.
        progress: as for `plan`.
        what: with a preset, what to estimate, such as "contacts"; its first estimate when None.
        accept: with a preset, whether a log is estimated whatever is doubtful about it.
        alarms: when collisions count as seen, of a plan of sensors with memory and without contacts, `nd.tools.Alarms`;
            see `History.watched`, `History.events`. With a preset as it says when None.
        untouched: logs in which nothing touches the robot, by which alarms are as rare as is asked for.
        surfaces: of links that may be touched, `nd.tools.surfaces`, where contacts are recognised: `History.events` say
            where on them. With a preset those of its model when None.

    Raises:
        InputError: the log lacks what is needed, or holds what is no number; contacts or a monitor where there is none.
        DoubtfulLogError: with a preset, it is doubtful what the log's columns are, or whether it is of this robot.
        UnknownPresetError: there is no such preset, or it has no such estimate.
        SingularSystemError: a sample without a unique solution, where that is refused; names the first.
        UnplannedStateError: a contact state that has no plan.
        MappingError: the mapping fits neither the log nor the robot.
        FileFormatError: the log is damaged.

    Example:
        >>> np.savez("log.npz", q=np.zeros((100, 2)), qd=np.zeros((100, 2)), qdd=np.ones((100, 2)))
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
        >>> print(np.round(nd.estimate("log.npz", plan)["tau"][0], 2))
        [3.5  1.17]
    """
    options: dict[str, Any] = {"missing": missing, "singular": singular, "monitor": monitor, "backend": backend}
    if not isinstance(plan, Preset | str | os.PathLike):
        runner = LogRunner(plan, options_of(differentiate, dt, contacts, alarms=alarms, surfaces=surfaces, **options))
        free = [one if isinstance(one, Log) else read_log(one) for one in untouched]
        return estimated(with_peaks(runner, free), log if isinstance(log, Log) else read_log(log), progress)
    known = plan if isinstance(plan, Preset) else preset(plan)
    ready, *others = (preset_log(known, one, what) for one in (log, *untouched))
    if ready.questions and not accept:
        raise DoubtfulLogError(ready.log.path.name, ready.questions)
    way = *ready.way(differentiate, dt), contacts or ready.contacts
    touched = known.surfaces(what) if surfaces is None else surfaces
    runner = LogRunner(ready.plan, options_of(*way, alarms=alarms or ready.alarms, surfaces=touched, **options))
    found = estimated(with_peaks(runner, [one.log for one in others]), ready.log, progress)
    if found.report.doubts and not accept:
        raise DoubtfulLogError(ready.log.path.name, (doubt.message for doubt in found.report.doubts))
    return found


def smooth(
    log: Log | str | os.PathLike[str],
    plan: Plan,
    differentiate: Differentiate = "auto",
    dt: float | None = None,
    missing: Missing = "refuse",
    singular: Singular = "refuse",
    backend: str = "auto",
    contacts: Iterable[str] | Hypotheses | None = None,
    causal: bool = False,
    unseen: Unseen = "keep",
    progress: Watched = None,
) -> LogHistory:
    """Estimate each sample of a log from all its readings, in memory.

    The sensors' `memory` declares what persists from sample to sample, see `Tracker`. It is the smoother of Rauch, Tung
    and Striebel. Where a log has gaps, motion is not taken to be known through them.

    Args:
        log: the log, or its file; see `read_log`.
        plan: a plan, or the plans of contact states, of sensors with memory.
        differentiate: as for `estimate`.
        dt: usual time between samples [s]: more than five times as long is a gap; that of the log when None. A log
            without times has samples that far apart.
        missing: as for `estimate`.
        singular: what to do with samples at which something is not determined: "refuse" the log, or give "nan".
        backend: as for `Plan.solver`.
        contacts: as for `estimate`.
        causal: whether each sample is estimated from the readings up to it only, as `Tracker` does.
        unseen: what to do with what persists and no reading tells anything of: "keep" it at what was known at first, or
            "refuse" the log.
        progress: as for `plan`.

    Raises:
        InputError: as `estimate`; times that do not increase, or none at all.
        SingularSystemError: something is not determined, and that is refused; says what and when.
        PlanError: nothing persists, see `Tracker`.
        UnplannedStateError, MappingError, FileFormatError: as `estimate`.

    Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. X.

    Example:
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "sure of speeds", "measurements": [torque, unloaded], "memory": memory}
        >>> plan = nd.plan(nd.System(nd.autotree(1), nd.SensorSet.from_dict(content)), outputs=["qdd"])
        >>> still = np.zeros((50, 1))
        >>> np.savez("log.npz", t=np.arange(50) * 0.01, q=still, qd=still, y=still)
        >>> found, filtered = nd.smooth("log.npz", plan), nd.smooth("log.npz", plan, causal=True)
        >>> bool(found.deviations["qdd"][20, 0] < filtered.deviations["qdd"][20, 0])
        True
    """
    how: How = "filter" if causal else "smooth"
    options: dict[str, Any] = {"missing": missing, "singular": singular, "backend": backend, "unseen": unseen}
    runner = LogRunner(plan, options_of(differentiate, dt, contacts, how=how, **options))
    found = estimated(runner, log if isinstance(log, Log) else read_log(log), progress)
    assert isinstance(found, LogHistory)  # as they are over time
    return found


def with_peaks(runner: LogRunner, untouched: Iterable[Log]) -> LogRunner:
    """A runner that watches for collisions, with alarms as rare as chosen in logs in which nothing touches the robot.

    Raises:
        InputError: there is such a log, and nothing is watched; they are too short.
    """
    logs, alarms = [*untouched], runner.options.alarms
    if not logs:
        return runner
    if alarms is None:
        raise InputError("logs in which nothing touches the robot say how rare alarms are: give alarms, in an hour.")
    histories = [found.history for found in (estimated(runner, log) for log in logs) if isinstance(found, LogHistory)]
    free = [(one.watched.t, one.watched.statistic) for one in histories if one.watched is not None]
    learnt = replace(alarms, peaks=peaks_of(free, alarms.per_hour))
    return LogRunner(runner.plans, replace(runner.options, alarms=learnt))


def estimated(runner: LogRunner, log: Log, watched: Watched = None) -> LogEstimate:
    """Estimates of a log, all of it in memory."""
    report, taken = LogReport(), list[Samples]()
    parts = list(runner.parts(log, report, watched=watched, taken=taken))
    whole, samples = joined(parts[::-1] if runner.is_backward else parts), joined(taken)
    schema = schema_for(runner, log, whole)
    shared = report, schema, values_of(runner, schema, whole)
    if isinstance(whole.judged, History):
        return LogHistory(samples, whole.estimate, None, *shared, whole.judged)
    return LogEstimate(samples, whole.estimate, whole.judged, *shared)

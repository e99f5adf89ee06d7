"""Estimates of a log, as arrays and as a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from nori_dyn.api.log_file import metadata_of, write_whole
from nori_dyn.api.log_run import LogRunner, Solved, options_of
from nori_dyn.api.plan import Plan
from nori_dyn.errors import MissingExtraError
from nori_dyn.logs.differentiation import Differentiate
from nori_dyn.logs.fields import schema_of, written
from nori_dyn.logs.log import Log, read_log
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.logs.writer import Schema, flat
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.solver import Singular
from nori_dyn.system.inputs import Missing
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
        schema: the names and units of the estimates.

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
    schema: Schema

    def __repr__(self) -> str:
        return f"LogEstimate({len(self.samples)} samples, {', '.join(self.values)})"

    @property
    def t(self) -> Floats | None:
        """The times of the samples (N,) [s], where they are known."""
        return self.samples.t

    @property
    def values(self) -> Mapping[str, Floats]:
        """The outputs by name, each with a leading N."""
        return self.estimate.values

    def __getitem__(self, name: str) -> Floats:
        """Return an output by name.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.estimate[name]

    def to_pandas(self) -> pd.DataFrame:
        """Return all that a file of estimates holds as a table: a column a number, times as its index.

        The units of the columns are in `.attrs["units"]`, and in `.attrs` is also what a file says of itself.

        Raises:
            MissingExtraError: pandas is not installed.

        Example:
            >>> np.savez("log.npz", q=np.zeros((9, 2)), qd=np.zeros((9, 2)), qdd=np.ones((9, 2)))
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
            >>> list(nd.estimate("log.npz", plan).to_pandas().columns)
            ['tau:joint1', 'tau:joint2', 'fell_back']
        """
        return table_of(self.schema, self.samples, written(self.schema, self.estimate, self.diagnosis))

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
        write_whole(Path(path), self.schema, self.samples.t, written(self.schema, self.estimate, self.diagnosis))


def table_of(schema: Schema, samples: Samples, values: Mapping[str, Floats]) -> pd.DataFrame:
    """Return what is estimated of samples as a table: a column a number, times as its index.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    try:
        import pandas as pd
    except ImportError:
        raise MissingExtraError("a table of pandas", "logs") from None
    labels = [label for each in schema.fields for label in each.labels]
    t = samples.t
    index = pd.Index(samples.numbers, name="sample") if t is None else pd.Index(t, name="t")
    table = pd.DataFrame(flat(schema, None, values), index=index, columns=labels)
    units = [unit for each in schema.fields for unit in each.units]
    table.attrs = {"units": dict(zip(labels, units, strict=True)), **schema.metadata}
    return table


def estimate(
    log: Log | str | os.PathLike[str],
    plan: Plan,
    differentiate: Differentiate = "auto",
    dt: float | None = None,
    missing: Missing = "refuse",
    singular: Singular = "refuse",
    monitor: bool = False,
    backend: str = "auto",
    contacts: Iterable[str] | None = None,
    progress: Watched = None,
) -> LogEstimate:
    """Return what a plan, or a plan set, estimates from a log, all of it in memory; see `read_log`.

    Args:
        log: the log, or its file.
        plan: the plan, or the plans of contact states.
        differentiate: how joint accelerations that the log lacks are made from its velocities: by "kalman", a filter a
            joint over the samples so far, or "smoother", over all, whose deviations weigh accelerations that are
            weighed; by a Savitzky-Golay filter of an odd number of samples. "auto" is the smoother, and None refuses.
        dt: time between samples [s], for differentiating, and to compare q with qd; that of the log's times when None.
        missing: what to do with readings that are no numbers, or at an end of their sensor's range: "refuse" the log,
            or "drop" the sensor in that sample where it has a sigma, and the sample where q or qd is no number.
        singular: what to do with samples that have no unique solution: "refuse" the log, or give "nan".
        monitor: whether estimates and readings are judged as well.
        backend: as for `Plan.solver`.
        contacts: for a plan set, the contacts that are closed throughout; None takes them from the log.
        progress: as for `plan`.

    Raises:
        InputError: the log lacks what is needed, or holds what is no number; contacts or a monitor where there is none.
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
    log = log if isinstance(log, Log) else read_log(log)
    others: dict[str, Any] = {"missing": missing, "singular": singular, "monitor": monitor, "backend": backend}
    runner = LogRunner(plan, options_of(differentiate, dt, contacts, **others))
    report = LogReport()
    parts = list(runner.solved(log, report, watched=progress))
    return _joined(parts, report, runner, log)


def _joined(parts: list[Solved], report: LogReport, runner: LogRunner, log: Log) -> LogEstimate:
    places = np.cumsum([0, *(len(part.samples) for part in parts)])
    numbers = [np.arange(a, b) for a, b in pairwise(places)]
    whole = parts[0].estimate if len(parts) == 1 else Estimate.joined([part.estimate for part in parts], numbers)
    judged = [part.diagnosis for part in parts if part.diagnosis is not None]
    diagnosis = Diagnosis.joined(judged, whole) if judged else None
    samples = Samples.joined([part.samples for part in parts])
    has_residual = not np.isnan(np.asarray(whole.residual)).all()
    schema = schema_of(
        runner.system,
        runner.outputs,
        has_time=samples.t is not None,
        has_residual=has_residual,
        is_monitored=diagnosis is not None,
        metadata=metadata_of(runner.plans, log),
    )
    return LogEstimate(samples, whole, diagnosis, report, schema)

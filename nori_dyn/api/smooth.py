"""Estimates over a log, each by the readings up to it or by all, as arrays and as a table."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from nori_dyn.api.log_estimate import table_of
from nori_dyn.api.log_file import write_whole
from nori_dyn.api.log_run import options_of
from nori_dyn.api.log_track import LogTracker, Unseen
from nori_dyn.api.plan import Plan
from nori_dyn.errors import UnknownNameError
from nori_dyn.filtering.history import History, MemoryHistory
from nori_dyn.logs.differentiation import Differentiate
from nori_dyn.logs.log import Log, read_log
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.logs.writer import Schema
from nori_dyn.solve.solver import Singular
from nori_dyn.system.inputs import Missing
from nori_dyn.tables import Document, Shown
from nori_dyn.tables.progress import Watched
from nori_dyn.typing import Floats

if TYPE_CHECKING:
    import pandas as pd

WAYS_OF_UNSEEN = ("keep", "refuse")


@dataclass(frozen=True, eq=False)
class LogHistory(Shown):
    """What a filter or a smoother estimates from a log.

    Attributes:
        samples: the samples: their numbers in the log, times, q, qd and readings.
        history: the estimates of all of them, with all that is known of how sure they are.
        report: what was counted, left out, dropped, and is not likely.
        schema: the names and units of what is written.
        written: what is written of each sample, by the names of the fields.

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

    samples: Samples
    history: History
    report: LogReport
    schema: Schema
    written: Mapping[str, Floats]

    def __repr__(self) -> str:
        return f"LogHistory({len(self.samples)} samples, {', '.join(self.values)})"

    def shown(self) -> Document:
        return self.history.shown()

    @property
    def t(self) -> Floats:
        """The times of the samples (N,) [s]."""
        return self.history.t

    @property
    def values(self) -> Mapping[str, Floats]:
        """The outputs by name, each with a leading N."""
        return self.history.estimate.values

    @property
    def deviations(self) -> Mapping[str, Floats]:
        """The standard deviations of the outputs by name, each with a leading N."""
        return self.history.deviations

    @property
    def memory(self) -> MemoryHistory:
        """What persists, at each sample."""
        return self.history.memory

    def __getitem__(self, name: str) -> Floats:
        """Return an output by name.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.history[name]

    def to_pandas(self) -> pd.DataFrame:
        """Return all that a file of the estimates holds as a table; see `LogEstimate.to_pandas`.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return table_of(self.schema, self.samples, self.written)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the estimates to a file of any format that is written, whole or not at all.

        Raises:
            FileFormatError: the file cannot be written, or its name ends in none that is known.
            MissingExtraError: the library for its format is not installed.
        """
        write_whole(Path(path), self.schema, self.t, self.written)


def smooth(
    log: Log | str | os.PathLike[str],
    plan: Plan,
    differentiate: Differentiate = "auto",
    dt: float | None = None,
    missing: Missing = "refuse",
    singular: Singular = "refuse",
    backend: str = "auto",
    contacts: Iterable[str] | None = None,
    causal: bool = False,
    unseen: Unseen = "keep",
    progress: Watched = None,
) -> LogHistory:
    """Return what all readings of a log together say of each of its samples; all of it in memory.

    What persists from sample to sample is said by `memory` in the sensors' config, see `Filter`. It is the smoother of
    Rauch, Tung and Striebel. Where a log has gaps, motion is not taken to be known through them.

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
        causal: whether each sample is estimated from the readings up to it only, as `Filter` does.
        unseen: what to do with what persists and no reading tells anything of: "keep" it at what was known at first, or
            "refuse" the log.
        progress: as for `plan`.

    Raises:
        InputError: as `estimate`; times that do not increase, or none at all.
        SingularSystemError: something is not determined, and that is refused; says what and when.
        PlanError: nothing persists, see `Filter`.
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
    log = log if isinstance(log, Log) else read_log(log)
    if unseen not in WAYS_OF_UNSEEN:
        raise UnknownNameError("way to treat what no reading tells", unseen, WAYS_OF_UNSEEN)
    options = options_of(differentiate, dt, contacts, missing=missing, singular=singular, backend=backend)
    tracker, report = LogTracker(plan, options, causal, unseen), LogReport()
    parts = list(tracker.histories(log, report, watched=progress))[:: 1 if causal else -1]
    history = History.joined([each for _, each in parts])
    tracker.check_unseen(history.summary)
    schema = tracker.schema(log)
    samples = Samples.joined([each for each, _ in parts])
    return LogHistory(samples, history, report, schema, tracker.written(schema, history))

"""Data sets of robot learning with what is estimated of a robot with a preset as columns of their own."""

from __future__ import annotations

import glob
import os
import shutil
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.errors import DoubtfulLogError, InputError
from nori_dyn.estimation.log_estimate import estimated
from nori_dyn.estimation.log_file import write_whole
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.many_logs import LogOutcome, estimate_logs
from nori_dyn.estimation.preset_logs import PresetLog
from nori_dyn.estimation.run_options import options_of
from nori_dyn.logs.datasets import DataSet
from nori_dyn.logs.fields import FELL_BACK, P_VALUE, RESIDUAL
from nori_dyn.logs.formats.numpy_files import ABOUT, read_about
from nori_dyn.logs.formats.writer import Field
from nori_dyn.logs.log import Log
from nori_dyn.logs.motion.differentiation import Differentiate
from nori_dyn.logs.report import LogReport
from nori_dyn.tables.progress import Watched, progress_bar
from nori_dyn.typing import Floats

SAMPLE = "sample"
"""Field of the estimates of an episode: the numbers of the samples that they are of."""

SHOWN = 6
"""Episodes that failed, or are doubtful, that are named, at most."""


def episode_logs(data: DataSet, out: Path) -> list[Path]:
    """Take the episodes out of a data set, each as a log, to be labelled in another.

    Raises:
        InputError: the other is there already; the data set is empty.
        FileFormatError: it is damaged.
    """
    folder, logs = _folder(out), list[Path]()
    if out.exists() and not folder.exists():
        raise InputError(f"{out}: is there already. Remove it, or name another by --out.")
    with progress_bar(f"reading {data.path.name}") as stage:
        for k, file in enumerate(data.files):
            for name, columns in data.episodes(file):
                logs.append(folder / f"{name}.npz")
                logs[-1].parent.mkdir(parents=True, exist_ok=True)
                np.savez(logs[-1], **dict[str, Any](columns))
                os.utime(logs[-1], ns=(file.stat().st_mtime_ns,) * 2)  # by that the next run knows it again
            stage("episodes", (k + 1) / len(data.files))
    if not logs:
        raise InputError(f"{data.path}: has no episodes.")
    return logs


def label(
    data: DataSet,
    out: Path,
    ready: Mapping[str, PresetLog],
    differentiate: Differentiate = "auto",
    dt: float | None = None,
    accept: bool = False,
    workers: int | None = None,
    **options: Any,
) -> tuple[tuple[Field, ...], tuple[LogOutcome, ...]]:
    """Estimate all episodes of a data set as `nd.estimate` does, and write another that has the estimates as columns.

    Each episode is estimated to a file of its own, so that a run that follows one that was killed does the rest.

    Args:
        data: the data set, from which `episode_logs` took the episodes.
        out: the new one.
        ready: the first episode tied to the robot, and the plan, by the name of what is estimated.
        differentiate: as for `nd.estimate`.
        dt: as for `nd.estimate`.
        accept: whether episodes are estimated whatever is doubtful about them.
        workers: number of processes; all cores when None.
        options: as for `nd.estimate`: missing, singular, backend.

    Returns:
        The columns that were added, and what came of the episodes; the labels of those that failed are nan.

    Raises:
        InputError: episodes failed, and `singular` is not "nan"; or all did.
        FileFormatError: a file cannot be read or written.
    """
    folder, beside, found = _folder(out), "", dict[str, dict[str, LogOutcome]]()
    for what, each in ready.items():
        way = *each.way(differentiate, dt or data.dt), each.contacts
        can_monitor = not each.plan.contact_names and each.plan.states.first.system.is_weighted
        runner = LogRunner(each.plan, options_of(*way, monitor=can_monitor, **options))
        with each.log.opened(runner.systems, runner.contacts) as (_, binding):
            pieces = chain(*(stream.pieces for stream in binding.streams.values()))
            beside = beside or min(pieces, key=lambda piece: int(piece.targets[0])).columns[0].partition("[")[0]
        logs, write = f"{glob.escape(str(folder))}/**/*.npz", partial(_estimate, accept=accept)
        outcomes = estimate_logs(runner, logs, folder.parent / what, each.log.mapping, workers=workers, write=write)
        found[what] = {str(one.log.relative_to(folder).with_suffix("")): one for one in outcomes}
        failed = [one.error.replace(f"{folder}{os.sep}", "") for one in outcomes if one.error]
        if len(failed) == len(outcomes) or (failed and options.get("singular") != "nan"):
            listed = "".join(f"\n  - {error}" for error in failed[: SHOWN if len(failed) < len(outcomes) else 1])
            more = "" if len(failed) == len(outcomes) else " With --singular nan their labels are nan."
            raise InputError(
                f"{data.path}: {len(failed)} of {len(outcomes)} episodes could not be estimated.{more} Estimates of "
                f"others wait for the next run.{listed}"
            )
    labels = partial(_labels, found)
    with progress_bar(f"writing {out.name}") as stage:
        for k, file in enumerate(data.files):
            new = out / file.relative_to(data.path)
            new.parent.mkdir(parents=True, exist_ok=True)
            data.write(file, new, labels, beside)
            stage("episodes", (k + 1) / len(data.files))
        stage("other files")
        data.finish(out)
    fields = tuple(field for field, _ in labels(next(iter(found[what])), None))
    shutil.rmtree(folder.parent)
    return fields, tuple(chain(*(each.values() for each in found.values())))


def _folder(out: Path) -> Path:
    """Folder of the episodes of a data set that is being made."""
    return out.with_name(f".labels-{out.name}") / "episodes"


def _estimate(runner: LogRunner, log: Log, out: Path, watched: Watched, accept: bool) -> LogReport:
    """Write the estimates of an episode, with the numbers of their samples.

    Raises:
        DoubtfulLogError: something about it is doubtful, and that is not accepted.
    """
    found = estimated(runner, log, watched)
    if found.report.doubts and not accept:
        raise DoubtfulLogError(str(log.path), (doubt.message for doubt in found.report.doubts))
    numbers = Field(SAMPLE, (), (SAMPLE,), ("",))
    schema = replace(found.schema, fields=(*found.schema.fields, numbers), has_time=False)
    write_whole(out, schema, None, {**found.written, SAMPLE: found.samples.numbers.astype(float)})
    return found.report


def _labels(found: Mapping[str, Mapping[str, LogOutcome]], episode: str, n: int | None) -> list[tuple[Field, Floats]]:
    """Labels of an episode of n samples, from the files of its estimates; of one that failed all are nan."""
    labels: dict[str, tuple[Field, Floats]] = {}
    for what, outcomes in found.items():
        own = outcomes[episode]
        with np.load(next(one.out for one in (own, *outcomes.values()) if not one.error)) as arrays:
            names, units, *_ = read_about(str(arrays[ABOUT]))
            rows = arrays[SAMPLE].astype(int)
            for field in (name for name in names if name not in (SAMPLE, RESIDUAL, FELL_BACK)):
                values = np.full((n or 1 + max(rows), len(names[field])), np.nan)
                if not own.error:
                    values[rows] = arrays[field].reshape(len(rows), -1)
                name = field.replace(":", ".")
                name = f"{name}.{what}" if field == P_VALUE or name in labels else name
                labels[name] = Field(name, arrays[field].shape[1:], names[field], units[field]), values
    return [*labels.values()]

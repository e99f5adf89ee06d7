"""A recorded log: a file and its mapping to a robot.

Beside what it holds, it has what was estimated from it: the base and the contacts of a robot, as further columns. Then
samples are those of the estimates, at which all else is taken, so that what reads logs needs to know of none of it.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.filtering.history import History
from nori_dyn.io.files import file_name
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.formats.source import BLOCK, LogSource, SampleBlock, Stream
from nori_dyn.logs.mapping.binding import Binding, bind
from nori_dyn.logs.mapping.log_mapping import LogMapping, MappingEntry, load_mapping
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.measurements.contacts import CONTACT, ContactState
from nori_dyn.measurements.floating_base import floating_root
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.typing import Floats


@dataclass(frozen=True)
class Log:
    """A log: a file, and what ties its columns to a robot. It holds no samples: they are read when they are needed.

    Attributes:
        path: the file.
        mapping: what ties its columns to a robot; None where they go by their usual names.
        streams: what the file holds.
        estimates: columns of what was estimated from it, see `beside`.

    Example:
        >>> np.savez("log.npz", q=np.zeros((100, 2)), qd=np.zeros((100, 2)), qdd=np.ones((100, 2)))
        >>> nd.read_log("log.npz").streams[0].columns
        ('q[0]', 'q[1]', 'qd[0]', 'qd[1]', 'qdd[0]', 'qdd[1]')
    """

    path: Path
    mapping: LogMapping | None
    streams: tuple[Stream, ...]
    estimates: Mapping[str, Floats] = field(default_factory=dict, repr=False, compare=False)

    def beside(self, history: History, tree: KinematicTree) -> Log:
        """The log with the base and the contacts of a robot as they were estimated from it, at the times of these.

        Raises:
            InputError: the estimates tell neither.
        """
        columns = columns_of(history, tree)
        return replace(self, mapping=mapping_beside(self.mapping, columns), estimates=columns)

    @property
    def units_of_motion(self) -> Mapping[str, str]:
        """What the mapping says of the units of q, qd and qdd, for people; nothing without one."""
        if self.mapping is None:
            return {}
        usual = {"q": "rad", "qd": "rad/s", "qdd": "rad/s^2"}
        return {
            kind: ", ".join(dict.fromkeys(e.unit or si for e in self.mapping.columns if e.of.partition(":")[0] == kind))
            for kind, si in usual.items()
        }

    @contextmanager
    def opened(
        self, systems: Mapping[ContactState, System], contacts: Sequence[str] = ()
    ) -> Iterator[tuple[LogSource, Binding]]:
        """Open the file, and bind its columns to what is solved.

        Args:
            systems: what is solved in each contact state.
            contacts: the contacts whose state is to be given.

        Raises:
            FileFormatError: it cannot be read.
            MappingError: the mapping fits neither the log nor the robot.
        """
        with open_log(self.path) as file:
            source = SourceBeside(file, self.estimates) if self.estimates else file
            record = SampleRecord.of(systems, contacts)
            yield source, bind(source.columns, self.mapping, record, str(self.path))


def read_log(
    path: str | os.PathLike[str], mapping: LogMapping | str | os.PathLike[str] | dict[str, Any] | None = None
) -> Log:
    """Open a log of any known format: CSV, NumPy, MATLAB, Parquet, Arrow, HDF5, MCAP, ROS bags.

    Args:
        path: the file, or the folder of a bag.
        mapping: what ties its columns to a robot: a `LogMapping`, the YAML file of one, or what it says; None where
            they go by their usual names.

    Raises:
        FileFormatError: it cannot be read, or is of no known format.
        MissingExtraError: the library for its format is not installed.
        MappingError: the mapping does not follow its schema.

    Example:
        >>> np.savez("log.npz", angle=np.zeros((100, 2)), rate=np.zeros((100, 2)), qdd=np.ones((100, 2)))
        >>> columns = [{"of": "q:{joint}", "from": "angle[{k}]", "unit": "deg"}]
        >>> columns += [{"of": "qd:{joint}", "from": "rate[{k}]", "unit": "deg/s"}]
        >>> columns += [{"of": "qdd:{joint}", "from": "qdd[{k}]"}]
        >>> log = nd.read_log("log.npz", {"columns": columns})
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
        >>> nd.estimate(log, plan).values["tau"].shape
        (100, 2)
    """
    if isinstance(mapping, dict):
        mapping = LogMapping.from_dict(mapping)
    elif mapping is not None and not isinstance(mapping, LogMapping):
        mapping = load_mapping(file_name(mapping))
    with open_log(file_name(path)) as source:
        return Log(Path(path), mapping, source.streams)


def logs_called(pattern: str) -> list[Path]:
    """The logs that a pattern names.

    Raises:
        InputError: there is none.
    """
    logs = [Path(name) for name in sorted(glob.glob(pattern, recursive=True))]
    if not logs:
        raise InputError(f"no log is called '{pattern}'. Put the pattern in quotes, so that the shell leaves it alone.")
    return logs


def whole_table(path: str | os.PathLike[str]) -> dict[str, Floats]:
    """Read all columns (N,) of a file that is one table, such as one of estimates, by name.

    Raises:
        FileFormatError: the file cannot be read, or is of several streams.
    """
    with open_log(file_name(path)) as source:
        if len(source.streams) != 1:
            names = ", ".join(repr(stream.name) for stream in source.streams[:6])
            raise FileFormatError(f"{path}: has {len(source.streams)} streams ({names}); a single table is needed.")
        return source.table(source.streams[0])


STREAM, CLOCK = "estimates", "estimates.t"
"""The name of the stream of what was estimated, and that of its times."""

TILT = 0.03
"""Standard deviation of the direction of gravity up to which the attitude of a base is known [rad]."""


def columns_of(history: History, tree: KinematicTree) -> dict[str, Floats]:
    """Columns (n,) of the samples at which the base is known, by their usual names, and of their times [s].

    Raises:
        InputError: neither base nor contacts were estimated.
    """
    found, known = {CLOCK: history.t}, np.ones(len(history.t), dtype=bool)
    if (base := history.base) is not None:
        root = tree.joint_names[floating_root(tree)]
        found |= {f"q:{root}[{k}]": own for k, own in enumerate(base.q.T)}
        found |= {f"qd:{root}[{k}]": own for k, own in enumerate(base.qd.T)}
        known = np.isfinite(base.q).all(axis=1) & (base.tilt_deviation < TILT)
    if (contacts := history.contacts) is not None:
        names = (f"{CONTACT}{name}" for name in contacts.names)
        found |= dict(zip(names, contacts.closed.T.astype(float), strict=True))
    if len(found) == 1 or not known.any():
        raise InputError("what was estimated tells neither the base nor contacts.")
    return {name: own[known] for name, own in found.items()}


def mapping_beside(mapping: LogMapping | None, columns: Mapping[str, Floats]) -> LogMapping:
    """The mapping of a log with such columns, whose own entries of the same are left out."""
    mapping = mapping or LogMapping()
    names = [name for name in columns if name != CLOCK]
    clock = mapping.clock.model_copy(update={"stream": STREAM, "rate": None})
    entries = mapping.columns and [
        *(entry for entry in mapping.columns if entry.of not in {*names, *(name.partition("[")[0] for name in names)}),
        *(MappingEntry.model_validate({"of": name, "from": name}) for name in names),
    ]
    return mapping.model_copy(update={"clock": clock, "columns": entries})


class SourceBeside(LogSource):
    """An open log with further columns, on times of their own, in place of its own of the same names."""

    def __init__(self, source: LogSource, columns: Mapping[str, Floats]) -> None:
        self._source, self._own = source, columns
        self.path, self.metadata, self.refused, self.rate = source.path, source.metadata, source.refused, source.rate
        left = (tuple(name for name in each.columns if name not in columns) for each in source.streams)
        theirs = (replace(each, columns=own) for each, own in zip(source.streams, left, strict=True))
        self.streams = (*theirs, Stream(STREAM, tuple(columns), CLOCK, len(columns[CLOCK])))

    def read(self, wanted: Mapping[str, Sequence[str]]) -> Iterator[SampleBlock]:
        theirs, own = {name: each for name, each in wanted.items() if name != STREAM}, wanted.get(STREAM, ())
        n, done, ahead = len(self._own[CLOCK]) if own else 0, 0, 0

        def until(end: int) -> Iterator[SampleBlock]:
            nonlocal done
            while done < min(end, n):
                part = slice(done, min(done + BLOCK, n))
                yield SampleBlock(STREAM, done, tuple(self._own[name][part] for name in own))
                done = part.stop

        for block in self._source.read(theirs) if theirs else ():
            yield block
            ahead = max(ahead, block.first + len(block))
            yield from until(ahead)
        yield from until(n)

    def place(self, stream: str, sample: int) -> str:
        return super().place(stream, sample) if stream == STREAM else self._source.place(stream, sample)

    def done(self) -> float | None:
        return self._source.done()

    def close(self) -> None:
        self._source.close()

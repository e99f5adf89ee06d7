"""What was estimated from a log beside what it holds: the base and the contacts of a robot, as further columns.

Samples are those of the estimates, at which all else is taken, so that what reads logs needs to know of none of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.filtering.history import History
from nori_dyn.logs.formats.source import BLOCK, LogSource, SampleBlock, Stream
from nori_dyn.logs.mapping.log_mapping import LogMapping, MappingEntry
from nori_dyn.measurements.contacts import CONTACT
from nori_dyn.measurements.floating_base import floating_root
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

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

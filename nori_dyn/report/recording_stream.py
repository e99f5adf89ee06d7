"""What is being written to a Rerun recording, by the names and times of a log."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from nori_dyn.report.recorded import RecordedLog
from nori_dyn.tables import spaced
from nori_dyn.typing import Floats

ESTIMATED, MEASURED = (60, 155, 255), (255, 150, 60)
"""The colours of what is estimated, and of what was read."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is being written.

    Attributes:
        rr: the package rerun, which is optional.
        stream: the recording.
        log: what it is of.
        names: estimates to write as series; all when empty.
    """

    rr: Any
    stream: Any
    log: RecordedLog
    names: Sequence[str]

    def when(self, samples: Any) -> Any:
        """Return the times of some samples."""
        time = self.log.time[samples]
        if self.log.start is None:
            return self.rr.TimeColumn("sample", sequence=time.astype(np.int64))
        return self.rr.TimeColumn("time", duration=time)

    def at(self, sample: int) -> None:
        """Set the time of what is written next."""
        time = float(self.log.time[min(sample, len(self.log) - 1)])
        if self.log.start is None:
            self.stream.set_time("sample", sequence=int(time))
        else:
            self.stream.set_time("time", duration=time)

    def entity(self, *parts: str) -> str:
        """Return an entity whose parts may have any characters."""
        return str(self.rr.new_entity_path([spaced(part) for part in parts]))

    def writeseries(self, series: Series, samples: Any) -> None:
        """Write numbers at some samples as a line."""
        path = self.entity(*series.entity)
        colours = None if series.colour is None else [list(series.colour)]
        self.stream.log(path, self.rr.SeriesLines(colors=colours, names=[series.name]), static=True)
        if len(samples):
            columns = self.rr.Scalars.columns(scalars=series.x[samples])
            self.stream.send_columns(path, indexes=[self.when(samples)], columns=columns)


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers that are drawn as a line.

    Attributes:
        entity: where it is; those that share all but the last two parts are drawn together.
        x: the numbers (N,).
        name: what the line is called.
        colour: None for one of the viewer's choice.
    """

    entity: tuple[str, ...]
    x: Floats
    name: str
    colour: tuple[int, int, int] | None = None

"""Folders of files that are one log together, such as positions, velocities and torques in a table each."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from pathlib import Path

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.logs.formats.arrays import ArraySeries, ArraySource
from nori_dyn.logs.formats.csv_table import METADATA
from nori_dyn.logs.formats.registry import FORMATS, open_log
from nori_dyn.tables import listed

TABLES = tuple(ending for each in FORMATS if each.module not in ("bags", "mcap_files") for ending in each.endings)
"""How the names of files end that hold tables and arrays."""

SHOWN = 6
"""Files that are named that are no tables."""


class TablesSource(ArraySource):
    """The files of a folder, in memory: a column of `velocity.csv` is called `velocity.elbow`, or `velocity[0]`."""

    def __init__(self, path: Path) -> None:
        found: list[ArraySeries] = []
        why: dict[str, str] = {}
        for file in sorted(path.iterdir()):
            if file.name.lower().endswith(TABLES) and not file.name.endswith(METADATA):
                try:
                    found += _columns(file)
                except FileFormatError as error:
                    why[file.name] = str(error)
        left_out = f"Not read of it: {listed(why, SHOWN)}. {next(iter(why.values()))}" if why else ""
        if not found:
            raise FileFormatError(f"{path}: holds no bag of ROS 2, and no tables. {left_out}".rstrip())
        super().__init__(path, found)
        if why:
            self.refused = {**self.refused, **why}
            warnings.warn(f"{path}: holds what is no table. {left_out}", NoriWarning, stacklevel=2)


def _columns(file: Path) -> Iterator[ArraySeries]:
    """Yield the columns of a file, by its name."""
    stem = file.name.split(".")[0]
    with open_log(file) as source:
        for stream in source.streams if "nori_dyn.fingerprint" not in source.metadata else ():  # of an earlier run
            for name, values in source.table(stream).items():
                of = re.fullmatch(rf"(?:column|{re.escape(stem)})(\[\d+\])?", name)  # as of velocity in velocity.mat
                unit = (stream.units.get(name, ""),)
                own = f"{stem}.{name}" if of is None else stem if len(stream.columns) == 1 else f"{stem}{of[1] or ''}"
                yield ArraySeries.of(own, values, stem, units=unit)

"""Folders of tables that are one log together, such as positions, velocities and torques in a file each."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import numpy as np

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.logs.formats.arrays import ArraySeries, ArraySource, part_of
from nori_dyn.logs.formats.registry import FORMATS, open_log

TABLES = (*(ending for each in FORMATS if each.module == "csv_table" for ending in each.endings), ".npy")
"""How the names of tables end."""


class TablesSource(ArraySource):
    """The tables of a folder, in memory: a column of `velocity.csv` is called `velocity.elbow`, or `velocity[0]`."""

    def __init__(self, path: Path) -> None:
        found: list[ArraySeries] = []
        why: dict[str, str] = {}
        for file in sorted(path.iterdir()):
            if file.name.lower().endswith(TABLES):
                try:
                    found += _columns(file)
                except FileFormatError as error:
                    why[file.name] = str(error)
        if not found:
            raise FileFormatError(f"{path}: holds no bag of ROS 2, and no tables. {'; '.join(why.values())}".rstrip())
        super().__init__(path, found)
        if why:
            self.refused = {**self.refused, **why}
            told = f"{path}: not all of its tables are read: {' '.join(why.values())}"
            warnings.warn(told, NoriWarning, stacklevel=2)


def _columns(file: Path) -> Iterator[ArraySeries]:
    """Yield the columns of a table, by its name."""
    stem = file.name.split(".")[0]
    with open_log(file) as source:
        (stream,) = source.streams
        blocks = [block.values for block in source.read({stream.name: stream.columns})]
    for k, name in enumerate(stream.columns):
        values = np.concatenate([block[k] for block in blocks]) if blocks else np.zeros(0)
        match = re.fullmatch(r"column(\[\d+\])", name)
        own = f"{stem}.{name}" if match is None else stem if len(stream.columns) == 1 else f"{stem}{match[1]}"
        yield ArraySeries(own, values.shape, partial(part_of, values), stem, units=(stream.units.get(name, ""),))

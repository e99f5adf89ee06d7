"""Options of commands that read logs, the same for all of them."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Singular(StrEnum):
    """What to do with samples without a unique solution."""

    REFUSE = "refuse"
    NAN = "nan"


class Missing(StrEnum):
    """What to do with readings of no use."""

    REFUSE = "refuse"
    DROP = "drop"


Input = Annotated[
    Path | None,
    typer.Option(
        help="The log: CSV, NPZ, MATLAB; Parquet, Arrow, HDF5, MCAP, bags of ROS 1 and ROS 2 (nori_dyn[logs])."
    ),
]
Mapped = Annotated[
    Path | None,
    typer.Option(
        help="A YAML file that ties the log's columns, topics and keys to the robot, with units, signs, clocks and "
        "delays; `nori-dyn map` drafts it. Without it, columns go by their usual names."
    ),
]
Lost = Annotated[
    Missing,
    typer.Option(
        help="What to do with readings that are empty or not numbers, or at an end of their sensor's range: refuse "
        "the log, or drop the sensor in that sample, if it has a sigma."
    ),
]
Undetermined = Annotated[
    Singular,
    typer.Option(
        help="What to do with samples at which the sensors do not suffice, such as special poses: refuse the log, "
        "or write nan for them, and say how many there are and where the first is."
    ),
]
Closed = Annotated[
    str | None,
    typer.Option(
        help="For a plan set, the contacts that are closed throughout: l_foot,r_foot, or none. Otherwise columns "
        "contact:l_foot and so on of the log say it at each sample, by 1 and 0."
    ),
]
Backend = Annotated[str, typer.Option(help="numpy, umfpack, or auto for the fastest that runs here.")]

"""Where external wrenches act: the links whose wrench is not fully known, and the frames in which sensors read it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from nori_dyn.measurements.binding import without_offset
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import NamedFrame
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import VariableKey

Readings = Mapping[int, tuple[RowBlock, ...]]


def wrench_readings(system: System) -> Readings:
    """For each link the rows that read the external wrench on it, and nothing else."""
    at = positions(system.tree, system.tree.neutral_configuration())
    found: dict[int, list[RowBlock]] = {i: [] for i in range(system.tree.n_links)}
    for row in system.sensor_rows:
        keys = set(without_offset(row.equation).blocks(at))
        if len(keys) == 1 and (key := keys.pop()).kind == "fx":
            found[key.body].append(row)
    return {i: tuple(rows) for i, rows in found.items()}


def place_of(system: System, body: int, readings: Readings) -> NamedFrame:
    """The first frame other than the link's own in which a sensor reads the external wrench on a link, or that.

    Args:
        system: the system.
        body: the link.
        readings: what `wrench_readings` returns.
    """
    frames = (row.frame for row in readings[body])
    name = system.tree.names[body]
    return next((frame for frame in frames if frame is not None), NamedFrame(name, system.tree.frame(name)))


def partly_seen(system: System) -> tuple[NamedFrame, ...]:
    """The places at which links feel external wrenches that no rows of their own make fully known."""
    readings = wrench_readings(system)
    at = positions(system.tree, system.tree.neutral_configuration())
    found = []
    for body, rows in readings.items():
        key = VariableKey("fx", body)
        own = [np.asarray(row.equation.blocks(at)[key], dtype=float) for row in rows]
        if np.linalg.matrix_rank(np.vstack([np.zeros((1, 6)), *own])) < 6:
            found.append(place_of(system, body, readings))
    return tuple(found)

"""A log read through its mapping, for several systems of one robot."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nori_dyn as nd
from nori_dyn.logs.binding import bind
from nori_dyn.logs.chunks import samples_of
from nori_dyn.logs.mapping import load_mapping
from nori_dyn.logs.record import Record
from nori_dyn.logs.registry import open_log
from nori_dyn.logs.samples import Samples
from nori_dyn.typing import Floats

HERE = Path(__file__).parent


def beside(name: str) -> Path:
    """Return a file of this room: a mapping, a set of sensors."""
    return HERE / name


@dataclass(frozen=True, slots=True, eq=False)
class Recording:
    """What a log says of a robot, on one clock.

    Attributes:
        t: times (n,) [s].
        q: configurations (n, nq).
        qd: velocities (n, nv).
        readings: each reading (n,) by its name.
    """

    t: Floats
    q: Floats
    qd: Floats
    readings: dict[str, Floats]

    @property
    def rate(self) -> float:
        """Samples a second."""
        return float(1 / np.median(np.diff(self.t)))

    def y(self, system: nd.System) -> Floats:
        """Return the readings of a system (n, ny)."""
        return np.stack([self.readings[name] for name in system.measurement_names], axis=1)

    def of(self, *names: str) -> Floats:
        """Return readings by their names (n, m)."""
        return np.stack([self.readings[name] for name in names], axis=1)


def recorded(log: Path, mapping: str, system: nd.System) -> Recording:
    """Return a log of a robot, read as the mapping of that name says; what it does not say is nan.

    Args:
        log: the file.
        mapping: the mapping, a file of this room.
        system: the robot, with all sensors that are to be read.
    """
    with open_log(log) as source:
        binding = bind(source.columns, load_mapping(beside(mapping)), Record.of({(): system}), str(log))
        samples = Samples.joined(list(samples_of(source, binding)))
    assert samples.t is not None
    readings = dict(zip(system.measurement_names, samples.y.T, strict=True))
    return Recording(samples.t, samples.q, samples.qd, readings)


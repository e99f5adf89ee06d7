"""Logs read through their mappings: what was read beside what is estimated, and samples before they are estimated."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nori_dyn as nd
from nori_dyn.logs.reading import samples_of
from nori_dyn.solve.over_ticks import joined
from nori_dyn.typing import Floats

HERE = Path(__file__).parent


def beside(name: str) -> Path:
    """A file of this room: a mapping, a set of sensors, a robot."""
    return HERE / name


def readings(found: nd.results.LogEstimate, *names: str) -> Floats:
    """What some sensors read (n, m), of the log of an estimate."""
    record = found.samples.record
    return found.samples.y[:, [record.measurement_names.index(name) for name in names]]


@dataclass(frozen=True, slots=True, eq=False)
class RecordedSamples:
    """What a log says of a robot, on one clock, before anything is made of it.

    Attributes:
        t: times (n,) [s].
        q: configurations (n, nq).
        qd: velocities (n, nv).
        readings: each reading (n,) by its name; nan where the log does not say it.
    """

    t: Floats
    q: Floats
    qd: Floats
    readings: dict[str, Floats]

    @property
    def rate(self) -> float:
        """Samples a second."""
        return float(1 / np.median(np.diff(self.t)))

    def of(self, *names: str) -> Floats:
        """Readings by their names (n, m)."""
        return np.stack([self.readings[name] for name in names], axis=1)


def recorded(log: nd.results.Log, system: nd.System) -> RecordedSamples:
    """What a log says of a robot.

    Args:
        log: the log, with its mapping.
        system: the robot, with all sensors that are to be read.
    """
    with log.opened({(): system}) as (source, binding):
        samples = joined(list(samples_of(source, binding)))
    assert samples.t is not None
    return RecordedSamples(
        samples.t, samples.q, samples.qd, dict(zip(system.measurement_names, samples.y.T, strict=True))
    )

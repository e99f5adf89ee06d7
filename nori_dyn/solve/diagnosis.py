"""Whether readings fit together: residuals against their expected spread, a test of the whole, and suspects.

Source: the tests of linear regression with known variances, as power systems use them against bad data: Handschin,
Schweppe, Kohlas, Fiechter, Bad data analysis for power system state estimation (1975).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc

from nori_dyn.program.monitoring import CRITICAL
from nori_dyn.solve.estimate import Estimate
from nori_dyn.tables import Shown
from nori_dyn.typing import Booleans, Floats, Indices


@dataclass(frozen=True, slots=True)
class Suspect:
    """A sensor whose failure explains some of the misfit.

    Attributes:
        sensor: its name.
        reading: the reading of it that is furthest off.
        normalised: that residual over its expected spread.
        explains: by how much chi-square falls when this reading is not believed.
    """

    sensor: str
    reading: str
    normalised: float
    explains: float


@dataclass(frozen=True, slots=True)
class Fault:
    """A sensor whose readings do not fit those of the others, over some states.

    Attributes:
        sensor: its name.
        reading: the reading of it that is furthest off.
        offset: the mean of its residual: how far off it is, in its own unit, by the others.
        p_value: probability that a sound sensor looks like this, all those tested taken into account.
    """

    sensor: str
    reading: str
    offset: float
    p_value: float


@dataclass(frozen=True, eq=False)
class Diagnosis(Shown):
    """The verdict of the residuals on one state, or on N states with a leading N in every array.

    Attributes:
        estimate: the estimate.
        deviations: posterior standard deviations of the outputs, by name, in the shapes of the outputs; infinite where
            no sensor observes.
        readings: names of the weighed readings (m).
        sensors: the sensor of each (m).
        residuals: reading less estimate (..., m), in the unit of the reading; nan where its weight is 0.
        spreads: expected standard deviation of each residual (..., m), smaller than the sensor's sigma as the reading
            has a part in the estimate; nan where nothing else checks the reading, and its residual is zero whatever it
            says.
        chi_square: the sum of the squared residuals over the sensors' variances (...).
        degrees_of_freedom: weighed readings beyond those that the estimate needs (...).

    Example:
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.1}
        >>> imu = motion | {"name": "imu"}
        >>> torques = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> sensors = nd.SensorSet.from_dict({"name": "pendulum", "measurements": [motion, imu, torques, unloaded]})
        >>> monitor = nd.plan(nd.System(nd.autotree(1), sensors), outputs=["tau"]).monitor()
        >>> found = monitor.check(np.zeros(1), np.zeros(1), [1.0, 1.8, 0.33])
        >>> found.is_consistent(), found.suspects(1)[0].sensor
        (False, 'imu')
    """

    estimate: Estimate
    deviations: Mapping[str, Floats]
    readings: tuple[str, ...]
    sensors: tuple[str, ...]
    residuals: Floats
    spreads: Floats
    chi_square: Floats | float
    degrees_of_freedom: Indices | int

    def __repr__(self) -> str:
        states = "one state" if self.residuals.ndim == 1 else f"{len(self.residuals)} states"
        return f"Diagnosis({len(self.readings)} readings, {states})"

    @property
    def normalised(self) -> Floats:
        """Each residual over its expected spread (..., m): of variance 1 for sound sensors."""
        return self.residuals / self.spreads

    @cached_property
    def p_value(self) -> Floats | float:
        """Probability (...) that sound sensors fit together as badly; 1 where nothing is redundant."""
        return p_value(self.chi_square, self.degrees_of_freedom)

    def is_consistent(self, false_alarms: float = 1e-3) -> Booleans | bool:
        """Whether the readings fit together (...); of sound ones a share `false_alarms` does not, by chance."""
        consistent = np.asarray(self.p_value) >= false_alarms
        return consistent if consistent.ndim else bool(consistent)

    @property
    def unchecked(self) -> tuple[str, ...]:
        """The readings without redundancy at some state: no other sensor checks them."""
        alone = np.isnan(self.spreads) & ~np.isnan(self.residuals)
        found = np.flatnonzero(alone.reshape(-1, len(self.readings)).any(axis=0))
        return tuple(self.readings[k] for k in found)

    def suspects(self, most: int = 5) -> tuple[Suspect, ...]:
        """The sensors that explain most of the inconsistency of one state, first the most likely one.

        A reading explains the square of its normalised residual: chi-square falls by so much without it.
        """
        if self.residuals.ndim > 1:
            raise ValueError("suspects are those of one state; for many, see `faults`")
        best: dict[str, Suspect] = {}
        for k, value in enumerate(np.nan_to_num(self.normalised)):
            sensor = self.sensors[k]
            if value and (sensor not in best or value**2 > best[sensor].explains):
                best[sensor] = Suspect(sensor, self.readings[k], float(value), float(value**2))
        return tuple(sorted(best.values(), key=lambda suspect: -suspect.explains)[:most])

    def flagged(self, false_alarms: float = 1e-3, states: slice = slice(None)) -> tuple[Fault, ...]:
        """The sensors whose residuals over some states are not those of sound ones, the clearest first.

        Two tests of each reading, for an offset (the mean) and for anything else (the mean square); noise is taken to
        be independent from state to state. False alarms are shared out evenly (Bonferroni), so that one occurs at most
        at the rate given. One faulty sensor disturbs the residuals of others: only the first is certain to be at fault,
        see `Monitor.faults`.

        Args:
            false_alarms: how often a set of sound sensors may be accused.
            states: which of N states, such as a window in time.
        """
        residuals, spreads = (np.atleast_2d(array)[states] for array in (self.residuals, self.spreads))
        z = residuals / spreads
        count = np.sum(~np.isnan(z), axis=0)
        tested = np.flatnonzero(count)
        total, square = np.nansum(z, axis=0)[tested], np.nansum(z**2, axis=0)[tested]
        each = [chdtrc(1, total**2 / count[tested]), chdtrc(count[tested], square)]
        p = np.minimum(1.0, 2 * len(tested) * np.min(each, axis=0)) if len(tested) else np.zeros(0)
        n = count[tested]
        strength = np.maximum(np.abs(total) / np.sqrt(n), (square - n) / np.sqrt(2 * n))
        offsets = np.nanmean(residuals[:, tested], axis=0)
        found: dict[str, Fault] = {}
        for k in np.lexsort((-strength, p)):
            reading = int(tested[k])
            if p[k] < false_alarms:
                sensor = self.sensors[reading]
                found.setdefault(sensor, Fault(sensor, self.readings[reading], float(offsets[k]), float(p[k])))
        return tuple(found.values())


def p_value(chi_square: Floats | float, degrees: Indices | int) -> Floats | float:
    """Probability (...) that a chi-square of so many degrees of freedom is as large, or larger; 1 of none."""
    freedom = np.asarray(degrees)
    p = np.where(freedom > 0, chdtrc(np.maximum(freedom, 1), chi_square), 1.0)
    return p if p.ndim else float(p)


def spreads(weights: Floats, explained: Floats) -> Floats:
    """The expected spread of residuals (..., m): the sensor's variance less that of the estimate.

    Args:
        weights: 1 / sigma^2 of each reading (..., m).
        explained: variance of the estimate along each reading (..., m).
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        left = 1.0 / weights - explained
        return np.asarray(np.sqrt(np.where(left > CRITICAL / weights, left, np.nan)))


class Judged(NamedTuple):
    """What is judged of states, see `Diagnosis`.

    Attributes:
        deviations: of the outputs (..., n).
        residuals: (..., m).
        spreads: (..., m).
        chi_square: (..., 1).
    """

    deviations: Floats
    residuals: Floats
    spreads: Floats
    chi_square: Floats

    @staticmethod
    def of(weights: Floats, variances: Floats, residuals: Floats, explained: Floats) -> Judged:
        """What the variances of the outputs (..., n), and residuals and variances along the readings (..., m), say."""
        residuals = np.where(weights > 0, residuals, np.nan)
        with np.errstate(invalid="ignore", over="ignore"):
            chi_square = np.nansum(weights * residuals**2, axis=-1, keepdims=True)
            return Judged(np.sqrt(np.maximum(variances, 0.0)), residuals, spreads(weights, explained), chi_square)

    def write(self, where: int | slice, judged: Judged) -> None:
        """Write what is judged of some of the states."""
        for array, values in zip(self, judged, strict=True):
            array[where] = values

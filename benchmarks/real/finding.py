"""What was estimated, what it was held against, and how far apart the two are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True)
class Finding:
    """An estimate of a data set that was held against something.

    Attributes:
        data: the data set.
        estimated: what was estimated, and from what.
        against: what it was held against.
        components: the name of each number that was compared.
        units: its unit.
        rms: the root mean square of the differences, their mean included.
        difference: the mean of the differences, estimated minus measured.
        spread: the standard deviation of what was measured.
        correlation: of the two over time.
        is_detail: whether it stands among those of its data set only, and not in the overview.
    """

    data: str
    estimated: str
    against: str
    components: tuple[str, ...]
    units: tuple[str, ...]
    rms: tuple[float, ...]
    difference: tuple[float, ...]
    spread: tuple[float, ...]
    correlation: tuple[float, ...]
    is_detail: bool = False

    def of(self, component: str) -> tuple[float, float, float, float]:
        """Rms, difference, spread and correlation of a component."""
        k = self.components.index(component)
        return self.rms[k], self.difference[k], self.spread[k], self.correlation[k]


@dataclass(frozen=True, slots=True)
class Figure:
    """A number that stands for itself: a share, a ratio, a mass.

    Attributes:
        data: the data set.
        what: what it is.
        value: the number.
        unit: its unit.
        expected: what it was held against; nan where there is nothing.
        deviation: its standard deviation; nan where it is not known.
    """

    data: str
    what: str
    value: float
    unit: str = ""
    expected: float = float("nan")
    deviation: float = float("nan")


def held_against(
    data: str,
    estimated: str,
    against: str,
    components: Sequence[str],
    units: Sequence[str],
    values: Floats,
    measured: Floats,
) -> Finding:
    """How far apart an estimate and a measurement are.

    Args:
        data: the data set.
        estimated: what was estimated.
        against: what it is held against.
        components: the name of each column.
        units: the unit of each column, or one for all.
        values: the estimate (n, m).
        measured: the measurement (n, m).
    """
    difference = values - measured
    with np.errstate(invalid="ignore", divide="ignore"):  # of what never changes
        a, b = values - values.mean(axis=0), measured - measured.mean(axis=0)
        correlation = np.sum(a * b, axis=0) / np.sqrt(np.sum(a * a, axis=0) * np.sum(b * b, axis=0))
    return Finding(
        data,
        estimated,
        against,
        tuple(components),
        tuple(units) if len(units) == len(components) else tuple(units) * len(components),
        _numbers(np.sqrt(np.mean(difference**2, axis=0))),
        _numbers(difference.mean(axis=0)),
        _numbers(measured.std(axis=0)),
        _numbers(correlation),
    )


def _numbers(values: Floats) -> tuple[float, ...]:
    return tuple(float(value) for value in values)

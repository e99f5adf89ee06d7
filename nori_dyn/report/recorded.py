"""What pictures of a log are drawn of: estimates, readings, and what was counted, all over one time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from scipy.special import chdtrc, ndtri

from nori_dyn.errors import UnknownOutputError
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.history import History
from nori_dyn.filtering.history_summary import Event
from nori_dyn.filtering.watched import WatchedHistory
from nori_dyn.model.kinematics import velocities
from nori_dyn.planning.outputs import Output
from nori_dyn.program.layout import output_names, output_parts
from nori_dyn.report.time_plots import gaps_in, is_constant
from nori_dyn.solve.diagnosis import Diagnosis, Fault
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.typing import Booleans, Floats, Indices

FALSE_ALARMS = 1e-3
"""How often a whole log of sound sensors may be accused."""

WINDOWS = 100
"""Windows of a log, at most."""

SHORTEST = 10
"""Samples of a window, at least."""


@dataclass(frozen=True, slots=True)
class Suspicion:
    """A sensor that does not fit the others in a window.

    Attributes:
        first, stop: the samples of the window.
        fault: what the monitor says.
        is_first: whether it is the clearest of the window; others may be disturbed by that one.
        strength: the largest residual of its reading there, over what is to be expected of it.
    """

    first: int
    stop: int
    fault: Fault
    is_first: bool
    strength: float


def windows(n: int) -> Iterator[tuple[int, int]]:
    """Yield the windows of a log of n samples: the first of each, and the one after its last."""
    count = max(1, min(WINDOWS, n // SHORTEST))
    edges = np.linspace(0, n, count + 1).round().astype(int).tolist()
    yield from pairwise(edges)


def suspicions(found: Diagnosis) -> tuple[Suspicion, ...]:
    """Who does not fit in which window; a log of sound sensors is accused as often as `FALSE_ALARMS` says."""
    parts = list(windows(len(found.residuals)))
    number = {name: k for k, name in enumerate(found.readings)}
    result = []
    for first, stop in parts:
        for rank, fault in enumerate(found.flagged(FALSE_ALARMS / len(parts), slice(first, stop))):
            k = number[fault.reading]
            z = found.residuals[first:stop, k] / found.spreads[first:stop, k]
            result.append(Suspicion(first, stop, fault, rank == 0, float(np.nanmax(np.abs(z)))))
    return tuple(result)


def alarm(found: Diagnosis) -> float:
    """How many sigma no residual of a log exceeds, but of one log of sound sensors in a thousand."""
    count = max(1, int(np.count_nonzero(~np.isnan(found.residuals))))
    return float(-ndtri(0.5 * FALSE_ALARMS / count))


def misfit(found: Diagnosis) -> Floats:
    """Chi-square over its degrees of freedom (N,), 1 on average for sound sensors; nan where it has none."""
    freedom = np.asarray(found.degrees_of_freedom)
    return np.where(freedom > 0, found.chi_square / np.maximum(freedom, 1), np.nan)


def window_probabilities(found: Diagnosis) -> tuple[tuple[int, int, float], ...]:
    """For each window how likely it is that sound sensors fit together as badly: first, stop, p."""
    squares, freedom = np.asarray(found.chi_square), np.maximum(np.asarray(found.degrees_of_freedom), 0)
    result = []
    for first, stop in windows(len(found.residuals)):
        n = int(freedom[first:stop].sum())
        total = float(np.nansum(np.where(freedom[first:stop] > 0, squares[first:stop], 0.0)))
        result.append((first, stop, float(chdtrc(n, total)) if n else 1.0))
    return tuple(result)


SINGULAR = "no unique solution"
FELL_BACK = "re-factorised with pivoting"
DROPPED = "dropped: "
CONTACT = "closed: "


class StateSeries(NamedTuple):
    """A number that persists, over time.

    Attributes:
        mean: its estimates (N,).
        deviations: their standard deviations (N,); None where there are none.
        unit: its SI unit.
    """

    mean: Floats
    deviations: Floats | None
    unit: str


@dataclass(frozen=True, eq=False)
class RecordedLog:
    """A log that was run through a plan, as pictures need it.

    Attributes:
        name: of the log.
        systems: what was solved; of a plan set the systems of all its states.
        outputs: what was asked for.
        time: when the samples are (N,), from the first of them on [s]; their numbers where nobody knows.
        start: the time of the first in the log [s]; None where nobody knows.
        q: configurations (N, nq).
        readings: what was read (N,), by the name of the reading.
        values: what is estimated (N, ...), by output.
        held: what the log has of estimates that no sensor of the plan reads (N,), by the name of the estimate.
        flags: flags of samples (N,): `SINGULAR`, `FELL_BACK`, `DROPPED` and a sensor, `CONTACT` and a name.
        diagnosis: what a monitor says, where there was one.
        spread: the standard deviations of estimates over time (N, ...), by output.
        states: what persists, by the name of the number.
        consistency: how well readings fit over time; None of single instants.
        history: what a filter or a smoother tells; None of single instants.
        unjudged: why there is no diagnosis.
        residual: largest relative residual of a sample; None where it was not computed.
        doubts: what is not likely about the log.
        notes: what else was counted.
    """

    name: str
    systems: tuple[System, ...]
    outputs: tuple[Output, ...]
    time: Floats
    start: float | None
    q: Floats
    readings: Mapping[str, Floats]
    values: Mapping[str, Floats]
    held: Mapping[str, Floats] = field(default_factory=dict)
    flags: Mapping[str, Booleans] = field(default_factory=dict)
    diagnosis: Diagnosis | None = None
    spread: Mapping[str, Floats] = field(default_factory=dict)
    states: Mapping[str, StateSeries] = field(default_factory=dict)
    consistency: Consistency | None = None
    history: History | None = None
    unjudged: str = ""
    residual: float | None = None
    doubts: tuple[PlausibilityWarning, ...] = ()
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.time)

    @property
    def system(self) -> System:
        """The system; of a plan set that of its first state."""
        return self.systems[0]

    @property
    def unit_of_time(self) -> str:
        """What the time is counted in: "s", or "sample"."""
        return "sample" if self.start is None else "s"

    @cached_property
    def estimates(self) -> dict[str, Floats]:
        """What is estimated (N,), by the name of the number: "fx:l_sole.mz"."""
        return self._numbers(self.values) | {name: each.mean for name, each in self.states.items()}

    @cached_property
    def deviations(self) -> dict[str, Floats]:
        """The standard deviation (N,) of each, where a monitor or a filter has it."""
        spread = self.spread if self.diagnosis is None else self.diagnosis.deviations
        of_states = {name: each.deviations for name, each in self.states.items() if each.deviations is not None}
        return (self._numbers(spread) if spread else {}) | of_states

    @cached_property
    def units(self) -> dict[str, str]:
        """The SI unit of each estimate and reading; "" where it is not known."""
        found = {
            name: unit
            for system in self.systems
            for row in system.rows
            if row.is_sensor
            for name, unit in zip(row.component_names, row.units, strict=True)
        }
        names, units = output_names(self.system, self.outputs)
        states = {name: each.unit for name, each in self.states.items()}
        return found | states | dict(zip(names, units, strict=True))

    def _numbers(self, values: Mapping[str, Floats]) -> dict[str, Floats]:
        found: dict[str, Floats] = {}
        for part in output_parts(self.system, self.outputs):
            names, _ = output_names(self.system, [part.output])
            columns = values[part.output.name].reshape(len(self), -1)
            found.update(zip(names, columns.T, strict=True))
        return found

    @cached_property
    def predicted(self) -> dict[str, Floats]:
        """What the estimate says that weighed sensors should read (N,), by the name of the reading."""
        if self.diagnosis is None:
            return {}
        residuals = zip(self.diagnosis.readings, self.diagnosis.residuals.T, strict=True)
        return {name: self.readings[name] - residual for name, residual in residuals if name in self.readings}

    def measured(self, name: str) -> Floats | None:
        """Readings of an estimate (N,), by a weighted sensor or beside the plan; None where there are none."""
        return self.readings[name] if name in self.predicted else self.held.get(name)

    @cached_property
    def events(self) -> tuple[tuple[int, int, Event], ...]:
        """The first sample of each collision or touch, the last, and what it is."""
        of = self.history
        return () if of is None else tuple((*np.searchsorted(of.t, [e.begin, e.end]).tolist(), e) for e in of.events)

    @property
    def is_watched(self) -> bool:
        """Whether collisions, or touches of links, were looked for."""
        of = self.history
        return of is not None and (of.watched is not None or bool(of.contacts and of.contacts.touched))

    @property
    def watched(self) -> WatchedHistory | None:
        """What was watched for collisions; None where nothing was."""
        return None if self.history is None else self.history.watched

    @cached_property
    def gaps(self) -> Indices:
        """The samples before gaps in time."""
        return gaps_in(self.time)

    @cached_property
    def suspicions(self) -> tuple[Suspicion, ...]:
        """Which sensors do not fit the others, window by window."""
        return () if self.diagnosis is None else suspicions(self.diagnosis)

    @cached_property
    def suspects(self) -> dict[str, tuple[Suspicion, ...]]:
        """The windows of each sensor that was the clearest suspect in some, those of most windows first."""
        found: dict[str, list[Suspicion]] = {}
        for each in self.suspicions:
            found.setdefault(each.fault.sensor, []).append(each)
        first = {sensor: own for sensor, own in found.items() if any(each.is_first for each in own)}
        order = sorted(first, key=lambda sensor: (-sum(each.is_first for each in first[sensor]), sensor))
        return {sensor: tuple(first[sensor]) for sensor in order}

    @cached_property
    def wrench_frames(self) -> tuple[str, ...]:
        """The links and frames whose external wrench is estimated, but those that nothing can touch."""
        names = {name: name.removeprefix("fx:").rpartition(".")[0] for name in self.estimates if name.startswith("fx:")}
        return tuple(dict.fromkeys(owner for name, owner in names.items() if not is_constant(self.estimates[name])))

    def body_of(self, sensor: str) -> int | None:
        """The link at which a sensor reads, by its name; None where it is at none."""
        tree = self.system.tree
        still = velocities(tree, self.q[0], np.zeros(tree.nv))
        rows = (row for system in self.systems for row in system.rows if row.name == sensor)
        bodies = (key.body for row in rows for key in row.equation.blocks(still) if key.body is not None)
        return next(bodies, None)

    def rank(self, sensor: str) -> int:
        """Where a sensor is among the suspects; behind all of them where it is none."""
        return list(self.suspects).index(sensor) if sensor in self.suspects else len(self.suspects)


def chosen(labels: Iterable[str], names: Sequence[str], where: str = "") -> tuple[str, ...]:
    """The numbers that are named, "tau", "fx:l_sole" or "fx:l_sole.mz", in that order; all when none is.

    Raises:
        UnknownOutputError: there are none of a name.
    """
    labels, found = tuple(labels), dict[str, None]()
    for name in names:
        own = [each for each in labels if each == name or each.startswith((f"{name}.", f"{name}:", f"{name}["))]
        if not own:
            parts = [part for each in labels for part in (each.partition(":")[0], each.rpartition(".")[0])]
            raise UnknownOutputError("estimate", name, dict.fromkeys(filter(None, (*parts, *labels))), where)
        found |= dict.fromkeys(own)
    return tuple(found) if names else labels

"""Estimates of ticks that were recorded: each by the readings up to it, or by all, whatever their number.

The smoother is that of Rauch, Tung and Striebel. A pass forward keeps what is known at the beginning of each stretch of
ticks, and nothing else; a pass back, stretch by stretch from the last, computes forward again within one, and then
goes back through it. So memory does not grow with the log.

Source: docs/design.md, 4.12; Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking and Navigation,
ch. 8.6; own derivation of the square-root form (tests/unit/filtering/test_smoother.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Protocol

import numpy as np

from nori_dyn.errors import SingularSystemError
from nori_dyn.filtering.delays import Delays, delays
from nori_dyn.filtering.history import History, MemoryHistory
from nori_dyn.filtering.instants import GAP, Instant, Ticks, undetermined
from nori_dyn.filtering.square_root import Information, Updated
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.solver import Singular
from nori_dyn.system.inputs import Missing, Weights
from nori_dyn.typing import Floats, Indices

STRETCH = 512
"""Ticks that are worked on at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Ticks that follow each other.

    Attributes:
        first: the number of the first of them among all.
        t: their times (n,) [s].
        steps: the time from the tick before to each (n,) [s]; of the very first tick it counts for nothing.
        states: the number of the contact state of each (n,).
        q: configurations (n, nq).
        qd: velocities (n, nv).
        y: readings of all contact states (n, ny).
        weights: those of all ticks, or (n, n_weights); see `Solver.solve_batch`.
    """

    first: int
    t: Floats
    steps: Floats
    states: Indices
    q: Floats
    qd: Floats
    y: Floats
    weights: Weights = None

    def __len__(self) -> int:
        return len(self.t)

    def at(self, part: slice) -> Stretch:
        """Return some of them that follow each other."""
        weights = self.weights[part] if isinstance(self.weights, np.ndarray) and self.weights.ndim > 1 else self.weights
        arrays = (self.t[part], self.steps[part], self.states[part], self.q[part], self.qd[part], self.y[part])
        return Stretch(self.first + range(len(self))[part].start, *arrays, weights)


class Stretches(Protocol):
    """All ticks, stretch by stretch, as often as they are wanted."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Stretch: ...


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Ticks that are in memory, cut into stretches.

    Attributes:
        whole: the ticks.
        size: ticks of a stretch.
    """

    whole: Stretch
    size: int = STRETCH

    def __len__(self) -> int:
        return -(-len(self.whole) // self.size)

    def __iter__(self) -> Iterator[Stretch]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> Stretch:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.whole.at(slice(number * self.size, min((number + 1) * self.size, len(self.whole))))


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """What is known before the readings of a tick.

    Attributes:
        before: what is known of the memory.
        variances: those that its numbers would have by now without any reading (k,).
    """

    before: Information
    variances: Floats


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """What a pass forward through a stretch finds.

    Attributes:
        stretch: the ticks.
        instants: these with what they say.
        after: what is known after the readings of each.
        variances: those that the memory's numbers would have without any reading (n, k).
    """

    stretch: Stretch
    instants: Sequence[Instant]
    after: Sequence[Updated]
    variances: Floats


class Recorded:
    """Runs over ticks that were recorded.

    Attributes:
        ticks: the ticks of all contact states.
        usual: the usual time between ticks [s].

    Args:
        ticks: see above.
        usual: see above.
        beginning: what is known before the first reading.
        missing: see `Solver.solve_batch`.
        singular: what to do with ticks at which something is not determined: "refuse" them all, or give "nan".
    """

    def __init__(
        self,
        ticks: Ticks,
        usual: float,
        beginning: Information,
        missing: Missing = "refuse",
        singular: Singular = "refuse",
    ) -> None:
        self.ticks, self.usual = ticks, usual
        self._missing, self._singular = missing, singular
        variances = np.diagonal(beginning.covariance())
        self._beginning = Beginning(beginning, np.where(np.isnan(variances), np.inf, variances))

    def filtered(self, stretches: Iterable[Stretch]) -> Iterator[History]:
        """Yield the estimates of each stretch, each tick's by the readings up to it.

        Raises:
            InputError: as `Ticks.instants`.
            SingularSystemError: something is not determined by then, and that is refused; says what and when.
        """
        before, last = self._beginning, None
        for stretch in stretches:
            is_first = last is None
            before = before if last is None else self._following(last, stretch)
            last = self._passed(stretch, before)
            means = [after.u for after in last.after]
            found = self._told(last, means, [after.covariance() for after in last.after], is_causal=True)
            yield replace(found, delays=self._delays(last.instants[0])) if is_first else found

    def smoothed(self, stretches: Stretches) -> Iterator[History]:
        """Yield the estimates of each stretch, from the last to the first, each tick's by all readings.

        Raises:
            InputError: as `Ticks.instants`.
            SingularSystemError: something is not determined by all readings, and that is refused; says what and when.
        """
        begins = self._begins(stretches)
        later: tuple[Stretch, Floats, Floats] | None = None
        for number in reversed(range(len(begins))):
            passed = self._passed(stretches[number], begins[number])
            means, covariances = self._back(passed, later)
            yield self._told(passed, means, covariances, is_causal=False)
            later = passed.stretch, self._of_memory(means[0]), self._of_memory(covariances[0])

    def _delays(self, instant: Instant) -> Delays | None:
        """Return how late a filter is at a tick's configuration, where that can be told."""
        try:
            return delays(instant.tick, instant.q, self.usual) if np.isfinite(self.usual) else None
        except SingularSystemError:
            return None

    def _begins(self, stretches: Stretches) -> list[Beginning]:
        """Return what is known at the beginning of each stretch."""
        begins: list[Beginning] = []
        last: Passed | None = None
        for number in range(len(stretches)):
            stretch = stretches[number]
            begins.append(self._beginning if last is None else self._following(last, stretch))
            last = self._passed(stretch, begins[-1]) if number + 1 < len(stretches) else None
        return begins

    def _passed(self, stretch: Stretch, begin: Beginning) -> Passed:
        instants = self.ticks.instants(
            stretch.states, stretch.q, stretch.qd, stretch.y, stretch.weights, self._missing, stretch.first
        )
        after = [instants[0].updated(begin.before)]
        variances = [begin.variances]
        for (one, following), dt in zip(pairwise(instants), stretch.steps[1:].tolist(), strict=True):
            after.append(following.updated(one.carried(after[-1], dt, self._is_gap(dt))))
            variances.append(self._without_readings(variances[-1], dt))
        return Passed(stretch, instants, after, np.array(variances))

    def _following(self, last: Passed, stretch: Stretch) -> Beginning:
        """Return what is known at the beginning of the stretch that follows."""
        dt = float(stretch.steps[0])
        before = last.instants[-1].carried(last.after[-1], dt, self._is_gap(dt))
        return Beginning(before, self._without_readings(last.variances[-1], dt))

    def _without_readings(self, variances: Floats, dt: float) -> Floats:
        """Return the variances (k,) that the memory's numbers would have without any reading, a time [s] later."""
        tick = self.ticks.first
        found = np.square(tick.decay(dt)) * variances + tick.gained(dt)
        found[: tick.sizes[1]] = np.inf  # their rates are not known
        return found

    def _back(
        self, passed: Passed, later: tuple[Stretch, Floats, Floats] | None
    ) -> tuple[Sequence[Floats], Sequence[Floats]]:
        """Return the means and the covariances of what is free at each tick of a stretch, by all readings.

        Args:
            passed: what the pass forward found.
            later: the stretch that follows, with the mean and the covariance of the memory at its first tick.
        """
        means, covariances = [], []
        steps = [*passed.stretch.steps[1:].tolist(), None if later is None else float(later[0].steps[0])]
        mean, covariance = (None, None) if later is None else later[1:]
        for instant, after, dt in zip(reversed(passed.instants), reversed(passed.after), reversed(steps), strict=True):
            if dt is None or mean is None or covariance is None:
                found = after.u, after.covariance()
            else:
                found = instant.returned(after, dt, self._is_gap(dt), mean, covariance)
            means.append(found[0])
            covariances.append(found[1])
            mean, covariance = self._of_memory(found[0]), self._of_memory(found[1])
        return means[::-1], covariances[::-1]

    def _is_gap(self, dt: float) -> bool:
        return dt > GAP * self.usual

    def _of_memory(self, values: Floats) -> Floats:
        """Return the part of the memory of a mean (n,) or a covariance (n, n)."""
        k = len(self.ticks.first.memory_names)
        return values[-k:] if values.ndim == 1 else values[-k:, -k:]

    def _told(self, passed: Passed, means: Sequence[Floats], covariances: Sequence[Floats], is_causal: bool) -> History:
        """Return what is known of the ticks of a stretch."""
        stretch, first = passed.stretch, self.ticks.first
        self._refuse_undetermined(passed, means)
        parts, of_parts = [], []
        for number in np.unique(stretch.states).tolist():
            places = np.flatnonzero(stretch.states == number)
            parts.append(self._outputs(number, passed, means, covariances, places))
            of_parts.append(places)
        order = np.argsort(np.concatenate(of_parts))
        names = parts[0][1]
        memory = np.array([self._of_memory(mean) for mean in means])
        variances = np.array([np.diagonal(self._of_memory(covariance)) for covariance in covariances])
        known = np.isfinite(variances)
        deviations = np.sqrt(np.where(known, np.maximum(variances, 0.0), np.inf))
        without = np.sqrt(passed.variances)
        shares = np.divide(deviations, without, out=np.zeros_like(without), where=np.isfinite(without) & known)
        shares[~known] = 1.0
        return History(
            stretch.t,
            Estimate.joined([estimate for estimate, _ in parts], of_parts),
            {name: np.concatenate([one[name] for _, one in parts])[order] for name in names},
            MemoryHistory(first.memory_names, first.memory_units, memory, deviations, shares.min(axis=0)),
            np.array([after.nis for after in passed.after]),
            np.array([after.degrees for after in passed.after], dtype=np.intp),
            np.array([after.log_likelihood for after in passed.after]),
            np.flatnonzero((stretch.steps > GAP * self.usual) & (stretch.first + np.arange(len(stretch)) > 0)),
            is_causal,
        )

    def _outputs(
        self,
        number: int,
        passed: Passed,
        means: Sequence[Floats],
        covariances: Sequence[Floats],
        places: Indices,
    ) -> tuple[Estimate, dict[str, Floats]]:
        """Return the outputs of the ticks of a contact state, and their standard deviations by name."""
        tick = self.ticks.each[number]
        chosen = [passed.instants[k] for k in places.tolist()]
        q, qd, y = (np.array([getattr(one, name) for one in chosen]) for name in ("q", "qd", "y"))
        u = np.array([means[k] for k in places.tolist()])
        P = np.array([covariances[k] for k in places.tolist()])
        lost = np.isnan(u).any(axis=1)
        u[lost], P[lost] = 0.0, np.nan
        estimate = tick.outputs(q, qd, y, u, self._singular)
        return estimate.without(lost), tick.deviations_of(q, P)

    def _refuse_undetermined(self, passed: Passed, means: Sequence[Floats]) -> None:
        """Refuse ticks at which something is not determined.

        Raises:
            SingularSystemError: there is one, and it is to be refused.
        """
        if self._singular == "nan":
            return
        for k, (instant, mean) in enumerate(zip(passed.instants, means, strict=True)):
            lost = np.flatnonzero(np.isnan(mean))
            if len(lost):
                names = [instant.tick.freed.names[place] for place in lost.tolist()]
                where = f"tick {passed.stretch.first + k}, at {passed.stretch.t[k]:.6g} s"
                raise SingularSystemError(f"{where}: {undetermined(names)} Or let such ticks be nan.")

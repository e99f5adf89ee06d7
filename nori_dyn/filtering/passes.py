"""A pass of a filter forward through ticks, and of a smoother back: natively, a foreign call a run, or through NumPy.

Where something is not determined, and where the motion is not known, the native way leaves steps to NumPy.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TypeAlias

import numpy as np

from nori_dyn.filtering.instants import GAP, Instants
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation
from nori_dyn.program.native_runs import NativeRun, NativeRuns
from nori_dyn.typing import Floats

Known: TypeAlias = tuple[Floats, Floats]
"""A mean and a covariance; nan for what is not determined."""

OfStates: TypeAlias = Mapping[int, Known]
"""The means (m, n) and covariances (m, n, n) of what is free at the ticks of each contact state, by its number."""


@dataclass(frozen=True, slots=True, eq=False)
class Later:
    """What is known of the memory at the tick after others, by all readings.

    Attributes:
        dt: time to it [s].
        mean: the estimate (k,).
        covariance: of that (k, k).
    """

    dt: float
    mean: Floats
    covariance: Floats


class ForwardPass(ABC):
    """A pass forward through ticks that follow each other, and what it found.

    Attributes:
        instants: the ticks.
        steps: the time from each to the next (N - 1,) [s].
        nis, log_likelihood: of the readings of each, see `Posterior` (N,).
        degrees: degrees of freedom (N,).
    """

    def __init__(self, instants: Instants, steps: Floats, usual: float) -> None:
        self.instants, self.steps, self._usual = instants, steps, usual
        self._k = len(instants[0].tick.memory_names)
        N = len(instants)
        self.nis, self.log_likelihood, self.degrees = np.zeros(N), np.zeros(N), np.zeros(N, dtype=np.intp)

    @abstractmethod
    def after(self, tick: int) -> Posterior:
        """Posterior of a tick, before any pass back."""

    @abstractmethod
    def filtered(self) -> OfStates:
        """Estimates of each tick by the readings up to it."""

    @abstractmethod
    def smoothed(self, later: Later | None) -> OfStates:
        """Estimates of each tick by all readings.

        Args:
            later: what is known at the tick after them; None where there is none.
        """

    def predicted(self, dt: float) -> SquareRootInformation:
        """Prior of the memory a time [s] after the last tick."""
        last = len(self.instants) - 1
        return self.instants[last].predict(self.after(last), dt, self._is_gap(dt))

    def _changed_back(self, tick: int, known: Known) -> Known:
        """What is known of the memory at a tick, along the axes of the tick before."""
        change = self.instants.changes.get(tick)
        return known if change is None else change.back(*known)

    def _returned(self, tick: int, later: Later) -> Known:
        """Smoothed estimate of a tick, given that of the next."""
        after, is_gap = self.after(tick), self._is_gap(later.dt)
        return self.instants[tick].smooth_step(after, later.dt, is_gap, later.mean, later.covariance)

    def _of_last(self, later: Later | None) -> Known:
        """Smoothed estimate of the last tick."""
        last = len(self.instants) - 1
        if later is not None:
            return self._returned(last, later)
        after = self.after(last)
        return after.u, after.covariance()

    def _of_memory(self, found: Known) -> Known:
        mean, covariance = found
        return mean[-self._k :].copy(), covariance[-self._k :, -self._k :].copy()

    def _is_gap(self, dt: float) -> bool:
        return dt > GAP * self._usual


class NumpyPass(ForwardPass):
    """A pass through NumPy, tick by tick.

    Args:
        instants: the ticks.
        steps: the time from each to the next (N - 1,) [s].
        usual: the usual one [s].
        after: the posterior of each tick.
    """

    def __init__(self, instants: Instants, steps: Floats, usual: float, after: Sequence[Posterior]) -> None:
        super().__init__(instants, steps, usual)
        self._after = after
        for name in ("nis", "log_likelihood", "degrees"):
            getattr(self, name)[:] = [getattr(one, name) for one in after]

    def after(self, tick: int) -> Posterior:
        return self._after[tick]

    def filtered(self) -> OfStates:
        return self._by_state([(after.u, after.covariance()) for after in self._after])

    def smoothed(self, later: Later | None) -> OfStates:
        found = [self._of_last(later)]
        for tick in reversed(range(len(self.steps))):
            memory = self._changed_back(tick + 1, self._of_memory(found[-1]))
            found.append(self._returned(tick, Later(float(self.steps[tick]), *memory)))
        return self._by_state(found[::-1])

    def _by_state(self, found: Sequence[Known]) -> OfStates:
        return {
            number: (np.array([found[k][0] for k in places]), np.array([found[k][1] for k in places]))
            for number, places in ((number, one.places.tolist()) for number, one in self.instants.alike.items())
        }


class NativePass(ForwardPass):
    """A pass in one foreign call a run of ticks in the same contact state.

    Args:
        instants: the ticks.
        steps: the time from each to the next (N - 1,) [s].
        usual: the usual one [s].
        before: what is known before the first.
        keeps: whether there will be a pass back.
        runs: what runs over the ticks of each contact state, by its number.
    """

    def __init__(
        self,
        instants: Instants,
        steps: Floats,
        usual: float,
        before: SquareRootInformation,
        keeps: bool,
        runs: Mapping[int, NativeRuns],
    ) -> None:
        super().__init__(instants, steps, usual)
        self._native = runs
        known, to_next = (before.R.copy(), before.z.copy()), np.append(steps, 0.0)
        edges: set[int] = {*(np.flatnonzero(np.diff(instants.numbers)) + 1).tolist(), *instants.changes} - {0}
        self._spans = list(pairwise([0, *sorted(edges), len(instants)]))
        self._runs: list[NativeRun] = []
        for start, stop in self._spans:
            if start in instants.changes:
                prior = instants.changed(start, SquareRootInformation(*known))
                known[0][:], known[1][:] = prior.R, prior.z
            number, first = int(instants.numbers[start]), int(instants.places[start])
            alike, own = instants.alike[number], slice(first, first + stop - start)
            run = runs[number].forward(
                known, alike.values[own], alike.weights[own], to_next[start:stop], GAP * usual, keeps
            )
            self._runs.append(run)
            for name in ("nis", "log_likelihood", "degrees"):
                getattr(self, name)[start:stop] = getattr(run, name)

    def after(self, tick: int) -> Posterior:
        number = self._span_of(tick)
        run, k = self._runs[number], tick - self._spans[number][0]
        fit = float(run.nis[k]), int(run.degrees[k]), float(run.log_likelihood[k])
        return Posterior(run.rows[k, :, :-1], run.rows[k, :, -1], *fit, run.u[k].copy())

    def filtered(self) -> OfStates:
        for run, (start, _) in zip(self._runs, self._spans, strict=True):
            self._native[int(self.instants.numbers[start])].covariances(run)
            for k in np.flatnonzero(run.lost).tolist():
                run.covariance[k] = self.after(start + k).covariance()
        return self._by_state()

    def smoothed(self, later: Later | None) -> OfStates:
        tick = len(self.instants) - 1
        mean, covariance = self._put(tick, self._of_last(later))
        while tick > 0:
            mean, covariance = self._changed_back(tick, (mean, covariance))
            number = self._span_of(tick - 1)
            run, start = self._runs[number], self._spans[number][0]
            native = self._native[int(self.instants.numbers[start])]
            tick = start + native.backward(run, slice(0, tick - start), mean, covariance)
            if tick > start:
                tick -= 1
                found = self._returned(tick, Later(float(self.steps[tick]), mean, covariance))
                mean, covariance = self._put(tick, found)
        return self._by_state()

    def _put(self, tick: int, found: Known) -> Known:
        """Take what is known of a tick; return what of that is of the memory."""
        number = self._span_of(tick)
        run, k = self._runs[number], tick - self._spans[number][0]
        run.u[k], run.covariance[k] = found
        return self._of_memory(found)

    def _span_of(self, tick: int) -> int:
        return next(k for k, (_, stop) in enumerate(self._spans) if tick < stop)

    def _by_state(self) -> OfStates:
        found: dict[int, list[NativeRun]] = {}
        for run, (start, _) in zip(self._runs, self._spans, strict=True):
            found.setdefault(int(self.instants.numbers[start]), []).append(run)
        return {
            number: (_joined([run.u for run in runs]), _joined([run.covariance for run in runs]))
            for number, runs in found.items()
        }


def _joined(parts: Sequence[Floats]) -> Floats:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def passed(instants: Instants, steps: Floats, usual: float, before: SquareRootInformation, keeps: bool) -> ForwardPass:
    """A pass forward, native where all ticks are.

    Args:
        instants: the ticks.
        steps: the time from each to the next (N - 1,) [s].
        usual: the usual one [s].
        before: what is known before the first.
        keeps: whether there will be a pass back.
    """
    found = {number: alike.tick.runs for number, alike in instants.alike.items()}
    runs = {number: one for number, one in found.items() if one is not None}
    if len(runs) < len(found):
        one = instants[0]
        after = [one.update(instants.changed(0, before))]
        for tick, dt in enumerate(steps.tolist(), 1):
            prior = one.predict(after[-1], dt, dt > GAP * usual)
            one = instants[tick]
            after.append(one.update(instants.changed(tick, prior)))
        return NumpyPass(instants, steps, usual, after)
    return NativePass(instants, steps, usual, before, keeps, runs)

"""A window of the last ticks: what each leaves for smoothing steps back to it, natively or through NumPy.

From the posterior of the last tick the mean goes back, tick by tick, to that of the first, given all readings in the
window; a covariance goes back when it is asked for.

Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. X.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nori_dyn.filtering.base_estimate import ReferenceAxes
from nori_dyn.filtering.base_reference import AxesTurn, Bridge
from nori_dyn.filtering.instants import Instant
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation
from nori_dyn.filtering.steps import NOT_FINITE, ContactSteps, NativeStep, Step, Steps
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.program.native_track import Kept, NativeTick
from nori_dyn.program.status import Status
from nori_dyn.typing import Floats


class WindowSlot:
    """A tick of a window.

    Attributes:
        state: what was read: q, qd, y and weights, one after the other.
        u: the estimate of what is free, by the readings up to it (n,); nan where it is not determined.
        dt: time since the tick before [s].
        time: time since the first tick [s].
        nis, degrees, log_likelihood: of its readings, see `Posterior`.
        is_shared: whether others look at it, so that it must stay as it is.
        step: what runs ticks in its contact state.
        change: what the reference of a floating base did to its prior; None where it did nothing.
        axes: those axes; None where there is no reference.

    Args:
        step: see above.
    """

    def __init__(self, step: Step) -> None:
        self.step = step
        self.state, self.u = np.empty_like(step.state), np.empty(sum(step.tick.sizes))
        self.dt = self.time = self.nis = self.log_likelihood = 0.0
        self.degrees, self.is_shared, self._has_rates = 0, False, True
        self._native = _native(step)
        self._kept: Kept | None = None if self._native is None else self._native.room()
        self._after: Posterior | None = None
        self.change: AxesTurn | Bridge | None = None
        self.axes: ReferenceAxes | None = None

    @property
    def tick(self) -> TickPrograms:
        """The programs of its contact state."""
        return self.step.tick

    def take(self, steps: Steps, dt: float, wrong: int) -> None:
        """Take the tick that ran last.

        Args:
            steps: what ran it.
            dt: time since the tick before [s].
            wrong: why it has no estimate, or 0.
        """
        self.state[:] = self.step.state
        self.dt, self.time, self.axes = dt, steps.time, steps.axes
        self.change = None if steps.reference is None else steps.reference.change
        self._has_rates = wrong != NOT_FINITE
        of: Posterior | NativeTick
        if self._native is None or self._kept is None:
            of = self._after = self.step.posterior()
        else:
            of = self._native
            self._native.keep(self._kept)
        if self._has_rates:
            self.u[:], self.nis, self.degrees, self.log_likelihood = of.u, of.nis, of.degrees, of.log_likelihood
        else:
            self.nis, self.degrees, self.log_likelihood = 0.0, 0, 0.0
            self.u[:] = SquareRootInformation(self.after.R, self.after.z).mean()

    @property
    def after(self) -> Posterior:
        """What is known after its readings."""
        if self._after is not None:
            return self._after
        assert self._kept is not None
        n = len(self.u)
        R, z = self._kept.rows[:, :n], self._kept.rows[:, n]
        return Posterior(R, z, self.nis, self.degrees, self.log_likelihood, self.u)

    def mean_back(self, following: WindowSlot, mean: Floats) -> Floats | None:
        """The estimate (n,) by all readings, which stays until the next step back.

        None where NumPy has to look: something is not determined, or there is no other way.

        Args:
            following: the next tick.
            mean: the estimate of the memory there (k,), by all readings.
        """
        native, kept = self._native, self._kept
        mean = mean if following.change is None else following.change.mean_back(mean)
        if native is None or kept is None or not native.back(kept, self._is_gap(following), mean):
            return None
        return native.late

    def known_back(self, following: WindowSlot, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
        """The estimate (n,) and its covariance (n, n) by all readings.

        Args:
            following: the next tick.
            mean: the estimate of the memory there (k,), by all readings.
            covariance: that of the same (k, k).
        """
        native, kept, is_gap = self._native, self._kept, self._is_gap(following)
        if following.change is not None:
            mean, covariance = following.change.back(mean, covariance)
        if native is not None and kept is not None and native.back(kept, is_gap, mean, covariance):
            return native.late.copy(), native.late_covariance.copy()
        return self._instant().smooth_step(self.after, following.dt, is_gap, mean, covariance)

    def _is_gap(self, following: WindowSlot) -> bool:
        """Whether the motion to the next tick is not known."""
        return not (self._has_rates and following._has_rates) or following.dt > self.step.longest

    def _instant(self) -> Instant:
        tick = self.tick
        q, qd, y, weights = tick.system.split(self.state)
        measured = tick.measured(q, qd, y) if self._has_rates else tick.nothing
        return Instant(tick, q, weights[tick.coordinates.weight_of_rows], measured)

    def conclude(self, u: Floats) -> Status:
        """Write the outputs, given the null-space coordinates (n,)."""
        return self.step.conclude(self.state, u)


def _native(step: Step) -> NativeTick | None:
    return step.native if isinstance(step, NativeStep) else None


class SlidingWindow:
    """The last ticks of a tracker.

    Attributes:
        lag: how many there are behind the last.
        slots: the ticks, oldest first.
        values: the outputs, one after the other.

    Args:
        steps: what runs ticks.
        lag: see above.
    """

    def __init__(self, steps: ContactSteps, lag: int) -> None:
        self.lag = lag
        self.slots: deque[WindowSlot] = deque()
        self.run_on(steps)

    def run_on(self, steps: ContactSteps) -> None:
        """Take ticks that others run from now on."""
        self._steps, self.values = steps, steps.values
        self._spare: dict[Step, list[WindowSlot]] = {step: [] for step in steps.each}

    def clear(self) -> None:
        """Forget all ticks."""
        self.slots.clear()

    def set_longest(self, time: float) -> None:
        """Take the longest time over which rates are known [s]."""
        self._steps.set_longest(time)

    @property
    def is_full(self) -> bool:
        """Whether the first tick is as late as it shall be."""
        return len(self.slots) > self.lag

    def take(self, dt: float, wrong: int) -> None:
        """Take the tick that ran last, a time [s] after the one before; it had an estimate, or says why not."""
        if self.is_full:
            out = self.slots.popleft()
            if not out.is_shared:
                self._spare.get(out.step, []).append(out)
        spare = self._spare[self._steps.now]
        slot = spare.pop() if spare else WindowSlot(self._steps.now)
        slot.take(self._steps, dt, wrong)
        self.slots.append(slot)

    def late(self) -> Floats:
        """The estimate of u at the first tick, by all readings; it stays until the next call."""
        k = len(self._steps.tick.memory_names)
        mean = self.slots[-1].u
        for number in range(len(self.slots) - 2, -1, -1):
            before = self.slots[number].mean_back(self.slots[number + 1], mean[-k:])
            if before is None:
                return smoothed_back(self.slots)[0][0]
            mean = before
        return mean

    def all(self) -> list[Floats]:
        """The estimates of u at all ticks, by all readings."""
        return [u for u, _ in smoothed_back(self.slots)]

    def tracked(self, number: int, u: Floats) -> Tracked:
        """What is known of a tick, by its number and its estimate; how sure it is, when that is asked for."""
        slots = [self.slots[k] for k in range(number, len(self.slots))]
        for slot in slots:
            slot.is_shared = True
        own = slots[0]
        q, qd, y, _ = own.tick.system.split(own.state)
        state = q, qd, y
        return Tracked(own.tick, state, u, own.after, own.time, own.axes, lambda: smoothed_back(slots)[0][1])


def smoothed_back(slots: Sequence[WindowSlot]) -> list[tuple[Floats, Floats]]:
    """The mean (n,) and the covariance (n, n) of u at each tick of a window, by all readings.

    Args:
        slots: the ticks, one at least.
    """
    last = slots[-1]
    k = len(last.tick.memory_names)
    found = [(last.u.copy(), last.after.covariance())]
    for following, slot in pairwise(reversed(slots)):
        mean, P = found[-1]
        found.append(slot.known_back(following, mean[-k:], P[-k:, -k:]))
    return found[::-1]

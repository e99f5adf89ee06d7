"""The ticks of a window: what each leaves for steps back to it, natively or through NumPy."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from nori_dyn.filtering.instants import GAP, Instant
from nori_dyn.filtering.running import NOT_FINITE, NativeRunning, Running
from nori_dyn.filtering.square_root import Information, Updated
from nori_dyn.filtering.tick import Tick
from nori_dyn.program.native_window import Kept, NativeWindowTick
from nori_dyn.typing import Floats


class Held:
    """A tick of a window.

    Attributes:
        state: what was read: q, qd, y and weights, one after the other.
        u: the estimate of what is free, by the readings up to it (n,); nan where it is not determined.
        dt: time since the tick before [s].
        time: time since the first tick [s].
        nis, degrees, log_likelihood: of its readings, see `Updated`.
        is_shared: whether others look at it, so that it must stay as it is.

    Args:
        running: what runs ticks in its contact state.
    """

    def __init__(self, running: Running) -> None:
        self._running = running
        self.state, self.u = np.empty_like(running.state), np.empty(sum(running.tick.sizes))
        self.dt = self.time = self.nis = self.log_likelihood = 0.0
        self.degrees, self.is_shared, self._has_rates = 0, False, True
        self._native = _native(running)
        self._kept: Kept | None = None if self._native is None else self._native.room()
        self._after: Updated | None = None

    @property
    def running(self) -> Running:
        """What runs ticks in its contact state."""
        return self._running

    @property
    def tick(self) -> Tick:
        """The programs of its contact state."""
        return self._running.tick

    def take(self, dt: float, time: float, wrong: int) -> None:
        """Take the tick that ran last.

        Args:
            dt: time since the tick before [s].
            time: time since the first tick [s].
            wrong: why it has no estimate, or 0.
        """
        self.state[:] = self._running.state
        self.dt, self.time = dt, time
        self._has_rates = wrong != NOT_FINITE
        of: Updated | NativeWindowTick
        if self._native is None or self._kept is None:
            of = self._after = self._running.found()
        else:
            of = self._native
            self._native.keep(self._kept)
        if self._has_rates:
            self.u[:], self.nis, self.degrees, self.log_likelihood = of.u, of.nis, of.degrees, of.log_likelihood
        else:
            self.nis, self.degrees, self.log_likelihood = 0.0, 0, 0.0
            self.u[:] = Information(self.after.R, self.after.z).mean()

    @property
    def after(self) -> Updated:
        """What is known after its readings."""
        if self._after is not None:
            return self._after
        assert self._kept is not None
        n = len(self.u)
        R, z = self._kept.rows[:, :n], self._kept.rows[:, n]
        return Updated(R, z, self.nis, self.degrees, self.log_likelihood, (), self.u)

    def mean_back(self, following: Held, mean: Floats, usual: float) -> Floats | None:
        """Return the estimate (n,) by all readings, which stays until the next step back.

        None where NumPy has to look: something is not determined, or there is no other way.

        Args:
            following: the next tick.
            mean: the estimate of the memory there (k,), by all readings.
            usual: the usual time between ticks [s].
        """
        native, kept = self._native, self._kept
        if native is None or kept is None or not native.back(kept, self._is_gap(following, usual), mean):
            return None
        return native.late

    def known_back(self, following: Held, mean: Floats, covariance: Floats, usual: float) -> tuple[Floats, Floats]:
        """Return the estimate (n,) and its covariance (n, n) by all readings.

        Args:
            following: the next tick.
            mean: the estimate of the memory there (k,), by all readings.
            covariance: that of the same (k, k).
            usual: the usual time between ticks [s].
        """
        native, kept, is_gap = self._native, self._kept, self._is_gap(following, usual)
        if native is not None and kept is not None and native.back(kept, is_gap, mean, covariance):
            return native.late.copy(), native.late_covariance.copy()
        return self._instant().returned(self.after, following.dt, is_gap, mean, covariance)

    def _is_gap(self, following: Held, usual: float) -> bool:
        """Return whether the motion to the next tick is not known."""
        return not (self._has_rates and following._has_rates) or following.dt > GAP * usual

    def _instant(self) -> Instant:
        tick = self.tick
        q, qd, y, weights = self.parts
        said = tick.said(q, qd, y) if self._has_rates else tick.nothing
        return Instant(tick, q, qd, y, weights[tick.freed.weight_of_rows], said)

    @property
    def parts(self) -> Sequence[Floats]:
        """q, qd, y and weights."""
        return np.split(self.state, np.cumsum([*self.tick.system.input_sizes.values()])[:-1])

    def conclude(self, u: Floats) -> bool:
        """Write the outputs, given what is free; return whether there are any."""
        return self._running.conclude(self.state, u)


def _native(running: Running) -> NativeWindowTick | None:
    if not isinstance(running, NativeRunning):
        return None
    assert isinstance(running.native, NativeWindowTick)
    return running.native


def looked_back(window: Sequence[Held], usual: float) -> list[tuple[Floats, Floats]]:
    """Return the estimate and the covariance of what is free at each tick of a window, by all readings.

    Args:
        window: the ticks, one at least.
        usual: the usual time between ticks [s].
    """
    last = window[-1]
    k = len(last.tick.memory_names)
    found = [(last.u.copy(), last.after.covariance())]
    for following, held in pairwise(reversed(window)):
        mean, P = found[-1]
        found.append(held.known_back(following, mean[-k:], P[-k:, -k:], usual))
    return found[::-1]

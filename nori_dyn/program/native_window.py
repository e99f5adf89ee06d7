"""Runs of a filter over many ticks, and back, compiled and loaded: a foreign call each.

Source: see `filtering.square_root`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.compiler import Compiler
from nori_dyn.program.filter_step import TickShape
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.native_filter import NativeSteps, NativeTick, doubles, interface
from nori_dyn.program.window_source import n_kept, n_room, window_source
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """Ticks that follow each other, of one shape, with what was found of them.

    Attributes:
        u: the estimates (m, n); nan where they are not determined.
        rows: [R | z] of each (m, n, n + 1), see `Posterior`; upper triangular.
        covariance: those of u (m, n, n), once they have been computed; zero before, and where something is lost.
        nis, log_likelihood: see `Posterior` (m,).
        degrees: degrees of freedom (m,).
        lost: how many pivots vanish (m,).
        kept: what steps back need (m, n_kept), the last of them where time goes on from it; None where there are none.
    """

    u: Floats
    rows: Floats
    covariance: Floats
    nis: Floats
    log_likelihood: Floats
    degrees: NDArray[np.int32]
    lost: NDArray[np.int32]
    kept: Floats | None


class NativeRuns(NativeSteps):
    """Runs over many ticks. Not to be shared between threads.

    Args:
        shape: what its C has to know.
        compiler: the compiler.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(self, shape: TickShape, compiler: Compiler) -> None:
        super().__init__(shape.steps, compiler, source=window_source(shape, compiler.lanes))
        self._lanes = compiler.lanes
        self._room = aligned(n_room(shape.steps, compiler.lanes))
        self._tick = interface().new("tick *")
        self._tick.steps = self._placed

    def forward(
        self, known: tuple[Floats, Floats], values: Floats, weights: Floats, steps: Floats, longest: float, keeps: bool
    ) -> Run:
        """Run over ticks.

        Args:
            known: what is known of the memory before the first, R (k, k) and z (k,); what is known after the last is
                written there, before the readings of the next where a time leads to it.
            values: what the program of the tick says of each (m, n_values), see `NativeSteps.values`.
            weights: one over the variances of the weighed rows of each (m, p).
            steps: the time from each to the next (m,) [s]; 0 for the last where it is not known.
            longest: the longest time over which rates are known [s].
            keeps: whether there will be steps back.
        """
        m, n = len(values), self.shape.n
        size = n_kept(self.shape, self._lanes)
        found = Run(
            u=np.empty((m, n)),
            rows=np.zeros((m, n, n + 1)),
            covariance=np.zeros((m, n, n)),
            nis=np.empty(m),
            log_likelihood=np.empty(m),
            degrees=np.empty(m, dtype=np.int32),
            lost=np.empty(m, dtype=np.int32),
            kept=aligned(m * size).reshape(m, size) if keeps else None,
        )
        self.R[:], self.z[:] = known
        values, weights, steps = (np.ascontiguousarray(each, dtype=float) for each in (values, weights, steps))
        run = self._placed_run(found, slice(0, m))
        run.values, run.weights, run.steps = (doubles(each) for each in (values, weights, steps))
        self._tick.dt, self._tick.longest = np.nan, longest
        self.library.forward(self._tick, run)
        known[0][:], known[1][:] = self.R, self.z
        return found

    def covariances(self, run: Run) -> None:
        """Compute the covariances of a run, by the readings up to each tick."""
        self.library.covariances(self._placed_run(run, slice(0, len(run.u))))

    def backward(self, run: Run, part: slice, mean: Floats, covariance: Floats | None = None) -> int:
        """Go back over some ticks of a run: their estimates and covariances become those by all readings.

        Args:
            run: the run, which keeps what it takes.
            part: which of its ticks.
            mean: the estimate of the memory at the tick after them (k,); becomes that at the last that was done.
            covariance: that of the same (k, k); none is computed when None.

        Returns:
            How many of the ticks are left, for the last of which a step back of `square_root` is needed.
        """
        variances = interface().NULL if covariance is None else doubles(covariance)
        left: int = self.library.backward(self._placed_run(run, part), doubles(mean), variances)
        return left

    def _placed_run(self, run: Run, part: slice) -> Any:
        """Return the C struct of some ticks of a run."""
        found = interface().new("run *")
        found.n = part.stop - part.start
        for name in ("u", "rows", "covariance", "nis", "log_likelihood"):
            setattr(found, name, doubles(getattr(run, name)[part]))
        for name in ("degrees", "lost"):
            setattr(found, name, interface().cast("int *", getattr(run, name)[part].ctypes.data))
        found.kept = interface().NULL if run.kept is None else doubles(run.kept[part])
        found.room = doubles(self._room)
        return found


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What a tick of a window leaves for steps back to it.

    Attributes:
        rows: the workspace's rows [R | z] of u, see `NativeSteps`.
        step: what a step back needs, once time has gone on.
        place: where C finds that.
    """

    rows: Floats
    step: Floats
    place: Any


class NativeWindowTick(NativeTick):
    """A whole tick of a filter in one foreign call, to which steps lead back. Not to be shared between threads.

    Attributes:
        late: the estimate that the last step back found (n,).
        late_covariance: the covariance that it found, where it was wanted (n, n).

    Args, Raises: as `NativeTick`.
    """

    _way_on = "go_on_and_keep"

    def __init__(self, shape: TickShape, compiler: Compiler, *others: Any) -> None:
        super().__init__(shape, compiler, *others)
        n, k, lanes = shape.steps.n, shape.steps.k, compiler.lanes
        self._n_kept = n_kept(shape.steps, lanes)
        self._room, self.late, self.late_covariance = aligned(n_room(shape.steps, lanes)), np.zeros(n), np.zeros((n, n))
        self._mean, self._covariance = np.zeros(k), np.zeros((k, k))
        self._places = doubles(self._mean), doubles(self._covariance), doubles(self.late_covariance)
        self._back = interface().new("run *")
        self._back.n, self._back.u, self._back.room = 1, doubles(self.late), doubles(self._room)

    @staticmethod
    def _written(shape: TickShape, lanes: int) -> str:
        return window_source(shape, lanes)

    def room(self) -> Kept:
        """Return room for what a tick leaves."""
        step = aligned(self._n_kept)
        return Kept(np.empty_like(self._rows), step, doubles(step))

    def keep(self, kept: Kept) -> None:
        """Keep the tick that was: at once, and when time goes on from it."""
        kept.rows[:] = self._rows
        self.at.kept = kept.place

    def back(self, kept: Kept, is_gap: bool, mean: Floats, covariance: Floats | None = None) -> bool:
        """Step back to a tick that was, and find `late`.

        Args:
            kept: what it left.
            is_gap: whether the motion since is not known.
            mean: the estimate of the memory at the next (k,), by all readings.
            covariance: that of the same (k, k); none is computed when None.

        Returns:
            Whether it was found; otherwise a step back of `square_root` is needed.
        """
        self._mean[:] = mean
        self._back.is_gap = is_gap
        self._back.kept, self._back.covariance = kept.place, interface().NULL
        place, given, found = self._places
        if covariance is None:
            return not self.library.backward(self._back, place, interface().NULL)
        self._covariance[:] = covariance
        self._back.covariance = found
        return not self.library.backward(self._back, place, given)

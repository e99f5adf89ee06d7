"""Runs of a filter over many ticks, and of a smoother back, compiled and loaded: a foreign call each.

Source: see `filtering.square_root` and `track_source`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.compiler import Compiler
from nori_dyn.program.kernel.batches import aligned
from nori_dyn.program.native_track import NOTHING, NativeFilter, doubles, interface
from nori_dyn.program.track_source import TrackShape
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class NativeRun:
    """Ticks of one shape that follow each other, with what was found of them.

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


class NativeRuns(NativeFilter):
    """Runs over many ticks, and back, in a foreign call each. Not to be shared between threads.

    Args:
        shape: what its C depends on.
        compiler: the compiler.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(self, shape: TrackShape, compiler: Compiler) -> None:
        super().__init__(shape, compiler, smooths=True)
        self._room = aligned(shape.n_room(compiler.lanes))
        self._tick = interface().new("tick *")
        self._tick.steps = self.steps

    def forward(
        self, known: tuple[Floats, Floats], values: Floats, weights: Floats, steps: Floats, longest: float, keeps: bool
    ) -> NativeRun:
        """Run over ticks.

        Args:
            known: the prior of the memory at the first, R (k, k) and z (k,); the posterior at the last is written
                there, or where a time leads to the next, its prior.
            values: what the program of the tick gives for each (m, n_values), see `NativeFilter.values`.
            weights: one over the variances of the weighed rows of each (m, p).
            steps: the time from each to the next (m,) [s]; 0 for the last where it is not known.
            longest: the longest time over which rates are known [s].
            keeps: whether there will be steps back.
        """
        m, n, size = len(values), self.shape.n, self.shape.n_kept(self._lanes)
        found = NativeRun(
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

    def covariances(self, run: NativeRun) -> None:
        """Compute the covariances of a run, by the readings up to each tick."""
        self.library.covariances(self._placed_run(run, slice(0, len(run.u))))

    def backward(self, run: NativeRun, part: slice, mean: Floats, covariance: Floats | None = None) -> int:
        """Go back over some ticks of a run: their estimates and covariances become those by all readings.

        Args:
            run: the run, which keeps what it takes.
            part: which of its ticks.
            mean: the estimate of the memory at the tick after them (k,); becomes that at the last that was done.
            covariance: that of the same (k, k); none is computed when None.

        Returns:
            How many of the ticks are left, for the last of which a step back of `square_root` is needed.
        """
        variances = NOTHING if covariance is None else doubles(covariance)
        left: int = self.library.backward(self._placed_run(run, part), doubles(mean), variances)
        return left

    def _placed_run(self, run: NativeRun, part: slice) -> Any:
        """C struct of some ticks of a run."""
        found = interface().new("run *")
        found.n = part.stop - part.start
        for name in ("u", "rows", "covariance", "nis", "log_likelihood"):
            setattr(found, name, doubles(getattr(run, name)[part]))
        for name in ("degrees", "lost"):
            setattr(found, name, interface().cast("int *", getattr(run, name)[part].ctypes.data))
        found.kept = NOTHING if run.kept is None else doubles(run.kept[part])
        found.room = doubles(self._room)
        return found

"""The suites that exist, by name, in the order in which they are run."""

from __future__ import annotations

from benchmarks.suites import (
    coriolis,
    counts,
    cpp,
    estimation,
    logs,
    loops,
    planning,
    recursions,
    scaling,
    tick,
    trackers,
)
from benchmarks.suites.base import Suite

SUITES: dict[str, Suite] = {
    suite.name: suite
    for suite in (
        tick.SUITE,
        cpp.SUITE,
        estimation.SUITE,
        recursions.SUITE,
        coriolis.SUITE,
        planning.suite(),
        scaling.SUITE,
        loops.SUITE,
        counts.SUITE,
        trackers.SUITE,
        logs.SUITE,
    )
}

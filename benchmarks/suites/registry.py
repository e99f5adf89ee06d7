"""The suites that exist, by name, in the order in which they are run."""

from __future__ import annotations

from benchmarks.suites import (
    batch,
    coriolis,
    counts,
    cpp,
    estimation,
    jitter,
    loops,
    planning,
    recursions,
    scaling,
    tick,
)
from benchmarks.suites.base import Suite

MODULES = (tick, cpp, batch, estimation, recursions, coriolis, planning, scaling, jitter, loops, counts)

SUITES: dict[str, Suite] = {module.SUITE.name: module.SUITE for module in MODULES}

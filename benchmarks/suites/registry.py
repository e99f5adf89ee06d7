"""The suites that exist, by name, in the order in which they are run."""

from __future__ import annotations

from benchmarks.suites import (
    accelerations,
    coriolis,
    counts,
    cpp,
    estimation,
    live,
    logs,
    loops,
    planning,
    recursions,
    scaling,
    throughput,
    tick,
    trackers,
)
from benchmarks.suites.base import Suite

MODULES = (
    tick,
    cpp,
    throughput,
    estimation,
    recursions,
    coriolis,
    scaling,
    loops,
    trackers,
    logs,
    live,
    accelerations,
    counts,
)

SUITES: dict[str, Suite] = {suite.name: suite for suite in (*(module.SUITE for module in MODULES), planning.suite())}

"""How close two numbers must be, and why: the one table of tolerances."""

from typing import Any, NamedTuple

import numpy as np


class Tolerance(NamedTuple):
    """A bound on the largest difference, relative to the largest expected number (and to 1 below that)."""

    value: float
    reason: str


EXACT = Tolerance(0.0, "the same operations in the same order")
ROUNDING = Tolerance(1e-13, "a few dozen operations on numbers of size one: some hundred units in the last place")
SAME_PROGRAM = Tolerance(1e-12, "the same operations in the same order, by another compiler, with other sines")
PEER = Tolerance(1e-11, "another formulation of one body or joint, its own rounding included")
RECURSION = Tolerance(1e-11, "trees of up to 40 bodies, whose errors grow with the depth; no system is solved")
DIFFERENCES = Tolerance(1e-11, "central differences of order 8 in doubles: 1e-16 over a step of 1e-2, and growth")
SECOND_DIFFERENCES = Tolerance(1e-10, "those of differences: their error, over a step of 1e-2 again")
SOLVED = Tolerance(1e-9, "solved systems: rounding times the condition of the inertia matrix, up to 1e5")
ILL_SOLVED = Tolerance(
    1e-5, "a link of next to no inertia: condition 1e10, at which Pinocchio's own error is 1e-7 as well"
)


def assert_close(actual: Any, expected: Any, tolerance: Tolerance) -> None:
    """Assert that two arrays agree, relative to the largest expected number or to 1."""
    actual, expected = np.asarray(actual, dtype=float), np.asarray(expected, dtype=float)
    assert actual.shape == expected.shape
    if not expected.size:
        return
    assert np.isfinite(actual).all()
    assert np.isfinite(expected).all()
    error = np.abs(actual - expected).max() / max(1.0, np.abs(expected).max())
    assert error <= tolerance.value, f"{error:.2e} > {tolerance.value:.0e} ({tolerance.reason})"

"""Limits of estimates: beyond them a state is solved again with pivoting, or is singular."""

from nori_dyn.typing import Floats

RCOND_LIMIT = 1e-13
"""Smallest rcond: below it rounding of the entries alone may change an unknown by a thousandth, and the system counts
as singular at this state."""

PIVOT_LIMIT = 1e-4
"""A pivot this much smaller than over the ensemble makes a state suspicious: it is re-factorised with pivoting. On real
robots that is a state in a thousand; at 1e-7, errors of 4e-6 went through."""

RESIDUAL_LIMIT = 1e-12
"""So does a residual above this."""

STEP_LIMIT = 3e-9
"""So does a last step of refinement above this share of an unknown, or of its usual size. The error after a step is
the error before, times that of the factors: less than the step itself."""

WEIGHT_SPREAD = 1e14
"""So do weights of sensors that span a larger ratio: of the lightest reading no digit is left beside the heaviest, and
refinement with factors that have lost it does not notice."""

SINGLE_PIVOT_LIMIT = 1e-2
"""The same as `PIVOT_LIMIT` in single precision: it costs two of seven digits, as the other costs four of sixteen."""

SINGLE_RESIDUAL_LIMIT = 5e-4
"""The same as `RESIDUAL_LIMIT` in single precision: as many roundings, which are 2^29 times as large."""


def single_limits(limits: Floats) -> Floats:
    """The limits of guards on pivots in single precision, of those in double precision."""
    return limits * (SINGLE_PIVOT_LIMIT / PIVOT_LIMIT)

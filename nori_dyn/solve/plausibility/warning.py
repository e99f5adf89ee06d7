"""A plausibility warning about a log."""

from __future__ import annotations

from dataclasses import dataclass

DEGREE = 57.29577951308232
"""Degrees in a radian."""


@dataclass(frozen=True, slots=True)
class PlausibilityWarning:
    """A thing about a log that is not likely.

    Attributes:
        check: which check it does not pass: "limits", "clock", "rates", "accelerations", "magnitudes",
            "estimate", "gravity", "torques", "imu" or "consistency".
        share: of the samples that do not.
        message: the oddity, and a likely explanation, for people.
    """

    check: str
    share: float
    message: str


def counted(share: float, n: int) -> str:
    """How many of n samples a share is."""
    return f"{round(share * n)} of {n} samples" if n > 1 else "this sample"

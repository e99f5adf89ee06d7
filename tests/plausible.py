"""All that is not plausible about a log."""

from typing import Any

from nori_dyn.solve.plausibility.checks import warnings_of_motion, warnings_of_readings
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.system.builder import System


def plausibility_warnings(
    system: System, q: Any, qd: Any, y: Any, *args: Any, **kwargs: Any
) -> list[PlausibilityWarning]:
    """Warnings about single samples, and about their sequence: arguments of `warnings_of_motion`."""
    return [*warnings_of_readings(system, q, qd, y), *warnings_of_motion(system, q, qd, y, *args, **kwargs)]

"""Units that logs are written in, and what they are in SI."""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType

STANDARD_GRAVITY = 9.80665
"""What accelerometers call one g [m/s^2]."""

DEGREE = math.pi / 180

UNITS: Mapping[str, Mapping[str, float]] = MappingProxyType(
    {
        "rad": {"rad": 1.0, "deg": DEGREE, "mrad": 1e-3, "rev": 2 * math.pi},
        "rad/s": {"rad/s": 1.0, "deg/s": DEGREE, "mrad/s": 1e-3, "rpm": 2 * math.pi / 60, "rev/s": 2 * math.pi},
        "rad/s^2": {"rad/s^2": 1.0, "deg/s^2": DEGREE, "rev/s^2": 2 * math.pi},
        "m": {"m": 1.0, "mm": 1e-3, "cm": 1e-2},
        "m/s": {"m/s": 1.0, "mm/s": 1e-3, "cm/s": 1e-2},
        "m/s^2": {"m/s^2": 1.0, "mm/s^2": 1e-3, "cm/s^2": 1e-2, "g": STANDARD_GRAVITY, "mg": 1e-3 * STANDARD_GRAVITY},
        "N": {"N": 1.0, "mN": 1e-3, "kN": 1e3, "kgf": STANDARD_GRAVITY},
        "N m": {"N m": 1.0, "mN m": 1e-3, "kN m": 1e3, "N mm": 1e-3, "kgf m": STANDARD_GRAVITY},
        "s": {"s": 1.0, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "min": 60.0},
    }
)
"""What one of each unit is in SI, by the unit of SI."""


def factor(unit: str, of: str) -> float | None:
    """Return what one of a unit is in a unit of SI; None where it is no unit of such a quantity.

    Args:
        unit: "deg", "Nm", "N*m", "m/s2": blanks, dots, stars and carets are of no account.
        of: the unit of SI that is needed, "N m"; "" where it is not known, and any unit is taken.
    """
    tables = UNITS.values() if not of else (UNITS.get(of, {of: 1.0}),)
    return next((size for table in tables for name, size in table.items() if _bare(name) == _bare(unit)), None)


def known_units(of: str) -> tuple[str, ...]:
    """Return the units that a quantity may be given in."""
    return tuple(UNITS.get(of, (of,)))


def _bare(unit: str) -> str:
    return unit.translate(str.maketrans("", "", " ·*^.")).replace("**", "")

"""Cleaning of a model's numbers: a quarter turn, a zero or an axis up to rounding becomes exactly that.

The worst-case sparsity is decided on exact numbers, so a rotation of 1.5707963 rad with a cosine of 2.7e-8
would fill matrices that are sparse.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation

import numpy as np

from nori_dyn.typing import Floats

TOLERANCE = 1e-12
"""Rounding of doubles on their way into a file: a number so close to 0 or ±1 (an angle, to k π/2) is taken for it."""

DECIMALS = 7
"""A quarter turn printed with at least this many decimals is one, within a unit of the last."""

_QUARTER = ((0.0, 1.0), (1.0, 0.0), (0.0, -1.0), (-1.0, 0.0))  # sine and cosine of k quarter turns


@dataclass
class Cleaner:
    """Builds rotations, axes and positions from a model's numbers, and counts its changes.

    Attributes:
        active: False leaves all numbers as they are.
        n_angles: angles taken as exact quarter turns (or zero).
        largest_angle: the largest change of an angle [rad].
        n_rotations: rotation matrices in which rounding was removed.
        n_axes: axes in which rounding was removed.
        n_positions: positions in which rounding was removed.
    """

    active: bool = True
    n_angles: int = 0
    largest_angle: float = 0.0
    n_rotations: int = 0
    n_axes: int = 0
    n_positions: int = 0

    def rpy(self, literals: tuple[str, str, str]) -> Floats:
        """R = Rz(yaw) Ry(pitch) Rx(roll) (3, 3) of angles as printed [rad], from child to parent.

        Source: the URDF specification; the product of exact quarter turns is an exact signed permutation.
        """
        (sr, cr), (sp, cp), (sy, cy) = (self._sine_cosine(literal) for literal in literals)
        R = np.array(
            [
                [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
                [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
                [-sp, cp * sr, cp * cr],
            ]
        )
        return self.rotation(R + 0.0)  # -0.0 becomes 0.0

    def angle(self, literal: str) -> float:
        """An angle as printed [rad], the nearest double where it is a quarter turn or zero."""
        quarters = self._quarters(literal)
        return float(literal) if quarters is None else quarters * (math.pi / 2)

    def rotation(self, R: Floats) -> Floats:
        """A rotation (3, 3) whose entries within 1e-12 of 0, and of ±1 where alone, are exact."""
        if not self.active:
            return R
        clean = np.where(np.abs(R) <= TOLERANCE, 0.0, R)
        for row, column in np.argwhere(np.abs(np.abs(clean) - 1) <= TOLERANCE):
            if np.count_nonzero(clean[row]) == np.count_nonzero(clean[:, column]) == 1:
                clean[row, column] = math.copysign(1.0, clean[row, column])
        self.n_rotations += not np.array_equal(clean, R)
        return clean

    def axis(self, axis: Floats) -> tuple[float, float, float]:
        """The unit vector of a nonzero axis (3,), its components within 1e-12 of 0 and ±1 exact."""
        unit = axis / np.linalg.norm(axis)
        clean = unit
        if self.active:
            clean = np.where(np.abs(unit) <= TOLERANCE, 0.0, unit)
            if np.count_nonzero(clean) == 1:
                clean = np.sign(clean)
            self.n_axes += not np.array_equal(clean, unit)
        x, y, z = (float(component) + 0.0 for component in clean)
        return x, y, z

    def position(self, position: Floats) -> Floats:
        """A position (3,) [m] whose components within 1e-12 m of zero are zero."""
        if not self.active:
            return position
        clean = np.where(np.abs(position) <= TOLERANCE, 0.0, position)
        self.n_positions += not np.array_equal(clean, position)
        return clean

    def notes(self) -> tuple[str, ...]:
        """The changes, a line for each kind."""
        lines = []
        if self.n_angles:
            angles = "1 angle" if self.n_angles == 1 else f"{self.n_angles} angles"
            change = f"the largest change {self.largest_angle:.2g} rad"
            lines.append(f"{angles} taken as exact multiples of pi/2, {change}")
        for n, one, many in (
            (self.n_rotations, "rotation", "rotations"),
            (self.n_axes, "axis", "axes"),
            (self.n_positions, "position", "positions"),
        ):
            if n:
                what = one if n == 1 else many
                lines.append(f"{n} {what} with components within {TOLERANCE:g} of 0 or 1 made exact")
        return tuple(lines)

    def _sine_cosine(self, literal: str) -> tuple[float, float]:
        quarters = self._quarters(literal)
        return (math.sin(float(literal)), math.cos(float(literal))) if quarters is None else _QUARTER[quarters % 4]

    def _quarters(self, literal: str) -> int | None:
        """How many quarter turns an angle is; None where it is taken as printed."""
        angle = float(literal)
        quarters = round(angle / (math.pi / 2)) if self.active else 0
        change = abs(angle - quarters * (math.pi / 2))
        # Zero can be printed exactly, so only numbers below any rounding of doubles are taken for it.
        tolerance = max(TOLERANCE, last_unit(literal)) if quarters else TOLERANCE
        if not self.active or change > tolerance:
            return None
        if angle != 0:
            self.n_angles += 1
            self.largest_angle = max(self.largest_angle, change)
        return quarters


def last_unit(literal: str) -> float:
    """The unit of the last decimal printed, or 0 where fewer than seven are."""
    try:
        exponent = Decimal(literal).as_tuple().exponent
    except InvalidOperation:
        return 0.0
    if not isinstance(exponent, int) or -exponent < DECIMALS:
        return 0.0
    return float(10.0**exponent)

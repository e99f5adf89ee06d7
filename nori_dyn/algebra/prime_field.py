"""The prime field in which fingerprints of expressions are taken: numbers, angles and unit quaternions in it.

Source: docs/design.md, 4.2 (own derivation; tests/unit/algebra/test_expressions.py).
"""

from __future__ import annotations

from collections.abc import Sequence

PRIME = 170141179478027418735989940027532991339
"""The largest prime below 2^127 - 2^100 pi, so that no power of two is near it. Modulo 2^127 - 1, 2^127 would be 1."""

HALF = (PRIME + 1) // 2
"""What times 2 is 1 in the field."""


def field_value(value: float) -> int:
    """The exact rational value of a double as an element of the field; different doubles have different ones."""
    numerator, denominator = float(value).as_integer_ratio()
    return numerator * pow(HALF, denominator.bit_length() - 1, PRIME) % PRIME


def turn_point(t: int) -> tuple[int, int]:
    """The sine and cosine, as elements of the field, of the angle whose half has the tangent t."""
    scale = pow(1 + t * t, -1, PRIME)
    return 2 * t * scale % PRIME, (1 - t * t) * scale % PRIME


def sphere_point(t: Sequence[int]) -> list[int]:
    """The stereographic image of three elements of the field: four whose squares add up to 1."""
    square = sum(s * s for s in t)
    scale = pow(1 + square, -1, PRIME)
    return [2 * s * scale % PRIME for s in t] + [(1 - square) * scale % PRIME]

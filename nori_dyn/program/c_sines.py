"""Sine and cosine in C, for vectors and for single numbers: the one reduction and the polynomials fitted for it.

A Cody-Waite reduction by pi/2 in three parts, exact up to 1e6, and polynomials on |r| <= pi/4 that were fitted here
(tests/unit/program/test_native.py).

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

LARGE = "1e6"
"""What angles must be smaller than."""

QUARTERS = "0x1.45f306dc9c883p-1"
"""2 / pi: k is what is nearest to the angle times this."""

REDUCED = "((x - k * 0x1.921fb544p+0) - k * 0x1.0b4611a6p-34) - k * 0x1.3198a2e037073p-69"
"""What is left of an angle x: r = x - k pi/2."""

_LINES = """\
const {real} z = r * r;
const {real} ps = 0.008333333333333333 + z * (-0.00019841269841268963 + z * (2.755731922232443e-06
    + z * (-2.505210723603745e-08 + z * (1.6058684329175855e-10 + z * -7.595306678125121e-13))));
const {real} pc = 0.041666666666666664 + z * (-0.0013888888888887398 + z * (2.480158729876456e-05
    + z * (-2.7557317271145144e-07 + z * (2.087614614655861e-09 + z * -1.1382623647474604e-11))));
const {real} sine = r + r * z * (z * ps - 0.16666666666666666), cosine = 1.0 - 0.5 * z + z * z * pc;"""


def sine_and_cosine(real: str) -> str:
    """Return lines that declare `sine` and `cosine` of `r`, of a type of C."""
    return _LINES.format(real=real)

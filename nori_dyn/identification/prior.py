"""What is known of parameters before any log."""

from __future__ import annotations

from dataclasses import dataclass

from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class Prior:
    """What is known before: L phi = L phi_0, each row with a standard deviation of 1.

    Attributes:
        values: phi_0 (n,).
        L: (m, n), of full column rank.
    """

    values: Floats
    L: Floats

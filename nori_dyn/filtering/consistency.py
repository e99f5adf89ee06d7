"""Whether noise is as declared: chi-square tests over many ticks.

Source: Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking and Navigation, ch. 5.4.
"""

from __future__ import annotations

from dataclasses import dataclass

from scipy.special import chdtrc

from nori_dyn.tables import Shown


@dataclass
class Consistency(Shown):
    """The sum of normalised innovations squared over ticks, and what it should be.

    Attributes:
        nis: the sum.
        degrees: the degrees of freedom of its chi-square: its mean where noise is as declared.
        ticks: how many there were.
    """

    nis: float = 0.0
    degrees: int = 0
    ticks: int = 0

    @property
    def ratio(self) -> float:
        """The sum over what it should be: above 1 where noise is larger than declared, below 1 where it is smaller."""
        return self.nis / self.degrees if self.degrees else float("nan")

    @property
    def p_value(self) -> float:
        """Probability of a sum as far from what it should be, or further, on either side."""
        if not self.degrees:
            return 1.0
        above = float(chdtrc(self.degrees, self.nis))
        return 2 * min(above, 1 - above)

"""Noise of the equations of motion: the covariance of a model that is not exact."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from nori_dyn.measurements.base import Positive
from nori_dyn.system.plugins import ConfigPart

SixNumbers = Annotated[list[Positive], Field(min_length=6, max_length=6)]


class SigmaByEquation(ConfigPart):
    """Standard deviations by equation, one number or one a component; an equation that is left out holds exactly.

    Attributes:
        acceleration: of (3a) [rad/s^2, m/s^2]: of a joint that gives way.
        force: of (3f) [N m, N]: of inertias that are not known well.
        torque: of (3tau) [N m or N]: of friction.
    """

    acceleration: Annotated[Positive | SixNumbers | None, Field(alias="3a")] = None
    force: Annotated[Positive | SixNumbers | None, Field(alias="3f")] = None
    torque: Annotated[Positive | None, Field(alias="3tau")] = None


class DynamicsNoise(ConfigPart):
    """The noise of the equations of motion of all bodies: they hold up to it, and weigh 1 / sigma^2.

    Attributes:
        sigma: standard deviation: one number for all of Nori (3a), (3f), (3tau), or by equation, as in {"3f": 0.1}.
    """

    sigma: Positive | SigmaByEquation

    def of(self, equation: str, n: int) -> tuple[float, ...] | None:
        """The standard deviation of each of the n rows of "3a", "3f" or "3tau"; None is exact."""
        if not isinstance(self.sigma, SigmaByEquation):
            return (self.sigma,) * n
        sigma = self.sigma.model_dump(by_alias=True)[equation]
        return None if sigma is None else tuple(sigma) if isinstance(sigma, list) else (sigma,) * n

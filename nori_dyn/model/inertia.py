"""Checks of a rigid body's inertia: what no real body can have, and what real files often hold."""

from __future__ import annotations

import numpy as np

from nori_dyn.errors import ModelError
from nori_dyn.typing import Floats

TOLERANCE = 1e-9
"""Relative to the largest principal moment: what a decimal file loses in rounding is not an indefinite body."""

SMALLEST_GYRATION = 1e-3
"""[m] Moments are compared with those of a body of this radius of gyration at least: a point mass has none."""


def check_inertia(link: str, mass: float, com: Floats, I_com: Floats) -> bool:
    """Check that a body's mass and inertia are physical; return whether it keeps the triangle inequality.

    Args:
        link: name of the link, for messages.
        mass: [kg].
        com: centre of mass (3,) [m].
        I_com: rotational inertia (3, 3) about the centre of mass [kg m^2].

    Returns:
        False where each principal moment is nonnegative but the largest exceeds the sum of the others, which no
        distribution of mass has; the equations of motion still hold.

    Raises:
        ModelError: a value that is not finite, a negative mass, an unsymmetric or indefinite inertia.
    """
    if not (np.isfinite(mass) and np.isfinite(com).all() and np.isfinite(I_com).all()):
        raise ModelError(f"link '{link}': its mass, centre of mass or inertia holds a value that is not finite.")
    if mass < 0:
        raise ModelError(f"link '{link}': its mass is {mass:g} kg. A mass must be zero or positive.")
    if not np.allclose(I_com, I_com.T, rtol=0, atol=TOLERANCE * np.abs(I_com).max()):
        raise ModelError(f"link '{link}': its rotational inertia is not symmetric.")
    moments = np.linalg.eigvalsh(I_com)
    slack = TOLERANCE * max(moments[2], mass * SMALLEST_GYRATION**2)
    if moments[0] < -slack:
        shown = ", ".join(f"{m:.4g}" for m in moments)
        raise ModelError(
            f"link '{link}': its rotational inertia is indefinite (principal moments {shown} kg m^2). "
            "Each must be zero or positive: check the signs of its <inertia>."
        )
    return bool(moments[2] <= moments[0] + moments[1] + slack)

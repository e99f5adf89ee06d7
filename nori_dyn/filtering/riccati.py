"""The steady state of a Kalman filter, and of the smoother after it, by doubling.

Source: B. D. O. Anderson, Second-order convergent algorithms for the steady-state Riccati equation, Int. J. Control 28,
1978.
"""

from __future__ import annotations

import numpy as np

from nori_dyn.typing import Floats

SETTLED = 1e-17
"""Change of the covariance, as a share of how large its entries may be, from which on it is steady."""

MOST_DOUBLINGS = 24
"""After twice as many ticks so many times the filter is taken as it is."""


def steady_state(F: Floats, Q: Floats, H: Floats) -> tuple[Floats, Floats]:
    """What is known once a filter has settled, by doubling the number of ticks, from what is known exactly.

        P = F P (1 + H P)^-1 F' + Q,    Y = F' Y (1 + Q Y)^-1 F + H

    Args:
        F: what takes the memory on by one tick (..., k, k).
        Q: the covariance of its noise (..., k, k).
        H: the information of the readings of a tick (..., k, k).

    Returns:
        P, the covariance before the readings of a tick (..., k, k), and Y, the information of the readings of a tick
        and of all later ones (..., k, k).
    """
    one, A, Y, P = np.eye(F.shape[-1]), F.swapaxes(-1, -2), H, Q
    for _ in range(MOST_DOUBLINGS):
        A_T, through = A.swapaxes(-1, -2), np.linalg.inv(one + Y @ P)
        more = A_T @ P @ through @ A
        A, Y, P = A @ through @ A, Y + A @ through @ Y @ A_T, P + more
        size = np.sqrt(np.diagonal(P, axis1=-2, axis2=-1))
        if (np.abs(more) <= SETTLED * size[..., :, None] * size[..., None, :]).all():
            break
    return P, Y

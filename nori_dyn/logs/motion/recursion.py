"""Linear recursion over many samples, vectorised in blocks that start at rest and are then corrected."""

from __future__ import annotations

import numpy as np

from nori_dyn.typing import Floats


def linear_recursion(A: Floats, u: Floats, before: Floats) -> Floats:
    """Exact solution x (N, m, n) of  x_k = A x_(k-1) + u_k.

    Args:
        A: what takes the state on (m, n, n).
        u: what comes in (N, m, n).
        before: the state before the first (m, n).
    """
    N, m, n = u.shape
    if not N:
        return u.copy()
    length = int(np.ceil(np.sqrt(N)))
    blocks = -(-N // length)
    x = np.zeros((blocks * length, m, n))
    x[:N] = u
    x = x.reshape(blocks, length, m, n)
    powers = np.empty((length, m, n, n))
    powers[0] = A
    for k in range(1, length):
        powers[k] = A @ powers[k - 1]
        x[:, k] += (A @ x[:, k - 1, ..., None])[..., 0]
    begins = np.empty((blocks, m, n))
    begins[0] = before
    for k in range(1, blocks):
        begins[k] = (powers[-1] @ begins[k - 1, ..., None])[..., 0] + x[k - 1, -1]
    x += (powers @ begins[:, None, ..., None])[..., 0]
    found: Floats = x.reshape(-1, m, n)[:N]
    return found

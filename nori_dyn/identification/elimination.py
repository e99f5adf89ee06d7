"""Unknown wrenches taken out of the rows of samples, so that what is left speaks of parameters alone.

Of one sample W phi + N w + c = 0, with rows that hold exactly and rows of noisy readings. Exact rows first give as much
of w as they can, w = -N_e^+ (W_e phi + c_e) + Z u, with Z what they leave open; of the noisy ones, in units of their
deviations, those combinations are kept that no u moves. That is weighted least squares over w, sample by sample.

Source: the null-space method, Lawson and Hanson, ch. 20.
"""

from __future__ import annotations

import numpy as np

from nori_dyn.typing import Booleans, Floats

TOLERANCE = 1e-9
"""Singular values below this, relative to the largest, are those of wrenches that the rows do not feel."""


def without_unknowns(rows: Floats, N: Floats, is_exact: Booleans) -> Floats:
    """Eliminate unknown wrenches from rows [W c] (n, rows, columns): the rows (n, m, columns) that are left.

    Exact rows beyond those that give a part of w are left as they are, among the others.

    Args:
        rows: [W c], or W alone, noisy ones in units of their deviations.
        N: the factors of the unknown wrenches (n, rows, k), alike.
        is_exact: which rows hold exactly (rows,).
    """
    exact, noisy = rows[:, is_exact], rows[:, ~is_exact]
    N_exact, N_noisy = N[:, is_exact], N[:, ~is_exact]
    if exact.shape[1]:
        U, s, Vt, rank = _split(N_exact)
        solved = np.swapaxes(U[:, :, :rank], 1, 2) @ exact / s[:, :rank, None]
        noisy = noisy - N_noisy @ (np.swapaxes(Vt[:, :rank], 1, 2) @ solved)
        N_noisy = N_noisy @ np.swapaxes(Vt[:, rank:], 1, 2)
        exact = np.swapaxes(U[:, :, rank:], 1, 2) @ exact
    if N_noisy.shape[1] and N_noisy.shape[2]:
        U, _, _, rank = _split(N_noisy)
        noisy = np.swapaxes(U[:, :, rank:], 1, 2) @ noisy
    return np.concatenate([exact, noisy], axis=1)


def _split(N: Floats) -> tuple[Floats, Floats, Floats, int]:
    """Full singular value decomposition of matrices (n, m, k), and their largest rank."""
    U, s, Vt = np.linalg.svd(N, full_matrices=True)
    largest = s[:, :1] if s.shape[1] else np.ones((len(s), 1))
    ranks = np.count_nonzero(s > TOLERANCE * largest, axis=1)
    return U, np.maximum(s, np.finfo(float).tiny), Vt, int(ranks.max(initial=0))

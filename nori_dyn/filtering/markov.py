"""A hidden Markov chain over contact states: what was likely before, what switches, what the readings say.

Each contact switches by itself, so many times a second on average, so that over a time t it is found in its other state
with probability (1 - exp(-2 rate t)) / 2. States that are not planned are none.

Source: L. R. Rabiner, A tutorial on hidden Markov models, Proc. IEEE 77, 1989, sec. III, with each tick's numbers
normalised; Blom and Bar-Shalom, IEEE Trans. Automatic Control 33, 1988, for mixing what states know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

import numpy as np
import scipy.linalg as la

from nori_dyn.filtering.square_root import SquareRootInformation
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.typing import Floats, Indices

NO_PART = 1e-3
"""Probability of a state below which it has no part in a mixture."""


def distances(states: Sequence[ContactState]) -> Indices:
    """The number of contacts in which states differ (n, n)."""
    return np.array([[len(set(one) ^ set(other)) for other in states] for one in states], dtype=np.intp)


def transitions(apart: Indices, n_contacts: int, rate: float, time: float) -> Floats:
    """The probability of each state after a time (n, n), a row for each state before.

    Args:
        apart: in how many contacts states differ (n, n).
        n_contacts: number of contacts.
        rate: how often a contact switches on average [1/s].
        time: the time that passes [s].
    """
    p = -np.expm1(-2.0 * rate * time) / 2.0
    T = p**apart * (1.0 - p) ** (n_contacts - apart)
    return np.asarray(T / T.sum(axis=1, keepdims=True))


def weighed(expected: Floats, log_likelihoods: Floats) -> tuple[Floats, float]:
    """The probabilities of states given a tick's readings (n,), and the logarithm of these readings' density.

    Args:
        expected: the probabilities before the readings (n,).
        log_likelihoods: of the readings, a number a state (n,); -inf for a state that is not judged.
    """
    top = log_likelihoods[expected > 0].max()
    each = expected * np.exp(log_likelihoods - top)
    total = each.sum()
    return each / total, float(top + np.log(total))


def looked_back_over(probabilities: Floats, steps: Floats, transitions: Callable[[float], Floats]) -> Floats:
    """The probabilities of states at N ticks, given the readings of all of them (N, S).

    Args:
        probabilities: those given the readings up to each tick (N, S).
        steps: the time from each tick to the next (N - 1,) [s].
        transitions: returns the transitions over a time [s], a row for each state before (S, S).
    """
    found = probabilities.copy()
    for k in reversed(range(len(steps))):
        p, T = probabilities[k], transitions(float(steps[k]))
        expected = p @ T
        found[k] = p * (T @ np.divide(found[k + 1], expected, out=np.zeros_like(expected), where=expected > 0))
    return found


def mixed(parts: Iterable[tuple[float, SquareRootInformation]], jump: Floats | None = None) -> SquareRootInformation:
    """One normal density with the mean and the covariance of a mixture of several.

    No covariance is formed: P = C C^T with the columns sqrt(w_i) [R_i^-1, m_i - m], and C is made triangular. Where one
    of them does not know all numbers, the weightiest is returned.

    Args:
        parts: their weights and square-root forms.
        jump: standard deviation of what is added to each number (n,); None adds nothing.
    """
    each = list(parts)
    if (len(each) == 1 and jump is None) or any((np.diag(known.R) == 0.0).any() for _, known in each):
        return max(each, key=lambda one: one[0])[1]
    w = np.array([share for share, _ in each])
    w /= w.sum()
    means = np.array([known.mean() for _, known in each])
    m = w @ means
    eye = np.eye(len(m))
    roots = [la.solve_triangular(known.R, eye) for _, known in each]
    C = np.hstack([np.sqrt(w_i) * np.column_stack([L, m_i - m]) for w_i, L, m_i in zip(w, roots, means, strict=True)])
    if jump is not None:
        C = np.hstack([C, np.diag(jump)])
    (L,) = la.qr(C[::-1].T, mode="r")
    U = L[: len(m)].T[::-1, ::-1]
    R = np.triu(la.solve_triangular(U, eye))
    return SquareRootInformation(R, R @ m)

"""Maximum-likelihood noise of joints and their encoders, from the innovations of a filter."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.motion.joint_filter import DERIVATIVES, JointModel, JointNoise, linear_recursion
from nori_dyn.typing import Floats

BANDWIDTHS = (5e-3, 10.0)
"""The least and the most that the bandwidth of the filter is taken for, times the time between samples."""

TRIED = 33
"""Bandwidths that are tried, evenly in their logarithm, before the best is looked for near the best of them."""

BEGUN = 0.1
"""The share of samples that the filter forgets its beginning in."""

EXACT = (1e-9, 1e-12)
"""Readings are taken to be no better than this, in SI, and than this share of the largest."""

LENGTHS = (4096, 2048, 1024, 512, 256, 128, 64, 32)
"""Samples of a stretch of which noise is found: as many as half of the log has in a row."""

MOST = 1 << 15
"""Samples of which noise is found."""

UNEVEN = 0.5 + 1e-6
"""Steps of time that differ from the usual one by more than half of it end a stretch; 2 ms and 3 ms do not."""


def likeliest(
    y: Floats, dt: float, first: int, jerk: Floats | None = None, sigmas: tuple[Floats | None, ...] = (None,)
) -> JointNoise:
    """Maximum-likelihood noise of readings of joints, where it is not given.

    The filter has settled in it, and its steps are even. Where neither the jerk nor the noise of the readings is given,
    a search over their ratio is left for each joint: the likeliest scale has a closed form. Of positions and velocities
    together, the noise of each is found from it alone.

    Args:
        y: stretches of readings (s, N, n, p) of positions, of velocities, or of both in this order.
        dt: time between samples [s].
        first: what the first of them is: 0 a position, 1 a velocity.
        jerk: how far the jerk walks in a second (n,), where it is given.
        sigmas: standard deviation (n,) of each reading, where it is given (p,).

    Source: the likelihood by innovations, Schweppe (1965).
    """
    n, p = y.shape[2:]
    known = list(sigmas)
    if p > 1:
        for k, sigma in enumerate(sigmas):
            if sigma is None:
                alone = likeliest(y[..., k : k + 1], dt, first + k, jerk)
                known[k] = alone.sigma_q if first + k == 0 else alone.sigma_qd
    if jerk is not None and all(sigma is not None for sigma in known):
        return _noise(jerk, known, first)
    floor = np.maximum(EXACT[0], EXACT[1] * np.abs(y).max(axis=(0, 1)))  # (n, p)
    found = [
        _of_joint(y[:, :, [j]], dt, first, _at(jerk, j), [_at(sigma, j) for sigma in known], floor[j]) for j in range(n)
    ]
    jerks, each = np.array([jerk for jerk, _ in found]), np.array([sigma for _, sigma in found])
    return _noise(jerks, list(each.T), first)


def stretches(t: Floats, y: Floats, dt: float) -> Floats:
    """The longest evenly sampled stretches (s, L, n, p) without a gap.

    Args:
        t: times (N,) [s].
        y: readings (N, n, p); nan where there is none.
        dt: the usual time between samples [s].

    Raises:
        InputError: there are none that are long enough.
    """
    is_even = np.asarray(np.abs(np.diff(t) / dt - 1) < UNEVEN)
    is_whole = np.asarray(np.isfinite(y).all(axis=(1, 2)))
    edges = np.flatnonzero(np.diff(np.concatenate([[0], (is_even & is_whole[1:] & is_whole[:-1]).astype(int), [0]])))
    runs = [(start, stop + 1) for start, stop in np.asarray(edges).reshape(-1, 2).tolist()]  # of samples
    covered = {L: sum((stop - start) // L * L for start, stop in runs) for L in LENGTHS}
    length = next((L for L, n in covered.items() if n >= max(len(t) // 2, 1)), LENGTHS[-1])
    places = [k for start, stop in runs for k in range(start, stop - length + 1, length)]
    if not places:
        raise InputError(
            f"no {LENGTHS[-1]} samples follow each other evenly and without a gap, of which the noise of joints could "
            f"be found: give it, or a longer log; or sample it evenly, `clock: {{rate: {1 / dt:.3g}}}` in its mapping."
        )
    every = -(-len(places) * length // MOST)
    return np.stack([y[k : k + length] for k in places[::every]])


def _of_joint(
    y: Floats, dt: float, first: int, jerk: float | None, sigmas: list[float | None], floor: Floats
) -> tuple[float, list[float]]:
    """Maximum-likelihood jerk and deviations of the readings of one joint (s, N, 1, p)."""
    unit = dt ** -(DERIVATIVES - 0.5 - first)
    is_free = jerk is None and sigmas == [None]

    def noise(ratios: Floats) -> tuple[Floats, list[Floats]]:
        """Walk of the jerk and deviations of the readings, by ratios of a step's jerk to the first deviation."""
        if is_free:
            return ratios * unit, [np.ones_like(ratios)]
        if jerk is not None:
            return np.full_like(ratios, jerk), [jerk / (ratios * unit)]
        own = [np.full_like(ratios, sigma) for sigma in sigmas]
        return ratios * unit * own[0], own

    def unlikely(logarithms: Floats) -> Floats:
        squares, logs, count = _innovations(y, dt, first, *noise(np.exp(logarithms)))
        if not is_free:
            return squares + logs
        found: Floats = count * np.log(np.maximum(squares / count, floor[0] ** 2)) + logs
        return found

    low, high = (DERIVATIVES - first) * np.log(BANDWIDTHS)
    found, others = noise(np.exp([_least(unlikely, low, high)]))
    squares, _, count = _innovations(y, dt, first, found, others)
    by = max(float(np.sqrt(squares[0] / count)), float(floor[0])) if is_free else 1.0
    return float(found[0]) * by, [float(sigma[0]) * by for sigma in others]


def _least(f: Callable[[Floats], Floats], low: float, high: float) -> float:
    """Global minimum of a function of one number, given many at once, with several local ones."""
    from scipy.optimize import minimize_scalar  # takes long to load

    tried = np.linspace(low, high, TRIED)
    k = int(np.argmin(f(tried)))
    around = float(tried[max(k - 1, 0)]), float(tried[min(k + 1, TRIED - 1)])
    found = minimize_scalar(lambda x: f(np.array([x]))[0], bounds=around, method="bounded", options={"xatol": 1e-3})
    return float(found.x)


def _innovations(y: Floats, dt: float, first: int, jerk: Floats, sigmas: list[Floats]) -> tuple[Floats, Floats, int]:
    """Squared normalised innovations (c,), the log of their deviations (c,), and their number, of c noises.

    Args:
        y: readings of one joint (s, N, 1, p).
        dt: time between samples [s].
        first: as for `likeliest`.
        jerk: how far the jerk walks in a second (c,).
        sigmas: standard deviations (c,) of each reading (p,).
    """
    stretches, N, _, p = y.shape
    model = JointModel(_noise(jerk, list(sigmas), first), dt)
    settled, read = model.settled, list(model.read)
    own = y[:, :, 0].transpose(1, 0, 2) * dt ** np.array(read, dtype=float)  # (N, s, p)
    before = np.zeros((stretches, model.order))
    before[:, read] = own[0]
    F, squares = model.F(1.0), []
    for each, K, whitened in zip(settled.A, settled.K, np.linalg.inv(settled.E), strict=True):  # one by one in memory
        x = linear_recursion(np.broadcast_to(each, (stretches, *each.shape)), own @ K.T, before)
        off = (own[1:] - (x[:-1] @ F.T)[..., read])[int(BEGUN * N) :]
        squares.append(np.sum((off @ whitened.T) ** 2))
    count = stretches * (N - 1 - int(BEGUN * N))
    logs = np.log(np.abs(np.diagonal(settled.E, axis1=1, axis2=2))).sum(axis=1)
    return np.array(squares), 2 * count * logs, count * p


def _noise(jerk: Floats, sigmas: list[Floats | None], first: int) -> JointNoise:
    """Noise whose readings begin with positions (0) or velocities (1)."""
    return JointNoise(jerk, None if first else sigmas[0], sigmas[-1] if first or len(sigmas) > 1 else None)


def _at(values: Floats | None, j: int) -> float | None:
    return None if values is None else float(values[j])

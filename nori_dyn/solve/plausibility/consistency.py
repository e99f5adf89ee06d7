"""Whether the readings of a log fit together: chi-square at some of its samples, and corrections that make them fit."""

from __future__ import annotations

import contextlib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.sparse.linalg import SuperLU, splu
from scipy.special import chdtrc

from nori_dyn.solve.plausibility.motion import angular, reaches_far
from nori_dyn.solve.plausibility.warning import DEGREE, PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.typing import Floats

STATES = 12
"""Samples that are looked at, spread over the log."""

IMPROBABLE = 1e-3
"""Probability below which the readings of a sample do not fit together."""

MOST = 0.5
"""Share of the samples from which on the log is doubted."""

FACTORS: Sequence[tuple[float, str, str]] = (
    (-1.0, "has the other sign", ""),
    (1 / DEGREE, "looks like degrees instead of radians", "rad"),
    (DEGREE, "looks like radians instead of degrees", "rad"),
    (9.81, "looks like g instead of m/s^2", "m/s^2"),
    (1e-3, "looks a thousand times too large (mN m for N m, mm for m?)", ""),
    (1e3, "looks a thousand times too small (kN for N, m for mm?)", ""),
)
"""Factors of all readings of a kind, their meaning, and how the unit of such readings begins.

The first counts of those that explain as much.
"""


def inconsistency(
    system: System,
    q: Floats,
    qd: Floats,
    y: Floats,
    others: Sequence[tuple[System, Floats]] = (),
    elsewhere: Iterable[tuple[System, Floats]] = (),
) -> Iterator[PlausibilityWarning]:
    """Yield a warning where readings (N, ny) contradict each other at most samples, by the sigmas of their sensors.

    Args:
        system: the system.
        q: configurations (N, nq).
        qd: velocities (N, nv).
        y: readings (N, ny).
        others: the systems and readings of other contact states that a sample may be in.
        elsewhere: those of contact states that it is not in, by what the log says of contacts.
    """
    if not any(row.equation.sigma for row in system.rows):
        return
    usable = np.isfinite(y).all(axis=1) & ~system.saturated(y).any(axis=1)
    chosen = np.flatnonzero(usable)
    chosen = np.unique(chosen[np.linspace(0, len(chosen) - 1, STATES).astype(int)]) if len(chosen) else chosen
    each = [(system, y[chosen]), *((other, own[chosen]) for other, own in others)]
    fits = _fits(each, q[chosen], qd[chosen])
    share = _share(fits.values())
    if share < MOST:
        return
    rest = [(other, own[chosen]) for other, own in elsewhere]
    hint, left = min(_explanations(each, q[chosen], qd[chosen], fits, rest), key=lambda found: found[1])
    yield PlausibilityWarning(
        "consistency",
        share,
        f"the readings contradict each other at {round(share * len(fits))} of {len(fits)} samples looked at, by the "
        f"sigmas of their sensors (p < {IMPROBABLE:g}). "
        f"{hint if left < share / 2 else 'See --monitor, and Monitor.faults.'}",
    )


@dataclass(frozen=True, slots=True)
class _LeastSquares:
    """The least squares of one state, factorised.

    Attributes:
        factors: of the augmented system [[sigma^2, 0, -D_w], [0, 0, D_e], [D_w^T, D_e^T, 0]] in (W r, multipliers, d).
        b: b of the rows, those that are weighed first.
        read: the readings of each kind of sensor, in the rows of b; zero elsewhere.
        variances: sigma^2 of the rows that are weighed.
        freedom: rows beyond those that the unknowns need.
    """

    factors: SuperLU
    b: Floats
    read: Mapping[str, Floats]
    variances: Floats
    freedom: int

    def fits(self, kind: str = "", factor: float = 1.0) -> bool:
        """Whether the readings fit together, with those of a kind of sensor taken times a factor."""
        b, n = self.b, len(self.variances)
        if kind:
            b = b + (1 - factor) * self.read[kind]  # b is affine in the readings, which enter it as -y
        pulls = self.factors.solve(np.concatenate([b[:n], -b[n:], np.zeros(self.factors.shape[0] - len(b))]))[:n]
        return bool(chdtrc(self.freedom, np.sum(self.variances * pulls**2)) >= IMPROBABLE)


def _fits(each: Sequence[tuple[System, Floats]], q: Floats, qd: Floats) -> dict[int, tuple[_LeastSquares, ...]]:
    """The least squares of samples, in each contact state; of those that are singular in none, with rows to spare."""
    by_sample = enumerate(zip(*(_least_squares(system, q, qd, y) for system, y in each), strict=True))
    return {k: tuple(one for one in found if one) for k, found in by_sample if None not in found}


def _least_squares(system: System, q: Floats, qd: Floats, y: Floats) -> list[_LeastSquares | None]:
    """The least squares of samples; None where they are singular, or have no rows to spare."""
    freedom = system.shape[0] - system.shape[1]
    order, n = np.argsort(system.exact_rows, kind="stable"), len(system.weight_of_rows)
    variances = 1 / system.weights[system.weight_of_rows]
    found: list[_LeastSquares | None] = [None] * len(q)
    for k, (matrix, b) in enumerate(system.each(q, qd, y) if freedom > 0 and len(q) else ()):
        D = matrix.tocsr()[order]
        blocks: Any = [[sp.diags_array(variances), None, -D[:n]], [None, None, D[n:]], [D[:n].T, D[n:].T, None]]
        read: dict[str, Floats] = {}
        for row in system.measurements:
            read.setdefault(row.equation.group, np.zeros(len(order)))[row.slice] = y[k, row.y]
        with contextlib.suppress(RuntimeError):  # singular
            factors = splu(sp.block_array(blocks, format="csc"))
            kinds = {kind: values[order] for kind, values in read.items()}
            found[k] = _LeastSquares(factors, b[order], kinds, variances, freedom)
    return found


def _share(fits: Collection[tuple[_LeastSquares, ...]], kind: str = "", factor: float = 1.0) -> float:
    """Share of the samples whose readings do not fit together, in whatever contact state."""
    wrong = sum(not any(state.fits(kind, factor) for state in sample) for sample in fits)
    return wrong / len(fits) if fits else 0.0


def _share_elsewhere(
    elsewhere: Sequence[tuple[System, Floats]], q: Floats, qd: Floats, fits: Mapping[int, tuple[_LeastSquares, ...]]
) -> float:
    """Share of the samples whose readings fit together in none of some other contact states either."""
    left = [k for k, states in fits.items() if not any(state.fits() for state in states)]
    for system, y in elsewhere:
        tried = _least_squares(system, q[left], qd[left], y[left])
        left = [k for k, one in zip(left, tried, strict=True) if one is None or not one.fits()]
    return len(left) / len(fits)


def _explanations(
    each: Sequence[tuple[System, Floats]],
    q: Floats,
    qd: Floats,
    fits: Mapping[int, tuple[_LeastSquares, ...]],
    elsewhere: Sequence[tuple[System, Floats]],
) -> Iterator[tuple[str, float]]:
    """Yield possible errors, and the share of samples whose readings do not fit together with each corrected."""
    system = each[0][0]
    in_q, in_qd = angular(system.tree)
    if elsewhere:
        yield "With other contacts closed they fit: is it right which are?", _share_elsewhere(elsewhere, q, qd, fits)
    if reaches_far(q[:, in_q]):
        yield "q looks like degrees.", _share(_fits(each, np.where(in_q, q / DEGREE, q), qd).values())
    if reaches_far(qd[:, in_qd]):
        turned = np.where(in_qd, qd / DEGREE, qd)
        yield "qd looks like degrees per second.", _share(_fits(each, q, turned).values())
    units = {(row.equation.group, unit) for row in system.measurements for unit in row.units}
    for kind in next(iter(fits.values()))[0].read:
        for factor, words, begins in FACTORS:
            if any(of == kind and unit.startswith(begins) for of, unit in units):
                yield f"{kind} {words}.", _share(fits.values(), kind, factor)

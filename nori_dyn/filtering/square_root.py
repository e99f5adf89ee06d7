"""One tick of a filter in square-root information form, and one of its smoother: nothing is inverted that may vanish.

A memory m is known by rows R m = z + noise, R upper triangular, the noise of unit variance. A row of zeros says
nothing: what was never seen needs no large number that stands for infinity. A tick has further unknowns s of which
nothing is known before; u = [s | m], m = [v | f]. Sensors add rows sqrt(w) (A u + c) = noise. Orthogonal
transformations make all rows triangular again, and what they leave of the right-hand side is the chi-square of the
tick.

Then the memory moves on: v+ = a v + dt (X_s s + X_v v + X_f f + x) + w_v and f+ = a f + w_f, with w of variance Q.
X_v is strictly upper triangular: a rate may depend on what has a rate itself and comes later.

Source: G. J. Bierman, Factorization Methods for Discrete Sequential Estimation, 1977, ch. V to VII and X (square-root
information filter and smoother); the upper factor of the noise that m+ gets is an own derivation
(tests/unit/filtering/test_square_root.py).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import qr, solve_triangular

from nori_dyn.errors import InputError
from nori_dyn.program.track_source import LARGEST_SQUARE, LOOSE, SMALLEST_DECAY, ZERO_PIVOT
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class SquareRootInformation:
    """What is known of a memory: R m = z + noise, of unit variance.

    Attributes:
        R: upper triangular (k, k); a row of zeros where nothing is known.
        z: right-hand side (k,).
    """

    R: Floats
    z: Floats

    @staticmethod
    def of(mean: Floats, sigmas: Floats) -> SquareRootInformation:
        """That of independent numbers.

        Args:
            mean: their means (k,).
            sigmas: their standard deviations (k,); inf where nothing is known.

        Raises:
            InputError: a mean that is not finite, or a deviation that is not positive.
        """
        mean, sigmas = np.asarray(mean, dtype=float), np.asarray(sigmas, dtype=float)
        _check(mean, "mean")
        if not (sigmas > 0).all():
            number = int(np.flatnonzero(~(sigmas > 0))[0])
            raise InputError(
                f"the standard deviation of number {number} of the memory is {sigmas[number]}: it must be positive; "
                "inf where nothing is known."
            )
        return SquareRootInformation(np.diag(1 / sigmas), np.where(np.isinf(sigmas), 0.0, mean) / sigmas)

    @staticmethod
    def of_covariance(mean: Floats, P: Floats) -> SquareRootInformation:
        """That of numbers with a mean (k,) and a covariance P (k, k).

        Raises:
            InputError: a mean that is not finite, or a covariance that is not positive definite.
        """
        mean, P = np.asarray(mean, dtype=float), np.asarray(P, dtype=float)
        _check(mean, "mean")
        _check(P, "covariance")
        scale = np.sqrt(np.maximum(np.diag(P), 0.0))
        scale[scale == 0.0] = 1.0
        try:
            # P = L L^T with L upper triangular: then R = L^-1 is upper triangular too.
            L = np.linalg.cholesky((P / np.outer(scale, scale))[::-1, ::-1])[::-1, ::-1]
        except np.linalg.LinAlgError:
            raise InputError(
                "the covariance of the memory is not positive definite: a number that is known exactly is none of a "
                "memory; give it a small variance."
            ) from None
        R = solve_triangular(L, np.diag(1 / scale))
        return SquareRootInformation(R, R @ mean)

    def mean(self) -> Floats:
        """The estimate (k,); nan where it is not determined."""
        return estimate(self.R, self.z)

    def covariance(self) -> Floats:
        """The covariance (k, k); nan in the rows and columns of what is not determined."""
        return _covariance(self.R)


@dataclass(frozen=True, slots=True, eq=False)
class Posterior:
    """What is known of the unknowns u = [s | m] of a tick after its sensors: R u = z + noise, of unit variance.

    Attributes:
        R: upper triangular (n, n); a row of zeros where a pivot vanishes.
        z: right-hand side (n,).
        nis: the normalised innovation squared: what the sensors contradict, chi-square of `degrees` degrees of freedom.
        degrees: those: weighed rows and rows of what was known before, less unknowns that are determined.
        log_likelihood: of the readings, given what was known before; where s, or a part of m, had no prior, of what is
            left of the readings once they are eliminated.
        u: the estimate (n,); nan where it is not determined.
    """

    R: Floats
    z: Floats
    nis: float
    degrees: int
    log_likelihood: float
    u: Floats

    @property
    def undetermined(self) -> tuple[int, ...]:
        """The places in u of the pivots that vanish."""
        return tuple(np.flatnonzero(np.diagonal(self.R) == 0.0).tolist())

    def covariance(self) -> Floats:
        """The covariance of u (n, n); nan in the rows and columns of what is not determined."""
        return _covariance(self.R)


@dataclass(frozen=True, slots=True, eq=False)
class MotionModel:
    """How a memory moves on to the next tick: v+ = a v + dt (X_s s + X_v v + X_f f + x) + w_v, f+ = a f + w_f.

    Attributes:
        dt: time to the next tick [s].
        X_s: what the rates of v take of s (n_v, n_s).
        X_v: what they take of v (n_v, n_v), strictly upper triangular.
        X_f: what they take of f (n_v, n_f).
        x: the rates without these (n_v,).
        decay: a (k,): 1 for what stays.
        Q: variances of w (k,), over this dt; they may be 0.
        knows_rates: whether rates are known for as long; otherwise nothing is of v+.
    """

    dt: float
    X_s: Floats
    X_v: Floats
    X_f: Floats
    x: Floats
    decay: Floats
    Q: Floats
    knows_rates: bool = True

    @property
    def n_s(self) -> int:
        """Number of unknowns that are no memory."""
        n_s: int = self.X_s.shape[1]
        return n_s

    @property
    def n_v(self) -> int:
        """Number of memory states that have a rate."""
        return len(self.x)

    @property
    def transition(self) -> Floats:
        """What v is multiplied by, a + dt X_v (n_v, n_v), upper triangular."""
        return np.diag(np.maximum(self.decay[: self.n_v], SMALLEST_DECAY)) + self.dt * self.X_v

    def carried(self, R: Floats, z: Floats) -> Floats:
        """Rows R u = z as rows [R' | z'] over [s | m'], m' what m+ would be without noise."""
        s, f = self.n_s, self.n_s + self.n_v
        a = np.maximum(self.decay, SMALLEST_DECAY)
        V = solve_triangular(self.transition, R[:, s:f].T, trans=1).T if self.n_v else R[:, s:f]
        S = R[:, :s] - self.dt * (V @ self.X_s)
        F = (R[:, f:] - self.dt * (V @ self.X_f)) / a[self.n_v :]
        return np.column_stack([S, V, F, z + self.dt * (V @ self.x)])


def update(before: SquareRootInformation, A: Floats, c: Floats, weights: Floats, n_s: int) -> Posterior:
    """Posterior of u after the sensors of a tick.

    The rows [0 R | z ; sqrt(w) A | -sqrt(w) c] over [s | m], those first whose first column is, are made upper
    triangular: so large rows of what was known leave no rounding in columns of s.

    Args:
        before: what was known of the memory.
        A: rows of sensors A u + c = 0 (p, n), n = n_s + k.
        c: their constants (p,).
        weights: one over their variances (p,); 0 where a reading is missing.
        n_s: number of unknowns that are no memory.
    """
    n = A.shape[1]
    rows = np.zeros((len(before.R) + len(A), n + 1))
    rows[: len(before.R), n_s:n], rows[: len(before.R), n] = before.R, before.z
    roots = np.sqrt(weights)
    # A reading that is missing may be nan.
    rows[len(before.R) :] = roots[:, None] * np.where(roots[:, None] > 0, np.column_stack([A, -c]), 0.0)
    with np.errstate(over="ignore"):
        first = np.where(rows[:, :n].any(axis=1), (rows[:, :n] != 0).argmax(axis=1), n)
        R, z, nis = triangular(rows[np.argsort(first, kind="stable")])
        readings = rows[len(before.R) :, n]
        nis = nis if readings @ readings < LARGEST_SQUARE else np.nan
    pivots, known = np.abs(np.diag(R)), np.abs(np.diag(before.R))
    determined = pivots > 0
    degrees = int(np.count_nonzero(roots) + np.count_nonzero(known) - np.count_nonzero(determined))
    log_likelihood = (
        np.log(known[known > 0]).sum()
        + np.log(roots[roots > 0]).sum()
        - np.log(pivots[determined]).sum()
        - (nis + degrees * np.log(2 * np.pi)) / 2
    )
    return Posterior(R, z, nis, degrees, float(log_likelihood), estimate(R, z))


def predict(after: Posterior, motion: MotionModel) -> SquareRootInformation:
    """Prior of the memory at the next tick.

    Without noise the rows are those of u, with v written by v+; once s is eliminated, R- m' = z- is left of them. With
    it, m' = m+ - w, so that I + R- Q R-^T = U U^T is the covariance of their noise: R+ = U^-1 R-, z+ = U^-1 z-, which
    are triangular as U is. U comes of [R- sqrt(Q) | I] by orthogonal transformations, not of its square.

    Args:
        after: what is known after the sensors of this tick.
        motion: how the memory moves on.
    """
    R, z, _ = triangular(motion.carried(after.R, after.z))
    R, z = R[motion.n_s :, motion.n_s :], z[motion.n_s :]
    noise = np.hstack([R * np.sqrt(motion.Q), np.eye(len(R))])
    (L,) = qr(noise[::-1].T, mode="r", check_finite=False)
    U = L[: len(R)].T[::-1, ::-1]
    found = SquareRootInformation(np.triu(solve_triangular(U, R)), solve_triangular(U, z))
    return found if motion.knows_rates else forgotten(found, motion.n_v)


def forgotten(known: SquareRootInformation, n_v: int) -> SquareRootInformation:
    """Prior in which nothing is known of the first numbers of the memory, those that have a rate."""
    R, z = known.R.copy(), known.z.copy()
    R[:n_v], z[:n_v] = 0.0, 0.0
    return SquareRootInformation(R, z)


def smooth_step(after: Posterior, motion: MotionModel, mean: Floats, covariance: Floats) -> tuple[Floats, Floats]:
    """The mean (n,) and the covariance (n, n) of u, given all sensors before and after it.

    With the noise written as w = sqrt(Q) e, e of unit variance, u is known by s, e and m+: the rows of u and those of e
    are made triangular over [s e | m+]. Those of [s e] say what they are, given m+. Nothing is subtracted from a
    covariance, variances of noise may be 0, and what is undetermined at its tick may be determined by later ones.

    Args:
        after: what is known after the sensors of this tick.
        motion: how the memory moves on to the next tick.
        mean: that of m+ (k,), given all sensors.
        covariance: that of m+ (k, k).

    Returns:
        The mean and the covariance; nan for what is not determined.
    """
    k, n_s, n_v = len(motion.Q), motion.n_s, motion.n_v
    g = np.sqrt(motion.Q)
    R, z, _ = triangular(with_noise(motion.carried(after.R, after.z), np.diag(g)))
    o = n_s + k
    inverse, unseen = _inverse(R[:o, :o])
    # [s e] = y - Y m+ + noise, the noise by `inverse`.
    y, Y = inverse @ z[:o], inverse @ R[:o, o:]
    # u = B [s e] + C m+ + b
    a = np.maximum(motion.decay, SMALLEST_DECAY)
    B, C, b = np.zeros((n_s + k, o)), np.zeros((n_s + k, k)), np.zeros(n_s + k)
    v, f = slice(n_s, n_s + n_v), slice(n_s + n_v, n_s + k)
    B[:n_s, :n_s] = np.eye(n_s)
    B[n_s:, n_s:], C[n_s:] = -np.diag(g / a), np.diag(1 / a)
    if n_v:
        B[v, :n_s], B[v, n_s:] = -motion.dt * motion.X_s, -np.diag(g)[:n_v]
        C[v] = np.eye(k)[:n_v]
        b[v] = -motion.dt * motion.x
        for part in (B, C):
            part[v] -= motion.dt * (motion.X_f @ part[f])
        B[v], C[v] = solve_triangular(motion.transition, B[v]), solve_triangular(motion.transition, C[v])
        b[v] = solve_triangular(motion.transition, b[v])
    gain, spread = C - B @ Y, B @ inverse
    later = np.isnan(mean)
    loose = (np.abs(B @ unseen) > LOOSE * (np.abs(B) @ np.abs(unseen))).any(axis=1) | gain[:, later].any(axis=1)
    P = spread @ spread.T + gain[:, ~later] @ covariance[np.ix_(~later, ~later)] @ gain[:, ~later].T
    _blot(P, loose)
    return np.where(loose, np.nan, b + B @ y + gain[:, ~later] @ mean[~later]), P


def with_noise(rows: Floats, G: Floats) -> Floats:
    """Rows over [s | m'] as rows over [s e | m+], with m+ = m' + G e, and below them those of e.

    Args:
        rows: [A | b] (..., r, n_s + k + 1).
        G: what the memory takes of the noise e, of unit variance (..., k, e).

    Returns:
        The rows (..., r + e, n_s + e + k + 1).
    """
    (r, n), e = rows.shape[-2:], G.shape[-1]
    n_s = n - 1 - G.shape[-2]
    found = np.zeros((*rows.shape[:-2], r + e, n + e))
    found[..., :r, :n_s], found[..., :r, n_s + e :] = rows[..., :n_s], rows[..., n_s:]
    found[..., :r, n_s : n_s + e] = -rows[..., n_s:-1] @ G
    found[..., r:, n_s : n_s + e] = np.eye(e)
    return found


def triangular(rows: Floats) -> tuple[Floats, Floats, Any]:
    """Rows [R | z] with the same sum of squares |R u - z|^2, R upper triangular, and what is left of it.

    A pivot that vanishes beside its column leaves a row of zeros; what else its rows say goes to later columns.

    Args:
        rows: [A | b] (..., r, n + 1).

    Returns:
        R (..., n, n), z (..., n) and the sum of squares that no u can lessen (...).
    """
    n = rows.shape[-1] - 1
    T = np.asarray(np.linalg.qr(rows, mode="r"))
    if T.shape[-2] <= n:
        T = np.concatenate([T, np.zeros((*T.shape[:-2], n + 1 - T.shape[-2], n + 1))], axis=-2)
    R, z, left = T[..., :n, :n], T[..., :n, n], T[..., n, n] ** 2
    sizes = np.sqrt(np.einsum("...ij,...ij->...j", rows, rows)[..., :n])
    is_lost = np.abs(np.diagonal(R, axis1=-2, axis2=-1)) <= ZERO_PIVOT * sizes
    if is_lost.any():
        left = np.asarray(left)
        for at in map(tuple, np.argwhere(is_lost.any(axis=-1))):
            found = _echelon(rows[at], sizes[at])
            T[at][:n], left[at] = found[:n], found[n:, n] @ found[n:, n]
    return R, z, left[()]


def _echelon(rows: Floats, sizes: Floats) -> Floats:
    """[R | z] (n, n + 1), and below it what is left, by reflections that pass by pivots that vanish."""
    n = len(sizes)
    R, left = np.zeros((n, n + 1)), rows.copy()
    for j in range(n):
        column = left[:, j].copy()
        norm = np.linalg.norm(column)
        left[:, j] = 0.0
        if len(left) and not norm <= ZERO_PIVOT * sizes[j]:
            v = column.copy()
            v[0] += np.copysign(norm, column[0])
            left[:, j + 1 :] -= np.outer(v / (norm * np.abs(v[0])), v @ left[:, j + 1 :])
            R[j, j], R[j, j + 1 :] = -np.copysign(norm, column[0]), left[0, j + 1 :]
            left = left[1:]
    return np.vstack([R, left])


def _inverse(R: Floats) -> tuple[Floats, Floats]:
    """T with u = T z for what rows R u = z determine, and a basis (n, r) of the u with R u = 0."""
    zero = np.diag(R) == 0.0
    filled = R + np.diag(zero.astype(float))
    T = solve_triangular(filled, np.eye(len(R)))
    unseen = T[:, zero]
    sizes = np.linalg.norm(filled, axis=0)[:, None] * np.abs(unseen)
    unseen[sizes <= LOOSE * sizes.max(axis=0, initial=0.0)] = 0.0
    T[:, zero] = 0.0
    return T, unseen


def estimate(R: Floats, z: Floats) -> Floats:
    """The solution u of rows R u = z (n,); nan where it is not determined."""
    if np.diag(R).all():
        u: Floats = solve_triangular(R, z)
        return u
    T, unseen = _inverse(R)
    return np.where(unseen.any(axis=1), np.nan, T @ z)


def _covariance(R: Floats) -> Floats:
    """The covariance of u with rows R u = z + noise (n, n); nan for what is not determined."""
    if np.diag(R).all():
        F: Floats = solve_triangular(R, np.eye(len(R)))
        return F @ F.T
    T, unseen = _inverse(R)
    P = T @ T.T
    _blot(P, unseen.any(axis=1))
    return P


def _blot(P: Floats, loose: Any) -> None:
    """Write nan into rows and columns of a covariance."""
    P[loose], P[:, loose] = np.nan, np.nan


def _check(values: Floats, what: str) -> None:
    if not np.isfinite(values).all():
        raise InputError(f"the {what} of the memory holds {values[~np.isfinite(values)][0]}: it must be finite.")

"""Estimates over time by the textbook, from the equations of a system and what persists in it; dense, and slow.

A tick is the rows that hold exactly, E d + e = 0, and those that are weighed, Y d + c = noise, of `System.D` and
`System.b`; what persists, m, are numbers of d. All d that obey the exact rows are d_0 + C u with u = [s | m], s
coordinates of the rest, of which nothing is known beforehand. `filtered` is Kalman's filter with a covariance, in
Joseph's form, in extended precision; s is taken out of the weighed rows of a tick by the rows that do not see it.

Source: Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking and Navigation, ch. 5.2.3.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import scipy.linalg as la
import scipy.sparse as sp
from numpy.typing import NDArray

from nori_dyn.model.kinematics import velocities
from nori_dyn.system.builder import System
from tests.least_squares import Extended, orthogonal_factors, solve_upper

Floats = NDArray[np.float64]

REFINEMENTS = 3
"""Steps of iterative refinement, each of which takes the error down by the condition times 1e-16."""


@dataclass(frozen=True)
class Part:
    """A system cut into its exact rows and those that are weighed at every tick, with what persists in it.

    Attributes:
        system: the system.
        exact: numbers of the rows that hold exactly.
        weighed: numbers of the rows that are weighed, without those of what is known at first.
        weights: for each of these the number of its weight.
        memory: the columns of d that persist, in the order of `names`.
        rates: for each of these the column of its rate, or -1.
        names: the name of each.
    """

    system: System
    exact: NDArray[np.intp]
    weighed: NDArray[np.intp]
    weights: NDArray[np.intp]
    memory: NDArray[np.intp]
    rates: NDArray[np.intp]
    names: tuple[str, ...]

    @staticmethod
    def of(system: System, names: Sequence[str]) -> Part:
        """Return the parts of a system, what persists in the order of some names."""
        first = {one.known_by for one in system.memory}
        exact = [k for row in system.rows if row.is_exact for k in _range(row.slice)]
        weighed = [row for row in system.rows if not row.is_exact and row.name not in first]
        columns = [system.variable_names.index(name) for name in names]
        rate_of = {}
        for one in system.memory:
            own = _range(one.variable.slice)
            rate = [-1] * len(own) if one.rate is None else _range(system.column(*one.rate))
            rate_of |= dict(zip(own, rate, strict=True))
        assert sorted(rate_of) == sorted(columns)
        return Part(
            system,
            np.array(exact, dtype=np.intp),
            np.array([k for row in weighed for k in _range(row.slice)], dtype=np.intp),
            np.array([k for row in weighed for k in row.weight_of_rows], dtype=np.intp),
            np.array(columns, dtype=np.intp),
            np.array([rate_of[k] for k in columns], dtype=np.intp),
            tuple(names),
        )

    def beginning(self) -> tuple[Floats, Floats]:
        """Return the mean and the standard deviation of what is known at first (k,), inf where nothing is."""
        mean, sigma = np.zeros(self.system.shape[1]), np.full(self.system.shape[1], np.inf)
        for one in self.system.memory:
            mean[one.variable.slice] = one.mean
            if one.sigma is not None:
                sigma[one.variable.slice] = one.sigma
        return mean[self.memory], sigma[self.memory]

    def motion(self, dt: float) -> tuple[Floats, Floats]:
        """Return what the memory is multiplied by over a time [s], and the variance that it gains (k,)."""
        a, Q = np.ones(self.system.shape[1]), np.zeros(self.system.shape[1])
        for one in self.system.memory:
            T, walk = one.time_constant, np.array(one.walk)
            a[one.variable.slice] = 1.0 if T is None else np.exp(-dt / T)
            Q[one.variable.slice] = walk**2 * (dt if T is None else T / 2 * (1 - np.exp(-2 * dt / T)))
        return a[self.memory], Q[self.memory]

    @cached_property
    def poses(self) -> dict[bytes, Pose]:
        """What was worked out already."""
        return {}

    def pose(self, q: Floats) -> Pose:
        """Return what depends on the configuration alone."""
        found = self.poses.get(q.tobytes())
        if found is None:
            D = self.system.D(q).tocsr()
            found = Pose.of(D[self.exact], D[self.weighed], self.memory)
            self.poses[q.tobytes()] = found
        return found


@dataclass(frozen=True)
class Pose:
    """The equations at a configuration, and coordinates of what exact rows leave open.

    Attributes:
        E, Y: exact rows and weighed ones.
        K: the exact rows and those that pick what persists, of full row rank.
        inverse: of K, from the right, in double precision: a start for refinement.
        C: d = d_0 + C u (N, n): first the columns of s, then those of what persists.
        YC: Y C.
        n_s: number of columns of s.
    """

    E: sp.csr_matrix
    Y: sp.csr_matrix
    K: sp.csr_matrix
    inverse: Floats
    C: Extended
    YC: Extended
    n_s: int

    @staticmethod
    def of(E: sp.csr_matrix, Y: sp.csr_matrix, memory: NDArray[np.intp]) -> Pose:
        """Return the coordinates, refined until they obey the rows in extended precision."""
        k, N = len(memory), E.shape[1]
        pick = sp.csr_matrix((np.ones(k), (np.arange(k), memory)), shape=(k, N))
        K = sp.vstack([E, pick]).tocsr()
        dense = K.toarray()
        Q, R = la.qr(dense.T)
        r = len(dense)
        assert np.abs(np.diagonal(R)).min() > 1e-10 * np.abs(np.diagonal(R)).max()
        inverse = Q[:, :r] @ la.solve_triangular(R[:r], np.eye(r), trans="T")
        wide = sp.csr_matrix(K.astype(np.longdouble))
        target = np.zeros((r, N - r + k), np.longdouble)
        target[r - k :, N - r :] = np.eye(k)
        C = np.zeros((N, N - r + k), np.longdouble)
        C[:, : N - r] = Q[:, r:]
        for _ in range(REFINEMENTS):
            C += inverse @ (target - wide @ C).astype(float)
        return Pose(E, Y, wide, inverse, C, sp.csr_matrix(Y.astype(np.longdouble)) @ C, N - r)

    def start(self, e: Floats, k: int) -> Extended:
        """Return the d_0 that obeys the exact rows and where what persists is zero (N,)."""
        target = np.concatenate([-e, np.zeros(k)]).astype(np.longdouble)
        d = np.zeros(len(self.C), np.longdouble)
        for _ in range(REFINEMENTS):
            d += self.inverse @ (target - self.K @ d).astype(float)
        return d


@dataclass(frozen=True)
class Instant:
    """A tick.

    Attributes:
        part: whose rows hold.
        q: the configuration.
        b: of all rows of the system.
        weights: of the system (n_weights,); 0 where a reading is missing.
        dt: time since the one before [s].
    """

    part: Part
    q: Floats
    b: Floats
    weights: Floats
    dt: float

    @cached_property
    def w(self) -> Floats:
        """The weight of each weighed row."""
        return self.weights[self.part.weights]


def biases(system: System, Q: Floats, Qd: Floats, Y: Floats) -> Floats:
    """Return b of N states (N, rows)."""
    parts = system.bias(velocities(system.tree, Q.T, Qd.T), np.where(np.isfinite(Y), Y, 0.0).T)
    columns = [np.asarray(part, dtype=float) for part in parts]
    B = np.concatenate([np.broadcast_to(c[:, None] if c.ndim == 1 else c, (len(c), len(Q))) for c in columns]).T
    for k in (0, len(Q) - 1):
        np.testing.assert_allclose(B[k], system.b(Q[k], Qd[k], np.where(np.isfinite(Y[k]), Y[k], 0.0)), atol=1e-9)
    return B


@dataclass(frozen=True)
class Known:
    """What is known of a tick after its readings.

    Attributes:
        u, P: mean and covariance of [s | m].
        d: mean of all unknowns.
        C: d = d_0 + C u.
        n_s: number of s.
        nis, degrees: normalised innovation squared, and its degrees of freedom.
        evidence: log-likelihood of the readings, with s in these coordinates.
    """

    u: Extended
    P: Extended
    d: Extended
    C: Extended
    n_s: int
    nis: float
    degrees: int
    evidence: float

    @property
    def mean(self) -> Extended:
        """Of what persists."""
        return self.u[self.n_s :]

    @property
    def covariance(self) -> Extended:
        """Of what persists."""
        return self.P[self.n_s :, self.n_s :]

    def deviations(self, columns: Sequence[int] | NDArray[np.intp]) -> Extended:
        """Return the standard deviations of some numbers of d."""
        C = self.C[columns]
        return np.sqrt(np.sum((C @ self.P) * C, axis=1))


def filtered(ticks: Sequence[Instant]) -> list[Known]:
    """Return what is known of each tick from its readings and all before."""
    mean, sigma = ticks[0].part.beginning()
    m, P = np.asarray(mean, np.longdouble), np.diag(sigma**2).astype(np.longdouble)
    assert np.isfinite(P.astype(float)).all(), "something is known at first"
    found: list[Known] = []
    for number, tick in enumerate(ticks):
        pose, k = tick.part.pose(tick.q), len(m)
        d_0 = pose.start(tick.b[tick.part.exact], k)
        seen = tick.w > 0
        root = np.sqrt(tick.w[seen].astype(np.longdouble))
        H = root[:, None] * pose.YC[seen]
        h = root * (pose.Y[seen].astype(np.longdouble) @ d_0 + tick.b[tick.part.weighed][seen])
        H_s, H_m, n_s = H[:, : pose.n_s], H[:, pose.n_s :], pose.n_s
        factors = orthogonal_factors(H_s)
        turned = factors.QT_times(np.column_stack([H_m, h]))
        G, g = turned[n_s:, :k], turned[n_s:, k]
        S = G @ P @ G.T + np.eye(len(G))
        innovation = -(g + G @ m)
        W = solved(S, np.column_stack([G @ P, innovation])) if len(G) else np.zeros((0, k + 1), np.longdouble)
        gain = W[:, :k].T
        m = m + gain @ innovation
        J = np.eye(k) - gain @ G
        P = J @ P @ J.T + gain @ gain.T
        nis = float(innovation @ W[:, k])
        # s = -R^-1 Q^T (H_m m + h) + noise, the noise of covariance (R^T R)^-1
        R, order = factors.R, factors.order
        slope, constant = np.empty((n_s, k), np.longdouble), np.empty(n_s, np.longdouble)
        slope[order], constant[order] = -solve_upper(R, turned[:n_s, :k]), -solve_upper(R, turned[:n_s, k])
        own = np.empty((n_s, n_s), np.longdouble)
        own[order] = solve_upper(R, np.eye(n_s, dtype=np.longdouble))
        L = np.vstack([slope, np.eye(k, dtype=np.longdouble)])
        P_u = L @ P @ L.T
        P_u[:n_s, :n_s] += own @ own.T
        u = np.concatenate([slope @ m + constant, m])
        log_S = log_determinant(S)
        log_s = 2 * np.sum(np.log(np.abs(np.diagonal(R)))) if n_s else 0.0
        evidence = np.sum(np.log(root)) - (log_s + log_S + nis + len(G) * np.log(2 * np.pi)) / 2
        d = d_0 + pose.C @ u
        now = Known(u, P_u, d, pose.C, n_s, nis, len(G), float(evidence))
        if number + 1 < len(ticks):
            dt = ticks[number + 1].dt
            a, Q = tick.part.motion(dt)
            F = np.hstack([np.zeros((k, n_s)), np.diag(a)]).astype(np.longdouble)
            shift = np.zeros(k, np.longdouble)
            rated = np.flatnonzero(tick.part.rates >= 0)
            columns = tick.part.rates[rated]
            F[rated] += np.longdouble(dt) * pose.C[columns]
            shift[rated] = np.longdouble(dt) * d_0[columns]
            m, P = F @ u + shift, F @ P_u @ F.T + np.diag(Q)
        found.append(now)
    return found


def solved(S: Extended, X: Extended) -> Extended:
    """Return S^-1 X of a positive definite S (n, n), refined by residuals in extended precision."""
    scale = 1 / np.sqrt(np.diagonal(S))
    scaled, right = S * np.multiply.outer(scale, scale), scale[:, None] * X
    factors = la.cho_factor(scaled.astype(float))
    Z = np.zeros(X.shape, np.longdouble)
    for _ in range(REFINEMENTS):
        Z += la.cho_solve(factors, (right - scaled @ Z).astype(float))
    return scale[:, None] * Z


def log_determinant(S: Extended) -> float:
    """Return the logarithm of the determinant of a positive definite matrix."""
    return float(np.linalg.slogdet(S.astype(float))[1])


def _range(part: slice) -> range:
    return range(part.start, part.stop)

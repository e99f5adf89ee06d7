"""What a tick says by the equations of a system and what persists in it; dense, and slow.

A tick is the rows that hold exactly, E d + e = 0, and those that are weighed, Y d + c = noise, of `System.D` and
`System.b`; what persists, m, are numbers of d. All d that obey the exact rows are d_0 + C u with u = [s | m], s
coordinates of the rest, of which nothing is known beforehand.
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
from tests.least_squares import Extended

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
        """The parts of a system, what persists in the order of some names."""
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
        """The mean and the standard deviation of what is known at first (k,), inf where nothing is."""
        mean, sigma = np.zeros(self.system.shape[1]), np.full(self.system.shape[1], np.inf)
        for one in self.system.memory:
            mean[one.variable.slice] = one.mean
            if one.sigma is not None:
                sigma[one.variable.slice] = one.sigma
        return mean[self.memory], sigma[self.memory]

    def motion(self, dt: float) -> tuple[Floats, Floats]:
        """What the memory is multiplied by over a time [s], and the variance that it gains (k,)."""
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
        """What depends on the configuration alone."""
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
        """The coordinates, refined until they obey the rows in extended precision."""
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
        """The d_0 that obeys the exact rows and where what persists is zero (N,)."""
        target = np.concatenate([-e, np.zeros(k)]).astype(np.longdouble)
        d = np.zeros(len(self.C), np.longdouble)
        for _ in range(REFINEMENTS):
            d += self.inverse @ (target - self.K @ d).astype(float)
        return d


def biases(system: System, Q: Floats, Qd: Floats, Y: Floats) -> Floats:
    """B of N states (N, rows)."""
    parts = system.bias(velocities(system.tree, Q.T, Qd.T), np.where(np.isfinite(Y), Y, 0.0).T)
    columns = [np.asarray(part, dtype=float) for part in parts]
    B = np.concatenate([np.broadcast_to(c[:, None] if c.ndim == 1 else c, (len(c), len(Q))) for c in columns]).T
    for k in (0, len(Q) - 1):
        np.testing.assert_allclose(B[k], system.b(Q[k], Qd[k], np.where(np.isfinite(Y[k]), Y[k], 0.0)), atol=1e-9)
    return B


def _range(part: slice) -> range:
    return range(part.start, part.stop)

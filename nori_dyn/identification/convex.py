"""A determinant-maximisation problem over inertias and bounded coefficients: solved by Newton's steps, and judged.

    minimise 1/2 |A v - b|^2 + sum of gamma_i d(X_i) over bodies,  X_i = symmetric(C_i v + c_i)

with X_i positive definite, d(X) = tr X - log det X - 4, and bounds G v >= g.

A primal-dual interior-point method begins at the prior, where each X is 1. It relaxes bounds until the prior is well
within them and brings them back, lets all but log det count more and more, and then lets the barrier of the bounds
vanish. What it returns is not believed: the least value of the Lagrangian at its multipliers is a bound from below on
the problem, and Newton's decrement bounds how far that is from the Lagrangian here.

Source: Boyd and Vandenberghe, Convex Optimization, 5.2 for the bound, 9.6 for the decrement and 11 for the method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from nori_dyn.errors import InputError
from nori_dyn.identification.moments import triangular
from nori_dyn.identification.physical import symmetric, ten_numbers
from nori_dyn.typing import Floats

CLOSE = 1e-4
"""Excess of the objective that is taken for none: a fiftieth of a standard deviation of any parameter at most."""

CLOSE_SHARE = 1e-7
"""The same as a share of the objective, where rows contradict all bodies by far more than their deviations."""

STEPS = 500
"""Steps of Newton at most."""

NEAR = 0.25
"""Newton's decrement at which the path is followed further."""

AHEAD = 10.0
"""Factor by which more counts in the next part of the path, where the barrier is less by its square."""

BARRIER = 1e-8
"""Weight of the barrier of a bound, as a share of the least gamma, at which it has vanished."""

ENOUGH = 0.1
"""Share of what a step gains at first that it has to gain in all."""

SHORTEST = 1e-12
"""Share of a step that is not halved any more."""

ROUNDING = 1e-13
"""Share of the objective that is rounding."""

INSIDE = 0.99
"""Share of the way to the nearest bound that a step goes at most."""

SETTLED = 1e-6
"""Newton's decrement at which there is nothing left to gain."""

STUCK = 0.999
"""Share of what bounds are relaxed by that is left where nothing keeps them."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """One link: the symmetric matrix of ten numbers C v + c is its inertia X relative to the prior.

    Attributes:
        C: (10, n).
        c: (10,).
        gamma: weight of its distance.
    """

    C: Floats
    c: Floats
    gamma: float = 1.0

    def relative(self, v: Floats) -> Floats:
        """X (4, 4)."""
        return symmetric(self.C @ v + self.c)


@dataclass(frozen=True, slots=True, eq=False)
class MaxdetProblem:
    """A problem in coordinates v, which count standard deviations.

    Attributes:
        A: rows (n_rows, n).
        b: their right-hand side (n_rows,).
        bodies: the links.
        G: rows of bounds G v >= g (n_bounds, n), of norm 1.
        g: their constants (n_bounds,).
        prior: the prior (n,), which all bodies can have.
    """

    A: Floats
    b: Floats
    bodies: tuple[Body, ...]
    G: Floats
    g: Floats
    prior: Floats

    @property
    def gamma(self) -> float:
        """The least weight of a distance: what is minimised is self-concordant once divided by it."""
        return min((body.gamma for body in self.bodies), default=1.0)

    def objective(self, v: Floats, share: float = 1.0) -> float:
        """What is minimised, a share of all but log det counted; infinite where it is not defined."""
        residual, distance = self.A @ v - self.b, 0.0
        for body in self.bodies:
            eigenvalues = np.linalg.eigvalsh(body.relative(v))
            if eigenvalues[0] <= 0:
                return math.inf
            distance += body.gamma * float(np.sum(share * eigenvalues - np.log(eigenvalues) - 1))
        return float(share * residual @ residual / 2 + distance)

    def rows(self, v: Floats, share: float = 1.0) -> tuple[Floats, Floats]:
        """Rows J (k, n) and r (k,): the objective, a share of it as there, has gradient J^T r and Hessian J^T J."""
        parts = [(self.A, self.A @ v - self.b, share)]
        for body in self.bodies:
            L = np.linalg.cholesky(body.relative(v))
            root = np.linalg.inv(L)
            changes = ten_numbers(np.einsum("ij,jkn,lk->iln", root, symmetric(body.C), root))
            parts.append((changes, ten_numbers(share * L.T @ L - np.eye(4)), body.gamma))
        J = np.vstack([math.sqrt(weight) * rows for rows, _, weight in parts])
        return J, np.concatenate([math.sqrt(weight) * r for _, r, weight in parts])


def solved(problem: MaxdetProblem) -> tuple[Floats, Floats, float]:
    """Coordinates v, multipliers of the bounds, and how far above its least value the objective is at most.

    Raises:
        InputError: nothing keeps all bounds, or no answer was found that is close enough.
    """
    path, decrement = _Path.of(problem), math.inf
    for _ in range(STEPS):
        try:
            last, decrement = decrement, path.step()
        except la.LinAlgError:
            break
        if path.is_at_end and (decrement <= SETTLED or last / 2 < decrement < NEAR):
            break
        if decrement <= NEAR and not path.is_at_end:
            path.go_on()
            decrement = math.inf
    above = excess(problem, path.v, path.y)
    if not above <= CLOSE + CLOSE_SHARE * problem.objective(path.v):
        raise InputError(
            "no inertias that bodies can have were found near what the logs say. Where rows contradict all such by far "
            "more than their deviations, larger deviations help."
        )
    return path.v, path.y, max(above, 0.0)


@dataclass(slots=True, eq=False)
class _Path:
    """A point on the way to the answer: a share of the problem counts, and a barrier keeps bounds that are relaxed.

    Attributes:
        problem: where it ends.
        v, y: primal and dual variables.
        share: of all but log det.
        barrier: weight of minus the logarithm of the distance from each bound.
        relaxed: by how much each bound is.
    """

    problem: MaxdetProblem
    v: Floats
    y: Floats
    share: float
    barrier: float
    relaxed: Floats

    @staticmethod
    def of(problem: MaxdetProblem) -> _Path:
        """The path from the prior on."""
        v, gamma = problem.prior, problem.gamma
        within = problem.G @ v - problem.g
        certain = gamma * (1 + 4 * len(problem.bodies) + len(problem.g))
        share = min(1.0, certain / max(float(np.sum((problem.A @ v - problem.b) ** 2)), certain))
        relaxed = np.maximum(1.0 - within, 0.0)
        return _Path(problem, v, gamma / (within + relaxed), share, gamma, relaxed)

    @property
    def is_at_end(self) -> bool:
        """Whether this is the problem itself, but for rounding."""
        return self.share == 1.0 and self.barrier <= BARRIER * self.problem.gamma and not self.relaxed.any()

    def distances(self, v: Floats) -> Floats:
        """How far v is from each bound (n_bounds,)."""
        return np.asarray(self.problem.G @ v - self.problem.g + self.relaxed)

    def objective(self, v: Floats) -> float:
        """What is minimised here; infinite where it is not defined."""
        s = self.distances(v)
        if s.min(initial=1.0) <= 0:
            return math.inf
        return self.problem.objective(v, self.share) - self.barrier * float(np.sum(np.log(s)))

    def step(self) -> float:
        """Take a step of Newton, halved until it gains enough; its decrement."""
        G, s, n = self.problem.G, self.distances(self.v), len(self.v)
        J, r = self.problem.rows(self.v, self.share)
        roots = np.sqrt(self.y / s)
        stacked = np.vstack([np.column_stack([J, r]), np.column_stack([G * roots[:, None], -self.barrier / s / roots])])
        T = triangular(stacked)
        dv = -la.solve_triangular(T[:n, :n], T[:n, n])
        dy = (self.barrier - self.y * (G @ dv)) / s - self.y
        square = float(np.sum(T[:n, n] ** 2))
        decrement = math.sqrt(square / self.problem.gamma)
        length, now = 1.0, self.objective(self.v)
        while self.objective(self.v + length * dv) > now + ROUNDING * abs(now) - ENOUGH * length * square:
            length = length / 2.0 if length > SHORTEST else 0.0
        self.v = self.v + length * dv
        self.y = np.maximum(self.y + dy, (1.0 - INSIDE) * self.y)
        return decrement

    def go_on(self) -> None:
        """Go to the next problem, whose bounds the point is within.

        Raises:
            InputError: nothing keeps all bounds.
        """
        if self.relaxed.any():
            wide = self.relaxed > 0
            left = 1.0 - INSIDE * float((self.distances(self.v)[wide] / self.relaxed[wide]).min())
            if left > STUCK:
                raise InputError(
                    "no inertias fulfil all constraints: where only some parameters of a link are free, the others may "
                    "keep its centre of mass out of its hull. Identify all ten, or widen the hull."
                )
            self.relaxed = self.relaxed * max(left, 0.0)
        elif self.share < 1.0:
            self.share = min(1.0, AHEAD * self.share)
        else:
            self.barrier /= AHEAD**2


def excess(problem: MaxdetProblem, v: Floats, y: Floats) -> float:
    """Duality gap: how far the objective at an answer is at most above its least value; infinite where that is unknown.

    With multipliers y the Lagrangian f - y (G v - g) is nowhere larger than f where the bounds hold. It is
    self-concordant once divided by the least gamma, so that it is at most gamma w(l) above its least value, with
    w(l) = -l - log(1 - l) and Newton's decrement l < 1.
    """
    try:
        J, r = problem.rows(v)
        to_least = la.solve_triangular(triangular(J), J.T @ r - problem.G.T @ y, trans="T")
    except la.LinAlgError:
        return math.inf
    decrement = float(np.linalg.norm(to_least)) / math.sqrt(problem.gamma)
    slack = float(y @ (problem.G @ v - problem.g))
    return slack + problem.gamma * (-decrement - math.log1p(-decrement)) if decrement < 1 else math.inf

"""A determinant-maximisation problem over inertias and bounded coefficients: solved by Newton's steps, and judged.

    minimise 1/2 |A v - b|^2 + sum of gamma_i d(X_i) over bodies,  X_i = symmetric(C_i v + c_i)

with X_i positive definite, d(X) = tr X - log det X - 4, and bounds G v >= g.

A primal-dual interior-point method begins at the prior, where each X is 1. It relaxes bounds until the prior is well
within them, brings them back, and lets a barrier vanish that keeps X definite and bounds. What it returns is not
believed: the least value of the Lagrangian at its multipliers is a bound from below on the problem, and Newton's
decrement bounds how far that is from the Lagrangian here.

Source: Boyd and Vandenberghe, Convex Optimization, 5.2 for the bound, 9.6 for the decrement and 11 for the method.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import scipy.linalg as la

from nori_dyn.errors import InputError
from nori_dyn.identification.moments import least_squares, triangular
from nori_dyn.identification.physical import symmetric, ten_numbers
from nori_dyn.typing import Floats

CLOSE = 1e-4
"""Excess of the objective that is taken for none: a fiftieth of a standard deviation of any parameter at most."""

CLOSE_SHARE = 1e-7
"""The same as a share of the objective, where rows contradict all bodies by far more than their deviations."""

STEPS = 5000
"""Steps of Newton at most: dozens are usual, thousands where hulls of thousands of faces leave out where priors are."""

NEAR = 0.25
"""Newton's decrement at which the path is followed further."""

AHEAD = 10.0
"""Factor by which the barrier is less in the next part of the path."""

BARRIER = 1e-8
"""Weight of the barrier, as a share of the least gamma, at which it has vanished."""

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

    def objective(self, v: Floats, barrier: float = 0.0) -> float:
        """What is minimised, log det weighing so much more; infinite where it is not defined."""
        residual, distance = self.A @ v - self.b, 0.0
        for body in self.bodies:
            eigenvalues = np.linalg.eigvalsh(body.relative(v))
            if eigenvalues[0] <= 0:
                return math.inf
            logs = (body.gamma + barrier) * np.log(eigenvalues)
            distance += float(np.sum(body.gamma * (eigenvalues - 1) - logs))
        return float(residual @ residual / 2 + distance)

    def rows(self, v: Floats, barrier: float = 0.0) -> tuple[Floats, Floats]:
        """Rows J (k, n) and r (k,): that has the gradient J^T r and the Hessian J^T J."""
        J, r = [self.A], [self.A @ v - self.b]
        for body in self.bodies:
            L, weight = np.linalg.cholesky(body.relative(v)), body.gamma + barrier
            root = np.linalg.inv(L)
            J.append(math.sqrt(weight) * ten_numbers(np.einsum("ij,jkn,lk->iln", root, symmetric(body.C), root)))
            r.append(ten_numbers(body.gamma * L.T @ L - weight * np.eye(4)) / math.sqrt(weight))
        return np.vstack(J), np.concatenate(r)


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
    """A point on the way to the answer: log det weighs more, and a barrier as much keeps bounds that are relaxed.

    Attributes:
        problem: where it ends.
        v, y: primal and dual variables.
        barrier: weight of the barrier.
        relaxed: by how much each bound is.
    """

    problem: MaxdetProblem
    v: Floats
    y: Floats
    barrier: float
    relaxed: Floats

    @staticmethod
    def of(problem: MaxdetProblem) -> _Path:
        """The path from the prior on."""
        v, n = problem.prior, 1 + 4 * len(problem.bodies) + len(problem.g)
        within = problem.G @ v - problem.g
        barrier = max(float(np.sum((problem.A @ v - problem.b) ** 2)) / n, problem.gamma)
        relaxed = np.maximum(1.0 - within, 0.0)
        return _Path(problem, v, barrier / (within + relaxed), barrier, relaxed)

    @property
    def is_at_end(self) -> bool:
        """Whether this is the problem itself, but for rounding."""
        return self.barrier <= BARRIER * self.problem.gamma and not self.relaxed.any()

    def distances(self, v: Floats) -> Floats:
        """How far v is from each bound (n_bounds,)."""
        return np.asarray(self.problem.G @ v - self.problem.g + self.relaxed)

    def objective(self, v: Floats) -> float:
        """What is minimised here; infinite where it is not defined."""
        s = self.distances(v)
        if s.min(initial=1.0) <= 0:
            return math.inf
        return self.problem.objective(v, self.barrier) - self.barrier * float(np.sum(np.log(s)))

    def step(self) -> float:
        """Take a step of Newton, halved until it gains enough; its decrement."""
        G, s = self.problem.G, self.distances(self.v)
        J, r = self.problem.rows(self.v, self.barrier)
        roots = np.sqrt(self.y / s)
        R, z = least_squares(np.vstack([J, G * roots[:, None]]), np.concatenate([r, -self.barrier / s / roots]))
        dv = -la.solve_triangular(R, z)
        dy = (self.barrier - self.y * (G @ dv)) / s - self.y
        square = float(np.sum(z**2))
        decrement = math.sqrt(square / (self.problem.gamma + self.barrier))
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
        else:
            self.barrier /= AHEAD


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

"""A convex problem over inertias and bounded coefficients: told to a solver, and its answer judged.

    minimise 1/2 |A v - b|^2 + gamma sum of d(X_i) over bodies,  X_i = symmetric(C_i v + c_i)

with X_i positive definite, bounds G v >= g, and centres of mass in hulls. The entropic distance is
d = tr X - log det X - 4, the Riemannian one |X - 1|^2 / 2, its second-order part.

What the solver returns is not believed: the least value of the Lagrangian at its multipliers is a bound from below on
the problem, and Newton's decrement bounds how far that is from the Lagrangian here.

Source: Boyd and Vandenberghe, Convex Optimization, 5.2 for the bound and 9.6 for the decrement.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
import scipy.linalg as la

from nori_dyn.errors import InputError
from nori_dyn.identification.physical import symmetric, ten_numbers
from nori_dyn.typing import Floats

Metric: TypeAlias = Literal["entropic", "riemannian"]
"""How far an inertia is from the prior: the entropic divergence, or its second-order part."""

METRICS = ("entropic", "riemannian")

LEAST_INERTIA = 1e-6
"""What X is at least in every direction with the Riemannian metric, which alone lets bodies become flat."""

UNSOLVED = (
    "Clarabel does not solve the problem of inertias that bodies can have. Where rows contradict all such by far more "
    "than their deviations, larger deviations or a larger gamma help it."
)

FULL = symmetric(np.eye(10)).reshape(16, 10)
"""The matrix that makes a symmetric matrix, row by row, of its ten numbers."""


@dataclass(frozen=True, slots=True, eq=False)
class Body:
    """One link: the symmetric matrix of ten numbers C v + c is its inertia X relative to the prior.

    Attributes:
        link: its name.
        C: (10, n).
        c: (10,).
        M: rows that give [m c; m] = M v + m (4, n).
        m: their constants (4,).
        corners: the points p of its hull as columns [p; 1] (4, n_points); None where it has no hull.
    """

    link: str
    C: Floats
    c: Floats
    M: Floats
    m: Floats
    corners: Floats | None

    def relative(self, v: Floats) -> Floats:
        """Return X (4, 4)."""
        return symmetric(self.C @ v + self.c)


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """A problem in coordinates v, which are about 1 large or not much more.

    Attributes:
        A: rows (n_rows, n).
        b: their right-hand side (n_rows,).
        bodies: the links.
        G: rows of bounds G v >= g (n_bounds, n).
        g: their constants (n_bounds,).
        gamma: weight of the distances.
        metric: which distance.
    """

    A: Floats
    b: Floats
    bodies: tuple[Body, ...]
    G: Floats
    g: Floats
    gamma: float
    metric: Metric

    def objective(self, v: Floats) -> float:
        """Return what is minimised; infinite where it is not defined."""
        residual = self.A @ v - self.b
        distance = sum(self._distance(body.relative(v)) for body in self.bodies)
        return float(residual @ residual / 2 + self.gamma * distance)

    def _distance(self, X: Floats) -> float:
        if self.metric == "riemannian":
            return float(np.sum((X - np.eye(4)) ** 2)) / 2
        eigenvalues = np.linalg.eigvalsh(X)
        return float(np.sum(eigenvalues - np.log(eigenvalues) - 1)) if eigenvalues[0] > 0 else math.inf

    def derivatives(self, v: Floats) -> tuple[Floats, Floats]:
        """Return gradient (n,) and Hessian (n, n) of the objective."""
        slope, H = self.A.T @ (self.A @ v - self.b), self.A.T @ self.A
        for body in self.bodies:
            X = body.relative(v)
            root = np.eye(4)
            if self.metric == "entropic":
                eigenvalues, axes = np.linalg.eigh(X)
                root = (axes / np.sqrt(eigenvalues)) @ axes.T
            changes = ten_numbers(np.einsum("ij,jkn,kl->iln", root, symmetric(body.C), root))
            slope += self.gamma * changes.T @ ten_numbers(root @ (X - np.eye(4)) @ np.linalg.inv(root))
            H += self.gamma * changes.T @ changes
        return slope, H


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """What a solver says.

    Attributes:
        v: the coordinates (n,).
        bounds: multipliers of the bounds (n_bounds,).
        hulls: for each body with a hull, those of [m c; m] in the cone of its corners (4,).
        flat: for each body, with the Riemannian metric, those of X >= LEAST_INERTIA (4, 4).
    """

    v: Floats
    bounds: Floats
    hulls: Mapping[str, Floats]
    flat: Mapping[str, Floats]


def solved(problem: Problem) -> Answer:
    """Return Clarabel's answer to a problem.

    Raises:
        InputError: it has none.
    """
    import cvxpy as cp

    v = cp.Variable(problem.A.shape[1])
    cost: Any = cp.sum_squares(problem.A @ v - problem.b) / 2
    at_least = problem.G @ v >= problem.g
    constraints: list[Any] = [at_least]
    in_hulls, not_flat = {}, {}
    for body in problem.bodies:
        numbers = body.C @ v + body.c
        X = cp.reshape(FULL @ numbers, (4, 4), order="C")
        if problem.metric == "entropic":
            cost += problem.gamma * (cp.trace(X) - cp.log_det(X) - 4)
        else:
            cost += problem.gamma / 2 * cp.sum_squares(numbers - ten_numbers(np.eye(4)))
            not_flat[body.link] = X - LEAST_INERTIA * np.eye(4) >> 0
        if body.corners is not None:
            shares = cp.Variable(body.corners.shape[1], nonneg=True)
            in_hulls[body.link] = body.M @ v + body.m - body.corners @ shares == 0
    constraints += [*in_hulls.values(), *not_flat.values()]
    found = cp.Problem(cp.Minimize(cost), constraints)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.solve("CLARABEL")
    except cp.error.SolverError:
        raise InputError(UNSOLVED) from None
    if v.value is None and in_hulls and "infeasible" in found.status:
        raise InputError(
            "no inertias fulfil all constraints: where only some parameters of a link are looked for, the others may "
            "keep its centre of mass out of its hull. Look for all ten, or widen the hull."
        )
    if v.value is None:
        raise InputError(UNSOLVED)
    return Answer(
        v.value,
        np.maximum(at_least.dual_value, 0.0),
        {link: -constraint.dual_value for link, constraint in in_hulls.items()},
        {link: constraint.dual_value for link, constraint in not_flat.items()},
    )


def excess(problem: Problem, answer: Answer) -> float:
    """Return how far the objective at an answer is at most above its least value; infinite where that is unknown.

    With multipliers y the Lagrangian f - y (constraint) is nowhere larger than f where the constraints hold. It is
    self-concordant once divided by gamma, so that it is at most gamma w(l) above its least value, with
    w(l) = -l - log(1 - l) and Newton's decrement l < 1; where it is quadratic, l^2 / 2 above.
    """
    v = answer.v
    if not all(np.linalg.eigvalsh(body.relative(v))[0] > 0 for body in problem.bodies):
        return math.inf
    slope, H = problem.derivatives(v)
    slope -= problem.G.T @ answer.bounds
    slack = float(answer.bounds @ (problem.G @ v - problem.g))
    for body in problem.bodies:
        if body.corners is not None:
            y = answer.hulls[body.link].copy()
            y[3] += max(0.0, -float((body.corners.T @ y).min()))
            slope -= body.M.T @ y
            slack += float(y @ (body.M @ v + body.m))
        if problem.metric == "riemannian":
            eigenvalues, axes = np.linalg.eigh(answer.flat[body.link])
            Y = axes * np.maximum(eigenvalues, 0.0) @ axes.T
            slope -= body.C.T @ ten_numbers(Y)
            slack += float(np.sum(Y * (body.relative(v) - LEAST_INERTIA * np.eye(4))))
    try:
        square = float(slope @ la.cho_solve(la.cho_factor(H), slope))
    except la.LinAlgError:
        return math.inf
    if problem.metric == "riemannian":
        return slack + square / 2
    decrement = math.sqrt(max(square, 0.0) / problem.gamma)
    return slack + problem.gamma * (-decrement - math.log1p(-decrement)) if decrement < 1 else math.inf

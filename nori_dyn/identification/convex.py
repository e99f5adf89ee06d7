"""A determinant-maximisation problem over inertias and bounded coefficients: told to a solver, and its answer judged.

    minimise 1/2 |A v - b|^2 + sum of gamma_i d(X_i) over bodies,  X_i = symmetric(C_i v + c_i)

with X_i positive definite, d(X) = tr X - log det X - 4, bounds G v >= g, and centres of mass in hulls.

What the solver returns is not believed: the least value of the Lagrangian at its multipliers is a bound from below on
the problem, and Newton's decrement bounds how far that is from the Lagrangian here.

Source: Boyd and Vandenberghe, Convex Optimization, 5.2 for the bound and 9.6 for the decrement.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import scipy.linalg as la
import scipy.optimize

from nori_dyn.errors import InputError
from nori_dyn.identification.physical import symmetric, ten_numbers
from nori_dyn.typing import Booleans, Floats

CLOSE = 1e-4
"""Excess of the objective that is taken for none: a fiftieth of a standard deviation of any parameter at most."""

CLOSE_SHARE = 1e-7
"""The same as a share of the objective, where rows contradict all bodies by far more than their deviations."""

UNITS = (1.0, 10.0, 100.0)
"""Units of the coordinates in which the solver is told the problem, one after the other until it solves it."""

STEPS = 30
"""Steps of Newton at most, after which those that still approach the answer are left."""

NEAR = 0.25
"""Newton's decrement up to which a whole step is taken."""

ENOUGH = 0.1
"""Share of what a step of Newton gains at first that it has to gain in all."""

SHORTEST = 1e-12
"""Share of a step of Newton that is not halved any more."""

IN_HULL = 1e-12
"""By how much, of its size, a centre of mass may lie beside its hull."""

SETTLED = 1e-9
"""Newton's decrement at which there is nothing left to gain."""

FULL = symmetric(np.eye(10)).reshape(16, 10)
"""The matrix that makes a symmetric matrix, row by row, of its ten numbers."""


class UnsolvedError(InputError):
    """The solver finds no answer that is close enough."""

    def __init__(self) -> None:
        super().__init__(
            "Clarabel does not solve the problem of inertias that bodies can have. Where rows contradict all such by "
            "far more than their deviations, larger deviations or a larger gamma help it."
        )


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
        gamma: weight of its distance.
    """

    link: str
    C: Floats
    c: Floats
    M: Floats
    m: Floats
    corners: Floats | None
    gamma: float = 1.0

    def relative(self, v: Floats) -> Floats:
        """X (4, 4)."""
        return symmetric(self.C @ v + self.c)


@dataclass(frozen=True, slots=True, eq=False)
class MaxdetProblem:
    """A problem in coordinates v, which are about 1 large or not much more.

    Attributes:
        A: rows (n_rows, n).
        b: their right-hand side (n_rows,).
        bodies: the links.
        G: rows of bounds G v >= g (n_bounds, n).
        g: their constants (n_bounds,).
        lift: changes of v that move one of G v alone (n, n_bounds).
        prior: the prior (n,), which all bodies can have.
    """

    A: Floats
    b: Floats
    bodies: tuple[Body, ...]
    G: Floats
    g: Floats
    lift: Floats
    prior: Floats

    @property
    def gamma(self) -> float:
        """The least weight of a distance: what is minimised is self-concordant once divided by it."""
        return min((body.gamma for body in self.bodies), default=1.0)

    def objective(self, v: Floats) -> float:
        """What is minimised; infinite where it is not defined."""
        residual, distance = self.A @ v - self.b, 0.0
        for body in self.bodies:
            eigenvalues = np.linalg.eigvalsh(body.relative(v))
            if eigenvalues[0] <= 0:
                return math.inf
            distance += body.gamma * float(np.sum(eigenvalues - np.log(eigenvalues) - 1))
        return float(residual @ residual / 2 + distance)

    def derivatives(self, v: Floats) -> tuple[Floats, Floats]:
        """Gradient (n,) and Hessian (n, n) of the objective."""
        slope, H = self.A.T @ (self.A @ v - self.b), self.A.T @ self.A
        for body in self.bodies:
            L = np.linalg.cholesky(body.relative(v))
            root = np.linalg.inv(L)
            changes = ten_numbers(np.einsum("ij,jkn,lk->iln", root, symmetric(body.C), root))
            slope += body.gamma * changes.T @ ten_numbers(L.T @ L - np.eye(4))
            H += body.gamma * changes.T @ changes
        return slope, H


@dataclass(frozen=True, slots=True, eq=False)
class Answer:
    """Primal and dual variables that a solver returns.

    Attributes:
        v: the coordinates (n,).
        bounds: multipliers of the bounds (n_bounds,).
        hulls: for each body with a hull, those of [m c; m] in the cone of its corners (4,).
        at_bounds: the bounds that hold with equality (n_bounds,).
    """

    v: Floats
    bounds: Floats
    hulls: Mapping[str, Floats]
    at_bounds: Booleans


def solved(problem: MaxdetProblem) -> tuple[Answer, float]:
    """Answer to a problem, and how far above the least value its objective is at most.

    Raises:
        InputError: nothing fulfils the constraints.
        UnsolvedError: the solver does not find an answer that is close enough.
    """
    for first in (*(partial(_answer, problem, unit) for unit in UNITS), partial(_prior, problem)):
        answer = first()
        if answer is not None:
            polished = _polished(problem, answer)
            above, answer = min(
                ((excess(problem, each), each) for each in (answer, polished)), key=lambda each: each[0]
            )
            if math.isfinite(above) and above <= CLOSE + CLOSE_SHARE * problem.objective(answer.v):
                return answer, max(above, 0.0)
    raise UnsolvedError


def _answer(problem: MaxdetProblem, unit: float) -> Answer | None:
    """Clarabel's answer to a problem in v / unit and the objective / unit^2, or None.

    Raises:
        InputError: nothing fulfils the constraints.
    """
    import cvxpy as cp

    scaled = cp.Variable(problem.A.shape[1])
    v = unit * scaled
    cost = cp.sum_squares(problem.A @ scaled - problem.b / unit) / 2
    at_least = problem.G @ v >= problem.g
    in_hulls = {}
    for body in problem.bodies:
        X = cp.reshape(FULL @ (body.C @ v + body.c), (4, 4), order="C")
        cost += body.gamma / unit**2 * (cp.trace(X) - cp.log_det(X) - 4)
        if body.corners is not None:
            shares = cp.Variable(body.corners.shape[1], nonneg=True)
            in_hulls[body.link] = body.M @ v + body.m - body.corners @ shares == 0
    found = cp.Problem(cp.Minimize(cost), [at_least, *in_hulls.values()])
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found.solve("CLARABEL", equilibrate_enable=False)
    except cp.error.SolverError:
        return None
    if in_hulls and "infeasible" in found.status:
        raise InputError(
            "no inertias fulfil all constraints: where only some parameters of a link are free, the others may keep "
            "its centre of mass out of its hull. Identify all ten, or widen the hull."
        )
    if v.value is None:
        return None
    multipliers = np.maximum(at_least.dual_value * unit**2, 0.0)
    at_bounds = multipliers * np.sum(problem.G**2, axis=1) > problem.G @ v.value - problem.g
    return Answer(
        _within(problem, v.value, at_bounds),
        multipliers,
        {link: -constraint.dual_value * unit**2 for link, constraint in in_hulls.items()},
        at_bounds,
    )


def _prior(problem: MaxdetProblem) -> Answer | None:
    """The prior, to start from where nothing else is an answer; None where constraints may exclude it."""
    if any(body.corners is not None for body in problem.bodies):
        return None
    nothing = np.zeros(len(problem.g))
    return Answer(_within(problem, problem.prior, nothing > 0), nothing, {}, nothing > 0)


def _within(problem: MaxdetProblem, v: Floats, at_bounds: Booleans) -> Floats:
    """Project v so that some bounds hold with equality, and the others at least."""
    distance = problem.G @ v - problem.g
    within: Floats = v - problem.lift @ np.where(at_bounds, distance, np.minimum(distance, 0.0))
    return within


def _polished(problem: MaxdetProblem, answer: Answer) -> Answer:
    """Answer after steps of Newton along its active bounds; itself where other constraints hold it.

    Where the decrement is not small a step is halved until it gains enough: Boyd and Vandenberghe, 9.6.4.
    """
    v, held = answer.v, problem.G[answer.at_bounds]
    bounds = np.zeros(len(answer.bounds))
    try:
        for _ in range(STEPS):
            slope, H = problem.derivatives(v)
            factor = la.cho_factor(H)
            free, along = la.cho_solve(factor, slope), la.cho_solve(factor, held.T)
            y = np.linalg.solve(held @ along, held @ free)
            step = free - along @ y
            square = max(float(step @ H @ step), 0.0)
            decrement = math.sqrt(square / problem.gamma)
            share, now = 1.0, problem.objective(v)
            while decrement > NEAR and share > SHORTEST:
                if problem.objective(v - share * step) <= now - ENOUGH * share * square:
                    break
                share /= 2.0
            v = v - share * step
            bounds[answer.at_bounds] = np.maximum(y, 0.0)
            if decrement <= SETTLED:
                break
    except (np.linalg.LinAlgError, ValueError):
        return answer
    if not all(_is_in_hull(body, v) for body in problem.bodies):
        return answer
    unused = {link: np.zeros(4) for link in answer.hulls}
    return replace(answer, v=_within(problem, v, answer.at_bounds), bounds=bounds, hulls=unused)


def _is_in_hull(body: Body, v: Floats) -> bool:
    """Whether a centre of mass is in its hull."""
    if body.corners is None:
        return True
    moments = body.M @ v + body.m
    _, off = scipy.optimize.nnls(body.corners, moments)
    return bool(off <= IN_HULL * np.linalg.norm(moments))


def excess(problem: MaxdetProblem, answer: Answer) -> float:
    """Duality gap: how far the objective at an answer is at most above its least value; infinite where that is unknown.

    With multipliers y the Lagrangian f - y (constraint) is nowhere larger than f where the constraints hold. It is
    self-concordant once divided by the least gamma, so that it is at most gamma w(l) above its least value, with
    w(l) = -l - log(1 - l) and Newton's decrement l < 1.
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
    try:
        square = float(slope @ la.cho_solve(la.cho_factor(H), slope))
    except la.LinAlgError:
        return math.inf
    decrement = math.sqrt(max(square, 0.0) / problem.gamma)
    return slack + problem.gamma * (-decrement - math.log1p(-decrement)) if decrement < 1 else math.inf

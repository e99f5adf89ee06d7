"""The parameters that fit a log best among those that bodies can have, and nearest to the prior where it is silent.

    minimise 1/2 |R phi - z|^2 + sum of gamma_i d(P_i || P_0i) over links + 1/2 sum of ((phi_k - phi_0k) / sigma_k)^2

over parameters phi with pseudo-inertias P_i positive definite, coefficients of friction, rotors and springs that are
not negative, gains that are positive, and centres of mass in hulls where those are given. The problem is convex. With
X = L^-1 P L^-T, P_0 = L L^T, the entropic divergence is

    d(P || P_0) = tr X - log det X - 4,

whose second-order part is |X - 1|^2 / 2. The solver is told the problem in standard deviations from the solution that
least squares gives with the latter, without constraints: grams and tonnes are alike to it.

Source: Lee, Wensing and Park, Geometric robot dynamic identification: a convex programming approach, 2020; Wensing, Kim
and Slotine, 2018, for hulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg as la

from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification.convex import Body, MaxdetProblem, UnsolvedError, solved
from nori_dyn.identification.parameters import INERTIAL, Kind, Parameters
from nori_dyn.identification.physical import (
    RelativeInertia,
    mended_prior,
    pull_back,
    relative_inertias,
    ten_numbers,
)
from nori_dyn.io.extras import needed
from nori_dyn.tables import listed
from nori_dyn.typing import Floats, Indices

LEAST: Mapping[Kind, float] = {"viscous": 0.0, "coulomb": 0.0, "mu": 0.0, "rotor": 0.0, "stiffness": 0.0, "gain": 1e-3}
"""Lower bounds of parameters."""

VAGUE: Mapping[Kind, float] = {
    "viscous": 1e2,
    "quadratic": 1e2,
    "coulomb": 1e2,
    "mu": 0.2,
    "rotor": 1e1,
    "stiffness": 1e4,
    "preload": 1e4,
    "offset": 1e3,
    "gain": 1e1,
}
"""Prior deviations [SI] of what is no inertia, unless they are given: far more than the parameters of robots vary."""

FIRST = [1, 2, 3, 0]
"""Where m c and m are among the ten parameters of a link."""

PRESSED = 0.1
"""Standard deviations by which a parameter would be less without its bound, from which it is named as at it."""

POWERS = (1.0, 0.5, 0.0)
"""Powers of the factors by which priors are wider, tried one after the other until the solver solves the problem."""

UNKNOWN = 1e-12
"""Share of a column below which a pivot is none."""


@dataclass(frozen=True, slots=True, eq=False)
class ConsistentFit:
    """Parameters that bodies can have.

    Attributes:
        values: of all parameters (n,).
        excess: no others that bodies can have have an objective lower by more than this.
        at_bounds: names of the parameters at the least that they may be, which the rows would have less.
        notes: where the prior is not that of the model, in sentences.
    """

    values: Floats
    excess: float
    at_bounds: tuple[str, ...]
    notes: tuple[str, ...]


def consistent(
    R: Floats,
    z: Floats,
    parameters: Parameters,
    *,
    gamma: float = 1.0,
    wider: Mapping[str, float] | None = None,
    sigma: Floats | None = None,
    hulls: Mapping[str, Any] | None = None,
) -> ConsistentFit:
    """Physically consistent parameters that fit a log best, near the prior model.

    Parameters of a link that are not free stay as the model gives them.

    Args:
        R: rows R phi = z with deviation 1 (n_rows, n); any number of them, of any rank.
        z: their right-hand side (n_rows,).
        parameters: the parameters phi, with their prior values.
        gamma: weight of the distance of inertias from the prior: 1 / gamma is the square of the share by which they are
            expected to differ from it, so that 1 expects differences as large as the inertias, and 100 of a tenth.
        wider: by how much larger a share is expected of some links.
        sigma: prior deviation of each parameter (n,), of which those of inertias are not looked at; `VAGUE` when None.
        hulls: for links, points (n_points, 3) in the link's frame, in whose convex hull its centre of mass is [m].

    Raises:
        InputError: an argument of the wrong shape or range, constraints that nothing fulfils, or a problem that the
            solver does not solve.
        UnknownNameError: a hull of what is no link.
        MissingExtraError: the extra `identify` is not installed.
    """
    needed("a fit that bodies can have", "identify", "cvxpy", "clarabel")
    R, z, deviations = _checked(R, z, parameters, gamma, sigma)
    corners = _corners(hulls or {}, parameters)
    prior, notes = mended_prior(parameters)
    links, wider = relative_inertias(parameters), dict(wider or {})
    bounded, least = _bounds(parameters)
    others = np.flatnonzero([each.kind not in INERTIAL for each in parameters.each])
    for power in POWERS if wider else POWERS[-1:]:
        weights = {link.link: gamma / wider.get(link.link, 1.0) ** (2 * power) for link in links}
        start, root = _unconstrained(R, z, parameters, prior, deviations, weights)
        T = la.solve_triangular(root, np.eye(len(start)))
        rows = np.vstack([R @ T, T[others] / deviations[others, None]])
        A, b = _fewest(rows, np.concatenate([z - R @ start, (prior - start)[others] / deviations[others]]))
        bodies = tuple(_body(link, start, T, corners.get(link.link), weights[link.link]) for link in links)
        before = root @ (prior - start)
        problem = MaxdetProblem(A, b, bodies, T[bounded], least - start[bounded], root[:, bounded], before)
        try:
            answer, above = solved(problem)
            break
        except UnsolvedError:
            if not power:
                raise
    if wider and power < 1.0:
        notes = (*notes, f"no body is near what the logs say of {listed(wider)}: they are held nearer to the model.")
    values = start + T @ answer.v
    values[bounded] = np.where(answer.at_bounds, least, np.maximum(values[bounded], least))
    pressed = answer.bounds * np.linalg.norm(T[bounded], axis=1) > PRESSED
    return ConsistentFit(values, above, tuple(parameters.names[k] for k in bounded[pressed]), notes)


def _checked(
    R: Floats, z: Floats, parameters: Parameters, gamma: float, sigma: Floats | None
) -> tuple[Floats, Floats, Floats]:
    """Check the rows, their right-hand side and the prior deviations.

    Raises:
        InputError: one of the arguments of `consistent` has the wrong shape or range.
    """
    n = len(parameters)
    if not n:
        raise InputError("there are no parameters to estimate.")
    R, z = np.asarray(R, dtype=float), np.asarray(z, dtype=float)
    if R.ndim != 2 or R.shape[1] != n or z.shape != R.shape[:1]:
        raise InputError(f"R has shape {R.shape} and z {z.shape}, expected (n_rows, {n}) and (n_rows,).")
    if not (np.isfinite(R).all() and np.isfinite(z).all()):
        raise InputError("R or z holds a value that is not finite.")
    if not 0 < gamma < np.inf:
        raise InputError(f"gamma is {gamma}. The weight of the prior inertias must be positive and finite.")
    if sigma is None:
        sigma = np.array([VAGUE.get(each.kind, 1.0) for each in parameters.each])
    sigma = np.asarray(sigma, dtype=float)
    if sigma.shape != (n,) or not (sigma > 0).all():
        raise InputError(f"sigma must be {n} positive deviations, one of each parameter.")
    return R, z, sigma


def _corners(hulls: Mapping[str, Any], parameters: Parameters) -> dict[str, Floats]:
    """Points of each link with a hull, as columns [p; 1] (4, n_points).

    Raises:
        InputError: a hull that is no points, or of a link without parameters that move its centre of mass.
        UnknownNameError: a hull of what is no link.
    """
    movable = {each.owner for each in parameters.each if each.kind in ("m", "mc")}
    found = {}
    for link, points in hulls.items():
        if link not in parameters.tree.names:
            raise UnknownNameError("link", link, parameters.tree.names, "the hulls")
        if link not in movable:
            raise InputError(f"the hull of '{link}' bounds nothing: neither its mass nor its first moments are free.")
        at = np.asarray(points, dtype=float)
        if at.ndim != 2 or at.shape[1] != 3 or not len(at) or not np.isfinite(at).all():
            raise InputError(f"the hull of '{link}' has shape {at.shape}, expected finite points (n_points, 3).")
        found[link] = np.vstack([at.T, np.ones(len(at))])
    return found


def _bounds(parameters: Parameters) -> tuple[Indices, Floats]:
    """Indices of the parameters that have a lower bound, and the bounds."""
    places = np.array(parameters.of_kinds(*LEAST), dtype=np.intp)
    return places, np.array([LEAST[parameters.each[k].kind] for k in places])


def _unconstrained(
    R: Floats, z: Floats, parameters: Parameters, prior: Floats, deviations: Floats, weights: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Least-squares solution (n,) with |X - 1|^2 / 2 for the divergence, and the root (n, n) of its information.

    The solver's coordinates count its standard deviations, v = root (phi - solution).

    Raises:
        InputError: neither the rows nor the prior determine some parameters.
    """
    known = np.diag([0.0 if each.kind in INERTIAL else 1.0 for each in parameters.each]) / deviations[:, None]
    each = np.repeat(np.sqrt([*weights.values()]), 10)
    B = np.vstack([each[:, None] * pull_back(parameters), known])
    root, right = _triangle(np.vstack([R, B]), np.concatenate([z, B @ prior]))
    unknown = np.abs(np.diag(root)) <= UNKNOWN * np.linalg.norm(root, axis=0)
    if unknown.any():
        names = ", ".join(np.array(parameters.names)[unknown])
        raise InputError(f"neither the rows nor the prior determine {names}: give it a finite sigma.")
    return la.solve_triangular(root, right), root


def _body(link: RelativeInertia, start: Floats, T: Floats, corners: Floats | None, gamma: float) -> Body:
    """A link in coordinates v, of which the values are start + T v."""
    C = link.D @ T[link.places]
    c = ten_numbers(link.of(start))
    M, m = np.zeros((10, len(start))), link.prior.copy()
    M[link.which], m[link.which] = T[link.places], start[link.places]
    return Body(link.link, C, c, M[FIRST], m[FIRST], corners, gamma)


def _fewest(A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Rows, (n, n) at most, with the same sum of squares but for a constant."""
    return (A, b) if len(A) <= A.shape[1] else _triangle(A, b)


def _triangle(A: Floats, b: Floats) -> tuple[Floats, Floats]:
    """Upper triangle (n, n) and right-hand side (n,) of rows, n of them at least."""
    n = A.shape[1]
    triangle = np.asarray(la.qr(np.column_stack([A, b]), mode="r")[0], dtype=float)
    return triangle[:n, :n], triangle[:n, n]

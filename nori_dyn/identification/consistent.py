"""The parameters that fit a log best among those that bodies can have, and nearest to the prior where it is silent.

    minimise 1/2 |R phi - z|^2 + sum of gamma_i d(P_i || P_0i) over links + 1/2 sum of ((phi_k - phi_0k) / sigma_k)^2

over parameters phi with pseudo-inertias P_i positive definite, coefficients of friction, rotors and springs that are
not negative, gains that are positive, and centres of mass in hulls where those are given. The problem is convex. With
X = L^-1 P L^-T, P_0 = L L^T, the entropic divergence is

    d(P || P_0) = tr X - log det X - 4,

whose second-order part is |X - 1|^2 / 2. The solver takes the problem in standard deviations from the solution that
least squares gives with the latter, without constraints: grams and tonnes are alike to it.

Bodies are the robot's links, and a load that they carry.

Source: Lee, Wensing and Park, Geometric robot dynamic identification: a convex programming approach, 2020; Wensing, Kim
and Slotine, 2018, for hulls.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
import scipy.linalg as la
from scipy.spatial import ConvexHull, QhullError

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification.convex import Body, MaxdetProblem, solved
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.moments import least_squares
from nori_dyn.identification.parameters import INERTIAL, Kind, Parameters, ten_parameters
from nori_dyn.identification.physical import (
    RelativeInertia,
    mended_prior,
    pull_back,
    relative_inertias,
    ten_numbers,
    ten_of_pseudo_inertia,
    with_known,
)
from nori_dyn.identification.problem import LOAD, IdentificationProblem
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.model.joints import Fixed
from nori_dyn.model.tree import KinematicTree
from nori_dyn.tables import listed, spaced
from nori_dyn.typing import Floats

LEAST: Mapping[Kind, float] = {
    **dict.fromkeys(("viscous", "coulomb", "excess", "mu", "rotor", "stiffness"), 0.0),
    **dict.fromkeys(("stribeck", "gain"), 1e-3),
}
"""Lower bounds of parameters."""

THICK = 1e-9 * np.array([*product((-1.0, 1.0), repeat=3)])
"""Corners (8, 3) [m] of a cube that points of a flat hull are taken for, so that it has faces."""

PRESSED = 0.1
"""Standard deviations by which a parameter would be less without its bound, from which it is named as at it."""

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
    sigma: Floats,
    *,
    wider: Mapping[str, float] | None = None,
    hulls: Mapping[str, Any] | None = None,
) -> ConsistentFit:
    """Physically consistent parameters that fit a log best, near the prior model.

    Parameters of a link that are not free stay as the model gives them.

    Args:
        R: rows R phi = z with deviation 1 (n_rows, n); any number of them, of any rank.
        z: their right-hand side (n_rows,).
        parameters: the parameters phi, with their prior values.
        sigma: prior deviation of each parameter (n,), of which those of inertias are not looked at.
        wider: by how much larger a share than all of it inertias of some links are expected to differ from the prior.
        hulls: for links, points (n_points, 3) in the link's frame, in whose convex hull its centre of mass is [m].

    Raises:
        InputError: a hull of no points, constraints that nothing fulfils, parameters that nothing determines, or a
            problem that is not solved.
        UnknownNameError: a hull of what is no link.
    """
    prior, notes = mended_prior(parameters)
    links, wider = relative_inertias(parameters), wider or {}
    bounded = np.array(parameters.of_kinds(*LEAST), dtype=np.intp)
    least = np.array([LEAST[parameters.each[k].kind] for k in bounded])
    weights = {link.link: 1.0 / wider.get(link.link, 1.0) ** 2 for link in links}
    start, root = _unconstrained(R, z, parameters, prior, sigma, weights)
    T = la.solve_triangular(root, np.eye(len(start)))
    others = np.flatnonzero([each.kind not in INERTIAL for each in parameters.each])
    rows = np.vstack([R @ T, T[others] / sigma[others, None]])
    A, b = least_squares(rows, np.concatenate([z - R @ start, (prior - start)[others] / sigma[others]]))
    bodies = tuple(Body(link.D @ T[link.places], ten_numbers(link.of(start)), weights[link.link]) for link in links)
    W, w = _faces(hulls or {}, parameters, links)
    G, g = np.vstack([np.eye(len(start))[bounded], W]), np.concatenate([least, w])
    G, g = G @ T, g - G @ start
    size = np.maximum(np.linalg.norm(G, axis=1), np.finfo(float).tiny)
    problem = MaxdetProblem(A, b, bodies, G / size[:, None], g / size, root @ (prior - start))
    v, y, above = solved(problem)
    values, pressed = start + T @ v, y[: len(bounded)]
    is_at_bound = pressed > (problem.G @ v - problem.g)[: len(bounded)]
    values[bounded] = np.where(is_at_bound, least, np.maximum(values[bounded], least))
    return ConsistentFit(values, above, tuple(parameters.names[k] for k in bounded[pressed > PRESSED]), notes)


def _faces(hulls: Mapping[str, Any], parameters: Parameters, links: Sequence[RelativeInertia]) -> tuple[Floats, Floats]:
    """Rows W phi >= w (n_faces, n), (n_faces,) of the faces of hulls: a . m c <= d m of each.

    Raises:
        InputError: a hull that is no points, or of a link without parameters that move its centre of mass.
        UnknownNameError: a hull of what is no link.
    """
    movable = {each.owner for each in parameters.each if each.kind in ("m", "mc")}
    found, least = [np.zeros((0, len(parameters)))], [np.zeros(0)]
    for link, points in hulls.items():
        if link not in parameters.tree.names:
            raise UnknownNameError("link", link, parameters.tree.names, "the hulls")
        if link not in movable:
            raise InputError(f"the hull of '{link}' bounds nothing: neither its mass nor its first moments are free.")
        at = np.asarray(points, dtype=float)
        if at.ndim != 2 or at.shape[1] != 3 or not len(at) or not np.isfinite(at).all():
            raise InputError(f"the hull of '{link}' has shape {at.shape}, expected finite points (n_points, 3).")
        own = next(each for each in links if each.link == link)
        try:
            faces = ConvexHull(at).equations
        except QhullError:  # they are flat
            faces = ConvexHull((at[:, None] + THICK).reshape(-1, 3)).equations
        of_ten = np.zeros((len(faces), 10))
        of_ten[:, :4] = -faces[:, [3, 0, 1, 2]]
        rows = np.zeros((len(faces), len(parameters)))
        rows[:, own.places] = of_ten[:, own.which]
        found, least = [*found, rows], [*least, rows[:, own.places] @ own.prior[own.which] - of_ten @ own.prior]
    return np.vstack(found), np.concatenate(least)


def _unconstrained(
    R: Floats, z: Floats, parameters: Parameters, prior: Floats, sigma: Floats, weights: Mapping[str, float]
) -> tuple[Floats, Floats]:
    """Least-squares solution (n,) with |X - 1|^2 / 2 for the divergence, and the root (n, n) of its information.

    The solver's coordinates count its standard deviations, v = root (phi - solution).

    Raises:
        InputError: neither the rows nor the prior determine some parameters.
    """
    known = np.diag([0.0 if each.kind in INERTIAL else 1.0 for each in parameters.each]) / sigma[:, None]
    each = np.repeat(np.sqrt([*weights.values()]), 10)
    B = np.vstack([each[:, None] * pull_back(parameters), known])
    root, right = least_squares(np.vstack([R, B]), np.concatenate([z, B @ prior]))
    unknown = np.abs(np.diag(root)) <= UNKNOWN * np.linalg.norm(root, axis=0)
    if unknown.any():
        names = ", ".join(np.array(parameters.names)[unknown])
        raise InputError(f"neither the rows nor the prior determine {names}: give it a finite sigma.")
    return la.solve_triangular(root, right), root


LEAST_LOAD = 0.05
"""Mass [kg] of a load about which nothing is known, at the least."""

OTHERWISE = "Give another value, or ask for least squares alone: physical=False (--no-physical)."
"""What to do where no body has what is known."""

GYRATION = 0.1
"""[m] Radius of gyration of a load about which nothing is known."""


def check_known(problem: IdentificationProblem) -> None:
    """Check that bodies and joints can have what is known of them.

    Raises:
        InputError: they cannot.
    """
    known = problem.known
    units = {each.name: each.unit for each in problem.all_parameters}
    everything = Parameters(_carrying(problem, problem.tree, np.zeros(len(units))), problem.all_parameters)
    _, impossible = with_known(everything, known)
    for link, names in impossible.items():
        values = spaced(listed(f"{name} = {known[name]:g} {units[name]}" for name in names))
        raise InputError(
            f"no body has these known values of '{link}': {values}. The mass of a body is positive, as are its moments "
            "of inertia about the centre of mass, none of them larger than the sum of the others; parameters that are "
            f"not identified are those of the model. {OTHERWISE}"
        )
    for each in problem.all_parameters:
        least = LEAST.get(each.kind, -math.inf)
        if known.get(each.name, math.inf) < least:
            raise InputError(f"'{each.name}' is known as {known[each.name]:g}, which is below {least:g}. {OTHERWISE}")


def with_load(problem: IdentificationProblem, plain: Floats) -> Parameters:
    """Free parameters, of a robot that has the load as a link of its own.

    The load has no prior of its own: the mass and centre by least squares stand for one, with some extent.

    Args:
        problem: the parameters.
        plain: all parameters by least squares (n,).
    """
    n = len(problem.parameters)
    robot = problem.tree.replace(I=problem.parameters.inertias(problem.before[:n]))
    return Parameters(_carrying(problem, robot, plain), tuple(problem.all_parameters[k] for k in problem.free))


def consistent_estimate(
    problem: IdentificationProblem, solution: Solution, hulls: Mapping[str, Any] | None = None
) -> tuple[Floats, tuple[str, ...]]:
    """All parameters (n,), inertias physically consistent, and notes.

    Args:
        problem: the parameters.
        solution: the estimate by least squares.
        hulls: as for `consistent`.

    Raises:
        InputError, UnknownNameError, MissingExtraError: as `consistent`.
    """
    parameters, prior = with_load(problem, problem.whole(solution.values)), solution.prior
    shift = prior.values - parameters.prior
    shift[parameters.of_kinds(*INERTIAL)] = 0.0
    sizes = 1.0 / np.linalg.norm(prior.L, axis=0)
    z = solution.z - solution.R @ shift
    fit = consistent(solution.R, z, parameters, sizes, wider=prior.factors, hulls=hulls)
    at_least = (f"At their lower bounds: {', '.join(fit.at_bounds)}.",) if fit.at_bounds else ()
    return problem.whole(fit.values + shift), (*fit.notes, *at_least)


def _carrying(problem: IdentificationProblem, tree: KinematicTree, plain: Floats) -> KinematicTree:
    """Robot with the load as a link of its own, where there is one, of what is known of it."""
    if problem.load_on is None:
        return tree
    tree = _tree_with_load(tree, tree.link(problem.load_on), plain[len(problem.parameters) :])
    load = Parameters(tree, ten_parameters(LOAD))
    values, _ = with_known(load, {name: value for name, value in problem.known.items() if name in load.place})
    return tree.replace(I=load.inertias(values))


def _tree_with_load(tree: KinematicTree, i: int, ten: Floats) -> KinematicTree:
    """Robot with a load of about these ten parameters, fixed to a link."""
    m = max(float(ten[0]), LEAST_LOAD)
    c = np.clip(ten[1:4] / m, -1.0, 1.0)
    P = np.zeros((4, 4))
    P[:3, :3] = m * (np.outer(c, c) + GYRATION**2 * np.eye(3))
    P[:3, 3] = P[3, :3] = m * c
    P[3, 3] = m
    return tree.replace(
        names=(*tree.names, LOAD),
        joint_names=(*tree.joint_names, f"{LOAD} on {tree.names[i]}"),
        parents=(*tree.parents, i),
        joints=(*tree.joints, Fixed()),
        X_tree=(*tree.X_tree, Transform.identity()),
        I=np.concatenate([tree.I, inertia_of_ten(ten_of_pseudo_inertia(P))[None]]),
    )

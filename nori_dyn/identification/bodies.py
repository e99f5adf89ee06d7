"""The estimate as bodies can have it: of the robot's links, and of a load that they carry."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import InputError
from nori_dyn.identification.consistent import LEAST, consistent
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.parameters import INERTIAL, Parameters, ten_parameters
from nori_dyn.identification.physical import ten_of_pseudo_inertia, with_known
from nori_dyn.identification.problem import LOAD, IdentificationProblem
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.model.joints import Fixed
from nori_dyn.model.tree import KinematicTree
from nori_dyn.tables import listed, spaced
from nori_dyn.typing import Floats

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

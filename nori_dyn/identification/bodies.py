"""The estimate as bodies can have it: of the robot's links, and of a load that they carry."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.identification.consistent import consistent
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.parameters import INERTIAL, Parameters, inertia_of
from nori_dyn.identification.physical import ten_of_pseudo_inertia
from nori_dyn.identification.prior import Prior
from nori_dyn.identification.problem import LOAD, Problem
from nori_dyn.model.joints import Fixed
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

LEAST_LOAD = 0.05
"""Mass [kg] of a load about which nothing is known, at the least."""

GYRATION = 0.1
"""[m] Radius of gyration of a load about which nothing is known."""


def bodies(problem: Problem, plain: Floats) -> Parameters:
    """Return the parameters that are looked for, of a robot that has the load as a link of its own.

    Of the load nothing is known before: what least squares say of its mass and centre stands for that, and some extent.

    Args:
        problem: what is looked for.
        plain: all parameters by least squares (n,).
    """
    n = len(problem.parameters)
    tree = problem.tree.replace(I=problem.parameters.inertias(problem.before[:n]))
    if problem.load_on is not None:
        tree = _with_load(tree, tree.link(problem.load_on), plain[n:])
    return Parameters(tree, tuple(problem.all_parameters[k] for k in problem.free))


def as_bodies(
    problem: Problem, prior: Prior, solution: Solution, hulls: Mapping[str, Any] | None = None
) -> tuple[Floats, tuple[str, ...]]:
    """Return all parameters (n,), inertias as bodies can have them, and notes.

    Args:
        problem: what is looked for.
        prior: what was known before.
        solution: the estimate by least squares.
        hulls: as for `consistent`.

    Raises:
        InputError, UnknownNameError, MissingExtraError: as `consistent`.
    """
    parameters = bodies(problem, problem.whole(solution.values))
    shift = prior.values - parameters.prior
    shift[parameters.of_kinds(*INERTIAL)] = 0.0
    sizes = 1.0 / np.linalg.norm(prior.L, axis=0)
    fit = consistent(solution.R, solution.z - solution.R @ shift, parameters, sigma=sizes, hulls=hulls)
    at_least = (f"At the least that they may be: {', '.join(fit.at_bounds)}.",) if fit.at_bounds else ()
    return problem.whole(fit.values + shift), (*fit.notes, *at_least)


def _with_load(tree: KinematicTree, i: int, ten: Floats) -> KinematicTree:
    """Return a robot with a load of about these ten parameters, fixed to a link."""
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
        I=np.concatenate([tree.I, inertia_of(ten_of_pseudo_inertia(P))[None]]),
    )

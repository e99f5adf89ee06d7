"""Articulated-body inertias, from the leaves to the root: shared by ABA, hybrid dynamics, Minv and Nori's W^L, W^R.

Source: RBDA ch. 7.2, 7.3; Nori (12).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from nori_dyn.algebra.spatial import add, matmul, transpose
from nori_dyn.errors import NotPositiveDefiniteError, SingularSystemError
from nori_dyn.model.kinematics import Kinematics
from nori_dyn.recursions.factorisation import inverse
from nori_dyn.recursions.joint_terms import joint_terms
from nori_dyn.typing import Array

LEAST_INERTIA = 1e-12
"""[kg m^2 or kg] What is closer to zero is that up to rounding: a joint that moves no inertia."""


@dataclass(frozen=True, slots=True, eq=False)
class ArticulatedBodies:
    """The articulated-body inertias of a tree, for each body.

    Attributes:
        IA: the inertia (6, 6, ...) that a force on the body feels.
        U: I^A S (6, n_i, ...).
        D_inverse: (S^T I^A S + J)^-1 (n_i, n_i, ...), with J of the joint's rotor.
        Ia: the part of I^A across the joint (6, 6, ...): all of it where the joint's acceleration is given.
    """

    IA: tuple[Array, ...]
    U: tuple[Array, ...]
    D_inverse: tuple[Array, ...]
    Ia: tuple[Array, ...]


def articulated_bodies(at: Kinematics, I: list[Array], accelerated: Collection[int] = ()) -> ArticulatedBodies:
    """The articulated-body inertias.

    Args:
        at: the kinematics.
        I: the inertias of the bodies.
        accelerated: numbers of the joints whose acceleration is given, which move no inertia of their own accord.

    Raises:
        SingularSystemError: a joint moves no inertia, or one below zero.

    Source: Nori (12); RBDA (7.44)-(7.45), (9.12); ch. 9.6 for rotors.
    """
    tree, J = at.tree, joint_terms(at.tree).J
    IA = list(I)
    U, D_inverse, Ia = (list(I) for _ in range(3))
    for i in reversed(range(tree.n_links)):
        U[i] = matmul(IA[i], at.S[i])
        if i in accelerated:
            Ia[i] = IA[i]
        else:
            v = tree.v_slices[i]
            D = add(matmul(transpose(at.S[i]), U[i]), J[v, v])
            D_inverse[i] = _inverse(D, tree.joint_names[i])
            Ia[i] = IA[i] - matmul(matmul(U[i], D_inverse[i]), transpose(U[i]))
        if not tree.is_root(i):
            IA[tree.parents[i]] = IA[tree.parents[i]] + at.X_up[i].form_to_parent(Ia[i])
    return ArticulatedBodies(tuple(IA), tuple(U), tuple(D_inverse), tuple(Ia))


def no_inertia(joint: str, pivot: float = 0.0) -> SingularSystemError:
    """The error of a joint, by its name, that moves no inertia, or one below zero [kg m^2 or kg]."""
    if pivot < -LEAST_INERTIA:
        message = (
            f"joint '{joint}' moves an inertia below zero ({pivot:.3g}): that of a link beyond it is none that a body "
            "can have, and forward dynamics has no meaning. Correct it, or load the robot with inertias='nearest'."
        )
    else:
        message = (
            f"joint '{joint}' moves no inertia: its links have no mass, or none that it can move, so that its "
            "acceleration is not determined. Give the links an inertia, or lock the joint."
        )
    return SingularSystemError(message, (f"qdd:{joint}",))


def _inverse(D: Array, joint: str) -> Array:
    try:
        return inverse(D)
    except NotPositiveDefiniteError as error:
        raise no_inertia(joint, error.pivot) from None
    except ZeroDivisionError:
        raise no_inertia(joint) from None

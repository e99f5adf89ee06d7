"""Physical consistency of rigid-body inertias: the check, the nearest consistent one, and messages."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, TypeAlias, get_args

import numpy as np

from nori_dyn.algebra.spatial import Transform, blocks, skew
from nori_dyn.errors import ModelError, NoriWarning
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Array, Floats

Inertias: TypeAlias = Literal["as_given", "nearest", "refuse"]
"""What is made of an inertia that no distribution of mass has: taken with a warning, replaced by the nearest one that
some distribution has, or refused."""

TOLERANCE = 1e-9
"""Relative to the largest principal moment: the rounding of a decimal file does not make a body indefinite."""

SMALLEST_GYRATION = 1e-3
"""[m] Moments are compared with those of a body of this radius of gyration at least: a point mass has none."""

MOST_LINKS = 8
"""Links that a message lists; others are counted."""


@dataclass(frozen=True, slots=True)
class LinkData:
    """A link as a file gives it.

    Attributes:
        name: its name.
        mass: [kg].
        com: centre of mass (3,) [m] in link coordinates.
        I_com: rotational inertia (3, 3) about the centre of mass [kg m^2], in link axes.
        frames: frames fixed to the link, as transforms from its coordinates.
    """

    name: str
    mass: float = 0.0
    com: Floats = field(default_factory=lambda: np.zeros(3))
    I_com: Floats = field(default_factory=lambda: np.zeros((3, 3)))
    frames: Mapping[str, Transform] = field(default_factory=dict)


def inertia_of_ten(ten: Sequence[Any] | Array) -> Array:
    """Spatial inertia (6, 6, ...) of the ten parameters (10, ...) of a link, over any scalar.

    Source: RBDA (2.63).
    """
    m, x, y, z, xx, xy, yy, xz, yz, zz = ten
    h = skew(np.array([x, y, z]))
    zero = m * 0
    mass = np.array([[m, zero, zero], [zero, m, zero], [zero, zero, m]])
    return blocks(np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]), h, -h, mass)


def physical_links(links: Sequence[LinkData], inertias: Inertias) -> tuple[list[LinkData], list[LinkData]]:
    """The links to make a tree of, and those whose inertia no distribution of mass has, as they were given.

    Args:
        links: links as a file gives them.
        inertias: with "nearest", the links to make a tree of have the nearest inertia that some distribution has.

    Raises:
        ModelError: another treatment; a value that is not finite, a negative mass, an unsymmetric inertia; with
            "refuse", also an inertia that no distribution of mass has.
    """
    if inertias not in get_args(Inertias):
        raise ModelError(f"inertias must be 'as_given', 'nearest' or 'refuse', not {inertias!r}.")
    odd = [link for link in links if not check_inertia(link.name, link.mass, link.com, link.I_com)]
    if odd and inertias == "refuse":
        raise ModelError(f"{_not_physical(odd)} Correct them, or load with inertias='nearest' (--inertias nearest).")
    if inertias == "nearest":
        unreal = {id(link) for link in odd}
        links = [replace(link, I_com=nearest_physical(link.I_com)) if id(link) in unreal else link for link in links]
    return list(links), odd


def warn_of_links(odd: Sequence[LinkData], tree: KinematicTree, file: str, stacklevel: int) -> None:
    """Warn of links whose inertia no distribution of mass has, and of its effect on the tree that they are in.

    Args:
        odd: the links, as they were given.
        tree: the tree.
        file: where they are from; "" where there is no file.
        stacklevel: that of `warnings.warn`, if the caller called it.
    """
    eigenvalues = np.linalg.eigvalsh(tree.I)
    is_hurt = eigenvalues[:, 0] < -TOLERANCE * eigenvalues[:, -1]
    hurt = [f"'{name}'" for name, is_it in zip(tree.names, is_hurt, strict=True) if is_it]
    effect = (
        f"the inertia of {first_few(hurt)}, with all that is fixed to it, is below zero about some axis: inverse "
        "dynamics follows the numbers, and forward dynamics may have no meaning"
        if hurt
        else "the equations of motion still hold"
    )
    warnings.warn(
        f"{file}{': ' if file else ''}{_not_physical(odd)} They are taken as they are, and {effect}. Correct them, or "
        "load with inertias='nearest' (--inertias nearest), which takes the nearest that some distribution has.",
        NoriWarning,
        stacklevel=stacklevel + 1,
    )


def notes_on_links(odd: Sequence[LinkData]) -> list[str]:
    """Notes on links that were given the nearest physically consistent inertia."""
    changes = [
        f"'{link.name}' ({principal_moments(link.I_com)} to {principal_moments(nearest_physical(link.I_com))})"
        for link in odd
    ]
    return [f"nearest physical principal moments [kg m^2] taken: {first_few(changes)}"] if odd else []


def check_inertia(link: str, mass: float, com: Floats, I_com: Floats) -> bool:
    """Check a body's mass and inertia; return whether some distribution of mass has it.

    Args:
        link: name of the link, for messages.
        mass: [kg].
        com: centre of mass (3,) [m].
        I_com: rotational inertia (3, 3) about the centre of mass [kg m^2].

    Returns:
        Whether the principal moments keep the triangle inequality: the largest is at most the sum of the others, so
        that none is negative either.

    Raises:
        ModelError: a value that is not finite, a negative mass, an unsymmetric inertia.
    """
    if not (np.isfinite(mass) and np.isfinite(com).all() and np.isfinite(I_com).all()):
        raise ModelError(f"link '{link}': its mass, centre of mass or inertia holds a value that is not finite.")
    if mass < 0:
        raise ModelError(f"link '{link}': its mass is {mass:g} kg. A mass must be zero or positive.")
    if not np.allclose(I_com, I_com.T, rtol=0, atol=TOLERANCE * np.abs(I_com).max()):
        raise ModelError(f"link '{link}': its rotational inertia is not symmetric.")
    least, middle, most = np.linalg.eigvalsh(I_com)
    slack = TOLERANCE * max(most, mass * SMALLEST_GYRATION**2)
    return bool(most <= least + middle + slack)


def nearest_physical(I_com: Floats, least: float = 0.0) -> Floats:
    """The rotational inertia (3, 3) nearest to one, of those that some distribution of mass has [kg m^2].

    Nearest in the Frobenius norm of the pseudo-inertia about the centre of mass, diag(Σ, m) with Σ = tr(I)/2 1 - I the
    second moments of the mass: it is physical where it is positive semidefinite, and projected on that cone by taking
    its negative eigenvalues as zero. Mass, centre of mass and principal axes stay as they are.

    Args:
        I_com: rotational inertia (3, 3) about the centre of mass, symmetric [kg m^2].
        least: second moment of the mass that is left along every axis [kg m^2].

    Source: the pseudo-inertia of Wensing, Kim and Slotine, Linear matrix inequalities for physically consistent
    inertial parameter identification, 2018; the projection of Higham, Computing a nearest symmetric positive
    semidefinite matrix, 1988.
    """
    moments, axes = np.linalg.eigh(second_moments(I_com))
    S = axes * np.maximum(moments, least) @ axes.T
    return rotational_inertia((S + S.T) / 2)


def second_moments(I: Floats) -> Floats:
    """The second moments of the mass Σ = tr(I)/2 1 - I (3, 3) of a rotational inertia I (3, 3)."""
    S: Floats = np.trace(I) / 2 * np.eye(3) - I
    return S


def rotational_inertia(S: Floats) -> Floats:
    """The rotational inertia I = tr(Σ) 1 - Σ (3, 3) of second moments of the mass Σ (3, 3)."""
    I: Floats = np.trace(S) * np.eye(3) - S
    return I


def principal_moments(I_com: Floats) -> str:
    """The principal moments of a rotational inertia (3, 3) in words, rising."""
    moments = np.linalg.eigvalsh(I_com)
    rounded = np.where(np.abs(moments) <= TOLERANCE * np.abs(moments).max(), 0.0, moments)
    return ", ".join(f"{moment:.4g}" for moment in rounded)


def _not_physical(odd: Sequence[LinkData]) -> str:
    """A sentence with the inertias that no distribution of mass has, and why."""
    shown = [f"'{link.name}' ({principal_moments(link.I_com)} kg m^2)" for link in odd]
    return (
        f"no distribution of mass has the principal moments of inertia of {first_few(shown)}: none may be negative, or "
        "larger than the sum of the others."
    )


def first_few(what: Sequence[str]) -> str:
    """What a message lists: the first, and how many more there are."""
    more = len(what) - MOST_LINKS
    return ", ".join(what[:MOST_LINKS]) + (f" and {more} more" if more > 0 else "")

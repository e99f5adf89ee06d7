"""Robots as an identification leaves them, and what of a file may be otherwise then."""

import re
import warnings
from typing import Any

import numpy as np

import nori_dyn as nd
from nori_dyn.algebra.spatial import rigid_parts, spatial_inertia
from nori_dyn.errors import NoriWarning
from nori_dyn.identification.parameters import Parameters, ten_of
from nori_dyn.model.tree import KinematicTree

INERTIAL = re.compile(rb"\s*<inertial\b[^>]*(?:/>|>.*?</inertial>)", re.DOTALL)
DYNAMICS = re.compile(rb"\s*<dynamics\b[^>]*/>")


def loaded(robot: Any, **options: Any) -> KinematicTree:
    """A robot; what is odd in its file is let pass."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        return nd.load_robot(robot, **options)


def heavier(tree: KinematicTree, link: str, scale: float) -> KinematicTree:
    """A robot of which one link is heavier."""
    I = tree.I.copy()
    I[tree.link(link)] *= scale
    return tree.replace(I=I)


def corrected(tree: KinematicTree, seed: int, share: float = 1.0, joints: bool = True) -> KinematicTree:
    """A robot of which some bodies are heavier, as if parts were added, and all joints have other coefficients.

    Args:
        tree: the robot.
        seed: of what is random.
        share: of the bodies.
        joints: whether what acts on joints changes.
    """
    rng = np.random.default_rng(seed)
    parameters = Parameters.of(tree, ["inertias", *(["friction", "rotors"] if joints else [])])
    values = parameters.prior.copy()
    for i, places in parameters.links().items():
        m = tree.I[i, 5, 5]
        if m and rng.random() < share:
            values[places] += ten_of(_part(rng, m))
    others = parameters.of_kinds("viscous", "coulomb", "rotor")
    values[others] = values[others] * rng.uniform(0.5, 1.5, len(others)) + rng.uniform(0.1, 1.0, len(others))
    return parameters.applied(values)


def _part(rng: np.random.Generator, m: float) -> Any:
    """The inertia (6, 6) of twenty points of mass, lighter than what they are on."""
    points = rng.normal(scale=0.05, size=(20, 3))
    masses = rng.uniform(0.5, 1.0, 20) * m / 100
    return sum(spatial_inertia(mass, point, np.zeros((3, 3))) for mass, point in zip(masses, points, strict=True))


def difference(I: Any, other: Any) -> float:
    """The largest relative difference of spatial inertias (..., 6, 6): of masses, first and second moments."""
    worst = 0.0
    for one, two in zip(np.reshape(I, (-1, 6, 6)), np.reshape(other, (-1, 6, 6)), strict=True):
        (J, h, m), (J2, h2, m2) = rigid_parts(one), rigid_parts(two)
        sizes = np.abs(J).max(), np.sqrt(m * np.abs(J).max()), m
        for a, b, size in zip((J, h, m), (J2, h2, m2), sizes, strict=True):
            gap = float(np.abs(np.asarray(a) - b).max())
            worst = max(worst, gap / size if size else gap)
    return worst


def without(content: bytes, *patterns: re.Pattern[bytes]) -> bytes:
    """A file without what may be otherwise; an element that holds nothing else is as if it had no end tag."""
    for pattern in patterns:
        content = pattern.sub(b"", content)
    content = re.sub(rb"<(\w+)([^<>]*[^<>/\s])\s*>\s*</\1>", rb"<\1\2/>", content)
    return re.sub(rb"\s+/>", b"/>", content)

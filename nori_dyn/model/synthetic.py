"""Robots that nobody built: Featherstone's autoTree, and random trees that mix all joints."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.errors import ModelError, UnknownModelNameError
from nori_dyn.model.joints import JOINTS, Fixed, Helical, Joint, Revolute, axis_rotation
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.typing import Floats


def autotree(n: int, branching: float = 1.0, skew: float = 0.0, taper: float = 1.0) -> KinematicTree:
    """Featherstone's synthetic tree of n revolute joints about z.

    Link i is a thin-walled tube along x, of length taper^i and radius a twentieth of that; link 0 weighs 1 kg.

    Args:
        n: number of links.
        branching: mean number of children; 1 is a chain, 2 a binary tree.
        skew: angle between the axes of a joint and the next [rad].
        taper: ratio of the lengths of a link and its parent.

    Source: Featherstone, spatial_v2, autoTree; RBDA ch. 10.

    Example:
        >>> tree = nd.autotree(7, branching=2)
        >>> tree.parents
        (-1, 0, 0, 1, 1, 2, 2)
    """
    if n < 1 or not (1 <= branching < math.inf) or not math.isfinite(skew) or not (0 < taper < math.inf):
        raise ModelError(
            f"autotree(n={n}, branching={branching}, skew={skew}, taper={taper}): "
            "n and branching must be at least 1, skew finite and taper positive."
        )
    parents = [math.floor((i - 1 + math.ceil(branching)) / branching) - 1 for i in range(n)]
    lengths = [taper**i for i in range(n)]
    turn = axis_rotation((1.0, 0.0, 0.0), skew)
    X_tree, I = [], []
    for i, parent in enumerate(parents):
        if parent == WORLD:
            X_tree.append(Transform.identity())
        else:
            X_tree.append(Transform(turn, np.array([lengths[parent], 0.0, 0.0])))
        mass, length = taper ** (3 * i), lengths[i]
        I_com = mass * length**2 * np.diag([0.0025, 1.015 / 12, 1.015 / 12])
        I.append(spatial_inertia(mass, np.array([length / 2, 0.0, 0.0]), I_com))
    return KinematicTree(
        name=f"autotree({n}, {branching:g}, {skew:g}, {taper:g})",
        names=tuple(f"link{i + 1}" for i in range(n)),
        joint_names=tuple(f"joint{i + 1}" for i in range(n)),
        parents=tuple(parents),
        joints=(Revolute(),) * n,
        X_tree=tuple(X_tree),
        I=np.array(I),
    )


def random_tree(
    n: int, seed: int, kinds: Sequence[str] | None = None, aligned: float = 0.5, chain: float = 0.5
) -> KinematicTree:
    """A random tree of n links.

    Args:
        n: number of links.
        seed: seed of everything random.
        kinds: kinds of joints to draw from; all that move when None.
        aligned: share of the joints whose axis is a coordinate axis.
        chain: probability that a link hangs on the one before it, instead of on any earlier one.

    Source: own; a generator for tests.

    Example:
        >>> tree = nd.tools.random_tree(4, seed=0, kinds=["revolute", "spherical"])
        >>> [joint.kind for joint in tree.joints], tree.nq, tree.nv
        (['revolute', 'revolute', 'revolute', 'spherical'], 7, 6)
    """
    rng = np.random.default_rng(seed)
    kinds = tuple(kind for kind in JOINTS if kind != Fixed.kind) if kinds is None else tuple(kinds)
    for kind in kinds:
        if kind not in JOINTS:
            raise UnknownModelNameError("kind of joint", kind, JOINTS)
    parents = [WORLD, *(i - 1 if rng.random() < chain else int(rng.integers(0, i)) for i in range(1, n))]
    return KinematicTree(
        name=f"random_tree({n}, {seed})",
        names=tuple(f"link{i + 1}" for i in range(n)),
        joint_names=tuple(f"joint{i + 1}" for i in range(n)),
        parents=tuple(parents),
        joints=tuple(_random_joint(rng, str(rng.choice(kinds)), aligned) for _ in range(n)),
        X_tree=tuple(Transform(_random_rotation(rng), rng.normal(size=3) / 2) for _ in range(n)),
        I=np.array([_random_inertia(rng) for _ in range(n)]),
    )


def _random_joint(rng: np.random.Generator, kind: str, aligned: float) -> Joint:
    if kind not in ("revolute", "continuous", "prismatic", "helical", "cylindrical"):
        return JOINTS[kind]()
    if rng.random() < aligned:
        axis = np.eye(3)[rng.integers(3)]
    else:
        axis = rng.normal(size=3)
        axis /= np.linalg.norm(axis)
    x, y, z = map(float, axis)
    if kind == "helical":
        return Helical((x, y, z), pitch=float(rng.normal()) / 5)
    return JOINTS[kind]((x, y, z))  # type: ignore[call-arg]


def _random_rotation(rng: np.random.Generator) -> Floats:
    Q, R = np.linalg.qr(rng.normal(size=(3, 3)))
    Q = Q * np.sign(np.diag(R))
    return np.asarray(Q * np.linalg.det(Q))


def _random_inertia(rng: np.random.Generator) -> Floats:
    """The inertia of six random point masses, which is physical."""
    points, masses = rng.normal(size=(6, 3)) / 5, rng.uniform(0.1, 1.0, size=6)
    com = masses @ points / masses.sum()
    arms = points - com
    I_com = sum(mass * (arm @ arm * np.eye(3) - np.outer(arm, arm)) for mass, arm in zip(masses, arms, strict=True))
    return spatial_inertia(float(masses.sum()), com, np.asarray(I_com))

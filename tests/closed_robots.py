"""Small robots with components, for tests of what comes after the system: loops that repeat themselves, and others."""

import numpy as np
from pydantic import ValidationError

from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.components import Coupling, Friction, Loop, Rotor, Spring, Tendon
from nori_dyn.model.closure import gap_rate
from nori_dyn.model.joints import FORCE, Revolute
from nori_dyn.model.kinematics import link_transforms, positions, world_transforms
from nori_dyn.model.paths import path
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import Frame, KinematicTree

LENGTHS = {"crank": 0.4, "coupler": 0.9, "rocker": 0.7}
GROUND = 1.0
ENDS = ("middle", "end")
FAR_FROM_SINGULAR = 0.05


def shifted(x: float) -> Transform:
    return Transform(np.eye(3), np.array([x, 0.0, 0.0]))


def rod(mass: float, length: float) -> np.ndarray:
    """The inertia of a rod from its origin along x."""
    I_com = mass * length**2 * np.diag([1 / 900, 0.99 / 12, 0.99 / 12])
    return spatial_inertia(mass, np.array([length / 2, 0.0, 0.0]), I_com)


def four_bar(constrains: object = "hinge", ground: float = GROUND) -> KinematicTree:
    """A planar four-bar in space: all axes are z, and the loop holds what a hinge holds."""
    return KinematicTree(
        name="four_bar",
        names=tuple(LENGTHS),
        joint_names=("crank_joint", "elbow", "rocker_joint"),
        parents=(-1, 0, -1),
        joints=(Revolute(),) * 3,
        X_tree=(shifted(0.0), shifted(LENGTHS["crank"]), shifted(ground)),
        I=np.array([rod(length, length) for length in LENGTHS.values()]),
        frames={f"{name}_end": Frame(i, shifted(length)) for i, (name, length) in enumerate(LENGTHS.items())},
        components=(Loop(name="bar", frames=["coupler_end", "rocker_end"], constrains=constrains),),
    )


def parallel_cranks() -> KinematicTree:
    """Three parallel cranks on one bar: where they are closed the third one says what the others say."""
    crank, bar = rod(0.4, 0.4), rod(1.0, 1.0)
    middle, end = (Loop(name=name, frames=[f"{name}_on_bar", f"{name}_tip"], constrains=["fx", "fy"]) for name in ENDS)
    return KinematicTree(
        name="parallel_cranks",
        names=("crank", "bar", *ENDS),
        joint_names=("crank_joint", "pin", *(f"{name}_joint" for name in ENDS)),
        parents=(-1, 0, -1, -1),
        joints=(Revolute(),) * 4,
        X_tree=(shifted(0.0), shifted(0.4), shifted(0.5), shifted(1.0)),
        I=np.array([crank, bar, crank, crank]),
        frames={
            **{f"{name}_on_bar": Frame(1, shifted(x)) for name, x in zip(ENDS, (0.5, 1.0), strict=True)},
            **{f"{name}_tip": Frame(2 + k, shifted(0.4)) for k, name in enumerate(ENDS)},
        },
        components=(middle, end),
    )


def robot_with_all_components() -> KinematicTree:
    """An arm of two limbs with one component of each kind, at least, and a loop that can be closed."""
    tree = random_tree(7, seed=6, kinds=("revolute", "prismatic"))
    tree = tree.replace(parents=(-1, 0, 0, 1, 1, 2, 2))
    X = random_tree(2, seed=5).X_tree
    q = np.linspace(-0.6, 0.8, tree.nq)
    frames = {"tool": Frame(3, X[0]), "palm": Frame(6, X[1])}
    frames["grip"] = _frame_that_meets(tree, q, Frame(4, X[0]), 5)
    frames["hold"] = Frame(4, X[0])
    return tree.replace(
        name="components",
        frames=frames,
        components=(
            Rotor(joints="all", inertia=1e-4, gear=30.0),
            Friction(joints="all", viscous=0.1, coulomb=0.2, width=0.1),
            Spring(joints="joint3", stiffness=4.0),
            Coupling(name="belt", joint="joint7", of={"joint4": -0.5}),
            Loop(name="bar", frames=["hold", "grip"], constrains=["fx", "fz"]),
            Tendon(name="cable", through=["tool", "palm"]),
        ),
    )


def _frame_that_meets(tree: KinematicTree, q: np.ndarray, frame: Frame, link: int) -> Frame:
    """The frame on a link, or on the world, that is where another one is at a configuration."""
    X_0 = world_transforms(tree, link_transforms(tree, q))
    return Frame(link, frame.X @ X_0[frame.link] @ X_0[link].inverse())


def random_mechanism(seed: int) -> KinematicTree:
    """A random tree with loops that can be closed and that leave it some freedom; some are planar."""
    rng = np.random.default_rng(seed)
    if seed % 5 == 0:
        return parallel_cranks() if seed % 25 == 0 else four_bar(("hinge", ["fx", "fy"], "point")[seed // 5 % 3])
    n = int(rng.integers(5, 8))
    tree = random_tree(n, seed, kinds=("revolute", "prismatic", "helical", "spherical"), chain=0.4)
    q = tree.random_configuration(rng)
    wanted = int(rng.integers(1, 3))
    for k in range(50):
        if len(tree.components) == wanted:
            break
        A = int(rng.integers(1, n))
        B = int(rng.choice([-1, *(i for i in range(n) if i != A)]))
        both = set(path(tree.parents, A)) ^ (set(path(tree.parents, B)) if B >= 0 else set())
        most = min(sum(tree.joints[i].nv for i in both) - 1, 6)
        if most < 1:
            continue
        own = [str(name) for name in rng.permutation(FORCE)[: int(rng.integers(1, most + 1))]]
        end = Frame(A, Transform(np.eye(3), rng.normal(size=3) / 4))
        try:
            loop = Loop(name=f"loop{k}", frames=[f"a{k}", f"b{k}"], constrains=own)
        except ValidationError:  # it holds velocities only
            continue
        frames = {**tree.frames, f"a{k}": end, f"b{k}": _frame_that_meets(tree, q, end, B)}
        tried = tree.replace(frames=frames, components=(*tree.components, loop))
        J = gap_rate(positions(tried, q))
        if len(J) < tree.nv and np.linalg.svd(J, compute_uv=False)[-1] > FAR_FROM_SINGULAR:
            tree = tried
    return tree

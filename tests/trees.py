"""Synthetic trees with the hard cases: one body, three children, no mass, several freedoms, every joint."""

import numpy as np

from nori_dyn.model.joints import Fixed, Free, Planar, Revolute, Spherical
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.model.tree import Frame, KinematicTree

SINGLE_KINDS = ("revolute", "continuous", "prismatic", "helical")


def on_a_free_base(tree: KinematicTree) -> KinematicTree:
    """A robot whose first joint is free."""
    return tree.replace(joints=(Free(), *tree.joints[1:]))


def three_children() -> KinematicTree:
    """A free body that carries three."""
    tree = on_a_free_base(random_tree(4, seed=11, kinds=("revolute", "prismatic")))
    return tree.replace(name="three_children", parents=(-1, 0, 0, 0))


def massless() -> KinematicTree:
    """A chain whose second link and last link weigh nothing."""
    tree = random_tree(4, seed=12, kinds=("revolute",), chain=1.0)
    I = tree.I.copy()
    I[1] = I[3] = 0.0
    return tree.replace(name="massless", I=I)


def two_roots() -> KinematicTree:
    """Two robots on one world, one of them planar, with frames on a link and on the world."""
    tree = random_tree(5, seed=13)
    joints = (Planar(), Revolute(), Spherical(), Free(), Revolute((1.0, 0.0, 0.0)))
    X = random_tree(4, seed=14).X_tree
    frames = {"tool": Frame(1, X[1]), "palm": Frame(1, X[2]), "wall": Frame(-1, X[3])}
    return tree.replace(name="two_roots", parents=(-1, 0, 1, -1, 3), joints=joints, frames=frames)


def fixed_joints() -> KinematicTree:
    """A robot with joints of no freedoms: at a root, between moving ones, before a fork, and at a leaf."""
    tree = random_tree(8, seed=15, kinds=("revolute", "prismatic", "helical"))
    still = {0, 2, 5, 7}
    joints = tuple(Fixed() if i in still else joint for i, joint in enumerate(tree.joints))
    return tree.replace(name="fixed_joints", parents=(-1, 0, 1, 2, 2, 0, 5, 6), joints=joints)


TREES: dict[str, KinematicTree] = {
    "one_body": random_tree(1, seed=1, kinds=("revolute",)),
    "one_free_body": random_tree(1, seed=2, kinds=("free",)),
    "three_children": three_children(),
    "massless": massless(),
    "two_roots": two_roots(),
    "fixed_joints": fixed_joints(),
    "autotree_chain": autotree(5, skew=0.3, taper=0.9),
    "autotree_branched": autotree(7, branching=1.5),
    "mixed_8": random_tree(8, seed=3),
    "mixed_12": random_tree(12, seed=4, aligned=1.0),
}

FLOATING: dict[str, KinematicTree] = {
    "one_free_body": TREES["one_free_body"],
    "three_children": TREES["three_children"],
    "mixed": on_a_free_base(random_tree(7, seed=31)),
    "arms": on_a_free_base(random_tree(6, seed=32, kinds=("revolute", "prismatic"), chain=0.3)),
}


def random_state(tree: KinematicTree, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """q (nq,), qd (nv,), qdd (nv,) and external wrenches (n_links, 6)."""
    rng = np.random.default_rng(seed)
    q = tree.random_configuration(rng)
    return q, rng.normal(size=tree.nv), rng.normal(size=tree.nv), rng.normal(size=(tree.n_links, 6))

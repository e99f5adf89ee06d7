"""Robots, sensors and states to draw from, small enough that a plan takes a moment."""

from functools import lru_cache
from itertools import pairwise

import numpy as np
from hypothesis import Phase, settings
from hypothesis import strategies as st

from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import WORLD
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES

seeds = st.integers(0, 10_000)
trees = st.builds(random_tree, n=st.integers(1, 6), seed=seeds, aligned=st.sampled_from([0.0, 0.5, 1.0]))

drawn = settings(max_examples=8, deadline=None, derandomize=True, phases=[Phase.explicit, Phase.generate])
"""How many examples, the same every time: no test depends on the clock, or on what ran before."""


def entries_of(tree, kind, seed):
    """The entries of a square set of sensors: joints follow accelerations, or torques, or some of each."""
    if kind == "inverse":
        return [ACCELERATIONS, WRENCHES]
    if kind == "forward":
        return [TORQUES, WRENCHES]
    follows = np.random.default_rng(seed).random(tree.n_links) < 0.5
    split = {"joint_acceleration": follows, "joint_torque": ~follows}
    names = np.array(tree.joint_names)
    return [{"type": t, "joints": names[chosen].tolist()} for t, chosen in split.items() if chosen.any()] + [WRENCHES]


kinds = st.sampled_from(["inverse", "forward", "hybrid"])


def renumbered(tree, seed):
    """The same robot with its links in another topological order, and the new number of each old link."""
    rng = np.random.default_rng(seed)
    order, open_links = [], [i for i in range(tree.n_links) if tree.parents[i] == WORLD]
    while open_links:
        i = open_links.pop(rng.integers(len(open_links)))
        order.append(i)
        open_links += [j for j in range(tree.n_links) if tree.parents[j] == i]
    place = {old: new for new, old in enumerate(order)} | {WORLD: WORLD}
    other = tree.replace(
        names=tuple(tree.names[i] for i in order),
        joint_names=tuple(tree.joint_names[i] for i in order),
        parents=tuple(place[tree.parents[i]] for i in order),
        joints=tuple(tree.joints[i] for i in order),
        X_tree=tuple(tree.X_tree[i] for i in order),
        I=tree.I[order],
    )
    return other, order


@lru_cache(maxsize=256)
def slices(widths):
    """Where parts of some widths lie, one after the other."""
    ends = np.cumsum([0, *widths])
    return [slice(a, b) for a, b in pairwise(ends)]


def reordered(values, widths, order):
    """Numbers that come in parts of some widths, with these parts in another order."""
    parts = slices(tuple(widths))
    return np.concatenate([values[..., parts[i]] for i in order], axis=-1)

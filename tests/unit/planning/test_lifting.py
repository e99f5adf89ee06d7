"""Where the massless frames of a joint come in the order: between its ends, and in step where they can be."""

import numpy as np
import pytest

from nori_dyn.model.synthetic import autotree
from nori_dyn.planning.lifting import lifted_classes
from nori_dyn.planning.orderings.problem import Ordering
from nori_dyn.system.builder import System
from tests.systems import FORWARD, INVERSE, hybrid, lifted
from tests.trees import TREES

ARMS = {"chain": autotree(4, skew=0.4, taper=0.9), "branched": autotree(7, branching=1.5, skew=0.4)}


def each(classes, frames):
    """Return the class of each frame, after a check that the components of a frame share it."""
    assert all(len({classes[c] for c in columns}) == 1 for columns in frames)
    return [int(classes[columns[0]]) for columns in frames]


@pytest.mark.parametrize("name", ARMS)
def test_forward_dynamics_crosses_joints_from_the_leaves_accelerations_and_forces_in_step(name):
    tree = ARMS[name]
    refined, classes, _ = lifted(System(tree, FORWARD))
    assert [crossing.body for crossing in refined.crossings] == [i for i in range(tree.n_links) if not tree.is_root(i)]
    for crossing in refined.crossings:
        body, parent = crossing.body, tree.parents[crossing.body]
        if tree.is_root(parent):  # whose acceleration is known but for its own joint, and comes first
            continue
        a, f = each(classes, crossing.a), each(classes, crossing.f)
        assert a == sorted(a, reverse=True)
        assert len(set(a)) == len(a)
        assert f[1:] == a
        assert f[0] > f[1]  # nothing moves with it: the parent's end of the first frame
        of_body, of_parent = (each(classes, (refined.a[i], refined.f[i])) for i in (body, parent))
        assert min(a) > max(of_body)
        assert max(f) < min(of_parent)


@pytest.mark.parametrize("name", ARMS)
def test_inverse_dynamics_carries_accelerations_from_the_root_and_forces_from_the_leaves(name):
    """As the recursion does, whose order is that of a chain."""
    tree = ARMS[name]
    refined, classes, order = lifted(System(tree, INVERSE))
    for crossing in refined.crossings:
        body, parent = crossing.body, tree.parents[crossing.body]
        along = each(classes, (refined.a[parent], *crossing.a, refined.a[body]))
        assert along == sorted(set(along))
        along = each(classes, (refined.f[parent], *crossing.f, refined.f[body]))
        assert along == sorted(set(along), reverse=True)
    if name == "chain":
        place = np.argsort(order.columns)
        a, f = ([max(place[c] for c in block) for block in blocks] for blocks in (refined.a, refined.f))
        assert (a, f) == (sorted(a), sorted(f, reverse=True))


@pytest.mark.parametrize("name", ["three_children", "two_roots", "mixed_8"])
def test_bodies_keep_the_order_that_they_are_given(name):
    system = System(TREES[name], hybrid(TREES[name], seed=3))
    refined, _, order = lifted(system)
    n = system.shape[1]
    for given in (np.arange(n), np.arange(n)[::-1], np.random.default_rng(0).permutation(n)):
        classes = lifted_classes(Ordering(given, given), system, refined)
        place = np.argsort(given)
        for blocks, kind in ((refined.a, "a"), (refined.f, "f")):
            last = [place[system.column(kind, i)].max() for i in range(system.tree.n_links)]
            np.testing.assert_array_equal(np.argsort(each(classes, blocks)), np.argsort(last))
        own = [v.slice for v in system.variables if v.kind in ("a", "f")]
        assert not any(classes[columns].any() for columns in own)  # those of the system as given come first
    definitions = refined.definitions
    rows, columns = order.rows.tolist(), order.columns.tolist()
    assert all(definitions.get(column, row) == row for row, column in zip(rows, columns, strict=True))

"""Branch-induced sparsity: expanded parents, the pattern of the inertia matrix, and the sums of depths."""

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.model.joints import Revolute, Spherical
from nori_dyn.model.synthetic import autotree, random_tree
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.sparsity import ancestors, depth_sums, expanded_parents, inertia_pattern
from tests.trees import TREES


def example():
    """Return the tree of the example of RBDA table 6.4: its second joint has three freedoms."""
    joints = (Revolute(), Spherical(), *(Revolute() for _ in range(4)))
    return random_tree(6, seed=1).replace(parents=(-1, 0, 0, 1, 1, 2), joints=joints)


def test_expanded_parents_and_ancestors():
    parents = expanded_parents(example())
    assert parents == (-1, 0, 1, 2, 0, 3, 3, 4)
    assert [[*ancestors(parents, k)] for k in (7, 6, 0)] == [[4, 0], [3, 2, 1, 0], []]  # parent first
    single = random_tree(9, seed=2, kinds=("revolute", "prismatic", "helical"))
    assert expanded_parents(single) == single.parents
    assert expanded_parents(TREES["two_roots"]) == (-1, 0, 1, 2, 3, 4, 5, -1, 7, 8, 9, 10, 11, 12)
    assert expanded_parents(TREES["one_free_body"]) == (-1, 0, 1, 2, 3, 4)


def test_pattern_of_the_book():
    rows = ["10000000", "11000000", "11100000", "11110000", "10001000", "11110100", "11110010", "10001001"]
    lower = np.array([[entry == "1" for entry in row] for row in rows])
    assert (inertia_pattern(expanded_parents(example())) == (lower | lower.T)).all()


def test_the_inertia_matrix_is_zero_outside_the_pattern():
    for name, tree in TREES.items():
        H = crba(tree, np.array([tree.random_configuration(seed) for seed in range(3)]).T)
        assert (H[~inertia_pattern(expanded_parents(tree))] == 0).all(), name


def test_the_inertia_matrix_of_a_generic_tree_has_the_pattern():
    for seed in range(5):
        tree = random_tree(8, seed=seed, kinds=("revolute", "helical", "planar"), aligned=0.0, chain=0.3)
        H = crba(tree, tree.random_configuration(seed))
        pattern = inertia_pattern(expanded_parents(tree))
        at_one_joint = np.zeros_like(pattern)
        for v in tree.v_slices:
            at_one_joint[v, v] = True  # where a planar joint has zeros of its own
        assert ((H != 0) == pattern)[~at_one_joint].all(), seed


def test_depth_sums_count_entries():
    for seed in range(20):
        tree = random_tree(10, seed=seed)
        parents = expanded_parents(tree)
        below = np.tril(inertia_pattern(parents), -1)
        above = below.sum(axis=1)
        D_1, D_2 = depth_sums(parents)
        assert below.sum() == D_1
        assert (above * (above + 1) // 2).sum() == D_2
    assert depth_sums((-1,) * 5) == (0, 0)
    for n in (1, 2, 3, 11):
        assert depth_sums(expanded_parents(autotree(n))) == ((n**2 - n) // 2, (n**3 - n) // 6)


def test_parents_of_no_tree_are_refused():
    for parents in ((0,), (-1, 1), (-1, 5), (-2,), (-1, "a"), (-1, 0.5), (-1, None)):
        k = len(parents) - 1
        with pytest.raises(InputError, match=rf"parents\[{k}\] is {parents[k]!r}"):
            inertia_pattern(parents)

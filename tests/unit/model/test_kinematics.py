"""World poses of all bodies, over floats, batches and expressions, against rotations and positions by themselves."""

import numpy as np
import pytest

from nori_dyn.algebra.expressions import Graph
from nori_dyn.model.kinematics import link_transforms, positions, world_transforms
from nori_dyn.model.paths import ancestors, path
from nori_dyn.model.tree import WORLD
from nori_dyn.system.trace import configuration_inputs
from tests.oracles import evaluate, poses
from tests.tolerances import RECURSION, assert_close
from tests.trees import TREES


def test_world_transforms_are_poses():
    for tree in TREES.values():
        q = tree.random_configuration(1)
        X_0 = positions(tree, q).X_0
        assert_close(X_0[WORLD].motion_matrix(), np.eye(6), RECURSION)
        for i, (R, o) in enumerate(zip(*poses(tree, q), strict=True)):
            assert_close(X_0[i].E.T, R, RECURSION)
            assert_close(X_0[i].r, o, RECURSION)


@pytest.mark.parametrize("name", ["two_roots", "mixed_8"])
def test_world_transforms_of_a_batch_and_of_expressions(name):
    tree = TREES[name]
    Q = np.stack([tree.random_configuration(seed) for seed in range(3)], axis=1)
    graph = Graph()
    inputs = configuration_inputs(graph, tree)
    batch, symbols = positions(tree, Q).X_0, positions(tree, np.array(inputs)).X_0
    for k, q in enumerate(Q.T):
        values = evaluate(graph, dict(zip((x.index for x in inputs), q, strict=True)))
        for i, X in positions(tree, q).X_0.items():
            found = batch[i].motion_matrix()
            assert_close(found[..., k] if found.ndim == 3 else found, X.motion_matrix(), RECURSION)
            E = [[values[x.index] if hasattr(x, "index") else x for x in row] for row in symbols[i].E]
            assert_close(np.array(E, dtype=float), X.E, RECURSION)


def test_a_body_needs_those_that_carry_it_only():
    tree = TREES["mixed_8"]
    q, last = tree.random_configuration(2), tree.n_links - 1
    carriers = [*path(tree.parents, last)]
    assert carriers == [last, *ancestors(tree.parents, last)]
    X_0 = world_transforms(tree, link_transforms(tree, q, carriers))
    assert set(X_0) == {WORLD, *carriers}
    assert_close(X_0[last].motion_matrix(), positions(tree, q).X_0[last].motion_matrix(), RECURSION)
    assert [*path(tree.parents, WORLD)] == []

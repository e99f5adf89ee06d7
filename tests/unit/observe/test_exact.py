"""Systems whose rotations are exactly orthogonal."""

import numpy as np

from nori_dyn.algebra.expressions import Graph
from nori_dyn.algebra.planar import planar_factors
from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.model.synthetic import random_tree
from nori_dyn.observe.exact import ExactTree, exact_positions, exact_rotation, exact_system
from nori_dyn.system.builder import System
from nori_dyn.system.trace import configuration_inputs, trace
from tests.systems import FORWARD, TORQUES, WRENCHES, sensor_set
from tests.trees import TREES


def fingerprints(E: np.ndarray) -> list[list[int]]:
    graph = next(x for x in E.flat if not isinstance(x, float)).graph
    return [[graph.expr(x).fingerprint for x in row] for row in E]


def is_orthogonal(E: np.ndarray) -> bool:
    F = fingerprints(E)
    products = [[sum(F[i][k] * F[j][k] for k in range(3)) % PRIME for j in range(3)] for i in range(3)]
    return products == np.eye(3, dtype=int).tolist()


def test_rotations_are_exactly_orthogonal_and_where_they_were():
    for seed in range(20):
        E = random_tree(1, seed).X_tree[0].E
        exact = exact_rotation(Graph(seed), planar_factors(E))
        assert is_orthogonal(exact), seed
        np.testing.assert_allclose([[x.value for x in row] for row in exact], E, atol=1e-14)


def test_link_transforms_are_exactly_orthogonal():
    for name, tree in TREES.items():
        graph = Graph(1)
        q = np.array([*configuration_inputs(graph, tree), graph.one], dtype=object)[:-1]
        at = exact_positions(ExactTree.of(tree, graph), q)
        assert all(is_orthogonal(X.E) for X in at.X_up if X.E.dtype == object), name


def test_the_values_are_those_of_the_system():
    """Doubles of the exact system are D's, sensors in tilted frames included."""
    tilted = {**WRENCHES, "frame": {"xyz": [0.1, 0.2, 0.3], "rpy": [0.4, 0.5, 0.6]}}
    for name, tree in TREES.items():
        system = System(tree, sensor_set(TORQUES, tilted))
        exact = exact_system(system)
        q = tree.random_configuration(3)
        inputs = {x.index: np.array([v]) for x, v in zip(exact.state.q, q, strict=True)}
        D = np.zeros(system.shape)
        D[tuple(zip(*exact.entries, strict=True))] = exact.state.graph.evaluate([*exact.entries.values()], inputs)[:, 0]
        np.testing.assert_allclose(D, system.D(q).toarray(), atol=1e-13, err_msg=name)


def test_what_was_exact_stays_as_it_is():
    """Where every rotation relabels the axes, nothing changes."""
    system = System(TREES["autotree_branched"], FORWARD)
    exact, plain = exact_system(system), trace(system)
    found = {place: entry.fingerprint for place, entry in exact.entries.items()}
    places = zip(plain.rows.tolist(), plain.columns.tolist(), strict=True)
    assert found == {place: entry.fingerprint for place, entry in zip(places, plain.entries, strict=True)}

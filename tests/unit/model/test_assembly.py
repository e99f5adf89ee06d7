"""The graph of links and joints, against networkx: the order of the links, and the cycle that is told of."""

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import ModelError
from nori_dyn.model.assembly import JointData, LinkData, assemble
from nori_dyn.model.joints import Revolute
from tests.peers import Peer

nx = Peer("networkx")
X = Transform.identity()


def robot(edges, n):
    """Return the links and joints of a graph; every link has some mass."""
    links = [LinkData(f"l{i}", 1.0, np.zeros(3), np.eye(3)) for i in range(n)]
    joints = [JointData(f"j{k}", f"l{i}", f"l{j}", X, Revolute((0.0, 0.0, 1.0))) for k, (i, j) in enumerate(edges)]
    graph = nx.DiGraph()
    graph.add_nodes_from(link.name for link in links)
    graph.add_edges_from((joint.parent, joint.child) for joint in joints)
    return links, joints, graph


def test_links_come_depth_first_in_the_order_of_the_file():
    for seed in range(20):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(2, 12))
        names = rng.permutation(n)
        edges = [(names[rng.integers(i)], names[i]) for i in range(1, n)]
        links, joints, graph = robot([edges[k] for k in rng.permutation(n - 1)], n)
        tree = assemble("random", links, joints, base="floating")
        assert list(tree.names) == list(nx.dfs_preorder_nodes(graph, f"l{names[0]}")), seed


def test_the_cycle_that_is_told_of_is_one():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        n = int(rng.integers(1, 8))
        pairs = [(i, j) for i in range(n) for j in range(n)]
        edges = [pairs[k] for k in rng.permutation(len(pairs))[: rng.integers(1, n + 3)]]
        links, joints, graph = robot(edges, n)
        try:
            found = [tail for tail, _ in nx.find_cycle(graph)]
        except nx.NetworkXNoCycle:
            found = []
        try:
            assemble("random", links, joints, base="floating")
            message = ""
        except ModelError as error:
            message = str(error)
        assert ("has a cycle" in message) == bool(found), seed
        assert " -> ".join([*found, *found[:1]]) in message, seed


def test_a_chain_of_thousands_of_links():
    links, joints, _ = robot([(i, i + 1) for i in range(2999)], 3000)
    assert assemble("chain", links, joints).depths()[-1] == 2999

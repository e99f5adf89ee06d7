"""One assembly: at one configuration, at many, and over expressions, the numbers of D are the same."""

import numpy as np
import pytest

from nori_dyn.algebra.expressions import Graph
from nori_dyn.model.kinematics import positions
from nori_dyn.system.assembly import assemble
from nori_dyn.system.builder import System
from nori_dyn.system.trace import configuration_inputs, traced_entries
from tests.oracles import evaluate
from tests.systems import FORWARD
from tests.tolerances import EXACT, ROUNDING, assert_close
from tests.trees import TREES


def test_a_batch_is_its_configurations():
    for tree in TREES.values():
        system = System(tree, FORWARD)
        Q = np.array([tree.random_configuration(seed) for seed in range(3)])
        for q, D in zip(Q, system.D_each(Q), strict=True):
            assert_close(D.toarray(), system.D(q).toarray(), ROUNDING)


@pytest.mark.parametrize("name", ["fixed_joints", "mixed_8"])
def test_expressions_are_those_of_the_numbers(name):
    tree = TREES[name]
    system, q = System(tree, FORWARD), tree.random_configuration(4)
    graph = Graph()
    inputs = configuration_inputs(graph, tree)
    entries = traced_entries(system, positions(tree, np.array(inputs)), graph)
    values = evaluate(graph, dict(zip((x.index for x in inputs), q, strict=True)))
    D = np.zeros(system.shape)
    for place, entry in entries.items():
        assert not entry.is_zero
        D[place] = values[entry.index]
    assert_close(D, system.D(q).toarray(), ROUNDING)


def test_an_entry_that_is_zero_in_some_of_a_batch_is_kept():
    changing = np.array([[[0.0, 2.0], [0.0, 0.0]]])
    constant = np.array([[3.0], [0.0]])
    blocks = [(slice(0, 1), slice(1, 3), changing), (slice(1, 3), slice(0, 1), constant)]
    found = assemble(blocks, (3, 3), (2,))
    assert [*zip(found.rows, found.columns, strict=True)] == [(0, 1), (1, 0)]
    first, second = (D.toarray() for D in found.matrices())
    assert_close(second - first, 2.0 * (np.arange(9).reshape(3, 3) == 1), EXACT)
    assert first[1, 0] == second[1, 0] == 3.0

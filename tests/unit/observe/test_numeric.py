"""Ranks and null spaces at a configuration."""

from itertools import product

import numpy as np

from nori_dyn.model.synthetic import autotree
from nori_dyn.observe.numeric import Reduction
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, FORWARD, INVERSE, sensor_set
from tests.trees import TREES


def test_known_problems_have_full_rank():
    for (name, tree), sensors in product(TREES.items(), (INVERSE, FORWARD)):
        system = System(tree, sensors)
        found = Reduction(system).rank_at(tree.random_configuration(0))
        if sensors is FORWARD and name == "massless":
            assert found.rank < system.shape[1]
        else:
            assert (found.rank, found.gap) == (system.shape[1], np.inf), name


def test_units_do_not_matter():
    """A robot of grams and one of tonnes: the same rank, at nearly the same margin."""
    tree = autotree(5, 1.5, 0.3, 0.9)
    q = tree.random_configuration(1)
    found = [Reduction(System(tree.replace(I=scale * tree.I), FORWARD)).rank_at(q) for scale in (1e-3, 1.0, 1e3)]
    assert len({at.rank for at in found}) == 1
    margins = [at.smallest for at in found]
    assert max(margins) < 10 * min(margins)


def test_null_vectors_are_null_and_independent():
    for name, tree in TREES.items():
        system = System(tree, sensor_set(ACCELERATIONS, {"type": "external_wrench", "links": tree.names[0]}))
        reduction = Reduction(system)
        q = tree.random_configuration(2)
        k = system.shape[1] - reduction.rank_at(q).rank
        d = reduction.null_space(q, k)
        assert d.shape == (system.shape[1], k) == (system.shape[1], 6 * (tree.n_links - 1)), name
        D = system.D(q)
        assert np.abs(D @ d).max(initial=0) <= 1e-11 * (abs(D) @ np.abs(d)).max(initial=1), name
        assert np.linalg.matrix_rank(d) == k, name


def test_no_rows_at_all():
    tree = autotree(2)
    reduction = Reduction(System(tree, sensor_set()))
    assert reduction.rank_at(tree.random_configuration(0)).rank == 12 * 2 + 2
    assert reduction.null_space(tree.random_configuration(0), 14).shape == (40, 14)

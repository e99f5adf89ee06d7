"""Ranks at a configuration, and for almost all."""

from nori_dyn.model.synthetic import autotree
from nori_dyn.observe.generic import generic_rank
from nori_dyn.observe.numeric import Reduction
from nori_dyn.system.builder import System
from tests.systems import FORWARD, INVERSE, sensor_set
from tests.trees import TREES


def test_units_do_not_matter():
    """A robot of grams and one of tonnes: the same rank, at nearly the same margin."""
    tree = autotree(5, 1.5, 0.3, 0.9)
    q = tree.random_configuration(1)
    found = [Reduction(System(tree.replace(I=scale * tree.I), FORWARD)).rank_at(q) for scale in (1e-3, 1.0, 1e3)]
    assert len({at.rank for at in found}) == 1
    margins = [at.smallest for at in found]
    assert max(margins) < 10 * min(margins)


def test_no_rows_at_all():
    tree = autotree(2)
    reduction = Reduction(System(tree, sensor_set()))
    assert reduction.rank_at(tree.random_configuration(0)).rank == 12 * 2 + 2
    assert reduction.null_space(tree.random_configuration(0), 14).shape == (40, 14)


def test_without_sensors_wrenches_and_accelerations_are_free():
    for name, tree in TREES.items():
        found = generic_rank(System(tree, sensor_set(name="none") if tree.nv else INVERSE))
        assert found.rank == found.structural_rank == 12 * tree.n_links + tree.nv, name
        assert found.error < 1e-60, name

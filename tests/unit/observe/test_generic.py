"""Rank for almost all q."""

from nori_dyn.observe.generic import generic_rank
from nori_dyn.system.builder import System
from tests.systems import INVERSE, sensor_set
from tests.trees import TREES


def test_without_sensors_wrenches_and_accelerations_are_free():
    for name, tree in TREES.items():
        found = generic_rank(System(tree, sensor_set(name="none") if tree.nv else INVERSE))
        assert found.rank == found.structural_rank == 12 * tree.n_links + tree.nv, name
        assert found.error < 1e-60, name


def test_inverse_dynamics_has_full_rank():
    for name, tree in TREES.items():
        system = System(tree, INVERSE)
        found = generic_rank(system, seed=3)
        assert found.rank == found.structural_rank == system.shape[1], name
        assert not found.moved.any(), name

"""Rank for almost all q."""

from __future__ import annotations

import pytest

from nori_dyn.observe.generic import generic_rank
from nori_dyn.system.builder import System
from tests.systems import INVERSE, sensor_set
from tests.trees import TREES


@pytest.mark.parametrize("name", TREES)
def test_without_sensors_wrenches_and_accelerations_are_free(name):
    tree = TREES[name]
    system = System(tree, sensor_set(name="none") if tree.nv else INVERSE)
    found = generic_rank(system)
    assert found.rank == found.structural_rank == 12 * tree.n_links + tree.nv
    assert found.error < 1e-60


@pytest.mark.parametrize("name", TREES)
def test_inverse_dynamics_has_full_rank(name):
    system = System(TREES[name], INVERSE)
    found = generic_rank(system, seed=3)
    assert found.rank == found.structural_rank == system.shape[1]
    assert not found.moved.any()

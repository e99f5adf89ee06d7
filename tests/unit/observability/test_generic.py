"""Rank over a prime field: of matrices of known rank, with more or fewer rows than columns."""

from __future__ import annotations

import random

import numpy as np
import pytest

from nori_dyn.algebra.expressions import PRIME
from nori_dyn.observability.generic import eliminated, generic_rank, null_vector
from nori_dyn.system.builder import System
from tests.matrices import symbolic_matrix
from tests.systems import INVERSE, sensor_set
from tests.trees import TREES


@pytest.mark.parametrize("seed", range(30))
def test_rank_and_null_vector_of_integers(seed):
    rng = np.random.default_rng(seed)
    rows, columns = rng.integers(1, 9, size=2)
    rank = int(rng.integers(0, min(rows, columns) + 1))
    A = rng.integers(-3, 4, size=(rows, rank)) @ rng.integers(-3, 4, size=(rank, columns))
    A *= rng.random(A.shape) < 0.9
    n = max(rows, columns)
    square = np.zeros((n, n), dtype=int)
    square[:rows, :columns] = A
    work = eliminated(symbolic_matrix(square.tolist()))
    expected = np.linalg.matrix_rank(A)
    assert len(work.pivots) == expected
    d = null_vector(work, int(columns), random.Random(seed))
    assert all(sum(int(a) * x for a, x in zip(row, d, strict=True)) % PRIME == 0 for row in A)
    null_space = np.linalg.svd(A)[2][expected:]
    moved = np.abs(null_space).max(axis=0, initial=0) > 1e-9
    assert [x != 0 for x in d] == moved.tolist()


def test_an_entry_that_cancels_for_all_values():
    work = eliminated(symbolic_matrix([["x", "y"], ["x", "y"]]))
    assert len(work.pivots) == 1


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

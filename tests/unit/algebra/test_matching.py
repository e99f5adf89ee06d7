"""The rank that a pattern allows, against networkx's Hopcroft-Karp; which numerical rank counts."""

from itertools import product

import numpy as np
import pytest
import scipy.sparse as sp

import nori_dyn as nd
from nori_dyn.algebra.matching import structural_rank
from nori_dyn.algebra.ranks import clear_rank, largest_clear
from nori_dyn.planning.scaling import sample_entries
from nori_dyn.system.refined import refine
from tests.peers import Peer

nx = Peer("networkx")


def matched(matrix):
    """The size of networkx's largest matching of rows with columns."""
    graph = nx.algorithms.bipartite.from_biadjacency_matrix(sp.csr_array(matrix))
    return len(nx.algorithms.bipartite.hopcroft_karp_matching(graph, range(matrix.shape[0]))) // 2


def test_it_is_the_largest_matching():
    shapes = ((1, 1), (20, 20), (40, 25), (25, 40), (300, 300))
    for shape, density, seed in product(shapes, (0.0, 0.01, 0.05, 0.3), range(5)):
        matrix = sp.random_array(shape, density=density, rng=np.random.default_rng(seed))
        assert structural_rank(matrix) == matched(matrix)


def test_zeros_that_are_stored_do_not_count():
    matrix = sp.csc_array((np.array([1.0, 0.0]), (np.array([0, 1]), np.array([0, 1]))), shape=(2, 2))
    assert structural_rank(matrix) == 1


def test_it_ends_where_others_do_not():
    """SciPy's matching had not ended after a quarter of an hour on this system of 2,178 rows."""
    system = nd.System(nd.autotree(30, skew=1.5, taper=0.95), nd.sensors("nori_code"))
    symbolic = refine(system).symbolic
    entries, _ = sample_entries(system, symbolic, seed=0, n=1)
    matrix = sp.csc_array((entries[0], (symbolic.rows, symbolic.columns)), shape=symbolic.shape)
    assert structural_rank(matrix) == matched(matrix) == len(matrix.indptr) - 1


TOLERANCE = 1e-9


def test_a_rank_is_as_clear_as_what_counts_is_far_from_what_does_not():
    for values, rank, clarity in (
        ([1.0, 0.1, 1e-16], 2, 1e8),  # far from the tolerance
        ([1.0, 0.1, 1e-7], 3, 1e2),  # near to it: next to a singular configuration, or a repeated row
        ([1.0, 1e-8, 1e-10], 2, 1e1),
        ([1.0, 0.5], 2, 5e8),
        ([0.0, 0.0], 0, 1e9),
        ([], 0, 1e9),
    ):
        assert clear_rank(np.array(values), TOLERANCE) == (rank, pytest.approx(clarity)), values


def test_the_largest_rank_that_is_clear_counts_and_the_largest_of_all_where_none_is():
    assert largest_clear([3, 4, 2], [1e8, 1e2, 1e8]) == 3
    assert largest_clear([3, 4, 2], [1e3, 1e2, 1e1]) == 4

"""Ranks by singular values: how clearly they are told, and which of several counts."""

import numpy as np
import pytest

from nori_dyn.algebra.ranks import clear_rank, largest_clear

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

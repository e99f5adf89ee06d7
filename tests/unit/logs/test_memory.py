"""Memory that is used again: only when nothing looks at it any more."""

import gc

import numpy as np

from nori_dyn.logs.memory import Memory


def test_what_is_still_looked_at_is_not_given_again():
    memory = Memory()
    first = memory.take(3, 4)
    first[:] = 1.0
    view = first[1:, ::2].T  # a view of a view
    del first
    gc.collect()
    second = memory.take(3, 4)
    second[:] = 2.0
    np.testing.assert_array_equal(view, 1.0)


def test_what_nothing_looks_at_is_given_again():
    memory = Memory()
    first = memory.take(3, 4)
    at = first.ctypes.data
    del first
    gc.collect()
    assert memory.take(2, 5).ctypes.data == at
    larger = memory.take(30, 40)
    assert larger.shape == (30, 40)
    larger[:] = 3.0
    del memory
    gc.collect()
    np.testing.assert_array_equal(larger, 3.0)  # a memory that is gone leaves its arrays alone

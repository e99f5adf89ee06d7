"""The filter has no phase, is the same in pieces as at once, and stops what it should."""

from itertools import pairwise

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.identification.moments import Decimation

DT = 1e-3


def filtered(rows: np.ndarray, cutoff: float, sizes: list[int]) -> np.ndarray:
    decimation = Decimation(cutoff, DT)
    ends = np.cumsum([0, *sizes])
    return np.concatenate([decimation.add(rows[a:b])[0] for a, b in pairwise(ends)])


def test_pieces_give_what_the_whole_gives():
    rows = np.random.default_rng(0).normal(size=(5000, 3))
    whole = filtered(rows, 20.0, [5000])
    pieces = filtered(rows, 20.0, [7, 1, 1992, 3, 997, 2000])
    assert len(whole) == len(pieces) > 50
    np.testing.assert_allclose(pieces, whole, atol=1e-14)


@pytest.mark.parametrize("cutoff", [5.0, 20.0, 100.0])
def test_what_is_slow_passes_without_delay_and_what_is_fast_is_stopped(cutoff):
    decimation, t = Decimation(cutoff, DT), np.arange(6000) * DT
    slow, fast = (np.sin(2 * np.pi * share * cutoff * t)[:, None] for share in (0.4, 1.6))
    found, centre = (each[:, 0] for each in decimation.add(slow))
    half = len(decimation.taps) // 2
    np.testing.assert_array_equal(centre, slow[half :: decimation.step, 0][: len(found)])
    np.testing.assert_allclose(found, centre, atol=3e-3)
    assert np.abs(Decimation(cutoff, DT).add(fast)[0]).max() < 3e-3


def test_after_a_jump_nothing_of_before_is_left():
    decimation = Decimation(20.0, DT)
    decimation.add(np.full((500, 1), 1e9))
    decimation.restart()
    assert np.abs(decimation.add(np.zeros((500, 1)))[0]).max() == 0.0


def test_a_cutoff_that_cannot_be_is_refused():
    for cutoff in (0.0, -1.0, 400.0, np.nan):
        with pytest.raises(InputError, match="cutoff"):
            Decimation(cutoff, DT)

"""The collector rests while something runs, and afterwards does what it did before."""

from __future__ import annotations

import gc

import pytest

from nori_dyn.algebra.collector import collector_at_rest


def test_it_rests_meanwhile_even_where_something_is_raised():
    @collector_at_rest()
    def fail():
        assert not gc.isenabled()
        raise ValueError("meant")

    with pytest.raises(ValueError, match="meant"):
        fail()
    assert gc.isenabled()


def test_where_it_was_off_it_stays_off():
    gc.disable()
    try:
        with collector_at_rest():
            pass
        assert not gc.isenabled()
    finally:
        gc.enable()

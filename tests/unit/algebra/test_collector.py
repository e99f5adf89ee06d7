"""The collector rests while something runs, and afterwards does what it did before."""

import gc

import pytest

from nori_dyn.algebra.collector import collector_at_rest


@pytest.mark.parametrize("before", [True, False])
def test_it_rests_meanwhile_and_is_then_as_it_was_even_where_something_is_raised(before):
    @collector_at_rest()
    def fail():
        assert not gc.isenabled()
        raise ValueError("meant")

    if not before:
        gc.disable()
    try:
        with pytest.raises(ValueError, match="meant"):
            fail()
        assert gc.isenabled() == before
    finally:
        gc.enable()

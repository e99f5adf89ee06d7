"""Criteria of information, against NumPy's determinant and inverse."""

import numpy as np
import pytest

from nori_dyn.errors import UnknownNameError
from nori_dyn.identification.motion_information import CRITERIA, criterion_named


@pytest.fixture
def F():
    A = np.random.default_rng(0).normal(size=(12, 5))
    return A.T @ A


def test_they_are_determinant_and_trace(F):
    assert criterion_named("D")(F)[0] == pytest.approx(np.linalg.slogdet(F)[1])
    assert criterion_named("A")(F)[0] == pytest.approx(-np.log(np.trace(np.linalg.inv(F))))


@pytest.mark.parametrize("name", CRITERIA)
def test_what_is_not_identified_at_all_is_bad_and_no_error(F, name):
    less = F.copy()
    less[0], less[:, 0] = 0.0, 0.0
    assert CRITERIA[name](less)[0] < CRITERIA[name](F)[0] - 10
    assert np.isfinite(CRITERIA[name](np.zeros((3, 3)))[0])


def test_others_are_refused():
    with pytest.raises(UnknownNameError, match=r"unknown criterion 'E'\. Known: D, A"):
        criterion_named("E")
    with pytest.raises(UnknownNameError, match=r"unknown criterion '3'"):
        criterion_named(3)

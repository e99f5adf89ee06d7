"""Bands of sums of uniform and Gaussian errors: by drawing them."""

import numpy as np
import pytest

from nori_dyn.filtering.bounded import GAUSSIAN, half_widths

N = 400_000


@pytest.mark.parametrize("share", [0.0, 0.3, 0.7, 0.95, 1.0])
def test_a_uniform_and_a_gaussian_error_are_within_the_band_in_19_of_20_cases(share):
    rng = np.random.default_rng(0)
    drawn = share * np.sqrt(3) * rng.uniform(-1, 1, N) + np.sqrt(1 - share**2) * rng.normal(size=N)
    half = half_widths(np.array(1.0), np.array([share]), np.array([1.0]))
    assert np.mean(np.abs(drawn) < half) == pytest.approx(0.95, abs=0.0015)


def test_several_bounded_errors_are_nearly_so():
    rng = np.random.default_rng(1)
    parts = np.array([0.8, 0.5, 0.3])
    sizes = np.append(parts, np.sqrt(1 - parts @ parts))
    drawn = np.sqrt(3) * rng.uniform(-1, 1, (N, 3)) @ parts + sizes[3] * rng.normal(size=N)
    half = half_widths(np.array(1.0), parts, np.ones(3))
    assert np.mean(np.abs(drawn) < half) == pytest.approx(0.95, abs=0.005)


def test_what_is_not_bounded_has_the_band_of_a_gaussian():
    half = half_widths(np.array([2.0, 0.0]), np.array([[2.0], [0.0]]), np.zeros(1))
    assert half == pytest.approx([2 * GAUSSIAN, 0.0])

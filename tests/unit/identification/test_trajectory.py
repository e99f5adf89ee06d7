"""Fourier series: the published form, derivatives, rest at both ends, and what is no motion."""

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.identification.motion_search import FourierSeries


def test_it_is_the_published_series():
    """Swevers et al. (1997), with a and b as amplitudes of the speed."""
    series, t, L = FourierSeries(4.0, 3, at_rest=False), np.array([0.0, 0.7, 3.1]), np.arange(1, 4)
    rng = np.random.default_rng(0)
    q0, a, b = 0.3, *rng.normal(size=(2, 3))
    w = 2 * np.pi / 4.0
    angle = w * np.outer(t, L)
    q, qd, qdd = (basis @ np.array([q0, *a, *b]) for basis in series.basis(t))
    np.testing.assert_allclose(q, q0 + np.sin(angle) @ (a / (w * L)) - np.cos(angle) @ (b / (w * L)), atol=1e-13)
    np.testing.assert_allclose(qd, np.cos(angle) @ a + np.sin(angle) @ b, atol=1e-13)
    np.testing.assert_allclose(qdd, -np.sin(angle) @ (a * w * L) + np.cos(angle) @ (b * w * L), atol=1e-12)


@pytest.mark.parametrize("at_rest", [False, True])
def test_derivatives_are_those_of_differences(at_rest):
    series, h = FourierSeries(3.0, 4, at_rest), 1e-5
    t = np.linspace(0, 3, 7)
    (below, below_d, _), (_, rate, second), (above, above_d, _) = (series.basis(t + s) for s in (-h, 0, h))
    np.testing.assert_allclose((above - below) / (2 * h), rate, atol=1e-8)
    np.testing.assert_allclose((above_d - below_d) / (2 * h), second, atol=1e-6)


def test_it_begins_and_ends_at_rest():
    series = FourierSeries(10.0, 5)
    assert series.n == 1 + 2 * 5 - 2
    q, qd, qdd = series.basis([0.0, 10.0])
    np.testing.assert_allclose(qd, 0, atol=1e-12)
    np.testing.assert_allclose(qdd, 0, atol=1e-12)
    np.testing.assert_allclose(q[0], q[1], atol=1e-12)
    assert np.linalg.matrix_rank(series.basis(series.times(50))[0]) == series.n


NO_MOTIONS = [
    (0.0, 5, r"duration is 0 s: it must be positive"),
    (-1, 5, r"duration is -1 s"),
    (float("nan"), 5, r"duration is nan s"),
    ("ten", 5, r"duration is 'ten': give a number of seconds"),
    (True, 5, r"duration is True"),
    (10.0, 0, r"harmonics is 0: it must be a whole number"),
    (10.0, 2.5, r"harmonics is 2\.5"),
    (10.0, 1, r"harmonics is 1: .* needs 2 or more"),
]


def test_what_is_no_motion():
    for duration, harmonics, message in NO_MOTIONS:
        with pytest.raises(InputError, match=message):
            FourierSeries(duration, harmonics)

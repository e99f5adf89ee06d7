from __future__ import annotations

import numpy as np
import pytest
from scipy.signal import savgol_coeffs

from nori_dyn.errors import InputError
from nori_dyn.live.differentiation import ORDER, CausalDerivative


@pytest.mark.parametrize("window", [5, 21, 51])
def test_weights_are_those_of_savitzky_and_golay_at_the_end_of_the_window(window):
    dt = 0.001
    theirs = savgol_coeffs(window, ORDER, deriv=1, delta=dt, pos=window - 1, use="dot")
    ours = CausalDerivative.weights(1234.5 + dt * np.arange(window))
    np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


@pytest.mark.parametrize("seed", range(3))
def test_what_grows_evenly_is_told_without_delay_at_uneven_times(seed):
    rng = np.random.default_rng(seed)
    t = 100 + np.cumsum(rng.uniform(0.5e-3, 3e-3, 40))
    jerk, acceleration = rng.normal(size=(2, 4))
    velocities = np.outer(t - 100, acceleration) + np.outer((t - 100) ** 2 / 2, jerk)
    derivative = CausalDerivative(15, 4)
    found = [derivative.add(*sample) for sample in zip(t, velocities, strict=True)]
    assert all(each is None for each in found[:14])
    for k in range(14, 40):
        np.testing.assert_allclose(found[k], acceleration + jerk * (t[k] - 100), rtol=1e-6)


@pytest.mark.parametrize("window", [7, 21, 51])
def test_the_delay_is_that_of_a_jump(window):
    dt, derivative = 0.001, CausalDerivative(window, 1)
    t = dt * np.arange(-window, window)
    told = [derivative.add(at, np.maximum([at], 0.0)) for at in t]
    half = next(at for at, each in zip(t, told, strict=True) if each is not None and each[0] >= 0.5)
    assert derivative.delay(dt) == pytest.approx(half)


def test_the_noise_is_that_of_noise():
    derivative = CausalDerivative(21, 1)
    noise = np.random.default_rng(0).normal(0, 1e-3, 20000)
    told = [derivative.add(0.001 * k, noise[k : k + 1]) for k in range(len(noise))]
    assert np.std(told[20:]) == pytest.approx(1e-3 * derivative.noise(0.001), rel=0.05)


def test_it_begins_anew_when_told():
    derivative = CausalDerivative(5, 1)
    for k in range(5):
        derivative.add(float(k), np.array([float(k)]))
    derivative.forget()
    assert [derivative.add(float(k), np.zeros(1)) is None for k in range(5)] == [True] * 4 + [False]


def test_a_window_that_is_too_short_is_refused():
    with pytest.raises(InputError, match="at least 4"):
        CausalDerivative(3, 1)

import numpy as np
import pytest
from scipy.signal import savgol_coeffs

from nori_dyn.errors import InputError
from nori_dyn.live.differentiation import ORDER, CausalDerivative


def test_weights_are_those_of_savitzky_and_golay_at_the_end_of_the_window():
    dt = 0.001
    for window in (5, 21, 51):
        theirs = savgol_coeffs(window, ORDER, deriv=1, delta=dt, pos=window - 1, use="dot")
        ours = CausalDerivative.weights(1234.5 + dt * np.arange(window))
        np.testing.assert_allclose(ours, theirs, rtol=1e-6, atol=1e-6 * np.abs(theirs).max())


def test_what_grows_evenly_is_told_without_delay_at_uneven_times():
    rng = np.random.default_rng(0)
    t = 100 + np.cumsum(rng.uniform(0.5e-3, 3e-3, 40))
    jerk, acceleration = rng.normal(size=(2, 4))
    velocities = np.outer(t - 100, acceleration) + np.outer((t - 100) ** 2 / 2, jerk)
    derivative = CausalDerivative(15, 4)
    found = [derivative.add(*sample) for sample in zip(t, velocities, strict=True)]
    assert all(each is None for each in found[:14])
    for k in range(14, 40):
        np.testing.assert_allclose(found[k], acceleration + jerk * (t[k] - 100), rtol=1e-6)


def test_the_delay_is_that_of_a_jump():
    dt = 0.001
    for window in (7, 21, 51):
        derivative = CausalDerivative(window, 1)
        t = dt * np.arange(-window, window)
        told = [derivative.add(at, np.maximum([at], 0.0)) for at in t]
        half = next(at for at, each in zip(t, told, strict=True) if each is not None and each[0] >= 0.5)
        assert derivative.delay(dt) == pytest.approx(half)


def test_the_noise_is_that_of_noise_and_it_begins_anew_when_told():
    derivative = CausalDerivative(21, 1)
    noise = np.random.default_rng(0).normal(0, 1e-3, 20000)
    told = [derivative.add(0.001 * k, noise[k : k + 1]) for k in range(len(noise))]
    assert np.std(told[20:]) == pytest.approx(1e-3 * derivative.noise(0.001), rel=0.05)
    derivative = CausalDerivative(5, 1)
    for k in range(5):
        derivative.add(float(k), np.array([float(k)]))
    derivative.forget()
    assert [derivative.add(float(k), np.zeros(1)) is None for k in range(5)] == [True] * 4 + [False]
    with pytest.raises(InputError, match="at least 4"):
        CausalDerivative(3, 1)

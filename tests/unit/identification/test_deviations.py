"""Deviations of what is identified, where residuals are correlated in time: a Monte Carlo over logs of an arm."""

import numpy as np
import pytest

import nori_dyn as nd
from tests.unit.identification.simulated import drawn, lasting

ARM = nd.autotree(3, skew=0.7)
SPEEDS = 0.4 * np.pi * np.array([[1.0, 2.3, 3.1], [1.3, 2.0, 3.7], [0.9, 2.7, 3.3]])


def errors(folder, rho: float, n: int, seeds: range, **options) -> tuple[np.ndarray, np.ndarray]:
    """The errors of combinations, and of parameters, that logs identify, over their deviations.

    The arm is drawn from what was known before, and the noise is of first order.

    Args:
        rho: correlation of the noise of one sample with that of the next.
        n: number of samples, at 100 Hz.
        seeds: one of each log.
        options: of `nd.identify`.
    """
    t = 0.01 * np.arange(n)
    of_combinations, of_parameters = [], []
    for seed in seeds:
        rng = np.random.default_rng(seed)
        sizes, phases = 0.5 * rng.normal(size=(3, 3)), rng.uniform(0, 2 * np.pi, size=(3, 3))
        angles = t[:, None, None] * SPEEDS + phases
        q, qd = (sizes * np.sin(angles)).sum(-1), (sizes * SPEEDS * np.cos(angles)).sum(-1)
        qdd = -(sizes * SPEEDS**2 * np.sin(angles)).sum(-1)
        real, truth = drawn(ARM, rng)
        tau = nd.rnea(real, q.T, qd.T, qdd.T).T + 0.1 * lasting(rng, n, 3, rho)
        np.savez(folder / "log.npz", t=t, q=q, qd=qd, qdd=qdd, tau=tau)
        found = nd.identify(folder / "log.npz", ARM, ["inertias"], physical=False, held_out=0.0, **options)
        combined = found.base.G @ truth
        identified = [each.left < 0.1 for each in found.combinations]
        off = [(each.value - true) / each.deviation for each, true in zip(found.combinations, combined, strict=True)]
        of_combinations += np.array(off)[identified].tolist()
        alone = [(each, true) for each, true in zip(found.estimates, truth, strict=True) if each.how == "identified"]
        of_parameters += [(each.plain - true) / each.deviation for each, true in alone]
    return np.array(of_combinations), np.array(of_parameters)


@pytest.mark.parametrize("rho", [pytest.param(0.0, marks=pytest.mark.long), 0.8, 0.95])
def test_deviations_of_combinations_are_as_large_as_their_errors(tmp_path, rho):
    """Under noise that lasts they were up to five times too small: the prior of each parameter hid how sums scatter."""
    assert 0.7 < errors(tmp_path, rho, 1000, range(8))[0].std() < 1.3

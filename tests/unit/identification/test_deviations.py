"""Deviations of what is told, where residuals are alike from sample to sample: a Monte Carlo over logs of an arm."""

import numpy as np
import pytest

import nori_dyn as nd

ARM = nd.autotree(3, skew=0.7)
T = 0.01 * np.arange(1000)


def errors(folder, rho: float, runs: int) -> np.ndarray:
    """Return the errors of combinations that logs tell, over their deviations, under noise of first order."""
    speeds = 0.4 * np.pi * np.array([[1.0, 2.3, 3.1], [1.3, 2.0, 3.7], [0.9, 2.7, 3.3]])
    found = []
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        sizes, phases = 0.5 * rng.normal(size=(3, 3)), rng.uniform(0, 2 * np.pi, size=(3, 3))
        angles = T[:, None, None] * speeds + phases
        q, qd = (sizes * np.sin(angles)).sum(-1), (sizes * speeds * np.cos(angles)).sum(-1)
        qdd = -(sizes * speeds**2 * np.sin(angles)).sum(-1)
        noise = rng.normal(size=q.shape)
        for k in range(1, len(T)):
            noise[k] = rho * noise[k - 1] + np.sqrt(1 - rho**2) * noise[k]
        tau = np.array([nd.rnea(ARM, *state) for state in zip(q, qd, qdd, strict=True)]) + 0.1 * noise
        np.savez(folder / "log.npz", t=T, q=q, qd=qd, qdd=qdd, tau=tau)
        told = nd.identify(folder / "log.npz", ARM, ["inertias"], physical=False, held_out=0.0).combinations
        found += [(each.value - each.before) / each.deviation for each in told if each.left < 0.1]
    return np.array(found)


@pytest.mark.parametrize("rho", [0.0, 0.8, 0.95])
def test_deviations_of_combinations_are_as_large_as_their_errors(tmp_path, rho):
    """Under noise that lasts they were up to five times too small: the prior of each parameter hid how sums scatter."""
    assert 0.5 < errors(tmp_path, rho, 4).std() < 1.5


@pytest.mark.long
@pytest.mark.xfail(reason="91 % where noise lasts: sixteen segments tell its scatter badly", strict=False)
@pytest.mark.parametrize("rho", [0.0, 0.8, 0.95])
def test_nineteen_of_twenty_are_within_twice_their_deviations(tmp_path, rho):
    assert 0.92 < np.mean(np.abs(errors(tmp_path, rho, 40)) < 1.96) < 0.985

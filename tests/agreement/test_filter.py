"""A filter of a push and offsets that cannot be told apart at one pose, against a hundred digits: nothing drifts."""

from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
import pytest
from numpy.typing import NDArray

from nori_dyn.algebra.ranges import numbers
from nori_dyn.estimation.plan import plan
from nori_dyn.estimation.tracker import Filter
from nori_dyn.model.synthetic import autotree
from nori_dyn.system.builder import System
from tests.systems import ACCELERATIONS, TORQUES, UNLOADED, sensor_set

Floats = NDArray[np.float64]

JOINTS = 2
DIGITS = 100


def pushed_or_off(sigma: float, noise: float) -> System:
    """An arm whose torques are read with offsets while something pushes at its tip.

    Args:
        sigma: deviation of the push and of the offsets at first [N m, N].
        noise: of each reading [N m].
    """
    torques = TORQUES | {"sigma": noise, "offset": {"sigma": sigma}}
    rows = ACCELERATIONS | {"value": 0}, torques, UNLOADED | {"links": {"except": "tips"}}
    memory = {"push": {"of": f"fx:link{JOINTS}", "sigma": sigma}, "offsets": {"of": "offset"}}
    return System(autotree(JOINTS, skew=0.3), sensor_set(*rows, name="pushed or off", memory=memory))


@dataclass(frozen=True)
class Exact:
    """What is known after some ticks at one pose.

    Attributes:
        mean: (k,), in a hundred digits.
        covariance: (k, k).
    """

    mean: Any
    covariance: Any

    def off(self, mean: Floats, covariance: Floats) -> tuple[float, float]:
        """How far an estimate (k,) and its covariance (k, k) are from what they should be.

        Both over the true deviations, in the directions in which these are independent.
        """
        with mp.workdps(DIGITS):
            whiten = mp.cholesky(self.covariance) ** -1
            z = whiten * (mp.matrix(mean.tolist()) - self.mean)
            P = whiten * mp.matrix(covariance.tolist()) * whiten.T - mp.eye(len(mean))
            return float(max(abs(x) for x in z)), float(max(abs(x) for x in P))


def exactly(system: System, names: tuple[str, ...], q: Floats, Y: Floats) -> Exact:
    """What N readings (N, ny) at rest tell of constants: P = (P_0^-1 + N H^T W H)^-1.

    The rows that hold exactly give all unknowns, d = d_0 + C m, so that H = Y C of the weighed rows Y.

    Source: the normal equations, which are as good as any in a hundred digits.
    """
    first = {one.known_by for one in system.memory}
    exact = [k for row in system.rows if row.is_exact for k in numbers(row.slice)]
    weighed = [row for row in system.rows if not row.is_exact and row.name not in first]
    rows = [k for row in weighed for k in numbers(row.slice)]
    D, b, N = system.D(q).toarray(), system.b(q, np.zeros(len(q)), Y.mean(axis=0)), system.shape[1]
    pick = np.eye(N)[[system.variable_names.index(name) for name in names]]
    sigmas = {name: s for one in system.memory for name, s in zip(one.variable.component_names, one.sigma, strict=True)}
    weights = system.weights[[k for row in weighed for k in row.weight_of_rows]]
    with mp.workdps(DIGITS):
        given = np.column_stack([np.vstack([np.zeros((len(exact), len(names))), np.eye(len(names))]), np.zeros(N)])
        given[: len(exact), -1] = -b[exact]
        C = mp.matrix(np.vstack([D[exact], pick]).tolist()) ** -1 * mp.matrix(given.tolist())
        H, d_0 = mp.matrix(D[rows].tolist()) * C[:, : len(names)], C[:, len(names)]
        bias = mp.matrix(D[rows].tolist()) * d_0 + mp.matrix(b[rows].tolist())
        W = mp.diag([mp.mpf(w) * len(Y) for w in weights.tolist()])
        P = (mp.diag([mp.mpf(sigmas[name]) ** -2 for name in names]) + H.T * W * H) ** -1
        return Exact(-P * H.T * W * bias, P)


@pytest.mark.parametrize(("sigma", "noise", "mean", "covariance"), [(10.0, 0.1, 1e-8, 1e-6), (1e3, 1e-2, 1e-4, 0.1)])
def test_what_cannot_be_told_apart_does_not_drift(sigma, noise, mean, covariance):
    """A push and offsets at one pose, all constants: sums are known 1e4 and 1e7 times better than each of them.

    The covariance is worse than what the filter carries, as the known directions drown in the rounding of the others.
    """
    system, q = pushed_or_off(sigma, noise), np.array([0.3, 0.7])
    running = Filter(plan(system, outputs=["tau"]), 1e-3, "native")
    Y = np.array([1.0, 2.0]) + noise * np.random.default_rng(6).normal(size=(10_000, 2))
    running.inputs.q[:] = q
    for y in Y:
        running.inputs.y[:] = y
        running.tick().raise_for_status()
    known = running.state
    P = known.covariance
    assert np.array_equal(P, P.T)
    assert np.linalg.eigvalsh(P).min() > 0
    off = exactly(system, running.memory_names, q, Y).off(known.mean, P)
    assert off[0] < mean
    assert off[1] < covariance

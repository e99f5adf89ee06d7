"""A push and offsets that cannot be told apart at one pose: what is known of both, in a hundred digits."""

from dataclasses import dataclass
from typing import Any

import mpmath as mp
import numpy as np
from numpy.typing import NDArray

from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.synthetic import autotree
from nori_dyn.system.builder import System
from tests.ticks import Part

Floats = NDArray[np.float64]

JOINTS = 2
DIGITS = 100


def pushed_or_off(sigma: float, noise: float) -> System:
    """An arm whose torques are read with offsets while something pushes at its tip.

    Args:
        sigma: deviation of the push and of the offsets at first [N m, N].
        noise: of each reading [N m].
    """
    content: dict[str, Any] = {
        "name": "pushed or off",
        "measurements": [
            {"type": "joint_acceleration", "joints": "all", "value": 0},
            {"type": "joint_torque", "joints": "all", "sigma": noise, "offset": {"sigma": sigma}},
            {"type": "external_wrench", "links": {"except": "tips"}, "value": 0},
        ],
        "memory": {"push": {"of": f"fx:link{JOINTS}", "sigma": sigma}, "offsets": {"of": "offset"}},
    }
    return System(autotree(JOINTS, skew=0.3), SensorSet.from_dict(content))


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

    Source: the normal equations, which are as good as any in a hundred digits.
    """
    part = Part.of(system, names)
    pose = part.pose(q)
    d_0 = pose.start(system.b(q, np.zeros(len(q)), np.zeros(system.ny))[part.exact], len(names))
    weights = system.weights[part.weights]
    bias = system.b(q, np.zeros(len(q)), Y.mean(axis=0))[part.weighed] + pose.Y.astype(np.longdouble) @ d_0
    with mp.workdps(DIGITS):
        H = mp.matrix([[mp.mpf(str(x)) for x in row] for row in pose.YC])
        W = mp.diag([mp.mpf(w) * len(Y) for w in weights.tolist()])
        prior = mp.diag([mp.mpf(s) ** -2 for s in part.beginning()[1].tolist()])
        P = (prior + H.T * W * H) ** -1
        mean = -P * H.T * W * mp.matrix([mp.mpf(str(x)) for x in bias])
    return Exact(mean, P)

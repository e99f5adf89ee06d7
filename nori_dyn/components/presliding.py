"""Presliding: before a joint slides, what rubs is deflected, and friction grows with how far the joint has moved.

    z(t) = exp(-dt / creep) z(t - dt) + (q(t) - q(t - dt)) / distance,   kept between -1 and 1

A spring, which creeps, in series with a slider: friction is F z. It is the sign of the velocity once a joint has moved
by twice the distance, and what is left of that while it rests.

Source: Prandtl (1928) for spring and slider; Al-Bender and Swevers, Characterization of friction force dynamics (2008)
for presliding of drives; that it creeps, as a Maxwell element does, is ours: docs/design.md, 4.13.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from nori_dyn.measurements.base import Positive, VariableReading
from nori_dyn.system.plugins import ConfigPart
from nori_dyn.typing import Floats


class Presliding(ConfigPart):
    """How a joint moves before it slides.

    Attributes:
        distance: displacement from rest at which it slides [rad or m]; it turns back over twice as much.
        creep: time in which the friction of a joint that rests fades to 1 / e [s].
    """

    distance: Positive = 2e-4
    creep: Positive = 1.5

    def after(self, z: Floats, travelled: Floats, elapsed: float) -> Floats:
        """Deflections (...) after a step, for those who tick by themselves.

        Args:
            z: those before (...); zero at first.
            travelled: how far the joints have moved since [rad or m].
            elapsed: the time since [s].

        Example:
            >>> law = nd.components.Friction(joints="all", presliding={"distance": 1e-3, "creep": 2.0}).presliding
            >>> print(np.round([law.after(0.0, 4e-4, 0.01), law.after(1.0, 0.0, 2.0), law.after(1.0, -5e-3, 0.01)], 3))
            [ 0.4    0.368 -1.   ]
        """
        z, travelled = np.broadcast_arrays(np.asarray(z, dtype=float), travelled)
        distance, creep = np.full(z.size, self.distance), np.full(z.size, self.creep)
        found = deflections(travelled.reshape(1, -1), np.array([elapsed]), distance, creep, z.ravel())
        return found.reshape(z.shape)


@dataclass(frozen=True, slots=True)
class DeflectionReading(VariableReading):
    """The deflection of a joint before it slides is what is read of it, between -1 and 1: an equation.

    Attributes:
        law: how it comes of the positions of the joint.
    """

    law: Presliding = field(default_factory=Presliding)


def deflections(travelled: Floats, elapsed: Floats, distance: Floats, creep: Floats, before: Floats) -> Floats:
    """Deflections z (N, n) of joints at successive samples.

    A step is u -> clip(a u + b, low, high), and so are several: samples are taken in blocks, side by side.

    Args:
        travelled: how far each joint has moved since the sample before (N, n) [rad or m].
        elapsed: time since then (N,) [s].
        distance: of each joint (n,) [rad or m], see `Presliding`.
        creep: likewise (n,) [s].
        before: the deflections before the first (n,).
    """
    N, n = travelled.shape
    length = max(1, int(np.ceil(np.sqrt(N))))
    blocks = -(-N // length)
    a, b = np.ones((blocks * length, n)), np.zeros((blocks * length, n))
    a[:N], b[:N] = np.exp(-elapsed[:, None] / creep), travelled / distance
    a, b = (each.reshape(blocks, length, n) for each in (a, b))
    factor, shift = np.ones((blocks, n)), np.zeros((blocks, n))
    low, high = np.full((blocks, n), -np.inf), np.full((blocks, n), np.inf)
    laws = np.empty((length, 4, blocks, n))
    for k in range(length):
        factor, shift = a[:, k] * factor, a[:, k] * shift + b[:, k]
        low, high = (np.clip(a[:, k] * end + b[:, k], -1.0, 1.0) for end in (low, high))
        laws[k] = factor, shift, low, high
    z = np.empty((blocks, length, n))
    for k in range(blocks):
        factor, shift, low, high = laws[:, :, k].transpose(1, 0, 2)
        z[k] = np.clip(factor * before + shift, low, high)
        before = z[k, -1]
    return z.reshape(-1, n)[:N]

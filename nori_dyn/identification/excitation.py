"""Exciting motions as a problem: a criterion of what is told, and limits, of the coefficients of Fourier series.

The coefficients are in units of what fills the limits: the mean position of half the room there is, every other one of
the largest amplitude that position, speed and acceleration allow it alone. All limits are ratios, at most 1.

Source: Swevers et al. (1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.identification.criteria import Criterion
from nori_dyn.identification.fourier import FourierSeries
from nori_dyn.identification.limits import MotionLimits
from nori_dyn.identification.motion_information import MotionInformation
from nori_dyn.identification.torque_limits import Torques, moving_numbers
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

SAMPLES = 40
"""Samples of a period, for each harmonic, at which motions are judged while they are sought."""

FINER = 10
"""Times as many at which limits are checked."""

MARGIN = 1e-3
"""What is left free of the limits for between the samples that are checked.

Of a sum of L harmonics at m samples a period the largest is less than 1 / cos(pi L / m) times that of the samples, here
3e-5 more, as it falls off from its largest value no faster than a cosine (M. Riesz, 1914); torques have some more
harmonics.
"""

HALVINGS = 12
"""Times that the interval is halved in which the largest motion is that keeps the limits."""


@dataclass(frozen=True, slots=True, eq=False)
class SampledBasis:
    """Times of a period, and the series at them.

    Attributes:
        t: the times (N,) [s].
        bases: the functions of the series, and their derivatives, (N, n) each.
    """

    t: Floats
    bases: tuple[Floats, Floats, Floats]

    @staticmethod
    def of(series: FourierSeries, n: int) -> SampledBasis:
        """Return n samples."""
        t = series.times(n)
        return SampledBasis(t, series.basis(t))


@dataclass(frozen=True, eq=False)
class Excitation:
    """The problem.

    Attributes:
        tree: the robot.
        moving: the bodies whose joints move.
        still: the configuration (nq,) of those that do not.
        series: how they move.
        limits: within which.
        information: what a motion tells.
        criterion: how that is judged.
        torques: of motions.
        rate: samples a second of the log that is to be.
        middle: the positions (n_joints,) about which motions are drawn, in which the robot can rest.
    """

    tree: KinematicTree
    moving: tuple[int, ...]
    still: Floats
    series: FourierSeries
    limits: MotionLimits
    information: MotionInformation
    criterion: Criterion
    torques: Torques
    rate: float
    middle: Floats

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Numbers of joints and of coefficients of each."""
        return len(self.moving), self.series.n

    @cached_property
    def coarse(self) -> SampledBasis:
        """The samples at which motions are judged."""
        return SampledBasis.of(self.series, SAMPLES * self.series.harmonics)

    @cached_property
    def fine(self) -> SampledBasis:
        """Those at which limits are checked."""
        return SampledBasis.of(self.series, FINER * SAMPLES * self.series.harmonics)

    @cached_property
    def units(self) -> Floats:
        """The unit of each coefficient (n_joints, n)."""
        largest = [np.abs(basis[:, 1:]).max(axis=0) for basis in self.fine.bases]
        allowed = (self.limits.room, self.limits.speed, self.limits.acceleration)
        ratios = [np.outer(limit, 1.0 / top) for limit, top in zip(allowed, largest, strict=True)]
        return np.column_stack([self.limits.room, np.min(ratios, axis=0)])

    def coefficients(self, z: Floats) -> Floats:
        """Return the coefficients (n_joints, n) of the series."""
        found = z.reshape(self.shape) * self.units
        found[:, 0] += self.limits.middle
        return found

    def motion(self, z: Floats, samples: SampledBasis) -> tuple[Floats, Floats, Floats]:
        """Return q (N, nq), qd (N, nv), qdd (N, nv) of the whole robot."""
        return whole_motion(self.tree, self.moving, self.still, self.coefficients(z), samples.bases)

    def ratios(self, z: Floats, samples: SampledBasis) -> tuple[Floats, ...]:
        """Return position from the middle, speed, acceleration (N, n_joints) and torque (N, n_limited) by limits."""
        return self.ratios_of(*self.motion(z, samples))

    def ratios_of(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, ...]:
        """Return the same of a motion of the whole robot."""
        of_q, of_v = moving_numbers(self.tree, self.moving)
        limits, torques = self.limits, self.torques
        return (
            (q[:, of_q] - limits.middle) / limits.room,
            qd[:, of_v] / limits.speed,
            qdd[:, of_v] / limits.acceleration,
            torques.of_motion(q, qd, qdd) / torques.limit,
        )

    def is_within(self, z: Floats) -> bool:
        """Return whether a motion keeps the limits, with the margin, at all samples that are checked."""
        return bool(max(np.abs(part).max(initial=0.0) for part in self.ratios(z, self.fine)) <= 1.0 - MARGIN)

    def judged(self, z: Floats) -> float:
        """Return the criterion of a motion."""
        return self.criterion(self.told_by(z))[0]

    def told_by(self, z: Floats) -> Floats:
        """Return the information of a motion."""
        return self.information.of_motion(*self.motion(z, self.coarse), self.stands_for)[0]

    @property
    def stands_for(self) -> float:
        """How many samples of the log each sample stands for at which motions are judged."""
        return self.rate * self.series.duration / len(self.coarse.t)

    def shrunk(self, z: Floats) -> Floats:
        """Return a motion brought towards rest in the middle, as far as the limits need."""
        if self.is_within(z):
            return z
        rest, within, beyond = self.at_rest, 0.0, 1.0
        for _ in range(HALVINGS):
            size = (within + beyond) / 2
            within, beyond = (size, beyond) if self.is_within(rest + size * (z - rest)) else (within, size)
        return rest + within * (z - rest)

    @cached_property
    def at_rest(self) -> Floats:
        """Rest in the middle."""
        z = np.zeros(self.shape)
        z[:, 0] = (self.middle - self.limits.middle) / self.limits.room
        return z

    def random(self, rng: np.random.Generator) -> Floats:
        """Return a random motion that fills the limits."""
        z = rng.normal(size=self.shape)
        z[:, 0] = 0.0
        mean = rng.uniform(-0.3, 0.3, len(z))
        mean += self.at_rest[:, 0] * (1.0 - np.abs(mean))
        position, speed, acceleration = (np.abs(part).max(axis=0) for part in self.ratios(z, self.coarse)[:3])
        z *= (1.0 - 2 * MARGIN) / np.max([position / (1.0 - np.abs(mean)), speed, acceleration], axis=0)[:, None]
        z[:, 0] = mean
        return self.shrunk(z)


def whole_motion(
    tree: KinematicTree,
    moving: Sequence[int],
    still: Floats,
    coefficients: Floats,
    bases: tuple[Floats, Floats, Floats],
) -> tuple[Floats, Floats, Floats]:
    """Return q (N, nq), qd (N, nv), qdd (N, nv) of the whole robot from the series of the joints that move."""
    of_q, of_v = moving_numbers(tree, moving)
    n = len(bases[0])
    q, qd, qdd = np.tile(still, (n, 1)), np.zeros((n, tree.nv)), np.zeros((n, tree.nv))
    q[:, of_q], qd[:, of_v], qdd[:, of_v] = (basis @ coefficients.T for basis in bases)
    return q, qd, qdd

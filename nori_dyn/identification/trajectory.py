"""Motions of a robot whose joints follow finite Fourier series, which may begin and end at rest.

Joint j moves by

    q_j(t) = q0_j + sum_l a_lj / (w l) sin(w l t) - b_lj / (w l) cos(w l t),   l = 1 ... harmonics, w = 2 pi / duration

so that a_lj and b_lj are amplitudes of its speed. Where the motion is to begin and end at rest, speed and acceleration
are zero at t = 0, and so at the end of the period: sum a_lj = 0 and sum l b_lj = 0. Both are linear, and the
coefficients are taken from the space that they leave.

Source: Swevers, Ganseman, Tukel, De Schutter and Van Brussel, Optimal robot excitation and identification (1997).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, null_space

from nori_dyn.algebra.arrays import checked, counted, numeric
from nori_dyn.errors import InputError
from nori_dyn.identification.motor_torques import MotorTorques
from nori_dyn.identification.moving_joints import MovingJoints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats


def is_number(value: object) -> bool:
    """Whether a value is one real number."""
    return isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)


@dataclass(frozen=True)
class FourierSeries:
    """The functions of time that a joint's motion is a sum of.

    Attributes:
        duration: the period [s].
        harmonics: how many multiples of the lowest frequency there are.
        at_rest: whether speed and acceleration are zero at both ends.

    Raises:
        InputError: a duration that is not positive; too few harmonics.
    """

    duration: float
    harmonics: int
    at_rest: bool = True

    def __post_init__(self) -> None:
        if not is_number(self.duration):
            raise InputError(f"duration is {self.duration!r:.40}: give a number of seconds.")
        if not 0 < self.duration < math.inf:
            raise InputError(f"duration is {self.duration:g} s: it must be positive and finite.")
        if counted("harmonics", self.harmonics) < 2 and self.at_rest:
            raise InputError(
                "harmonics is 1: a motion that begins and ends at rest needs 2 or more. Take 5, or at_rest=False."
            )

    @property
    def n(self) -> int:
        """Number of coefficients of a joint, that of its mean position first."""
        return int(self._free.shape[1])

    @cached_property
    def _free(self) -> Floats:
        """What q0, a and b (1 + 2 harmonics, n) may be."""
        L = self.harmonics
        if not self.at_rest:
            return np.eye(1 + 2 * L)
        ends = np.zeros((2, 2 * L))
        ends[0, :L], ends[1, L:] = 1.0, np.arange(1, L + 1)
        return np.asarray(block_diag(np.eye(1), null_space(ends)))

    def basis(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Functions at times t (N,) [s], and their first and second derivatives: (N, n) each."""
        k = 2.0 * math.pi / self.duration * np.arange(1, self.harmonics + 1)
        angle = np.multiply.outer(np.asarray(t, dtype=float), k)
        s, c = np.sin(angle), np.cos(angle)
        one, none = np.ones((len(s), 1)), np.zeros((len(s), 1))
        q, qd, qdd = np.hstack([one, s / k, -c / k]), np.hstack([none, c, s]), np.hstack([none, -s * k, c * k])
        return q @ self._free, qd @ self._free, qdd @ self._free

    def times(self, n: int) -> Floats:
        """Times (n,) [s] of a period, evenly spaced; the end, which is the beginning, is none of them."""
        return np.asarray(np.arange(n) * (self.duration / n))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion of a robot.

    Attributes:
        joints: those that move.
        forces: of their motors.
        series: the functions of time.
        coefficients: of the series (n_joints, n).
    """

    joints: MovingJoints
    forces: MotorTorques
    series: FourierSeries
    coefficients: Floats

    @property
    def tree(self) -> KinematicTree:
        """The robot."""
        return self.joints.tree

    def at(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """State q, qd and qdd at times t [s]: (nq,), (nv,), (nv,) at one, with a leading N at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        times = numeric("t", t)
        flat = checked("t", np.atleast_1d(times).ravel(), (times.size,))
        q, qd, qdd = self.joints.whole(*(basis @ self.coefficients.T for basis in self.series.basis(flat)))
        shape = times.shape
        return q.reshape(*shape, -1), qd.reshape(*shape, -1), qdd.reshape(*shape, -1)

    def torques(self, t: ArrayLike) -> Floats:
        """Joint forces (nv,) [N m, N] at a time t [s], or (N, nv) at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        q, qd, qdd = (x.reshape(-1, x.shape[-1]) for x in self.at(t))
        return self.forces(q, qd, qdd).reshape(*np.shape(t), -1)

"""Motions of a robot some of whose joints follow Fourier series: states and torques at any time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import checked, numeric
from nori_dyn.identification.excitation import whole_motion
from nori_dyn.identification.fourier import FourierSeries
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.rnea import rnea
from nori_dyn.typing import Floats


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion of a robot.

    Attributes:
        tree: the robot.
        series: the functions of time.
        moving: the bodies whose joints move, each of one freedom.
        still: the configuration (nq,) of the others.
        coefficients: of the series (n_joints, n).
    """

    tree: KinematicTree
    series: FourierSeries
    moving: tuple[int, ...]
    still: Floats
    coefficients: Floats

    def at(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Return q, qd and qdd at times t [s]: (nq,), (nv,), (nv,) at one, with a leading N at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        times = numeric("t", t)
        flat = checked("t", np.atleast_1d(times).ravel(), (times.size,))
        bases = self.series.basis(flat)
        q, qd, qdd = whole_motion(self.tree, self.moving, self.still, self.coefficients, bases)
        shape = times.shape
        return q.reshape(*shape, -1), qd.reshape(*shape, -1), qdd.reshape(*shape, -1)

    def torques(self, t: ArrayLike) -> Floats:
        """Return the joint forces (nv,) [N m, N] at a time t [s], or (N, nv) at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        q, qd, qdd = self.at(t)
        tau: Floats = np.moveaxis(rnea(self.tree, *(np.moveaxis(x, -1, 0) for x in (q, qd, qdd))), 0, -1)
        return tau

"""Motions of a robot whose joints follow finite Fourier series, which may begin and end at rest; torques along them.

Joint j moves by

    q_j(t) = q0_j + sum_l a_lj / (w l) sin(w l t) - b_lj / (w l) cos(w l t),   l = 1 ... harmonics, w = 2 pi / duration

so that a_lj and b_lj are amplitudes of its speed. Where the motion is to begin and end at rest, speed and acceleration
are zero at t = 0, and so at the end of the period: sum a_lj = 0 and sum l b_lj = 0. Both are linear, and the
coefficients are taken from the space that they leave.

With r the forces of all freedoms by inverse dynamics of the robot without its loops, and T the velocities of all that
moves at unit ones of independent joints, motors give

    T_a^T tau = T^T r.

Where more motors than that act on the motion, tau is the solution whose squares, in units of the limits, are least.

Source: Swevers, Ganseman, Tukel, De Schutter and Van Brussel, Optimal robot excitation and identification (1997); RBDA
ch. 8.5, Jourdain's principle; the derivatives are ours (tests/unit/identification/test_motion_constraints.py).
"""

from __future__ import annotations

import math
from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import null_space

from nori_dyn.algebra.arrays import checked, counted, numeric
from nori_dyn.errors import InputError
from nori_dyn.identification.dependent_joints import MovingJoints
from nori_dyn.identification.motion_gradient import MotionGradient, Pullback
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.typing import Floats, Indices


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
        return 1 + int(self._free.shape[1])

    @cached_property
    def _free(self) -> Floats:
        """What a and b (2 harmonics, n - 1) may be."""
        L = self.harmonics
        if not self.at_rest:
            return np.eye(2 * L)
        ends = np.zeros((2, 2 * L))
        ends[0, :L], ends[1, L:] = 1.0, np.arange(1, L + 1)
        return np.asarray(null_space(ends))

    def basis(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Functions at times t (N,) [s], and their first and second derivatives: (N, n) each."""
        L, w = self.harmonics, 2.0 * math.pi / self.duration
        k = w * np.arange(1, L + 1)
        angle = np.multiply.outer(np.asarray(t, dtype=float), k)
        s, c = np.sin(angle), np.cos(angle)
        parts = (
            np.concatenate([s / k, -c / k], axis=-1),
            np.concatenate([c, s], axis=-1),
            np.concatenate([-s * k, c * k], axis=-1),
        )
        found = []
        for part, mean in zip(parts, (1.0, 0.0, 0.0), strict=True):
            first = np.full((*part.shape[:-1], 1), mean)
            found.append(np.concatenate([first, part @ self._free], axis=-1))
        return found[0], found[1], found[2]

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


class _Distribution(NamedTuple):
    """How motors share the force of a motion.

    Attributes:
        T: velocities (N, n_moved, n_independent).
        m: T_a^T L^2 T_a m = T^T r (N, n_independent).
        tau: torques of all that moves (N, n_moved), zero without a motor.
    """

    T: Floats
    m: Floats
    tau: Floats


@dataclass(frozen=True, eq=False)
class MotorTorques:
    """The torques of motors, where some are limited.

    Attributes:
        joints: those that move.
        value: from q, qd, qdd to the forces of all freedoms, without loops.
        gradient: their derivatives by the freedoms that move, for factors.
        motors: the freedoms of motors.
        limit: their limits (nv,), infinite where there are none.
    """

    joints: MovingJoints
    value: CompiledFunction
    gradient: MotionGradient
    motors: Indices
    limit: Floats

    @staticmethod
    def of(joints: MovingJoints, motors: Collection[int], limit: Floats) -> MotorTorques:
        """Compile them, by inverse dynamics.

        Args:
            joints: those that move.
            motors: the freedoms that have one; without loops, others are held by somebody else.
            limit: of each freedom (nv,).

        Raises:
            InputError: no motor moves an independent joint.
            UnsupportedComponentError: see `nori_dyn.rnea`.
            CompilerError: as for `compile`.
        """
        tree, closing = joints.tree, {part.name for part in joints.tree.closing_parts}
        loose = [c for c in tree.components if not closing & {getattr(part, "name", "") for part in c.on(tree)}]
        found = traced(rnea, tree.replace(components=tuple(loose)), ("q", "qd", "qdd"))
        own = np.array(sorted(motors), dtype=np.intp)
        torques = MotorTorques(joints, CompiledFunction(found), MotionGradient.of(found, joints.moved), own, limit)
        if joints.dependents is not None:
            T = joints.dependents.velocities(joints.dependents.rest[None])[0][torques._own]
            if np.linalg.matrix_rank(T) < T.shape[1]:
                raise InputError(
                    f"robot '{tree.name}': its motors do not hold all joints that move independently. Name those that "
                    "motors move in `joints`, and let sensors say of others that their torque is zero."
                )
        return torques

    @property
    def limited(self) -> Indices:
        """The freedoms whose torque has a limit."""
        return self.motors[np.isfinite(self.limit[self.motors])]

    def __call__(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Torques (N, nv) of N samples."""
        r = np.asarray(self.value.batch(q, qd, qdd))
        return r if self.joints.dependents is None else self._of_motors(r, self._shared(q, r))

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """Torques by their limits (N, n_limited), and their derivatives."""
        limited, n = self.limited, len(q)
        if not len(limited):
            return np.zeros((n, 0)), lambda factors: np.zeros((3, n, len(self.joints.moved)))
        r = np.asarray(self.value.batch(q, qd, qdd))
        shared = None if self.joints.dependents is None else self._shared(q, r)
        tau = r if shared is None else self._of_motors(r, shared)

        def pullback(factors: Floats) -> Floats:
            phi = np.zeros(r.shape)
            phi[:, limited] = factors / self.limit[limited]
            return self.gradient(q, qd, qdd, phi) if shared is None else self._pulled(q, qd, qdd, r, shared, phi)

        return tau[:, limited] / self.limit[limited], pullback

    @property
    def _own(self) -> Indices:
        """Which of the freedoms that move have a motor."""
        return np.flatnonzero(np.isin(self.joints.moved, self.motors))

    @property
    def _sizes(self) -> Floats:
        """Squares of the limits of these motors, as large as the largest without one."""
        limit = self.limit[self.joints.moved][self._own]
        known = np.isfinite(limit)
        return np.where(known, limit, limit[known].max(initial=0.0) or 1.0) ** 2

    def _shared(self, q: Floats, r: Floats) -> _Distribution:
        assert self.joints.dependents is not None
        T = self.joints.dependents.velocities(q)
        own, sizes = self._own, self._sizes[:, None]
        M = np.swapaxes(T[:, own], 1, 2) @ (sizes * T[:, own])
        m = np.asarray(np.linalg.solve(M, np.swapaxes(T, 1, 2) @ r[:, self.joints.moved, None]), dtype=float)
        tau = np.zeros(T.shape[:2])
        tau[:, own] = (sizes * (T[:, own] @ m))[:, :, 0]
        return _Distribution(T, m[:, :, 0], tau)

    def _of_motors(self, r: Floats, shared: _Distribution) -> Floats:
        tau = np.zeros(r.shape)
        tau[:, self.motors] = r[:, self.motors]
        tau[:, self.joints.moved] = shared.tau
        return tau

    def _pulled(self, q: Floats, qd: Floats, qdd: Floats, r: Floats, shared: _Distribution, phi: Floats) -> Floats:
        """Derivatives (3, N, n_moved) of phi . tau, phi (N, nv) held constant.

        With f from T_a^T L^2 T_a f = T_a^T L^2 phi they are those of L^2 (phi - T_a f) . T m, of (r - tau) . T f, where
        only T moves, and of (T f) . r.
        """
        dependents, moved, own, sizes = self.joints.dependents, self.joints.moved, self._own, self._sizes
        assert dependents is not None
        T, n = shared.T, shared.T.shape[2]
        T_a, of_own = T[:, own], sizes * phi[:, moved][:, own]
        M = np.swapaxes(T_a, 1, 2) @ (sizes[:, None] * T_a)
        f = np.linalg.solve(M, np.swapaxes(T_a, 1, 2) @ of_own[:, :, None])
        along, by_own = (T @ f)[:, :, 0], np.zeros(T.shape[:2])
        by_own[:, own] = of_own - sizes * along[:, own]
        phi = phi.copy()
        phi[:, moved] = along
        found = self.gradient(q, qd, qdd, phi)
        found += dependents.turned(q, by_own[:, n:], (T @ shared.m[:, :, None])[:, :, 0])
        return found + dependents.turned(q, (r[:, moved] - shared.tau)[:, n:], along)

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        tree, freedom = self.joints.tree, int(self.limited[k])
        i = next(i for i, s in enumerate(tree.v_slices) if s.start == freedom)
        return (
            f"joint '{tree.joint_names[i]}' needs {ratio * self.limit[freedom]:.3g} of the {self.limit[freedom]:.3g} "
            f"{tree.joints[i].units('N m', 'N')[0]} that it may have"
        )

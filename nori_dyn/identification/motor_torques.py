"""The torques of motors along a motion, shared among them where there are more than independent joints.

With r the forces of all freedoms by inverse dynamics of the robot without its loops, and T the velocities of all that
moves at unit ones of independent joints, motors give

    T_a^T tau = T^T r.

Where more motors than that act on the motion, tau is the solution whose squares, in units of the limits L, are least:
tau = L^2 T_a m with T_a^T L^2 T_a m = T^T r.

Source: RBDA ch. 8.5, Jourdain's principle; the derivatives are ours
(tests/unit/identification/test_motion_constraints.py).
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.identification.motion_function import MotionFunction, Pullback
from nori_dyn.identification.moving_joints import DependentJoints, MovingJoints
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.typing import Floats, Indices


@dataclass(frozen=True, eq=False)
class MotorTorques:
    """The torques of motors, where some are limited.

    Attributes:
        joints: those that move.
        forces: of all freedoms, without loops (nv,).
        motors: the freedoms of motors.
        limit: their limits (nv,), infinite where there are none.
    """

    joints: MovingJoints
    forces: MotionFunction
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
        forces = traced(rnea, tree.replace(components=tuple(loose)), ("q", "qd", "qdd"))
        own = np.array(sorted(motors), dtype=np.intp)
        torques = MotorTorques(joints, MotionFunction.of(forces, joints.moved), own, limit)
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
        r = self.forces(q, qd, qdd)
        return r if self.joints.dependents is None else self._shared(self.joints.dependents, q, r)[0]

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """Torques by their limits (N, n_limited), and their derivatives."""
        limited, dependents = self.limited, self.joints.dependents
        if not len(limited):
            return np.zeros((len(q), 0)), lambda factors: np.zeros((3, len(q), len(self.joints.moved)))
        tau = r = self.forces(q, qd, qdd)
        if dependents is not None:
            tau, T, m = self._shared(dependents, q, r)

        def pullback(factors: Floats) -> Floats:
            by_tau = np.zeros(r.shape)
            by_tau[:, limited] = factors / self.limit[limited]
            if dependents is None:
                return self.forces.pullback(q, qd, qdd, by_tau)
            # With f from T_a^T L^2 T_a f = T_a^T L^2 by_tau, derivatives of by_tau . tau are those of
            # L^2 (by_tau - T_a f) . T m, of (r - tau) . T f, where only T moves, and of (T f) . r.
            moved, own, sizes, n = self.joints.moved, self._own, self._sizes, T.shape[2]
            T_a, of_own = T[:, own], sizes * by_tau[:, moved][:, own]
            f = np.linalg.solve(self._mass(T), np.swapaxes(T_a, 1, 2) @ of_own[:, :, None])
            along, by_own = (T @ f)[:, :, 0], np.zeros(T.shape[:2])
            by_own[:, own] = of_own - sizes * along[:, own]
            by_tau[:, moved] = along
            found = self.forces.pullback(q, qd, qdd, by_tau)
            found += dependents.turned(q, by_own[:, n:], (T @ m)[:, :, 0])
            return found + dependents.turned(q, (r - tau)[:, moved][:, n:], along)

        return tau[:, limited] / self.limit[limited], pullback

    @property
    def _own(self) -> Indices:
        """Which of the freedoms that move have a motor."""
        return np.flatnonzero(np.isin(self.joints.moved, self.motors))

    @property
    def _sizes(self) -> Floats:
        """L^2: squares of the limits of these motors, as large as the largest without one."""
        limit = self.limit[self.joints.moved][self._own]
        known = np.isfinite(limit)
        return np.where(known, limit, limit[known].max(initial=0.0) or 1.0) ** 2

    def _mass(self, T: Floats) -> Floats:
        """T_a^T L^2 T_a (N, n_independent, n_independent)."""
        T_a = T[:, self._own]
        return np.asarray(np.swapaxes(T_a, 1, 2) @ (self._sizes[:, None] * T_a))

    def _shared(self, dependents: DependentJoints, q: Floats, r: Floats) -> tuple[Floats, Floats, Floats]:
        """Torques (N, nv), T (N, n_moved, n_independent) and m (N, n_independent, 1)."""
        moved, own, T = self.joints.moved, self._own, dependents.velocities(q)
        m = np.linalg.solve(self._mass(T), np.swapaxes(T, 1, 2) @ r[:, moved, None])
        shares, tau = np.zeros(T.shape[:2]), np.zeros(r.shape)
        shares[:, own] = (self._sizes[:, None] * (T[:, own] @ m))[:, :, 0]
        tau[:, self.motors] = r[:, self.motors]
        tau[:, moved] = shares
        return tau, T, np.asarray(m)

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        tree, freedom = self.joints.tree, int(self.limited[k])
        i = next(i for i, s in enumerate(tree.v_slices) if s.start == freedom)
        return (
            f"joint '{tree.joint_names[i]}' needs {ratio * self.limit[freedom]:.3g} of the {self.limit[freedom]:.3g} "
            f"{tree.joints[i].units('N m', 'N')[0]} that it may have"
        )

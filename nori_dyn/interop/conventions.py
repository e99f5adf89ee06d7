"""Conventions of programs for the numbers of a state and of what acts on it: the one table of them.

What differs is where a joint has more than one freedom, the order of the joints, and where a wrench is taken:

============  =======================================================================================================
convention    what it is
============  =======================================================================================================
nori          ours. Free joint: q = position, quaternion (x, y, z, w); qd = angular, then linear velocity in the body's
              axes. fx (n_links, 6): moment, force in link coordinates.
pinocchio     Free joint: q as ours; qd = linear, then angular velocity in the body's axes. Continuous joint:
              q = cos, sin. Planar joint: q = x, y, cos, sin; qd = velocity of the origin in the body's axes, turn.
              fx (n + 1, 6): force, moment in link coordinates, a row a joint, the universe's first, as `rnea` takes it.
mujoco        Quaternions (w, x, y, z). Free joint: qd = velocity of the origin in the parent's axes, then angular
              velocity in the body's. fx (n, 6): force, moment about the origin of the link frame, in world axes, as
              `mj_applyFT` takes them at that point.
featherstone  His spatial_v2 (FDfb, IDfb). Quaternions (w, x, y, z). Free joint: q = quaternion, position; qd = spatial
              velocity in the parent's coordinates, taken at the parent's origin, angular first; qdd the derivative of
              that. fx (n, 6): spatial force in world coordinates, taken at the world's origin, moment first.
============  =======================================================================================================

qdd is always the time derivative of the qd of the same convention, and tau is what qd is paired with in the power
tau . qd, so a free joint's tau is ordered, and turned, as its qd. Spherical joints: angular velocity in the body's
axes everywhere. SI units throughout.

Source: own derivation, tests/unit/interop/test_conventions.py; the documents of each program for what they mean by qd.
"""

from __future__ import annotations

from typing import ClassVar, Literal, TypeAlias

import numpy as np

from nori_dyn.algebra.spatial import Transform, cross, matvec, transpose
from nori_dyn.errors import InputError
from nori_dyn.model.joints import Joint
from nori_dyn.typing import Array, Floats

ConventionName: TypeAlias = Literal["nori", "pinocchio", "mujoco", "featherstone"]

CIRCLE_TOLERANCE = 1e-3
"""A cosine and a sine this close to the unit circle are taken for those of an angle."""


class Convention:
    """Convention for the numbers of one joint and of a wrench; this one is ours, subclasses change it.

    Laws, tested for each: `own_q` undoes `peer_q`, and `own_wrench` undoes `peer_wrench`; qd of the program is
    `velocity_map` times ours, and `drift` is the rate of that map times our qd.
    """

    absent: ClassVar[tuple[str, ...]] = ()
    """The kinds of joints that the program does not have."""

    turning: ClassVar[tuple[str, ...]] = ()
    """The kinds of joints whose P changes with the motion."""

    first_row: ClassVar[int] = 0
    """The row of the first joint in fx."""

    def width(self, joint: Joint) -> int:
        """Number of configuration coordinates of a joint."""
        return joint.nq

    def peer_q(self, joint: Joint, q: Array, width: int) -> Array:
        """The program's configuration (width, ...) of a joint for ours (nq, ...)."""
        return q

    def own_q(self, joint: Joint, name: str, q: Array) -> Array:
        """Our configuration (nq, ...) of a joint for the program's."""
        return q

    def velocity_map(self, joint: Joint, q: Array) -> Array:
        """Matrix P (nv, nv, ...) with qd of the program = P qd."""
        return _over(np.eye(joint.nv), q)

    def drift(self, joint: Joint, q: Array, qd: Array) -> Array:
        """dP/dt qd (nv, ...)."""
        return 0 * qd

    def peer_wrench(self, X: Transform, f: Array) -> Array:
        """The program's wrench (6, ...) for ours on a link at X, from world to link coordinates."""
        return f

    def own_wrench(self, X: Transform, f: Array) -> Array:
        """Our wrench (6, ...) on a link at X for the program's."""
        return f


class _PinocchioConvention(Convention):
    absent = ("cylindrical",)
    turning = ("planar",)
    first_row = 1

    def width(self, joint: Joint) -> int:
        return {"continuous": 2, "planar": 4}.get(joint.kind, joint.nq)

    def peer_q(self, joint: Joint, q: Array, width: int) -> Array:
        if width == joint.nq:
            return q
        return np.stack([*q[1:], np.cos(q[0]), np.sin(q[0])])

    def own_q(self, joint: Joint, name: str, q: Array) -> Array:
        if len(q) == joint.nq:
            return q
        return np.stack([_angle(name, q[-2:]), *q[:-2]])

    def velocity_map(self, joint: Joint, q: Array) -> Array:
        if joint.kind == "free":
            return _over(np.roll(np.eye(6), 3, axis=0), q)
        if joint.kind == "planar":
            s, c, zero = np.sin(q[0]), np.cos(q[0]), 0 * q[0]
            return np.array([[zero, c, s], [zero, -s, c], [zero + 1, zero, zero]])
        return super().velocity_map(joint, q)

    def drift(self, joint: Joint, q: Array, qd: Array) -> Array:
        if joint.kind != "planar":
            return 0 * qd
        x, y, turn = matvec(self.velocity_map(joint, q), qd)
        return np.stack([turn * y, -turn * x, 0 * turn])

    def peer_wrench(self, X: Transform, f: Array) -> Array:
        return np.roll(f, 3, axis=0)

    own_wrench = peer_wrench


class _MuJoCoConvention(Convention):
    absent = ("helical", "cylindrical", "planar")
    turning = ("free",)

    def peer_q(self, joint: Joint, q: Array, width: int) -> Array:
        return np.concatenate([q[:-4], scalar_first(q)]) if "quaternion" in joint.coordinates else q

    def own_q(self, joint: Joint, name: str, q: Array) -> Array:
        return np.concatenate([q[:-4], scalar_last(q[-4:])]) if "quaternion" in joint.coordinates else q

    def velocity_map(self, joint: Joint, q: Array) -> Array:
        if joint.kind != "free":
            return super().velocity_map(joint, q)
        P = _over(np.zeros((6, 6)), q)
        P[:3, 3:] = transpose(joint.transform(q).E)
        P[[3, 4, 5], [0, 1, 2]] = 1
        return P

    def drift(self, joint: Joint, q: Array, qd: Array) -> Array:
        if joint.kind != "free":
            return 0 * qd
        turning = matvec(transpose(joint.transform(q).E), cross(qd[:3], qd[3:]))
        return np.concatenate([turning, 0 * turning])

    def peer_wrench(self, X: Transform, f: Array) -> Array:
        R = transpose(X.E)
        return np.concatenate([matvec(R, f[3:]), matvec(R, f[:3])])

    def own_wrench(self, X: Transform, f: Array) -> Array:
        return np.concatenate([matvec(X.E, f[3:]), matvec(X.E, f[:3])])


class _FeatherstoneConvention(Convention):
    absent = ("cylindrical", "planar")

    def peer_q(self, joint: Joint, q: Array, width: int) -> Array:
        return np.concatenate([scalar_first(q), q[:-4]]) if "quaternion" in joint.coordinates else q

    def own_q(self, joint: Joint, name: str, q: Array) -> Array:
        return np.concatenate([q[4:], scalar_last(q[:4])]) if "quaternion" in joint.coordinates else q

    def velocity_map(self, joint: Joint, q: Array) -> Array:
        if joint.kind != "free":
            return super().velocity_map(joint, q)
        return joint.transform(q).inverse().motion_matrix()

    def peer_wrench(self, X: Transform, f: Array) -> Array:
        return X.force_to_parent(f)

    def own_wrench(self, X: Transform, f: Array) -> Array:
        return X.inverse().force_to_parent(f)


CONVENTIONS: dict[str, Convention] = {
    "nori": Convention(),
    "pinocchio": _PinocchioConvention(),
    "mujoco": _MuJoCoConvention(),
    "featherstone": _FeatherstoneConvention(),
}
"""Every convention by its name."""


def _over(M: Floats, q: Array) -> Array:
    """A copy of a constant matrix over the batch axes of q."""
    return np.broadcast_to(M.reshape(M.shape + (1,) * (q.ndim - 1)), M.shape + q.shape[1:]).copy()


def scalar_first(q: Array) -> Array:
    """Quaternion (w, x, y, z) of the last four numbers (x, y, z, w) of a configuration."""
    return np.roll(q[-4:], 1, axis=0)


def scalar_last(quaternion: Array) -> Array:
    """Quaternion (x, y, z, w) of (w, x, y, z)."""
    return np.roll(quaternion, -1, axis=0)


def _angle(name: str, circle: Array) -> Array:
    lengths = np.hypot(circle[0], circle[1])
    off = np.abs(lengths - 1) > CIRCLE_TOLERANCE
    if off.any():
        raise InputError(
            f"q: the cosine and sine of joint '{name}' are off the unit circle, {lengths[off].flat[0]:.6g} from zero."
        )
    return np.asarray(np.arctan2(circle[1], circle[0]))

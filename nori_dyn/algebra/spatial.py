"""Spatial vectors and transforms, angular part first, written once over any scalar.

Arrays carry their spatial axes first and any batch axes last, so the same lines run on floats (no batch axis),
on batches of N states (a trailing axis N) and on expressions (dtype object).

Source: RBDA ch. 2; Nori, section II.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from nori_dyn.typing import Array, Floats


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros of the given spatial shape, over the scalar and with the batch axes of the vector `like`."""
    return np.zeros(shape + like.shape[1:], dtype=np.result_type(like.dtype, np.float64))


def diagonal(x: Array) -> Array:
    """The diagonal matrix (n, n, ...) of numbers (n, ...)."""
    found = zeros((len(x), len(x)), x)
    for k in range(len(x)):
        found[k, k] = x[k]
    return found


def matmul(A: Array, B: Array) -> Array:
    """The product A B of (m, n, ...) and (n, k, ...) arrays over any scalar."""
    result: Array = np.einsum("ij...,jk...->ik...", A, B)
    return result


def matvec(A: Array, v: Array) -> Array:
    """The product A v of an (m, n, ...) and an (n, ...) array over any scalar."""
    result: Array = np.einsum("ij...,j...->i...", A, v)
    return result


def stack(*parts: Any) -> Array:
    """Scalars or rows as one array, over the scalar and batch axes that they share."""
    return np.stack(np.broadcast_arrays(*(np.asarray(p) for p in parts)))


def spread(M: Array, shape: tuple[int, ...], batch: tuple[int, ...]) -> Array:
    """A constant of a spatial shape broadcast over batch axes; an array that has them is returned as it is."""
    if M.ndim == len(shape) + len(batch):
        return M
    return np.broadcast_to(M.reshape(shape + (1,) * len(batch)), shape + batch)


def add(x: Array, y: Array) -> Array:
    """The sum x + y of vectors (n, ...), where one may lack the batch axes of the other."""
    n_axes = max(x.ndim, y.ndim)
    return np.asarray(x.reshape(x.shape + (1,) * (n_axes - x.ndim)) + y.reshape(y.shape + (1,) * (n_axes - y.ndim)))


def join(*parts: Array) -> Array:
    """Vectors (n, ...) one below the other, where some may lack the batch axes of the others."""
    if len({part.ndim for part in parts}) == 1:
        return np.concatenate(parts)
    return stack(*(row for part in parts for row in part))


def skew(v: Array) -> Array:
    """The 3 x 3 matrix v x of a vector (3, ...): RBDA (2.23)."""
    x, y, z = v
    zero = x * 0
    return stack(stack(zero, -z, y), stack(z, zero, -x), stack(-y, x, zero))


def cross(u: Array, v: Array) -> Array:
    """Cross product u x v of vectors (3, ...); one may have axes that the other lacks, as a matrix of columns has."""
    a, b, c = (np.asarray(part) for part in u)  # a symbol itself knows nothing of arrays
    x, y, z = (np.asarray(part) for part in v)
    return stack(b * z - c * y, c * x - a * z, a * y - b * x)


def cross_motion(v: Array, m: Array) -> Array:
    """The cross product v x m of two motion vectors (6, ...): RBDA (2.31), Nori section II."""
    w, u = v[:3], v[3:]
    return np.concatenate([cross(w, m[:3]), cross(u, m[:3]) + cross(w, m[3:])])


def cross_force(v: Array, f: Array) -> Array:
    """The cross product v x* f of a motion and a force vector (6, ...): RBDA (2.32), Nori section II."""
    w, u = v[:3], v[3:]
    return np.concatenate([cross(w, f[:3]) + cross(u, f[3:]), cross(w, f[3:])])


def cross_motion_matrix(v: Array) -> Array:
    """The matrix v x (6, 6, ...) for a motion vector (6, ...): RBDA (2.31)."""
    w, u = skew(v[:3]), skew(v[3:])
    return blocks(w, w * 0, u, w)


def cross_force_matrix(v: Array) -> Array:
    """The matrix v x* (6, 6, ...) for a motion vector (6, ...): RBDA (2.32)."""
    w, u = skew(v[:3]), skew(v[3:])
    return blocks(w, u, w * 0, w)


def force_cross_matrix(f: Array) -> Array:
    """The matrix (6, 6, ...) that takes v to v x* f, for a force vector f (6, ...).

    Source: Echeandia and Wensing, appendix A.
    """
    n, g = skew(f[:3]), skew(f[3:])
    return blocks(-n, -g, -g, g * 0)


def scaled(x: Any, M: Array) -> Array:
    """The product x M of a scalar x (...) and an array M, also where x is a symbol that knows nothing of arrays."""
    return np.asarray(np.asarray(x) * M)


def blocks(A: Array, B: Array, C: Array, D: Array) -> Array:
    """[[A, B], [C, D]] of (3, 3, ...) matrices."""
    return np.concatenate([np.concatenate([A, B], axis=1), np.concatenate([C, D], axis=1)])


def transpose(A: Array) -> Array:
    """The transpose (n, m, ...) of (m, n, ...)."""
    return np.swapaxes(A, 0, 1)


def centripetal(w: Array, r: Array) -> Array:
    """Product w x (w x r) of an angular velocity w (3, ...) and an arm r (3, ...), by products of w's components."""
    x, y, z = w
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return stack(
        xy * r[1] + xz * r[2] - (yy + zz) * r[0],
        xy * r[0] + yz * r[2] - (xx + zz) * r[1],
        xz * r[0] + yz * r[1] - (xx + yy) * r[2],
    )


def gyroscopic(w: Array, I: Array) -> Array:
    """The product w x I w of an angular velocity w (3, ...) and a constant symmetric I (3, 3), by the same products."""
    x, y, z = w
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return stack(
        (I[2, 2] - I[1, 1]) * yz + I[1, 2] * (yy - zz) + I[0, 2] * xy - I[0, 1] * xz,
        (I[0, 0] - I[2, 2]) * xz + I[0, 2] * (zz - xx) + I[0, 1] * yz - I[1, 2] * xy,
        (I[1, 1] - I[0, 0]) * xy + I[0, 1] * (xx - yy) + I[1, 2] * xz - I[0, 2] * yz,
    )


def inertial_force(I: Array, w: Array) -> Array:
    """The inertial force beside I a for a conventional acceleration a of a body with angular velocity w (3,).

    Args:
        I: the inertia of a body (6, 6), or the sum of those of points.
        w: its angular velocity (3,).
    """
    first_moment = np.array([I[2, 4], I[0, 5], I[1, 3]])
    return join(gyroscopic(w, I[:3, :3]), centripetal(w, first_moment))


def spatial_inertia(mass: float, com: Array, I_com: Array) -> Floats:
    """The 6 x 6 spatial inertia of a rigid body: RBDA (2.63), Nori footnote 2.

    Args:
        mass: [kg].
        com: centre of mass (3,) [m], in the frame of the result.
        I_com: rotational inertia (3, 3) about the centre of mass [kg m^2], in the axes of the result.
    """
    C = skew(np.asarray(com, dtype=float))
    I = np.zeros((6, 6))
    I[:3, :3] = np.asarray(I_com) - mass * (C @ C)  # the bracket keeps it exactly symmetric
    I[:3, 3:] = mass * C
    I[3:, :3] = -mass * C
    I[3:, 3:] = mass * np.eye(3)
    return I


def rigid_parts(I: Array) -> tuple[Array, Array, Any]:
    """J (3, 3, ...), h (3, ...) and m of the inertia [[J, h x], [-h x, m 1]] of a rigid body: RBDA (2.63)."""
    return I[:3, :3], stack(I[2, 4], I[0, 5], I[1, 3]), I[5, 5]


def rigid_inertia(J: Array, h: Array, m: Any) -> Array:
    """The inertia (6, 6, ...) of its parts, see `rigid_parts`."""
    H = skew(h)
    eye = np.eye(3).reshape((3, 3) + (1,) * (h.ndim - 1))
    return blocks(J, H, -H, scaled(m, eye))


def inertia_numbers(I: Array) -> Array:
    """J_xx, J_xy, J_xz, J_yy, J_yz, J_zz, h and m (10, ...) of the inertia of a rigid body."""
    J, h, m = rigid_parts(I)
    return stack(J[0, 0], J[0, 1], J[0, 2], J[1, 1], J[1, 2], J[2, 2], *h, m)


def inertia_of(numbers: Array) -> Array:
    """The inertia (6, 6, ...) of its numbers, see `inertia_numbers`."""
    xx, xy, xz, yy, yz, zz, *h, m = numbers
    return rigid_inertia(stack(stack(xx, xy, xz), stack(xy, yy, yz), stack(xz, yz, zz)), stack(*h), m)


@dataclass(frozen=True, slots=True)
class Transform:
    """The Plücker transform from a frame A to a frame B, kept as rotation and translation: RBDA (2.24).

    Attributes:
        E: rotation (3, 3, ...) from A to B coordinates.
        r: position (3, ...) of B's origin in A coordinates [m].
    """

    E: Array
    r: Array

    @staticmethod
    def identity() -> Transform:
        """The transform from a frame to itself."""
        return Transform(np.eye(3), np.zeros(3))

    def __matmul__(self, first: Transform) -> Transform:
        """C_X_A = C_X_B B_X_A for self = C_X_B and first = B_X_A."""
        r = add(first.r, matvec(np.swapaxes(first.E, 0, 1), self.r))
        return Transform(matmul(self.E, first.E), r)

    def inverse(self) -> Transform:
        """A_X_B."""
        return Transform(np.swapaxes(self.E, 0, 1), -matvec(self.E, self.r))

    def apply_motion(self, m: Array) -> Array:
        """B_X_A m for a motion vector m (6, ...) in A: RBDA table 2.1."""
        w, u = m[:3], m[3:]
        return join(matvec(self.E, w), matvec(self.E, add(u, cross(w, self.r))))

    def force_to_parent(self, f: Array) -> Array:
        """A_X*_B f for a force vector f (6, ...) in B, which is the transpose of B_X_A: RBDA table 2.1."""
        E_T = transpose(self.E)
        n, g = matvec(E_T, f[:3]), matvec(E_T, f[3:])
        return join(add(n, cross(self.r, g)), g)

    def form_to_parent(self, M: Array) -> Array:
        """(B_X_A)^T M B_X_A for a matrix M (6, 6, ...) that takes motions to forces in B.

        E, r and M have the same batch axes. Source: RBDA (2.66), for any M; by 3 x 3 blocks, own derivation
        (tests/unit/algebra/test_spatial.py).
        """
        E, E_T, r = self.E, transpose(self.E), skew(self.r)
        A, B, C, D = (matmul(matmul(E_T, part), E) for part in (M[:3, :3], M[:3, 3:], M[3:, :3], M[3:, 3:]))
        lower = C - matmul(D, r)
        return blocks(A - matmul(B, r) + matmul(r, lower), B + matmul(r, D), lower, D)

    def inertia_to_parent(self, I: Array) -> Array:
        """(B_X_A)^T I B_X_A for the inertia I (6, 6, ...) of a rigid body, whose ten numbers it keeps apart.

        Source: RBDA (2.66), table 2.2; own derivation (tests/unit/algebra/test_spatial.py).
        """
        E_T, r = transpose(self.E), spread(self.r, (3,), I.shape[2:])
        J, h, m = rigid_parts(I)
        J, h = matmul(matmul(E_T, J), self.E), matvec(E_T, h)
        g = h + scaled(m / 2, r)
        outer = r[:, None] * g + g[:, None] * r
        eye = np.eye(3).reshape((3, 3) + (1,) * (r.ndim - 1))
        return rigid_inertia(J + scaled(outer[0, 0] + outer[1, 1] + outer[2, 2], eye) - outer, h + scaled(m, r), m)

    def motion_matrix(self) -> Array:
        """The 6 x 6 matrix B_X_A for motion vectors: RBDA (2.24)."""
        corner = -matmul(self.E, skew(self.r))
        E = self._rotation_like(corner)
        return blocks(E, corner * 0, corner, E)

    def force_matrix(self) -> Array:
        """The 6 x 6 matrix B_X*_A for force vectors: RBDA (2.25)."""
        corner = -matmul(self.E, skew(self.r))
        E = self._rotation_like(corner)
        return blocks(E, corner, corner * 0, E)

    def _rotation_like(self, corner: Array) -> Array:
        """E with the batch axes of (3, 3, ...) blocks: a pure translation has a constant E."""
        return np.broadcast_to(self.E.reshape(self.E.shape + (1,) * (corner.ndim - self.E.ndim)), corner.shape)

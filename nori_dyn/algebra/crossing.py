"""A link transform as a product of shifts, relabelled axes and planar rotations, each of which costs few operations.

Source: docs/design.md, 4.4; own derivation (tests/unit/recursions/test_rnea.py, of every joint).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from nori_dyn.algebra.planar import is_signed_permutation, planar_congruence
from nori_dyn.algebra.scalars import is_zero
from nori_dyn.algebra.spatial import Transform, blocks, matvec, rigid_inertia, rigid_parts, transpose
from nori_dyn.typing import Array

Plane = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class TransformFactor:
    """A part of a link transform.

    Attributes:
        X: a shift, after which axes may have other names, or a turn.
        plane: the axes (i, j) between which a rotation turns, E_ii = E_jj = c and E_ij = -E_ji = s; None for others.
    """

    X: Transform
    plane: Plane | None = None

    @property
    def turn(self) -> tuple[int, int, Any, Any]:
        """The axes i and j of the plane, and the cosine and sine."""
        if self.plane is None:
            raise TypeError("this step is no turn in a plane")
        i, j = self.plane
        return i, j, self.X.E[i, i], self.X.E[i, j]

    @property
    def is_identity(self) -> bool:
        """Whether this factor is the identity for all values of the inputs."""
        E = self.X.E
        return all(_is(E[i, j], float(i == j)) for i, j in np.ndindex(3, 3)) and all(_is(x, 0.0) for x in self.X.r)


@dataclass(frozen=True, slots=True, eq=False)
class Crossing:
    """A link transform as a product of steps, with the operations of `Transform`.

    Attributes:
        steps: the first one first.
    """

    steps: tuple[TransformFactor, ...]

    @staticmethod
    def of(shift: Array, rotations: Sequence[Array], X_J: Transform, plane: Plane | None) -> Crossing:
        """The way across a joint.

        Args:
            shift: where the joint sits on the parent (3,) [m].
            rotations: fixed rotations (3, 3) from the parent's axes to the joint's, see `planar_factors`. The first is
                one step with the shift where it only relabels the axes.
            X_J: the joint's own transform.
            plane: the plane in which the joint turns, if it does.
        """
        eye, zero = np.eye(3), np.zeros(3)
        relabel, *turns = rotations if rotations and is_signed_permutation(rotations[0]) else (eye, *rotations)
        steps = [
            TransformFactor(Transform(relabel, shift)),
            *(TransformFactor(Transform(E, zero), fixed_plane(E)) for E in turns),
        ]
        steps += [TransformFactor(Transform(eye, X_J.r)), TransformFactor(Transform(X_J.E, zero), plane)]
        return Crossing(tuple(step for step in steps if not step.is_identity))

    @property
    def X(self) -> Transform:
        """The product of the steps."""
        return reduce(lambda X, step: step.X @ X, self.steps, Transform.identity())

    def apply_motion(self, m: Array) -> Array:
        """B_X_A m for motions m (6, ...), see `Transform`."""
        return reduce(lambda m, step: step.X.apply_motion(m), self.steps, m)

    def force_to_parent(self, f: Array) -> Array:
        """A_X*_B f for forces f (6, ...), see `Transform`."""
        return reduce(lambda f, step: step.X.force_to_parent(f), self.steps[::-1], f)

    def form_to_parent(self, M: Array) -> Array:
        """(B_X_A)^T M B_X_A for any M (6, 6, ...), see `Transform`."""
        return reduce(_form_across, self.steps[::-1], M)

    def inertia_to_parent(self, I: Array) -> Array:
        """(B_X_A)^T I B_X_A for the inertia I (6, 6, ...) of a rigid body, see `Transform`."""
        return reduce(_inertia_across, self.steps[::-1], I)

    def motion_matrix(self) -> Array:
        """The matrix (6, 6, ...) of the product."""
        return self.X.motion_matrix()


def as_transform(X: Transform | Crossing) -> Transform:
    """A link transform as one `Transform`, whether it is kept as a product or not."""
    return X.X if isinstance(X, Crossing) else X


def fixed_plane(E: Array) -> Plane | None:
    """The axes between which a constant rotation (3, 3) turns; None where it does not turn, or in no plane."""
    alone = np.flatnonzero(np.count_nonzero(E, axis=1) == 1)
    if is_signed_permutation(E) or len(alone) != 1:
        return None
    return (int(alone[0]) + 1) % 3, (int(alone[0]) + 2) % 3


def _form_across(M: Array, step: TransformFactor) -> Array:
    if step.plane is None:
        return step.X.form_to_parent(M)
    A, B, C, D = (_turn_tensor(part, step) for part in (M[:3, :3], M[:3, 3:], M[3:, :3], M[3:, 3:]))
    return blocks(A, B, C, D)


def _inertia_across(I: Array, step: TransformFactor) -> Array:
    if step.plane is None:
        return step.X.inertia_to_parent(I)
    J, h, m = rigid_parts(I)
    return rigid_inertia(_turn_tensor(J, step), matvec(transpose(step.X.E), h), m)


def _turn_tensor(M: Array, step: TransformFactor) -> Array:
    """E^T M E of (3, 3, ...)."""
    i, j, c, s = step.turn
    k = 3 - i - j
    T = np.empty(M.shape, dtype=np.result_type(M.dtype, step.X.E.dtype))
    T[i, i], T[i, j], T[j, i], T[j, j] = planar_congruence(c, -s, (M[i, i], M[i, j], M[j, i], M[j, j]))
    T[i, k], T[j, k] = c * M[i, k] - s * M[j, k], s * M[i, k] + c * M[j, k]
    T[k, i], T[k, j] = c * M[k, i] - s * M[k, j], s * M[k, i] + c * M[k, j]
    T[k, k] = M[k, k]
    return T


def _is(x: Any, value: float) -> bool:
    """Whether a scalar, or all of a batch, equals a number for all values of the inputs."""
    if isinstance(x, np.ndarray):
        return bool(np.all(x == value)) if x.dtype != object else all(_is(part, value) for part in x.flat)
    return is_zero(x - value)

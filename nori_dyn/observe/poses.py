"""Special poses: configurations at which frames are parallel, in one plane, on the ground, or joints at their limits.

They are solved for, from random starts and within the joint limits; of a robot with loops or couplings they are closed.
To add one: a function of the poses of frames that
is zero where the condition holds, and an entry of `POSES`.

Source: own derivation (tests/unit/observe/test_poses.py).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TypeAlias

import numpy as np

from nori_dyn.algebra.ranges import numbers, numbers_in
from nori_dyn.algebra.spatial import cross, matvec, spread, transpose
from nori_dyn.errors import InputError, NoConfigurationError, UnknownPoseError
from nori_dyn.model.closure import CLOSED, gaps
from nori_dyn.model.kinematics import link_transforms, positions, world_transforms
from nori_dyn.model.paths import path
from nori_dyn.model.tree import Frame, KinematicTree, NamedFrame
from nori_dyn.typing import Floats, Indices

Draw: TypeAlias = Callable[[KinematicTree, np.random.Generator], Floats]

Z_AXIS = (0.0, 0.0, 1.0)

PRECISION = 1e-10
"""Largest residual [m, rad] at which a condition holds."""

EXACT = 1e-14
"""Residual [m, rad] at which the solution of a condition stops, or relative change of it."""

EVALUATIONS = 100
"""Most steps from one start."""

STARTS = 30
"""Random starts for each configuration that is wanted."""

STEP = 1e-6
"""Step of the central differences by which conditions are solved."""


@dataclass(frozen=True, slots=True)
class FramePoses:
    """Where some frames are at N configurations, in world coordinates.

    Attributes:
        origins: positions (frames, 3, N) [m].
        normals: unit normals (frames, 3, N).
        distance: the wanted distance of the first two [m].
    """

    origins: Floats
    normals: Floats
    distance: float


@dataclass(frozen=True, slots=True)
class SpecialPose:
    """A condition on the configuration.

    Attributes:
        meaning: "frames so and so are ..."
        residual: what is zero (k, N) where it holds; None for a condition on the joints.
        n_frames: least number of frames that it is on.
        draw: a random configuration (nq,) at which it holds, for a condition on the joints.
    """

    meaning: str
    residual: Callable[[FramePoses], Floats] | None = None
    n_frames: int = 0
    draw: Draw | None = None


def _parallel(at: FramePoses) -> Floats:
    """n_1 x n_k."""
    return np.concatenate([cross(at.normals[0], normal) for normal in at.normals[1:]])


def _coplanar(at: FramePoses) -> Floats:
    """n_1 x n_k, and n_1 (p_k - p_1)."""
    offsets = [np.sum(at.normals[0] * (p - at.origins[0]), axis=0, keepdims=True) for p in at.origins[1:]]
    return np.concatenate([_parallel(at), *offsets])


def _flat(at: FramePoses) -> Floats:
    """n_k - z, and z (p_k - p_1)."""
    upwards = [normal - np.array(Z_AXIS)[:, None] for normal in at.normals]
    return np.concatenate([*upwards, *(p[2:] - at.origins[0][2:] for p in at.origins[1:])])


def _double_support(at: FramePoses) -> Floats:
    """As flat, with z p_1 = 0 and |p_2 - p_1| the given distance."""
    apart = np.linalg.norm(at.origins[1] - at.origins[0], axis=0, keepdims=True)
    return np.concatenate([_flat(at), at.origins[0][2:], apart - at.distance])


def _at_zero(tree: KinematicTree, rng: np.random.Generator) -> Floats:
    """Every joint at zero but a free one, which is anywhere."""
    joints = (joint.random(rng) if joint.kind == "free" else joint.neutral() for joint in tree.joints)
    return np.concatenate([*joints])


def _at_limits(tree: KinematicTree, rng: np.random.Generator) -> Floats:
    """Every joint with limits at one of them, the others anywhere."""
    parts = []
    for joint in tree.joints:
        limits = [limit for limit in joint.room if np.isfinite(limit)]
        parts.append(np.array([rng.choice(limits)]) if limits else joint.random(rng))
    return np.concatenate(parts)


POSES: dict[str, SpecialPose] = {
    "parallel": SpecialPose("with parallel normals", _parallel, 2),
    "coplanar": SpecialPose("in one plane", _coplanar, 2),
    "flat": SpecialPose("upright on one level", _flat, 1),
    "double_support": SpecialPose("standing on the ground, a given distance apart", _double_support, 2),
    "closed": SpecialPose("with loops and couplings closed", draw=KinematicTree.random_configuration),
    "at_zero": SpecialPose("at the zero of every joint", draw=_at_zero),
    "at_limits": SpecialPose("at a limit of every joint", draw=_at_limits),
}
"""Every special pose by its name."""


def special_pose(condition: str) -> SpecialPose:
    """A special pose by name.

    Raises:
        UnknownPoseError: there is none of that name.
    """
    if condition not in POSES:
        raise UnknownPoseError("special pose", condition, POSES)
    return POSES[condition]


def configurations_where(
    tree: KinematicTree,
    condition: str,
    frames: Sequence[str | NamedFrame] = (),
    n: int = 10,
    seed: int = 0,
    normals: Sequence[Sequence[float]] | None = None,
    distance: float | None = None,
) -> Floats:
    """Random configurations (n, nq) at which a condition holds, within the joint limits.

    "parallel": the normals of the frames are, either way round. "coplanar": the frames lie in one plane. "flat": they
    are upright on one level. "double_support": they stand on the ground z = 0, the first two a given distance apart.
    "at_zero" and "at_limits": the joints are at zero, or at a limit each; a free base is anywhere. "closed": nothing
    else. Loops and couplings of the robot are closed at all of them.

    Args:
        tree: the robot.
        condition: one of these.
        frames: links or frames that it is on, by name, or as frames of which the tree need not know.
        n: number of configurations.
        seed: seed of the random starts.
        normals: the normal of each frame, in its coordinates (frames, 3); the z axis when None.
        distance: for "double_support" [m]; as in the neutral configuration when None.

    Raises:
        UnknownPoseError, UnknownModelNameError: there is no such condition, or no such frame.
        InputError: too few frames, or normals that do not fit.
        NoConfigurationError: the robot cannot be in such a pose.
        NotClosedError: its loops cannot be closed at all.

    Example:
        >>> Q = nd.configurations_where(nd.autotree(3, skew=1.0), "parallel", ("link1", "link3"), n=2)
        >>> print(np.round(np.cos(Q[:, 1]), 6))  # folded back
        [-1. -1.]
    """
    pose = special_pose(condition)
    rng = np.random.default_rng(seed)
    given = () if pose.draw is not None else (frames,) if isinstance(frames, str) else frames
    named = [NamedFrame(frame, tree.frame(frame)) if isinstance(frame, str) else frame for frame in given]
    attempt: Callable[[np.random.Generator], tuple[Floats, float]]
    if pose.draw is not None:
        attempt, precision = partial(_drawn, tree, pose.draw), CLOSED
    else:
        problem = _PoseProblem.of(tree, condition, named, normals, distance)
        attempt, precision = (lambda rng: problem.solve(tree.draw(rng))), PRECISION
    found: list[Floats] = []
    nearest = np.inf
    for start in range(STARTS * max(n, 1)):
        if len(found) == n or (start >= STARTS and not found):
            break
        q, residual = attempt(rng)
        nearest = min(nearest, residual) if not found else nearest
        if residual <= precision:
            found.append(q)
    if len(found) < n:
        names = [frame.name for frame in named]
        raise NoConfigurationError(tree.name, condition, pose.meaning, names, nearest, len(found))
    return np.array(found).reshape(n, tree.nq)


def _drawn(tree: KinematicTree, draw: Draw, rng: np.random.Generator) -> tuple[Floats, float]:
    """A drawn configuration (nq,), and how far loops and couplings are from closed there."""
    q = draw(tree, rng)
    return q, float(np.abs(gaps(positions(tree, q))).max(initial=0.0))


@dataclass(frozen=True, slots=True, eq=False)
class _PoseProblem:
    """A condition to be solved for the joints that carry its frames.

    Attributes:
        tree: the robot.
        pose: the condition.
        frames: its frames.
        carriers: the bodies that carry them; all, where loops and couplings are to be closed.
        normals: in the coordinates of each (frames, 3).
        distance: see `configurations_where`.
        free: the places in q of the numbers that are solved for.
        limits: the smallest and largest value of each (2, free).
    """

    tree: KinematicTree
    pose: SpecialPose
    frames: tuple[Frame, ...]
    carriers: tuple[int, ...]
    normals: Floats
    distance: float
    free: Indices
    limits: Floats

    @staticmethod
    def of(
        tree: KinematicTree,
        condition: str,
        named: Sequence[NamedFrame],
        normals: Sequence[Sequence[float]] | None,
        distance: float | None,
    ) -> _PoseProblem:
        """The problem of a condition.

        Raises:
            InputError: too few frames, or normals that do not fit.
        """
        pose = POSES[condition]
        names = [frame.name for frame in named]
        if len(names) < pose.n_frames or len(set(names)) < len(names):
            raise InputError(f"'{condition}' is a condition on {pose.n_frames} or more frames by name, not {names!r}.")
        directions = np.array([Z_AXIS] * len(names) if normals is None else normals, dtype=float)
        lengths = np.linalg.norm(directions, axis=-1, keepdims=True)
        if directions.shape != (len(names), 3) or not np.isfinite(directions).all() or not lengths.all():
            raise InputError(f"normals must be a direction for each of {len(names)} frames: {normals!r}.")
        frames = tuple(frame.frame for frame in named)
        carriers = tuple(sorted({i for frame in frames for i in path(tree.parents, frame.link)}))
        if tree.closing_parts:  # these may need any joint
            carriers = tuple(range(tree.n_links))
        limits = np.array([tree.joints[i].room for i in carriers for _ in numbers(tree.q_slices[i])]).reshape(-1, 2).T
        free = numbers_in(tree.q_slices[i] for i in carriers)
        found = _PoseProblem(tree, pose, frames, carriers, directions / lengths, 0.0, free, limits)
        if distance is None:
            origins = found.poses(tree.neutral_configuration()[:, None]).origins
            distance = float(np.linalg.norm(origins[-1] - origins[0]))
        return replace(found, distance=float(distance))

    def poses(self, Q: Floats) -> FramePoses:
        """Where the frames are at configurations Q (nq, N)."""
        tree, Q = self.tree, self._normalised(Q)
        X_0 = world_transforms(tree, link_transforms(tree, Q, self.carriers))
        origins, normals = [], []
        for frame, normal in zip(self.frames, self.normals, strict=True):
            X = frame.X @ X_0[frame.link]
            origins.append(spread(X.r, (3,), Q.shape[1:]))
            normals.append(spread(matvec(transpose(X.E), normal), (3,), Q.shape[1:]))
        return FramePoses(np.array(origins), np.array(normals), self.distance)

    def _normalised(self, Q: Floats) -> Floats:
        """Configurations (nq, N) whose quaternions may be of any length with such of unit length."""
        for part in self.tree.quaternions:
            Q = np.concatenate([Q[: part.start], Q[part] / np.linalg.norm(Q[part], axis=0), Q[part.stop :]])
        return Q

    def residual(self, Q: Floats) -> Floats:
        """Residual (k, N) of the condition and of the loops at configurations Q (nq, N): zero where both hold."""
        assert self.pose.residual is not None
        holds = self.pose.residual(self.poses(Q))
        if not self.tree.closing_parts:
            return holds
        return np.concatenate([holds, gaps(positions(self.tree, self._normalised(Q)))])

    def solve(self, q: Floats) -> tuple[Floats, float]:
        """A configuration (nq,) near q where the condition holds as well as it can, and by how much it fails."""
        from scipy.optimize import OptimizeResult, least_squares

        def at(x: Floats) -> Floats:
            Q = np.repeat(q[:, None], x.shape[1], axis=1)
            Q[self.free] = x
            return self.residual(Q)

        def value(x: Floats) -> Floats:
            return at(x[:, None])[:, 0]

        def slope(x: Floats) -> Floats:
            steps = STEP * np.eye(len(x))
            values = at(x[:, None] + np.hstack([steps, -steps]))
            return np.asarray((values[:, : len(x)] - values[:, len(x) :]) / (2 * STEP))

        def stop(intermediate_result: OptimizeResult) -> None:
            if np.abs(intermediate_result.fun).max() <= EXACT:
                raise StopIteration

        if self.free.size:
            low, high = self.limits
            margin = 1e-3 * np.minimum(high - low, 1.0)
            x = np.clip(q[self.free], low + margin, high - margin)
            bounds = (low, high)
            found = least_squares(
                value, x, slope, bounds=bounds, xtol=EXACT, ftol=EXACT, gtol=EXACT, max_nfev=EVALUATIONS, callback=stop
            )
            q = q.copy()
            q[self.free] = found.x
        for part in self.tree.quaternions:
            q[part] /= np.linalg.norm(q[part])
        return q, float(np.abs(self.residual(q[:, None])).max())

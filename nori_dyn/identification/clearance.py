"""Distances of a robot's links from one another and from the floor, by the collision shapes of its file.

Of convex shapes, and convex hulls of meshes, MuJoCo says how far two are apart and which of their points are nearest. A
distance d changes as these points move along the line between them. The ratio

    (REACH + clearance - d) / REACH

is 1 at the clearance, and counts from 0 on: shapes that are farther apart do not matter.

Source: Gilbert, Johnson and Keerthi (1988); derivatives: tests/unit/identification/test_clearance.py.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.components.loop import Loop
from nori_dyn.descriptions.mjcf_model import rotation
from nori_dyn.descriptions.surfaces import Solid
from nori_dyn.identification.dependent_joints import MovingJoints
from nori_dyn.identification.motion_gradient import Pullback
from nori_dyn.io.extras import needed
from nori_dyn.model.kinematics import Kinematics, positions
from nori_dyn.model.surface import box
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.typing import Array, Floats, Indices

REACH = 0.1
"""How much farther apart than they are to be [m] shapes begin to count."""

FLOOR = np.array([40.0, 40.0, 1.0])
"""Edges of the box [m] that stands for the floor."""

POSTURES = 200
"""Random postures in all of which shapes are near each other that are left out."""


class Nearest(NamedTuple):
    """Pairs of shapes that are near each other, at some samples.

    Attributes:
        sample: of each (n,).
        pair: its number (n,).
        distance: below zero where they overlap (n,) [m].
        ends: the nearest points of both (n, 2, 3) in coordinates of the world [m].
    """

    sample: Indices
    pair: Indices
    distance: Floats
    ends: Floats

    def at(self, chosen: Indices) -> Nearest:
        """Some of them."""
        return Nearest(self.sample[chosen], self.pair[chosen], self.distance[chosen], self.ends[chosen])


@dataclass(frozen=True, eq=False)
class Clearance:
    """How near links get to one another, and to the floor.

    Attributes:
        joints: those that move.
        scene: the shapes.
        pairs: those of them that are to stay apart (n_pairs, 2).
        clearance: by how much [m].
        left_out: links that are nearer than that wherever the robot stands, in words.
    """

    joints: MovingJoints
    scene: Scene
    pairs: Indices
    clearance: float
    left_out: tuple[str, ...] = ()

    @staticmethod
    def of(
        joints: MovingJoints, own: Sequence[Solid], floor: float | None, standing: Collection[int], clearance: float
    ) -> Clearance | None:
        """Those of links that move against each other; None where there are no such shapes.

        Args:
            joints: those that move.
            own: the robot's shapes.
            floor: the height of the floor [m] in the world; None where there is none.
            standing: links that stand on the floor.
            clearance: by how much they are to stay apart [m].

        Raises:
            MissingExtraError: MuJoCo is not installed.
        """
        tree = joints.tree
        under = [] if floor is None else [_floor(tree, floor)]
        names = ["the base" if solid.body == WORLD else tree.names[solid.body] for solid in own]
        scene = Scene.of([*own, *under], [*names, "the floor"][: len(own) + len(under)], tree)
        joined = _joined(tree, {solid.body for solid in own})
        bodies, n = [solid.body for solid in own], len(own)
        pairs = [(i, j) for i, j in combinations(range(n), 2) if frozenset((bodies[i], bodies[j])) not in joined]
        pairs += [(i, n) for i in range(n) if under and bodies[i] not in (WORLD, *standing)]
        moves = _moves(joints)
        pairs = [(i, j) for i, j in pairs if moves[scene.bodies[i]] or moves[scene.bodies[j]]]
        found = Clearance(joints, scene, np.array(pairs, dtype=np.intp).reshape(-1, 2), clearance)
        return found._without_those_that_are_always_near() if pairs else None

    def _without_those_that_are_always_near(self) -> Clearance:
        """Leave pairs out that are nearer in all random postures, or, of loops, where the robot stands: by design."""
        rng, joints = np.random.default_rng(0), self.joints
        q = np.tile(joints.still, (POSTURES, 1))
        q[:, joints.of_q] = np.array([joints.tree.draw(rng) for _ in range(POSTURES)])[:, joints.of_q]
        always = np.ones(len(self.pairs), dtype=bool)
        for one in q if joints.dependents is None else joints.still[None]:
            at = self.nearest(one[None], self.clearance, np.flatnonzero(always))
            always &= np.isin(np.arange(len(always)), at.pair)
            if not always.any():
                break
        said = tuple(dict.fromkeys(self._names(k) for k in np.flatnonzero(always).tolist()))
        return replace(self, pairs=self.pairs[~always], left_out=said)

    def _names(self, pair: int) -> str:
        one, other = (self.scene.names[k] for k in self.pairs[pair])
        return f"{one} and {other}"

    def nearest(self, q: Floats, within: float, among: Indices | None = None) -> Nearest:
        """Pairs that are less far apart than that [m] at configurations (N, nq); of all when None."""
        among = np.arange(len(self.pairs)) if among is None else among
        places, rotations = self.scene.poses(q)
        one, other = self.pairs[among].T
        apart = np.linalg.norm(places[:, one] - places[:, other], axis=2)
        sample, k = np.nonzero(apart < within + self.scene.radii[one] + self.scene.radii[other])
        pair = among[k]
        distance, ends = self.scene.distances(places, rotations, sample, self.pairs[pair], within)
        near = distance < within
        return Nearest(sample[near], pair[near], distance[near], ends[near])

    def least(self, q: Floats) -> tuple[float, str]:
        """The least distance [m] at configurations (N, nq), and of which links; REACH, and none, if it is larger."""
        near = self.nearest(q, REACH)
        if not len(near.pair):
            return REACH, ""
        k = int(np.argmin(near.distance))
        return float(near.distance[k]), self._names(int(near.pair[k]))

    def is_kept(self, q: Floats) -> bool:
        """Whether all stay apart at configurations (N, nq); every eighth is looked at first."""
        return not any(len(self.nearest(part, self.clearance).pair) for part in (q[::8], q))

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """The ratios (N, n_pairs), and their derivatives."""
        near, n = self.nearest(q, self.clearance + REACH), len(q)
        ratios = np.zeros((n, len(self.pairs)))
        ratios[near.sample, near.pair] = (self.clearance + REACH - near.distance) / REACH

        def pullback(factors: Floats) -> Floats:
            pushes = -factors[near.sample, near.pair] / REACH
            used = np.flatnonzero(pushes)
            found = np.zeros((3, n, len(self.joints.moved)))
            if len(used):
                found[0] = self._pulled(q, near.at(used), pushes[used])
            return found

        return ratios, pullback

    def _pulled(self, q: Floats, near: Nearest, pushes: Floats) -> Floats:
        """Derivatives (N, n_moved) of the sum of distances, each times a factor."""
        tree, N = self.joints.tree, len(q)
        between = near.ends[:, 1] - near.ends[:, 0]
        normal = between / near.distance[:, None] * pushes[:, None]
        wrench = np.zeros((tree.n_links + 1, N, 6))  # the world is last
        for side, sign in ((0, -1.0), (1, 1.0)):
            at = near.ends[:, side]
            own = sign * np.concatenate([np.cross(at, normal), normal], axis=1)
            np.add.at(wrench, (np.asarray(self.scene.bodies)[self.pairs[near.pair, side]], near.sample), own)
        at_q = positions(tree, q.T)
        X_0, found = at_q.X_0, np.zeros((N, tree.nv))
        for i in reversed(range(tree.n_links)):
            S = X_0[i].inverse()
            for k in range(tree.joints[i].nv):
                moved = S.apply_motion(np.broadcast_to(_column(at_q, i, k), (6, N)))
                found[:, tree.v_slices[i].start + k] = np.sum(moved.T * wrench[i], axis=1)
            wrench[tree.parents[i]] += wrench[i]
        return found[:, self.joints.moved]

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        return f"{self._names(k)} are {self.clearance + REACH * (1 - ratio):.3g} m apart, below zero where they overlap"


def _column(at: Kinematics, i: int, k: int) -> Array:
    """Column k of the motion subspace of a joint, (6, 1) or (6, N)."""
    column = np.asarray(at.S[i])[:, k]
    return column if column.ndim > 1 else column[:, None]


def _moves(joints: MovingJoints) -> dict[int, bool]:
    """Whether each link moves, and the world, which does not."""
    tree, found = joints.tree, {WORLD: False}
    for i, parent in enumerate(tree.parents):
        s = tree.v_slices[i]
        found[i] = found[parent] or any(k in joints.moved for k in range(s.start, s.stop))
    return found


def _joined(tree: KinematicTree, shaped: Collection[int]) -> set[frozenset[int]]:
    """Pairs of links that a joint or a loop holds together, those without shapes passed over; and each with itself."""
    found = {frozenset((i,)) for i in shaped}
    for i in shaped:
        parent = i
        while parent != WORLD:
            parent = tree.parents[parent]
            if parent in shaped:
                found.add(frozenset((i, parent)))
                break
    loops = (each for each in tree.components if isinstance(each, Loop))
    return found | {frozenset(tree.frame(name).link for name in loop.frames) for loop in loops}


def level_axes(tree: KinematicTree) -> Floats:
    """Axes of the world (3, 3), row by row: two across gravity, and up against it, along z where there is none."""
    up = -np.asarray(tree.gravity, dtype=float)
    up = up / np.linalg.norm(up) if up.any() else np.array([0.0, 0.0, 1.0])
    across = np.linalg.svd(up[None])[2][1]
    return np.vstack([across, np.cross(up, across), up])


def _floor(tree: KinematicTree, height: float) -> Solid:
    """The floor, across gravity."""
    E = level_axes(tree)
    return Solid(WORLD, Transform(E, E[2] * (height - FLOOR[2] / 2)), "box", tuple(FLOOR.tolist()), box(FLOOR))


@dataclass(frozen=True, eq=False)
class Scene:
    """Shapes as geoms of MuJoCo.

    Attributes:
        tree: the robot.
        bodies: the link of each shape, or WORLD.
        names: its name, for people.
        mujoco, model, data: the module and what it computes with.
    """

    tree: KinematicTree
    bodies: tuple[int, ...]
    names: tuple[str, ...]
    mujoco: Any
    model: Any
    data: Any

    @staticmethod
    def of(shapes: Sequence[Solid], names: Sequence[str], tree: KinematicTree) -> Scene:
        """Make them of some shapes, which have names for people."""
        mujoco = needed("distances between the robot's shapes", "mjcf", "mujoco")
        spec = mujoco.MjSpec()
        for k, solid in enumerate(shapes):
            quaternion = np.zeros(4)
            mujoco.mju_mat2Quat(quaternion, np.asarray(solid.X.E, dtype=float).T.ravel())
            place = {"pos": np.asarray(solid.X.r, dtype=float), "quat": quaternion}
            if solid.kind == "mesh":
                corners = np.unique(solid.triangles.reshape(-1, 3), axis=0)
                shell = mujoco.mjtMeshInertia.mjMESH_INERTIA_CONVEX
                spec.add_mesh(name=f"mesh{k}", uservert=corners.ravel().tolist(), inertia=shell)
                spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname=f"mesh{k}", **place)
            else:
                kind = getattr(mujoco.mjtGeom, f"mjGEOM_{solid.kind.upper()}")
                halves = {"box": (0.5,) * 3, "cylinder": (1.0, 0.5), "capsule": (1.0, 0.5)}.get(solid.kind, (1.0,) * 3)
                size = [f * s for f, s in zip(halves, solid.size, strict=False)]
                spec.worldbody.add_geom(type=kind, size=[*size, *[0.0] * (3 - len(size))], **place)
        model = spec.compile()
        data = mujoco.MjData(model)
        return Scene(tree, tuple(solid.body for solid in shapes), tuple(names), mujoco, model, data)

    @cached_property
    def radii(self) -> Floats:
        """Radius of a sphere about each shape (n,) [m]."""
        return np.array(self.model.geom_rbound)

    @cached_property
    def _rotations(self) -> Floats:
        return np.array([rotation(each) for each in self.model.geom_quat])

    def poses(self, q: Floats) -> tuple[Floats, Floats]:
        """Places (N, n, 3) and rotations (N, n, 3, 3) of the shapes in the world at configurations (N, nq)."""
        X_0 = positions(self.tree, q.T).X_0
        n = self.model.ngeom
        places, rotations = np.zeros((len(q), n, 3)), np.zeros((len(q), n, 3, 3))
        for k, body in enumerate(self.bodies):
            E = np.asarray(X_0[body].E, dtype=float)
            R = np.moveaxis(np.broadcast_to(E.reshape(3, 3, -1), (3, 3, len(q))), (0, 1, 2), (2, 1, 0))
            places[:, k] = np.asarray(X_0[body].r).T + R @ self.model.geom_pos[k]
            rotations[:, k] = R @ self._rotations[k]
        return places, rotations

    def distances(
        self, places: Floats, rotations: Floats, sample: Indices, pairs: Indices, most: float
    ) -> tuple[Floats, Floats]:
        """Distances (n,) [m] up to some of pairs of shapes (n, 2), at samples (n,) in order, and nearest points."""
        found, ends, last = np.full(len(sample), np.inf), np.zeros((len(sample), 6)), -1
        of, model, data = self.mujoco.mj_geomDistance, self.model, self.data
        for k, (at, (one, other)) in enumerate(zip(sample.tolist(), pairs.tolist(), strict=True)):
            if at != last:
                data.geom_xpos[:], data.geom_xmat[:], last = places[at], rotations[at].reshape(-1, 9), at
            found[k] = of(model, data, one, other, most, ends[k])
        return found, ends.reshape(-1, 2, 3)

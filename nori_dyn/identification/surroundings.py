"""What a robot that moves has around it: contacts on which it stands, its own body, the floor.

A robot that stands keeps its balance: the wrench of the ground stays in the cone of what its contacts can give. The
corners p of soles, and points on which a robot stands, give forces f within friction cones, here pyramids inside
these. So the wrench w of the ground is a sum of the rays (p x f, f) with factors that are not negative. Contacts stand
still: this contact wrench cone is the same all the time, and its faces a^T w <= 0 are found once, as those of the
convex hull of its rays at a normal force of 1. They say that no foot tips, slips or turns, whatever the shares of the
feet. On level ground those without friction are the zero-moment point in the hull of the soles.

The wrench is what inverse dynamics asks at the free joint of the base. The ratio of a face is 1 where w is on it, and 0
where w is as far inside as the weight in the middle of the cone.

Source: Hirukawa et al. (2006) and Caron, Pham and Nakamura (2015) for the cone; the derivatives are ours
(tests/unit/identification/test_motion_constraints.py).
"""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull

from nori_dyn.algebra.spatial import Transform
from nori_dyn.components.loop import Loop
from nori_dyn.descriptions.mjcf_model import rotation
from nori_dyn.descriptions.surfaces import Solid, solids
from nori_dyn.errors import InputError, MissingExtraError
from nori_dyn.identification.motion_function import MotionFunction, Pullback
from nori_dyn.identification.moving_joints import Hold, MovingJoints
from nori_dyn.io.extras import needed
from nori_dyn.model.joints import Free
from nori_dyn.model.kinematics import positions
from nori_dyn.model.surface import box
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.program.tracing import traced
from nori_dyn.recursions.rnea import rnea
from nori_dyn.tables import listed
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
    """How near links get to one another, and to the floor, by the collision shapes of the robot's file.

    Of convex shapes, and convex hulls of meshes, MuJoCo says how far two are apart and which of their points are
    nearest. A distance d changes as these points move along the line between them. The ratio

        (REACH + clearance - d) / REACH

    is 1 at the clearance, and counts from 0 on: shapes that are farther apart do not matter.

    Source: Gilbert, Johnson and Keerthi (1988); derivatives: tests/unit/identification/test_clearance.py.

    Attributes:
        joints: those that move.
        poses: of the links in the world (n_links, 12): place, and rotation row by row.
        bodies: the link of each shape, or WORLD.
        names: its name, for people.
        mujoco, model, data: the module and what it computes with: the shapes as geoms.
        pairs: those of them that are to stay apart (n_pairs, 2).
        clearance: by how much [m].
        left_out: links that are nearer than that wherever the robot stands, in words.
    """

    joints: MovingJoints
    poses: MotionFunction
    bodies: tuple[int, ...]
    names: tuple[str, ...]
    mujoco: Any
    model: Any
    data: Any
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
        tree, n = joints.tree, len(own)
        shapes = [*own, *([] if floor is None else [_floor(tree, floor)])]
        names = ["the base" if solid.body == WORLD else tree.names[solid.body] for solid in own] + ["the floor"]
        mujoco = needed("distances between the robot's shapes", "mjcf", "mujoco")
        model = _model(mujoco, shapes)
        bodies = tuple(solid.body for solid in shapes)
        joined, moves = _joined(tree, set(bodies[:n])), _moves(joints)
        pairs = [(i, j) for i, j in combinations(range(n), 2) if frozenset((bodies[i], bodies[j])) not in joined]
        pairs += [(i, n) for i in range(n) if floor is not None and bodies[i] not in (WORLD, *standing)]
        pairs = [(i, j) for i, j in pairs if moves[bodies[i]] or moves[bodies[j]]]
        if not pairs:
            return None
        poses = MotionFunction.of(traced(link_poses, tree, ("q", "qd", "qdd")), joints.moved)
        parts = tuple(names), mujoco, model, mujoco.MjData(model), np.array(pairs, dtype=np.intp)
        return Clearance(joints, poses, bodies, *parts, clearance)._without_those_that_are_always_near()

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
        left_out = tuple(dict.fromkeys(self._names(k) for k in np.flatnonzero(always).tolist()))
        return replace(self, pairs=self.pairs[~always], left_out=left_out)

    def _names(self, pair: int) -> str:
        one, other = (self.names[k] for k in self.pairs[pair])
        return f"{one} and {other}"

    @cached_property
    def _rotations(self) -> Floats:
        """Of the shapes on their links (n, 3, 3)."""
        return np.array([rotation(each) for each in self.model.geom_quat])

    def _link_poses(self, q: Floats) -> tuple[Floats, Floats]:
        """Place (N, n, 3) and rotation (N, n, 3, 3) of the link of each shape at configurations (N, nq)."""
        rest = np.zeros((len(q), self.joints.tree.nv))
        world = np.broadcast_to(np.append(np.zeros(3), np.eye(3)), (len(q), 1, 12))
        poses = np.concatenate([self.poses(q, rest, rest), world], axis=1)[:, self.bodies]  # the world is last
        return poses[:, :, :3], poses[:, :, 3:].reshape(*poses.shape[:2], 3, 3)

    def nearest(self, q: Floats, within: float, among: Indices | None = None) -> Nearest:
        """Pairs that are less far apart than that [m] at configurations (N, nq); of all when None."""
        among = np.arange(len(self.pairs)) if among is None else among
        r, R = self._link_poses(q)
        places, rotations = r + (R @ self.model.geom_pos[:, :, None])[..., 0], R @ self._rotations
        one, other = self.pairs[among].T
        apart = np.linalg.norm(places[:, one] - places[:, other], axis=2)
        sample, chosen = np.nonzero(apart < within + self.model.geom_rbound[one] + self.model.geom_rbound[other])
        pair = among[chosen]
        distance, ends, last = np.full(len(sample), np.inf), np.zeros((len(sample), 6)), -1
        of, model, data = self.mujoco.mj_geomDistance, self.model, self.data
        for k, (at, (i, j), own) in enumerate(zip(sample.tolist(), self.pairs[pair].tolist(), ends, strict=True)):
            if at != last:
                data.geom_xpos[:], data.geom_xmat[:], last = places[at], rotations[at].reshape(-1, 9), at
            distance[k] = of(model, data, i, j, within, own)
        near = distance < within
        return Nearest(sample[near], pair[near], distance[near], ends[near].reshape(-1, 2, 3))

    def least(self, q: Floats) -> tuple[float, str]:
        """The least distance [m] at configurations (N, nq), and of which links; REACH, and none, if it is larger."""
        near = self.nearest(q, REACH)
        if not len(near.pair):
            return REACH, ""
        k = int(np.argmin(near.distance))
        return float(near.distance[k]), self._names(int(near.pair[k]))

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """The ratios (N, n_pairs), and their derivatives."""
        near, n = self.nearest(q, self.clearance + REACH), len(q)
        ratios = np.zeros((n, len(self.pairs)))
        ratios[near.sample, near.pair] = (self.clearance + REACH - near.distance) / REACH

        def pullback(factors: Floats) -> Floats:
            pushes = -factors[near.sample, near.pair] / REACH
            used = np.flatnonzero(pushes)
            if not len(used):
                return np.zeros((3, n, len(self.joints.moved)))
            return self._pulled(q, near.at(used), pushes[used])

        return ratios, pullback

    def _pulled(self, q: Floats, near: Nearest, pushes: Floats) -> Floats:
        """Derivatives (3, N, n_moved) of the sum of distances, each times a factor.

        A point on a link is at r + R x in the world: a force f on it is one on r, and f x^T on R.
        """
        r, R = self._link_poses(q)
        rest, by_poses = np.zeros((len(q), self.joints.tree.nv)), np.zeros((len(q), self.joints.tree.n_links + 1, 12))
        force = (near.ends[:, 1] - near.ends[:, 0]) / near.distance[:, None] * pushes[:, None]
        for side, sign in ((0, -1.0), (1, 1.0)):
            shape = near.sample, self.pairs[near.pair, side]
            x = ((near.ends[:, side] - r[shape])[:, None] @ R[shape])[:, 0]
            turning = (force[:, :, None] * x[:, None]).reshape(-1, 9)
            at = near.sample, np.asarray(self.bodies)[shape[1]]
            np.add.at(by_poses, at, sign * np.hstack([force, turning]))
        return self.poses.pullback(q, rest, rest, by_poses[:, :-1].reshape(len(q), -1))

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        return f"{self._names(k)} are {self.clearance + REACH * (1 - ratio):.3g} m apart, below zero where they overlap"


def link_poses(tree: KinematicTree, q: Array, qd: Array, qdd: Array) -> Array:
    """Place and rotation of each link in the world (n_links, 12), over expressions."""
    X_0 = positions(tree, q).X_0
    return np.array([[*X_0[i].r, *X_0[i].E.T.flat] for i in range(tree.n_links)], dtype=object)


def _model(mujoco: Any, shapes: Sequence[Solid]) -> Any:
    """Shapes as geoms of MuJoCo, one after the other."""
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
    return spec.compile()


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


SHARE = 0.9
"""How much of soles, from their middle, and of friction is used."""

THICK = 0.005
"""How far above its lowest point a sole is flat [m]."""

EDGES = 4
"""Edges of the pyramid that stands for a friction cone."""

ALIKE = 9
"""Decimals by which faces differ."""


@dataclass(frozen=True)
class Surroundings:
    """What motions must not disturb.

    Attributes:
        contacts: frames that stand on the ground, and how.
        shapes: the robot's file, or its name, whose collision shapes stay apart; None where they are not known.
        floor: height of the floor [m]; where None, that on which contacts stand.
        apart: how far shapes stay apart [m].
        ground_friction: coefficient of the ground on which contacts keep the robot in balance; None where that is open.
    """

    contacts: Mapping[str, Hold]
    shapes: str | os.PathLike[str] | None = None
    floor: float | None = None
    apart: float = 0.01
    ground_friction: float | None = None

    def __post_init__(self) -> None:
        if self.floor is not None and (self.shapes is None or not np.isfinite(self.floor)):
            raise InputError("a floor is a height [m], for a robot whose `shapes` are known: name its file there.")
        if not 0 <= self.apart < np.inf:
            raise InputError(f"apart is {self.apart:g}: give a distance [m] that is not below zero.")
        if self.ground_friction is not None and not 0 < self.ground_friction < np.inf:
            raise InputError(f"ground_friction is {self.ground_friction:g}: give a positive coefficient, or None.")

    def constraints(self, joints: MovingJoints) -> tuple[Clearance | None, Balance | None, tuple[str, ...]]:
        """The distances and the balance that motions keep, where there are such; and what is not known, in words."""
        own, lost = ((), ()) if self.shapes is None else solids(self.shapes, joints.tree)
        X_0, feet = positions(joints.tree, joints.still).X_0, dict[str, Floats]()
        for name in self.contacts:
            i = joints.tree.frame(name).link
            corners = [s.corners.reshape(-1, 3) @ X_0[i].E + X_0[i].r for s in own if s.body == i]
            feet |= {name: np.concatenate(corners)} if corners else {}
        balance = self._balance(joints, feet)
        unknown = ["whether contacts slip or tip over"] if self.contacts and balance is None else []
        if self.shapes is None:
            return None, balance, (*unknown, "what the robot could hit, as its shapes are not given")
        unknown += [f"meshes of {listed(lost, 4)}, which are not found, or not .stl or .obj"] if lost else []
        floor = self.floor
        if floor is None and feet:
            floor = float(min((corners @ level_axes(joints.tree)[2]).min() for corners in feet.values()))
        if floor is None:
            unknown.append("the floor")
        if not own:
            return None, balance, (*unknown, "its own body, as its file has no collision shapes")
        standing = {joints.tree.frame(name).link for name in self.contacts}
        try:
            found = Clearance.of(joints, own, floor, standing, self.apart)
        except MissingExtraError as error:
            return None, balance, (*unknown, f"its own body: {error}")
        left_out = () if found is None else found.left_out
        return found, balance, (*unknown, *(f"{pair}, which are near anyhow" for pair in left_out))

    def _balance(self, joints: MovingJoints, feet: Mapping[str, Floats]) -> Balance | None:
        """That of a robot on a free joint, whose contacts are points, or feet whose corners in the world are known."""
        tree, held = joints.tree, {name for name, how in self.contacts.items() if how == "pose"}
        floats = [isinstance(joint, Free) for i, joint in enumerate(tree.joints) if tree.is_root(i)] == [True]
        is_heavy = self.contacts and floats and any(tree.gravity)
        if self.ground_friction is None or not is_heavy or held - feet.keys():
            return None
        X_0, soles = positions(tree, joints.still).X_0, []
        for name in self.contacts:
            frame = tree.frame(name)
            soles.append(sole(feet[name], level_axes(tree)[2]) if name in held else (frame.X @ X_0[frame.link]).r[None])
        return Balance.of(joints, soles, self.ground_friction)


def ground_wrench(tree: KinematicTree, q: Array, qd: Array, qdd: Array) -> Array:
    """Wrench (6, ...) of the ground on a robot on a free joint, about the origin of the world, over any scalar."""
    X_0 = positions(tree, q).X_0[0]
    return np.asarray(X_0.force_to_parent(rnea(tree, q, qd, qdd)[tree.v_slices[0]]))


@dataclass(frozen=True, eq=False)
class Balance:
    """How near the wrench of the ground gets to what contacts cannot give.

    Attributes:
        wrench: of the ground (6,).
        faces: of the cone (n_faces, 6): its product with a wrench is not positive.
        room: what each face leaves to the weight in the middle of the cone (n_faces,).
    """

    wrench: MotionFunction
    faces: Floats
    room: Floats

    @staticmethod
    def of(joints: MovingJoints, soles: Sequence[Floats], friction: float) -> Balance | None:
        """That on some soles; None where the cone is flat, as of points in a line, about which any robot tips.

        Args:
            joints: those that move, of a robot on a free joint.
            soles: corners of each (n, 3) in the world [m].
            friction: coefficient of the ground.
        """
        tree = joints.tree.replace(components=())
        axes, within = level_axes(tree), [each.mean(axis=0) + SHARE * (each - each.mean(axis=0)) for each in soles]
        rays = _rays(np.concatenate(within), axes, SHARE * friction)
        faces = _faces(rays, axes)
        if faces is None:
            return None
        weight = float(tree.I[:, 5, 5].sum() * np.linalg.norm(tree.gravity))
        wrench = MotionFunction.of(traced(ground_wrench, tree, ("q", "qd", "qdd")), joints.moved)
        return Balance(wrench, faces, -faces @ rays.mean(axis=0) * weight)

    def of_motion(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, Pullback]:
        """The ratios (N, n_faces), none below 0, and their derivatives."""
        ratios = 1.0 + self.wrench(q, qd, qdd) @ (self.faces / self.room[:, None]).T

        def pullback(factors: Floats) -> Floats:
            counted = np.where(ratios > 0, factors, 0.0) / self.room
            return self.wrench.pullback(q, qd, qdd, counted @ self.faces)

        return np.maximum(ratios, 0.0), pullback

    def named(self, k: int, ratio: float) -> str:
        """What such a ratio means, in words."""
        return f"the robot takes {ratio:.3g} of what keeps it from tipping or slipping on its contacts"


def sole(corners: Floats, up: Floats) -> Floats:
    """Four corners (4, 3) of the flat of a foot, in two directions across gravity, of the corners (n, 3) of its shapes.

    Frame: that of the world.
    """
    height = corners @ up
    flat = corners[height <= height.min() + THICK]
    flat = flat - np.outer(flat @ up - height.min(), up)
    across = np.linalg.eigh(np.cov(flat.T, bias=True))[1].T[1:]
    directions = np.array([[1, 1], [1, -1], [-1, -1], [-1, 1]]) @ (
        across / np.maximum(np.ptp(flat @ across.T, axis=0), THICK)[:, None]
    )
    return np.asarray(flat[np.argmax(flat @ directions.T, axis=0)])


def _faces(rays: Floats, axes: Floats) -> Floats | None:
    """Faces (n_faces, 6) of the cone of rays (n, 6), with a force of 1 upwards each; None where it is flat."""
    points = np.hstack([rays[:, :3] @ axes.T, rays[:, 3:] @ axes[:2].T])
    if np.linalg.matrix_rank(points - points.mean(axis=0)) < points.shape[1]:
        return None
    a = np.unique(ConvexHull(points).equations.round(ALIKE), axis=0)  # outwards: a^T x + b <= 0
    return np.hstack([a[:, :3] @ axes, a[:, 3:] @ axes])


def _rays(points: Floats, axes: Floats, friction: float) -> Floats:
    """Wrenches (n, 6) of forces along the edges of friction pyramids at points (n, 3), each 1 upwards."""
    angles = 2 * np.pi * np.arange(EDGES) / EDGES
    f = axes[2] + friction * np.column_stack([np.cos(angles), np.sin(angles)]) @ axes[:2]
    p, f = np.repeat(points, EDGES, axis=0), np.tile(f, (len(points), 1))
    return np.hstack([np.cross(p, f), f])

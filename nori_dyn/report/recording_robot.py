"""The robot in a Rerun recording: what its links look like, and where they are over time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.urdf_shapes import Shape
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.report.skeleton import bone_ends, link_poses
from nori_dyn.typing import Floats

ROBOT = "robot"
"""The entity below which the links are."""

COLLADA = "model/vnd.collada+xml"

GREY = (150, 160, 170)

GLASS = 60
"""How opaque meshes are, of 255: arrows and suspects are within them."""


def placed(rr: Any, X: Transform, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> Any:
    """Where a frame is in another, of the transform to it from there; and how far what is in it is stretched."""
    turn = np.asarray(X.E, dtype=float).T
    return rr.Transform3D(translation=np.asarray(X.r, dtype=float), mat3x3=turn @ np.diag(scale))


def log_poses(rr: Any, stream: Any, tree: KinematicTree, q: Floats, when: Any) -> None:
    """Write where the links are in the world at some configurations (N, nq)."""
    E, r = link_poses(tree, q)
    for i, name in enumerate(tree.names):
        quaternions = Rotation.from_matrix(np.swapaxes(E[i], 1, 2)).as_quat()
        columns = rr.Transform3D.columns(translation=r[i], quaternion=quaternions)
        stream.send_columns(link_path(rr, name), indexes=[when], columns=columns)


def link_path(rr: Any, link: str, *more: str) -> str:
    """The entity of a link, or of something on it."""
    return str(rr.new_entity_path([ROBOT, link, *more]))


def size(tree: KinematicTree, q: Floats) -> float:
    """How far apart the links are at a configuration (nq,), at most [m]."""
    origins = np.array([np.asarray(X.r, dtype=float) for X in positions(tree, q).X_0.values()])
    own = origins[1:]  # the first is the world's
    return float(np.linalg.norm(np.ptp(own, axis=0))) or 1.0


def log_shapes(rr: Any, stream: Any, tree: KinematicTree, shapes: Sequence[Shape], extent: float) -> int:
    """Write what the links look like, and return how many meshes were not found.

    Shapes of links that are lumped into others are on those. A link without any, or whose meshes are not all found, is
    drawn as capsules from its joint to those of its children.
    """
    bare = set(tree.names)
    lost = 0
    by_body: dict[str, list[tuple[Transform, Shape]]] = {}
    for shape in shapes:
        if shape.link not in tree.names and shape.link not in tree.frames:
            continue
        frame = tree.frame(shape.link)
        body = "world" if frame.on_world else tree.names[frame.link]
        if shape.kind == "mesh" and shape.mesh is None:
            lost += 1
        else:
            by_body.setdefault(body, []).append((shape.X @ frame.X, shape))
    for body, own in by_body.items():
        bare.discard(body)
        for k, (X, shape) in enumerate(own):
            path = link_path(rr, body, "shape", str(k))
            place = placed(rr, X, shape.size) if shape.kind == "mesh" else placed(rr, X)
            stream.log(path, place, *_seen(rr, shape), static=True)
    for name in bare:
        _log_bones(rr, stream, tree, tree.link(name), extent)
    return lost


def _seen(rr: Any, shape: Shape) -> list[Any]:
    colour = None if shape.colour is None else [round(255 * min(max(x, 0.0), 1.0)) for x in shape.colour]
    if shape.mesh is not None:
        media = COLLADA if shape.mesh.suffix.lower() == ".dae" else None
        seen = [*(colour or [255, 255, 255])[:3], GLASS]
        return [rr.Asset3D(path=shape.mesh, media_type=media, albedo_factor=seen)]
    solid = {"colors": [colour or GREY], "fill_mode": "solid"}
    if shape.kind == "box":
        return [rr.Boxes3D(sizes=[shape.size], **solid)]
    if shape.kind == "sphere":
        return [rr.Ellipsoids3D(radii=[shape.size[0]], **solid)]
    return [rr.Cylinders3D(radii=[shape.size[0]], lengths=[shape.size[1]], **solid)]


def _log_bones(rr: Any, stream: Any, tree: KinematicTree, i: int, extent: float) -> None:
    """Write a link as capsules, see `bone_ends`; one that is too short for any as a ball."""
    radius = 0.015 * extent
    ends = [end for end in bone_ends(tree, i) if np.linalg.norm(end) > radius]
    path = link_path(rr, tree.names[i], "shape")
    if not ends:
        stream.log(path, rr.Points3D([[0.0, 0.0, 0.0]], radii=[1.5 * radius], colors=[GREY]), static=True)
        return
    turns = [Rotation.align_vectors([end], [[0.0, 0.0, 1.0]])[0].as_quat() for end in ends]
    lengths = [float(np.linalg.norm(end)) for end in ends]
    n = len(ends)
    capsules = rr.Capsules3D(
        lengths=lengths,
        radii=[radius] * n,
        translations=np.zeros((n, 3)),
        quaternions=np.array(turns),
        colors=[GREY] * n,
        fill_mode="solid",
    )
    stream.log(path, capsules, static=True)

"""Surfaces of a robot's links, by the collision shapes of its URDF or MJCF file."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.mjcf_model import MjcfModel, compiled, rotation
from nori_dyn.descriptions.robots import robot_file
from nori_dyn.descriptions.urdf_shapes import Shape, urdf_shapes
from nori_dyn.errors import ModelError, NoriWarning
from nori_dyn.io.extras import needed
from nori_dyn.model.kinematics import positions
from nori_dyn.model.surface import Surface, box, capsule, cylinder, sphere
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.tables import listed
from nori_dyn.typing import Floats

SPACING = 0.01
"""How far points of a surface are apart [m]."""

POSES = 8
"""At how many random configurations points are looked for that a neighbour covers."""

CLEARANCE = 0.01
"""How far from a neighbour what touches a point has room [m]."""

OUTSIDE = 1e-4
"""How far outside a surface there is no other shape of its link [m]."""


def surfaces(robot: str | os.PathLike[str], tree: KinematicTree, spacing: float = SPACING) -> dict[str, Surface]:
    """The surface of each link of a robot that has collision shapes in its file.

    Boxes, spheres, cylinders and capsules; meshes (.stl, .obj) by MuJoCo, the extra `mjcf`. Shapes of links that are
    lumped into others are on those. A mesh that is not found, or of another format, is left out with a warning. Points
    within another shape of the link, or a centimetre from its neighbours wherever the joint between stands, are left
    out: nothing touches them.

    Args:
        robot: the robot's file, or its name, as for `nd.load_robot`.
        tree: the robot, loaded from there.
        spacing: how far points are apart [m].

    Raises:
        FileFormatError, ModelError: as `nd.load_robot`.
        MissingExtraError: an MJCF model or a mesh, and mujoco is not installed.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("rod.urdf").write_text('''<robot name="rod"><link name="world"/>
        ... <link name="rod"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>
        ...   </inertial><collision><geometry><cylinder radius="0.05" length="0.4"/></geometry></collision></link>
        ... <joint name="hinge" type="continuous"><parent link="world"/><child link="rod"/></joint></robot>''')
        >>> found = nd.tools.surfaces("rod.urdf", nd.load_urdf("rod.urdf"))
        >>> round(found["rod"].area, 2), found["rod"].points.shape[1]
        (0.14, 3)
    """
    found: dict[str, list[Floats]] = {}
    placed, lost = solids(robot, tree)
    for solid in placed:
        if solid.body != WORLD:
            found.setdefault(tree.names[solid.body], []).append(solid.corners)
    if lost:
        what = f"robot '{tree.name}': meshes of {listed(lost, 4)} are not found, or not .stl or .obj: left out."
        warnings.warn(what, NoriWarning, stacklevel=2)
    return _exposed(tree, {link: Surface.of(np.concatenate(own), spacing) for link, own in found.items()})


def solids(robot: str | os.PathLike[str], tree: KinematicTree) -> tuple[tuple[Solid, ...], tuple[str, ...]]:
    """The collision shapes of a robot, and the links of those that cannot be read; arguments as those of `surfaces`."""
    path, root = robot_file(robot)
    found, lost, known = list[Solid](), list[str](), {*tree.names, *tree.frames}
    for shape, triangles in _of_mjcf(compiled(path)) if root == "mujoco" else _of_urdf(path):
        name = next((name for name in (f"{shape.link}/body", shape.link) if name in known), None)
        if triangles is None:
            lost.append(shape.link)
        elif name is not None:
            on = tree.frame(name)
            size = () if shape.kind == "mesh" else shape.size
            found.append(Solid(on.link, shape.X @ on.X, shape.kind, size, triangles))
    return tuple(found), tuple(lost)


def _exposed(tree: KinematicTree, surfaces: dict[str, Surface]) -> dict[str, Surface]:
    """Surfaces without points within another shape of the link, or always at a neighbour of it."""
    neighbours = [(tree.names[i], tree.names[tree.parents[i]]) for i in range(tree.n_links) if not tree.is_root(i)]
    pairs = [pair for pair in (*neighbours, *(pair[::-1] for pair in neighbours)) if surfaces.keys() >= {*pair}]
    reached = {link: one.points + CLEARANCE * one.normals for link, one in surfaces.items()}
    always = {link: np.arange(len(one.points)) for link, one in surfaces.items()}
    for q in tree.random_configurations(POSES, 0):
        at = positions(tree, q).X_0
        poses = {name: at[i] for i, name in enumerate(tree.names)}
        for link, left in always.items():
            covered = np.zeros(len(left), dtype=bool)
            for other in (other for one, other in pairs if one == link):
                X = poses[other] @ poses[link].inverse()
                covered |= surfaces[other].encloses((reached[link][left] - X.r) @ X.E.T)
            always[link] = left[covered]
    own = {link: one.encloses(one.points + OUTSIDE * one.normals) for link, one in surfaces.items()}
    for link, left in always.items():
        own[link][left] = True
    return {link: one.keeping(~own[link]) for link, one in surfaces.items()}


class Solid(NamedTuple):
    """A collision shape on a link.

    Attributes:
        body: the number of the link, or WORLD.
        X: transform from its coordinates to those of the shape.
        kind: "box", "sphere", "cylinder", "capsule", "ellipsoid" or "mesh".
        size: edges of a box, radius, and length along z of a cylinder or capsule [m]; nothing of a mesh.
        triangles: its surface (m, 3, 3) [m].
    """

    body: int
    X: Transform
    kind: str
    size: tuple[float, ...]
    triangles: Floats

    @property
    def corners(self) -> Floats:
        """The triangles in coordinates of the link."""
        return np.asarray(self.triangles @ np.asarray(self.X.E, dtype=float) + np.asarray(self.X.r, dtype=float))


Triangulated: TypeAlias = tuple[Shape, Floats | None]
"""A collision shape as a file has it, and its triangles in its own coordinates; None of a mesh that cannot be read."""


MAKES: Mapping[str, Callable[..., Floats]] = {
    "box": lambda *size: box(size),
    "cylinder": cylinder,
    "capsule": capsule,
    "sphere": sphere,
    "ellipsoid": lambda *axes: sphere(1.0) * axes,
}
"""The triangles of what is no mesh."""


def _of_urdf(path: Path) -> Iterator[Triangulated]:
    for shape in urdf_shapes(path, "collision"):
        if shape.kind != "mesh":
            yield shape, MAKES[shape.kind](*shape.size)
        else:
            yield shape, None if shape.mesh is None else _mesh(shape.mesh, shape.size)


def _mesh(path: Path, scale: tuple[float, ...]) -> Floats | None:
    """The triangles of a mesh; None of a format that MuJoCo does not know."""
    mujoco = needed(f"the mesh {path.name}", "mjcf", "mujoco")
    if path.suffix.lower() not in (".stl", ".obj"):
        return None
    spec = mujoco.MjSpec()
    spec.add_mesh(name="mesh", file=str(path), scale=list(scale), inertia=mujoco.mjtMeshInertia.mjMESH_INERTIA_SHELL)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        model = spec.compile()
    except ValueError as error:
        raise ModelError(f"{path}: MuJoCo does not take the mesh: {' '.join(str(error).split())}") from None
    return np.asarray(_triangles(model, 0) @ rotation(model.mesh_quat[0]).T + model.mesh_pos[0])


def _triangles(model: Any, mesh: int) -> Floats:
    """The triangles of a mesh of a model, in the axes that MuJoCo gives it."""
    vertex, face = model.mesh_vertadr[mesh], model.mesh_faceadr[mesh]
    vertices = model.mesh_vert[vertex : vertex + model.mesh_vertnum[mesh]]
    return np.asarray(vertices[model.mesh_face[face : face + model.mesh_facenum[mesh]]], dtype=float)


def _of_mjcf(mjcf: MjcfModel) -> Iterator[Triangulated]:
    """Yield the geoms that collide, but for planes, height fields and signed distance functions."""
    m, kinds = mjcf.model, mjcf.mujoco.mjtGeom
    factors = {
        "box": (2.0,) * 3,
        "sphere": (1.0,),
        "cylinder": (1.0, 2.0),
        "capsule": (1.0, 2.0),
        "ellipsoid": (1.0,) * 3,
    }
    named = {int(getattr(kinds, f"mjGEOM_{kind.upper()}")): kind for kind in (*factors, "mesh")}
    for k in range(m.ngeom):
        kind, body = named.get(int(m.geom_type[k])), mjcf.links[m.geom_bodyid[k]]
        if kind is None or (not m.geom_contype[k] and not m.geom_conaffinity[k]):
            continue
        X, factor = Transform(rotation(m.geom_quat[k]).T, np.array(m.geom_pos[k])), factors.get(kind, ())
        size = tuple(float(f * s) for f, s in zip(factor, m.geom_size[k], strict=False))
        yield Shape(body, X, kind, size), MAKES[kind](*size) if size else _triangles(m, int(m.geom_dataid[k]))

"""Shapes of the links of a URDF, visual or for collisions: boxes, spheres, cylinders, capsules and meshes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.urdf_document import not_numbers
from nori_dyn.io.xml_file import Element, read_xml
from nori_dyn.measurements.frame_reading import Pose

SCHEMES = ("package://", "model://", "file://")

SIZES = {
    "box": ("size",),
    "sphere": ("radius",),
    "cylinder": ("radius", "length"),
    "capsule": ("radius", "length"),
}
"""The attributes with the sizes of what is no mesh."""

SEARCHED = ("ROS_PACKAGE_PATH", "AMENT_PREFIX_PATH")
"""Variables of the environment with folders of packages, beside the folders above the URDF itself."""


@dataclass(frozen=True, slots=True)
class Shape:
    """A shape of a link.

    Attributes:
        link: the name of the link.
        X: transform from the link's coordinates to those of the shape.
        kind: "box", "sphere", "cylinder", "capsule" or "mesh".
        size: edges of a box, radius of a ball, radius and length of a cylinder or capsule, factors of a mesh along its
            axes.
        mesh: the file of a mesh; None where it is not found.
        colour: red, green, blue and opacity, from 0 to 1; None where the file does not say.
    """

    link: str
    X: Transform
    kind: str
    size: tuple[float, ...]
    mesh: Path | None = None
    colour: tuple[float, ...] | None = None


def urdf_shapes(path: str | os.PathLike[str], of: Literal["visual", "collision"] = "visual") -> tuple[Shape, ...]:
    """Shapes of the links of a URDF, visual or for collisions; malformed ones are left out.

    Raises:
        FileFormatError: not a readable file, or not XML.
    """
    root = read_xml(path)
    colours = {each.get("name"): _colour(each) for each in root.findall("material")}
    found = []
    for link in root.findall("link"):
        for shape in link.findall(of):
            found += list(_shapes(Path(path), link.get("name", ""), shape, colours))
    return tuple(found)


def _shapes(
    path: Path, link: str, shape: Element, colours: dict[str | None, tuple[float, ...] | None]
) -> Iterator[Shape]:
    material = shape.find("material")
    colour = None if material is None else _colour(material) or colours.get(material.get("name"))
    X, geometry = _place(shape.find("origin")), shape.find("geometry")
    for each in [] if geometry is None else geometry:
        if each.tag == "mesh":
            scale = _numbers(each.get("scale"), 3) or (1.0, 1.0, 1.0)
            yield Shape(link, X, "mesh", scale, mesh_file(path, each.get("filename", "")), colour)
        elif each.tag in SIZES:
            names = SIZES[each.tag]
            size = _numbers(" ".join(each.get(name, "") for name in names), 3 if names == ("size",) else len(names))
            if size is not None:
                yield Shape(link, X, each.tag, size, None, colour)


def mesh_file(urdf: Path, name: str) -> Path | None:
    """File of "package://robot/meshes/hand.stl" or the like in a URDF, or None.

    A package is looked for in the folders above the URDF, and in those of `SEARCHED`.
    """
    scheme = next((each for each in SCHEMES if name.startswith(each)), "")
    rest = Path(name.removeprefix(scheme))
    if scheme in ("", "file://"):
        candidates = [urdf.parent / rest]
    else:
        folders = [*urdf.resolve().parents]
        for variable in SEARCHED:
            folders += [Path(each) for each in os.environ.get(variable, "").split(os.pathsep) if each]
        within = Path(*rest.parts[1:])
        candidates = [c for folder in folders for c in (folder / rest, folder / "share" / rest)]
        candidates += [folder / within for folder in folders if folder.name == rest.parts[0]] if rest.parts else []
    return next((each for each in candidates if each.is_file()), None)


def _place(origin: Element | None) -> Transform:
    if origin is None:
        return Transform.identity()
    xyz, rpy = (_numbers(origin.get(name), 3) or (0.0, 0.0, 0.0) for name in ("xyz", "rpy"))
    return Pose(xyz=list(xyz), rpy=list(rpy)).transform()


def _colour(material: Element) -> tuple[float, ...] | None:
    colour = material.find("color")
    return None if colour is None else _numbers(colour.get("rgba"), 4)


def _numbers(text: str | None, count: int) -> tuple[float, ...] | None:
    return None if not_numbers(text or "", count) else tuple(float(each) for each in (text or "").split())

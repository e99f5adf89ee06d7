"""Numbers and arrays in the structs of exported code: the name, the unit and the meaning of each number."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from nori_dyn.export.names import comment_text, distinct_identifiers
from nori_dyn.export.text import table
from nori_dyn.model.joints import FORCE, MOTION, UNITS, Joint
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import QUATERNION_TOLERANCE, KinematicTree
from nori_dyn.planning.outputs import Output
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.layout import OutputSlice, output_parts
from nori_dyn.system.builder import System
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.system.variables import LOAD, SPATIAL, Variable, kind_in_words

ALL = {
    "a": "spatial accelerations of the links, angular [rad/s^2], then linear [m/s^2]",
    "f": "wrenches transmitted to the links through their joints, couple [N m], then force [N]",
    "tau": "joint torques and forces",
    "fx": "external wrenches on the links, couple [N m], then force [N]",
    "qdd": "joint accelerations, the time derivative of qd",
    LOAD: "torques and forces in the joints: that of the motors less that of rotors, friction and springs",
}
ONE = {
    "a": "spatial acceleration of link {}",
    "f": "wrench transmitted to link {} through its joint",
    "tau": "torque or force of joint {}",
    "fx": "external wrench on link {}",
    "qdd": "acceleration of joint {}, the time derivative of its part of qd",
    LOAD: "torque or force in joint {}: that of its motor less that of rotor, friction and spring",
}
ACCELERATION = (
    " Gravity is included: at rest it is 1 g upwards. The linear part is the spatial one: for the acceleration of the "
    "origin itself add w x v."
)
QUATERNIONS = (
    f" Quaternions must be of unit length: within {QUATERNION_TOLERANCE:g} of it they are normalised (not in place), "
    "further away they are refused. All zeros are no configuration: the neutral quaternion has w = 1."
)


class Element(NamedTuple):
    """A number of an array, or a row of a matrix.

    Attributes:
        name: the stem of its enumerator.
        cells: its comment, as cells of a table.
    """

    name: str
    cells: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False)
class CMember:
    """A number or an array of doubles in a struct of C.

    Attributes:
        name: its identifier.
        about: its description.
        elements: its numbers, or its rows; none where they need no description.
        sizes: its dimensions as C declares them, numbers or macros; none for a single number.
        shape: its shape; () for a single number.
        part: of outputs of a plan, where it lies in them.
    """

    name: str
    about: str
    elements: tuple[Element, ...] = ()
    sizes: tuple[str, ...] = ()
    shape: tuple[int, ...] = ()
    part: OutputSlice | None = None

    @staticmethod
    def array(prefix: str, name: str, about: str, count: str, elements: Iterable[Element]) -> CMember:
        """An array whose length is a macro: a prefix, and what is counted."""
        elements = tuple(elements)
        return CMember(name, about, elements, (f"{prefix}_{count}",), (len(elements),))

    @property
    def text(self) -> str:
        """Its comment, see `wrapped`."""
        at = (
            (f"{self.name}[{k}]" if self.sizes else self.name, *element.cells)
            for k, element in enumerate(self.elements)
        )
        return "\n".join([self.about, *(table(at) if self.elements else ())])


def is_whole(output: Output) -> bool:
    """Whether an output is all variables of its kind."""
    return output.body is None and not output.owner


def inputs_of(prefix: str, systems: Sequence[System], inputs: SideBySide) -> Iterator[CMember]:
    """Yield the inputs of systems of one robot: q, qd, the readings and weights of all of them."""
    tree = systems[0].tree
    joints = list(zip(tree.joint_names, tree.joints, strict=True))
    coordinates = [
        Element(f"{name} {short}".rstrip(), (comment_text(name), what))
        for name, joint in joints
        for short, what in _coordinates(joint)
    ]
    yield CMember.array(
        prefix, "q", f"q: the configuration ({tree.nq}).{QUATERNIONS if tree.quaternions else ''}", "NQ", coordinates
    )
    velocities = [
        _of_joint(name, f"v{part[1:]}" if part.startswith("a") else part, unit)
        for name, joint in joints
        for part, unit in zip(joint.motion_components, joint.units("rad/s", "m/s"), strict=True)
    ]
    turning = " A free or spherical joint has it in the axes of its body, angular first." if tree.quaternions else ""
    yield CMember.array(prefix, "qd", f"qd: the velocity ({tree.nv}).{turning}", "NV", velocities)
    if inputs.ny:
        about = f"y: the readings ({inputs.ny}): index, name, unit, sensor."
        if _reads_spatial_vectors(systems):
            about += " A spatial vector is in the coordinates of its link, or of the frame that the sensor names."
        if any(system.ranges is not None for system in systems):
            about += " Ranges of sensors are not checked: leave a saturated one out by a weight of 0."
        own = inputs.described.items()
        cells = ((name, (comment_text(name), unit and f"[{unit}]", comment_text(kind))) for name, (unit, kind) in own)
        yield CMember.array(prefix, "y", about, "NY", (Element(*one) for one in cells))
    if inputs.n_weights:
        about = f"1 / sigma^2 of the sensors ({inputs.n_weights}), 0 to leave one out: index, name, as configured."
        named = zip(inputs.weight_names, inputs.weights.tolist(), strict=True)
        weights = (Element(name, (comment_text(name), f"{weight:g}")) for name, weight in named)
        yield CMember.array(prefix, "weights", f"weights: {about}", "N_WEIGHTS", weights)


def _coordinates(joint: Joint) -> Iterator[tuple[str, str]]:
    """Yield the name of each number of a joint's configuration, "" for a single one, and its description."""
    for kind, axis in zip(joint.coordinates, joint.coordinate_axes, strict=True):
        short, what = {
            "angle": ("angle", "angle [rad]"),
            "quaternion": (f"q{axis}", f"quaternion {axis}"),
            "length": (axis, f"position {axis}, in the axes of the parent [m]") if axis else ("shift", "shift [m]"),
        }[kind]
        yield short if joint.nq > 1 else "", what


def _reads_spatial_vectors(systems: Sequence[System]) -> bool:
    """Whether a sensor reads an acceleration or a wrench of a link."""
    at = positions(systems[0].tree, systems[0].tree.neutral_configuration())
    rows = (row for system in systems for row in system.measurements)
    return any(key.kind in SPATIAL for row in rows for key in row.equation.blocks(at))


def outputs_of(prefix: str, plan: EliminationPlan, taken: Iterable[str] = ()) -> Iterator[CMember]:
    """Yield the outputs of a plan, with names that are not taken; an output that was requested twice comes once."""
    system, taken = plan.system, [*taken]
    parts = {part.output.name: part for part in output_parts(system, plan.outputs)}
    names = distinct_identifiers([*taken, *parts])[len(taken) :]
    for name, part in zip(names, parts.values(), strict=True):
        output, sizes = part.output, tuple(map(str, part.shape)) if part.shape != (1,) else ()
        if is_whole(output) and (output.is_of_joints or output.is_spatial):
            sizes = (f"{prefix}_{'NV' if output.is_of_joints else 'N_LINKS'}", *sizes[1:])
        about, elements = _output(system.tree, output, [v for v in system.variables if output.covers(v)])
        yield CMember(
            name, f"{comment_text(output.name)}: {about}", tuple(elements), sizes, part.shape if sizes else (), part
        )


def _output(tree: KinematicTree, output: Output, own: Sequence[Variable]) -> tuple[str, list[Element]]:
    """The description of an output of some variables, and its elements."""
    kind, body = output.kind, output.body
    if not output.is_spatial:
        elements = [_of_joint(v.owner, *number) for v in own for number in zip(v.components, v.units, strict=True)]
        if not output.is_of_joints:
            about = ", ".join(f"{kind_in_words(v.kind)} {comment_text(v.owner)}" for v in own)
        else:
            about = ALL[kind] if body is None else ONE[kind].format(comment_text(tree.joint_names[body]))
        return f"{about} ({len(elements)}).", elements
    components, note = (MOTION, ACCELERATION) if kind == "a" else (FORCE, "")
    if body is None:
        elements = [Element(link, (comment_text(link),)) for link in tree.names]
        return f"{ALL[kind]} ({tree.n_links} x 6: {' '.join(components)}).{note}", elements
    frame = comment_text(output.owner)
    where = "" if output.X is None else f", in the coordinates of its frame {frame} and about the frame's origin"
    about = f"{ONE[kind].format(comment_text(tree.names[body]))}{where} (6).{note}"
    return about, [Element(component, (component, f"[{UNITS[component]}]")) for component in components]


def _of_joint(name: str, component: str, unit: str) -> Element:
    """A number of a joint, or of another owner whose components are not those of a link."""
    return Element(f"{name} {component}".rstrip(), (f"{comment_text(name)} {component}".rstrip(), f"[{unit}]"))

"""An MJCF model with the inertias and joints of an identified robot; every other byte stays as it is."""

from __future__ import annotations

import math
import os
import warnings
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
from scipy.spatial.transform import Rotation

from nori_dyn.components import Friction, Rotor, Spring
from nori_dyn.components.base import OnJoints
from nori_dyn.descriptions.component_files import checked_components
from nori_dyn.descriptions.corrections import (
    Corrected,
    by_joint,
    corrected_links,
    is_same_inertia,
    likeliest,
    links_of_bodies,
    listed,
    note_on_no_place,
    notes_on_curves,
    notes_on_joints,
    notes_on_left_out,
    notes_on_widths,
)
from nori_dyn.descriptions.mjcf import MjcfReader
from nori_dyn.descriptions.mjcf_model import ROOT, MjcfModel, compiled, component_name
from nori_dyn.errors import FileFormatError, ModelError, NoriWarning, naming
from nori_dyn.io.xml_text import XmlElement, XmlText, numbers
from nori_dyn.model.assembly import FLOATING_JOINT, lumped
from nori_dyn.model.cleaning import Cleaner
from nori_dyn.model.inertia import LinkData
from nori_dyn.model.tree import KinematicTree
from nori_dyn.typing import Floats

AS_WRITTEN = 1e-9
"""Relative: what a written file may differ by from what it was written of, cleaning and large arms included."""

ROUNDING = 1e-9
"""Relative: what the largest principal moment may be more than the sum of the others, which MuJoCo refuses."""

ORIENTATIONS = ("fullinertia", "axisangle", "xyaxes", "zaxis", "euler")
"""Other ways to say what the attributes `quat` and `diaginertia` of an <inertial> do."""

HINT = (
    "Its <compiler> may change what is written: settotalmass, boundmass, boundinertia, balanceinertia and fusestatic "
    "do. Take these out of the model first."
)


ATTRIBUTES: Mapping[type[OnJoints], Mapping[str, str]] = {
    Friction: {"damping": "viscous", "frictionloss": "coulomb"},
    Rotor: {"armature": "rotor"},
    Spring: {"stiffness": "stiffness"},
}
"""The attributes of a joint for coefficients of components; a spring's preload is in `springref`."""

Acting: TypeAlias = Mapping[type[OnJoints], dict[str, float]]
"""The coefficients of what acts on a joint, by component."""


def corrected_mjcf(tree: KinematicTree, source: str | os.PathLike[str]) -> Corrected:
    """MJCF model in which <inertial> and what acts on joints are those of a tree.

    What did not change is left as it is printed. Where a body's inertia comes from its geoms it gets an <inertial>,
    and the <compiler> that would overrule it is set not to. What is on a body without joints keeps its inertia, and
    the body that carries it gets the change: see `corrected_links`. Where a joint of the tree has no friction, rotor
    or spring, it is left as it is.

    Args:
        tree: the robot, as `load_mjcf` made it of the model, with other inertias and components.
        source: the file.

    Returns:
        The content of the corrected file, and what it cannot hold.

    Raises:
        FileFormatError: not a readable MJCF model, or one in which a body that changed is not written out.
        ModelError: the robot is of another file, or has a number that no file can hold.
        MissingExtraError: mujoco is not installed.
    """
    mjcf = _compiled(source)
    text = XmlText(source)
    checked_components(tree)
    readers = [_reader(tree, mjcf, source, clean) for clean in (True, False)]
    reader = readers[likeliest(tree, [(each.links, each.joints) for each in readers], source)]
    writer = _MjcfEditor(text, reader, os.fspath(source))
    links, notes = corrected_links(tree, reader.links, writer.numbers)
    writer.write_links(links)
    writer.write_joints(tree)
    counts = ("tendon", mjcf.model.ntendon), ("equality", mjcf.model.neq)
    own = {component_name(mjcf.named(kind, number)) for kind, n in counts for number in range(n)}
    others = [one for one in tree.components if not isinstance(one, Friction | Rotor | Spring)]
    others = [one for one in others if one.name.removeprefix(f"{one.type}/") not in own]
    frictions = [*notes_on_widths(tree, "MJCF"), *notes_on_curves(tree, "MJCF")]
    notes += [*writer.notes(tree), *frictions, *notes_on_left_out(tree, others, "the model")]
    return Corrected(text.changed(), tuple(notes))


def check_mjcf(tree: KinematicTree, path: str | os.PathLike[str], source: str | os.PathLike[str]) -> None:
    """Check that a corrected model is what MuJoCo makes of it, where it is.

    Args:
        tree: the robot.
        path: the corrected file.
        source: what it was made of, for messages.

    Raises:
        ModelError: MuJoCo refuses it, or reads other inertias than those of the tree.
    """
    try:
        mjcf = _compiled(path)
    except ModelError as error:
        reason = str(error).partition("MuJoCo refuses it: ")[2] or str(error)
        raise ModelError(
            f"{source}: corrected, MuJoCo refuses it: {reason} Meshes and other files are looked for from the folder "
            "of the model: write it beside the first one. Inertias that no distribution of mass has are refused too."
        ) from None
    reader = _reader(tree, mjcf, path, clean=True)
    for name, I, parts in zip(tree.names, tree.I, links_of_bodies(tree, reader.links), strict=True):
        if not is_same_inertia(lumped(parts), I, AS_WRITTEN):
            raise ModelError(f"{source}: corrected, MuJoCo makes another inertia of the body '{name}'. {HINT}")
    _check_joints(tree, reader, source)


def _check_joints(tree: KinematicTree, reader: MjcfReader, source: str | os.PathLike[str]) -> None:
    """Check that what acts on the joints of a model is what does in a tree, where it has something there."""
    for number, found, wanted in _acting_on_joints(tree, reader):
        now = _attributes(found)
        for attribute, value in _attributes(wanted).items():
            if not math.isclose(value, now[attribute]):
                raise ModelError(
                    f"{source}: corrected, MuJoCo reads another {attribute} of the joint "
                    f"'{reader.name('joint', number)}'. Take springdamper out of its class first."
                )


def _compiled(path: str | os.PathLike[str]) -> MjcfModel:
    """Compile a model without the warnings that there were when the robot was loaded."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        return compiled(path)


def _reader(tree: KinematicTree, mjcf: MjcfModel, path: str | os.PathLike[str], clean: bool) -> MjcfReader:
    """Links and joints of a model, with the base of a tree."""
    reader = MjcfReader(mjcf, Cleaner(active=clean))
    is_floating = tree.joint_names[0] == FLOATING_JOINT
    with naming(path):
        own = {reader.name("joint", number) for number in range(mjcf.model.njnt)}
        reader.read("floating" if is_floating and FLOATING_JOINT not in own else "fixed")
    return reader


@dataclass
class _MjcfEditor:
    """Writes what changed into the text of a model.

    Attributes:
        text: the model, and its changes.
        reader: what is read of it.
        source: the file, for messages.
        explicit: bodies that have an <inertial> now, where geoms gave their inertia.
        no_place: springs that MJCF cannot say.
    """

    text: XmlText
    reader: MjcfReader
    source: str
    explicit: list[str] = field(default_factory=list)
    no_place: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        m = self.reader.model
        self.numbers = {self.reader.name("body", number): number for number in range(m.nbody)}
        worlds = self.text.root.findall("worldbody")
        bodies = [one for world in worlds for one in world.iter() if one.tag == "body"]
        self.bodies = {one.get("name") or "": one for one in bodies}
        if len(bodies) == m.nbody - 1:  # none is made by the compiler, and they are in its order
            names = [self.reader.name("body", number) for number in range(1, m.nbody)]
            self.bodies = dict(zip(names, bodies, strict=True))
        self.joints = [self.reader.name("joint", number) for number in range(m.njnt)]
        self.compilers = self.text.root.findall("compiler")

    def body(self, name: str) -> XmlElement:
        """Element of a body.

        Raises:
            FileFormatError: the compiler makes it of an element elsewhere.
        """
        if name not in self.bodies:
            raise FileFormatError(
                f"{self.source}: its body '{name}' is not written out in it: it is included from another file, or made "
                "by <replicate>, <attach> or the like. Write the model as one file first: "
                "mujoco.MjSpec.from_file(FILE), .compile(), and .to_xml() of it."
            )
        return self.bodies[name]

    def write_links(self, links: dict[str, LinkData]) -> None:
        """Give bodies the inertias of links."""
        for name, link in links.items():
            if name not in self.numbers:
                raise ModelError(
                    f"link '{name}' is between two joints of one body, where MJCF has no place for an inertia. "
                    "Identify the robot with the parameters of that link left out."
                )
            self._write_inertial(name, link)
        overruled = [one for one in self.compilers if one.get("inertiafromgeom") == "true"]
        if not links or not overruled:
            return
        for compiler in overruled:
            self.text.set(compiler, "inertiafromgeom", "auto")
        for link in self.reader.links:  # what geoms overruled so far
            number = self.numbers.get(link.name, ROOT)
            has_geoms = number != ROOT and self.reader.model.body_geomnum[number]
            if has_geoms and link.name not in links and self.body(link.name).find("inertial") is not None:
                self._write_inertial(link.name, link)

    def _write_inertial(self, name: str, link: LinkData) -> None:
        body = self.body(name)
        inertial = body.find("inertial")
        moments, quaternion = principal(link.I_com)
        position = link.com + self.reader.anchors[self.numbers[name]] if link.mass else np.zeros(3)
        given: dict[str, Sequence[float]] = {
            "pos": position.tolist(),
            "quat": quaternion.tolist(),
            "mass": [link.mass],
            "diaginertia": moments.tolist(),
        }
        if inertial is None:
            self.explicit.append(name)
            attributes = " ".join(f'{attribute}="{numbers(*values)}"' for attribute, values in given.items())
            self.text.add(body, [f"<inertial {attributes}/>"])
            return
        for attribute in ORIENTATIONS:
            self.text.unset(inertial, attribute)
        for attribute, values in given.items():
            self.text.set_numbers(inertial, attribute, *values, default=math.nan)

    def write_joints(self, tree: KinematicTree) -> None:
        """Give joints the friction, rotors and springs of a tree."""
        for number, before, wanted in _acting_on_joints(tree, self.reader):
            now, spring = _attributes(before), wanted[Spring]
            changes = {attribute: value for attribute, value in _attributes(wanted).items() if value != now[attribute]}
            if not math.isclose(spring["preload"], before[Spring]["preload"], rel_tol=1e-15) or "stiffness" in changes:
                changes |= self._slack(number, spring)
            if changes:
                self._write_joint(number, changes, before)

    def _slack(self, number: int, spring: dict[str, float]) -> dict[str, float]:
        """Position at which a spring k q - preload is slack, as a joint's attribute."""
        stiffness, preload = spring["stiffness"], spring["preload"]
        if not stiffness:
            self.no_place += [self.joints[number]] if preload else []
            return {}
        angles = [one.get("angle") for one in self.compilers if one.get("angle")]
        is_hinge = self.reader.model.jnt_type[number] == self.reader.mujoco.mjtJoint.mjJNT_HINGE
        is_in_degrees = is_hinge and (not angles or angles[-1] == "degree")
        return {"springref": math.degrees(preload / stiffness) if is_in_degrees else preload / stiffness}

    def _write_joint(self, number: int, changes: dict[str, float], before: Acting) -> None:
        joint = self._joint(number)
        if joint.get("springdamper") and {*changes} & {"stiffness", "damping"}:
            self.text.unset(joint, "springdamper")
            changes = {"stiffness": before[Spring]["stiffness"], "damping": before[Friction]["viscous"], **changes}
        for attribute, value in changes.items():
            self.text.set(joint, attribute, numbers(value))

    def _joint(self, number: int) -> XmlElement:
        """Element of a joint."""
        m = self.reader.model
        body = int(m.jnt_bodyid[number])
        element = self.body(self.reader.name("body", body))
        joints = [*_joints(element)]
        if len(joints) != m.body_jntnum[body]:
            raise FileFormatError(f"{self.source}: its joint '{self.joints[number]}' is not written out in it.")
        return joints[number - int(m.body_jntadr[body])]

    def notes(self, tree: KinematicTree) -> Iterator[str]:
        """Yield notes on what was done besides."""
        if self.explicit:
            yield f"an <inertial> instead of the masses of geoms: {listed(self.explicit)}"
        yield from note_on_no_place("MJCF", "spring without stiffness", self.no_place)
        scalar = {name: k for k, name in enumerate(self.joints) if not _is_free(self.reader, k)}
        for kind in ATTRIBUTES:
            present = [name for name, k in scalar.items() if any(_acting(self.reader.model, k)[kind].values())]
            yield from notes_on_joints(tree, "MJCF", kind, scalar, present)


def _is_free(reader: MjcfReader, number: int) -> bool:
    return bool(reader.model.jnt_type[number] == reader.mujoco.mjtJoint.mjJNT_FREE)


def _acting_on_joints(tree: KinematicTree, reader: MjcfReader) -> Iterator[tuple[int, Acting, Acting]]:
    """Yield each joint of one freedom, what acts on it in a model, and what does in a tree, where that has any."""
    of_tree = {kind: by_joint(tree, kind) for kind in ATTRIBUTES}
    for number in range(reader.model.njnt):
        if not _is_free(reader, number):
            name, acting = reader.name("joint", number), _acting(reader.model, number)
            yield number, acting, {kind: of_tree[kind].get(name, own) for kind, own in acting.items()}


def _attributes(acting: Acting) -> dict[str, float]:
    """The attributes of a joint that say what acts on it."""
    return {name: acting[kind][coefficient] for kind, own in ATTRIBUTES.items() for name, coefficient in own.items()}


def _acting(model: Any, number: int) -> Acting:
    """Coefficients of what acts on a joint of a model."""
    at, stiffness = model.jnt_dofadr[number], float(model.jnt_stiffness[number])
    slack = float(model.qpos_spring[model.jnt_qposadr[number]])
    return {
        Friction: {"viscous": float(model.dof_damping[at]), "coulomb": float(model.dof_frictionloss[at])},
        Rotor: {"rotor": float(model.dof_armature[at])},
        Spring: {"stiffness": stiffness, "preload": stiffness * slack},
    }


def _joints(element: XmlElement) -> Iterator[XmlElement]:
    """Yield the joints of a body, those in its frames as well."""
    for child in element.children:
        if child.tag in ("joint", "freejoint"):
            yield child
        elif child.tag == "frame":
            yield from _joints(child)


def principal(I_com: Floats) -> tuple[Floats, Floats]:
    """Principal moments (3,) of a rotational inertia (3, 3), and the quaternion (w, x, y, z) of their axes.

    MuJoCo's own takes what is below 1e-12 kg m^2 beside the diagonal for zero, which is much for a finger. The largest
    moment is at most the sum of the others, where rounding made it more.
    """
    if np.array_equal(I_com, np.diag(np.diag(I_com))):
        moments, axes = np.array(np.diag(I_com)), np.eye(3)
    else:
        moments, axes = np.linalg.eigh(I_com)
        axes = axes * np.sign(np.linalg.det(axes))
    k = int(np.argmax(moments))
    rest = float(np.delete(moments, k).sum())
    if rest < moments[k] <= rest * (1 + ROUNDING):
        moments[k] = rest
    return moments, np.roll(Rotation.from_matrix(axes).as_quat(), 1)

"""The C interface of exported code: of one plan, of the plans of several contact states, or of a filter.

The structs of inputs and outputs, with the name, the unit and the meaning of each number; enumerators that name their
places; the statuses. The header, the class for C++ and the example are templates over this description. Names of the
model and of its sensors stand in comments, in the fields of the outputs and in enumerators; see `names`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

from nori_dyn.errors import PlanError, named_contacts
from nori_dyn.export.names import (
    checked_identifier,
    comment_text,
    default_identifier,
    distinct_identifiers,
    enumerators,
)
from nori_dyn.export.text import table
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.floating_base import COMPONENTS, base_place, root_numbers
from nori_dyn.measurements.floating_base import UNITS as BASE_UNITS
from nori_dyn.model.joints import FORCE, MOTION, UNITS, Joint
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import QUATERNION_TOLERANCE, KinematicTree
from nori_dyn.planning.outputs import Output
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.layout import OutputSlice, output_names, output_parts
from nori_dyn.program.limits import WEIGHT_SPREAD
from nori_dyn.system.builder import System
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.system.variables import LOAD, OF_JOINTS, SPATIAL, Variable, kind_in_words, numbered

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


STATUSES = {
    "OK": "solved",
    "INPUT_NOT_FINITE": "a number of the inputs is infinite or not a number",
    "QUATERNION_NOT_UNIT": f"a quaternion of q is not of unit length, to within {QUATERNION_TOLERANCE:g}",
    "SMALL_PIVOT": "the system is singular at this configuration, or so nearly that digits are lost",
    "OUTPUT_NOT_FINITE": "the inputs are so large that the arithmetic overflows",
    "INACCURATE": "digits are lost: the weights differ too much, or the system is nearly singular",
    "NEGATIVE_WEIGHT": "a weight is below zero",
    "WEIGHT_SPREAD": f"weights of sensors, those of zero left out, span a ratio of more than {WEIGHT_SPREAD:g}",
    "ZERO_WEIGHT": "there is no solution in the planned order while these weights are zero",
    "UNPLANNED_CONTACTS": "the contact state is not planned",
}
"""Statuses of exported code, by number: the same in every export, each with its meaning."""

FILTER_STATUSES = STATUSES | {
    "UNDETERMINED": "something is determined neither by the readings up to now nor by its initial prior",
    "TIME_NOT_POSITIVE": "the time since the last tick is not a positive number",
}
"""Those of filters."""

WINDOW_STATUSES = FILTER_STATUSES | {"NOT_YET": "there were not as many ticks yet as an estimate is late"}
"""Those of filters with a lag."""

OVER_TIME = {
    "memory": "The state, as estimated at the tick.",
    "nis": "The normalised innovation squared of the readings: chi-square with these degrees of freedom, if the "
    "standard deviations are right.",
    "degrees": "Its degrees of freedom, a whole number.",
    "log_likelihood": "The logarithm of the likelihood of the readings, given those before.",
}
"""Outputs that a filter has besides."""

OF_BASE = {
    "position": ("x", "y", "z"),
    "quaternion": ("x", "y", "z", "w"),
    **COMPONENTS,
}
"""What a filter says of a floating base that is state."""

RECOGNISED = {
    "probabilities": "How likely each contact state is, given all readings so far.",
    "closed": "The sum of the bits of the contacts that are closed in the most likely state, a whole number.",
}
"""Outputs that a filter has besides that recognises contacts."""

MOST_CONTACTS = 31
"""Contacts that have a bit each in an enum of C."""


class Enumeration(NamedTuple):
    """Names of offsets: an enum of C.

    Attributes:
        tag: its tag.
        about: the purpose of its names.
        values: the value of each enumerator.
    """

    tag: str
    about: str
    values: dict[str, int]


@dataclass(frozen=True, eq=False)
class Interface:
    """The interface of exported code.

    Attributes:
        name: the name of the code, an identifier.
        systems: the systems solved, one a contact state.
        all: where the readings and weights of each system are among those of all.
        contacts: the names of the contacts; none where there is one system only.
        states: the contacts that are closed where each system holds.
        solving: the plan whose outputs are wanted; of a filter, that which computes them given the null-space
            coordinates.
        memory: of filters: the unit of each number of the state, by its name.
        free: of filters: the name of each number that exact rows leave free, in any state.
        hypotheses: of filters that recognise contacts: the contact states; then `contacts` and `states` are of none.
        recognised: of these, the names of the contacts.
        lag: of filters: how many ticks late an estimate is.
    """

    name: str
    systems: tuple[System, ...]
    all: SideBySide
    contacts: tuple[str, ...]
    states: tuple[ContactState, ...]
    solving: EliminationPlan
    memory: Mapping[str, str] = field(default_factory=dict)
    free: tuple[str, ...] = ()
    hypotheses: tuple[ContactState, ...] = ()
    recognised: tuple[str, ...] = ()
    lag: int = 0

    @staticmethod
    def of(
        plans: Mapping[ContactState, EliminationPlan], contacts: Sequence[str], sensors: str, name: str | None
    ) -> Interface:
        """The interface of the plans of contact states, for one robot, with the same outputs.

        Args:
            plans: the plan of each contact state; one, of no contacts, where there are none.
            contacts: the names of all contacts.
            sensors: the sensors' name.
            name: the name of files, functions and types; from the robot's name when None.

        Raises:
            IdentifierError: the name is not an identifier of C, or one that is taken.
            PlanError: there are more contacts than an enum of C has bits.
        """
        if len(contacts) > MOST_CONTACTS:
            raise PlanError(
                f"sensors '{sensors}' have {len(contacts)} contacts: exported code has room for {MOST_CONTACTS}."
            )
        first, systems = next(iter(plans.values())), tuple(plan.system for plan in plans.values())
        name = default_identifier(first.system.tree.name) if name is None else checked_identifier(name)
        return Interface(name, systems, SideBySide(systems, sensors), tuple(contacts), tuple(plans), first)

    @property
    def NAME(self) -> str:
        """The prefix of constants."""
        return self.name.upper()

    @property
    def tree(self) -> KinematicTree:
        """The robot."""
        return self.systems[0].tree

    @property
    def statuses(self) -> Mapping[str, str]:
        """The statuses of a call, and their meaning."""
        return WINDOW_STATUSES if self.lag else FILTER_STATUSES if self.memory else STATUSES

    @property
    def suffixes(self) -> list[str]:
        """The suffix of the functions of each contact state."""
        names = [named_contacts(state) for state in self.states]
        return [f"_{name}" for name in distinct_identifiers(names)] if self.contacts else [""]

    def file(self, number: int, part: str = "") -> str:
        """The name of a file of one of the contact states."""
        suffix = self.suffixes[number]
        return f"{self.name}{suffix and '_state'}{suffix}{part}.c"

    def input_indices(self, number: int) -> list[int] | None:
        """Where the inputs of one of the systems lie in the struct of all; None where they are all, in order."""
        found = self.all.input_indices(number).tolist()
        return None if found == list(range(sum(member.shape[0] for member in self.inputs))) else found

    @cached_property
    def inputs(self) -> tuple[CMember, ...]:
        """The inputs of a call."""
        return tuple(inputs_of(self.NAME, self.systems, self.all))

    @cached_property
    def outputs(self) -> tuple[CMember, ...]:
        """The outputs of a call: those of the plan, then those of a filter."""
        if not self.memory:
            return tuple(outputs_of(self.NAME, self.solving))
        persisting = [Element(name, (comment_text(name), f"[{unit}]")) for name, unit in self.memory.items()]
        judged = [CMember(name, about) for name, about in OVER_TIME.items() if name != "memory"]
        taken = [*OVER_TIME, *RECOGNISED, *(["base"] if self.is_based else [])]
        found = [
            *outputs_of(self.NAME, self.solving, taken),
            CMember.array(self.NAME, "memory", OVER_TIME["memory"], "N_MEMORY", persisting),
        ]
        if self.is_based:
            units = {"position": "m"} | BASE_UNITS
            numbers = [
                Element(f"{of} {part}", (f"{of} {part}", f"[{units[of]}]" if of in units else ""))
                for of, parts in OF_BASE.items()
                for part in parts
            ]
            about = "The floating base: its pose in the world, its state in base axes. The root in q and qd is ignored."
            found.append(CMember("base", about, tuple(numbers), (str(len(numbers)),), (len(numbers),)))
        if self.hypotheses:
            states = [Element(name, (comment_text(name),)) for name in map(named_contacts, self.hypotheses)]
            found.append(CMember.array(self.NAME, "probabilities", RECOGNISED["probabilities"], "N_STATES", states))
            found.append(CMember("closed", RECOGNISED["closed"]))
        return (*found, *judged)

    @property
    def is_based(self) -> bool:
        """Whether a floating base is in the state."""
        return base_place(self.memory) is not None

    @property
    def input_names(self) -> list[str]:
        """The names of q, qd and y, as mappings have them; "" of numbers that are ignored, as the base is state."""
        tree = self.tree
        joints = [(name, joint.nq, joint.nv) for name, joint in zip(tree.joint_names, tree.joints, strict=True)]
        found = [part for name, nq, _ in joints for part in numbered(f"q:{name}", nq)]
        found += [part for name, _, nv in joints for part in numbered(f"qd:{name}", nv)]
        for place in root_numbers(tree) if self.is_based else ():
            found[place] = ""
        return [*found, *self.all.described]

    @property
    def output_names(self) -> list[str]:
        """The name of each number of the outputs."""
        return [name for member in self.outputs for name in self._names(member)]

    def _names(self, member: CMember) -> Iterable[str]:
        if member.part is not None:
            return output_names(self.solving.system, [member.part.output])[0]
        elements = [element.name for element in member.elements]
        return elements if member.name == "memory" else [f"{member.name}:{name}" for name in elements] or [member.name]

    @property
    def asked(self) -> tuple[CMember, ...]:
        """The outputs of the plan."""
        return tuple(member for member in self.outputs if member.part is not None)

    @cached_property
    def masks(self) -> dict[str, int]:
        """The sum of the bits of each contact state, by its enumerator."""
        sums = (sum(1 << self.contacts.index(one) for one in state) for state in self.states)
        return dict(zip(enumerators(f"{self.NAME}_STATE", map(named_contacts, self.states)), sums, strict=True))

    @cached_property
    def enumerations(self) -> tuple[Enumeration, ...]:
        """The names of all offsets, and of contacts."""
        return tuple(_enumerations(self))

    def enumeration(self, group: str, names: Iterable[str], about: str) -> Enumeration:
        """The enum of some names, numbered from 0."""
        made = enumerators(f"{self.NAME}_{group.upper()}", names)
        return Enumeration(f"{self.name}_{group.lower()}_index", about, {name: k for k, name in enumerate(made)})

    def known(self, number: int) -> str:
        """Closed contacts of a contact state, components and known values, as paragraphs.

        Of a filter, values with a sigma are left out.
        """
        rows = self.systems[number].rows
        held = [comment_text(row.name) for row in rows if not row.is_dynamic and not row.is_sensor]
        known: dict[str, list[str]] = {}
        for row in rows:
            if row.is_sensor and not row.equation.is_measured and (row.is_exact or not self.memory):
                values = getattr(row.equation, "value", None) or ()
                each = values[:1] if len(set(values)) == 1 else values
                known.setdefault(" ".join(f"{value:g}" for value in each), []).append(comment_text(row.name))
        text = f"\nClosed: {comment_text(named_contacts(self.states[number]))}.\n" * bool(self.contacts)
        text += (
            f"\nConstrained, as accelerations: {', '.join(held)}. Whether q and qd satisfy them is not checked.\n"
            * bool(held)
        )
        for value, names in known.items():
            text += f"\nTaken as known{value and f', {value} each'}: {', '.join(names)}.\n"
        return text


def _enumerations(of: Interface) -> Iterator[Enumeration]:
    def places(member: CMember, group: str) -> Enumeration:
        return of.enumeration(group, (element.name for element in member.elements), f"Indices of {member.name}.")

    own = [member for member in of.outputs if of.memory and member.name in ("memory", "probabilities", "base")]
    for member in (*of.inputs, *own):
        yield places(member, {"weights": "weight", "probabilities": "state"}.get(member.name, member.name))
    if of.free:
        yield of.enumeration("free", of.free, "Indices of the null-space coordinates.")
    whole = {member.part.output.kind: member for member in of.asked if member.part and is_whole(member.part.output)}
    yield from (places(whole[kind], kind) for kind in OF_JOINTS if kind in whole)
    rows = [member.name for kind, member in whole.items() if kind in SPATIAL]
    if rows:
        yield of.enumeration("link", of.tree.names, f"Rows of {', '.join(rows)}.")
    kinds = {member.part.output.kind for member in of.asked if member.part}
    for components, tag, what, those in (
        (MOTION, "motion", "spatial accelerations", {"a"}),
        (FORCE, "force", "wrenches", {"f", "fx"}),
    ):
        if kinds & those:
            values = {f"{of.NAME}_{component.upper()}": k for k, component in enumerate(components)}
            yield Enumeration(f"{of.name}_{tag}_index", f"Components of {what}.", values)
    if of.contacts or of.recognised:
        names = enumerators(f"{of.NAME}_CONTACT", of.contacts or of.recognised)
        bits = {name: 1 << k for k, name in enumerate(names)}
        about = f"Contacts: a state is the sum of those that are closed, as in {' | '.join([*bits][:2])}."
        yield Enumeration(f"{of.name}_contact", about, bits)
    if of.contacts:
        yield Enumeration(f"{of.name}_state", "The contact states that are planned.", of.masks)

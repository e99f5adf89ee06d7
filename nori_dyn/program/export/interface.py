"""What callers of exported code see, of one plan or of the plans of several contact states: inputs, outputs, names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from nori_dyn.errors import named_contacts
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.joints import FORCE, MOTION, Joint
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.outputs import Output
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.export.names import comment_text, distinct_identifiers, enumerators
from nori_dyn.program.export.text import numbers
from nori_dyn.program.layout import Part, output_parts
from nori_dyn.system.builder import System
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.system.variables import OF_JOINTS, SPATIAL, Variable, component_names

OF_FILTERS = ("memory", "nis", "degrees", "log_likelihood")
"""Outputs that a filter has besides."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A number of y.

    Attributes:
        name: its name.
        unit: its unit, empty where it has none.
        sensor: what kind of sensor it is of.
    """

    name: str
    unit: str
    sensor: str


@dataclass(frozen=True, slots=True, eq=False)
class Field:
    """A field of the outputs.

    Attributes:
        name: its identifier.
        part: the output.
        sizes: its dimensions as C declares them, numbers or macros; none for a single number.
    """

    name: str
    part: Part
    sizes: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, ...]:
        """Its shape; () for a single number."""
        return self.part.shape if self.sizes else ()

    @property
    def places(self) -> tuple[str, ...]:
        """How C refers to each of its numbers, "tau[3]"."""
        return tuple(self.name + "".join(f"[{k}]" for k in index) for index in np.ndindex(self.shape))


@dataclass(frozen=True, slots=True)
class Enumeration:
    """Names of places: an enum of C.

    Attributes:
        tag: its tag.
        about: what its names are for.
        values: the value of each enumerator.
    """

    tag: str
    about: str
    values: dict[str, int]


@dataclass(frozen=True, slots=True, eq=False)
class Interface:
    """What callers see.

    Attributes:
        name: what the code is called, an identifier.
        systems: the systems solved, one a contact state.
        inputs: where the readings and weights of each system are among those of all.
        fields: the fields of the outputs, the same for all systems.
        contacts: the names of the contacts; none where there is one system only.
        states: the contacts that are closed where each system holds.
        solved: the system whose unknowns the outputs are, where it is not the first of `systems`.
        memory: of filters: the name of each number that persists.
        free: of filters: the name of each number that exact rows leave free, in any state.
    """

    name: str
    systems: tuple[System, ...]
    inputs: SideBySide
    fields: tuple[Field, ...]
    contacts: tuple[str, ...] = ()
    states: tuple[ContactState, ...] = ()
    solved: System | None = None
    memory: tuple[str, ...] = ()
    free: tuple[str, ...] = ()

    @staticmethod
    def of(plan: EliminationPlan, name: str) -> Interface:
        """Return the interface of a plan."""
        return Interface(name, (plan.system,), SideBySide([plan.system], plan.system.sensors.name), _fields(plan, name))

    @staticmethod
    def of_set(
        plans: Mapping[ContactState, EliminationPlan], contacts: Sequence[str], name: str, sensors: str
    ) -> Interface:
        """Return the interface of the plans of contact states, for one robot, with the same outputs.

        Args:
            plans: the plan of each contact state.
            contacts: the names of all contacts.
            name: what the code is called, an identifier.
            sensors: what the sensors are called.
        """
        systems = tuple(plan.system for plan in plans.values())
        fields = _fields(next(iter(plans.values())), name)
        return Interface(name, systems, SideBySide(systems, sensors), fields, tuple(contacts), tuple(plans))

    def over_time(self, solving: EliminationPlan, memory: Sequence[str], free: Sequence[str]) -> Interface:
        """Return the interface of a filter, whose outputs another plan computes; it has more of these.

        Args:
            solving: the plan that computes the outputs, given what exact rows leave free.
            memory: see `Interface`.
            free: see `Interface`.
        """
        fields = _fields(solving, self.name, OF_FILTERS)
        return replace(self, solved=solving.system, fields=fields, memory=tuple(memory), free=tuple(free))

    @property
    def NAME(self) -> str:
        """What names of constants begin with."""
        return self.name.upper()

    @property
    def tree(self) -> KinematicTree:
        """The robot."""
        return self.systems[0].tree

    @property
    def variables(self) -> Sequence[Variable]:
        """The unknowns that the outputs are of."""
        return (self.solved or self.systems[0]).variables

    @property
    def input_sizes(self) -> dict[str, int]:
        """The length of each input that there is, by its field."""
        sizes = {"q": self.tree.nq, "qd": self.tree.nv, "y": self.inputs.ny, "weights": self.inputs.n_weights}
        return {field: n for field, n in sizes.items() if n}

    def places(self, number: int) -> list[int] | None:
        """Return where the inputs of one of the systems lie in the struct of all; None where they are all, in order."""
        n, inputs = self.tree.nq + self.tree.nv, self.inputs
        of_y, of_weights = inputs.y_places[number] + n, inputs.weight_places[number] + n + inputs.ny
        found = [*range(n), *of_y.tolist(), *of_weights.tolist()]
        return None if found == list(range(sum(self.input_sizes.values()))) else found

    @property
    def output_shapes(self) -> dict[str, tuple[int, ...]]:
        """The shape of each output, by its field."""
        return {field.name: field.shape for field in self.fields}

    @property
    def readings(self) -> tuple[Reading, ...]:
        """The numbers of y."""
        found: dict[str, Reading] = {}
        for system in self.systems:
            for row in system.measurements:
                names = component_names(row.name, row.equation.components)
                for name, unit in zip(names, row.units, strict=True):
                    found.setdefault(name, Reading(name, unit, row.equation.group))
        return tuple(found.values())

    @property
    def reads_spatial_vectors(self) -> bool:
        """Whether a sensor reads an acceleration or a wrench of a link."""
        at = positions(self.tree, self.tree.neutral_configuration())
        rows = (row for system in self.systems for row in system.measurements)
        return any(key.kind in SPATIAL for row in rows for key in row.equation.blocks(at))

    @property
    def neutral(self) -> dict[int, float]:
        """The numbers of the neutral configuration that are not zero, by their place."""
        return {k: value for k, value in enumerate(self.tree.neutral_configuration().tolist()) if value}

    @property
    def default_weights(self) -> str:
        """The weights as configured, as lines of C."""
        return numbers(self.inputs.weights.tolist())

    @property
    def contact_bits(self) -> dict[str, int]:
        """The bit of each contact, by its enumerator."""
        return {name: 1 << k for k, name in enumerate(enumerators(f"{self.NAME}_CONTACT", self.contacts))}

    @property
    def state_names(self) -> list[str]:
        """An identifier of each contact state."""
        return distinct_identifiers([named_contacts(state) for state in self.states])

    @property
    def state_masks(self) -> dict[str, int]:
        """The sum of the bits of each contact state, by its enumerator."""
        bits = {contact: 1 << k for k, contact in enumerate(self.contacts)}
        named = enumerators(f"{self.NAME}_STATE", [named_contacts(state) for state in self.states])
        return {name: sum(bits[one] for one in state) for name, state in zip(named, self.states, strict=True)}

    @property
    def enumerations(self) -> tuple[Enumeration, ...]:
        """The names of all places."""
        return tuple(_enumerations(self))


def _fields(plan: EliminationPlan, name: str, taken: Sequence[str] = ()) -> tuple[Field, ...]:
    """Return the fields of a plan's outputs, by names that are not taken; what was asked for twice is there once."""
    parts = list({part.output.name: part for part in output_parts(plan.system, plan.outputs)}.values())
    fields = []
    made = distinct_identifiers([*taken, *(part.output.name for part in parts)])[len(taken) :]
    for field, part in zip(made, parts, strict=True):
        sizes = tuple(map(str, part.shape)) if part.shape != (1,) else ()
        if is_whole(part.output) and (part.output.is_of_joints or part.output.is_spatial):
            sizes = (f"{name.upper()}_{'NV' if part.output.is_of_joints else 'N_LINKS'}", *sizes[1:])
        fields.append(Field(field, part, sizes))
    return tuple(fields)


def is_whole(output: Output) -> bool:
    """Return whether an output is all variables of its kind."""
    return output.body is None and not output.owner


def enumeration(interface: Interface, group: str, names: Sequence[str], about: str) -> Enumeration:
    """Return the enum of some names, numbered from 0."""
    made = enumerators(f"{interface.NAME}_{group.upper()}", names)
    return Enumeration(f"{interface.name}_{group.lower()}_index", about, {name: k for k, name in enumerate(made)})


def _enumerations(interface: Interface) -> list[Enumeration]:
    tree, inputs = interface.tree, interface.inputs
    joints = list(zip(tree.joint_names, tree.joints, strict=True))
    named = {
        "Q": ([f"{name} {what}".rstrip() for name, joint in joints for what in coordinate_names(joint)], "q"),
        "QD": ([f"{name} {what}".rstrip() for name, joint in joints for what in velocity_names(joint)], "qd"),
        "Y": (inputs.measurement_names, "y"),
        "WEIGHT": (inputs.weight_names, "weights"),
        "MEMORY": (interface.memory, "memory"),
        "FREE": (interface.free, "what exact rows leave free"),
    }
    whole = {field.part.output.kind: field.name for field in interface.fields if is_whole(field.part.output)}
    for kind in OF_JOINTS:
        if kind in whole:
            own = [v for v in interface.variables if v.kind == kind]
            places = [f"{tree.joint_names[v.body]} {component}".rstrip() for v in own for component in v.components]
            named[kind.upper()] = (places, whole[kind])
    given = {key: (names, f"Places in {field}.") for key, (names, field) in named.items() if names}
    found = [enumeration(interface, key, names, about) for key, (names, about) in given.items()]
    rows = [field for kind, field in whole.items() if kind in SPATIAL]
    if rows:
        found.append(enumeration(interface, "LINK", tree.names, f"Rows of {', '.join(rows)}."))
    kinds = {field.part.output.kind for field in interface.fields}
    for components, what, of in ((MOTION, "motion", {"a"}), (FORCE, "force", {"f", "fx"})):
        if kinds & of:
            values = {f"{interface.NAME}_{component.upper()}": k for k, component in enumerate(components)}
            about = "Components of spatial accelerations." if what == "motion" else "Components of wrenches."
            found.append(Enumeration(f"{interface.name}_{what}_index", about, values))
    return found


def coordinate_names(joint: Joint) -> list[str]:
    """Return what to call each number of a joint's configuration; empty for a single one."""
    kinds = joint.coordinates
    if len(kinds) == 1:
        return [""]
    lengths = ["shift"] if kinds.count("length") == 1 else ["x", "y", "z"]
    names = {"angle": iter(["angle"]), "length": iter(lengths), "quaternion": iter(["qx", "qy", "qz", "qw"])}
    return [next(names[kind]) for kind in kinds]


def velocity_names(joint: Joint) -> list[str]:
    """Return what to call each number of a joint's velocity; empty for a single one."""
    return [f"v{part[1:]}" if part.startswith("a") else part for part in joint.motion_components]


def known(system: System, exactly: bool = False) -> Iterator[str]:
    """Yield what components hold, and what sensors take as known, as lines of a comment.

    Args:
        system: the system.
        exactly: leave out what is known give or take.
    """
    held = [comment_text(row.name) for row in system.rows if not row.is_dynamic and not row.is_sensor]
    if held:
        yield ""
        yield f"Held, as accelerations: {', '.join(held)}. Whether q and qd fit them is not checked."
    known: dict[str, list[str]] = {}
    for row in system.rows:
        if row.is_sensor and not row.equation.is_measured and (row.is_exact or not exactly):
            values = getattr(row.equation, "value", None) or ()
            each = values[:1] if len(set(values)) == 1 else values
            known.setdefault(" ".join(f"{value:g}" for value in each), []).append(comment_text(row.name))
    for value, names in known.items():
        yield ""
        yield f"Taken as known{', ' + value + ' each' if value else ''}: {', '.join(names)}."

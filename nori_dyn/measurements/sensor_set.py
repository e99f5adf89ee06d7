"""A set of sensors: the content of a sensor config, not yet bound to a robot."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, reduce
from itertools import chain, combinations
from types import GenericAlias
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model

from nori_dyn.errors import (
    InvalidConfigError,
    NoriWarning,
    PlanError,
    SensorConfigError,
    UnknownSensorNameError,
    named_contacts,
    naming,
)
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.binding import bound, without_offset
from nori_dyn.measurements.centroidal import PARTS, Centroidal, CentroidalRows
from nori_dyn.measurements.config_errors import ConfigSchema, config_error, unknown_type
from nori_dyn.measurements.contacts import Contact, ContactState, contact_state
from nori_dyn.measurements.dynamics_noise import DynamicsNoise
from nori_dyn.measurements.floating_base import BASE, BaseRates, VelocityReading
from nori_dyn.measurements.frame_reading import LinkReading
from nori_dyn.measurements.linear_relation import LinearRelation
from nori_dyn.measurements.memory import Memory, beginnings
from nori_dyn.measurements.touch import TouchedLinks
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.equation import Equation
from nori_dyn.system.memory import Random, Remembered
from nori_dyn.system.parts import act_on_joints, added_unknowns, parts_of
from nori_dyn.system.plugins import entries_of, types_by_name
from nori_dyn.system.variables import CENTROIDAL, TOUCH, Variable, VariableKey, tree_variables
from nori_dyn.tables import Shown

ENTRY_POINTS = "nori_dyn.measurements"
"""The package of our own sensors, and the entry-point group of others."""

MAX_CONTACTS = 6
"""Largest number of contacts of which all states are taken unless told which: 64 of them."""


@cache
def measurement_types() -> dict[str, type[Measurement]]:
    """Every sensor by the name that configs use: our own, and those of other packages by entry point.

    Raises:
        SensorConfigError: a package offers something under the entry-point group that is not a sensor.
    """
    return types_by_name(ENTRY_POINTS, Measurement, "sensor", SensorConfigError)


@dataclass(frozen=True, slots=True)
class SensorSet(Shown):
    """A named set of sensors.

    Attributes:
        name: its name.
        measurements: the sensors, in the order of their rows.
        source: where the set stands in the literature.
        dynamics: how far the equations of motion may be off; they hold exactly when None.
        contacts: places that touch the world at times, each with its rows for either case; they come after
            `measurements`. A set that has any is many sets: `in_contact` chooses one, `nd.plan` plans them all, and
            `nd.System` refuses it.
        memory: the state from tick to tick, by a name each: for `nd.Tracker`.
        touch: links that may be touched anywhere, one at a time; `touching` makes contacts of them.

    Raises:
        InvalidConfigError: two sensors of one name; a sensor with an offset
            among the rows of a contact.

    Example:
        >>> sensors = nd.sensors("inverse_dynamics")
        >>> [sensor.type for sensor in sensors.measurements]
        ['joint_acceleration', 'external_wrench']
    """

    name: str
    measurements: tuple[Measurement, ...]
    source: str = ""
    dynamics: DynamicsNoise | None = None
    contacts: tuple[Contact, ...] = ()
    memory: tuple[tuple[str, Memory], ...] = ()
    touch: TouchedLinks | None = None

    def __post_init__(self) -> None:
        seen = _named(self.measurements, set(), ("measurements",))
        for contact in self.contacts:  # closed or open, never both: its two cases may share names
            cases = {"closed": contact.closed, "open": contact.open}.items()
            seen = set().union(*(_named(rows, seen, ("contacts", contact.name, case)) for case, rows in cases))
            for case, rows in cases:
                _check_no_offsets(rows, ("contacts", contact.name, case))

    def __repr__(self) -> str:
        contacts = f", {len(self.contacts)} contacts" if self.contacts else ""
        return f"SensorSet('{self.name}', {len(self.measurements)} measurements{contacts})"

    @staticmethod
    def from_dict(data: Any, of_model: Sequence[Mapping[str, Any]] | None = None) -> SensorSet:
        """The set that a config's content describes.

        Args:
            data: the content.
            of_model: entries of the robot's own sensors, for a config with `from_model`: they come first, changed as
                in `from_model`, but for those whose names the config's own measurements have. Gyroscopes are left out
                unless the base is state, or `from_model` changes them.

        Raises:
            InvalidConfigError: content that does not follow the schema.
            UnknownSensorNameError: a sensor type that does not exist.

        Example:
            >>> torques = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
            >>> nd.SensorSet.from_dict({"name": "torques", "measurements": [torques]})
            SensorSet('torques', 1 measurements)
        """
        try:
            config: Any = config_model().model_validate(data)
        except ValidationError as error:
            if found := unknown_type(error, data):
                unknown = UnknownSensorNameError("sensor type", found[0], measurement_types())
                unknown.path = found[1]
                raise unknown from None
            raise config_error(error, data, ConfigSchema(config_model(), "a set of sensors")) from None
        contacts = tuple(Contact(name, tuple(c.closed), tuple(c.open)) for name, c in config.contacts.items())
        more = config.source, config.dynamics, contacts, tuple(config.memory.items()), config.touch
        if not config.from_model:
            return SensorSet(config.name, tuple(config.measurements), *more)
        if of_model is None:
            raise InvalidConfigError(
                "from_model takes the sensors that a robot's file describes. Name it: load_sensors(path, model=FILE).",
                ("from_model",),
            )
        changes = {} if config.from_model is True else config.from_model
        rows = (row for contact in contacts for row in (*contact.closed, *contact.open))
        own = {measurement.name for measurement in (*config.measurements, *rows)}
        if not any(BASE in memory.wanted for memory in config.memory.values()):
            of_model = [e for e in of_model if e["type"] != "gyroscope" or {e["type"], e["name"]} & {*changes}]
        inherited = [entry for entry in _changed(of_model, changes) if entry["name"] not in own]
        try:
            first = SensorSet.from_dict({"name": config.name, "measurements": inherited})
        except InvalidConfigError as error:  # its path is one in the robot's own sensors
            named = next((inherited[k]["name"] for k in error.path[1:2] if isinstance(k, int)), "")
            whose = f"sensor '{named}' of the model, as changed: " if changes else ""
            raise InvalidConfigError(f"{whose}{error}", ("from_model",)) from None
        measurements = (*first.measurements, *config.measurements)
        return SensorSet(config.name, measurements, *more)

    def to_dict(self) -> dict[str, Any]:
        """The content of the config, as `from_dict` takes it."""
        measurements = [m.model_dump(by_alias=True, exclude_defaults=False) for m in self.measurements]
        noise = {} if self.dynamics is None else {"dynamics": self.dynamics.model_dump(by_alias=True)}
        contacts = {"contacts": {c.name: c.to_dict() for c in self.contacts}} if self.contacts else {}
        memory = {"memory": {name: each.model_dump() for name, each in self.memory}} if self.memory else {}
        touch = {"touch": self.touch.model_dump(by_alias=True)} if self.touch else {}
        described = {"name": self.name, "source": self.source, **noise, "measurements": measurements}
        return described | contacts | memory | touch

    @property
    def fingerprint(self) -> str:
        """A hash of all that the equations depend on beside the tree."""
        content = self.to_dict()
        parts = (
            content["measurements"],
            *(content[key] for key in ("dynamics", "contacts", "memory", "touch") if key in content),
        )
        return hashlib.sha256(json.dumps(parts[0] if len(parts) == 1 else parts, sort_keys=True).encode()).hexdigest()

    def dynamics_sigma(self, equation: str, n: int) -> tuple[float, ...] | None:
        """The standard deviation of each of the n rows of "3a", "3f" or "3tau"; None is exact."""
        return None if self.dynamics is None else self.dynamics.of(equation, n)

    @property
    def contact_names(self) -> tuple[str, ...]:
        """The names of the contacts, in the order of the config."""
        return tuple(contact.name for contact in self.contacts)

    def contact_state(self, closed: Iterable[str]) -> ContactState:
        """The names of some contacts in the order of the config.

        Raises:
            UnknownSensorNameError: there is no such contact.
        """
        return contact_state(self.contact_names, closed, f"sensors '{self.name}'")

    def contact_states(self, states: Iterable[Iterable[str]] | None = None) -> list[ContactState]:
        """Contact states, each once, those with the most closed contacts first, then in the order of the config.

        Args:
            states: those wanted, each the names of the contacts that are closed in it; all when None, of links that may
                be touched one at a time.

        Raises:
            PlanError: the set has no contacts, too many for all their states, or none is wanted.
            UnknownSensorNameError: there is no such contact.
        """
        names = self.contact_names
        if not names:
            raise PlanError(f"sensors '{self.name}' have no contacts, and so one state: leave `states` out.")
        if states is None:
            touched = [contact.name for contact in self.contacts if contact.is_touch]
            others = [name for name in names if name not in touched]
            if len(others) > MAX_CONTACTS:
                raise PlanError(
                    f"sensors '{self.name}' have {len(others)} contacts, and so {2 ** len(others)} contact states. "
                    "Name those that occur in `states`."
                )
            closed = chain.from_iterable(combinations(others, n) for n in range(len(others) + 1))
            states = [(*state, *link) for state in closed for link in [(), *zip(touched)]]
        found = {self.contact_state(state) for state in states}
        if not found:
            raise PlanError("states is empty: name at least one contact state, or leave it out for all.")
        return sorted(found, key=lambda state: (-len(state), [names.index(name) for name in state]))

    def in_contact(self, *closed: str) -> SensorSet:
        """The set in a state: some contacts closed, all others open; it has no contacts any more.

        Args:
            closed: names of those that are closed, in any order; none when all are open.

        Raises:
            UnknownSensorNameError: there is no such contact.

        Example:
            >>> nd.sensors("biped_contacts").in_contact("l_foot")
            SensorSet('biped_contacts (l_foot)', 7 measurements)
        """
        state = self.contact_state(closed)
        rows = [row for c in self.contacts for row in (c.closed if c.name in state else c.open)]
        name = f"{self.name} ({named_contacts(state)})" if self.contacts else self.name
        return replace(self, name=name, measurements=(*self.measurements, *rows), contacts=())

    @property
    def has_touches(self) -> bool:
        """Whether links may be touched, by `touch` or by contacts that were made of it."""
        return self.touch is not None or any(contact.is_touch for contact in self.contacts)

    def touching(self, tree: KinematicTree) -> SensorSet:
        """The set with a contact for each link that may be touched, and the wrench of the touch as state.

        Raises:
            SensorConfigError: a name that the robot does not have, or that of another contact.
        """
        if self.touch is None:
            return self
        contacts = (*self.contacts, *self.touch.contacts(tree))
        names = [contact.name for contact in contacts]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise SensorConfigError(f"sensors '{self.name}': '{twice}' is a contact, and a link that may be touched.")
        memory = (*self.memory, (TOUCH, Memory.model_validate(self.touch.memory)))
        return replace(self, contacts=contacts, memory=memory, touch=None)

    def with_centroidal(self, outputs: Iterable[str]) -> SensorSet:
        """The set with the centroidal quantities that some outputs name, where it does not have them."""
        named = (name.partition(":") for name in outputs)
        wanted = {part for kind, _, of in named if kind == CENTROIDAL for part in ([of] if of in PARTS else PARTS)}
        given = {
            part for each in self.measurements if isinstance(each, Centroidal) for part in each.quantities or PARTS
        }
        lacking = [part for part in PARTS if part in wanted - given]
        if not lacking:
            return self
        return replace(self, measurements=(*self.measurements, Centroidal(type="centroidal", quantities=lacking)))

    def equations(self, tree: KinematicTree) -> list[Equation]:
        """The measurement rows on a robot.

        Raises:
            SensorConfigError: a name that the robot does not have, with its sensor; or a set with
                contacts, of which no state is chosen.
        """
        if self.contacts:
            names = ", ".join(self.contact_names)
            listed = ", ".join(f"'{name}'" for name in self.contact_names)
            raise SensorConfigError(
                f"sensors '{self.name}' have contacts ({names}), of which some may be closed. Choose a state "
                f"with .in_contact({listed}) or --contacts {names.replace(' ', '')}, or plan all of them with "
                "nd.plan(tree, sensors) or --contacts all."
            )
        if self.touch:
            raise SensorConfigError(
                f"sensors '{self.name}' have links that may be touched. Plan the states of all with "
                "nd.plan(tree, sensors) or --contacts all; nd.tools.touch_observability(tree, sensors), or nori-dyn "
                "observe, says what they tell of touches."
            )
        equations: list[Equation] = []
        for number, measurement in enumerate(self.measurements, start=1):
            what = f"sensors '{self.name}', measurement {number} ({measurement.type})"
            with naming(what):
                rows = bound(measurement, tree)
            if not rows and isinstance(measurement.parts[0], LinkReading) and measurement.value is None:
                warnings.warn(
                    f"{what}: it reads nothing on robot '{tree.name}'.{_why(tree)}", NoriWarning, stacklevel=4
                )
            equations.extend(rows)
        for name, memory in self.memory:
            with naming(f"sensors '{self.name}', memory '{name}'"):
                equations.extend(memory.equations(tree))
        _check_base(equations)
        parts = parts_of(tree)
        equations.extend(part.prior for part in parts if isinstance(part, Random) and part.prior is not None)
        if self.memory:
            variables = tree_variables(tree, act_on_joints(parts), added_unknowns(parts, equations))
            equations.extend(beginnings(self.remembered([v for v in variables if v.components], equations)))
        return equations

    def remembered(self, variables: Sequence[Variable], equations: Iterable[Equation]) -> list[Remembered]:
        """The variables that are state from tick to tick.

        Args:
            variables: those of a robot with these sensors.
            equations: the rows of these sensors.

        Raises:
            SensorConfigError: a name that the robot does not have, or a variable that is state by two entries.
        """
        own = {row.name.removeprefix("prior:"): row for row in equations if row.group == "prior"}
        found: dict[VariableKey, Remembered] = {}
        for name, memory in self.memory:
            with naming(f"sensors '{self.name}', memory '{name}'"):
                for one in memory.remembered(name, variables, own):
                    if one.variable.key in found:
                        before = found[one.variable.key].memory
                        raise SensorConfigError(f"'{one.variable.name}' is state by '{before}' already. Name it once.")
                    found[one.variable.key] = one
        return list(found.values())


def _check_base(equations: Sequence[Equation]) -> None:
    """Check that the base is state where a sensor reads its velocity, and is not where axes of the world are needed.

    Raises:
        SensorConfigError: names the sensor.
    """
    along = [equation.name for equation in equations if isinstance(equation, CentroidalRows)]
    if along and any(isinstance(equation, BaseRates) for equation in equations):
        raise SensorConfigError(
            f"'{along[0]}' is along axes of the world, and of a base that is state only its estimate tells where these "
            "are: nd.recursions.centroidal(tree, q, qd) and zmp(tree, q, fx), tracker.base.q and .qd at the root."
        )
    read = [equation.name for equation in equations if isinstance(without_offset(equation), VelocityReading)]
    if read and not any(isinstance(equation, BaseRates) for equation in equations):
        raise SensorConfigError(
            f"'{read[0]}' reads the velocity of the base, which is no state here: say so, "
            "memory: {base: {of: base}}."
        )


def _why(tree: KinematicTree) -> str:
    """Why a selector may leave no link."""
    is_fixed = not any(isinstance(joint, Free) for joint in tree.joints)
    return " Its base is fixed: base='floating' loads it with one that moves." if is_fixed else ""


def _named(
    measurements: Sequence[Measurement], taken: set[tuple[bool, str]], path: tuple[str | int, ...]
) -> set[tuple[bool, str]]:
    """The names of sensors beside those that are taken.

    Raises:
        InvalidConfigError: one is taken.
    """
    seen = set(taken)
    for k, measurement in enumerate(measurements):
        key = (isinstance(measurement, LinearRelation), str(measurement.name))  # relations have names of their own
        if measurement.name is not None and key in seen:
            raise InvalidConfigError(
                f"two sensors are named '{measurement.name}'. Rename or remove one of the two.", (*path, k, "name")
            )
        seen.add(key)
    return seen


def _check_no_offsets(measurements: Sequence[Measurement], path: tuple[str | int, ...]) -> None:
    """Check that sensors have no offset: the states of contacts have the same variables.

    Raises:
        InvalidConfigError: one has.
    """
    for k, measurement in enumerate(measurements):
        if any(part.offset is not None for part in measurement.parts):
            raise InvalidConfigError(
                "an offset stays, whether the contact is closed or not: put this sensor under `measurements`.",
                (*path, k, "offset"),
            )


def _changed(
    entries: Sequence[Mapping[str, Any]], changes: Mapping[str, Mapping[str, Any] | None]
) -> list[dict[str, Any]]:
    """Entries with some fields changed, by their type and then by their name; None leaves them out.

    Raises:
        UnknownSensorNameError: there is no such type, and no entry of such a name.
    """
    known = dict.fromkeys([*measurement_types(), *(str(entry["name"]) for entry in entries)])
    for name in changes:
        if name not in known:
            raise UnknownSensorNameError("type or name of a sensor of the model", name, known)
    found = []
    for entry in entries:
        applied = [changes[entry[key]] for key in ("type", "name") if entry[key] in changes]
        if None not in applied:
            found.append(reduce(lambda fields, change: {**fields, **(change or {})}, applied, dict(entry)))
    return found


@cache
def config_model() -> type[BaseModel]:
    """The pydantic model of a sensor config, over all sensors that exist."""
    entries = entries_of(tuple(measurement_types().values()))
    contact = create_model(
        "ContactConfig", __config__=ConfigDict(extra="forbid"), closed=(entries, ...), open=(entries, ...)
    )
    contacts: Any = GenericAlias(dict, (Annotated[str, Field(pattern=r"^[\w./-]+$")], contact))
    return create_model(
        "SensorConfig",
        __config__=ConfigDict(extra="forbid"),
        name=(Annotated[str, Field(min_length=1)], ...),
        source=(str, ""),
        dynamics=(DynamicsNoise | None, None),
        from_model=(bool | dict[str, dict[str, Any] | None], False),
        measurements=(entries, ...),
        contacts=(contacts, {}),
        memory=(dict[Annotated[str, Field(min_length=1)], Memory], {}),
        touch=(TouchedLinks | None, None),
    )

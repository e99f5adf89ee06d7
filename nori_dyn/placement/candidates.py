"""Sensors to choose from: what is there anyway, what may be bought, what it costs, and what goes together."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, FiniteFloat, ValidationError

from nori_dyn.descriptions.sensor_configs import read_config
from nori_dyn.errors import InvalidConfigError, SensorConfigError, UnknownSensorNameError
from nori_dyn.measurements.base import Measurement
from nori_dyn.measurements.binding import bound
from nori_dyn.measurements.config_errors import ConfigSchema, config_error
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowKey, SensorRow

EQUAL_COSTS = 1e-9
"""Share of a cost, or of a criterion, by which two are still equal."""

Cost = Annotated[FiniteFloat, Field(ge=0)]


class _CandidatesConfig(BaseModel):
    """What a file of candidates says beside its sensors."""

    model_config = ConfigDict(extra="forbid")
    name: Annotated[str, Field(min_length=1)]
    source: str = ""
    dynamics: Any = None
    measurements: list[Any] = []
    from_model: Any = False
    contacts: dict[str, Any] = {}
    candidates: dict[str, Any]
    costs: dict[str, Cost] = {}
    together: dict[str, Annotated[list[str], Field(min_length=2)]] = {}
    must: list[str] = []
    at_most_one: list[Annotated[list[str], Field(min_length=2)]] = []
    budget: Cost | None = None


@dataclass(frozen=True, slots=True)
class Candidates:
    """Sensors to choose from.

    Attributes:
        name: its name.
        present: sensors and known values that are there anyway, at no cost.
        choices: sensors to choose from; each that reads several places is as many.
        costs: of a choice, by its name or its type; 1 where neither is given.
        together: choices that are had together or not at all, by what to call them.
        must: choices that have to be taken.
        at_most_one: sets of choices of which one at most may be taken.
        budget: the largest total cost; None for any.
    """

    name: str
    present: SensorSet
    choices: SensorSet
    costs: Mapping[str, float] = field(default_factory=dict)
    together: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    must: tuple[str, ...] = ()
    at_most_one: tuple[tuple[str, ...], ...] = ()
    budget: float | None = None

    @staticmethod
    def from_dict(data: Any, of_model: Sequence[Mapping[str, Any]] | None = None) -> Candidates:
        """Read the content of a file.

        Args:
            data: the content.
            of_model: entries of the robot's own sensors, for `from_model`, see `SensorSet.from_dict`.

        Raises:
            InvalidConfigError: content that does not follow the schema; says where.
            UnknownSensorNameError: a sensor type that does not exist.
        """
        try:
            config = _CandidatesConfig.model_validate(data)
        except ValidationError as error:
            raise config_error(error, data, ConfigSchema(_CandidatesConfig, "a file of candidates")) from None
        there = config.model_dump(include={"name", "source", "dynamics", "measurements", "from_model", "contacts"})
        if "contacts" in config.candidates:
            raise InvalidConfigError(
                "in candidates, at contacts: whether something touches is no choice. Write contacts beside candidates.",
                ("candidates", "contacts"),
            )
        choices = {"name": config.name, "measurements": [], **config.candidates}
        return Candidates(
            name=config.name,
            present=SensorSet.from_dict(there, of_model),
            choices=_within("candidates", choices, of_model),
            costs=config.costs,
            together={name: tuple(names) for name, names in config.together.items()},
            must=tuple(config.must),
            at_most_one=tuple(map(tuple, config.at_most_one)),
            budget=config.budget,
        )

    def on(self, tree: KinematicTree, states: Iterable[Iterable[str]] | None = None) -> Choices:
        """The choices on a robot.

        Args:
            tree: the robot.
            states: contact states in which they are to do, each the contacts that are closed in it; all when None.

        Raises:
            PlanError: states of what has no contacts; too many for all.
            SensorConfigError: what the robot does not have, a choice that is in two bundles, none to choose from.
            UnknownSensorNameError: a cost, bundle or rule for what is no choice.
        """
        sensors: dict[str, Measurement] = {}
        owners: list[str] = []
        for sensor in (one for many in self.choices.measurements for one in many.each(tree)):
            names = [equation.name for equation in bound(sensor, tree)]
            name = sensor.name or next(iter(names), sensor.type)
            if name in sensors:
                raise SensorConfigError(f"candidates '{self.name}': two are called '{name}'. Give one of them a name.")
            sensors[name] = sensor
            owners += [name] * len(names)
        if not sensors:
            raise SensorConfigError(f"candidates '{self.name}' has no sensors to choose from.")
        self._check_names([*sensors], {sensor.type for sensor in sensors.values()})
        bundled = {member: bundle for bundle, members in self.together.items() for member in members}
        choices: dict[str, list[str]] = {}
        for name in sensors:
            choices.setdefault(bundled.get(name, name), []).append(name)
        has_states = bool(self.present.contacts) or states is not None
        found = []
        for state in self.present.contact_states(states) if has_states else [()]:
            there = self.present.in_contact(*state)
            system = System(tree, replace(there, measurements=(*there.measurements, *sensors.values())))
            first = sum(len(bound(sensor, tree)) for sensor in there.measurements)  # what is there anyway comes first
            rows: dict[RowKey, str] = {SensorRow(first + k): bundled.get(name, name) for k, name in enumerate(owners)}
            found.append(Offered(state, system, rows))
        return Choices(
            candidates=self,
            offered=tuple(found),
            sensors={choice: tuple(sensors[name] for name in names) for choice, names in choices.items()},
            costs={choice: self._cost(choice, {n: sensors[n].type for n in own}) for choice, own in choices.items()},
            must=tuple(dict.fromkeys(bundled.get(name, name) for name in self.must)),
            at_most_one=tuple(tuple(dict.fromkeys(bundled.get(n, n) for n in names)) for names in self.at_most_one),
        )

    def chosen(self, sensors: Iterable[Measurement]) -> SensorSet:
        """The set of what is there anyway and some sensors.

        Raises:
            InvalidConfigError: two sensors of one name.
        """
        return replace(self.present, measurements=(*self.present.measurements, *sensors))

    def _check_names(self, names: Sequence[str], types: set[str]) -> None:
        """Check that costs, bundles and rules are about choices.

        Raises:
            SensorConfigError: a choice in two bundles, or a bundle by the name of a choice.
            UnknownSensorNameError: what is no choice.
        """
        bundled = [member for members in self.together.values() for member in members]
        self._check_known("together", bundled, names)
        for member in bundled:
            if bundled.count(member) > 1:
                raise SensorConfigError(f"candidates '{self.name}': '{member}' is in two bundles. Put it into one.")
        for bundle in self.together:
            if bundle in names:
                raise SensorConfigError(f"candidates '{self.name}': bundle '{bundle}' has the name of a sensor.")
        chosen = [*names, *self.together]
        self._check_known("costs", self.costs, [*chosen, *sorted(types)])
        self._check_known("must", self.must, chosen)
        self._check_known("at_most_one", (name for some in self.at_most_one for name in some), chosen)

    def _check_known(self, where: str, asked: Iterable[str], known: Sequence[str]) -> None:
        for name in asked:
            if name not in known:
                raise UnknownSensorNameError("candidate", name, known, f"'{where}' of candidates '{self.name}'")

    def _cost(self, choice: str, types: Mapping[str, str]) -> float:
        """The cost of a choice: its own, or the sum over its sensors by their names or types."""
        if choice in self.costs:
            return float(self.costs[choice])
        return float(sum(self.costs.get(name, self.costs.get(kind, 1.0)) for name, kind in types.items()))


def load_candidates(
    path: str | Path, model: str | os.PathLike[str] | None = None, tree: KinematicTree | None = None
) -> Candidates:
    """Read the sensors to choose from that a YAML file describes, for `place` and `best_sensors`.

        name: what_to_buy
        measurements:                       # there anyway
          - {type: external_wrench, links: {except: [l_sole, r_sole]}, value: 0}
        candidates:                         # a set of sensors; each that reads several places is as many choices
          from_model: {accelerometer: {sigma: 0.1}, force_torque: {sigma: 0.5}}
          measurements:
            - {type: joint_acceleration, joints: actuated, sigma: 1.0}
        contacts:                           # as in a set of sensors: the choice has to do in each contact state
          l_foot:
            closed: [{type: rigid_contact, links: l_sole}]
            open: [{type: external_wrench, links: l_sole, value: 0}]
        costs: {accelerometer: 40, force_torque: 3000, l_foot_ft: 0}    # by type or name; 1 where not given
        together: {imu: [head_acc, head_angular_acc]}                   # had together or not at all
        must: [l_foot_ft]
        at_most_one: [[l_arm_ft, l_upper_arm_ft]]
        budget: 5000

    Args:
        path: the YAML file.
        model: the robot, as for `load_robot`, where the file has `from_model`.
        tree: see `sensors_from_model`.

    Raises:
        FileFormatError: the file cannot be read.
        SensorConfigError: it is not YAML, or does not follow the schema: names the file and line.

    Example:
        >>> from pathlib import Path
        >>> _ = Path("shop.yaml").write_text('''
        ... name: shop
        ... candidates:
        ...   measurements:
        ...     - {type: joint_acceleration, joints: all}
        ...     - {type: accelerometer, links: all}
        ... costs: {accelerometer: 40}
        ... ''')
        >>> nd.placement.load_candidates("shop.yaml").costs
        {'accelerometer': 40.0}
    """
    return read_config(path, Candidates.from_dict, model, tree)


@dataclass(frozen=True, slots=True, eq=False)
class Offered:
    """A robot in a contact state with all candidates.

    Attributes:
        state: the contacts that are closed; none where there are none.
        system: the robot with all of them, and with what is there anyway.
        rows: by equation the choice that it is of.
    """

    state: ContactState
    system: System
    rows: Mapping[RowKey, str]


@dataclass(frozen=True, eq=False)
class Choices:
    """Candidates on a robot.

    Attributes:
        candidates: what they come from.
        offered: the robot with all of them, in each contact state.
        sensors: by choice its sensors, each of which reads one place.
        costs: by choice.
        must: choices that have to be taken.
        at_most_one: sets of choices of which one at most may be taken.
        most: how many may be taken at most.
        budget: the largest cost of those taken; what the candidates say is not among the rules unless it is asked for.
    """

    candidates: Candidates
    offered: tuple[Offered, ...]
    sensors: Mapping[str, tuple[Measurement, ...]]
    costs: Mapping[str, float]
    must: tuple[str, ...]
    at_most_one: tuple[tuple[str, ...], ...]
    most: float = math.inf
    budget: float = math.inf

    @property
    def system(self) -> System:
        """The robot with all candidates, in the first contact state."""
        return self.offered[0].system

    def cost(self, chosen: Iterable[str]) -> float:
        """Cost of some choices together."""
        return sum(self.costs[name] for name in chosen)

    @cached_property
    def rules(self) -> tuple[tuple[Mapping[str, float], float], ...]:
        """Factors of choices, and what their sum is at most: of how many, of what they cost, of some that exclude."""
        limits = (dict.fromkeys(self.costs, 1.0), self.most), (self.costs, self.budget * (1 + EQUAL_COSTS))
        excluding = ((dict.fromkeys(names, 1.0), 1.0) for names in self.at_most_one)
        return (*(rule for rule in limits if rule[1] < math.inf), *excluding)

    def is_allowed(self, chosen: Iterable[str]) -> bool:
        """Whether the rules allow some choices."""
        taken = set(chosen)
        return all(sum(terms.get(name, 0.0) for name in taken) <= most for terms, most in self.rules)

    def in_order(self, chosen: Iterable[str]) -> tuple[str, ...]:
        """Choices in the order of the candidates."""
        taken = set(chosen)
        return tuple(name for name in self.sensors if name in taken)

    def sensor_set(self, chosen: Iterable[str]) -> SensorSet:
        """The set of what is there anyway and some choices."""
        return self.candidates.chosen(sensor for name in chosen for sensor in self.sensors[name])


def _within(key: str, data: Any, of_model: Sequence[Mapping[str, Any]] | None) -> SensorSet:
    """The set of sensors in a part of a config; errors say where in the whole they are."""
    try:
        return SensorSet.from_dict(data, of_model)
    except InvalidConfigError as error:
        raise InvalidConfigError(f"in {key}, {error}", (key, *error.path)) from None

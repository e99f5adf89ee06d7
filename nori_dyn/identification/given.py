"""What is given to identify from: logs, of one robot or of several, and the systems of their contact states."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.descriptions.sensor_configs import load_sensors
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.filtering.history import History
from nori_dyn.logs.log import Log, read_log
from nori_dyn.logs.mapping.record import ALWAYS
from nori_dyn.logs.reading import SampleReader
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System

OneLog: TypeAlias = Log | str | os.PathLike[str]
"""A log as it is given."""

Given: TypeAlias = OneLog | Sequence[OneLog] | Mapping[str, OneLog | Sequence[OneLog]]
"""Logs as they are given: one, several, or those of each robot by its name."""

SENSORS = {False: "identification", True: "identification_floating"}
"""The shipped set of sensors that is taken where only a robot is given, by whether its base floats."""


def with_sensors(tree: KinematicTree) -> System:
    """A robot with the sensors that are taken where none are named."""
    return System(tree, load_sensors(SENSORS[any(isinstance(joint, Free) for joint in tree.joints)]))


def in_contact(
    system: System | KinematicTree,
    sensors: SensorSet | str | None,
    contacts: Iterable[str] | History | None,
    logs: Sequence[Log],
) -> dict[str, Any]:
    """The systems of the contact states that occur, the names of the contacts, and what tells which are closed.

    Raises:
        InputError: contacts of sensors that have none; contacts of several logs that were recognised in one.
        UnknownSensorNameError: there is no such contact.
    """
    if isinstance(system, System):
        if sensors is not None:
            raise InputError("a System has its sensors: give the robot, to name others.")
        tree, chosen = system.tree, None
    else:
        tree = system
        chosen = load_sensors(sensors) if isinstance(sensors, str) else sensors
    names = () if chosen is None else chosen.contact_names
    if chosen is None or not names:
        if contacts is not None:
            raise InputError("the sensors have no contacts. Give the robot, and `sensors` that have.")
        if chosen is not None:
            system = System(tree, chosen)
        only = system if isinstance(system, System) else with_sensors(tree)
        return {"systems": {ALWAYS: only}, "contact_names": (), "contacts": None}
    if isinstance(contacts, History):
        if contacts.contacts is None or contacts.contacts.names != names or len(logs) != 1:
            raise InputError(
                f"the contacts were not recognised by sensors with the contacts {', '.join(names)}, or not in one log "
                "alone. Write what was recognised into the logs: a column contact:NAME, 1 where it is closed."
            )
        states = {tuple(np.array(names)[row]) for row in np.unique(contacts.contacts.closed, axis=0)}
    elif contacts is not None:
        contacts = chosen.contact_state(contacts)
        states = {contacts}
    else:
        every = {state: System(tree, chosen.in_contact(*state)) for state in ((), names)}  # have all readings
        states = set().union(*(SampleReader(every, names).states(log) for log in logs))
    systems = {state: System(tree, chosen.in_contact(*state)) for state in sorted(states)}
    return {"systems": systems, "contact_names": names, "contacts": contacts}


def logs_of(given: Given, robots: tuple[str, ...]) -> list[tuple[int, Log]]:
    """Logs, with the number of the robot that each is of.

    Raises:
        InputError: of several robots, it is not said which these are of.
        UnknownNameError: of a robot that has no other log.
    """
    if not isinstance(given, Mapping):
        each = [given] if isinstance(given, Log | str | os.PathLike) else given
        if len(each) and len(robots) > 1:
            raise InputError(f"of which robot are they? Give the logs of each by its name: {{'{robots[0]}': ...}}.")
        given = {robots[0]: each}
    found = []
    for name, own in given.items():
        if name not in robots:
            raise UnknownNameError("robot", name, robots, "the logs")
        logs = [own] if isinstance(own, Log | str | os.PathLike) else own
        found += [(robots.index(name), log if isinstance(log, Log) else read_log(log)) for log in logs]
    return found

"""Plan sets as users meet them: the plans of all contact states of one set of sensors, saved, loaded, and run."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from nori_dyn.api.plan import Plan, plan_of, plan_system
from nori_dyn.api.planned import Planned, PlannedStates
from nori_dyn.api.summary import plan_set_document
from nori_dyn.api.system import Named, System
from nori_dyn.api.verification import verify
from nori_dyn.errors import (
    NoriError,
    PlanError,
    SingularSystemError,
    SystemShapeError,
    UnplannedStateError,
    named_contacts,
)
from nori_dyn.io.export import export
from nori_dyn.io.files import read_text, write_bytes
from nori_dyn.io.plan_files import tree_of
from nori_dyn.io.plan_set_files import PlanSetData, is_plan_set, plan_set_from_text, plan_set_to_text
from nori_dyn.io.sensor_configs import load_sensors
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.program.export.files import CExport, c_set_export
from nori_dyn.solve.switching import SwitchingSolver
from nori_dyn.system.given import check_sensors, check_tree
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables import Document, Shown
from nori_dyn.tables.progress import Progress, Watched, progress_bar

OF_ONE_STATE = {
    *("system", "outputs", "ordering", "row_permutation", "column_permutation", "program_rows", "program_columns"),
    *("tried", "undetermined", "cost", "pattern", "stability", "symbolic", "refined", "monitor", "derivative"),
}
"""What a plan has that differs from state to state."""

MAX_CONTACTS = 6
"""Largest number of contacts of which all states are planned unless told which: 64 plans."""


@dataclass(frozen=True, eq=False, repr=False)
class PlanSet(Shown):
    """The plans of the contact states of a robot.

    Attributes:
        tree: the robot.
        sensors: the set of sensors, with its contacts.
        plans: the plan of each state that has one, by the contacts that are closed in it, the most first.
        left_out: why each state that was left out is singular.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion], "contacts": contacts})
        >>> plans = nd.plan_set(nd.autotree(1), sensors, outputs=["tau"])
        >>> plans[()].system.measurement_names
        ('qdd:joint1',)
        >>> plans[["tip"]].system.measurement_names
        ('qdd:joint1', 'fx:link1.mx', 'fx:link1.my', 'fx:link1.mz', 'fx:link1.fx', 'fx:link1.fy', 'fx:link1.fz')
    """

    tree: KinematicTree
    sensors: SensorSet
    plans: Mapping[ContactState, Plan]
    left_out: Mapping[ContactState, str]

    def __repr__(self) -> str:
        states = "; ".join(f"{named_contacts(state)}: {one.cost.total} operations" for state, one in self.plans.items())
        return f"PlanSet('{self.tree.name}' with '{self.sensors.name}', {states})"

    def shown(self) -> Document:
        return plan_set_document(self)

    def __len__(self) -> int:
        return len(self.plans)

    def __getitem__(self, closed: Iterable[str]) -> Plan:
        """Return the plan of the state in which some contacts are closed, named in any order.

        Raises:
            UnknownSensorNameError: there is no such contact.
            UnplannedStateError: the state has no plan.
        """
        state = self.sensors.contact_state(closed)
        if state not in self.plans:
            raise UnplannedStateError(state, self.states)
        return self.plans[state]

    @property
    def contact_names(self) -> tuple[str, ...]:
        """The names of the contacts."""
        return self.sensors.contact_names

    @property
    def states(self) -> PlannedStates:
        """The contact states that have a plan; by state, their plans."""
        return PlannedStates(self.plans)

    def __getattr__(self, name: str) -> Any:
        if name in OF_ONE_STATE:
            states = "; ".join(map(named_contacts, self.plans))
            raise PlanError(f"`{name}` is of one contact state: `states[closed].{name}`. Planned are: {states}.")
        raise AttributeError(f"'PlanSet' has no attribute '{name}'")

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y, the readings of all states, as `SwitchingSolver` takes them."""
        return self._inputs.measurement_names

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight, the weights of all states, as `SwitchingSolver` takes them."""
        return self._inputs.weight_names

    @cached_property
    def _inputs(self) -> SideBySide:
        return SideBySide([one.system for one in self.plans.values()], self.sensors.name)

    def solver(self, backend: str = "auto", check_residual: bool = True, wait: bool = True) -> SwitchingSolver:
        """Return a solver that switches between the states; each is compiled when it is first needed.

        Before a control loop begins, `SwitchingSolver.prepare` compiles all of them, on all cores.

        Args:
            backend: as for `Plan.solver`.
            check_residual: whether `solve` and `solve_batch` check the residual, see `Solver`.
            wait: as for `Plan.solver`, for each state when it is first needed.

        Raises:
            InputError: not to wait for a backend that is not "auto".
            BackendError: there is no such backend.
            MissingExtraError: the backend needs an extra that is not installed.
        """
        name = self.sensors.name
        return SwitchingSolver(self.plans, self.contact_names, backend, check_residual, progress_bar, name, wait)

    def export(self, folder: str | Path, lang: str = "c", name: str | None = None, monitor: bool = False) -> CExport:
        """Write the plans of all states as source code that stands alone: all files, or none.

        There is one function, which is told which contacts are closed, and one set of inputs and outputs, in the order
        of `measurement_names` and `weight_names`.

        Args:
            folder: as for `Plan.export`.
            lang: as for `Plan.export`.
            name: as for `Plan.export`.
            monitor: a monitor is of one contact state: it is refused.

        Raises:
            UnknownNameError: there is no such language.
            IdentifierError: the name is not an identifier of C, or one that is taken.
            PlanError: there are more contacts than exported code has room for; a monitor is asked for.
            FileFormatError: the folder cannot be written, or holds other files.
        """
        if monitor:
            raise PlanError("a plan set has no monitor. Export the plan of one contact state with its monitor.")
        return export(folder, lang, lambda: c_set_export(self.plans, self.contact_names, self.sensors.name, name))

    def save(self, path: str | Path) -> None:
        """Write the plans to one file: data only, with the model and sensors in it, whole or not at all.

        Raises:
            FileFormatError: the file cannot be written.
        """
        write_bytes(path, plan_set_to_text(self.plans, self.sensors, self.left_out).encode())

    @staticmethod
    def load(path: str | Path) -> PlanSet:
        """Return the plan set in a file.

        Raises:
            FileFormatError: the file cannot be read.
            PlanError: it is truncated, changed, of another version, or no plan set file.
        """
        text = read_text(path)
        try:
            data = plan_set_from_text(text)
            with progress_bar(f"loading {data.tree.name}") as stage:
                loaded = _restored(data)
                verify(text, _one_by_one(loaded.plans, stage))
                return loaded
        except NoriError as error:
            raise PlanError(f"{path}: {error}") from None


def plan_set(
    tree: KinematicTree,
    sensors: SensorSet | Named,
    outputs: Sequence[str] | None = None,
    states: Iterable[Iterable[str]] | None = None,
    *,
    leave_out_singular: bool = False,
    ordering: str = "auto",
    seed: int = 0,
    effort: int = 0,
    cache: bool = True,
    progress: Watched = None,
) -> PlanSet:
    """Return the plans of the contact states of a robot; each is looked up in the user's cache of plans.

    Args:
        tree: the robot.
        sensors: sensors with contacts, or what `nd.sensors` takes.
        outputs: as for `plan`, the same in every state.
        states: the contact states wanted, each the names of the contacts that are closed in it; all when None.
        leave_out_singular: whether states that have no unique solution at any configuration are left out; an error
            otherwise.
        ordering: as for `plan`.
        seed: as for `plan`.
        effort: as for `plan`, for each state.
        cache: as for `plan`.
        progress: as for `plan`.

    Raises:
        WrongKindError: not a robot, or no sensors.
        PlanError: the sensors have no contacts, or too many to plan all states; no state is wanted, or none is left;
            an unknown ordering or output.
        UnknownSensorNameError: a state has a contact that the sensors do not have.
        SystemShapeError: a state has too few or too many rows; names it.
        SingularSystemError: a state has no unique solution at any configuration; names it.
        MissingExtraError: the ordering needs an extra that is not installed.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion], "contacts": contacts})
        >>> plans = nd.plan_set(nd.autotree(1), sensors, outputs=["tau"])
        >>> plans.states
        (('tip',), ())
    """
    check_tree(tree, "nd.plan_set", "sensors")
    if isinstance(sensors, str | os.PathLike):
        sensors = load_sensors(sensors)
    check_sensors(sensors, "nd.plan_set")
    plans: dict[ContactState, Plan] = {}
    left_out: dict[ContactState, str] = {}
    for state in _wanted(sensors, states):
        try:
            plans[state] = plan_system(
                System(tree, sensors.in_contact(*state)), outputs, ordering, seed, effort, cache, progress
            )
        except (SystemShapeError, SingularSystemError) as error:
            if not leave_out_singular:
                advice = "Name the states that occur in `states`, or leave such out with `leave_out_singular=True`."
                error.args = (f"{error} {advice}",)
                raise
            left_out[state] = str(error)
    if not plans:
        reasons = " ".join(left_out.values())
        raise PlanError(f"sensors '{sensors.name}' have no contact state with a unique solution. {reasons}")
    return PlanSet(tree, sensors, plans, left_out)


def plan_robot(
    tree: KinematicTree,
    sensors: SensorSet | Named,
    outputs: Sequence[str] | None = None,
    states: Iterable[Iterable[str]] | None = None,
    *,
    leave_out_singular: bool = False,
    **options: Any,
) -> Plan | PlanSet:
    """Return the plan of a robot with its sensors, and of all contact states where these have contacts; see `plan`."""
    if isinstance(sensors, str | os.PathLike):
        sensors = load_sensors(sensors)
    if getattr(sensors, "contact_names", ()) or states is not None:
        return plan_set(tree, sensors, outputs, states, leave_out_singular=leave_out_singular, **options)
    return plan_system(System(tree, sensors), outputs, **options)


def load_plans(path: str | Path) -> Planned:
    """Return the plan, or the plan set, in a file.

    Raises:
        FileFormatError: the file cannot be read.
        PlanError: it is truncated, changed, of another version, or holds neither.
    """
    text = read_text(path)
    if text.lstrip().startswith("<"):
        raise PlanError(f"{path}: is a robot, not a plan. Plan it first: nori-dyn plan {path} --sensors SENSORS.")
    return PlanSet.load(path) if is_plan_set(text) else Plan.load(path)


def _wanted(sensors: SensorSet, states: Iterable[Iterable[str]] | None) -> list[ContactState]:
    """Return contact states, each once, those with the most closed contacts first, then in the order of the config."""
    names = sensors.contact_names
    if not names:
        raise PlanError(f"sensors '{sensors.name}' have no contacts: use nori_dyn.plan.")
    if states is None:
        if len(names) > MAX_CONTACTS:
            raise PlanError(
                f"sensors '{sensors.name}' have {len(names)} contacts, and so {2 ** len(names)} contact states. Name "
                "those that occur in `states`."
            )
        states = chain.from_iterable(combinations(names, n) for n in range(len(names) + 1))
    found = {sensors.contact_state(state) for state in states}
    if not found:
        raise PlanError("states is empty: name at least one contact state, or leave it out for all.")
    return sorted(found, key=lambda state: (-len(state), [names.index(name) for name in state]))


def _restored(data: PlanSetData) -> PlanSet:
    tree, sensors = tree_of(data.tree), SensorSet.from_dict(data.sensors)
    plans: dict[ContactState, Plan] = {}
    for one in data.states:
        state = sensors.contact_state(one.contacts)
        system = System(tree, sensors.in_contact(*state))
        if system.fingerprint != one.fingerprint:
            raise PlanError(f"the fingerprint of '{named_contacts(state)}' does not fit the model and sensors in it.")
        plans[state] = plan_of(system, data.outputs, one, data.version)
    left_out = {sensors.contact_state(one.contacts): one.reason for one in data.left_out}
    return PlanSet(tree, sensors, plans, left_out)


def _one_by_one(plans: Mapping[ContactState, Plan], stage: Progress) -> Iterator[Plan]:
    for k, (state, one) in enumerate(plans.items()):
        stage(named_contacts(state), k / len(plans))
        yield one

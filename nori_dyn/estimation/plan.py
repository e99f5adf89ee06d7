"""Plans as users meet them: made or found in the cache, saved, loaded, and turned into solvers.

A plan has states, usually one. Where contacts come and go, each state of them is planned, and has a plan of its own.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import ItemsView, Iterable, Mapping, Sequence, ValuesView
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex, cast, overload

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.descriptions.sensor_configs import load_sensors
from nori_dyn.errors import (
    NoriError,
    NoriWarning,
    OfOneStateError,
    PlanError,
    SingularSystemError,
    SystemShapeError,
    UnplannedStateError,
    WrongKindError,
    named_contacts,
)
from nori_dyn.estimation.plan_files import PlanData, plan_from_text, plan_to_text, tree_of
from nori_dyn.estimation.system import Named, System
from nori_dyn.io.files import read_text, write_bytes
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.diagnosis import is_determined
from nori_dyn.planning.orderings.registry import AUTO
from nori_dyn.planning.orders import ORDERS_SINCE, VERSION, OrderData, looked_up, plan_of, verify
from nori_dyn.planning.outputs import resolve_outputs
from nori_dyn.planning.over_time import SHOWN, without_prior
from nori_dyn.planning.planner import EliminationPlan, Request, make_plan
from nori_dyn.planning.plans_as_needed import PlansAsNeeded
from nori_dyn.solve.solver import Solver
from nori_dyn.system import builder
from nori_dyn.system.given import check_sensors, check_system, check_tree
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables import listed
from nori_dyn.tables.progress import Watched, progress_bar

if TYPE_CHECKING:
    from nori_dyn.export.files import CExport
    from nori_dyn.solve.derivative import EstimateDerivative
    from nori_dyn.solve.monitor import Monitor
    from nori_dyn.solve.switching import SwitchingSolver


class PlanStates(tuple[ContactState, ...]):
    """The contact states that have a plan, the most closed contacts first; by state, their plans.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion], "contacts": contacts})
        >>> states = nd.plan(nd.autotree(1), sensors, outputs=["tau"]).states
        >>> states, states["tip"].cost.total, states[()].cost.total
        ((('tip',), ()), 3, 2)
    """

    plans: Mapping[ContactState, Plan]

    def __new__(cls, plans: Mapping[ContactState, Plan]) -> PlanStates:
        made = super().__new__(cls, plans)
        made.plans = plans
        return made

    def __getitem__(self, key: Any) -> Any:
        """The plan of a state, by the names of the contacts that are closed, in any order; or the k-th state.

        Raises:
            UnplannedStateError: the state has no plan.
        """
        if isinstance(key, SupportsIndex | slice):
            return super().__getitem__(key)
        closed = {key} if isinstance(key, str) else set(key)
        for state in self:
            if set(state) == closed:
                return self.plans[state]
        raise UnplannedStateError(tuple(sorted(closed)), tuple(self))

    @property
    def first(self) -> Plan:
        """The plan of the first state: robot and outputs are those of all."""
        return next(iter(self.plans.values()))

    def values(self) -> ValuesView[Plan]:
        """The plans."""
        return self.plans.values()

    def items(self) -> ItemsView[ContactState, Plan]:
        """The states with their plans."""
        return self.plans.items()


@dataclass(frozen=True, eq=False, repr=False)
class Plan(EliminationPlan):
    """A plan: see `EliminationPlan` for what it holds of a state; where contacts come and go it has several.

    Then `states[closed]` is the plan of one, and has what differs from state to state, such as cost and permutations.

    Example:
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau", "f:link2"])
        >>> [output.name for output in plan.outputs]
        ['tau', 'f:link2']
        >>> len(plan.row_permutation)
        40
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion], "contacts": contacts})
        >>> nd.plan(nd.autotree(1), sensors, outputs=["tau"]).states[()].system.measurement_names
        ('qdd:joint1',)
    """

    system: System

    @staticmethod
    def of_states(
        tree: KinematicTree,
        sensors: SensorSet,
        plans: Mapping[ContactState, Plan],
        left_out: Mapping[ContactState, str],
    ) -> Plan:
        """The plan of several contact states: it has their plans, and nothing that is of one of them alone."""
        whole, plans = object.__new__(Plan), PlansAsNeeded.of(plans)
        is_over_time = any(one.is_over_time for one in plans.made.values())  # one that waits is determined at once
        vars(whole).update(tree=tree, sensors=sensors, _plans=plans, left_out=left_out, is_over_time=is_over_time)
        return whole

    def _check_one_state(self, what: str) -> None:
        if "_plans" in vars(self):
            raise OfOneStateError(what, self.states)

    if not TYPE_CHECKING:  # a type checker would take any name

        def __getattr__(self, name: str) -> Any:
            if "_plans" in vars(self) and (hasattr(Plan, name) or name in OF_A_STATE):
                raise OfOneStateError(name, self.states)
            raise AttributeError(f"'Plan' has no attribute '{name}'")

    def __repr__(self) -> str:
        if not self.contact_names:
            return super().__repr__()
        made = vars(self)["_plans"].made
        each = {
            state: f"{made[state].cost.total} operations" if state in made else "planned when needed"
            for state in self.states
        }
        states = "; ".join(f"{named_contacts(state)}: {what}" for state, what in each.items())
        return f"Plan('{self.tree.name}' with '{self.sensors.name}', {states})"

    def __len__(self) -> int:
        return len(self.states)

    def __getitem__(self, closed: Iterable[str]) -> Plan:
        """The plan of the state in which some contacts are closed, named in any order.

        Raises:
            UnknownSensorNameError: there is no such contact.
            UnplannedStateError: the state has no plan.
        """
        found: Plan = self.states[self.sensors.contact_state(closed)]
        return found

    @property
    def states(self) -> PlanStates:
        """The contact states that have a plan; by state, their plans. Usually one, of no contacts: this plan."""
        return PlanStates(vars(self).get("_plans", {(): self}))

    @property
    def plans(self) -> Mapping[ContactState, Plan]:
        """The plan of each state that has one, by the contacts that are closed in it, the most first."""
        return self.states.plans

    @property
    def systems(self) -> Mapping[ContactState, builder.System]:
        """The system of each state that has a plan, whether this is made yet or not."""
        return vars(self)["_plans"].systems if "_plans" in vars(self) else {(): self.system}

    @cached_property
    def tree(self) -> KinematicTree:
        """The robot."""
        return self.system.tree

    @cached_property
    def sensors(self) -> Any:
        """The sensors, with their contacts."""
        return self.system.sensors

    @cached_property
    def left_out(self) -> Mapping[ContactState, str]:
        """Why each contact state that was left out is singular."""
        return {}

    @property
    def contact_names(self) -> tuple[str, ...]:
        """The names of the contacts; none where there is one state, in which they are settled."""
        return self.sensors.contact_names if "_plans" in vars(self) else ()

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y, the readings of all states, as its solver takes them."""
        return self._inputs.measurement_names

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight, the weights of all states, as its solver takes them."""
        return self._inputs.weight_names

    @cached_property
    def _inputs(self) -> SideBySide:
        return SideBySide(list(self.systems.values()), self.sensors.name)

    def solver(self, backend: str = "auto", check_residual: bool = True, wait: bool = True) -> Solver | SwitchingSolver:
        """A solver that runs the plan.

        Of several contact states it is one that switches between them. Each is planned and compiled when it is first
        needed; before a control loop begins, `SwitchingSolver.prepare` does so for all of them, on all cores.

        Args:
            backend: "native", "numpy", "umfpack", or "auto" for the fastest that can run here.
            check_residual: whether `solve` and `solve_batch` check the residual, see `Solver`.
            wait: whether to wait for the compiler. If not, the plan runs through NumPy until it is compiled, which is
                slower, and natively from then on; `Solver.backend` tells.

        Raises:
            PlanError: one instant does not determine what the plan is for: it is for filters only.
            InputError: not to wait for a backend that is not "auto".
            BackendError: there is no such backend.
            MissingExtraError: the backend needs an extra that is not installed.

        Example:
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"))
            >>> plan.solver(backend="numpy").backend
            'numpy'
        """
        if not self.contact_names:
            return Solver(self, backend, check_residual, progress_bar, wait)
        from nori_dyn.solve.switching import SwitchingSolver  # which few plans need

        name = self.sensors.name
        return SwitchingSolver(self.plans, self.contact_names, backend, check_residual, progress_bar, name, wait)

    def monitor(self, backend: str = "auto") -> Monitor:
        """Monitor of estimates and readings: deviations, residuals, tests, faults; see `Monitor`.

        Args:
            backend: as for `solver`.

        Raises:
            PlanError: no row is weighed, or the equations of motion are.
            BackendError: there is no such backend.
        """
        from nori_dyn.solve.monitor import Monitor  # and with it statistics, which few plans need

        self._check_one_state("monitor")
        return Monitor(self, backend, progress_bar)

    def derivative(self, *wrt: str, outputs: Sequence[str] | None = None, backend: str = "auto") -> EstimateDerivative:
        """The derivatives of estimates by what they are computed from, as a compiled function.

        It is called as a solver is, with q, qd, y, and weights where sensors have some, and returns a named tuple:
        "tau" by "q" is `dtau_dq` (nv, nv), "a" by "y" is `da_dy` (n_links, 6, ny), "fx:l_sole" by "qd" is
        `dfx_l_sole_dqd` (6, nv). Derivatives by q are along the freedoms, whose directions are those of qd (nv). It has
        `inputs`, `tick`, `outputs` and `batch`, as functions of `nd.compile` have them.

        Args:
            wrt: by what: "q", "qd", "y", "weights" (1 / sigma^2), one or more.
            outputs: names of outputs, whether the plan computes them or not; those of the plan when None.
            backend: "native", "numpy", or "auto" for the faster that can run here.

        Raises:
            InputError: by nothing.
            UnknownNameError: an input that there is not.
            UnknownOutputError, PlanError: an output that there is not, or that the sensors do not determine.
            BackendError: there is no such backend.

        Example:
            >>> plan = nd.plan(nd.System(nd.autotree(2), "forward_dynamics"), outputs=["qdd"])
            >>> by = plan.derivative("q", "y")
            >>> found = by(np.ones(2), np.zeros(2), np.ones(2))
            >>> print(np.round(found.dqdd_dq, 2))
            [[ 0.    1.57]
             [ 0.   -3.74]]
        """
        from nori_dyn.solve.derivative import EstimateDerivative

        self._check_one_state("derivative")
        return EstimateDerivative(self, wrt, outputs, backend, progress_bar)

    def export(self, folder: str | Path, lang: str = "c", name: str | None = None, monitor: bool = False) -> CExport:
        """Write the plan as source code that stands alone, for a controller in C or C++: all files, or none.

        Of several contact states it is one function, which is given which contacts are closed, with the inputs and
        outputs of all, in the order of `measurement_names` and `weight_names`.

        Args:
            folder: where to; made when it does not exist.
            lang: the language: "c".
            name: what to call the files, functions and types; from the robot's name when left out.
            monitor: whether to write what judges estimates and readings as well, see `Plan.monitor`.

        Raises:
            UnknownNameError: there is no such language.
            IdentifierError: the name is not an identifier of C, or one that is taken.
            PlanError: a monitor is asked for, and there are contacts, no row is weighed, or the equations of motion
                are; there are more contacts than exported code has room for.
            FileFormatError: the folder cannot be written, or holds other files.

        Example:
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
            >>> exported = plan.export("arm_c", name="arm")
            >>> sorted(exported.files)[:5], exported.inputs
            (['CMakeLists.txt', 'arm.c', 'arm.h', 'arm.hpp', 'main.c'], {'q': 2, 'qd': 2, 'y': 2})
        """
        from nori_dyn.export.files import c_export
        from nori_dyn.export.folder import export  # which few plans need

        return export(folder, lang, lambda: c_export(self.plans, name, self.contact_names, self.sensors.name, monitor))

    def save(self, path: str | Path) -> None:
        """Write the plan to a file: data only, with the model and sensors in it, whole or not at all.

        Raises:
            FileFormatError: the file cannot be written.
            PlanError: its sensors are not a SensorSet, so they cannot be written as data.

        Example:
            >>> nd.plan(nd.System(nd.autotree(2), "inverse_dynamics")).save("arm.plan")
            >>> nd.Plan.load("arm.plan").system
            System('autotree(2, 1, 0, 1)' with 'inverse_dynamics', 40 rows, 40 variables)
        """
        write_bytes(path, self.content())

    def content(self) -> bytes:
        """Bytes that `save` writes.

        Raises:
            PlanError: its sensors are not a SensorSet, so they cannot be written as data.
        """
        return plan_to_text(self.plans, self.sensors, self.left_out).encode()

    @staticmethod
    def load(path: str | Path, system: System | None = None) -> Plan:
        """The plan in a file.

        One of an earlier version whose orders no longer fit is planned anew, with the seed in it, and a warning.

        Args:
            path: the file.
            system: the system that it should be for; without one, the model and sensors in the file are used.

        Raises:
            FileFormatError: the file cannot be read.
            PlanError: it is truncated, changed, of another version, for another system, or no plan file.
        """
        text, content = plan_content(path)
        try:
            return _restored(content, system, text, path)
        except NoriError as error:
            raise PlanError(f"{path}: {error}") from None


def plan_content(path: str | Path) -> tuple[str, PlanData]:
    """The text of a plan's file, and its content, checked.

    Raises:
        FileFormatError: the file cannot be read.
        PlanError: it is truncated, changed, of another version, or no plan file.
    """
    text = read_text(path)
    if text.lstrip().startswith("<"):
        raise PlanError(f"{path}: is a robot, not a plan. Plan it first: nori-dyn plan {path} --sensors SENSORS.")
    try:
        return text, plan_from_text(text)
    except PlanError as error:
        raise PlanError(f"{path}: {error}") from None


OF_A_STATE = {one.name for one in fields(EliminationPlan)}
"""What a plan holds that differs from state to state."""

PlanSet = Plan
"""The plan of several contact states is a plan as others are."""


@overload
def plan(
    system: System,
    outputs: Sequence[str] | None = None,
    ordering: str = "auto",
    seed: int = 0,
    effort: int = 0,
    cache: bool = True,
    progress: Watched = None,
) -> Plan: ...


@overload
def plan(system: KinematicTree, sensors: SensorSet | Named, *given: Any, **options: Any) -> Plan: ...


def plan(system: System | KinematicTree, *given: Any, **options: Any) -> Plan:
    """The plan of a square system; planning the same system again is a look-up in the user's cache.

        nd.plan(system, outputs)
        nd.plan(tree, sensors, outputs)

    Of a robot and sensors with contacts the plan is of all contact states, or of those that `states` names: of the
    first at once, and of another when it is first needed, if there is no doubt that it has a unique solution. What
    persists, and of which nothing is known at first, need not be determined by one instant: where time tells it, the
    plan is for filters only, `Plan.is_over_time`.

    Args:
        system: the system, of a robot and its sensors; or a robot, after which its sensors come.
        given: what follows, in this order.
        options: what follows, by name. `outputs`: names of the outputs wanted: kinds ("tau", "qdd", "a", "f", "fx") or
            single ones ("fx:l_sole"); None for all. `ordering`: "auto" for the cheapest stable order of the refined
            system; or "umfpack", "superlu", "recursive", "markowitz" for D itself in the P and Q of that ordering,
            which takes more operations. Of a weighted system a name is for the P and Q by which the backend "umfpack"
            factorises: the program is that of the recursions. `seed`: of the sampled configurations and of the search.
            `effort`: how much further to search with "auto", in entries that eliminations update. It is no time, so
            that every machine makes the same plan; a million takes about half a minute. `cache`: whether to look up,
            and store, the plan. `progress`: True to show it, or what receives its stages, see
            `nori_dyn.tables.progress`; on a terminal when None. Of a robot and sensors with contacts also `states`: the
            contact states wanted, each the names of the contacts that are closed in it; and `leave_out_singular`:
            whether states that have no unique solution at any configuration are left out, which are an error otherwise.

    Raises:
        WrongKindError: not a system, nor a robot with sensors.
        SystemShapeError: too few or too many rows.
        SingularSystemError: no unique solution at any configuration; nor over time, where something persists.
        SensorConfigError: a sensor whose rows do not fit.
        PlanError: an unknown ordering or output, a seed below zero; an effort that is no whole number, or with an
            ordering by name.
        MissingExtraError: the ordering needs an extra that is not installed.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion], "contacts": contacts})
        >>> nd.plan(nd.autotree(1), sensors, outputs=["tau"]).states
        (('tip',), ())
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
        >>> solver = plan.solver()
        >>> print(np.round(solver.solve(np.zeros(2), np.zeros(2), np.ones(2)).tau, 2))
        [3.5  1.17]
        >>> nd.plan(nd.autotree(2), "forward_dynamics", ["qdd"]).cost.total
        24
    """
    first = given[0] if given else None
    is_of_robot = isinstance(system, KinematicTree) and bool(given or options)
    if is_of_robot or isinstance(first, SensorSet | KinematicTree):
        return plan_set(cast(KinematicTree, system), *given, **options)
    check_system(system, "nd.plan")
    return plan_system(cast(System, system), *given, **options)


@collector_at_rest()
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
) -> Plan:
    """Plan a robot with its sensors: all contact states, where these have contacts; see `plan`."""
    check_tree(tree, "nd.plan", "sensors")
    if isinstance(sensors, str | os.PathLike):
        sensors = load_sensors(sensors)
    check_sensors(sensors, "nd.plan")
    sensors = cast(SensorSet, _with_centroidal(sensors, outputs))
    if isinstance(sensors, SensorSet):
        sensors = sensors.touching(tree)
    if not getattr(sensors, "contact_names", ()) and states is None:
        return plan_system(System(tree, sensors), outputs, ordering, seed, effort, cache, progress)
    plans = PlansAsNeeded[Plan](
        lambda system, like: plan_system(cast(System, system), outputs, ordering, seed, effort, cache, progress, like),
        lambda system: Request.of(system, outputs, seed),
    )
    left_out: dict[ContactState, str] = {}
    for state in sensors.contact_states(states):
        try:
            system = System(tree, sensors.in_contact(*state))
            resolve_outputs(system, outputs)
            plans.add(state, system)
            if not plans.made or ordering != AUTO or not is_determined(system, seed):
                _ = plans[state]
        except (SystemShapeError, SingularSystemError) as error:
            if not leave_out_singular:
                advice = "Name the states that occur in `states`, or leave such out with `leave_out_singular=True`."
                error.args = (f"{error} {advice}",)
                raise
            plans.leave_out(state)
            left_out[state] = str(error)
    if not plans:
        why, *others = left_out.values()
        more = f" Nor has any of the {len(others)} others." if others else ""
        raise PlanError(f"sensors '{sensors.name}' have no contact state with a unique solution. {why}{more}")
    return Plan.of_states(tree, sensors, plans, left_out)


def check_plan(plan: object, call: str) -> None:
    """Check that something is a plan.

    Args:
        plan: what was given.
        call: what it was given to.

    Raises:
        WrongKindError: it is none.
    """
    if not isinstance(plan, Plan):
        advice = "give nd.plan(system) itself; what is made of a plan takes the samples of nd.estimate(log, plan)"
        raise WrongKindError(call, "a plan", plan, advice)


def _with_centroidal(sensors: Any, outputs: Sequence[str] | None) -> Any:
    """The sensors with the centroidal quantities among the outputs, which are variables that they bring along."""
    names = [outputs] if isinstance(outputs, str) else [name for name in outputs or () if isinstance(name, str)]
    return sensors.with_centroidal(names) if isinstance(sensors, SensorSet) else sensors


def plan_system(
    system: System,
    outputs: Sequence[str] | None = None,
    ordering: str = "auto",
    seed: int = 0,
    effort: int = 0,
    cache: bool = True,
    progress: Watched = None,
    like: Plan | None = None,
) -> Plan:
    """The plan of a system, see `plan`; in the orders of one that corresponds, see `make_plan`."""
    if seed < 0:
        raise PlanError(f"the seed is {seed}: it must be zero or larger.")
    if not isinstance(effort, int) or effort < 0:
        raise PlanError(
            f"the effort is {effort!r}: it must be a whole number, of entries that the search may update. A million "
            "takes about half a minute."
        )
    sensors = _with_centroidal(system.sensors, outputs)
    if sensors is not system.sensors:
        system = System(system.tree, sensors, system.of_components.repeats)
    settings = system, outputs, ordering, seed, effort

    def make() -> Plan:
        with progress_bar(f"planning {system.tree.name} with {system.sensors.name}", progress) as stage:
            made = make_plan(*settings, stage, Plan, like)
            if made.is_over_time:
                stage("what is learned over time")
                _check_over_time(made)
        return made

    if not cache or not isinstance(system.sensors, SensorSet):  # others may change under one fingerprint
        return make()
    return looked_up(make, *settings, Plan, like)


def _check_over_time(made: Plan) -> None:
    """Check that a filter can run a plan that no solver can, and that what it learns determines everything.

    Raises:
        PlanError: a filter needs other sensors.
        SingularSystemError: something is never determined; names it.
    """
    from nori_dyn.filtering.free_coordinates import (
        free_columns,  # and with them filters and ranks, which few plans need
    )
    from nori_dyn.observe.learned import never_determined

    system = made.system
    free_columns(system)
    open_ = never_determined(system, made.seed)
    if open_:
        names = [one.variable.name for one in without_prior(system)]
        raise SingularSystemError(
            f"sensors '{system.sensors.name}' on robot '{system.tree.name}': nothing is known at first of "
            f"{listed(names, SHOWN)}, and the sensors do not tell it over time, either. Never determined: "
            f"{listed(open_, SHOWN)}. Give what is in `memory` a `sigma`, or add sensors that see it: nd.observability "
            "says which.",
            open_,
        )


def _restored(data: PlanData, system: System | None, text: str, path: str | Path) -> Plan:
    """The plan in a file; see `Plan.load`."""
    tree, sensors = tree_of(data.tree), SensorSet.from_dict(data.sensors)
    systems: dict[ContactState, System] = {}
    orders: dict[ContactState, OrderData] = {}
    for one in data.states:
        state = sensors.contact_state(one.contacts)
        systems[state] = System(tree, sensors.in_contact(*state)) if system is None else system
        orders[state] = one
        if systems[state].fingerprint == one.fingerprint:
            continue
        if system is not None:
            raise PlanError(
                f"it belongs to another system: robot '{tree.name}' with sensors '{sensors.name}', not {system!r} (or "
                "the model or sensors have changed since). Plan again."
            )
        what = f"fingerprint of '{named_contacts(state)}'" if sensors.contacts else "fingerprint"
        raise PlanError(f"the {what} does not fit the model and sensors in it.")
    try:
        if data.version < ORDERS_SINCE:
            raise PlanError("its orders are of frames that are no longer used.")
        plans = {state: plan_of(systems[state], data.outputs, one, Plan) for state, one in orders.items()}
        with progress_bar(f"loading {tree.name}") as stage:
            verify(text, plans, stage)
    except PlanError:
        if data.version == VERSION:
            raise
        what = "the orders in it are of an earlier version and no longer fit. It is planned anew: save it again."
        warnings.warn(f"{path}: {what}", NoriWarning, stacklevel=3)
        plans = {state: plan_system(systems[state], data.outputs, seed=one.seed) for state, one in orders.items()}
    if not sensors.contacts:
        return plans[()]
    left_out = {sensors.contact_state(one.contacts): one.reason for one in data.left_out}
    return Plan.of_states(tree, sensors, plans, left_out)

"""Plans as users meet them: made or found in the cache, saved, loaded, and turned into solvers."""

from __future__ import annotations

import hashlib
import json
import warnings
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast, overload

import numpy as np

from nori_dyn.api.planned import PlannedStates
from nori_dyn.api.system import Named, System
from nori_dyn.api.verification import verify
from nori_dyn.errors import NoriError, NoriWarning, PlanError, SingularSystemError
from nori_dyn.io.files import read_text, write_bytes
from nori_dyn.io.plan_files import (
    OLDER,
    VERSION,
    OrderData,
    PlanData,
    order_from_text,
    order_to_text,
    permutation_of,
    plan_from_text,
    plan_to_text,
    system_of,
    tree_of,
    tried_orderings,
)
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.identity import planner_identity
from nori_dyn.planning.orderings.registry import orderings_named
from nori_dyn.planning.outputs import determined_outputs
from nori_dyn.planning.over_time import SHOWN, unknown_at_first
from nori_dyn.planning.planner import EliminationPlan, make_plan
from nori_dyn.program.cache_files import cache_root, read_entry, write_entry
from nori_dyn.solve.solver import Solver
from nori_dyn.system.equation import Sensors
from nori_dyn.system.given import check_system
from nori_dyn.tables import listed
from nori_dyn.tables.progress import Watched, progress_bar

if TYPE_CHECKING:
    from nori_dyn.api.plan_set import PlanSet
    from nori_dyn.program.export.files import CExport
    from nori_dyn.solve.derivative import EstimateDerivative
    from nori_dyn.solve.monitor import Monitor


@dataclass(frozen=True, eq=False, repr=False)
class Plan(EliminationPlan):
    """A plan: see `EliminationPlan` for what it holds.

    Example:
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau", "f:link2"])
        >>> [output.name for output in plan.outputs]
        ['tau', 'f:link2']
        >>> len(plan.row_permutation)
        40
    """

    system: System

    @property
    def states(self) -> PlannedStates:
        """The contact states that have a plan: one, of no contacts, which is this plan's."""
        return PlannedStates({(): self})

    @property
    def tree(self) -> KinematicTree:
        """The robot."""
        return self.system.tree

    @property
    def sensors(self) -> Sensors:
        """The sensors."""
        return self.system.sensors

    @property
    def contact_names(self) -> tuple[str, ...]:
        """No contacts: those of `system` are settled."""
        return ()

    @property
    def measurement_names(self) -> tuple[str, ...]:
        """The name of each number of y."""
        return self.system.measurement_names

    @property
    def left_out(self) -> Mapping[ContactState, str]:
        """No state is left out."""
        return {}

    @property
    def weight_names(self) -> tuple[str, ...]:
        """The name of each weight."""
        return self.system.weight_names

    def solver(self, backend: str = "auto", check_residual: bool = True, wait: bool = True) -> Solver:
        """Return a solver that runs the plan.

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
        return Solver(self, backend, check_residual, progress_bar, wait)

    def monitor(self, backend: str = "auto") -> Monitor:
        """Return what judges estimates and readings: deviations, residuals, tests, faults; see `Monitor`.

        Args:
            backend: as for `solver`.

        Raises:
            PlanError: no row is weighed, or the equations of motion are.
            BackendError: there is no such backend.
        """
        from nori_dyn.solve.monitor import Monitor  # and with it statistics, which few plans need

        return Monitor(self, backend, progress_bar)

    def derivative(self, *wrt: str, outputs: Sequence[str] | None = None, backend: str = "auto") -> EstimateDerivative:
        """Return the derivatives of estimates by what they are computed from, as a compiled function.

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

        return EstimateDerivative(self, wrt, outputs, backend, progress_bar)

    def export(self, folder: str | Path, lang: str = "c", name: str | None = None, monitor: bool = False) -> CExport:
        """Write the plan as source code that stands alone, for a controller in C or C++: all files, or none.

        Args:
            folder: where to; made when it does not exist.
            lang: the language: "c".
            name: what to call the files, functions and types; from the robot's name when left out.
            monitor: whether to write what judges estimates and readings as well, see `Plan.monitor`.

        Raises:
            UnknownNameError: there is no such language.
            IdentifierError: the name is not an identifier of C, or one that is taken.
            PlanError: a monitor is asked for, and no row is weighed, or the equations of motion are.
            FileFormatError: the folder cannot be written, or holds other files.

        Example:
            >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
            >>> exported = plan.export("arm_c", name="arm")
            >>> sorted(exported.files)[:5], exported.inputs
            (['CMakeLists.txt', 'arm.c', 'arm.h', 'arm.hpp', 'main.c'], {'q': 2, 'qd': 2, 'y': 2})
        """
        from nori_dyn.io.export import export  # which few plans need
        from nori_dyn.program.export.files import c_export

        return export(folder, lang, lambda: c_export(self, name, monitor))

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
        """Return what `save` writes.

        Raises:
            PlanError: its sensors are not a SensorSet, so they cannot be written as data.
        """
        return plan_to_text(self, [output.name for output in self.outputs]).encode()

    @staticmethod
    def load(path: str | Path, system: System | None = None) -> Plan:
        """Return the plan in a file; one of an older version is planned anew, with the seed in it.

        Args:
            path: the file.
            system: the system that it should be for; without one, the model and sensors in the file are used.

        Raises:
            FileFormatError: the file cannot be read.
            PlanError: it is truncated, changed, of another version, for another system, or no plan file.
        """
        text = read_text(path)
        try:
            loaded = _restored(plan_from_text(text), system)
            verify(text, [loaded])
            return loaded
        except NoriError as error:
            raise PlanError(f"{path}: {error}") from None


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
def plan(
    system: KinematicTree,
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
) -> Plan | PlanSet: ...


def plan(system: System | KinematicTree, *given: Any, **options: Any) -> Plan | PlanSet:
    """Return the plan of a square system; planning the same system again is a look-up in the user's cache.

        nd.plan(system, outputs)
        nd.plan(tree, sensors, outputs)

    Of a robot and sensors with contacts it is that of all contact states, as `nd.plan_set` returns it, and takes the
    same options. What persists, and of which nothing is known at first, need not be determined by one instant: where
    time tells it, the plan is for filters only, `Plan.is_over_time`.

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
            and store, the plan. `progress`: True to show it, or what is told of it, see `nori_dyn.tables.progress`; on
            a terminal when None.

    Raises:
        WrongKindError: not a system.
        SystemShapeError: too few or too many rows.
        SingularSystemError: no unique solution at any configuration; nor over time, where something persists.
        SensorConfigError: a sensor whose rows do not fit.
        PlanError: an unknown ordering or output, a seed below zero; an effort that is no whole number, or with an
            ordering by name.
        MissingExtraError: the ordering needs an extra that is not installed.

    Example:
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
        >>> solver = plan.solver()
        >>> print(np.round(solver.solve(np.zeros(2), np.zeros(2), np.ones(2)).tau, 2))
        [3.5  1.17]
        >>> nd.plan(nd.autotree(2), "forward_dynamics", ["qdd"]).cost.total
        24
    """
    if isinstance(system, KinematicTree) and (given or options):
        from nori_dyn.api.plan_set import plan_robot  # which plans states by this

        return plan_robot(system, *given, **options)
    check_system(system, "nd.plan")
    return plan_system(cast(System, system), *given, **options)


def plan_system(
    system: System,
    outputs: Sequence[str] | None = None,
    ordering: str = "auto",
    seed: int = 0,
    effort: int = 0,
    cache: bool = True,
    progress: Watched = None,
) -> Plan:
    """Return the plan of a system, see `plan`."""
    if seed < 0:
        raise PlanError(f"the seed is {seed}: it must be zero or larger.")
    if not isinstance(effort, int) or effort < 0:
        raise PlanError(
            f"the effort is {effort!r}: it must be a whole number, of entries that the search may update. A million "
            "takes about half a minute."
        )
    entry = _cache_entry(system, outputs, ordering, seed, effort) if cache else None
    found = None if entry is None else read_entry(entry)
    if found is not None:
        with suppress(NoriError):  # a damaged entry is made anew
            return plan_of(system, outputs, order_from_text(found), VERSION)
    with progress_bar(f"planning {system.tree.name} with {system.sensors.name}", progress) as stage:
        made = make_plan(system, outputs, ordering, seed, effort, stage, Plan)
        if made.is_over_time:
            stage("what is learned over time")
            _check_over_time(made)
    if entry is not None and isinstance(system.sensors, SensorSet):  # others may change under one fingerprint
        try:
            entry.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            write_entry(entry, order_to_text(made).encode())
        except OSError as error:
            warnings.warn(f"the plan is not cached: {error}", NoriWarning, stacklevel=2)
    return made


def _check_over_time(made: Plan) -> None:
    """Check that a filter can run a plan that no solver can, and that what it learns determines everything.

    Raises:
        PlanError: a filter needs other sensors.
        SingularSystemError: something is never determined; names it.
    """
    from nori_dyn.filtering.free import free_columns  # and with them filters and ranks, which few plans need
    from nori_dyn.observe.learned import never_determined

    system = made.system
    free_columns(system)
    open_ = never_determined(system, made.seed)
    if open_:
        names = [one.variable.name for one in unknown_at_first(system)]
        raise SingularSystemError(
            f"sensors '{system.sensors.name}' on robot '{system.tree.name}': nothing is known at first of "
            f"{listed(names, SHOWN)}, and the sensors do not tell it over time, either. Never determined: "
            f"{listed(open_, SHOWN)}. Give what is in `memory` a `sigma`, or add sensors that see it: nd.observability "
            "says which.",
            open_,
        )


def cache_folder() -> Path:
    """Return the folder of cached plans."""
    return cache_root() / "plans"


def _cache_entry(system: System, outputs: Sequence[str] | None, ordering: str, seed: int, effort: int) -> Path:
    names = None if outputs is None else list(outputs)
    of_code = [VERSION, planner_identity(), orderings_named(ordering)]
    key = [*of_code, system.fingerprint, names, ordering, seed, effort]
    return cache_folder() / f"{hashlib.sha256(json.dumps(key).encode()).hexdigest()[:32]}.json"


def _restored(data: PlanData, system: System | None) -> Plan:
    if system is None:
        system = System(tree_of(data.tree), SensorSet.from_dict(data.sensors))
        if system.fingerprint != data.fingerprint:
            raise PlanError("its fingerprint does not fit the model and sensors in it.")
    elif system.fingerprint != data.fingerprint:
        raise PlanError(
            f"it belongs to another system: robot '{data.tree.name}' with sensors '{data.sensors.get('name')}', "
            f"not {system!r} (or the model or sensors have changed since). Plan again."
        )
    return plan_of(system, data.outputs, data, data.version)


def plan_of(system: System, outputs: Sequence[str] | None, data: OrderData, version: int) -> Plan:
    """Return the plan of a system from the data of its order, in a file of some version.

    Raises:
        PlanError: an output that the system does not have, or no permutations.
    """
    if version in OLDER:
        return make_plan(system, outputs, seed=data.seed, kind=Plan)
    system = system_of(system, data)
    if data.regrouped is None and system.is_weighted:
        raise PlanError("it eliminates D itself, and its system is one of least squares.")
    n = None if system.is_weighted else system.shape[1]  # what is eliminated there is larger: see `verify`
    return Plan(
        system=system,
        outputs=determined_outputs(system, outputs, np.array(data.undetermined, dtype=np.intp)),
        ordering=data.ordering,
        row_permutation=permutation_of(data.row_permutation, n, "row permutation"),
        column_permutation=permutation_of(data.column_permutation, n, "column permutation"),
        program_rows=permutation_of(data.program_rows, None, "program's row permutation"),
        program_columns=permutation_of(data.program_columns, None, "program's column permutation"),
        regrouped=data.regrouped,
        tried=tried_orderings(data),
        seed=data.seed,
        undetermined=np.array(data.undetermined, dtype=np.intp),
        is_over_time=data.is_over_time,
    )

"""A log run through a plan, or through the plans of all contact states."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nori_dyn.api.plan import Plan
from nori_dyn.api.plan_set import PlanSet
from nori_dyn.errors import InputError, NoriError
from nori_dyn.io.differentiation import Differentiation
from nori_dyn.io.log_readings import own_readings
from nori_dyn.io.logs import Log, read_log
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.plausibility.doubt import Doubt
from nori_dyn.solve.plausibility.doubts import doubts_of_motion, doubts_of_readings
from nori_dyn.solve.solver import Singular
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing, unusable
from nori_dyn.tables.progress import progress_bar
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class LogRun:
    """What came of a log.

    Attributes:
        log: the log.
        estimate: of all its samples.
        diagnosis: what a monitor says of them, where it was asked.
        system: the system that was solved; of a plan set that of its first state.
        preparing: time to compile [s], or to load what was compiled before.
        seconds: time to solve all samples [s].
        dropped: in how many samples a sensor was dropped, by its name, where it was at all.
        doubts: what is not likely about the log.
    """

    log: Log
    estimate: Estimate
    diagnosis: Diagnosis | None
    system: System
    preparing: float
    seconds: float
    dropped: dict[str, int]
    doubts: tuple[Doubt, ...]

    def times(self, dt: float | None) -> Floats | None:
        """Return the times of the samples (N,) [s]: those of the log, or what samples dt apart have."""
        return dt * np.arange(len(self.log.q), dtype=float) if self.log.t is None and dt is not None else self.log.t

    @property
    def largest_residual(self) -> float | None:
        """The largest relative residual of a sample; None where it was not computed."""
        residual = np.asarray(self.estimate.residual)
        return None if np.isnan(residual).all() else float(np.nanmax(residual))


def run_log(
    plans: Plan | PlanSet,
    path: str | Path,
    differentiation: Differentiation | None = None,
    dt: float | None = None,
    missing: Missing = "refuse",
    singular: Singular = "refuse",
    monitor: bool = False,
    backend: str = "auto",
    closed: ContactState | None = None,
) -> LogRun:
    """Return what a plan, or a plan set, estimates from a log.

    Args:
        plans: the plan, or the plans of contact states.
        path: the log.
        differentiation: see `read_log`.
        dt: time between samples [s], to compare q with qd; that of the log's column of times when None.
        missing: as for `Solver.solve_batch`.
        singular: likewise.
        monitor: whether estimates and readings are judged as well.
        backend: as for `Plan.solver`.
        closed: for a plan set, the contacts that are closed throughout; None takes them from columns of the log.

    Raises:
        InputError: contacts or a monitor where there are none; and as `read_log` and `Solver.solve_batch`.
        SingularSystemError: as `Solver.solve_batch`.
        UnknownSensorNameError: there is no such contact.
        BackendError: there is no such backend.
    """
    systems: dict[ContactState, System]
    names: tuple[str, ...]
    state: ContactState | None
    if isinstance(plans, Plan):
        if closed is not None:
            raise InputError("contacts can be chosen for a plan set; this plan is for one contact state.")
        systems, names, state = {(): plans.system}, (), None
    else:
        if monitor:
            raise InputError("a monitor is for one contact state: plan that one, with --contacts.")
        systems = {each: one.system for each, one in plans.plans.items()}
        names = plans.contact_names
        state = None if closed is None else plans.sensors.contact_state(closed)
    log = read_log(path, systems, differentiation, missing, names, state)
    with progress_bar(f"solving {len(log.q):,} samples") as stage:
        stage("compiling")
        start = time.perf_counter()
        judge = plans.monitor(backend) if monitor and isinstance(plans, Plan) else None
        solver = plans.solver(backend) if judge is None else judge.solver
        run: Callable[..., Estimate | Diagnosis] = solver.solve_batch if judge is None else judge.check_batch
        with suppress(NoriError):  # of the first sample: the whole log meets it again
            run(*log.states(1), missing=missing, singular="nan")
        preparing = time.perf_counter() - start
        stage("running")
        start = time.perf_counter()
        found = run(*log.states(), missing=missing, singular=singular)
        seconds = time.perf_counter() - start
    diagnosis = found if isinstance(found, Diagnosis) else None
    estimate = found.estimate if isinstance(found, Diagnosis) else found
    dropped: dict[str, int] = {}
    odd: list[Doubt] = []
    for each, samples in log.samples.items():
        y = own_readings(systems, each, log.y[samples])
        odd += doubts_of_readings(systems[each], log.q[samples], log.qd[samples], y)
        if missing == "drop":
            for name, n in _dropped(systems[each], y).items():
                dropped[name] = dropped.get(name, 0) + n
    first = next(iter(systems.values()))
    odd += doubts_of_motion(first.tree, log.q, log.qd, estimate, dt, log.t)
    return LogRun(log, estimate, diagnosis, first, preparing, seconds, dropped, tuple(dict.fromkeys(odd)))


def _dropped(system: System, y: Floats) -> dict[str, int]:
    """Return in how many samples a sensor was dropped, by its name, where it was at all."""
    counts = np.count_nonzero(unusable(system, y), axis=0).tolist()
    return {name: n for name, n in zip(system.weight_names, counts, strict=True) if n}

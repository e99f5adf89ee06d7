"""Trackers as users meet them: of a plan, with contact states or without."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any, overload

from nori_dyn.errors import InputError, PlanError, WrongKindError
from nori_dyn.estimation.plan import Plan, plan_content
from nori_dyn.estimation.plan_files import TrackerData, plan_to_text
from nori_dyn.export.files import CExport
from nori_dyn.export.folder import export
from nori_dyn.export.trackers import c_filter
from nori_dyn.filtering.false_alarms import Alarms
from nori_dyn.filtering.hypotheses import ACCELERATION, RATE, Hypotheses
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.instants import ContactPrograms, checked_time
from nori_dyn.filtering.steps import ContactSteps
from nori_dyn.filtering.tracked import Recognised, Tracked
from nori_dyn.filtering.tracker import Estimated, TrackerBase
from nori_dyn.io.files import write_bytes
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.kernel.base import NATIVE, NUMPY
from nori_dyn.program.kernel.registry import check_auto
from nori_dyn.tables.progress import progress_bar


class Tracker(TrackerBase[Estimated]):
    """Estimates over time: a Kalman filter, exact and for any set of sensors; a smoother; a judge of contacts.

    The sensors' `memory` declares what persists: joint velocities, whose rate is the acceleration, offsets
    of sensors, wrenches that last; see `nd.SensorSet`. Given q and qd all else is linear, so that there is nothing to
    linearise. The posterior is kept as a square-root information matrix: no covariance is formed, nothing is inverted
    that may vanish, and what nobody has seen yet is simply not known.

    Without options it is a filter; with `lag` a smoother with a fixed lag; with `hypotheses` it recognises contacts.
    With both, the contact state of a tick is settled `hypotheses.lag` ticks later, by default half of `lag`, and a
    smoother runs along the states that were settled.

    Attributes:
        plan: the plan.
        contact_names: all contacts.
        states: the contact states that have a plan, in the order of `probabilities`.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is.
        inputs: the arrays that `tick` reads: q, qd, y and weights of all contact states.
        outputs: the arrays that `tick` writes, by the names of the outputs.
        backend: name of the backend.
        consistency: how well the readings of all ticks so far fit the noise that is declared of them.

    Args:
        plan: a plan, with contact states or without, of sensors with memory and weighed readings.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is, from all readings up to now: a smoother with a fixed lag.
        hypotheses: judge all contact states of the plan by how well they explain the readings, and estimate in the
            most likely one; contacts are given, by `switch`, when None.
        backend: as for `Plan.solver`.
        wait: whether to wait for the compiler. If not, NumPy runs ticks at first, and native code from the tick on
            before which a thread has compiled it; `backend` tells.

    Raises:
        WrongKindError: no plan.
        PlanError: nothing persists; no row is weighed, or equations of motion are; exact rows tell what persists.
        InputError: not to wait for a backend that is not "auto"; a time that is not positive, a lag that is no number
            of ticks, or below that of the hypotheses; hypotheses where there are no contacts.
        BackendError: there is no such backend.

    Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. V to VII and X;
    Blom and Bar-Shalom, IEEE Trans. Automatic Control 33, 1988.

    Example:
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "sure of speeds", "measurements": [torque, unloaded], "memory": memory}
        >>> plan = nd.plan(nd.System(nd.autotree(1), nd.SensorSet.from_dict(content)), outputs=["qdd"])
        >>> trackers = nd.Tracker(plan, dt=0.01), nd.Tracker(plan, dt=0.01, lag=2)
        >>> found = [[one.step(np.zeros(1), np.zeros(1), [0.0]) for _ in range(9)][-1] for one in trackers]
        >>> [round(one.memory.time, 3) for one in found]
        [0.08, 0.06]
        >>> bool(found[1].deviations["qdd"][0] < found[0].deviations["qdd"][0])
        True
    """

    @overload
    def __init__(
        self: Tracker[Tracked], plan: Plan, dt: float, *, backend: str = "auto", wait: bool = True
    ) -> None: ...

    @overload
    def __init__(
        self: Tracker[Tracked | None],
        plan: Plan,
        dt: float,
        lag: int,
        hypotheses: None = None,
        backend: str = "auto",
        wait: bool = True,
    ) -> None: ...

    @overload
    def __init__(
        self: Tracker[Recognised],
        plan: Plan,
        dt: float,
        *,
        hypotheses: Hypotheses,
        backend: str = "auto",
        wait: bool = True,
    ) -> None: ...

    @overload
    def __init__(
        self: Tracker[Recognised | None],
        plan: Plan,
        dt: float,
        lag: int,
        hypotheses: Hypotheses,
        backend: str = "auto",
        wait: bool = True,
    ) -> None: ...

    @overload
    def __init__(
        self,
        plan: Plan,
        dt: float,
        lag: int = 0,
        hypotheses: Hypotheses | None = None,
        backend: str = "auto",
        wait: bool = True,
    ) -> None: ...

    def __init__(
        self,
        plan: Plan,
        dt: float,
        lag: int = 0,
        hypotheses: Hypotheses | None = None,
        backend: str = "auto",
        wait: bool = True,
    ) -> None:
        if not isinstance(plan, Plan):
            raise WrongKindError("nd.Tracker", "a plan", plan, "make one, nd.Tracker(nd.plan(system), dt=0.001)")
        self.plan, dt, later = plan, checked_time("dt", dt), None
        if not wait:
            check_auto(backend)
            backend, later = (NUMPY, NATIVE) if find_compiler() is not None else (NUMPY, None)
        if hypotheses is None:
            programs = self._programs_of_states(backend)
            super().__init__(ContactSteps(programs, dt, lag != 0), plan.contact_names, plan.states, dt, lag, later)
            return
        if not plan.contact_names:
            raise InputError(
                f"sensors '{plan.sensors.name}' have no contacts: there is nothing to recognise. Plan a robot with "
                "sensors that have `contacts`, nd.plan(tree, sensors)."
            )
        if lag and not wait:
            raise InputError("wait=False is for a tracker that is given its contacts, or has no lag.")
        if lag and hypotheses.lag is None:
            hypotheses = replace(hypotheses, lag=lag // 2)
        outputs = [output.name for output in plan.states.first.outputs]
        of = plan.tree, plan.sensors, plan.states, dt, hypotheses, outputs
        super().__init__(
            HypothesisSteps.of(*of, backend, progress_bar), plan.contact_names, plan.states, dt, lag, later
        )

    def save(self, path: str | Path, alarms: Alarms | None = None) -> None:
        """Write the plan to a file, and how it is tracked, but not what was learned: data only, whole or not at all.

        The file is one of the plan as well: what takes a plan takes it, and `nori-dyn serve` and `export` run it as
        this tracker.

        Args:
            path: the file.
            alarms: when collisions count as seen, `CollisionDetector.alarms`; None where nothing is watched.

        Raises:
            FileFormatError: the file cannot be written.
            PlanError: its sensors are not a SensorSet, so they cannot be written as data.

        Example:
            >>> arm = nd.System(nd.autotree(2), "momentum_observer")
            >>> nd.Tracker(nd.plan(arm, outputs=["qdd"]), dt=0.001, lag=5).save("observer.plan")
            >>> nd.Tracker.load("observer.plan").lag
            5
        """
        options = self.steps.model.options if isinstance(self.steps, HypothesisSteps) else None
        tracked = TrackerData(dt=self.dt, lag=self.lag, hypotheses=options, alarms=alarms)
        plan = self.plan
        write_bytes(path, plan_to_text(plan.states.plans, plan.sensors, plan.left_out, tracked).encode())

    @staticmethod
    def load(path: str | Path, backend: str = "auto", wait: bool = True) -> Tracker[Any]:
        """The tracker in a file, which begins with what its sensors' config says.

        Args:
            path: the file.
            backend: as for `nd.Tracker`.
            wait: as for `nd.Tracker`.

        Raises:
            FileFormatError: the file cannot be read.
            PlanError: as `Plan.load`; it does not say how its plan is tracked.
        """
        plan, tracked = Plan.load(path), tracking(path)
        if tracked is None:
            raise PlanError(f"{path}: does not say how its plan is tracked: nd.Tracker(nd.Plan.load(path), dt=0.001).")
        return Tracker(plan, tracked.dt, tracked.lag, tracked.hypotheses, backend, wait)

    def _programs_of_states(self, backend: str) -> ContactPrograms:
        plan = self.plan
        return ContactPrograms(plan.states.plans, plan.contact_names, backend, progress_bar, plan.sensors.name)

    def export(self, folder: str | Path, lang: str = "c", name: str | None = None) -> CExport:
        """Write the filter as source code that stands alone: C11 and a class for C++, its state in a struct.

        The code begins with what the sensors' config says, whatever this filter has seen. With contacts it is one
        function that is given which are closed.

        Args:
            folder: where to; made when it does not exist. One that holds files of anything but an earlier export of the
                same name is refused.
            lang: the language: "c".
            name: what to call the files, functions and types; from the robot's name when left out.

        Raises:
            UnknownNameError: there is no such language.
            IdentifierError: the name is not an identifier of C, or one that is taken.
            FileFormatError: the folder cannot be written, or holds other files.
            PlanError: there are more contacts than exported code has room for; contacts are recognised with a lag.

        Example:
            >>> arm = nd.System(nd.autotree(2), "momentum_observer")
            >>> exported = nd.Tracker(nd.plan(arm, outputs=["qdd"]), dt=0.001).export("observer_c", name="observer")
            >>> list(exported.outputs)
            ['qdd', 'memory', 'nis', 'degrees', 'log_likelihood']
        """
        return export(folder, lang, lambda: c_filter(self, self.plan.sensors.name, name))


def tracking(path: str | Path) -> TrackerData | None:
    """How the plan in a file is tracked; None where it does not say.

    Raises:
        FileFormatError: the file cannot be read.
        PlanError: it is truncated, changed, of another version, or no plan file.
    """
    return plan_content(path)[1].tracker


class Filter(Tracker[Tracked]):
    """Former name of `Tracker(plan, dt)`."""

    def __init__(self, plan: Plan, dt: float, backend: str = "auto", wait: bool = True) -> None:
        super().__init__(plan, dt, backend=backend, wait=wait)


class Window(Tracker[Tracked | None]):
    """Former name of `Tracker(plan, dt, lag)`."""

    def __init__(self, plan: Plan, dt: float, lag: int, backend: str = "auto", wait: bool = True) -> None:
        super().__init__(plan, dt, lag, backend=backend, wait=wait)


class ContactFilter(Tracker[Recognised]):
    """Former name of `Tracker(plan, dt, hypotheses=Hypotheses(...))`."""

    def __init__(
        self,
        plans: Plan,
        dt: float,
        rate: float = RATE,
        acceleration: float = ACCELERATION,
        reach: int | None = None,
        lag: int = 0,
        **options: Any,
    ) -> None:
        super().__init__(plans, dt, hypotheses=Hypotheses(rate, acceleration, reach, lag), **options)

"""Trackers as users meet them: of a plan, with contact states or without."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from nori_dyn.errors import InputError, PlanError, WrongKindError
from nori_dyn.estimation.plan import Plan, plan_content
from nori_dyn.estimation.plan_files import TrackerData, plan_to_text
from nori_dyn.filtering.export import c_filter
from nori_dyn.filtering.hypotheses import ACCELERATION, RATE, Hypotheses
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.instants import ContactPrograms, checked_time
from nori_dyn.filtering.steps import ContactSteps
from nori_dyn.filtering.tracked import Recognised, Tracked
from nori_dyn.filtering.tracker import Estimated, TrackerBase
from nori_dyn.io.files import write_bytes
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.export.files import CExport
from nori_dyn.program.export.folder import export
from nori_dyn.program.kernel.choice import NATIVE, NUMPY
from nori_dyn.program.kernel.registry import check_auto
from nori_dyn.tables.progress import progress_bar


class Tracker(TrackerBase[Estimated]):
    """Estimates over time: a Kalman filter, exact and for any set of sensors; a smoother; a judge of contacts.

    What persists is said by `memory` in the sensors' config: joint velocities, whose rate is the acceleration, offsets
    of sensors, wrenches that last; see `nd.SensorSet`. Given q and qd all else is linear, so that there is nothing to
    linearise. The posterior is kept as a square-root information matrix: no covariance is formed, nothing is inverted
    that may vanish, and what nobody has seen yet is simply not known.

    `nd.Filter`, `nd.Window` and `nd.ContactFilter` are trackers with one of these options each.

    Attributes:
        plan: the plan.
        contact_names: all contacts.
        states: the contact states that have a plan, in the order of `probabilities`.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is.
        inputs: the arrays that `tick` reads: q, qd, y and weights of all contact states.
        outputs: the arrays that `tick` writes, by the names of the outputs.
        backend: name of the backend.
        consistency: how well the readings of all ticks so far fit what is said of their noise.

    Args:
        plan: a plan, with contact states or without, of sensors with memory and weighed readings.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is, from all readings up to now: a smoother with a fixed lag.
        hypotheses: judge all contact states of the plan by how well they explain the readings, and estimate in the
            most likely one; contacts are told, by `switch`, when None.
        backend: as for `Plan.solver`.
        wait: whether to wait for the compiler. If not, NumPy runs ticks at first, and native code from the tick on
            before which a thread has compiled it; `backend` tells.

    Raises:
        WrongKindError: no plan.
        PlanError: nothing persists; no row is weighed, or equations of motion are; exact rows tell what persists.
        InputError: not to wait for a backend that is not "auto"; a time that is not positive, a lag that is no number
            of ticks; hypotheses where there are no contacts, or with a lag.
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

    def __init__(
        self,
        plan: Plan,
        dt: float,
        lag: int = 0,
        hypotheses: Hypotheses | None = None,
        backend: str = "auto",
        wait: bool = True,
    ) -> None:
        kind = f"nd.{type(self).__name__}"
        if not isinstance(plan, Plan):
            raise WrongKindError(kind, "a plan", plan, f"make one, {kind}(nd.plan(system), dt=0.001)")
        self.plan, dt, later = plan, checked_time("dt", dt), None
        if not wait:
            check_auto(backend)
            backend, later = (NUMPY, NATIVE) if find_compiler() is not None else (NUMPY, None)
        if hypotheses is None:
            programs = ContactPrograms(plan.states.plans, plan.contact_names, backend, progress_bar, plan.sensors.name)
            super().__init__(ContactSteps(programs, dt, lag != 0), plan.contact_names, plan.states, dt, lag, later)
            return
        if not plan.contact_names:
            raise InputError(
                f"sensors '{plan.sensors.name}' have no contacts: there is nothing to recognise. Plan a robot with "
                "sensors that have `contacts`, nd.plan(tree, sensors)."
            )
        outputs = [output.name for output in plan.states.first.outputs]
        of = plan.tree, plan.sensors, plan.states, dt, hypotheses, outputs
        super().__init__(
            HypothesisSteps.of(*of, backend, progress_bar), plan.contact_names, plan.states, dt, lag, later
        )

    def save(self, path: str | Path) -> None:
        """Write the plan to a file, and how it is tracked, but not what was learned: data only, whole or not at all.

        The file is one of the plan as well: what takes a plan takes it, and `nori-dyn serve` and `export` run it as
        this tracker.

        Raises:
            FileFormatError: the file cannot be written.
            PlanError: its sensors are not a SensorSet, so they cannot be written as data.

        Example:
            >>> arm = nd.System(nd.autotree(2), "momentum_observer")
            >>> nd.Window(nd.plan(arm, outputs=["qdd"]), dt=0.001, lag=5).save("observer.plan")
            >>> nd.Tracker.load("observer.plan").lag
            5
        """
        options = self.steps.model.options if isinstance(self.steps, HypothesisSteps) else None
        tracked = TrackerData(dt=self.dt, lag=self.lag, hypotheses=options)
        plan = self.plan
        write_bytes(path, plan_to_text(plan.states.plans, plan.sensors, plan.left_out, tracked).encode())

    @staticmethod
    def load(path: str | Path, backend: str = "auto", wait: bool = True) -> Tracker[Any]:
        """Return the tracker in a file, which begins with what its sensors' config says.

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

    def _programs_of_states(self) -> ContactPrograms:
        plan = self.plan
        return ContactPrograms(plan.states.plans, plan.contact_names, self.backend, progress_bar, plan.sensors.name)

    def export(self, folder: str | Path, lang: str = "c", name: str | None = None) -> CExport:
        """Write the filter as source code that stands alone: C11 and a class for C++, its state in a struct.

        The code begins with what the sensors' config says, whatever this filter has seen. With contacts it is one
        function that is told which are closed.

        Args:
            folder: where to; made when it does not exist. One that holds files of anything but an earlier export of the
                same name is refused.
            lang: the language: "c".
            name: what to call the files, functions and types; from the robot's name when left out.

        Raises:
            UnknownNameError: there is no such language.
            IdentifierError: the name is not an identifier of C, or one that is taken.
            FileFormatError: the folder cannot be written, or holds other files.
            PlanError: there are more contacts than exported code has room for.

        Example:
            >>> arm = nd.System(nd.autotree(2), "momentum_observer")
            >>> exported = nd.Filter(nd.plan(arm, outputs=["qdd"]), dt=0.001).export("observer_c", name="observer")
            >>> list(exported.outputs)
            ['qdd', 'memory', 'nis', 'degrees', 'log_likelihood']
        """
        return export(folder, lang, lambda: c_filter(self, self.plan.sensors.name, name))


def tracking(path: str | Path) -> TrackerData | None:
    """Return how the plan in a file is tracked; None where it does not say.

    Raises:
        FileFormatError: the file cannot be read.
        PlanError: it is truncated, changed, of another version, or no plan file.
    """
    return plan_content(path)[1].tracker


class Filter(Tracker[Tracked]):
    """Estimates at each tick from all readings up to it: a Kalman filter, exact and for any set of sensors.

    What persists is said by `memory` in the sensors' config: joint velocities, whose rate is the acceleration, offsets
    of sensors, wrenches that last; see `nd.SensorSet`. Given q and qd all else is linear, so that there is nothing to
    linearise. It is kept as a square-root information matrix: no covariance is formed, nothing is inverted that may
    vanish, and what nobody has seen yet is simply not known.

    Attributes:
        plans: the plan of each contact state; one, of no contacts, where there are none.
        contact_names: all contacts.
        dt: usual time between ticks [s].
        consistency: how well the readings of all ticks so far fit what is said of their noise.

    Args:
        plan: a plan of sensors with memory and weighed readings.
        dt: usual time between ticks [s].
        backend, wait: as for `nd.Tracker`.

    Raises:
        WrongKindError: no plan.
        PlanError: nothing persists; no row is weighed, or equations of motion are; exact rows tell what persists.
        InputError: a time that is not positive.
        BackendError: there is no such backend.

    Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. V to VII.

    Example:
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1, "offset": {"sigma": 10}}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> speed = {"of": "qd", "rate": "qdd", "noise": 0.001}
        >>> memory = {"speed": speed, "push": {"of": "offset", "walk": 5.0}}
        >>> content = {"name": "observer", "measurements": [torque, unloaded], "memory": memory}
        >>> system = nd.System(nd.autotree(1), nd.SensorSet.from_dict(content))
        >>> observer = nd.Filter(nd.plan(system, outputs=["qdd"]), dt=0.001)
        >>> for _ in range(200):  # it stands still although its motor gives 2 N m: something holds it
        ...     tracked = observer.step(np.zeros(1), np.zeros(1), [2.0])
        >>> print(np.round(tracked.memory["offset:tau:joint1"], 1))
        [2.]
    """

    def __init__(self, plan: Plan, dt: float, backend: str = "auto", wait: bool = True) -> None:
        super().__init__(plan, dt, backend=backend, wait=wait)


class Window(Tracker[Tracked | None]):
    """Estimates some ticks late, each from all readings up to now: a smoother with a fixed lag.

    As `nd.Filter`, for what can wait: a few ticks of readings that came since make accelerations, pushes and contacts
    surer. `step` returns the estimate of the tick `lag` ticks before it; `present` tells the last, as a filter does.
    `tick` does it on arrays that stay where they are.

    Attributes:
        plans: the plan of each contact state; one, of no contacts, where there are none.
        contact_names: all contacts.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is.
        inputs: the arrays that `tick` reads, as those of a filter.
        outputs: the arrays that `tick` writes, by the names of the outputs.
        backend: name of the backend.
        consistency: how well the readings of all ticks so far fit what is said of their noise.

    Args:
        plan: a plan of sensors with memory and weighed readings.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is, at least one.
        backend, wait: as for `nd.Tracker`.

    Raises:
        WrongKindError: no plan.
        PlanError: see `nd.Filter`.
        InputError: a time that is not positive, a lag below one.
        BackendError: there is no such backend.

    Source: docs/design.md, 4.12; Bierman, Factorization Methods for Discrete Sequential Estimation, ch. X.

    Example:
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "sure of speeds", "measurements": [torque, unloaded], "memory": memory}
        >>> system = nd.System(nd.autotree(1), nd.SensorSet.from_dict(content))
        >>> window = nd.Window(nd.plan(system, outputs=["qdd"]), dt=0.01, lag=8)
        >>> found = [window.step(np.zeros(1), np.zeros(1), [0.0]) for _ in range(20)]
        >>> found[7] is None, round(found[8].memory.time, 3), round(found[19].memory.time, 3)
        (True, 0.0, 0.11)
        >>> bool(found[19].deviations["qdd"][0] < window.present.deviations["qdd"][0])
        True
        >>> len(window.rest())
        8
    """

    def __init__(self, plan: Plan, dt: float, lag: int, backend: str = "auto", wait: bool = True) -> None:
        if lag == 0:
            raise InputError("lag is 0: a window looks at least one tick back; without any it is a filter.")
        super().__init__(plan, dt, lag, backend=backend, wait=wait)


class ContactFilter(Tracker[Recognised]):
    """Estimates over time of a robot whose contacts come and go, and nobody says which are closed.

    At each tick all contact states that have a plan are judged by how well they explain the readings, given what
    persists, and by what was likely before: a hidden Markov chain. `step` returns the probability of each state, the
    estimate in the most likely one, and the mixture; a change of the most likely state is always told.

    Attributes:
        contact_names: all contacts.
        states: the contact states, in the order of `probabilities`.
        measurement_names: the name of each number of y (ny), the readings of all states.
        dt: usual time between ticks [s].
        rate: how often a contact switches on average [1/s].
        inputs: the arrays that `tick` reads: q, qd, y and weights of all states.
        outputs: the arrays that `tick` writes, by the names of the outputs: those of the most likely state.
        probabilities: of each state, given all readings so far (n_states,); the array stays, its numbers change.
        backend: name of the backend.
        switches: the last changes of the most likely state, the newest last.

    Args:
        plans: a plan of sensors with contacts, memory and weighed readings.
        dt: usual time between ticks [s].
        rate: how often a contact switches on average [1/s]; the less, the more it takes to believe in a switch.
        acceleration: from which force over the robot's mass on a touch shall about count as contact [m/s^2]; it is the
            size of the wide density by which states are compared, see docs/design.md, 4.12. It has to be well above
            the noise of such forces, or a contact is believed in where there is none.
        reach: states are judged that differ from a likely one by as many contacts at most; all when None.
        lag: how many ticks `smoothed` can look back.
        backend, wait: as for `nd.Tracker`.

    Raises:
        WrongKindError: no plan.
        PlanError: see `Filter`; a state whose exact rows say the same twice.
        InputError: a time, a rate or an acceleration that is not positive; a reach or lag that is no number of them.
        BackendError: there is no such backend.

    Source: docs/design.md, 4.12; Blom and Bar-Shalom, IEEE Trans. Automatic Control 33, 1988.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> brake = wrench | {"components": ["mx", "my", "fx", "fy", "fz"], "value": 0}
        >>> contacts = {"brake": {"closed": [brake], "open": [wrench | {"value": 0}]}}
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.1}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.01}}
        >>> content = {"name": "wheel", "measurements": [torque, motion], "contacts": contacts, "memory": memory}
        >>> plans = nd.plan(nd.autotree(1), nd.SensorSet.from_dict(content), outputs=["fx"])
        >>> wheel = nd.ContactFilter(plans, dt=0.001)
        >>> free = wheel.step(np.zeros(1), np.zeros(1), {"tau:joint1": 0.0, "qdd:joint1": 0.0})
        >>> free.contacts
        ()
        >>> held = wheel.step(np.zeros(1), np.zeros(1), {"tau:joint1": 3.0, "qdd:joint1": 0.0})
        >>> held.contacts, held.switch.before
        (('brake',), ())
        >>> print(np.round(held["fx"], 1))
        [[ 0.  0. -3.  0.  0.  0.]]
    """

    def __init__(
        self,
        plans: Plan,
        dt: float,
        rate: float = RATE,
        acceleration: float = ACCELERATION,
        reach: int | None = None,
        lag: int = 0,
        backend: str = "auto",
        wait: bool = True,
    ) -> None:
        super().__init__(plans, dt, hypotheses=Hypotheses(rate, acceleration, reach, lag), backend=backend, wait=wait)

    @property
    def rate(self) -> float:
        """How often a contact switches on average [1/s]."""
        return self._recognising("rate").model.options.rate

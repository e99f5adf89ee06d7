"""Filters as users meet them: of a plan, or of the plans of all contact states."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from nori_dyn.api.planned import Planned
from nori_dyn.errors import WrongKindError
from nori_dyn.filtering import filter as core
from nori_dyn.filtering import window as core_window
from nori_dyn.filtering.export import c_filter
from nori_dyn.io.export import export
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.export.files import CExport
from nori_dyn.tables.progress import progress_bar


class Filter(core.Filter):
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
        plan: a plan, or a plan set, of sensors with memory and weighed readings.
        dt: usual time between ticks [s].
        backend: as for `Plan.solver`.

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

    def __init__(self, plan: Planned, dt: float, backend: str = "auto") -> None:
        plans, contact_names, self._name = plans_of(plan, "nd.Filter")
        super().__init__(plans, contact_names, dt, backend, progress_bar, self._name)

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
        return export(folder, lang, lambda: c_filter(self, self._name, name))


class Window(core_window.Window):
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
        plan: a plan, or a plan set, of sensors with memory and weighed readings.
        dt: usual time between ticks [s].
        lag: how many ticks late an estimate is, at least one.
        backend: as for `Plan.solver`.

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

    def __init__(self, plan: Planned, dt: float, lag: int, backend: str = "auto") -> None:
        plans, contact_names, name = plans_of(plan, "nd.Window")
        super().__init__(plans, contact_names, dt, lag, backend, progress_bar, name)


def plans_of(plan: Planned, taker: str) -> tuple[Mapping[ContactState, EliminationPlan], tuple[str, ...], str]:
    """Return the plan of each contact state, all contacts, and the name of the sensors.

    Raises:
        WrongKindError: no plan.
    """
    if not isinstance(plan, Planned):
        raise WrongKindError(taker, "a plan or a plan set", plan, f"make one, {taker}(nd.plan(system), dt=0.001)")
    return plan.states.plans, plan.contact_names, plan.sensors.name

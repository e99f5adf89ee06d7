"""Filters that find out which contacts are closed, as users meet them: of a plan set."""

from __future__ import annotations

from nori_dyn.api.plan_set import PlanSet
from nori_dyn.errors import WrongKindError
from nori_dyn.filtering import contacts as core
from nori_dyn.filtering.contacts import ACCELERATION, RATE
from nori_dyn.tables.progress import progress_bar


class ContactFilter(core.ContactFilter):
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
        plans: a plan set of sensors with memory and weighed readings.
        dt: usual time between ticks [s].
        rate: how often a contact switches on average [1/s]; the less, the more it takes to believe in a switch.
        acceleration: from which force over the robot's mass on a touch shall about count as contact [m/s^2]; it is the
            size of the wide density by which states are compared, see docs/design.md, 4.12. It has to be well above
            the noise of such forces, or a contact is believed in where there is none.
        reach: states are judged that differ from a likely one by as many contacts at most; all when None.
        lag: how many ticks `smoothed` can look back.
        backend: as for `Plan.solver`.

    Raises:
        WrongKindError: no plan set.
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
        >>> plans = nd.plan_set(nd.autotree(1), nd.SensorSet.from_dict(content), outputs=["fx"])
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
        plans: PlanSet,
        dt: float,
        rate: float = RATE,
        acceleration: float = ACCELERATION,
        reach: int | None = None,
        lag: int = 0,
        backend: str = "auto",
    ) -> None:
        if not isinstance(plans, PlanSet):
            raise WrongKindError("nd.ContactFilter", "a plan set", plans, "make one, nd.plan_set(tree, sensors)")
        outputs = [output.name for output in next(iter(plans.plans.values())).outputs]
        super().__init__(
            plans.tree, plans.sensors, plans.states, dt, outputs, rate, acceleration, reach, lag, backend, progress_bar
        )

"""What a tracker returns at a tick: the estimate, how sure it is, what persists, and whether the readings fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.errors import named_contacts
from nori_dyn.filtering.base_estimate import BaseEstimate, ReferenceAxes, based
from nori_dyn.filtering.bounded import Spread
from nori_dyn.filtering.knowledge import MemoryState, memory_state
from nori_dyn.filtering.markov import NO_PART
from nori_dyn.filtering.square_root import Posterior
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.measurements.contacts import CONTACT, TOUCH_POINT, ContactState
from nori_dyn.solve.diagnosis import p_value
from nori_dyn.solve.estimate import Estimate
from nori_dyn.tables import Shown
from nori_dyn.typing import Floats


class Tracked(Shown):
    """The estimate of a tick, with what it is worth: from all readings up to it, or of a window up to now.

    Attributes:
        u: the estimate of what is free (n,), in the order of `Tracker.free_names`.

    Args:
        tick: the programs of its contact state.
        state: q, qd and y.
        u: see above.
        after: the posterior by the readings up to it.
        time: time since the first tick [s].
        axes: those of the reference of a floating base; None where there is none.
        covariance: returns that of u (n, n).

    Example:
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "sure of speeds", "measurements": [torque, unloaded], "memory": memory}
        >>> system = nd.System(nd.autotree(1), nd.SensorSet.from_dict(content))
        >>> tracker = nd.Tracker(nd.plan(system, outputs=["qdd"]), dt=0.01)
        >>> tracked = tracker.step(np.zeros(1), np.zeros(1), [0.0])
        >>> tracked["qdd"].shape, tracked.deviations["qdd"].shape, tracked.memory.names
        ((1,), (1,), ('qd:joint1',))
    """

    def __init__(
        self,
        tick: TickPrograms,
        state: tuple[Floats, Floats, Floats],
        u: Floats,
        after: Posterior,
        time: float,
        axes: ReferenceAxes | None,
        covariance: Callable[[], Floats],
    ) -> None:
        self.u, self._tick, self._state, self._after = u, tick, state, after
        self._time, self._axes, self._covariance_of = time, axes, covariance

    @cached_property
    def estimate(self) -> Estimate:
        """The outputs, by the names of the field.

        Raises:
            SingularSystemError: the exact rows have no unique solution.
        """
        return self._tick.outputs(*self._state, self.u)

    @cached_property
    def _covariance(self) -> Floats:
        """That of u (n, n)."""
        return self._covariance_of()

    @cached_property
    def _spread(self) -> Spread:
        """How far the outputs may be off."""
        return self._tick.spread(*self._state, self._covariance)

    @property
    def _along_axes(self) -> MemoryState:
        """What persists, what of it is of a floating base along the axes of the reference."""
        names, units = self._tick.memory_names, self._tick.memory_units
        k = len(names)
        return memory_state(names, units, self.u[-k:], self._covariance[-k:, -k:], self._time)

    @cached_property
    def memory(self) -> MemoryState:
        """What persists, at the tick."""
        found = self._along_axes
        return found if self._axes is None else self._axes.state(found)

    @cached_property
    def base(self) -> BaseEstimate:
        """The floating base, where its state is in the memory, `memory: {base: {of: base}}`.

        Raises:
            InputError: it is not.
        """
        return based(self._axes).estimate(self._along_axes.mean, self._along_axes.covariance)

    @property
    def nis(self) -> float:
        """The normalised innovation squared: a chi-square of `degrees` where noise is as declared.

        The sum of squares of what readings were off from what was expected of them, each over its expected spread.
        """
        return self._after.nis

    @property
    def degrees(self) -> int:
        """See `nis`."""
        return self._after.degrees

    @property
    def log_likelihood(self) -> float:
        """Of the readings of the tick, given those before it."""
        return self._after.log_likelihood

    @property
    def deviations(self) -> Mapping[str, Floats]:
        """Standard deviations of the outputs, by name, in the shapes of the outputs."""
        return self._spread.deviations

    @property
    def bands(self) -> Mapping[str, Floats]:
        """Half of the width of the 95 % bands of the outputs, see `History`."""
        return self._spread.bands

    @property
    def recognised(self) -> dict[str, float]:
        """What was recognised: probabilities, "contact:l_foot", "collision:tau:elbow", and where a link is touched."""
        return {}

    def __getitem__(self, name: str) -> Floats:
        """An output by name.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.estimate[name]

    @property
    def p_value(self) -> float:
        """Probability that sound readings are off by as much as these, or more; 1 where nothing checks them."""
        return float(p_value(self.nis, self.degrees))

    def __repr__(self) -> str:
        return f"Tracked({', '.join(self.estimate.values)}; at {self.memory.time:g} s)"


@dataclass(frozen=True, slots=True)
class Switch:
    """A change of the most likely contact state.

    Attributes:
        time: time since the first tick [s].
        before, after: the states.
        probability: that of the state after, at that tick.
    """

    time: float
    before: ContactState
    after: ContactState
    probability: float


class Recognised(Tracked):
    """The estimate of a tick of which the contact state was not given: that in the most likely one.

    Attributes:
        estimate: the outputs, by the names of the field.
        contacts: the contacts that are closed in the most likely state.
        probabilities: of each state that has a plan, given all readings up to the tick.
        switch: the switch at this tick; None where the most likely state is that of the tick before.
        point: where the likeliest link is touched, in its frame, and the deviation of that (4,) [m]; None where none
            is, or surfaces of links are not known.

    Args:
        probabilities: see above.
        switch: see above.
        within: returns the estimate in a state that was judged.
    """

    def __init__(
        self,
        probabilities: Mapping[ContactState, float],
        switch: Switch | None,
        within: Callable[[ContactState], Tracked],
        point: Floats | None = None,
    ) -> None:
        self.probabilities, self.switch, self._within, self.point = dict(probabilities), switch, within, point
        self.contacts = max(self.probabilities, key=self.probabilities.__getitem__)
        best = within(self.contacts)
        of = best._tick, best._state, best.u, best._after, best._time, best._axes, best._covariance_of
        super().__init__(*of)
        self.estimate = best.estimate

    @property
    def tracked(self) -> Tracked:
        """The estimate in the most likely state, and what it is worth: this."""
        return self

    @property
    def probability(self) -> float:
        """That of the most likely state."""
        return self.probabilities[self.contacts]

    @property
    def recognised(self) -> dict[str, float]:
        names = dict.fromkeys(name for state in self.probabilities for name in state)
        point = dict(zip(TOUCH_POINT, self.point.tolist(), strict=True)) if self.point is not None else {}
        return {f"{CONTACT}{name}": self.probability_of(name) for name in names} | point

    def probability_of(self, contact: str) -> float:
        """The probability that a contact is closed."""
        return sum(p for state, p in self.probabilities.items() if contact in state)

    def mixture(self, name: str) -> Floats:
        """An output by name, the mean over all states with their probabilities.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        likely = {state: p for state, p in self.probabilities.items() if p >= NO_PART}
        return np.asarray(sum(p * self._within(state)[name] for state, p in likely.items()) / sum(likely.values()))

    def __repr__(self) -> str:
        return f"Recognised({named_contacts(self.contacts)}, probability {self.probability:.6g})"

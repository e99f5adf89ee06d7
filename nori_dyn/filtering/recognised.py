"""What a filter returns that finds out which contacts are closed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.errors import named_contacts
from nori_dyn.filtering.markov import NO_PART
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.tables import Document, Facts, Shown, Table, number
from nori_dyn.typing import Floats


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


class Recognised(Shown):
    """The estimate of a tick of which the contact state was not told.

    Attributes:
        contacts: the contacts that are closed in the most likely state.
        probabilities: of each state that has a plan, given all readings up to the tick.
        switch: the switch at this tick; None where the most likely state is that of the tick before.

    Args:
        probabilities: see above.
        switch: see above.
        tracked: returns the estimate in a state that was judged.
    """

    def __init__(
        self,
        probabilities: Mapping[ContactState, float],
        switch: Switch | None,
        tracked: Callable[[ContactState], Tracked],
    ) -> None:
        self.probabilities, self.switch, self._tracked = dict(probabilities), switch, tracked
        self.contacts = max(self.probabilities, key=self.probabilities.__getitem__)

    @cached_property
    def tracked(self) -> Tracked:
        """The estimate in the most likely state, and what it is worth."""
        return self._tracked(self.contacts)

    @property
    def probability(self) -> float:
        """That of the most likely state."""
        return self.probabilities[self.contacts]

    def probability_of(self, contact: str) -> float:
        """Return the probability that a contact is closed."""
        return sum(p for state, p in self.probabilities.items() if contact in state)

    def mixture(self, name: str) -> Floats:
        """Return an output by name, the mean over all states with their probabilities.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        likely = {state: p for state, p in self.probabilities.items() if p >= NO_PART}
        return np.asarray(sum(p * self._tracked(state)[name] for state, p in likely.items()) / sum(likely.values()))

    def __getitem__(self, name: str) -> Floats:
        """Return an output of the most likely state by name.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.tracked[name]

    def __repr__(self) -> str:
        return f"Recognised({named_contacts(self.contacts)}, probability {self.probability:.6g})"

    def shown(self) -> Document:
        ranked = sorted(self.probabilities.items(), key=lambda one: -one[1])
        rows = tuple((", ".join(state) or "none", number(p, 3)) for state, p in ranked)
        facts = () if self.switch is None else (("switched", f"from {named_contacts(self.switch.before)}"),)
        return Document((Facts(facts), Table("Contact states", ("closed", "probability"), rows, left=(0,))))

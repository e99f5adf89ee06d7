"""A window over ticks whose contacts are recognised: they are given to it once later ticks have had their say.

Hypotheses judge each tick as it comes. As many ticks later as they look back, the contact state that is likeliest by
then is settled and given to steps of single states, along whose path a fixed-lag smoother runs.

Source: docs/design.md, 4.12; Blom and Bar-Shalom, IEEE Trans. Automatic Control 33, 1988, for the hypotheses.
"""

from __future__ import annotations

from collections import deque

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.filtering.contact_rows import AllCases
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.steps import ContactSteps
from nori_dyn.filtering.tracked import Switch
from nori_dyn.filtering.window import SlidingWindow
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.system.builder import System
from nori_dyn.typing import Floats, Indices


class RecognisedWindow(SlidingWindow):
    """The last ticks of a tracker that recognises contacts; in `slots` are those whose contact state is settled.

    Attributes:
        probabilities: of each contact state at each tick of `slots`, when its own was settled (S,).

    Args:
        judging: the hypotheses.
        steps: what runs ticks in the contact states of the hypotheses.
        lag: how many ticks late an estimate is.

    Raises:
        InputError: the hypotheses look back further than that.
    """

    def __init__(self, judging: HypothesisSteps, steps: ContactSteps, lag: int) -> None:
        if judging.lag > lag:
            raise InputError(
                f"lag is {lag}, and the hypotheses settle a contact state {judging.lag} ticks late: give a lag of as "
                "many ticks at least, or hypotheses whose own `lag` is smaller."
            )
        super().__init__(steps, lag - judging.lag)
        self._lag = self.lag
        self._judging, self._is_over = judging, False
        self.probabilities = deque[Floats]()
        self._left: Floats | None = None
        self._waiting = deque[tuple[Floats, float]]()
        states = zip(judging.model.states, steps.each, strict=True)
        self._places = [_places(judging, state, step.tick.system) for state, step in states]

    def clear(self) -> None:
        super().clear()
        self.probabilities.clear()
        self._waiting.clear()
        self.lag, self._is_over, self._left = self._lag, False, None
        steps, beginning = self._steps, self._judging.beginning
        if steps.reference is not None:
            steps.reference.begin(beginning)
        steps.begin(beginning, self._judging.time)

    def take(self, dt: float, wrong: int) -> None:
        """Take the tick that was judged last; settle the contact state of the one that is old enough by now.

        Raises:
            InputError: all have been settled.
        """
        if self._is_over:
            raise InputError("`rest` has settled the contacts of the last ticks: `reset` the tracker, then go on.")
        self._waiting.append((self._judging.running.copy(), dt))
        if len(self._waiting) > self._judging.lag:
            self._settle()

    def settle(self) -> None:
        """Settle all contact states by what is known now, for good; no tick leaves the window."""
        self.lag += len(self._waiting)
        self._is_over = True
        while self._waiting:
            self._settle()

    def _settle(self) -> None:
        state, dt = self._waiting.popleft()
        p, steps = self._judging.smoothed(len(self._waiting)), self._steps
        steps.go_to(int(np.argmax(p)))
        to, at = self._places[steps.number]
        steps.running[to] = state[at]
        if self.is_full:
            self._left = self.probabilities.popleft()
        self.probabilities.append(p)
        super().take(dt, steps.step(dt))

    def switch(self, number: int) -> Switch | None:
        """The change of the contact state at a tick of `slots`; None where it is that of the tick before."""
        p = self.probabilities[number]
        last = self.probabilities[number - 1] if number else self._left
        now, states = int(np.argmax(p)), self._judging.model.states
        if last is None or (before := int(np.argmax(last))) == now:
            return None
        return Switch(self.slots[number].time, states[before], states[now], float(p[now]))


def _places(judging: HypothesisSteps, state: ContactState, system: System) -> tuple[Indices, Indices]:
    """Where the inputs of the system of a contact state are, and where each is in what hypotheses read.

    Weights of rows that the hypotheses do not have, as others repeat them, are left out.
    """
    whole, readings, first = judging.tick.system, judging.readings, system.tree.nq + system.tree.nv
    assert isinstance(whole.sensors, AllCases)
    y = {readings.measurement_names[k]: first + at for at, k in enumerate(readings.of_system.tolist())}
    weights = {name: first + whole.ny + at for at, name in enumerate(whole.weight_names)}
    for contact in whole.sensors.sensors.contact_names:
        case = f"{contact} {'closed' if contact in state else 'open'}: "
        weights |= {name.removeprefix(case): at for name, at in weights.items() if name.startswith(case)}
    names = [y[name] for name in system.measurement_names] + [weights.get(name, -1) for name in system.weight_names]
    at = np.array([*range(first), *names], dtype=np.intp)
    to = np.flatnonzero(at >= 0)
    return to, at[to]

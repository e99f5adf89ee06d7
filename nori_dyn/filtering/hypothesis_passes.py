"""Contacts recognised in ticks that were recorded: each tick's by the readings up to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from nori_dyn.errors import SingularSystemError
from nori_dyn.filtering.base_reference import ReferenceTrack
from nori_dyn.filtering.history import ContactHistory, History
from nori_dyn.filtering.hypotheses import HypothesisModel
from nori_dyn.filtering.hypothesis_steps import HypothesisSteps
from nori_dyn.filtering.instants import Alike, Instants
from nori_dyn.filtering.markov import looked_back_over
from nori_dyn.filtering.passes import NumpyPass, OfStates
from nori_dyn.filtering.smoother import Beginning, Passed, Passes, Stretch, Stretches
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation
from nori_dyn.filtering.steps import NOT_FINITE, cause_of
from nori_dyn.solve.over_ticks import joined
from nori_dyn.solve.solver import Singular
from nori_dyn.system.inputs import Missing, checked_states
from nori_dyn.typing import Floats


class RecognisedStretches:
    """Stretches with the contact states that are likeliest by all readings, as a smoother takes them.

    Args:
        stretches: the stretches, of contacts that are not given.
        recognised: the contacts at all ticks, by all readings.
    """

    def __init__(self, stretches: Stretches, recognised: ContactHistory) -> None:
        self._stretches, self._recognised = stretches, recognised
        self._states = recognised.probabilities.argmax(axis=1)
        self._left = len(self._states)

    @staticmethod
    def of(model: HypothesisModel, passed: Sequence[History], stretches: Stretches) -> RecognisedStretches:
        """Those of a pass forward.

        Args:
            model: the hypotheses.
            passed: what the pass found of each stretch.
            stretches: the stretches.
        """
        found = joined([one.contacts for one in passed if one.contacts is not None])
        steps = np.concatenate([stretches[number].steps for number in range(len(stretches))])
        later = looked_back_over(found.probabilities, steps[1:], model.transitions)
        return RecognisedStretches(stretches, replace(found, probabilities=later, points=None))

    def __len__(self) -> int:
        return len(self._stretches)

    def __getitem__(self, number: int) -> Stretch:
        stretch = self._stretches[number]
        return replace(stretch, states=self._states[stretch.first : stretch.first + len(stretch)])

    def beside(self, history: History) -> History:
        """The estimates of a stretch, with its contacts: of the last one at first, then of the one before."""
        part = slice(self._left - len(history), self._left)
        self._left = part.start
        return replace(history, contacts=replace(self._recognised, probabilities=self._recognised.probabilities[part]))


class HypothesisPass(NumpyPass):
    """A pass forward through ticks in which contact states are judged.

    Attributes:
        probabilities: of each state at each tick, given all readings up to it (N, S).
        points: see `ContactHistory`.

    Args:
        steps: what judges.
        instants: the ticks.
        stretch: see `Stretch`.
        states: q, qd, y and weights of each tick, one after the other (N, n).
        usual: the usual time between ticks [s].
        track: takes the references of a floating base; None where there is none.
    """

    def __init__(
        self,
        steps: HypothesisSteps,
        instants: Instants,
        stretch: Stretch,
        states: Floats,
        usual: float,
        track: ReferenceTrack | None,
    ) -> None:
        self._run, after = steps, list[Posterior]()
        self.probabilities = np.zeros((len(states), len(steps.model.states)))
        self.points = None if steps.surfaces is None else np.full((len(states), 4), np.nan)
        for k, state in enumerate(states):
            steps.hypothesis_step.state[:] = state
            if steps.step(float(stretch.steps[k])) == NOT_FINITE:
                raise SingularSystemError(f"tick {stretch.first + k}: {cause_of(NOT_FINITE, ())}. Leave it out.")
            if track is not None:
                track.take(k)
            after.append(steps.posterior())
            self.probabilities[k] = steps.probabilities
            if self.points is not None and steps.surfaces is not None and steps.surfaces.point is not None:
                self.points[k] = steps.surfaces.point
        super().__init__(instants, stretch.steps[1:], usual, after)

    def predicted(self, dt: float) -> SquareRootInformation:
        return self._run.predicted(dt)


class HypothesisPasses(Passes):
    """Passes over ticks in which contacts are recognised.

    Args:
        steps: what judges contact states; they go back to the beginning.
        contact_names: all contacts.
        usual: the usual time between ticks [s].
        beginning, missing, singular: see `Passes`.
    """

    def __init__(
        self,
        steps: HypothesisSteps,
        contact_names: Sequence[str],
        usual: float,
        beginning: SquareRootInformation,
        missing: Missing = "refuse",
        singular: Singular = "refuse",
    ) -> None:
        super().__init__(steps.tick, usual, beginning, missing, singular)
        self._steps, self._contact_names = steps, tuple(contact_names)
        steps.probabilities[:] = 1.0 / len(steps.probabilities)
        if steps.reference is not None:
            steps.reference.begin(beginning)
        steps.begin(beginning, 0.0)

    def _passed(self, stretch: Stretch, begin: Beginning, keeps: bool) -> Passed:
        steps, tick, N = self._steps, self.first, len(stretch)
        y = stretch.y[:, steps.readings.of_system]
        q, qd, y, w = checked_states(tick.system, stretch.q, stretch.qd, y, stretch.weights, self._missing)
        everywhere, of_rows = np.arange(N), w[:, tick.coordinates.weight_of_rows]
        states, track = np.concatenate([q, qd, y, w], axis=1), None
        if steps.reference is not None:
            track = ReferenceTrack(steps.reference, q, qd)
            q, qd = track.q, track.qd
        alike = Alike(tick, everywhere, q, qd, y, of_rows, tick.measured_each(q, qd, y))
        instants = Instants(np.zeros(N, dtype=np.intp), {0: alike}, everywhere)
        found = HypothesisPass(steps, instants, stretch, states, self.usual, track)
        return self._beside(stretch, begin, found, track)

    def _history(self, passed: Passed, found: OfStates, is_causal: bool) -> History:
        assert isinstance(passed.found, HypothesisPass)
        history, states = super()._history(passed, found, is_causal), self._steps.model.states
        of = passed.found.probabilities, self._steps.touched, passed.found.points
        return replace(history, contacts=ContactHistory(self._contact_names, states, *of))

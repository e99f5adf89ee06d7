"""Estimates of ticks that were recorded: each by the readings up to it, or by all, whatever their number.

The smoother is that of Rauch, Tung and Striebel. A pass forward keeps what is known at the beginning of each stretch of
ticks, and nothing else; a pass back, stretch by stretch from the last, computes forward again within one, and then
goes back through it. So memory does not grow with the log.

Source: docs/design.md, 4.12; Bar-Shalom, Li and Kirubarajan, Estimation with Applications to Tracking and Navigation,
ch. 8.6; own derivation of the square-root form (tests/unit/filtering/test_smoother.py).
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from nori_dyn.errors import SingularSystemError, naming
from nori_dyn.filtering.base_reference import BaseReference, ReferenceTrack
from nori_dyn.filtering.bounded import Spread
from nori_dyn.filtering.delays import Delays, delays
from nori_dyn.filtering.history import History, MemoryHistory
from nori_dyn.filtering.instants import GAP, Alike, ContactPrograms, Instant, undetermined
from nori_dyn.filtering.passes import ForwardPass, Later, OfStates, passed
from nori_dyn.filtering.square_root import SquareRootInformation
from nori_dyn.filtering.steps import ContactSteps
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.solver import Singular
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing, weights_at
from nori_dyn.typing import Floats, Indices

STRETCH = 512
"""Ticks that are worked on at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Stretch:
    """Ticks that follow each other.

    Attributes:
        first: the number of the first of them among all.
        t: their times (n,) [s].
        steps: the time from the tick before to each (n,) [s]; of the very first tick it counts for nothing.
        states: the number of the contact state of each (n,).
        q: configurations (n, nq).
        qd: velocities (n, nv).
        y: readings of all contact states (n, ny).
        weights: those of all ticks, or (n, n_weights); see `Solver.solve_batch`.
    """

    first: int
    t: Floats
    steps: Floats
    states: Indices
    q: Floats
    qd: Floats
    y: Floats
    weights: Weights = None

    def __len__(self) -> int:
        return len(self.t)

    def at(self, part: slice) -> Stretch:
        """Some of them that follow each other."""
        arrays = (self.t[part], self.steps[part], self.states[part], self.q[part], self.qd[part], self.y[part])
        return Stretch(self.first + range(len(self))[part].start, *arrays, weights_at(self.weights, part))


class Stretches(Protocol):
    """All ticks, stretch by stretch, as often as they are wanted."""

    def __len__(self) -> int: ...

    def __getitem__(self, number: int, /) -> Stretch: ...


@dataclass(frozen=True, slots=True, eq=False)
class Cut:
    """Ticks that are in memory, cut into stretches.

    Attributes:
        whole: the ticks.
        size: ticks of a stretch.
    """

    whole: Stretch
    size: int = STRETCH

    def __len__(self) -> int:
        return -(-len(self.whole) // self.size)

    def __iter__(self) -> Iterator[Stretch]:
        return (self[number] for number in range(len(self)))

    def __getitem__(self, number: int) -> Stretch:
        if not 0 <= number < len(self):
            raise IndexError(number)
        return self.whole.at(slice(number * self.size, min((number + 1) * self.size, len(self.whole))))


@dataclass(frozen=True, slots=True, eq=False)
class Beginning:
    """What is known before the readings of a tick.

    Attributes:
        before: what is known of the memory.
        variances: those that its numbers would have by now without any reading (k,).
        reference: that of a floating base after the tick before; None where there is none.
    """

    before: SquareRootInformation
    variances: Floats
    reference: BaseReference | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Passed:
    """What a pass forward through a stretch finds.

    Attributes:
        stretch: the ticks.
        found: the pass.
        variances: those that the memory's numbers would have without any reading (n, k).
        track: the references of a floating base; None where there is none.
    """

    stretch: Stretch
    found: ForwardPass
    variances: Floats
    track: ReferenceTrack | None = None


class Passes(ABC):
    """Passes over ticks that were recorded, stretch by stretch.

    Attributes:
        first: the programs of the first contact state: what persists is the same in all.
        usual: the usual time between ticks [s].

    Args:
        first: see above.
        usual: see above.
        beginning: what is known before the first reading.
        missing: see `Solver.solve_batch`.
        singular: what to do with ticks at which something is not determined: "refuse" them all, or give "nan".
    """

    judges = False
    """Whether the readings that are filtered are judged, see `History.diagnosis`."""

    def __init__(
        self, first: TickPrograms, usual: float, beginning: SquareRootInformation, missing: Missing, singular: Singular
    ) -> None:
        self.first, self.usual = first, usual
        self._missing, self._singular = missing, singular
        variances = np.diagonal(beginning.covariance())
        reference = BaseReference.of(first.system.tree, first.memory_names)
        if reference is not None:
            reference.begin(beginning)
        self._beginning = Beginning(beginning, np.where(np.isnan(variances), np.inf, variances), reference)

    @abstractmethod
    def _passed(self, stretch: Stretch, begin: Beginning, keeps: bool) -> Passed:
        """A pass forward through a stretch; `keeps` says whether there will be one back."""

    def filtered(self, stretches: Iterable[Stretch]) -> Iterator[History]:
        """Yield the estimates of each stretch, each tick's by the readings up to it.

        Raises:
            InputError: as `ContactPrograms.instants`.
            SingularSystemError: something is not determined by then, and that is refused; says what and when.
        """
        before, last = self._beginning, None
        for stretch in stretches:
            is_first = last is None
            before = before if last is None else self._following(last, stretch)
            last = self._passed(stretch, before, keeps=False)
            of_states = last.found.filtered()
            found = self._history(last, of_states, is_causal=True)
            if self.judges and len(of_states) == 1:
                found = replace(found, diagnosis=self._judged(last.found, of_states, found))
            yield replace(found, delays=self._delays(last.found.instants[0])) if is_first else found

    def _delays(self, instant: Instant) -> Delays | None:
        """How late a filter is at a tick's configuration, where that can be computed; None of a base."""
        if self._beginning.reference is not None:
            return None
        try:
            return delays(instant.tick, instant.q, self.usual) if np.isfinite(self.usual) else None
        except SingularSystemError:
            return None

    def _beside(self, stretch: Stretch, begin: Beginning, found: ForwardPass, track: ReferenceTrack | None) -> Passed:
        """A pass, and what would be known without readings beside it."""
        variances = [begin.variances]
        for decay, gained in zip(*self._laws(stretch.steps[1:]), strict=True):
            variances.append(decay * variances[-1] + gained)
        return Passed(stretch, found, np.array(variances), track)

    def _following(self, last: Passed, stretch: Stretch) -> Beginning:
        """Prior at the beginning of the stretch that follows."""
        dt = float(stretch.steps[0])
        decay, gained = self._laws(dt)
        reference = None if last.track is None else last.track.reference
        return Beginning(last.found.predicted(dt), decay * last.variances[-1] + gained, reference)

    def _laws(self, dt: float | Floats) -> tuple[Floats, Floats]:
        """Factors and increments of the variances of the memory over a time without any reading.

        Args:
            dt: over which times (...) [s].

        Returns:
            Two arrays (..., k).
        """
        tick = self.first
        gained = tick.gained(dt)
        gained[..., : tick.sizes[1]] = np.inf  # their rates are not known
        return np.square(tick.decay(dt)), gained

    def _first_memory(self, passed: Passed, found: OfStates) -> tuple[Floats, Floats]:
        """Mean and covariance of the memory at the first tick of a stretch, along the axes of the tick before."""
        mean, covariance = (each[0] for each in found[int(passed.found.instants.numbers[0])])
        k, change = len(self.first.memory_names), passed.found.instants.changes.get(0)
        known = mean[-k:], covariance[-k:, -k:]
        return known if change is None else change.back(*known)

    def _history(self, passed: Passed, found: OfStates, is_causal: bool) -> History:
        """Estimates of the ticks of a stretch."""
        stretch, run, first = passed.stretch, passed.found, self.first
        alike = run.instants.alike
        self._refuse_undetermined(passed, found)
        parts = [self._outputs(alike[number], *known) for number, known in found.items()]
        of_parts = [alike[number].places for number in found]
        order = np.argsort(np.concatenate(of_parts))
        k = len(first.memory_names)
        memory, P = np.zeros((len(stretch), k)), np.zeros((len(stretch), k, k))
        for places, (means, covariances) in zip(of_parts, found.values(), strict=True):
            memory[places], P[places] = means[:, -k:], covariances[:, -k:, -k:]
        variances, base = np.diagonal(P, axis1=1, axis2=2).copy(), None
        if passed.track is not None:
            axes = passed.track.axes
            base = axes.estimate(memory, P)
            memory[:, axes.places], variances[:, axes.places] = base.mean, np.square(base.deviations)
        known = np.isfinite(variances)
        deviations = np.sqrt(np.where(known, np.maximum(variances, 0.0), np.inf))
        without = np.sqrt(passed.variances)
        shares = np.divide(deviations, without, out=np.zeros_like(without), where=np.isfinite(without) & known)
        shares[~known] = 1.0
        return History(
            stretch.t,
            Estimate.joined([estimate for estimate, _ in parts], of_parts),
            _joined([one.deviations for _, one in parts], order),
            _joined([one.bands for _, one in parts], order),
            MemoryHistory(first.memory_names, first.memory_units, memory, deviations, shares.min(axis=0)),
            run.nis,
            run.degrees,
            run.log_likelihood,
            np.flatnonzero((stretch.steps > GAP * self.usual) & (stretch.first + np.arange(len(stretch)) > 0)),
            is_causal,
            base=base,
        )

    def _outputs(self, alike: Alike, u: Floats, P: Floats) -> tuple[Estimate, Spread]:
        """The outputs of ticks in one contact state, and how far they may be off."""
        q, tick = alike.q, alike.tick
        lost = np.asarray(np.isnan(u).any(axis=1))
        if lost.any():
            u, P = np.where(lost[:, None], 0.0, u), np.where(lost[:, None, None], np.nan, P)
        estimate = tick.outputs(q, alike.qd, alike.y, u, self._singular)
        return estimate.without(lost), tick.spread(q, alike.qd, alike.y, P)

    def _judged(self, run: ForwardPass, found: OfStates, history: History) -> Diagnosis:
        """The diagnosis of the readings of a stretch in one contact state, of each by those before it."""
        ((number, known),) = found.items()
        one = run.instants.alike[number]
        residuals = one.tick.residuals(one.tick.measured_of(one.values), one.weights, *known)
        return one.tick.diagnosis(history.estimate, history.deviations, residuals, run.nis, run.degrees)

    def _refuse_undetermined(self, passed: Passed, found: OfStates) -> None:
        """Refuse ticks at which something is not determined.

        Raises:
            SingularSystemError: there is one, and it is to be refused.
        """
        if self._singular == "nan":
            return
        alike = passed.found.instants.alike
        lost = {
            int(alike[number].places[k]): (number, means[k])
            for number, (means, _) in found.items()
            for k in np.flatnonzero(np.isnan(means).any(axis=1))[:1]
        }
        if lost:
            k = min(lost)
            number, mean = lost[k]
            names = [alike[number].tick.coordinates.names[place] for place in np.flatnonzero(np.isnan(mean)).tolist()]
            where = f"tick {passed.stretch.first + k}, at {passed.stretch.t[k]:.6g} s"
            raise SingularSystemError(f"{where}: {undetermined(names)} Or let such ticks be nan.")


def _joined(parts: Sequence[Mapping[str, Floats]], order: Indices) -> dict[str, Floats]:
    """Numbers by name of ticks in several contact states, in the order of all ticks."""
    return {name: np.concatenate([one[name] for one in parts])[order] for name in parts[0]}


class ContactPasses(Passes):
    """Passes over ticks of which the contacts are given.

    Attributes:
        ticks: the ticks of all contact states.

    Args:
        ticks: see above.
        usual: the usual time between ticks [s].
        beginning, missing, singular: see `Passes`.
    """

    def __init__(
        self,
        ticks: ContactPrograms,
        usual: float,
        beginning: SquareRootInformation,
        missing: Missing = "refuse",
        singular: Singular = "refuse",
    ) -> None:
        super().__init__(ticks.first, usual, beginning, missing, singular)
        self.ticks = ticks
        self._steps: ContactSteps | None = None

    def smoothed(self, stretches: Stretches) -> Iterator[History]:
        """Yield the estimates of each stretch, from the last to the first, each tick's by all readings.

        Raises:
            InputError: as `ContactPrograms.instants`.
            SingularSystemError: something is not determined by all readings, and that is refused; says what and when.
        """
        begins = self._begins(stretches)
        later, end = None, None
        for number in reversed(range(len(begins))):
            passed = self._passed(stretches[number], begins[number], keeps=True)
            found = passed.found.smoothed(later)
            history = self._history(passed, found, is_causal=False)
            if history.base is not None and passed.track is not None:
                to_next = np.append(passed.stretch.steps[1:], 0.0 if later is None else later.dt)
                base = passed.track.axes.integrated(history.base, to_next, end or history.base.at(slice(-1, None)))
                history, end = replace(history, base=base), base.at(slice(0, 1))
            yield history
            later = Later(float(passed.stretch.steps[0]), *self._first_memory(passed, found))

    def _begins(self, stretches: Stretches) -> list[Beginning]:
        """Priors at the beginning of each stretch."""
        begins: list[Beginning] = []
        last: Passed | None = None
        for number in range(len(stretches)):
            stretch = stretches[number]
            begins.append(self._beginning if last is None else self._following(last, stretch))
            last = self._passed(stretch, begins[-1], keeps=False) if number + 1 < len(stretches) else None
        return begins

    def _passed(self, stretch: Stretch, begin: Beginning, keeps: bool) -> Passed:
        stretch, track = self._referred(stretch, begin)
        instants = self.ticks.instants(
            stretch.states, stretch.q, stretch.qd, stretch.y, stretch.weights, self._missing, stretch.first
        )
        if track is not None:
            instants = replace(instants, changes=track.changes)
            for alike in instants.alike.values():
                of_size = alike.tick.coordinates.weight_of_rows == alike.tick.gravity_weight
                alike.weights[:, of_size] = track.weights[alike.places, None]
        found = passed(instants, stretch.steps[1:], self.usual, begin.before, keeps)
        return self._beside(stretch, begin, found, track)

    def _referred(self, stretch: Stretch, begin: Beginning) -> tuple[Stretch, ReferenceTrack | None]:
        """Ticks with the reference of a floating base, which follows the estimates: they run one by one first."""
        if begin.reference is None:
            return stretch, None
        steps = ContactSteps(self.ticks, self.usual, keeps=False) if self._steps is None else self._steps
        self._steps = steps
        steps.begin(begin.before, 0.0)
        steps.ticks, steps.reference = stretch.first, copy(begin.reference)
        track = ReferenceTrack(steps.reference, stretch.q, stretch.qd)
        for k in range(len(stretch)):
            steps.go_to(int(stretch.states[k]))
            with naming(f"tick {stretch.first + k}"):
                weights = weights_at(stretch.weights, k)
                steps.read(stretch.q[k], stretch.qd[k], stretch.y[k], weights, self._missing)
            steps.step(float(stretch.steps[k]))
            track.take(k)
        return replace(stretch, q=track.q, qd=track.qd), track

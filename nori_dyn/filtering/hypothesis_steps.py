"""The steps of a tracker that judges contact states as hypotheses, see `judging`."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.filtering.base_reference import BaseReference
from nori_dyn.filtering.contact_rows import AllCases, CaseReadings
from nori_dyn.filtering.free_coordinates import no_memory
from nori_dyn.filtering.hypotheses import Hypotheses, HypothesisModel
from nori_dyn.filtering.instants import GAP
from nori_dyn.filtering.judging import HypothesisStep, NativeHypothesisStep, NumpyHypothesisStep
from nori_dyn.filtering.markov import NO_PART, looked_back_over, mixed
from nori_dyn.filtering.square_root import Posterior, SquareRootInformation, predict
from nori_dyn.filtering.steps import NOT_FINITE, Steps
from nori_dyn.filtering.tick_programs import TickPrograms
from nori_dyn.filtering.tracked import Switch
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.planner import Request
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.status import Status
from nori_dyn.system.builder import System, Weights
from nori_dyn.typing import Floats

KEPT_SWITCHES = 1000
"""How many switches a tracker remembers."""


class Surfaces(Protocol):
    """What the surfaces of links say of a touch, see `localization`."""

    @property
    def point(self) -> Floats | None:
        """Where the likeliest link is touched, and the deviation of that (4,) [m]; None where none is."""

    def begin(self, steps: HypothesisSteps) -> None:
        """Go back to before the first tick."""

    def locate(self, steps: HypothesisSteps, q: Floats, dt: float) -> None:
        """Multiply the probabilities of states by what they say, a time [s] after the tick before, at a q (nq,)."""


class HypothesisSteps(Steps):
    """The steps of a tracker to which nobody tells the contacts: all states are judged, and the most likely one tells.

    Attributes:
        model: the hypotheses.
        judging: what runs.
        readings: those of the rows of all cases.
        switches: the last changes of the most likely state, the newest last.
        switch: the change at the last tick, if there was one.
        touched: the links that may be touched, see `measurements.touch`.
        surfaces: what surfaces of links say of a touch; None where they are not known.

    Args:
        tick: the programs of the rows of all cases, and of the outputs.
        model: see above.
        dt: usual time between ticks [s].
        like: steps whose arrays are taken.
    """

    switches: deque[Switch]
    switch: Switch | None
    surfaces: Surfaces | None = None
    _past: Floats
    _past_dt: Floats

    def __init__(
        self, tick: TickPrograms, model: HypothesisModel, dt: float, like: HypothesisSteps | None = None
    ) -> None:
        self.tick, self.model, self._dt = tick, model, dt
        self.readings, tree = CaseReadings(tick.system), tick.system.tree
        sensors = tick.system.sensors.sensors if isinstance(tick.system.sensors, AllCases) else None
        self.touched = tuple(one.name for one in sensors.contacts if one.is_touch) if sensors else ()
        self.values = np.full(tick.layout.size, np.nan) if like is None else like.values
        self.is_native = tick.solver.native is not None
        numbers = tick, model, self.values, GAP * dt
        self.hypothesis_step: HypothesisStep = (
            NativeHypothesisStep(*numbers, _of_numpy(like)) if self.is_native else NumpyHypothesisStep(*numbers)
        )
        self.totals = self.hypothesis_step.totals
        self.measurement_names, self.weight_names = self.readings.measurement_names, self.readings.weight_names
        self._places = self.readings.input_indices()
        is_same = np.array_equal(self._places, np.arange(len(self.hypothesis_step.state)))
        self.is_gathered = is_same
        self.reference = BaseReference.of(tree, tick.memory_names) if like is None else like.reference
        if like is not None:
            self.state, self._past, self._past_dt = like.state, like._past, like._past_dt
            return
        self.state = self.hypothesis_step.state if is_same else np.zeros(int(self._places.max()) + 1)
        self.state[: tree.nq] = tree.neutral_configuration()
        self.state[len(self.state) - len(tick.system.weights) :] = tick.system.weights
        lag = model.options.lag or 0
        self._past, self._past_dt = np.zeros((lag, len(model.states))), np.zeros(lag)

    @staticmethod
    def of(
        tree: KinematicTree,
        sensors: SensorSet,
        states: Sequence[ContactState],
        dt: float,
        options: Hypotheses,
        outputs: Sequence[str] | None = None,
        backend: str = "auto",
        watch: Watch = unwatched,
        seed: int = 0,
    ) -> HypothesisSteps:
        """Those of the contact states of a robot.

        Args:
            tree: the robot.
            sensors: sensors with contacts and memory.
            states: the contact states.
            dt: usual time between ticks [s].
            options: how states switch, and how they are compared.
            outputs: names, as for `nd.plan`.
            backend: as for `Solver`.
            watch: shows how far compiling is.
            seed: as for `nd.plan`.

        Raises:
            SensorConfigError: sensors that do not fit the robot.
            UnknownOutputError: an output that does not exist.
            PlanError: see `free_coordinates`; an output that depends on forces that nothing tells;
                a state whose exact rows say the same twice.
            BackendError: there is no such backend.
        """
        if not sensors.memory:  # refused before anything is compiled
            raise no_memory(sensors.name)
        tick = TickPrograms(Request.of(System(tree, AllCases(sensors)), outputs, seed), backend, watch)
        model = HypothesisModel(tuple(states), len(sensors.contact_names), tick.coordinates, options)
        model.check_exact_rows(tick)
        return HypothesisSteps(tick, model, dt)

    def on(self, backend: str) -> HypothesisSteps:
        return HypothesisSteps(TickPrograms(self.tick.coordinates, backend), self.model, self._dt, self)

    def go_on_from(self, other: HypothesisSteps, dt: float) -> None:
        number, totals = other.number, other.totals.copy()
        self.begin(other.beginning, other.time)
        self.number, self.ticks, self.totals[:] = number, other.ticks, totals
        self.switches, self.switch, self.surfaces = other.switches, other.switch, other.surfaces
        self.set_longest(other.longest)
        if other.ticks:
            judging = _of_numpy(other)
            assert isinstance(self.hypothesis_step, NativeHypothesisStep)
            assert judging is not None
            self.hypothesis_step.go_on_from(judging, other.tick)

    def anew(self, dt: float) -> HypothesisSteps:
        """Others of the same, which have seen nothing; dt is the usual time between ticks [s]."""
        found = HypothesisSteps(self.tick, self.model, dt)
        found.surfaces = copy(self.surfaces)
        return found

    @property
    def longest(self) -> float:
        return self.hypothesis_step.longest

    @property
    def refactorised(self) -> Status:
        return self.hypothesis_step.refactorised

    def set_longest(self, time: float) -> None:
        self.hypothesis_step.longest = time

    @property
    def probabilities(self) -> Floats:
        """Of each state, given all readings so far (S,)."""
        return self.hypothesis_step.probabilities

    def begin(self, prior: SquareRootInformation, time: float) -> None:
        super().begin(prior, time)
        self.hypothesis_step.begin(prior)
        self.number = int(np.argmax(self.probabilities))
        self.switches, self.switch = deque(maxlen=KEPT_SWITCHES), None
        if self.surfaces is not None:
            self.surfaces.begin(self)

    def _own(self, y: ArrayLike | Mapping[str, Any], weights: Weights) -> tuple[Any, Any]:
        return self.readings.of(y), weights

    @property
    def running(self) -> Floats:
        return self.hypothesis_step.state

    def gather(self) -> None:
        if not self.is_gathered:
            np.take(self.state, self._places, out=self.running, mode="clip")

    def step(self, dt: float) -> int:
        change = None if self.reference is None else self._refer(self.running, dt)
        if self.ticks:
            self.time += dt
            if len(self._past):
                row = self.ticks % len(self._past)
                self._past[row], self._past_dt[row] = self.probabilities, dt
        wrong = self.hypothesis_step.step(dt, change)
        before, self.number, self.switch = self.number, self.hypothesis_step.best, None
        if self.surfaces is not None and wrong != NOT_FINITE:
            self.surfaces.locate(self, self.running[: self.tick.system.tree.nq], dt)
            self.number = int(np.argmax(self.probabilities))
        if self.ticks and self.number != before:
            states, p = self.model.states, float(self.probabilities[self.number])
            self.switch = Switch(self.time, states[before], states[self.number], p)
            self.switches.append(self.switch)
        self.ticks += 1
        if self.reference is not None:
            self._take_base(wrong)
        return wrong

    def posterior(self) -> Posterior:
        found = self.hypothesis_step.posterior(self.number)
        assert found is not None
        return found

    def predicted(self, dt: float) -> SquareRootInformation:
        p, motion = self.probabilities, self.hypothesis_step.motion(dt)
        parts = [
            (float(p[h]), self.hypothesis_step.posterior(h))
            for h in np.flatnonzero(p >= min(NO_PART, p.max())).tolist()
        ]
        return mixed([(share, predict(after, motion)) for share, after in parts if after is not None])

    @property
    def lag(self) -> int:
        """How many ticks `smoothed` can look back."""
        return len(self._past)

    @property
    def passed(self) -> int:
        """How many ticks `smoothed` can look back by now."""
        return min(max(self.ticks - 1, 0), len(self._past))

    def smoothed(self, ticks: int) -> Floats:
        """The probability of each state so many ticks ago, `passed` at most, given all readings since (S,)."""
        rows = np.arange(self.ticks - ticks, self.ticks) % max(len(self._past), 1)
        probabilities = np.vstack([self._past[rows], self.probabilities])
        found: Floats = looked_back_over(probabilities, self._past_dt[rows], self.model.transitions)[0]
        return found


def _of_numpy(steps: HypothesisSteps | None) -> NumpyHypothesisStep | None:
    """The step through NumPy, until native code is there."""
    return (
        steps.hypothesis_step if steps is not None and isinstance(steps.hypothesis_step, NumpyHypothesisStep) else None
    )

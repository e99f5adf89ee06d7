"""The steps of a tracker that judges contact states as hypotheses: natively in one foreign call, or through NumPy.

See `hypotheses` for the equations.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.filtering.base_reference import AxesTurn, BaseReference, Bridge
from nori_dyn.filtering.contact_rows import AllCases, CaseReadings
from nori_dyn.filtering.free_coordinates import no_memory
from nori_dyn.filtering.hypotheses import LIKELY, Hypotheses, HypothesisModel
from nori_dyn.filtering.instants import GAP
from nori_dyn.filtering.markov import NO_PART, looked_back_over, mixed, weighed
from nori_dyn.filtering.square_root import MotionModel, Posterior, SquareRootInformation, estimate, predict, update
from nori_dyn.filtering.steps import NOT_FINITE, UNDETERMINED, NativeCall, NumpyTick, Steps, without_readings
from nori_dyn.filtering.tick_programs import MeasurementRows, TickPrograms
from nori_dyn.filtering.tracked import Switch
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.planner import Request
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.native_track import HypothesisNumbers, NativeHypotheses
from nori_dyn.program.status import Status
from nori_dyn.program.track_source import TrackShape
from nori_dyn.system.builder import System, Weights
from nori_dyn.typing import Floats

KEPT_SWITCHES = 1000
"""How many switches a tracker remembers."""


class NumpyHypothesisStep(NumpyTick):
    """A step that judges contact states, through NumPy.

    Attributes:
        probabilities: of the states, given all readings so far (S,); they go on from what is written there.
        totals: sums of chi-squares in the most likely state, of their degrees of freedom, and of ticks (3,).
        longest: the longest time over which rates are known [s].
        afters: the posterior of u after the last step under each hypothesis that was judged, by its number.
        has_rates: whether the last step had readings.
    """

    def __init__(self, tick: TickPrograms, of: HypothesisModel, values: Floats, longest: float) -> None:
        super().__init__(tick, values)
        self._of, self.longest, self.has_rates = of, longest, False
        self.probabilities, self.totals = np.full(len(of.states), 1.0 / len(of.states)), np.zeros(3)

    def begin(self, prior: SquareRootInformation) -> None:
        """Go back to before the first tick, where this is the prior of the memory."""
        self._before = prior
        self.totals[:] = 0.0
        self.afters: dict[int, Posterior] = {}
        self._measured: MeasurementRows | None = None

    def step(self, dt: float, change: AxesTurn | Bridge | None) -> int:
        """Judge the state that there is, a time [s] after the last tick, and estimate in the most likely one.

        Args:
            dt: see above.
            change: what is done to the prior of each state; None where nothing is.

        Returns:
            See `Step.step`. Where a number is not finite the states and their priors go on as without the readings.
        """
        of, tick = self._of, self.tick
        T = np.eye(len(of.states)) if self._measured is None else of.transitions(dt)
        expected = self.probabilities @ T
        befores = self._mixed(of.judged(expected), T, expected, dt)
        if change is not None:
            befores = {h: change.prior(before) for h, before in befores.items()}
        wrong = self._judge(befores, expected)
        self.has_rates = wrong != NOT_FINITE
        if wrong == NOT_FINITE:
            self.afters = {h: without_readings(tick, before) for h, before in befores.items()}
            self._measured = tick.nothing
            self._weigh(expected, dict.fromkeys(befores, 0.0))
        return wrong

    def _judge(self, befores: dict[int, SquareRootInformation], expected: Floats) -> int:
        """Judge states by the readings, given what was known before them in each."""
        of, n_s, read = self._of, self.tick.sizes[0], self.read()
        if read is None:
            return NOT_FINITE
        measured, of_rows = read[0], of.weights(read[1])
        afters, logs = {}, {}
        for h, before in befores.items():
            rows = of.rows[h]
            after = afters[h] = update(before, measured.A[rows], measured.c[rows], of_rows[rows], n_s)
            lost = [k for k in after.undetermined if k < n_s]
            replaced = rows[of.of_cases[rows] & (of_rows[rows] > 0)]
            logs[h] = after.log_likelihood + of.row_logs[replaced].sum() + of.free_logs[lost].sum()
        if not np.isfinite(list(logs.values())).all():
            return NOT_FINITE
        self.afters, self._measured = afters, measured
        self._weigh(expected, logs)
        best = afters[self.best]
        self.totals[:] += best.nis, best.degrees, 1
        return UNDETERMINED if best.undetermined else self.concluded(best.u)

    def _weigh(self, expected: Floats, logs: dict[int, float]) -> None:
        every = np.full(len(expected), -np.inf)
        every[list(logs)] = list(logs.values())
        self.probabilities[:], _ = weighed(expected, every)

    @property
    def best(self) -> int:
        """The number of the most likely state at the last step."""
        return int(np.argmax(self.probabilities))

    def posterior(self, h: int) -> Posterior | None:
        """The posterior of u after the last step under hypothesis h; None where it is not judged."""
        return self.afters.get(h)

    def motion(self, dt: float) -> MotionModel:
        """How the memory moves on from the last step, over a time [s]."""
        assert self._measured is not None
        return self.tick.motion(self._measured, dt, dt <= self.longest)

    def _mixed(self, judged: Sequence[int], T: Floats, expected: Floats, dt: float) -> dict[int, SquareRootInformation]:
        """Prior of the memory under each hypothesis that is judged."""
        if self._measured is None:
            return dict.fromkeys(judged, self._before)
        of, motion = self._of, self.motion(dt)
        carried: dict[int, SquareRootInformation] = {}
        found = {}
        for h in judged:
            share = self.probabilities * T[:, h] / expected[h]
            parts = np.flatnonzero(share >= min(NO_PART, share.max())).tolist()
            for g in parts:
                if g not in carried:
                    carried[g] = predict(self.afters[g], motion)
            closing = share[parts] @ of.closes[parts, h] / share[parts].sum()
            jump = np.sqrt(closing) * np.array(self.tick.jumps)
            found[h] = mixed([(float(share[g]), carried[g]) for g in parts], jump if jump.any() else None)
        return found


def hypothesis_numbers(of: HypothesisModel, longest: float) -> HypothesisNumbers:
    """What judging in C takes; `longest` is the longest time over which rates are known [s]."""
    return HypothesisNumbers(
        counting=of.counting,
        apart=of.apart,
        closes=of.closes,
        weights=of.exact_weights,
        row_logs=of.row_logs[of.of_cases],
        free_logs=of.free_logs,
        n_contacts=of.n_contacts,
        rate=of.options.rate,
        reach=of.reach,
        part=NO_PART,
        likely=LIKELY,
        longest=longest,
    )


def hypothesis_shape(tick: TickPrograms, of: HypothesisModel) -> TrackShape:
    """What the C itself depends on."""
    return replace(tick.shape, of_case=of.of_cases.tolist(), heavy=(of.exact_weights > 0).tolist())


class NativeHypothesisStep(NativeCall):
    """The same in one foreign call, see `NumpyHypothesisStep`.

    Raises:
        CompilerError: the compiler fails, or there is no room for what it makes.
    """

    def __init__(
        self,
        tick: TickPrograms,
        of: HypothesisModel,
        values: Floats,
        longest: float,
        like: NumpyHypothesisStep | None = None,
    ) -> None:
        self.tick, n = tick, len(of.states)
        self.state = np.zeros(tick.system.n_inputs) if like is None else like.state
        probabilities = np.full(n, 1.0 / n) if like is None else like.probabilities
        programs = needed_compiler("the native filter"), *tick.native_kernels
        numbers = hypothesis_numbers(of, longest)
        self._native = NativeHypotheses(
            hypothesis_shape(tick, of), numbers, *programs, self.state, values, probabilities
        )
        self.probabilities, self.totals = self._native.probabilities, self._native.totals
        self._factorise = tick.solver.ticker(self._native.each[0].free, values)

    def begin(self, prior: SquareRootInformation) -> None:
        self._native.begin(prior.R, prior.z)

    def go_on_from(self, other: NumpyHypothesisStep, of: TickPrograms) -> None:
        """Go on from the last tick of another, by its programs."""
        known = {h: (after.R, after.z) for h, after in other.afters.items()}
        self._native.go_on_from(np.array(of.rows.outputs), known, other.has_rates)

    def step(self, dt: float, change: AxesTurn | Bridge | None) -> int:
        return self.concluded(self._native.step(dt, None if change is None else change.native))

    @property
    def best(self) -> int:
        return self._native.best

    @property
    def longest(self) -> float:
        """The longest time over which rates are known [s]."""
        found: float = self._native.each[0].at.longest
        return found

    @longest.setter
    def longest(self, time: float) -> None:
        for one in self._native.each:
            one.at.longest = time

    def motion(self, dt: float) -> MotionModel:
        tick, one = self.tick, self._native.each[self.best]
        measured = tick.measured_of(one.values) if one.has_rates else tick.nothing
        return tick.motion(measured, dt, dt <= self.longest)

    def posterior(self, h: int) -> Posterior | None:
        if not self._native.is_judged(h):
            return None
        one = self._native.each[h]
        R, z = one.R_u.copy(), one.z_u.copy()
        u = one.u.copy() if h == self.best and one.has_rates else estimate(R, z)  # C solves for the best one
        return Posterior(R, z, one.nis, one.degrees, one.log_likelihood, u)


HypothesisStep: TypeAlias = NumpyHypothesisStep | NativeHypothesisStep


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

"""What a plan costs on this machine: counted operations, and the times of ticks, calls and batches, taken in turns.

`python -m benchmarks`, in the repository, measures other libraries beside it by the same rounds.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.errors import named_contacts
from nori_dyn.estimation.plan import Plan
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.synthetic import autotree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.bound import FUSED, Bound, plan_bound
from nori_dyn.program.functions import CompiledFunction, compile
from nori_dyn.report.shows.plans import robot_in_words
from nori_dyn.solve.solver import Solver
from nori_dyn.system.builder import System
from nori_dyn.tables import Document, Facts, Table, attributes, listed, number, unbroken
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Array, Floats

Quartiles: TypeAlias = tuple[float, float, float]
"""Lower quartile, median and upper quartile."""

TICK, BATCH = "tick", "batch"
"""Runs: that which the others are compared with, and that of many states."""

CHAINS = 4000, 12_000
"""Products summed, each with the one before: what the longer chain takes more is the time of a cycle."""

MOST_OUTPUTS = 24
"""Names of outputs that are shown."""

COUNTS = ("additions", "multiplications", "divisions", "total")

NOTES = (
    "times a tick: medians and quartiles of the ratios, round by round. tick: on arrays that the caller fills; solve: "
    "takes and returns arrays, and checks them; batch: `solve_batch` in one thread. bound: the longest chain of "
    "operations that need one another, or all operations at the rate at which processors begin them, without checks.",
)


def quartiles(values: Iterable[float]) -> Quartiles:
    """Lower quartile, median and upper quartile."""
    low, middle, high = np.percentile([*values], [25, 50, 75])
    return float(low), float(middle), float(high)


def in_turns(calls: Mapping[str, Callable[[], object]], rounds: int, seconds: float) -> dict[str, list[float]]:
    """Time calls in turns, so that what else the machine does is shared by all.

    Args:
        calls: what is timed, by name.
        rounds: number of rounds.
        seconds: time that each takes in a round, in as many calls as that needs [s].

    Returns:
        The time of one call in each round [s], by name.
    """
    counts = {name: _calls_within(call, seconds) for name, call in calls.items()}
    found: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(rounds):
        for name, call in calls.items():
            found[name].append(_time_of(call, counts[name]) / counts[name])
    return found


def _calls_within(call: Callable[[], object], seconds: float) -> int:
    """Count the calls that take about some time, once the first one has warmed up what they use."""
    call()
    count = 1
    while (elapsed := _time_of(call, count)) < seconds / 4:
        count *= 4
    return max(1, int(count * seconds / elapsed))


def _time_of(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start


@dataclass(frozen=True, slots=True)
class StateTimes:
    """What a plan costs in one contact state.

    Attributes:
        closed: the contacts that are closed.
        plan: the plan of that state.
        backend: name of the backend that ran it.
        seconds: time of a state in each round [s], by run: a tick first.
        refactorised: share of the states of a batch that were re-factorised with pivoting.
        bound: of a tick.
        cycle: time of a cycle in each round [s].
    """

    closed: ContactState
    plan: EliminationPlan
    backend: str
    seconds: dict[str, list[float]]
    refactorised: float
    bound: Bound
    cycle: list[float]

    @property
    def cycles(self) -> Quartiles:
        """Quartiles of the cycles of a tick, round by round."""
        return quartiles(np.array(self.seconds[TICK]) / np.array(self.cycle))

    def ratio(self, run: str) -> Quartiles:
        """Quartiles of how many times as long as a tick a run takes, round by round."""
        return quartiles(np.array(self.seconds[run]) / np.array(self.seconds[TICK]))


@dataclass(frozen=True, slots=True)
class PlanTimes:
    """What a plan costs on this machine, contact state by contact state; a plan without contacts has one.

    Attributes:
        sensors: name of the sensors.
        states: the states.
        batch: number of states of a batch.
        rounds: rounds in which the runs took turns.
    """

    sensors: str
    states: tuple[StateTimes, ...]
    batch: int
    rounds: int

    def document(self) -> Document:
        """What the command line shows of it."""
        first = self.states[0].plan
        facts = (
            ("robot", robot_in_words(first.system)),
            ("sensors", unbroken(self.sensors)),
            ("outputs", listed((output.name for output in first.outputs), MOST_OUTPUTS)),
            ("backend", listed(dict.fromkeys(unbroken(state.backend) for state in self.states))),
        )
        counts, times = [], []
        for state in self.states:
            name = (named_contacts(state.closed),) if len(self.states) > 1 else ()
            counts.append((*name, *(getattr(state.plan.cost, kind) for kind in COUNTS)))
            times += [(*name, run, *self._times(state, run)) for run in state.seconds]
        which = ("closed",) if len(self.states) > 1 else ()
        text = tuple(range(len(which)))
        share = max(state.refactorised for state in self.states)
        afresh = (f"re-factorised with pivoting: {100 * share:.2g} % of a batch.",) if share else ()
        operations = ("Counted operations of a tick, sines and cosines left out", (*which, *COUNTS), tuple(counts))
        limits = tuple(self._limits(state) for state in self.states)
        bounds = ("Cycles of a tick", (*which, "bound", "chain", "operations", "measured", "of the bound"), limits)
        columns = (*which, "run", "median [us]", "quartiles", "times a tick", "quartiles")
        rounds = f"Time of a state, in {self.rounds} rounds; a batch has {self.batch:,} states"
        return Document(
            (
                Facts(facts),
                Table(*operations, left=text),
                Table(*bounds, left=text),
                Table(rounds, columns, tuple(times), (*NOTES, *afresh), left=(*text, len(which))),
            ),
            self.to_dict(),
        )

    def _times(self, state: StateTimes, run: str) -> tuple[str, ...]:
        low, middle, high = (number(1e6 * seconds) for seconds in quartiles(state.seconds[run]))
        below, times, above = (number(ratio) for ratio in state.ratio(run))
        ratios = ("", "") if run == TICK else (times, f"{below} - {above}")
        return middle, f"{low} - {high}", *ratios

    def _limits(self, state: StateTimes) -> tuple[str, ...]:
        name = (named_contacts(state.closed),) if len(self.states) > 1 else ()
        least, (_, cycles, _) = state.bound, state.cycles
        counts = (least.cycles, least.chain, least.issue, round(cycles))
        return *name, *(f"{count:,}" for count in counts), f"{100 * least.cycles / cycles:.0f} %"

    def to_dict(self) -> dict[str, Any]:
        """All of it, the time of each round included, as JSON has it."""
        system = self.states[0].plan.system
        return {
            "robot": system.tree.name,
            "sensors": self.sensors,
            "outputs": [output.name for output in self.states[0].plan.outputs],
            "batch": self.batch,
            "rounds": self.rounds,
            "states": [
                {
                    **attributes(state, "closed", "backend", "cycle", "refactorised"),
                    "operations": attributes(state.plan.cost, *COUNTS),
                    "bound": {"chain": state.bound.chain, "operations": state.bound.issue},
                    "seconds": {
                        run: {"median": quartiles(times)[1], "rounds": times} for run, times in state.seconds.items()
                    },
                }
                for state in self.states
            ],
        }


def measure(
    plan: Plan,
    batch: int = 1024,
    rounds: int = 15,
    seed: int = 0,
    seconds: float = 0.02,
    progress: Progress = lambda stage, done=None: None,
) -> PlanTimes:
    """Measure a plan at random states.

    Args:
        plan: the plan.
        batch: number of states of a batch.
        rounds: number of rounds.
        seed: seed of the states.
        seconds: time that each run takes in a round [s].
        progress: shows how far it is.

    Raises:
        PlanError: a plan that is determined over time only.
        SingularSystemError: the first state has no unique solution.
    """
    found, chains = [], [dependent(n) for n in CHAINS]
    for k, (closed, one) in enumerate(plan.states.items()):
        where = f", {named_contacts(closed)}" if closed else ""
        progress(f"compiling{where}", k / len(plan.states))
        solver = Solver(one)
        Q, Qd, Y = random_states(one.system, batch, seed)
        q, qd, y = Q[0], Qd[0], Y[0]
        solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q, qd, y
        estimates = solver.solve_batch(Q, Qd, Y, singular="nan")
        calls: dict[str, Callable[[], object]] = {
            TICK: solver.tick,
            "solve": partial(solver.solve, q, qd, y),
            BATCH: partial(solver.solve_batch, Q, Qd, Y, singular="nan", out=estimates),
            **{f"chain {k}": chain.tick for k, chain in enumerate(chains)},
        }
        progress(f"measuring{where}", (k + 0.5) / len(plan.states))
        times = in_turns(calls, rounds, seconds)
        times[BATCH] = [x / batch for x in times[BATCH]]
        short, long = (np.array(times.pop(f"chain {k}")) for k in range(len(chains)))
        cycle = (long - short) / (FUSED * (CHAINS[1] - CHAINS[0]))
        share = float(np.mean(estimates.fell_back))
        found.append(StateTimes(closed, one, solver.backend, times, share, plan_bound(one), cycle.tolist()))
    return PlanTimes(plan.sensors.name, tuple(found), batch, rounds)


def dependent(n: int) -> CompiledFunction:
    """A program whose only work is a chain of n products, each summed with the one before."""

    def chain(tree: KinematicTree, q: Array) -> Array:
        x = q[0]
        for _ in range(n):
            x = x * q[1] + q[2]
        return np.array([x])

    return compile(chain, autotree(3))


def random_states(system: System, n: int, seed: int) -> tuple[Floats, Floats, Floats]:
    """Random configurations (n, nq), velocities (n, nv), and readings (n, ny) within the ranges of their sensors."""
    rng, tree = np.random.default_rng(seed), system.tree
    Q = np.array([tree.random_configuration(rng) for _ in range(n)])
    Qd, Y = rng.normal(size=(n, tree.nv)), rng.normal(size=(n, system.ny))
    if system.ranges is not None:
        low, high = system.ranges
        margin = 0.1 * np.minimum(high - low, 1.0)
        Y = np.clip(Y, low + margin, high - margin)
    return Q, Qd, Y

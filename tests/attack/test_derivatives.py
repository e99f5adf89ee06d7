"""Derivatives of estimates, weighed and exact: no digit is lost without a flag, and none is refused that is well told.

Random robots, sensors, masses, sigmas and weights over sixteen decades, against eighty digits (`derivative_oracle.py`).
Each column, the derivatives by one input, is judged by itself in natural units of the outputs: it is wrong where an
entry is off by more than a tolerance of the column's largest, and more than rounding of the data explains.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from nori_dyn.errors import SingularSystemError
from nori_dyn.estimation.plan import Plan
from nori_dyn.solve.derivative import EstimateDerivative
from tests.attack.derivative_oracle import Parts, derivatives, parts
from tests.attack.judge import EXPLAINED, KINDS, MOTIONS, NUDGES, TOLERANCE, Truth, find_truth, nudged_problems
from tests.attack.oracle import States
from tests.attack.problems import FAMILIES, Problem, draw
from tests.attack.test_numbers import FALSE_REFUSAL, USUAL, backends, normalised, planned

Floats = NDArray[np.float64]

PROBLEMS = 1
"""Problems of a family that are tried by default."""

STATES, FEW = 30, 3
"""States of a problem; how many of them where the scale is below 1."""

SIGMAS = 3.0
"""Sigmas are drawn over this many decades to either side of 1."""

LIGHTEST = 1e-6
"""No entry counts as smaller than this share of the largest of its column in natural units, wanted or not; by a weight
it is one of that much of the estimate over the weight."""

SOON = USUAL | {"inverse": 6, "vague": 5}
"""Which problem of a family is tried where the scale is below 1: one that is soon known to eighty digits."""

ZERO = 1e-40
"""In natural units a column that is smaller everywhere is zero but for what the oracle rounds: by readings that only
check what exact rows determine. It is judged as one of `LIGHTEST`."""

OUTPUTS = (KINDS, ("tau", "qdd"), ("tau",), ("fx",), ("a", "f"))

SCRIPT = '''"""Do a failure of the attack on derivatives again: a state that is {what}."""

from tests.attack.test_derivatives import again

again(seed={seed}, family="{family}", backend="{backend}", state={state})
'''


@dataclass(frozen=True)
class Case:
    """A problem, what is asked of it, and its states.

    Attributes:
        problem: the problem.
        plan: its plan.
        outputs: kinds of variables that are derived.
        states: where.
        truth: the estimates there, which tell natural sizes.
    """

    problem: Problem
    plan: Plan
    outputs: tuple[str, ...]
    states: States
    truth: Truth

    @staticmethod
    def of(seed: int, family: str, n: int) -> "Case | None":
        """A random case; None where the sensors do not suffice."""
        problem = draw(seed, family, SIGMAS)
        plan = planned(problem)
        if plan is None:
            return None
        rng, system = np.random.default_rng(seed), plan.system
        states = normalised(problem, problem.states(n, 0, system.n_weights, system.ny))
        usual = system.weights if system.is_weighted else np.zeros(0)
        states = states._replace(weights=usual * states.weights ** rng.uniform(0.0, 1.0, (n, 1)))
        truth = find_truth(problem, states)
        return Case(problem, plan, OUTPUTS[rng.integers(len(OUTPUTS))], states, truth)

    @property
    def names(self) -> tuple[str, ...]:
        """The inputs."""
        return ("q", "qd", "y", "weights") if self.plan.system.is_weighted else ("q", "qd", "y")

    def state(self, k: int) -> list[Floats]:
        """The inputs at a state."""
        return [x[k] for x in self.states][: len(self.names)]

    def parts(self, k: int) -> Parts:
        """What the oracle makes of a state."""
        problem = self.problem
        return parts(problem.tree, self.states[k : k + 1], problem.known, problem.noisy, problem.readings, KINDS)

    def right(self, given: Parts) -> Floats | None:
        """The derivatives of all variables (n, n_directions); None where there are none."""
        return derivatives(given, self.plan.system.n_weights if self.plan.system.is_weighted else 0)

    def sizes(self, k: int) -> Floats:
        """The natural size of each variable (n,), none below a share of the largest of its kind."""
        size = self.truth.size[k].astype(float)
        motions = np.repeat([kind in MOTIONS for kind in KINDS], [len(self._of(kind)) for kind in KINDS])
        for kind in (motions, ~motions):
            size[kind] = np.maximum(size[kind], LIGHTEST * size[kind].max(initial=0.0))
        return size

    def rows(self) -> NDArray[np.intp]:
        """Which variables are derived, in the order of the outputs."""
        return np.concatenate([self._of(kind) for kind in self.outputs])

    def _of(self, kind: str) -> NDArray[np.intp]:
        tree = self.problem.tree
        sizes = [tree.nv if own in ("tau", "qdd") else 6 * tree.n_links for own in KINDS]
        first = sum(sizes[: KINDS.index(kind)])
        return np.arange(first, first + sizes[KINDS.index(kind)])

    def errors(self, k: int, found: Floats, right: Floats) -> Floats:
        """How far each column of derivatives (n_rows, n_directions) is off, as a share of its size."""
        size, rows = self.sizes(k)[:, None], self.rows()
        whole = np.abs(right / size).max(axis=0)
        columns = np.maximum(np.abs(right / size)[rows].max(axis=0), LIGHTEST * np.where(whole > ZERO, whole, 1.0))
        if self.plan.system.is_weighted:
            with np.errstate(divide="ignore"):
                columns[-self.plan.system.n_weights :] += LIGHTEST / self.states.weights[k]
        off = np.abs((found - right[rows]) / size[rows]).max(axis=0)
        return np.where(off > 0, off / np.where(columns > 0, columns, np.finfo(float).tiny), 0.0)

    def explained(self, k: int) -> Floats:
        """How far each column may be off: how far the truth moves when data or rows change by rounding."""
        here = self.right(self.parts(k))
        assert here is not None
        largest = np.zeros(here.shape[1])
        for problem, states, nudge in nudged_problems(self.problem, self.states[k : k + 1], NUDGES):
            other = replace(self, problem=problem, states=states)
            given = other.parts(0)
            if nudge is not None:
                given = given._replace(exact=given.exact.nudged(nudge), weighed=given.weighed.nudged(nudge))
            there = self.right(given)
            if there is None:
                return np.full(here.shape[1], np.inf)
            largest = np.maximum(largest, self.errors(k, there[self.rows()], here))
        return EXPLAINED * largest


def arrays(found, n_outputs: int) -> Floats:
    """Derivatives as they are returned, all outputs by the first input first, as (n_rows, n_directions)."""
    each = [array.reshape(-1, array.shape[-1]) for array in found]
    return np.concatenate([np.concatenate(each[k : k + n_outputs]) for k in range(0, len(each), n_outputs)], axis=1)


def found(case: Case, by: EstimateDerivative, k: int) -> Iterator[tuple[str, Floats | None]]:
    """Yield the derivatives at a state by each entry; None where they are refused."""
    state = case.state(k)
    for name, value in zip(case.names, state, strict=True):
        getattr(by.inputs, name)[:] = value
    if by.tick() == 0:
        yield "tick", arrays(by.outputs, len(case.outputs))
    try:
        yield "call", arrays(by(*state), len(case.outputs))
    except SingularSystemError:
        yield "call", None


def judged(case: Case, by: EstimateDerivative, k: int) -> Iterator[str]:
    """Yield what is wrong at a state."""
    right = case.right(case.parts(k))
    if right is None or not np.isfinite(case.truth.d[k]).all():
        return
    may: Floats | None = None
    for entry, values in found(case, by, k):
        off = None if values is None else case.errors(k, values, right)
        if off is not None and (off <= TOLERANCE).all():
            continue
        may = case.explained(k) if may is None else may
        if off is None:
            if may.max() < FALSE_REFUSAL:
                yield f"{entry}: refused, though well conditioned"
        elif not (off <= TOLERANCE + may).all():
            column = int(np.argmax(off - may))
            yield f"{entry}: off by {off[column]:.1e} in column {column}, of which {may[column]:.1e} is explained"


def again(seed: int, family: str, backend: str, state: int) -> None:
    """Print what is wrong at one state of one case, and its columns."""
    case = Case.of(seed, family, STATES)
    assert case is not None
    by = case.plan.derivative(*case.names, outputs=case.outputs, backend=backend)
    right = case.right(case.parts(state))
    print(case.problem.tree.I[:, 5, 5], case.outputs, *judged(case, by, state), sep="\n")
    for entry, values in found(case, by, state):
        if values is not None and right is not None:
            print(entry, case.errors(state, values, right))


@pytest.mark.parametrize("family", list(FAMILIES))
def test_no_derivative_is_wrong_in_silence(family, attack_scale, attack_seed, attacked, attack_scripts):
    failures, is_short = [], attack_scale < 1
    for number in [SOON[family]] if is_short else range(round(PROBLEMS * attack_scale)):
        seed = 1000 * attack_seed + 100 * list(FAMILIES).index(family) + number
        case = Case.of(seed, family, FEW if is_short else STATES)
        if case is None:
            assert attack_seed or not is_short, "nothing is tried"
            continue
        backend = "numpy" if is_short or number % 4 else backends()[0]
        by = case.plan.derivative(*case.names, outputs=case.outputs, backend=backend)
        attacked("derivatives", len(case.states.q))
        for k in range(len(case.states.q)):
            for what in judged(case, by, k):
                path = attack_scripts / f"derivatives-{family}-{seed}-{backend}-{k}.py"
                path.write_text(SCRIPT.format(what=what, seed=seed, family=family, backend=backend, state=k))
                failures.append(f"{what}: {path}")
    assert not failures, "\n".join(failures)

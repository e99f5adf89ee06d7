"""Part (a): no wrong number without a flag, and no refusal of what is well conditioned.

Random robots, sensors, weights and poses run through the backends, as single states, batches, ticks and exported C,
against the oracle. A state is wrong where it is off by more than a tolerance and what its condition explains.
"""

import tempfile
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import NoriError, SingularSystemError
from nori_dyn.estimation.plan import Plan
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.program.compiler import find_compiler
from nori_dyn.solve.solver import Solver
from tests.attack.judge import KINDS, TOLERANCE, Truth, errors, explained, find_truth
from tests.attack.oracle import States
from tests.attack.problems import FAMILIES, Problem, draw
from tests.exported import Exported

Floats = np.ndarray

PROBLEMS = 1
"""Problems of a family that are tried by default."""

STATES, FEW = 250, 25
"""States of a problem; how many of them where the scale is below 1."""

SINGLE = 10
"""Of these, how many are tried one by one too where that takes time."""

FALSE_REFUSAL = 1e-9
"""A state that rounding moves by less than this must not be refused."""

SCRIPT = '''"""Do a failure of the attack on numbers again: a state that is {what}."""

from tests.attack.test_numbers import again

again(seed={seed}, family="{family}", entry="{entry}", backend="{backend}", state={state})
'''


def by_batch(plan: Plan, solver: Solver, states: States) -> Floats:
    """d (N, size) of all states, nan where it is refused."""
    weights = states.weights if plan.system.is_weighted else None
    batch = solver.solve_batch(states.q, states.qd, states.y, weights, singular="nan")
    return np.concatenate([batch[kind].reshape(len(states.q), -1) for kind in KINDS], axis=1)


def by_solve(plan: Plan, solver: Solver, states: States) -> Floats:
    """The same of states one by one."""
    found = []
    for q, qd, y, weights in zip(*states, strict=True):
        try:
            estimate = solver.solve(q, qd, y, weights if plan.system.is_weighted else None)
            found.append(np.concatenate([np.ravel(estimate[kind]) for kind in KINDS]))
        except SingularSystemError:
            found.append(np.full(plan.system.shape[1], np.nan))
    return np.array(found)


def by_tick(plan: Plan, solver: Solver, states: States) -> Floats:
    """The same of ticks."""
    found = []
    for state in zip(*states, strict=True):
        for name, value in zip(("q", "qd", "y", "weights"), state, strict=True):
            getattr(solver.inputs, name)[:] = value
        status = solver.tick()
        d = np.concatenate([np.ravel(getattr(solver.outputs, kind)) for kind in KINDS])
        assert status.ok == bool(np.isfinite(d).all()), status
        found.append(d)
    return np.array(found)


def by_export(plan: Plan, _: Solver, states: States) -> Floats:
    """The same of exported C."""
    found = []
    with tempfile.TemporaryDirectory() as folder:
        made = Exported.of(plan, Path(folder))
        for state in zip(*states, strict=True):
            status, outputs = made.solve(*state)
            found.append(np.concatenate([np.ravel(outputs[kind]) for kind in KINDS]))
            assert (status == 0) == np.isfinite(found[-1]).all()
    return np.array(found)


ENTRIES: dict[str, Callable[[Plan, Solver, States], Floats]] = {
    "batch": by_batch,
    "solve": by_solve,
    "tick": by_tick,
    "export": by_export,
}
USUAL = {"inverse": 1, "forward": 2, "hybrid": 1, "standing": 3, "redundant": 1, "mixed": 2, "held": 0, "vague": 0}
"""Which problem of a family is tried where the scale is below 1: one of two or three bodies, which compiles soon."""

EXPORTED = ("standing", "held")
"""Families whose problems are exported too where the scale is below 1; all are otherwise."""


def backends() -> list[str]:
    """The backends that run here."""
    return ["native"] * (find_compiler() is not None) + ["numpy"] + ["umfpack"] * has_umfpack()


def planned(problem: Problem) -> Plan | None:
    """The plan of a problem; None where its sensors do not suffice."""
    try:
        return nd.plan(nd.System(problem.tree, problem.sensors))
    except NoriError:
        return None


def judged(problem: Problem, states: States, truth: Truth, d: Floats) -> Iterator[tuple[str, int]]:
    """Yield what is wrong with d (N, size) at which states."""
    found = errors(truth, d)
    is_refused = ~np.isfinite(d).all(axis=1)
    suspects = np.flatnonzero(is_refused | ~(found <= TOLERANCE))
    if len(suspects):
        allowed = explained(problem, states[suspects], seed=0)
        for k, may in zip(suspects, allowed, strict=True):
            if is_refused[k]:
                if may < FALSE_REFUSAL:
                    yield "refused, though well conditioned", int(k)
            elif not found[k] <= TOLERANCE + may:
                yield f"off by {found[k]:.1e}, of which {may:.1e} is explained", int(k)


def normalised(problem: Problem, states: States) -> States:
    """States with quaternions of unit length, as a tick needs them."""
    return states._replace(q=problem.tree.normalised(states.q))


def again(seed: int, family: str, entry: str, backend: str, state: int) -> None:
    """Print one state of one problem beside the oracle."""
    problem = draw(seed, family)
    plan = planned(problem)
    assert plan is not None
    states = normalised(problem, problem.states(STATES, 0, plan.system.n_weights, plan.system.ny))[state : state + 1]
    d, truth = ENTRIES[entry](plan, plan.solver(backend), states), find_truth(problem, states)
    for name, value, right in zip(plan.system.variable_names, d[0], truth.d[0].astype(float), strict=False):
        print(f"{name:24} {value:22.15g} {right:22.15g}")
    print(*judged(problem, states, truth, d), sep="\n")


@pytest.mark.parametrize("family", list(FAMILIES))
def test_no_number_is_wrong_in_silence(family, attack_scale, attack_seed, attacked, attack_scripts):
    failures = []
    is_short = attack_scale < 1
    for number in [USUAL[family]] if is_short else range(round(PROBLEMS * attack_scale)):
        seed = 1000 * attack_seed + 100 * list(FAMILIES).index(family) + number
        problem = draw(seed, family)
        plan = planned(problem)
        if plan is None:
            assert attack_seed or not is_short, "nothing is tried"
            continue
        states = normalised(problem, problem.states(STATES, 0, plan.system.n_weights, plan.system.ny))
        states = states[:FEW] if is_short else states
        truths = {len(some.q): find_truth(problem, some) for some in (states, states[:SINGLE])}
        solvers = {backend: plan.solver(backend) for backend in backends()}
        for (backend, solver), (entry, run) in product(solvers.items(), ENTRIES.items()):
            if entry == "export" and (backend != "native" or (is_short and family not in EXPORTED)):
                continue
            some = states if entry == "batch" or backend == "native" else states[:SINGLE]
            attacked("ticks", len(some.q))
            if plan.system.is_weighted:
                attacked("weighted ticks", len(some.q))
            for what, state in judged(problem, some, truths[len(some.q)], run(plan, solver, some)):
                if entry == "export" and "refused" in what:
                    continue  # it solves nothing afresh
                path = attack_scripts / f"numbers-{family}-{seed}-{entry}-{backend}-{state}.py"
                known = {"seed": seed, "family": family, "entry": entry, "backend": backend, "state": state}
                path.write_text(SCRIPT.format(what=what, **known))
                failures.append(f"{what}: {path}")
    assert not failures, "\n".join(failures)

"""General sparse LU at each tick: factorise D and substitute. D and b are given: what they cost is left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

from benchmarks.measure import Run
from benchmarks.peers.base import Maker, Peer, load
from benchmarks.robots import Robot, States
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.estimation.system import System
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.typing import Floats

OUTPUTS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}


def _run(problem: str, prepare: Callable[[sp.csc_matrix, Floats], Callable[[], Floats]]) -> Maker:
    """Return the maker of a run that solves D d = -b at the first state."""

    def make(robot: Robot, states: States) -> Run:
        system = System(robot.tree, sensors(problem))
        q, qd, y = states.q[0], states.qd[0], states.y[0]
        D, b = sp.csc_matrix(system.D(q)), system.b(q, qd, y)
        columns = output_columns(system, resolve_outputs(system, (OUTPUTS[problem],)))
        solve = prepare(D, -b)
        return Run(solve, lambda: np.asarray(solve())[columns])

    return make


def _splu(D: sp.csc_matrix, right: Floats) -> Callable[[], Floats]:
    return lambda: np.asarray(spla.splu(D).solve(right))


def _umfpack(D: sp.csc_matrix, right: Floats) -> Callable[[], Floats]:
    module = load("scikits.umfpack")
    D = _with_ints(D)
    context = module.UmfpackContext("di")
    context.symbolic(D)

    def solve() -> Floats:
        context.numeric(D)
        return np.asarray(context.solve(module.UMFPACK_A, D, right))

    return solve


def _klu(D: sp.csc_matrix, right: Floats) -> Callable[[], Floats]:
    kvxopt, klu = load("kvxopt"), load("kvxopt.klu")
    A = _kvxopt_matrix(D)
    x = kvxopt.matrix(right)
    seen = np.asarray(memoryview(x)).reshape(-1)
    symbolic = klu.symbolic(A)

    def solve() -> Floats:
        seen[:] = right
        klu.solve(A, symbolic, klu.numeric(A, symbolic), x)
        return seen

    return solve


def _analysis(problem: str, prepare: Callable[[sp.csc_matrix], Callable[[], object]]) -> Maker:
    """Return the maker of a run that analyses the pattern of D, which is done once."""

    def make(robot: Robot, states: States) -> Run:
        return Run(prepare(sp.csc_matrix(System(robot.tree, sensors(problem)).D(states.q[0]))))

    return make


def _umfpack_analysis(D: sp.csc_matrix) -> Callable[[], object]:
    D = _with_ints(D)
    return lambda: load("scikits.umfpack").UmfpackContext("di").symbolic(D)


def _klu_analysis(D: sp.csc_matrix) -> Callable[[], object]:
    A, klu = _kvxopt_matrix(D), load("kvxopt.klu")
    return lambda: klu.symbolic(A)


def _with_ints(D: sp.csc_matrix) -> sp.csc_matrix:
    """Return a matrix whose indices are ints of C, which UMFPACK takes."""
    return sp.csc_matrix((D.data, D.indices.astype(np.int32), D.indptr.astype(np.int32)), shape=D.shape)


def _kvxopt_matrix(D: sp.csc_matrix) -> Any:
    entries = sp.coo_matrix(D)
    return load("kvxopt").spmatrix(entries.data, entries.row.tolist(), entries.col.tolist(), D.shape)


def _tasks(
    prepare: Callable[[sp.csc_matrix, Floats], Callable[[], Floats]],
    analyse: Callable[[sp.csc_matrix], Callable[[], object]] | None = None,
) -> dict[str, Maker]:
    tasks = {problem: _run(problem, prepare) for problem in OUTPUTS}
    if analyse is not None:
        tasks |= {f"{problem} analysis": _analysis(problem, analyse) for problem in OUTPUTS}
    return tasks


SPLU = Peer("SciPy splu", "scipy", "scipy.sparse.linalg", _tasks(_splu))
UMFPACK = Peer("UMFPACK", "scikit-umfpack", "scikits.umfpack", _tasks(_umfpack, _umfpack_analysis))
KLU = Peer("KLU", "kvxopt", "kvxopt.klu", _tasks(_klu, _klu_analysis))

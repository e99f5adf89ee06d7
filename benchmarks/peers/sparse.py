"""General sparse LU at each tick: factorise D and substitute. D and b are given: what they cost is left out."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import scipy.sparse as sp
import scipy.sparse.linalg as spla

import nori_dyn as nd
from benchmarks.harness import Run
from benchmarks.peers.base import Maker, Peer, load
from benchmarks.robots import Robot, States
from nori_dyn.planning.outputs import output_columns, resolve_outputs
from nori_dyn.typing import Floats

OUTPUTS = {"inverse_dynamics": "tau", "forward_dynamics": "qdd"}


def _tasks(prepare: Callable[[sp.csc_matrix, Floats], Callable[[], Floats]]) -> dict[str, Maker]:
    """Make runs that solve D d = -b at the first state."""

    def maker(problem: str, output: str) -> Maker:
        def make(robot: Robot, states: States) -> Run:
            system = nd.System(robot.tree, problem)
            q, qd, y = states.q[0], states.qd[0], states.y[0]
            columns = output_columns(system, resolve_outputs(system, (output,)))
            solve = prepare(sp.csc_matrix(system.D(q)), -system.b(q, qd, y))
            return Run(solve, lambda: np.asarray(solve())[columns])

        return make

    return {problem: maker(problem, output) for problem, output in OUTPUTS.items()}


def _splu(D: sp.csc_matrix, right: Floats) -> Callable[[], Floats]:
    return lambda: np.asarray(spla.splu(D).solve(right))


def _umfpack(D: sp.csc_matrix, right: Floats) -> Callable[[], Floats]:
    module = load("scikits.umfpack")
    D = sp.csc_matrix((D.data, D.indices.astype(np.int32), D.indptr.astype(np.int32)), shape=D.shape)
    context = module.UmfpackContext("di")
    context.symbolic(D)

    def solve() -> Floats:
        context.numeric(D)
        return np.asarray(context.solve(module.UMFPACK_A, D, right))

    return solve


def _klu(D: sp.csc_matrix, right: Floats) -> Callable[[], Floats]:
    kvxopt, klu, entries = load("kvxopt"), load("kvxopt.klu"), sp.coo_matrix(D)
    A = kvxopt.spmatrix(entries.data, entries.row.tolist(), entries.col.tolist(), D.shape)
    x = kvxopt.matrix(right)
    seen = np.asarray(memoryview(x)).reshape(-1)
    symbolic = klu.symbolic(A)

    def solve() -> Floats:
        seen[:] = right
        klu.solve(A, symbolic, klu.numeric(A, symbolic), x)
        return seen

    return solve


SPLU = Peer("SciPy splu", "scipy", "scipy.sparse.linalg", _tasks(_splu))
UMFPACK = Peer("UMFPACK", "scikit-umfpack", "scikits.umfpack", _tasks(_umfpack))
KLU = Peer("KLU", "kvxopt", "kvxopt.klu", _tasks(_klu))

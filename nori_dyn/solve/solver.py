"""The online solver: a plan, a backend, and the arrays that a control loop reads and writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.algebra.arrays import checked, shaped
from nori_dyn.errors import InputError
from nori_dyn.planning.diagnosis import singular_at
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.backends.base import RCOND_LIMIT, Solution, Status
from nori_dyn.program.backends.registry import make_backend
from nori_dyn.solve.estimate import Estimate, Layout
from nori_dyn.system.builder import System

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Inputs:
    """The arrays that `tick` reads: write into them, as in `inputs.q[:] = ...`.

    Attributes:
        q: configuration (nq,).
        qd: velocity (nv,).
        y: readings (ny,), in the order of `system.measurement_names`.
    """

    q: Floats
    qd: Floats
    y: Floats


class Solver:
    """Runs a plan on states. Cheap to make; not to be shared between threads.

    Attributes:
        plan: the plan.
        backend: name of the backend.
        inputs: the arrays that `tick` reads.
        outputs: the arrays that `tick` writes, by the names of the outputs: `outputs.tau`.
        tick: solves the state in `inputs`, writes `outputs`, and returns a status. It checks nothing of what it is
            given; quaternions in q must be of unit length. With the native backend it is one foreign call.

    Args:
        plan: the plan.
        backend: "auto", or a backend by name.
        check_residual: whether `solve` and `solve_batch` check, and report, the residual where all of d is computed; a
            state with a large one falls back. `tick` never does: its guard is that on the pivots.

    Raises:
        BackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.
    """

    def __init__(self, plan: EliminationPlan, backend: str = "auto", check_residual: bool = True) -> None:
        self.plan = plan
        self._backend = make_backend(backend, plan, check_residual)
        self._quick, self._name = self._backend.quick, self._backend.name
        self._layout = Layout(plan.system, plan.outputs)
        tree = plan.system.tree
        state = np.concatenate([tree.neutral_configuration(), np.zeros(tree.nv + plan.system.ny)])
        self.inputs = Inputs(*np.split(state, [tree.nq, tree.nq + tree.nv]))
        values = np.full(self._layout.size, np.nan)
        self._outputs = self._layout.views(values)
        self.outputs = SimpleNamespace(**self._outputs)
        self._run = self._backend.ticker(state, values)
        self.tick: Callable[[], Status] = self._turning if self._layout.turns else self._run

    def __repr__(self) -> str:
        return f"Solver({self.plan!r}, backend='{self.backend}')"

    @property
    def system(self) -> System:
        """The system that is solved."""
        return self.plan.system

    @property
    def backend(self) -> str:
        """Name of the backend."""
        return self._name

    def _turning(self) -> Status:
        status = self._run()
        self._layout.turn(self._outputs)
        return status

    def solve(self, q: Floats, qd: Floats, y: Floats | Mapping[str, Any]) -> Estimate:
        """Solve one state.

        Args:
            q: configuration (nq,) [rad, m; quaternions (x, y, z, w)].
            qd: velocity (nv,) [rad/s, m/s].
            y: readings (ny,) in the order of `system.measurement_names`, or {measurement name: value}.

        Raises:
            InputError: a wrong shape or name, a value that is not finite.
            SingularSystemError: no unique solution at this state; names what is not determined.
        """
        found = self._quick(q, qd, y)
        if found is not None:
            return Estimate(self._layout, found[0], found[1], self._name, False)
        tree, system = self.system.tree, self.system
        q = tree.normalised(checked("q", q, (tree.nq,)))
        qd = checked("qd", qd, (tree.nv,))
        flat = system.reading(y) if isinstance(y, Mapping) else y
        y = checked("y", flat, (system.ny,), system.measurement_names)
        solution = self._backend.solve(q, qd, y)
        if not solution.rcond >= RCOND_LIMIT:
            raise singular_at(system, q, float(solution.rcond))
        return self._estimate(solution)

    def solve_batch(self, Q: Floats, Qd: Floats, Y: Floats, threads: int = 1) -> Estimate:
        """Solve N states.

        Args:
            Q: configurations (N, nq).
            Qd: velocities (N, nv).
            Y: readings (N, ny) in the order of `system.measurement_names`.
            threads: number of threads, where the backend can use them.

        Returns:
            The same names as `solve`, each with a leading N.

        Raises:
            InputError: a wrong shape, a value that is not finite.
            SingularSystemError: no unique solution at one of the states; names the first.
        """
        tree, system = self.system.tree, self.system
        if np.ndim(Q) != 2 or len(Q) == 0:
            raise InputError(f"Q has shape {np.shape(Q)}, expected (N, {tree.nq}) with N at least 1.")
        N = len(Q)
        if self._backend.sees_bad_input and not tree.quaternions:  # one pass over the memory less
            Q, Qd = shaped("Q", Q, (N, tree.nq)), shaped("Qd", Qd, (N, tree.nv))
            Y = shaped("Y", Y, (N, system.ny))
        else:
            Q, Qd, Y = self._checked_batch(Q, Qd, Y)
        solution = self._backend.solve_batch(Q, Qd, Y, threads)
        singular = np.flatnonzero(~(solution.rcond >= RCOND_LIMIT))
        if len(singular):
            self._checked_batch(Q, Qd, Y)
            k = int(singular[0])
            raise singular_at(system, Q[k], float(solution.rcond[k]), f"state {k} of {N}")
        return self._estimate(solution)

    def _checked_batch(self, Q: Floats, Qd: Floats, Y: Floats) -> tuple[Floats, Floats, Floats]:
        tree, system, N = self.system.tree, self.system, len(Q)
        return (
            tree.normalised(checked("Q", Q, (N, tree.nq))),
            checked("Qd", Qd, (N, tree.nv)),
            checked("Y", Y, (N, system.ny), system.measurement_names),
        )

    def _estimate(self, solution: Solution) -> Estimate:
        # [()] takes the number out of an array of one state, and leaves that of a batch as it is
        return Estimate(self._layout, solution.values, solution.residual[()], self._name, solution.fell_back[()])

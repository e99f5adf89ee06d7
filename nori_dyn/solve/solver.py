"""The online solver: a plan, a backend, and the arrays that a control loop reads and writes."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from math import nan
from typing import Any, Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import DOUBLE, SINGLE, check_in_place, counted
from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import InputError, NoriWarning, UnknownNameError
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.diagnosis import singular_at
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiled import Arrays, Compiled, Solved, Watch, unwatched
from nori_dyn.program.kernel.base import Outcome, is_refused
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.kernel.registry import kernel_of
from nori_dyn.program.limits import RCOND_LIMIT
from nori_dyn.program.pivoting.fallback import Fallback
from nori_dyn.program.status import Status
from nori_dyn.solve.derivative import EstimateDerivative
from nori_dyn.solve.estimate import Estimate, OutputLayout
from nori_dyn.solve.plausibility.motion import degrees
from nori_dyn.system.builder import System, Weights
from nori_dyn.system.inputs import MISSING, Missing, State, checked_state, checked_states
from nori_dyn.tables import Shown
from nori_dyn.typing import Floats

LOOKED_AT = 64
"""States of a batch of which angles are looked at."""

Singular: TypeAlias = Literal["refuse", "nan"]
"""What to do with states of a batch that have no unique solution."""

SINGULAR: tuple[Singular, ...] = get_args(Singular)


def check_singular(singular: Singular) -> None:
    """Check the treatment of singular states.

    Raises:
        UnknownNameError: there is no such way.
    """
    if singular not in SINGULAR:
        raise UnknownNameError("way to treat singular states", singular, SINGULAR)


class Inputs(Arrays):
    """The arrays that `tick` reads.

    Attributes:
        q: configuration (nq,).
        qd: velocity (nv,).
        y: readings (ny,), in the order of `system.measurement_names`.
        weights: 1 / sigma^2 (n_weights,), in the order of `system.weight_names`; 0 leaves a sensor out. They begin as
            the sensors have it; empty where all rows hold exactly.
    """

    q: Floats
    qd: Floats
    y: Floats
    weights: Floats

    @staticmethod
    def of(state: Floats, tree: KinematicTree, ny: int) -> Inputs:
        """The parts of an array that holds them one after the other."""
        q, qd, y, weights = np.split(state, np.cumsum([tree.nq, tree.nv, ny]))
        return Inputs(q=q, qd=qd, y=y, weights=weights)


class Outputs(Arrays):
    """The arrays that `tick` writes, by the names of the outputs."""


class Solver(Compiled, Shown):
    """Runs a plan on states. Cheap to make; not to be shared between threads.

    Attributes:
        plan: the plan.
        backend: name of the backend.
        kernel: the kernel that runs it.
        inputs: the arrays that `tick` reads.
        outputs: the arrays that `tick` writes, by the names of the outputs: `outputs.tau`.
        is_doubting: whether `solve` and `solve_batch` warn, once, where angles look like degrees.
        tick: solves the state in `inputs`, writes `outputs`, and returns a status. It checks nothing of its
            given, ranges of sensors among it; quaternions in q must be of unit length. With the native backend it is
            one foreign call. Of weighted rows, see `prepare`.

    Args:
        plan: the plan.
        backend: "auto", or a backend by name.
        check_residual: whether `solve` and `solve_batch` check, and report, the residual where all of d is computed; a
            state with a large one falls back. `tick` never does: its guard is that on the pivots.
        watch: shows how far compiling is.
        wait: whether to wait for the compiler. If not, and nothing is cached, the plan runs through NumPy at first, and
            natively from the call on before which a thread has compiled it; see `backend`. Estimates are the same to
            rounding. That thread takes turns with the others: ticks are uneven until it has ended.

    Raises:
        PlanError: one instant does not determine the outputs of the plan, see `EliminationPlan.check_at_once`.
        InputError: not to wait for a backend that is not "auto".
        BackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.

    Example:
        >>> solver = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"]).solver()
        >>> solver.inputs.y[:] = 1.0, 1.0
        >>> solver.tick().ok
        True
        >>> print(np.round(solver.outputs.tau, 2))
        [3.5  1.17]
    """

    def __init__(
        self,
        plan: EliminationPlan,
        backend: str = "auto",
        check_residual: bool = True,
        watch: Watch = unwatched,
        wait: bool = True,
    ) -> None:
        plan.check_at_once()
        self.plan = plan
        self._tree, weights = plan.system.tree, plan.system.weights
        tree = self._tree
        with watch(f"preparing {tree.name}") as stage:
            stage("compiling")
            kernel = kernel_of(backend, plan, check_residual, wait)
        self._layout = OutputLayout(plan.system, plan.outputs)
        sizes = plan.system.input_sizes
        super().__init__(
            kernel,
            {name: (n,) for name, n in sizes.items()},
            self._layout.size,
            (weights,) if plan.system.is_weighted else (),
        )
        self._pivoting = Fallback(plan)
        self._is_ranged = plan.system.ranges is not None
        self._closes = bool(tree.closing_parts)
        state = np.concatenate([tree.neutral_configuration(), np.zeros(tree.nv + plan.system.ny), weights])
        self.inputs = Inputs.of(state, tree, plan.system.ny)
        values = np.full(self._layout.size, np.nan)
        self.outputs = Outputs(**self._layout.views(values))
        self.tick: Callable[[], Status] = self.ticker(state, values)
        self.is_doubting, self._calls = True, 0

    def __repr__(self) -> str:
        return f"Solver({self.plan!r}, backend='{self.backend}')"

    @property
    def system(self) -> System:
        """The system that is solved."""
        return self.plan.system

    @property
    def cost(self) -> Cost:
        """Counted operations of a tick."""
        return self.plan.cost

    @property
    def native(self) -> NativeKernel | None:
        """The kernel, where it is native code."""
        return self.kernel if isinstance(self.kernel, NativeKernel) else None

    def prepare(self) -> None:
        """Compile the refinement of states off the fast path, before a control loop begins.

        Otherwise it is compiled when it is first needed: by `solve` at once, by `tick` in a thread, and `tick` solves
        such states with pivoting until it is there.

        Raises:
            CompilerError: the compiler fails.
        """
        self.kernel.prepare()

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        """A function that does the work of `tick` on the caller's arrays.

        Args:
            state: its inputs: q, qd, y and the weights, one after the other (nq + nv + ny + n_weights,).
            values: its outputs, one after the other, in the layout of `OutputLayout.views`.

        Raises:
            InputError: not arrays of doubles in one piece, of these lengths, with nothing in common.
        """
        check_in_place("state", state, self.system.n_inputs, is_written=False)
        check_in_place("values", values, self._layout.size, is_written=True)
        if np.may_share_memory(state, values):
            raise InputError("state and values share memory: a tick would overwrite its inputs.")
        kernel, layout, pivoting = self.kernel, self._layout, self._pivoting  # without self: it would stay alive
        at, outputs = kernel.bind(state, values), layout.views(values)
        again = kernel.bound(at)
        parts = self.system.split(state)

        def otherwise() -> Status:
            outcome = again()
            if outcome == Outcome.NOT_USUAL:
                kernel.prepare(wait=False)
            cause = pivoting.cause(kernel, at, outcome, parts, values)
            values[:], residual, rcond = pivoting.solve(*parts)
            is_solved = rcond >= RCOND_LIMIT and bool(np.isfinite(values).all())
            return Status(is_solved, True, residual, rcond, cause=cause)

        run: Callable[[], Status] = kernel.bound(at, returns=(Status(), otherwise))

        def turning() -> Status:
            status = run()
            layout.turn(outputs)
            return status

        return turning if layout.turns else run

    def solve(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        y: ArrayLike | Mapping[str, Any],
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Estimate:
        """Solve one state.

        Args:
            q: configuration (nq,) [rad, m; quaternions (x, y, z, w)].
            qd: velocity (nv,) [rad/s, m/s].
            y: readings (ny,) in the order of `system.measurement_names`, or {measurement name: value}.
            weights: 1 / sigma^2 (n_weights,) in the order of `system.weight_names`, or {name: value}; as the sensors
                have it when None. 0 leaves a sensor out.
            missing: treatment of a reading that is not a number, or at an end of its sensor's range: "refuse" it,
                or "drop" the sensor, whose weight is then 0.

        Raises:
            InputError: a wrong shape or name, a value that is not finite, a saturated sensor, a weight below zero.
            SingularSystemError: no unique solution at this state; names the undetermined variables.

        Example:
            >>> solver = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics")).solver()
            >>> estimate = solver.solve(np.zeros(2), np.zeros(2), {"qdd:joint1": 1.0, "qdd:joint2": 0.0})
            >>> print(np.round(estimate.tau, 2), estimate.residual < 1e-12)
            [2.67 0.83] True
        """
        found: Solved | None = None
        if weights is None and missing in MISSING:
            outcome = self._solve(q, qd, y)
            if not outcome:
                found = self._copy(), self._at.residual if self._has_residual else nan, False, 1.0
            elif not is_refused(outcome):
                found = self._otherwise((*map(np.asarray, (q, qd, y)), *self._defaults), "this state")
        if found is None or (self._is_ranged and self.system.saturated(np.asarray(y)).any()):
            found = self.solved(*checked_state(self.system, q, qd, y, weights, missing))
        if found[2] and not found[3] >= RCOND_LIMIT:  # the planned order, where it holds, has no rcond
            state, rcond = checked_state(self.system, q, qd, y, weights, missing), float(found[3])
            raise singular_at(self.system, state[0], rcond, weights=state[3] if state[3:] else None)
        self._calls = calls = self._calls + 1
        if not calls & (calls - 1):  # at calls 1, 2, 4, 8 and so on
            self._look_at(q)
        if self._closes:
            return Estimate(self._layout, found, self.kernel.name, False, np.array(q, dtype=float))
        return Estimate(self._layout, found, self.kernel.name)

    def solve_batch(
        self,
        Q: ArrayLike,
        Qd: ArrayLike,
        Y: ArrayLike,
        weights: Weights = None,
        missing: Missing = "refuse",
        threads: int = 1,
        singular: Singular = "refuse",
        out: Estimate | Floats | None = None,
        dtype: Any = "float64",
    ) -> Estimate:
        """Solve N states.

        Args:
            Q: configurations (N, nq).
            Qd: velocities (N, nv).
            Y: readings (N, ny) in the order of `system.measurement_names`.
            weights: see `solve`; for all states, or (N, n_weights).
            missing: see `solve`.
            threads: number of threads, where the backend can use them; the estimates do not depend on it.
            singular: treatment of states that have no unique solution: "refuse" the batch, or give "nan" for all
                that they have, and name them in `Estimate.singular`.
            out: where to write, so that no memory is asked for: the estimate that an earlier call returned, of as many
                states, which is returned again, or an array (N, size), which the estimate is then a view of: the
                outputs one after the other. It is overwritten, even where the batch is refused.
            dtype: "float64", or "float32" for single precision, where all rows hold exactly: see
                `CompiledFunction.batch`. There a pivot may be a hundredth of its usual size and a residual 5e-4; what
                is beyond is solved in doubles.

        Returns:
            The same names as `solve`, each with a leading N.

        Raises:
            InputError: a wrong shape, a value that is not finite, a saturated sensor, a weight below zero; `out` is not
                of these states and outputs, cannot be written, or shares memory with an input; floats with weights.
            SingularSystemError: no unique solution at one of the states; names the first.

        Example:
            >>> solver = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics")).solver()
            >>> solver.solve_batch(np.zeros((100, 2)), np.zeros((100, 2)), np.ones((100, 2))).tau.shape
            (100, 2)
        """
        if singular != "refuse":
            check_singular(singular)
        found, quickly, number_type = None, self._batch_quickly, DOUBLE
        if dtype != "float64" and (number_type := self._number_type(dtype)) == SINGLE:
            quickly = self._singles_quickly
        if weights is None and missing == "refuse" and not self._is_ranged:
            memory = None if out is None else self._layout.memory_of(out)
            found = quickly((Q, Qd, Y), threads, None, memory)
        if found is None:
            states = checked_states(self.system, Q, Qd, Y, weights, missing)
            threads, N = counted("threads", threads), len(states[0])
            if out is None:
                values = np.empty((N, self._layout.size), number_type)
            else:
                values = self._layout.values_of(out, N, {"Q": Q, "Qd": Qd, "Y": Y, "weights": weights}, number_type)
            found = values, *self.solved_batch(states, (values,), threads)
        if found[3].__class__ is not float:  # one for all: nothing is wrong with any
            self._refuse(np.asarray(found[3]), (Q, Qd, Y, weights, missing), singular)
        self._calls = calls = self._calls + 1
        if not calls & (calls - 1):
            self._look_at(Q)
        q = np.array(Q, dtype=float) if self._closes else None
        if out is not None and isinstance(out, Estimate):
            return out.become(found, q)
        return Estimate(self._layout, found, self.kernel.name, q=q)

    __call__, batch = solve, solve_batch

    def _write(self, values: Floats, states: Sequence[Floats], threads: int) -> None:
        self.solve_batch(*states, threads=threads, out=values, dtype=values.dtype)  # type: ignore[arg-type,misc]

    def _formed(self, values: Any) -> dict[str, Any]:
        return self._layout.views(values)

    def _derivative(self, wrt: Sequence[str]) -> Compiled:
        return EstimateDerivative(self.plan, wrt)

    def _check(self, given: Sequence[Any], batch: tuple[int, ...] = ()) -> State:
        q, qd, y, *weights = given
        check: Callable[..., State] = checked_states if batch else checked_state
        return check(self.system, q, qd, y, weights[0] if weights else None, "refuse")

    def _otherwise(self, state: Sequence[Floats], which: str) -> Solved:
        q, *others = state
        if self.system.tree.quaternions and np.isfinite(q).all():
            q = self.system.tree.normalised(q)
        values, residual, rcond = self._pivoting.solve(q, *others)
        return values, residual, True, rcond

    def _look_at(self, q: ArrayLike) -> None:
        """Warn where angles look like degrees, the first time."""
        if not self.is_doubting:
            return
        doubt = degrees(self.system.tree, np.atleast_2d(np.asarray(q, dtype=float))[:LOOKED_AT])
        if doubt is not None:
            self.is_doubting = False
            warnings.warn(f"robot '{self.system.tree.name}': {doubt.message}", NoriWarning, stacklevel=3)

    def _refuse(self, rcond: Floats, given: tuple[Any, ...], singular: Singular) -> None:
        """Refuse a batch with states that have no unique solution, or that are no states.

        Args:
            rcond: the reciprocal condition number of each (N,).
            given: all that `checked_states` takes.
            singular: whether singular ones are let pass.
        """
        without = np.flatnonzero(~(rcond >= RCOND_LIMIT))
        if not len(without):
            return
        states = checked_states(self.system, *given)  # an invalid state is refused here
        if singular == "refuse":
            k, more = int(without[0]), len(without) - 1
            where = f"state {k} of {len(rcond)}" + (f", and at {more} more" if more else "")
            each = states[3][k] if states[3:] else None
            raise singular_at(self.system, states[0][k], float(rcond[k]), where, each)

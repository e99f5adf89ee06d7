"""Derivatives of the estimates of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from nori_dyn.errors import PlanError, SingularSystemError
from nori_dyn.planning.diagnosis import singular_at
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiled import Order, Solved, Watch, unwatched
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.limits import RCOND_LIMIT
from nori_dyn.program.pivoting.derivative import PivotingDerivative
from nori_dyn.program.sensitivity import Derivatives
from nori_dyn.system.inputs import checked_state, checked_states
from nori_dyn.typing import Floats


class EstimateDerivative(CompiledFunction):
    """The derivatives of a plan's estimates, as a compiled function; see `Plan.derivative`.

    Guarded as estimates are: a state at which pivots of the plan come near zero, or at which a step of refinement would
    move a function of weighed readings by more than 3e-9, is re-factorised with pivoting, in extended
    precision. That takes milliseconds for an arm, up to a second for a humanoid. `tick` does not do it, but returns a
    number that is not 0 where it should be done, or where the derivatives are not finite.

    Attributes:
        system: the system.
        names: names of the derivatives, in the order in which they are returned.

    Args:
        plan: the plan.
        wrt: names of inputs.
        outputs: names of outputs; those of the plan when None.
        backend: "native", "numpy", or "auto".
        watch: shows how far compiling is.

    Raises:
        InputError, UnknownNameError, UnknownOutputError, PlanError, BackendError: see `Plan.derivative`.

    Example:
        >>> plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
        >>> by = plan.derivative("q", "y")
        >>> by.names
        ('dtau_dq', 'dtau_dy')
        >>> print(np.round(by(np.zeros(2), np.ones(2), np.zeros(2)).dtau_dy, 2))  # the inertia matrix
        [[2.67 0.83]
         [0.83 0.33]]
    """

    def __init__(
        self,
        plan: EliminationPlan,
        wrt: Sequence[str],
        outputs: Sequence[str] | None = None,
        backend: str = "auto",
        watch: Watch = unwatched,
    ) -> None:
        plan.check_at_once()
        self.system = plan.system
        with watch(f"derivatives of {plan.system.tree.name} with {plan.system.sensors.name}") as stage:
            stage("differentiating")
            self._asked = Derivatives.of(plan, wrt, outputs)
            traced = self._asked.traced()
            self.names = tuple(traced.outputs)
            stage("compiling")
            super().__init__(traced, backend, watch)
        if self.system.is_weighted:
            self.inputs.weights[:] = self.system.weights

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The derivatives at one state: q, qd, y, and weights where there are any other than the configured ones.

        Raises:
            InputError: as `Solver.solve`.
            SingularSystemError: the system is singular at this state.
        """
        return super().__call__(*checked_state(self.system, *self._given(args, kwargs), "refuse"))

    def batch(
        self,
        *args: Any,
        threads: int = 1,
        order: Order = "C",
        out: Any = None,
        dtype: Any = "float64",
        **kwargs: Any,
    ) -> Any:
        """The derivatives at N states, each with a leading N; for the arguments see `CompiledFunction.batch`.

        Raises:
            InputError: as `Solver.solve_batch`, and as `CompiledFunction.batch` for `out` and `threads`.
            SingularSystemError: the system is singular at a state; names the first.
        """
        given = self._given(args, kwargs)
        states: Sequence[Any] = given[:3]
        if not self._are_plain(*given):
            states = checked_states(self.system, *given, "refuse")
        elif self.system.is_weighted:
            states = *states, np.broadcast_to(self.system.weights, (len(given[0]), self.system.n_weights))
        return super().batch(*states, threads=threads, order=order, out=out, dtype=dtype)

    def export(self, folder: str | Path, lang: str = "c", name: str | None = None) -> NoReturn:
        """Refuse: only estimates, and the results of a monitor or a tracker, can be exported as source code.

        Raises:
            PlanError: always.
        """
        raise PlanError(
            "derivatives of estimates are not written as C. Export the plan, plan.export(folder), and take differences "
            "of its estimates; or call these from Python."
        )

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
        """q, qd, y and weights as they are given; None for those of the sensors."""
        if self.system.is_weighted and len(args) < len(self._shapes):
            kwargs = {"weights": None, **kwargs}
        q, qd, y, *weights = self._named(args, kwargs)
        return q, qd, y, weights[0] if weights else None

    def _are_plain(self, *given: Any) -> bool:
        """Whether q, qd, y are doubles of N states, weights the usual ones: kernels refuse what is wrong in them."""
        *arrays, weights = given
        if weights is not None or self.system.ranges is not None or any(type(x) is not np.ndarray for x in arrays):
            return False
        wanted = [(*arrays[0].shape[:1], *shape) for shape in self._shapes.values()]
        return all(x.dtype == float and x.shape == shape for x, shape in zip(arrays, wanted, strict=False))

    def _check(self, given: Sequence[Any], batch: tuple[int, ...] = ()) -> list[Floats]:
        q, qd, y, *weights = given
        check = checked_states if batch else checked_state
        return [*check(self.system, q, qd, y, weights[0] if weights else None, "refuse")]

    def _otherwise(self, state: Sequence[Floats], which: str) -> Solved:
        found, rcond = self._fresh.at(*state)
        if found is None and rcond >= RCOND_LIMIT:
            lost = f"{self._function.name} {self._no_result} at {which}, whose estimate has a rcond of {rcond:.2g}."
            raise SingularSystemError(lost)
        if found is None:
            raise singular_at(self.system, state[0], rcond, which, state[3] if state[3:] else None)
        return np.concatenate([array.ravel() for array in self._asked.arranged(found).values()]), np.nan, True, rcond

    @cached_property
    def _fresh(self) -> PivotingDerivative:
        asked = self._asked
        return PivotingDerivative(asked.plan, asked.wrt, [row for rows in asked.sums for row in rows])

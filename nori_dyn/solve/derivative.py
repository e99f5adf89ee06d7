"""Derivatives of the estimates of a plan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.functions import CompiledFunction, Watch, unwatched
from nori_dyn.program.sensitivity import traced_derivative
from nori_dyn.system.inputs import checked_state, checked_states


class EstimateDerivative(CompiledFunction):
    """The derivatives of a plan's estimates, as a compiled function; see `Plan.derivative`.

    Where the planned order does not hold at a state, no derivative is returned, as none is that is not accurate to a
    few parts in 1e9 of the estimate's natural size. What is returned depends on no other state.

    Attributes:
        system: the system.
        names: names of the derivatives, in the order in which they are returned.

    Args:
        plan: the plan.
        wrt: names of inputs.
        outputs: names of outputs; those of the plan when None.
        backend: "native", "numpy", or "auto".
        watch: shows how far compiling is.
    """

    def __init__(
        self,
        plan: EliminationPlan,
        wrt: Sequence[str],
        outputs: Sequence[str] | None = None,
        backend: str = "auto",
        watch: Watch = unwatched,
    ) -> None:
        self.system = plan.system
        with watch(f"derivatives of {plan.system.tree.name} with {plan.system.sensors.name}") as stage:
            stage("differentiating")
            traced = traced_derivative(plan, wrt, outputs)
            self.names = tuple(traced.outputs)
            stage("compiling")
            super().__init__(traced, backend, watch)
        if self.system.is_weighted:
            self.inputs.weights[:] = self.system.weights

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Return the derivatives at one state: q, qd, y, and weights where there are any and they are not the usual.

        Raises:
            InputError: as `Solver.solve`.
            SingularSystemError: the derivatives are not finite, or lose their digits, at this state.
        """
        return super().__call__(*checked_state(self.system, *self._given(args, kwargs), "refuse"))

    def batch(
        self, *args: Any, threads: int = 1, order: Literal["C", "F"] = "C", out: Any = None, **kwargs: Any
    ) -> Any:
        """Return the derivatives at N states, each with a leading N; for the arguments see `CompiledFunction.batch`.

        Raises:
            InputError: as `Solver.solve_batch`, and as `CompiledFunction.batch` for `out` and `threads`.
            SingularSystemError: the derivatives are not finite, or lose their digits, at a state; names the first.
        """
        states = checked_states(self.system, *self._given(args, kwargs), "refuse")
        return super().batch(*states, threads=threads, order=order, out=out)

    def _given(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, Any, Any, Any]:
        """Return q, qd, y and weights as they are given; None for those of the sensors."""
        if self.system.is_weighted and len(args) < len(self._shapes):
            kwargs = {"weights": None, **kwargs}
        q, qd, y, *weights = self._named(args, kwargs)
        return q, qd, y, weights[0] if weights else None

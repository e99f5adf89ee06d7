"""A monitor: an estimate with what it is worth, and what its sensors are worth, at every tick or over a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.errors import PlanError
from nori_dyn.planning.outputs import Output, output_columns
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.uncertainty import uncertainty
from nori_dyn.program.functions import CompiledFunction, Watch, unwatched
from nori_dyn.program.layout import output_parts
from nori_dyn.program.tracing import Traced
from nori_dyn.solve.diagnosis import Diagnosis, Fault, spreads
from nori_dyn.solve.solver import Solver
from nori_dyn.solve.states import Missing, State, Weights, checked_state, checked_states
from nori_dyn.system.variables import component_names

Floats = NDArray[np.float64]


LEFT_OUT = 1e-8
"""Share of its weight that a sensor keeps when its weight is set to 0: its sigma is 10^4 times larger then."""


class Monitor:
    """Judges estimates and readings. Cheap to make once compiled; not to be shared between threads.

    A sensor whose weight is 0 has no residual; what no other sensor sees then has a deviation of 10^4 times its sigma.

    Attributes:
        solver: what makes the estimates.
        function: the compiled program: of q, qd, y and weights the variances of the outputs, the variance of the
            estimate along each weighed reading, and each residual; with a `tick` of its own.
        readings: names of the weighed readings (m).
        sensors: the sensor of each (m).

    Args:
        plan: the plan of a system with weighed rows and exact equations of motion.
        backend: "auto", or a backend by name.
        watch: shows how far compiling is.

    Raises:
        PlanError: no row is weighed, or the equations of motion are.
    """

    def __init__(self, plan: EliminationPlan, backend: str = "auto", watch: Watch = unwatched) -> None:
        system = plan.system
        if not system.is_weighted:
            raise PlanError(
                f"sensors '{system.sensors.name}' hold exactly: there is nothing to judge them by. Give a `sigma` to "
                "those that may be off, and more of them than needed."
            )
        weighed = [row for row in system.rows if not row.is_exact]
        noisy = [row.name for row in weighed if row.is_dynamic]
        if noisy:
            raise PlanError(
                f"'{noisy[0]}' has a sigma: readings are judged where the equations of motion hold exactly."
            )
        self.readings = tuple(n for row in weighed for n in component_names(row.name, row.equation.components))
        self.sensors = tuple(row.name for row in weighed for _ in row.equation.components)
        self._weight_of = np.array([k for row in weighed for k in row.weight_of_rows])
        self._free = system.shape[1] - (system.shape[0] - len(self.readings))
        self.solver = Solver(plan, backend, watch=watch)
        with watch("planning the monitor") as stage:
            stage("variances")
            traced = _traced(plan)
            stage("compiling")
            self.function = CompiledFunction(traced, "auto" if backend == "umfpack" else backend, watch)
        self._parts = {part.output.name: (part.slice, part.shape) for part in output_parts(system, plan.outputs)}

    def check(
        self,
        q: Floats,
        qd: Floats,
        y: Floats | Mapping[str, Any],
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Diagnosis:
        """Estimate one state and judge its readings; for the arguments see `Solver.solve`.

        Raises:
            InputError: a wrong shape or name, a value that is not finite, a weight below zero.
            SingularSystemError: no unique solution at this state; names what is not determined.
        """
        state = checked_state(self.solver.system, q, qd, y, weights, missing)
        q, qd, y, believed = self._believed(state)
        return self._judged(self.solver.solve(q, qd, y, believed), state, self.function(q, qd, y, believed))

    def check_batch(
        self,
        Q: Floats,
        Qd: Floats,
        Y: Floats,
        weights: Weights = None,
        missing: Missing = "refuse",
        threads: int = 1,
    ) -> Diagnosis:
        """Estimate N states and judge their readings; for the arguments see `Solver.solve_batch`.

        Raises:
            InputError: a wrong shape, a value that is not finite, a weight below zero.
            SingularSystemError: no unique solution at one of the states; names the first.
        """
        states = checked_states(self.solver.system, Q, Qd, Y, weights, missing)
        Q, Qd, Y, believed = self._believed(states)
        estimate = self.solver.solve_batch(Q, Qd, Y, believed, threads=threads)
        return self._judged(estimate, states, self.function.batch(Q, Qd, Y, believed, threads=threads))

    def faults(
        self,
        Q: Floats,
        Qd: Floats,
        Y: Floats,
        weights: Weights = None,
        missing: Missing = "refuse",
        false_alarms: float = 1e-3,
        most: int = 3,
    ) -> tuple[Fault, ...]:
        """Return the faulty sensors of N states in a row: the clearest, then that of the rest without it, and so on.

        Args:
            Q: configurations (N, nq).
            Qd: velocities (N, nv).
            Y: readings (N, ny).
            weights: see `Solver.solve`; for all states, or (N, n_weights).
            missing: see `Solver.solve`.
            false_alarms: how often a set of sound sensors may be accused.
            most: how many to look for.

        Raises:
            InputError: a wrong shape, a value that is not finite, a weight below zero.
            SingularSystemError: no unique solution at one of the states; names the first.
        """
        system = self.solver.system
        states = checked_states(system, Q, Qd, Y, weights, missing)
        W = states[-1].copy()
        found: list[Fault] = []
        while len(found) < most:
            flagged = self.check_batch(Q, Qd, states[2], W).flagged(false_alarms)  # dropped readings have no weight
            if not flagged:
                break
            found.append(flagged[0])
            mine = [k for k, sensor in zip(self._weight_of, self.sensors, strict=True) if sensor == flagged[0].sensor]
            W[:, mine] = 0.0
        return tuple(found)

    def _believed(self, state: State) -> State:
        """Return a state in which no weight is quite zero: what only a sensor left out sees stays finite, if vague."""
        return *state[:-1], np.maximum(state[-1], LEFT_OUT * self.solver.system.weights)

    def _judged(self, estimate: Any, state: State, found: tuple[Floats, Floats, Floats]) -> Diagnosis:
        variances, explained, residuals = found
        weights = state[-1][..., self._weight_of]
        residuals = np.where(weights > 0, residuals, np.nan)
        deviations = np.sqrt(np.maximum(variances, 0.0))
        squares = np.nansum(weights * residuals**2, axis=-1)
        freedom = np.sum(weights > 0, axis=-1) - self._free
        return Diagnosis(
            estimate=estimate,
            deviations={
                name: deviations[..., part].reshape(deviations.shape[:-1] + shape)
                for name, (part, shape) in self._parts.items()
            },
            readings=self.readings,
            sensors=self.sensors,
            residuals=residuals,
            spreads=spreads(weights, explained),
            chi_square=squares if squares.ndim else float(squares),
            degrees_of_freedom=freedom if freedom.ndim else int(freedom),
        )


def _traced(plan: EliminationPlan) -> Traced:
    """Return variances of the outputs, variances along the readings, and residuals, over the expressions of a plan."""
    system, symbolic = plan.system, plan.symbolic
    directions = [direction for output in plan.outputs for direction in _directions(plan, output)]
    found = uncertainty(plan, directions)
    outputs = {
        "variances": _array(found.variances),
        "explained": _array(found.explained),
        "residuals": _array(found.innovations),
    }
    inputs = {name: _array(scalars) for name, scalars in symbolic.inputs.items()}
    return Traced("monitor", system.tree, symbolic.graph, inputs, outputs, tuple, None)


def _directions(plan: EliminationPlan, output: Output) -> list[dict[int, float]]:
    """Return each number of an output as a sum of unknowns."""
    (part,) = output_parts(plan.system, [output])
    columns = output_columns(plan.system, [output]).tolist()
    if part.matrix is None:
        return [{column: 1.0} for column in columns]
    return [dict(zip(columns, map(float, row), strict=True)) for row in part.matrix]


def _array(values: Any) -> NDArray[np.object_]:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array

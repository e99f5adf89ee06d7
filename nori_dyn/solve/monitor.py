"""A monitor: an estimate with its uncertainty and a check of its sensors, at every tick or over a batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import counted
from nori_dyn.errors import SingularSystemError
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.layout import as_rows
from nori_dyn.program.monitoring import DRIFT, FLOOR, ROUNDING, SCALE, MonitoredReadings
from nori_dyn.program.remade import Remade
from nori_dyn.program.tracing import Traced
from nori_dyn.solve.covariance import Covariance
from nori_dyn.solve.diagnosis import Diagnosis, Fault, spreads
from nori_dyn.solve.estimate import Estimate, OutputLayout
from nori_dyn.solve.solver import Singular, Solver
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing, State, checked_state, checked_states
from nori_dyn.typing import Booleans, Floats


class Monitor(Remade):
    """Judges estimates and readings. Cheap to make once compiled; not to be shared between threads.

    Estimates are those of the solver. A sensor whose weight is 0 has no part in them and no residual; what no other
    sensor sees then has an infinite deviation. States with such sensors are re-factorised: the compiled program
    divides by weights.

    Attributes:
        solver: the solver of the estimates.
        function: the compiled program: of q, qd, y and weights the variances of the outputs, the variance of the
            estimate along each weighed reading, and each residual; with a `tick` of its own, for weights above 0.
        readings: names of the weighed readings (m).
        sensors: the sensor of each (m).

    Args:
        plan: the plan of a system with weighed rows and exact equations of motion.
        backend: "auto", or a backend by name.
        watch: shows how far compiling is.

    Raises:
        PlanError: no row is weighed, or the equations of motion are.

    Example:
        >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.1}
        >>> torques = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> sensors = nd.SensorSet.from_dict({"name": "pendulum", "measurements": [motion, torques, unloaded]})
        >>> monitor = nd.plan(nd.System(nd.autotree(1), sensors), outputs=["tau"]).monitor()
        >>> found = monitor.check(np.zeros(1), np.zeros(1), {"qdd:joint1": 1.0, "tau:joint1": 0.33})
        >>> print(np.round(found.deviations["tau"], 3), round(found.p_value, 2))
        [0.032] 0.97
    """

    def __init__(self, plan: EliminationPlan, backend: str = "auto", watch: Watch = unwatched) -> None:
        judged, system = MonitoredReadings.of(plan), plan.system
        self.readings, self.sensors = judged.readings, judged.sensors
        self._weight_of, self._needed = judged.weight_of, judged.needed
        self.solver = Solver(plan, backend, watch=watch)
        with watch("planning the monitor") as stage:
            stage("variances")
            traced = _traced(judged)
            stage("compiling")
            self.function = CompiledFunction(traced, "auto" if backend == "umfpack" else backend, watch)
        self._covariance = Covariance(system, as_rows(judged.directions, system.shape[1]))
        self._layout = OutputLayout(system, plan.outputs)

    def check(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        y: ArrayLike | Mapping[str, Any],
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Diagnosis:
        """Estimate one state and judge its readings; for arguments and errors see `Solver.solve`."""
        q, qd, y, w = checked_state(self.solver.system, q, qd, y, weights, missing)
        return self._judged(self.solver.solve(q, qd, y, w), (q, qd, y, w))

    def check_batch(
        self,
        Q: ArrayLike,
        Qd: ArrayLike,
        Y: ArrayLike,
        weights: Weights = None,
        missing: Missing = "refuse",
        threads: int = 1,
        singular: Singular = "refuse",
    ) -> Diagnosis:
        """Estimate N states and judge their readings; for arguments and errors see `Solver.solve_batch`.

        With singular="nan" the readings of singular states are judged as far as they check each other, and the
        deviations of undetermined outputs are infinite.
        """
        Q, Qd, Y, W = checked_states(self.solver.system, Q, Qd, Y, weights, missing)
        estimate = self.solver.solve_batch(Q, Qd, Y, W, threads=threads, singular=singular)
        return self._judged(estimate, (Q, Qd, Y, W), threads)

    def faults(
        self,
        Q: ArrayLike,
        Qd: ArrayLike,
        Y: ArrayLike,
        weights: Weights = None,
        missing: Missing = "refuse",
        false_alarms: float = 1e-3,
        most: int = 3,
    ) -> tuple[Fault, ...]:
        """Return the faulty sensors of N states in a row: the clearest, then that of the rest without it, and so on.

        The first takes no longer than `check_batch`. To judge the rest without it takes longer: milliseconds a state
        for an arm, up to a tenth of a second for a humanoid.

        At most `most` are looked for; a set of sound sensors is accused with the probability `false_alarms`. For the
        other arguments and errors see `Solver.solve_batch`.

        Example:
            >>> motion = {"type": "joint_acceleration", "joints": "all", "sigma": 0.1}
            >>> imu = motion | {"name": "imu"}
            >>> torques = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
            >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
            >>> sensors = nd.SensorSet.from_dict({"name": "pendulum", "measurements": [motion, imu, torques, unloaded]})
            >>> monitor = nd.plan(nd.System(nd.autotree(1), sensors), outputs=["tau"]).monitor()
            >>> Q, Qd, Y = np.zeros((20, 1)), np.zeros((20, 1)), np.tile([1.0, 1.5, 0.33], (20, 1))
            >>> [(fault.sensor, round(fault.offset, 1)) for fault in monitor.faults(Q, Qd, Y)]
            [('imu', 0.3)]
        """
        Q, Qd, Y, W = checked_states(self.solver.system, Q, Qd, Y, weights, missing)
        W, most = W.copy(), counted("most", most)
        judged = self.check_batch(Q, Qd, Y, W)
        found: list[Fault] = []
        while flagged := judged.flagged(false_alarms):
            found.append(flagged[0])
            if len(found) >= most:
                break
            mine = [k for k, sensor in zip(self._weight_of, self.sensors, strict=True) if sensor == flagged[0].sensor]
            W[:, mine] = 0.0
            judged = self._judged(judged.estimate, (Q, Qd, Y, W))  # its residuals alone: no new estimate is needed
        return tuple(found)

    def _judged(self, estimate: Estimate, state: State, threads: int = 1) -> Diagnosis:
        """The diagnosis of one state, or of N states, with singular ones among them."""
        weights = state[-1][..., self._weight_of]
        variances, explained, residuals, holds = self._computed(state, threads)
        needed = np.full(weights.shape[:-1], self._needed)
        for at in map(tuple, np.argwhere(~holds)):
            q, qd, y = (array[at] for array in state[:-1])
            variances[at], explained[at], residuals[at], needed[at] = self._covariance.at(q, qd, y, weights[at])
        residuals = np.where(weights > 0, residuals, np.nan)
        deviations = np.sqrt(np.maximum(variances, 0.0))
        squares = np.nansum(weights * residuals**2, axis=-1)
        freedom = np.sum(weights > 0, axis=-1) - needed
        return Diagnosis(
            estimate=estimate,
            deviations=self._layout.views(deviations),
            readings=self.readings,
            sensors=self.sensors,
            residuals=residuals,
            spreads=spreads(weights, explained),
            chi_square=squares if squares.ndim else float(squares),
            degrees_of_freedom=freedom if freedom.ndim else int(freedom),
        )

    def _computed(self, state: State, threads: int) -> tuple[Floats, Floats, Floats, Booleans]:
        """The outputs of the compiled program for one state, or for N states, and whether they are valid (...).

        It divides by weights, so that none may be 0. Rounding shows in the shares that readings have in the estimate,
        w_k Y_k P Y_k^T, which are to add up to the number of readings that it needs; and in variances that do not scale
        as the weights do.
        """
        *given, weights = state
        positive = np.where(weights > 0, weights, self.solver.system.weights)
        variances, explained, residuals = self._run((*given, positive), threads)
        again, *_ = self._run((*given, SCALE * positive), threads)
        with np.errstate(invalid="ignore", over="ignore"):
            shares = np.sum(positive[..., self._weight_of] * explained, axis=-1)
            holds = (weights > 0).all(axis=-1) & (np.abs(shares - self._needed) <= ROUNDING * self._needed)
            holds &= np.isfinite(variances).all(axis=-1) & self._agree(variances, SCALE * again)
        return variances, explained, residuals, holds

    def _agree(self, variances: Floats, again: Floats) -> Booleans:
        """Whether two computations of the same variances (..., n) differ by little (...)."""
        sizes, off = np.abs(variances), np.abs(variances - again)
        least = FLOOR * sizes.max(axis=-1, initial=0.0)
        agree = np.ones(sizes.shape[:-1], dtype=bool)
        for part in self._layout.parts.values():
            agree &= off[..., part.slice].max(axis=-1) <= DRIFT * sizes[..., part.slice].max(axis=-1) + least
        return agree

    def _run(self, state: State, threads: int) -> tuple[Floats, ...]:
        """Return the outputs of the compiled program, finite or not."""
        if state[0].ndim > 1:
            try:
                return tuple(self.function.batch(*state, threads=threads))
            except SingularSystemError:  # not finite at one of them: they are run one by one
                each = [self._run(one, 1) for one in zip(*state, strict=True)]
                return tuple(np.stack(parts) for parts in zip(*each, strict=True))
        for array, values in zip(vars(self.function.inputs).values(), state, strict=True):
            array[...] = values
        self.function.tick()
        return tuple(array.copy() for array in self.function.outputs)


def _traced(judged: MonitoredReadings) -> Traced:
    """Return variances of the outputs, variances along the readings, and residuals, over the expressions of a plan."""
    symbolic, found = judged.plan.symbolic, judged.uncertainty
    outputs = {
        "variances": np.array(found.variances, dtype=object),
        "explained": np.array(found.explained, dtype=object),
        "residuals": np.array(found.innovations, dtype=object),
    }
    inputs = {name: np.array(scalars, dtype=object) for name, scalars in symbolic.inputs.items()}
    return Traced("monitor", judged.plan.system.tree, symbolic.graph, inputs, outputs, tuple, None)

"""A monitor: an estimate with its uncertainty and a check of its sensors, at every tick or over a batch.

At single states, the covariance of an estimate comes of orthogonal factorisations: slow, and right where a program is
not. Where sensors have no weight, or the rank is lost, pivots of an elimination are zero; here the rank is found first.
Rows that hold exactly restrict the sources s to s = s_0 + Z z, with Z the null space of E; of the rest, the weighed
rows that are believed see z = V_1 z_1 and not V_2 z_2, and sqrt(W) A V_1 = Q R gives the covariance R^-1 R^-T of z_1.

Source: Bjoerck, Numerical Methods for Least Squares Problems, ch. 5.1.3 for the null-space method, 4.4 for the order of
rows and columns; own derivation of the rest (tests/regressions/test_monitor_without_sensors.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import counted
from nori_dyn.errors import SingularSystemError
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.kernel.base import NATIVE, Outcome
from nori_dyn.program.layout import as_rows
from nori_dyn.program.monitoring import DRIFT, FLOOR, ROUNDING, SCALE, MonitoredReadings
from nori_dyn.program.remade import Remade
from nori_dyn.program.tracing import Traced, Untraced
from nori_dyn.solve.diagnosis import Diagnosis, Fault, Judged
from nori_dyn.solve.estimate import Estimate, OutputLayout
from nori_dyn.solve.solver import Singular, Solver
from nori_dyn.system.builder import System, Weights
from nori_dyn.system.inputs import Missing, State, checked_state, checked_states
from nori_dyn.system.sources import NULL_TOLERANCE, natural_sizes, over_sources
from nori_dyn.typing import Booleans, Floats

CHUNK = 256
"""States that a thread judges before the next are computed: what is found of them stays in the cache."""


class Monitor(Remade):
    """Judges estimates and readings. Cheap to make once compiled; not to be shared between threads.

    Estimates are those of the solver. A sensor whose weight is 0 has no part in them and no residual; what no other
    sensor sees then has an infinite deviation. States with such sensors are re-factorised: the compiled program
    divides by weights.

    Attributes:
        solver: the solver of the estimates.
        function: the compiled program: of q, qd, y and weights the variances of the outputs (n), the residual of each
            weighed reading (m), and the variance of the estimate along each (m), one after the other (n + 2 m); with a
            `tick` of its own, for weights above 0.
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
            stage("compiling")
            self.function = CompiledFunction(_untraced(judged), "auto" if backend == "umfpack" else backend, watch)
            self._natively = judged.judgement() if self.function.backend == NATIVE else None
        self._covariance = Covariance(system, as_rows(judged.directions, system.shape[1]))
        self._layout, self._usual = OutputLayout(system, plan.outputs), system.weights
        self._rooms = np.empty((2, 0, self._layout.size + 2 * len(self.readings)))

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
        given = None if weights is None and missing == "refuse" else W
        estimate = self.solver.solve_batch(Q, Qd, Y, given, threads=threads, singular=singular)
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
        """The faulty sensors of N states in a row: the clearest, then that of the rest without it, and so on.

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
        is_one = state[0].ndim == 1
        states = [x[None] for x in state] if is_one else state
        N, n, m = len(states[0]), self._layout.size, len(self.readings)
        judged = Judged(np.empty((N, n)), np.empty((N, m)), np.empty((N, m)), np.empty((N, 1)))
        freedom, each = np.full(N, m - self._needed), CHUNK * max(threads, 1)
        for first in range(0, N, each):
            part = slice(first, first + each)
            own, results = [x[part] for x in states], Judged(*(x[part] for x in judged))
            for k in np.flatnonzero(~self._judge(own, results, threads)).tolist():
                freedom[first + k] = self._judge_one([x[k] for x in own], results, k)
        found: list[Any] = [*judged[:-1], judged.chi_square[:, 0], freedom]
        deviations, residuals, spreads, chi_square, freedom = (x[0] for x in found) if is_one else found
        return Diagnosis(
            estimate=estimate,
            deviations=self._layout.views(deviations),
            readings=self.readings,
            sensors=self.sensors,
            residuals=residuals,
            spreads=spreads,
            chi_square=float(chi_square) if is_one else chi_square,
            degrees_of_freedom=int(freedom) if is_one else freedom,
        )

    def _judge(self, states: Sequence[Floats], results: Judged, threads: int) -> Booleans:
        """Judge N states by the compiled program; return for which of them this is valid (N,).

        It divides by weights, so that none may be 0. Rounding shows in the shares that readings have in the estimate,
        w_k Y_k P Y_k^T, which are to add up to the number of readings that it needs; and in variances that do not scale
        as the weights do.
        """
        *given, weights = states
        is_whole = np.asarray((weights > 0).all(axis=1))
        weights = np.ascontiguousarray(weights if is_whole.all() else np.where(weights > 0, weights, self._usual))
        again, found = self._rooms_of(len(weights))
        for scaled, room in ((SCALE * weights, again), (weights, found)):
            with suppress(SingularSystemError):  # not finite at one of them: what is computed of others is written
                self.function.batch(*given, scaled, threads=threads, out=room)
        if self._natively is None:
            return is_whole & self._judge_by_numpy(weights, again, found, results)
        judged = self._natively((weights, again, found, *results), len(found), threads)
        assert judged is not None
        return np.logical_and(is_whole, True if judged[0] is None else judged[0] == Outcome.OK)

    def _judge_by_numpy(self, weights: Floats, again: Floats, found: Floats, results: Judged) -> Booleans:
        """What c/judge_batch.h does with the outputs of the program at two scales of the weights, which are above 0."""
        n, m = self._layout.size, len(self.readings)
        variances, residuals, explained = np.split(found, [n, n + m], axis=1)
        weights = weights[:, self._weight_of]
        results.write(slice(None), Judged.of(weights, variances, residuals, explained))
        with np.errstate(invalid="ignore", over="ignore"):
            holds = np.abs(np.sum(weights * explained, axis=1) - self._needed) <= ROUNDING * self._needed
            sizes, off = np.abs(variances), np.abs(SCALE * again[:, :n] - variances)
            least = FLOOR * sizes.max(axis=1, initial=0.0)
            for part in self._layout.parts.values():
                holds &= off[:, part.slice].max(axis=1) <= DRIFT * sizes[:, part.slice].max(axis=1) + least
        held: Booleans = holds & np.isfinite(found).all(axis=1)
        return held

    def _judge_one(self, state: Sequence[Floats], results: Judged, k: int) -> int:
        """Judge state k by orthogonal factorisations; return its degrees of freedom."""
        q, qd, y, weights = state
        weights = weights[self._weight_of]
        judged, needed = self._covariance.at(q, qd, y, weights)
        results.write(k, judged)
        return int(np.sum(weights > 0)) - needed

    def _rooms_of(self, N: int) -> Floats:
        """Room for what the compiled program computes of N states, twice (2, N, n + 2 m); it stays for the next."""
        if self._rooms.shape[1] < N:
            self._rooms = np.empty((2, N, self._rooms.shape[2]))
        return self._rooms[:, :N]


def _untraced(judged: MonitoredReadings) -> Untraced:
    """Variances of the outputs, residuals, and variances along the readings; traced where they are not compiled."""
    plan = judged.plan
    inputs = {name: (n,) for name, n in plan.system.input_sizes.items()}
    outputs = {"found": (len(judged.directions) + 2 * len(judged.readings),)}

    def trace() -> Traced:
        return _traced(replace(judged, plan=plan.untouched()))

    return Untraced("monitor", plan.system.tree, inputs, outputs, ("monitor", *plan.identity), trace)


def _traced(judged: MonitoredReadings) -> Traced:
    """The same over the expressions of a plan."""
    symbolic, found = judged.plan.symbolic, judged.uncertainty
    outputs = {"found": np.array([*found.variances, *found.innovations, *found.explained], dtype=object)}
    inputs = {name: np.array(scalars, dtype=object) for name, scalars in symbolic.inputs.items()}
    return Traced("monitor", judged.plan.system.tree, symbolic.graph, inputs, outputs, None, None)


MOVED = 1e-7
"""Share of a direction in the null space above which it is undetermined."""


class Covariance:
    """Factorises a system at each state.

    Args:
        system: a system with weighed rows and exact equations of motion.
        directions: sums of unknowns whose variance is wanted (n_directions, n).
    """

    def __init__(self, system: System, directions: Floats) -> None:
        self._system, self._directions = system, directions
        self._sizes = natural_sizes(system)

    def at(self, q: Floats, qd: Floats, y: Floats, weights: Floats) -> tuple[Judged, int]:
        """What is judged of a state, infinite deviations where nothing is determined; and how many readings it needs.

        Args:
            q: configuration (nq,), quaternions of unit length.
            qd: velocity (nv,).
            y: readings (ny,).
            weights: 1 / sigma^2 of each weighed row; where it is 0, the row has no part in the estimate.
        """
        at = over_sources(self._system, self._sizes, self._system.D(q, qd, y), self._system.b(q, qd, y))
        exact = self._system.exact_rows[at.rows]
        U, values, V, Z = _split(at.M[exact])
        start = -V @ (U.T @ at.m[exact] / values)
        A, off = at.M[~exact] @ Z, at.m[~exact] + at.M[~exact] @ start
        size = self._sizes.rows[at.rows[~exact]]
        _, _, observed, null_space = _split(A[weights > 0])
        z, factor = _weighed(A @ observed, off, np.sqrt(weights) * size)
        along = self._directions @ at.X @ Z
        variances, explained = (_variances(rows, observed @ factor, null_space) for rows in (along, A))
        residuals = -size * (A @ observed @ z + off)
        return Judged.of(weights, variances, residuals, size**2 * explained), observed.shape[1]


def _split(A: Floats) -> tuple[Floats, Floats, Floats, Floats]:
    """U_1, the singular values that are not zero, V_1 and V_2 of a matrix A: V_2 is its null space."""
    if not A.size:
        return np.zeros((len(A), 0)), np.zeros(0), np.zeros((A.shape[1], 0)), np.eye(A.shape[1])
    U, values, V = la.svd(A, full_matrices=A.shape[0] < A.shape[1])
    rank = int(np.sum(values > NULL_TOLERANCE * values.max(initial=0.0)))
    return U[:, :rank], values[:rank], V[:rank].T, V[rank:].T


def _weighed(A: Floats, off: Floats, roots: Floats) -> tuple[Floats, Floats]:
    """The z that makes roots * (A z + off) smallest, and a factor F of its covariance F F^T.

    Args:
        A: of full column rank where `roots` is not zero.
        off: the constant term of the rows.
        roots: 1 / sigma of each row, or 0.
    """
    if not A.shape[1]:
        return np.zeros(0), np.zeros((0, 0))
    B, c = roots[:, None] * A, roots * off
    heavy = np.argsort(-np.abs(B).max(axis=1, initial=0.0), kind="stable")
    Q, R, order = la.qr(B[heavy], mode="economic", pivoting=True)
    factor = np.empty(R.shape)
    factor[order] = la.solve_triangular(R, np.eye(len(R)))
    return np.asarray(-factor @ (Q.T @ c[heavy])), factor


def _variances(rows: Floats, factor: Floats, null_space: Floats) -> Floats:
    """The variance along each of some rows; infinite along those that the null space reaches."""
    size = np.linalg.norm(rows, axis=1)
    moved = np.linalg.norm(rows @ null_space, axis=1) > MOVED * size
    return np.asarray(np.where(moved, np.inf, np.sum((rows @ factor) ** 2, axis=1)))

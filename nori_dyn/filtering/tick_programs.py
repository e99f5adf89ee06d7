"""The programs of a tick of a filter: what its readings say of what is free, and all outputs from that."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from nori_dyn.algebra.collector import collector_at_rest
from nori_dyn.algebra.derivatives import directional
from nori_dyn.errors import InputError
from nori_dyn.filtering.bounded import GAUSSIAN, Spread, half_widths
from nori_dyn.filtering.free_coordinates import LEAST_PIVOT, Asked, FreeCoordinates, array_of, dense, free_coordinates
from nori_dyn.filtering.knowledge import MemoryState, information
from nori_dyn.filtering.square_root import MotionModel, SquareRootInformation
from nori_dyn.measurements.floating_base import SIZE, base_place
from nori_dyn.model.kinematics import velocities
from nori_dyn.planning.outputs import output_columns
from nori_dyn.program.compiled import Watch, unwatched
from nori_dyn.program.compiler import needed_compiler
from nori_dyn.program.functions import CompiledFunction
from nori_dyn.program.guards import pivot_guards
from nori_dyn.program.kernel.native import NativeKernel
from nori_dyn.program.layout import OutputSlice, output_parts
from nori_dyn.program.native_runs import NativeRuns
from nori_dyn.program.sparse import Places
from nori_dyn.program.tracing import Traced
from nori_dyn.program.track_source import LEAST_LEFT, TrackShape
from nori_dyn.solve.diagnosis import Diagnosis, spreads
from nori_dyn.solve.estimate import Estimate, OutputLayout
from nori_dyn.solve.solver import Singular, Solver
from nori_dyn.system.builder import System
from nori_dyn.tables import listed
from nori_dyn.typing import Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class MeasurementRows:
    """What a tick says of what is free, u (n,).

    Attributes:
        A, c: weighed rows say A u + c = 0 (p, n), (p,).
        X, x: what persists with a rate changes by X u + x in a second (n_v, n), (n_v,).
        fading: one over the time in which each number of the memory fades that does so as the state says [1/s].
    """

    A: Floats
    c: Floats
    X: Floats
    x: Floats
    fading: Floats


class TickPrograms:
    """Compiled, the same for all states of a system.

    Attributes:
        coordinates: the null-space coordinates, and the equations over them.
        solver: the outputs, given what is free.
        solver_state: q, qd, the exact readings and what is free, for a ticker of the solver.
        rows: computes the entries of A, c, X, x.
        layout: where the outputs lie.

    Args:
        plan: a plan of a system with memory, or what is asked for without one; or its equations over what is free.
        backend: as for `Solver`.
        watch: shows how far compiling is.

    Raises:
        PlanError: see `free_coordinates`.
        BackendError: there is no such backend.
    """

    def __init__(self, plan: Asked | FreeCoordinates, backend: str = "auto", watch: Watch = unwatched) -> None:
        with watch(f"planning the filter of {plan.system.tree.name}") as stage:
            stage("what is free")
            self.coordinates: FreeCoordinates = plan if isinstance(plan, FreeCoordinates) else free_coordinates(plan)
            stage("rows")
            function = self.coordinates.rows.function
        self.backend = backend
        self.rows = CompiledFunction(function, backend, watch)
        self.solver = Solver(self.coordinates.plan, backend, check_residual=False, watch=watch)
        self.solver_state = np.zeros(self.coordinates.plan.system.n_inputs)
        self.layout = OutputLayout(self.coordinates.plan.system, self.coordinates.plan.outputs)
        self._watch = watch

    @property
    def system(self) -> System:
        """The system."""
        return self.coordinates.system

    @property
    def sizes(self) -> tuple[int, int, int]:
        """How many numbers of u do not persist, persist with a rate, and persist without."""
        return self.coordinates.sizes

    @property
    def memory_names(self) -> tuple[str, ...]:
        """The name of each number that persists."""
        return self.coordinates.names[self.sizes[0] :]

    @property
    def memory_units(self) -> tuple[str, ...]:
        """The unit of each."""
        return tuple(unit for one in self.coordinates.memory for unit in one.variable.units)

    @cached_property
    def gravity_weight(self) -> int | None:
        """Which weight is that of the size of gravity; None where no floating base is in the memory."""
        names = self.system.weight_names
        return names.index(SIZE) if SIZE in names else None

    @property
    def shape(self) -> TrackShape:
        """What the C of a tick depends on."""
        of, tree = self.coordinates, self.system.tree
        laws = [(walk, one.time_constant) for one in of.memory for walk in one.walk]
        fading = {k: number for number, k in enumerate(of.rows.fading)}
        return TrackShape(
            *of.sizes,
            p=len(of.row_names),
            A=of.rows.A,
            X=of.rows.X,
            n_motion=tree.nq + tree.nv,
            n_y=self.system.ny,
            exact=of.exact_readings.tolist(),
            weight_of=of.weight_of_rows.tolist(),
            walk=[walk for walk, _ in laws],
            jump=self.jumps if any(self.jumps) else (),
            inverse_time=[0.0 if T is None else 1 / T for _, T in laws],
            fading=[fading.get(k, -1) for k in range(len(laws))],
            base=base_place(self.memory_names),
        )

    @property
    def is_native(self) -> bool:
        """Whether all runs natively."""
        return self.solver.native is not None and isinstance(self.rows.kernel, NativeKernel)

    @property
    def native_kernels(self) -> tuple[NativeKernel, NativeKernel]:
        """The kernels of rows and outputs, where all runs natively."""
        rows, outputs = self.rows.kernel, self.solver.native
        assert isinstance(rows, NativeKernel)
        assert outputs is not None
        return rows, outputs

    @cached_property
    def runs(self) -> NativeRuns | None:
        """What runs over many ticks; None where not all runs natively."""
        if not self.is_native:
            return None
        with self._watch(f"compiling runs of {self.system.tree.name}"):
            return NativeRuns(self.shape, needed_compiler("the native filter"))

    @cached_property
    def jumps(self) -> tuple[float, ...]:
        """Standard deviation of how far each number of the memory changes where a contact switches (k,)."""
        return tuple(x for one in self.coordinates.memory for x in one.jump or (0.0,) * len(one.mean))

    def motion(self, measured: MeasurementRows, dt: float, knows_rates: bool = True) -> MotionModel:
        """How the memory moves on from a tick.

        Args:
            measured: what the tick says.
            dt: over this time [s].
            knows_rates: whether its state is known for as long: rates, and in which time numbers fade.
        """
        n_s, n_v, _ = self.sizes
        X_s, X_v, X_f = np.split(measured.X, [n_s, n_s + n_v], axis=1)
        decay, gained = self.decay(dt), self.gained(dt)
        if of_state := list(self.coordinates.rows.fading):
            sigma = np.array([s for one in self.coordinates.memory if one.part is not None for s in one.sigma or ()])
            decay[of_state] = left = (
                np.maximum(np.exp(-dt * measured.fading), LEAST_LEFT) if knows_rates else LEAST_LEFT
            )
            gained[of_state] = np.square(sigma) * (1 - np.square(left))
        return MotionModel(dt, X_s, X_v, X_f, measured.x, decay, gained, knows_rates)

    @property
    def nothing(self) -> MeasurementRows:
        """What a tick without readings says: nothing, and what fades as the state says has faded."""
        n, n_v = sum(self.sizes), self.sizes[1]
        faded = np.full(len(self.coordinates.rows.fading), np.inf)
        return MeasurementRows(np.zeros((0, n)), np.zeros(0), np.zeros((n_v, n)), np.zeros(n_v), faded)

    def measured(self, q: Floats, qd: Floats, y: Floats) -> MeasurementRows:
        """Measurement rows of a state (nq,), (nv,) with its readings (ny,)."""
        return self.measured_of(np.asarray(self.rows(q, qd, y)))

    def measured_each(self, Q: Floats, Qd: Floats, Y: Floats) -> Floats:
        """Measurement rows of N states, as numbers (N, n) that `measured_of` takes."""
        return np.asarray(self.rows.batch(Q, Qd, Y))

    def constants(self, values: Floats) -> Floats:
        """The constants c of the rows of sensors (..., p), of numbers (..., n_values) that `rows` computes."""
        start = len(self.coordinates.rows.A)
        return values[..., start : start + len(self.coordinates.row_names)]

    def measured_of(self, values: Floats) -> MeasurementRows:
        """Measurement rows of the numbers (..., n_values) that `rows` computes."""
        rows, (_, n_v, _) = self.coordinates.rows, self.sizes
        n, p = len(self.coordinates.names), len(self.coordinates.row_names)
        ends = np.cumsum([len(rows.A), p, len(rows.X), n_v])
        A, c, X, x, fading = np.split(values, ends, axis=-1)
        A, X = dense(rows.places_of_A, A, (p, n)), dense(rows.places_of_X, X, (n_v, n))
        return MeasurementRows(A, c, X, x, fading)

    def residuals(self, measured: MeasurementRows, weights: Floats, u: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Residuals of the weighed rows, readings less estimates (..., p), and their expected spreads (..., p).

        See `Diagnosis`.

        Args:
            measured: what ticks say of what is free, each array with a leading (...).
            weights: those of the rows (..., p).
            u: the estimate of what is free (..., n).
            P: its covariance (..., n, n).
        """
        A, with_weight = measured.A, weights > 0
        residuals = -((A @ u[..., None])[..., 0] + measured.c)
        explained = ((A @ P) * A).sum(axis=-1)
        return np.where(with_weight, residuals, np.nan), spreads(weights, explained)

    def beginning(self, state: MemoryState | None = None) -> SquareRootInformation:
        """Prior of the memory before the first reading: that of the sensors' config, or of a state that is given.

        Raises:
            InputError: what is given is of other numbers, or its covariance is none.
        """
        if state is not None:
            if state.names != self.memory_names:
                given, own = listed(state.names, 4), listed(self.memory_names, 4)
                raise InputError(f"the state is of {given}; what persists here is {own}.")
            return information(state)
        mean = [x for one in self.coordinates.memory for x in one.mean]
        sigmas = [x for one in self.coordinates.memory for x in one.sigma or (np.inf,) * len(one.mean)]
        return SquareRootInformation.of(np.array(mean), np.array(sigmas))

    def decay(self, dt: float | Floats) -> Floats:
        """Factors by which the numbers of the memory decay over a time (...) [s] (..., k)."""
        return np.stack([one.decay(dt) for one in self.coordinates.memory for _ in one.mean], axis=-1)

    def gained(self, dt: float | Floats) -> Floats:
        """The variance that each number of the memory gains over a time (...) [s] (..., k)."""
        return np.concatenate([one.variance(dt) for one in self.coordinates.memory], axis=-1)

    def outputs(self, q: Floats, qd: Floats, y: Floats, u: Floats, singular: Singular = "refuse") -> Estimate:
        """The outputs of a state, or of N states with a leading N, given what is free.

        Args:
            q: configuration (..., nq).
            qd: velocity (..., nv).
            y: readings (..., ny).
            u: what is free (..., n).
            singular: of N states, as for `Solver.solve_batch`.

        Raises:
            SingularSystemError: the exact rows have no unique solution there.
        """
        y = np.concatenate([y[..., self.coordinates.exact_readings], u], axis=-1)
        return self.solver.solve(q, qd, y) if q.ndim == 1 else self.solver.solve_batch(q, qd, y, singular=singular)

    def prepare(self) -> None:
        """Compile what tells how far the outputs may be off, too, which a tick does not need."""
        _ = self._slopes

    @cached_property
    def _slopes(self) -> tuple[CompiledFunction | None, Places]:
        """The derivatives of the outputs by u: their program, None where none depends on u, and the place of each."""
        found = self.coordinates.sparse_function("slopes of outputs", self._traced_slopes)
        (places,) = found.places.values()
        return CompiledFunction(found.function, self.backend, self._watch) if places else None, places

    @collector_at_rest()
    def _traced_slopes(self) -> tuple[dict[str, Places], Traced]:
        plan = self.coordinates.plan.untouched()
        columns = output_columns(plan.system, plan.outputs).tolist()
        symbolic, one = plan.symbolic, plan.symbolic.graph.one
        n_exact = len(self.coordinates.exact_readings)
        found = directional([plan.solved.unknowns[k] for k in columns], [{x.index: one} for x in symbolic.y[n_exact:]])
        places = tuple(sorted(found))
        inputs = {"q": array_of(symbolic.q), "qd": array_of(symbolic.qd), "y": array_of(symbolic.y[:n_exact])}
        outputs = {"slopes": array_of([found[place] for place in places])}
        guards = pivot_guards(plan, [*found.values()], LEAST_PIVOT)
        traced = Traced("slopes of outputs", plan.system.tree, symbolic.graph, inputs, outputs, None, None, guards)
        return {"slopes": places}, traced

    @cached_property
    def parts(self) -> tuple[OutputSlice, ...]:
        """Where each output lies."""
        return tuple(output_parts(self.coordinates.plan.system, self.coordinates.plan.outputs))

    def slopes(self, q: Floats, qd: Floats, y: Floats) -> Floats:
        """Derivatives of the outputs, one after the other, by u (..., n_out, n) at a state with readings."""
        (function, places), n_out = self._slopes, self.layout.size
        if function is None:
            return np.zeros((*q.shape[:-1], n_out, len(self.coordinates.names)))
        state = q, qd, y[..., self.coordinates.exact_readings]
        values = function(*state) if q.ndim == 1 else function.batch(*state)
        found = dense(places, np.asarray(values), (n_out, len(self.coordinates.names)))
        for part in self.parts:
            if part.matrix is not None:
                found[..., part.slice, :] = part.matrix @ found[..., part.slice, :]
        return found

    def spread(self, q: Floats, qd: Floats, y: Floats, covariance: Floats) -> Spread:
        """How far the outputs may be off, by name, in their shapes.

        Args:
            q: the configuration (..., nq).
            qd: the velocity (..., nv).
            y: readings (..., ny).
            covariance: that of u (..., n, n).
        """
        slopes = self.slopes(q, qd, y)
        shared = slopes @ covariance
        deviations = np.sqrt(np.maximum((shared * slopes).sum(axis=-1), 0.0))
        bands = self._half_widths((q, qd, covariance), shared, deviations)
        return Spread(self._by_output(deviations), self._by_output(bands))

    def _half_widths(self, at: tuple[Floats, Floats, Floats], shared: Floats, deviations: Floats) -> Floats:
        """Half of the width of the 95 % band of each number of the outputs (..., n_out), see `bounded`.

        Args:
            at: q, qd and the covariance, see `spread`.
            shared: covariance of the outputs with u (..., n_out, n).
            deviations: of the outputs (..., n_out).
        """
        q, qd, covariance = at
        each = [one for one in self.coordinates.memory if one.part is not None]
        if not each:
            return GAUSSIAN * deviations
        state = velocities(self.system.tree, np.moveaxis(q, -1, 0), np.moveaxis(qd, -1, 0))
        bounded = np.concatenate([one.part.bounded_share(state) for one in each if one.part is not None])
        places = [self.sizes[0] + k for k in self.coordinates.rows.fading]
        variances = np.diagonal(covariance, axis1=-2, axis2=-1)[..., places]
        before = np.square([sigma for one in each for sigma in one.sigma or ()])
        shares = np.moveaxis(bounded, 0, -1) * np.minimum(variances / before, 1.0)
        of_each = shared[..., places] / np.sqrt(np.where(variances > 0, variances, 1.0))[..., None, :]
        return half_widths(deviations, of_each, shares[..., None, :])

    def diagnosis(
        self,
        estimate: Estimate,
        deviations: Mapping[str, Floats],
        residuals: tuple[Floats, Floats],
        nis: Floats | float,
        degrees: Indices | int,
    ) -> Diagnosis:
        """The verdict of residuals with their spreads; the chi-square is the normalised innovation squared."""
        of = self.coordinates
        return Diagnosis(estimate, deviations, of.row_names, of.sensor_of_rows, *residuals, nis, degrees)

    def _by_output(self, spread: Floats) -> dict[str, Floats]:
        """Numbers of all outputs (..., n_out) by their names, in their shapes."""
        return {
            part.output.name: spread[..., part.slice].reshape(spread.shape[:-1] + part.shape) for part in self.parts
        }

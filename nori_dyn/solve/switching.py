"""A solver for robots whose contacts come and go: a plan for each contact state, one set of inputs and outputs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from threading import Thread
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import batched, numeric, shaped
from nori_dyn.errors import InputError, SingularSystemError, named_contacts
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.plans_as_needed import PlansAsNeeded
from nori_dyn.program.compiled import Watch, on_all_cores, unwatched
from nori_dyn.program.remade import Remade
from nori_dyn.program.status import Status
from nori_dyn.solve.contact_numbers import Closed, ClosedInAll, PlannedStates
from nori_dyn.solve.estimate import Estimate, OutputLayout
from nori_dyn.solve.solver import Inputs, Outputs, Singular, Solver, check_singular
from nori_dyn.system.builder import Weights
from nori_dyn.system.inputs import Missing, weights_at
from nori_dyn.system.side_by_side import SideBySide
from nori_dyn.tables import Shown
from nori_dyn.typing import Floats, Indices


class SwitchingSolver(Remade, Shown):
    """Runs the plans of several contact states on the same arrays. Not to be shared between threads.

    A state is planned and compiled when it is first needed: by a switch to it, or where it is solved. Before a control
    loop begins `prepare` does so for all of them, as `Solver.prepare` does; then neither a switch nor a tick allocates
    anything. A state whose readings are not the first of all readings takes its own from among them at
    each tick, which costs about a microsecond.

    Attributes:
        contact_names: all contacts.
        states: the states that have a plan.
        measurement_names: the name of each number of y (ny), the readings of all states.
        weight_names: the name of each weight (n_weights), the weights of all states; see `SideBySide`.
        ny: length of y.
        inputs: the arrays that `tick` reads. y has the readings of all states, weights the weights of all; what the
            present state does not read may be anything.
        outputs: the arrays that `tick` writes, by the names of the outputs, the same ones in every state.
        is_doubting: as of `Solver`.

    Args:
        plans: the plan of each contact state; for one robot, with the same outputs. The first is the state at first.
        contact_names: all contacts.
        backend: as for `Solver`.
        check_residual: as for `Solver`.
        watch: as for `Solver`.
        name: the sensors' name in messages.
        wait: as for `Solver`, for each state when it is first needed. If not, a thread plans the other states.

    Raises:
        InputError: not to wait for a backend that is not "auto".
        BackendError: there is no such backend.
        MissingExtraError: the backend needs an extra that is not installed.

    Example:
        >>> wrench = {"type": "external_wrench", "links": "all"}
        >>> contacts = {"tip": {"closed": [wrench], "open": [wrench | {"value": 0}]}}
        >>> motion = {"type": "joint_acceleration", "joints": "all"}
        >>> sensors = nd.SensorSet.from_dict({"name": "touch", "measurements": [motion], "contacts": contacts})
        >>> solver = nd.plan(nd.autotree(1), sensors, outputs=["tau"]).solver()
        >>> solver.inputs.y[:] = 1.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.0  # qdd, then couple and force at the tip
        >>> status = solver.tick()
        >>> print(np.round(solver.outputs.tau, 2))
        [-0.17]
        >>> solver.switch([])  # the contact is lost
        >>> status = solver.tick()
        >>> print(np.round(solver.outputs.tau, 2))
        [0.33]
    """

    def __init__(
        self,
        plans: Mapping[ContactState, EliminationPlan],
        contact_names: Sequence[str],
        backend: str = "auto",
        check_residual: bool = True,
        watch: Watch = unwatched,
        name: str = "contacts",
        wait: bool = True,
    ) -> None:
        self.contact_names, self.states = tuple(contact_names), tuple(plans)
        self._planned, self._plans = PlannedStates(self.contact_names, self.states), PlansAsNeeded.of(plans)
        self._all, first = SideBySide(list(self._plans.systems.values()), name), self._plans[self.states[0]]
        self.measurement_names, self.weight_names = self._all.measurement_names, self._all.weight_names
        self._tree, self.ny, self.is_doubting, self._watch = first.system.tree, self._all.ny, True, watch
        self._make = partial(Solver, backend=backend, check_residual=check_residual, wait=wait)
        if not wait:
            Thread(target=lambda: list(self._plans.values()), name="nori_dyn plans", daemon=True).start()
        self._solvers: dict[int, Solver] = {}
        self._ticks: dict[int, Callable[[], Status]] = {}
        layout = OutputLayout(first.system, first.outputs)
        zeros = np.zeros(self._tree.nv + self.ny)
        self._inputs = np.concatenate([self._tree.neutral_configuration(), zeros, self._all.weights])
        self._values = np.full(layout.size, np.nan)
        self.inputs = Inputs.of(self._inputs, self._tree, self.ny)
        self.outputs = Outputs(**layout.views(self._values))
        self._go_to(0)

    def __repr__(self) -> str:
        return f"SwitchingSolver({len(self.states)} contact states, backend='{self.backend}')"

    def __reduce__(self) -> Any:
        make, arguments, inputs = super().__reduce__()
        return make, arguments, (inputs, self.contacts)

    def __setstate__(self, kept: Any) -> None:
        inputs, state = kept
        super().__setstate__(inputs)
        self.switch(state)

    @property
    def backend(self) -> str:
        """Name of the backend of the present state."""
        return self._solver(self._number).backend

    @property
    def prepared(self) -> tuple[ContactState, ...]:
        """The states whose programs are there."""
        return tuple(self.states[number] for number in sorted(self._solvers))

    @property
    def contacts(self) -> ContactState:
        """The contacts that are closed; setting it is `switch`."""
        return self.states[self._number]

    @contacts.setter
    def contacts(self, closed: Closed) -> None:
        self.switch(closed)

    def switch(self, closed: Closed) -> None:
        """Switch to another contact state, for the following ticks.

        Args:
            closed: the contacts that are closed: names in any order, or booleans (n_contacts,).

        Raises:
            UnknownContactError: there is no such contact.
            UnplannedStateError: the state has no plan.
        """
        self._go_to(self._planned.number_of(closed))

    def prepare(self, states: Iterable[Closed] | None = None) -> None:
        """Compile the programs of some states beforehand, on all cores; of all when None.

        Args:
            states: the contact states, each as for `switch`.

        Raises:
            UnknownContactError: there is no such contact.
            UnplannedStateError: a state has no plan.
            BackendError: as of the solver.
        """
        asked = range(len(self.states)) if states is None else map(self._planned.number_of, states)
        numbers = list(dict.fromkeys(asked))
        self._need(numbers)
        list(on_all_cores(Solver.prepare, [self._solvers[number] for number in numbers]))

    def _need(self, numbers: Iterable[int]) -> None:
        """Make the solvers of some states, on all cores."""
        if missing := [number for number in numbers if number not in self._solvers]:
            progress = f"preparing {self._tree.name}", self._watch, len(self._solvers), len(self.states)
            made = on_all_cores(lambda number: self._make(self._plans[self.states[number]]), missing, *progress)
            for number, solver in zip(missing, made, strict=True):
                self._solvers[number] = solver
                self._ticks[number] = _ticker(solver, self._inputs, self._values, self._all.input_indices(number))

    def _go_to(self, number: int) -> None:
        self._need([number])
        self._number, self._tick = number, self._ticks[number]

    def _solver(self, number: int) -> Solver:
        """The solver of a state, made if it is not there."""
        self._need([number])
        if not self.is_doubting:
            self._solvers[number].is_doubting = False
        return self._solvers[number]

    def tick(self) -> Status:
        """Solve the state in `inputs` in the present contact state, write `outputs`, and return a status.

        As `Solver.tick`, it does not check its inputs.
        """
        return self._tick()

    def solve(
        self,
        q: ArrayLike,
        qd: ArrayLike,
        y: ArrayLike | Mapping[str, Any],
        contacts: Closed | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
    ) -> Estimate:
        """Solve one state as `Solver.solve` does, with readings and weights in the order of this solver's names.

        `contacts` are those that are closed, as for `switch`; the present ones when None. Readings that the contact
        state does not have may be anything, or be left out by name.

        Raises:
            InputError: as there, or a contact state that is not planned.
            SingularSystemError: as there.
        """
        number = self._number if contacts is None else self._planned.number_of(contacts)
        own, weighting = self._all.reading(number, y), self._all.weighting(number, weights)
        return self._solver(number).solve(q, qd, own, weighting, missing)

    def solve_batch(
        self,
        Q: ArrayLike,
        Qd: ArrayLike,
        Y: ArrayLike,
        contacts: ClosedInAll | Sequence[Closed] | None = None,
        weights: Weights = None,
        missing: Missing = "refuse",
        threads: int = 1,
        singular: Singular = "refuse",
        dtype: Any = "float64",
    ) -> Estimate:
        """Solve N states as `Solver.solve_batch` does, with readings and weights in the order of this solver's names.

        `contacts` are those that are closed: for all states one name, a set of names, or booleans (n_contacts,); or for
        each: N sequences or sets of names, or booleans (N, n_contacts). The present ones when None.

        Raises:
            InputError: as there, or a contact state that is not planned.
            SingularSystemError: as there.
        """
        check_singular(singular)
        Q = batched("Q", Q, self._tree.nq)
        N = len(Q)
        Qd, Y = shaped("Qd", Qd, (N, self._tree.nv)), shaped("Y", Y, (N, self.ny))
        if weights is not None and not isinstance(weights, Mapping):
            weights = numeric("weights", weights)
        numbers = np.full(N, self._number) if contacts is None else self._planned.numbers_of(contacts, N)
        occurring = np.unique(numbers).tolist()
        self._need(occurring)
        places, estimates = [np.flatnonzero(numbers == number) for number in occurring], []
        for number, those in zip(occurring, places, strict=True):
            weighting = weights_at(self._all.weighting(number, weights, (N,)), those)
            y: Any = self._all.reading(number, Y[those], (len(those),))
            given = Q[those], Qd[those], y, weighting
            try:
                estimates.append(self._solver(number).solve_batch(*given, missing, threads, "nan", dtype=dtype))
            except InputError:
                self._refuse(those, numbers, Q, Qd, Y, weights, missing)
                raise
        estimate = Estimate.joined(estimates, places)
        if singular == "refuse" and np.any(estimate.singular):
            those = np.flatnonzero(estimate.singular)
            self._refuse(those[:1], numbers, Q, Qd, Y, weights, missing)
            raise SingularSystemError(f"state {those[0]} of {N}: the system is singular at this state.")
        return estimate

    def _refuse(
        self, those: Indices, numbers: Indices, Q: Floats, Qd: Floats, Y: Floats, weights: Weights, missing: Missing
    ) -> None:
        """Raise the error of the first of those states that has one alone, with its number; none where none has."""
        for k in those.tolist():
            try:
                self.solve(Q[k], Qd[k], Y[k], self.states[numbers[k]], weights_at(weights, k), missing)
            except (InputError, SingularSystemError) as error:
                named = named_contacts(self.states[numbers[k]])
                error.args = (f"state {k} of {len(Q)} ({named}): {error.args[0]}",)
                raise


def _ticker(solver: Solver, inputs: Floats, values: Floats, places: Indices) -> Callable[[], Status]:
    """A function that solves with some of the inputs (n,): without copying them where they are the first."""
    if np.array_equal(places, np.arange(len(places))):
        return solver.ticker(inputs[: len(places)], values)
    own = inputs[places]
    run, take = solver.ticker(own, values), inputs.take

    def tick() -> Status:
        take(places, None, own, "clip")  # "raise" would go through a buffer
        return run()

    return tick

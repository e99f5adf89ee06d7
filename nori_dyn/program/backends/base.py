"""What a backend does: from states to the unknowns, with a word on how much they can be trusted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol, TypeAlias

import numpy as np

from nori_dyn.algebra.expressions import Expr
from nori_dyn.errors import InputError, SingularSystemError
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.planning.scaling import natural_scaling
from nori_dyn.planning.static_elimination import Guard
from nori_dyn.program.limits import PIVOT_LIMIT, RCOND_LIMIT
from nori_dyn.program.lowering import SolutionProgram
from nori_dyn.system.builder import System
from nori_dyn.tables import Document, Facts, Shown, number
from nori_dyn.typing import Booleans, Floats, Indices

PIVOT_STATES = 32
"""Number of random states that tell the usual size of each pivot."""


Guards: TypeAlias = tuple[tuple[Expr, float], ...]
"""What must not be small where outputs are to be trusted, and the least size of each."""


class Solution(NamedTuple):
    """The unknowns of one state, or of N states with a leading N in every field, or one number for all of them.

    Attributes:
        values: the unknowns that the plan was asked for (n_outputs,), in the order of `output_columns`; nan where the
            system is singular.
        residual: largest |D d + b| of any equation, relative to the largest of |D| |d| + |b| in the same equation; nan
            when not computed.
        fell_back: whether the planned order was given up for a freshly pivoted factorisation.
        rcond: one over the condition that the factorisation found, see `fresh`; 1 where the planned order held. Below
            RCOND_LIMIT the system is singular.
    """

    values: Floats
    residual: Floats | float
    fell_back: Booleans | bool
    rcond: Floats | float

    def of_each(self) -> Solution:
        """Return it with a number for each of N states, where there is one for all; that of one state as it is."""
        if self.values.ndim == 1:
            return self
        values, *others = self
        fields: list[Any] = [field if np.ndim(field) else np.full(len(values), field) for field in others]
        return Solution(values, *fields)


Found: TypeAlias = tuple[Floats, Floats | float, Booleans | bool, Floats | float]
"""What a `Solution` has, in its order: a tuple without names is made in a tenth of the time."""


@dataclass(frozen=True, slots=True)
class Status(Shown):
    """How a tick went.

    Attributes:
        ok: whether the outputs hold a solution; they hold nan when not.
        fell_back: whether the planned order was given up for a freshly pivoted factorisation.
        residual: as in `Solution`; nan where the backend does not compute it at every tick.
        rcond: as in `Solution`; nan where the state has a number that is not finite, or a weight below zero.
        threshold: rcond below which the system counts as singular.
        cause: the pivot or check that tripped, with its value and its limit; empty where none did.

    Example:
        >>> solver = nd.plan(nd.System(nd.autotree(2), "forward_dynamics")).solver()
        >>> solver.inputs.q[1] = np.nan
        >>> status = solver.tick()
        >>> status.ok, status.cause
        (False, 'q[1] is nan')
    """

    ok: bool = True
    fell_back: bool = False
    residual: float = math.nan
    rcond: float = 1.0
    threshold: float = RCOND_LIMIT
    cause: str = ""

    @staticmethod
    def of(solution: Solution, cause: str = "") -> Status:
        """Return the status of one state's solution; `cause` is why it fell back."""
        rcond = float(solution.rcond)
        is_solved = rcond >= RCOND_LIMIT and bool(np.isfinite(solution.values).all())
        return Status(is_solved, bool(solution.fell_back), float(solution.residual), rcond, cause=cause)

    def shown(self) -> Document:
        outcome = "solved with fresh pivots" if self.fell_back else "solved as planned"
        facts = (
            ("state", outcome if self.ok else "not solved: the outputs are nan"),
            ("cause", self.cause),
            ("residual", "" if math.isnan(self.residual) else f"{number(self.residual, 2)}, relative"),
            ("rcond", f"{number(self.rcond, 2)}, singular below {number(self.threshold, 2)}" if self.fell_back else ""),
        )
        return Document((Facts(facts),))

    def raise_for_status(self) -> None:
        """Raise what went wrong, if anything did.

        Raises:
            InputError: a number of the state is not finite, or a weight is below zero.
            SingularSystemError: the system has no unique solution at this state.
        """
        if self.ok:
            return
        if math.isnan(self.rcond):
            raise InputError(f"the state cannot be solved: {self.cause}.")
        tripped = f" {self.cause[0].upper()}{self.cause[1:]}." if self.cause else ""
        raise SingularSystemError(
            f"the system is singular at this state: its rcond is {self.rcond:.2g}, below {self.threshold:.2g}."
            f"{tripped} `solve` names what is not determined."
        )


class Backend(Protocol):
    """A way to run a plan. Laws, tested over the registry in tests/contracts/test_backends.py.

    - `solve` is `solve_batch` of one state, and `ticker` does the same in place, to rounding;
    - a state at which the system is singular gives nan and rcond below RCOND_LIMIT, never numbers;
    - nothing depends on the states solved before.
    """

    @property
    def name(self) -> str:
        """The backend's name."""

    def quick(self, q: Any, qd: Any, y: Any, /) -> Found | None:
        """Solve one state as its user has it, with the weights of the sensors, where it is in order: arrays of doubles.

        None where it is not, or where the backend has no such way: nothing is computed then, and `solve` does it, after
        the checks of what is given.
        """

    def quick_batch(self, Q: Any, Qd: Any, Y: Any, threads: Any, out: Any, /) -> Found | None:
        """Solve N states as their user has them, as `quick` does, into `out` where that is not None.

        States that are not finite get nan and a rcond of nan. None where arrays are not in order, `out` among them.
        """

    def solve(self, *state: Floats) -> Solution:
        """Solve one state: q (nq,), qd (nv,), y (ny,), and the weights (n_weights,) where there are any."""

    def solve_batch(self, *states: Floats, threads: int = 1, out: Floats | None = None) -> Solution:
        """Solve N states: the same arrays with a leading N, on some threads where the backend can.

        The unknowns are written to `out` (N, n_outputs) where that is given.
        """

    def ticker(self, state: Floats, values: Floats) -> Callable[[], Status]:
        """Return a function that solves the state in one array (q, qd, y, weights) and writes the unknowns."""


def find_wrong_input(system: System, state: Sequence[Floats]) -> str:
    """Return which number of a state is not finite, or which weight below zero; nothing where none is."""
    for name, array in zip(system.input_sizes, state, strict=True):
        wrong = np.flatnonzero(~np.isfinite(array))
        if len(wrong):
            return f"{name}[{wrong[0]}] is {array[wrong[0]]}"
    if system.is_weighted and (state[-1] < 0).any():
        k = int(np.argmax(state[-1] < 0))
        return f"the weight of '{system.weight_names[k]}' is {state[-1][k]:g}, below zero"
    return ""


def equation_starts(plan: EliminationPlan) -> Indices:
    """Return the first row of each equation of a plan's system.

    Of the conditions of a weighed one that is: of the derivative by each variable, and of each row with a multiplier.
    """
    system = plan.system
    sizes = [row.slice.stop - row.slice.start for row in system.rows if row.has_multiplier]
    if system.is_weighted:
        sizes = [v.slice.stop - v.slice.start for v in system.variables] + sizes
    sizes = [size for size in sizes if size]
    return np.cumsum([0, *sizes[:-1]], dtype=np.intp)


def computes_residual(plan: EliminationPlan, columns: Indices) -> bool:
    """Return whether the unknowns wanted are enough for the residual: all of d, in an exact problem."""
    return not plan.system.is_weighted and len(set(columns.tolist())) == plan.system.shape[1]


def state_parts(plan: EliminationPlan, state: Floats) -> list[Floats]:
    """Return the arrays of a state, q, qd, y and the weights where there are any, as views of one array."""
    return np.split(state, np.cumsum([*plan.system.input_sizes.values()])[:-1])


def pivot_ensemble(plan: EliminationPlan) -> list[Floats]:
    """Return random configurations (PIVOT_STATES, nq) at rest, for the usual size of the pivots.

    These depend on q only where they are guarded, see `StaticElimination.guards`.
    """
    system = plan.system
    rng = np.random.default_rng(plan.seed)
    Q = system.tree.random_configurations(PIVOT_STATES, rng)
    states = [Q, np.zeros((PIVOT_STATES, system.tree.nv)), np.zeros((PIVOT_STATES, system.ny))]
    return [*states, np.tile(system.weights, (PIVOT_STATES, 1))] if system.is_weighted else states


def guard_limits(plan: EliminationPlan, solution: SolutionProgram, pivots: Floats) -> Floats:
    """Return the least size of each guarded pivot, then the usual size of each unknown that has a step.

    Args:
        plan: the plan.
        solution: its program.
        pivots: the pivots over `pivot_ensemble` (PIVOT_STATES, n_guards).
    """
    usual = np.median(np.abs(pivots), axis=0) if solution.guards else np.zeros(0)
    given = [guard.least for guard in solution.guards]
    least = np.array([PIVOT_LIMIT * x if own is None else own for x, own in zip(usual, given, strict=True)])
    if not solution.program.refinement.steps:
        return least
    _, natural = natural_scaling(plan.system, plan.symbolic, plan.seed)
    return np.concatenate([least, natural[solution.columns]])


def pivot_guards(plan: EliminationPlan, outputs: Sequence[Expr], share: float) -> Guards:
    """Return the guarded pivots that some expressions over a plan depend on, and the least size of each.

    Args:
        plan: the plan.
        outputs: the expressions.
        share: of its usual size, that a pivot which has no least size of its own must have.
    """
    needed = set(plan.symbolic.graph.reachable(outputs))
    guards = [guard for guard in plan.solved.pivots if guard.value.index in needed]
    usual = usual_sizes(plan, [guard.value for guard in guards])
    return tuple(
        (guard.value, share * float(size) if guard.least is None else guard.least)
        for guard, size in zip(guards, usual, strict=True)
    )


def usual_sizes(plan: EliminationPlan, values: Sequence[Expr]) -> Floats:
    """Return the median size over `pivot_ensemble` of expressions over a plan (n,)."""
    if not len(values):
        return np.zeros(0)
    states = zip(plan.symbolic.inputs.values(), pivot_ensemble(plan), strict=True)
    inputs = {x.index: own for scalars, X in states for x, own in zip(scalars, X.T, strict=True)}
    return np.asarray(np.median(np.abs(plan.symbolic.graph.evaluate(values, inputs)), axis=-1))


def guarded_name(plan: EliminationPlan, guard: Guard) -> str:
    """Return the name of the unknown that a guarded pivot is of; of one that D does not have, its link's."""
    names, bodies = plan.system.variable_names, plan.refined.symbolic.bodies
    return names[guard.column] if guard.column < len(names) else plan.system.tree.names[bodies[guard.column]]

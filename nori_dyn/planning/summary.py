"""What `print` shows of a plan: its sizes, its orderings with what each costs, and how stable it is."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from nori_dyn.algebra.ranges import numbers
from nori_dyn.model.limbs import isomorphic_limbs
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.over_time import unknown_at_first
from nori_dyn.planning.search import Stability
from nori_dyn.system.summary import note_on_offsets, robot_in_words
from nori_dyn.tables import Document, Facts, Table, listed, number, unbroken

if TYPE_CHECKING:
    from nori_dyn.planning.planner import EliminationPlan, TriedOrdering
    from nori_dyn.system.builder import System
    from nori_dyn.system.variables import Variable

MOST_OUTPUTS = 24
"""Names of outputs that are shown."""


def plan_document(plan: EliminationPlan) -> Document:
    """Return what is shown of a plan; nothing of it is computed anew."""
    system, best = plan.system, plan.tried[0]
    rows, columns = system.shape
    if system.is_weighted:
        size = f"{rows:,} equations for {columns:,} unknowns, by least squares with {system.n_weights:,} weights"
    else:
        nonzeros = best.nonzeros - best.fill_in
        share = number(100 * nonzeros / (rows * columns), 2)
        size = f"{rows:,} equations in {columns:,} unknowns, {nonzeros:,} nonzeros ({share} %)"
    facts = (
        ("robot", robot_in_words(system)),
        ("sensors", f"{unbroken(system.sensors.name)}: {system.ny:,} readings a tick"),
        ("limbs", _limbs(system)),
        ("system", size),
        ("left out", _left_out(system)),
        ("not told", listed((v.name for v in undetermined(plan)), MOST_OUTPUTS)),
        ("learned", _learned(plan)),
        ("outputs", listed((output.name for output in plan.outputs), MOST_OUTPUTS)),
        ("ordering", _ordering(plan)),
        ("operations", f"{plan.cost.total:,} a tick, from q, qd and y to the outputs{_refined(system)}"),
        ("stability", _in_words(plan.stability)),
    )
    note = note_on_offsets(system)
    return Document((Facts(facts), costs_table(plan.tried), *((f"note: {note}",) if note else ())))


def _learned(plan: EliminationPlan) -> str:
    """Return what time alone tells; "" where one instant does."""
    if not plan.is_over_time:
        return ""
    names = listed((one.variable.name for one in unknown_at_first(plan.system)), MOST_OUTPUTS)
    return f"{names}: nothing is known at first, and one instant does not tell it. A filter runs this plan, no solver"


def _ordering(plan: EliminationPlan) -> str:
    """Return whose order the program has and what it eliminates; and whose order that of D is, where that differs."""
    if plan.regrouped is None:
        return f"{plan.ordering}, of D itself: P and Q are the program's"
    own = plan.tried[0].ordering
    matrix = "the conditions of optimality" if plan.system.is_weighted else "D"
    return f"{plan.ordering}, in the refined system" + (f"; P and Q of {matrix}: {own}" if own != plan.ordering else "")


def _refined(system: System) -> str:
    return "; two to three times as many at a state that has to be refined" if system.is_weighted else ""


def undetermined(plan: EliminationPlan) -> list[Variable]:
    """Return the variables that no sensor tells, and no output may show."""
    lost = set(plan.undetermined.tolist())
    return [v for v in plan.system.variables if not lost.isdisjoint(numbers(v.slice))]


def _limbs(system: System) -> str:
    """Return the limbs that are alike, whose operations vectors can share; "" where there are none."""
    groups = [(len(limbs), len(limbs[0])) for limbs in isomorphic_limbs(system.tree)]
    return "; ".join(f"{n} alike of {links} link{'s' * (links > 1)}" for n, links in groups)


def _left_out(system: System) -> str:
    """Return the rows of loops that repeat others; "" where there are none."""
    names = system.of_components.repeated_names
    return f"{listed(names, MOST_OUTPUTS)}: they repeat others wherever the robot is closed" if names else ""


def _in_words(stability: Stability) -> str:
    over = f"over {stability.states:,} random configurations"
    if stability.smallest_pivot >= 1:
        return f"stable: {over} all pivots keep their size"
    share, link = number(stability.smallest_pivot, 1), unbroken(stability.smallest_at)
    falls = f"{over} a pivot falls to {share} of its usual size, at link {link}"
    if stability.is_stable:
        return f"stable: {falls}"
    return f"{falls}: nearer to zero, states are solved afresh, in milliseconds"


def costs_table(candidates: Sequence[TriedOrdering]) -> Table:
    """Return the table of orderings and what each costs a tick."""
    rows = tuple(
        (
            "*" if k == 0 else "",
            c.ordering,
            c.fill_in,
            c.published.total,
            c.cost.total,
            c.program_ordering or c.ordering,
            c.program.additions,
            c.program.total - c.program.additions,
            c.program.total,
            number(c.stability.smallest_pivot, 1) if c.stability.smallest_pivot < 1 else "1",
        )
        for k, c in enumerate(candidates)
    )
    notes = [
        "* is the one chosen. program: all that a tick computes, sines and cosines left out; it is the sum of + - and "
        "x /. by: the ordering whose order it has. LU: factors of D and both substitutions in this order, without "
        "structure finer than D's; paper: the same by the paper's own rule. pivot: the program's smallest one over "
        "random configurations, relative to its usual size."
    ]
    if not has_umfpack():
        notes.append("UMFPACK is not installed: its ordering comes with the extra 'umfpack'.")
    columns = ("", "ordering", "fill-in", "paper", "LU", "by", "+ -", "x /", "program", "pivot")
    return Table("Operations a tick", columns, rows, tuple(notes), left=(0, 1, 5))

"""Systems, plans and solvers: sizes, orderings with what each costs, stability, contact states, and how they run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from nori_dyn.algebra.counting import Cost
from nori_dyn.algebra.ranges import numbers
from nori_dyn.errors import named_contacts
from nori_dyn.estimation.plan import Plan
from nori_dyn.model.limbs import isomorphic_limbs
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.over_time import without_prior
from nori_dyn.planning.planner import EliminationPlan, TriedOrdering
from nori_dyn.planning.search import Stability, is_large
from nori_dyn.program.bound import plan_bound
from nori_dyn.program.compiler import find_compiler
from nori_dyn.program.kernel.registry import is_compiled
from nori_dyn.program.layout import output_parts
from nori_dyn.report.shows.models import tree_figures
from nori_dyn.solve.solver import Solver
from nori_dyn.solve.switching import SwitchingSolver
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import Variable, kind_in_words
from nori_dyn.tables import Bullets, Document, Facts, Table, attributes, listed, number, unbroken

MOST_READINGS = 24
"""Names of readings that are shown."""


def system_document(system: System) -> Document:
    """The document of a system."""
    rows, columns = system.shape
    facts = (
        ("robot", robot_in_words(system)),
        ("sensors", unbroken(system.sensors.name)),
        ("equations", f"{rows:,} for {columns:,} unknowns, {_balance(system)}"),
        ("readings", listed(system.measurement_names, MOST_READINGS) or "none"),
    )
    groups: dict[tuple[bool, str], list[RowBlock]] = {}
    for row in system.rows:
        groups.setdefault((row.is_dynamic, row.equation.group), []).append(row)
    counted = tuple(
        ("equations of motion" if is_dynamic else unbroken(group), *_counts(own))
        for (is_dynamic, group), own in groups.items()
    )
    equations = Table("Equations", ("of", "rows", "readings", "known values", "weighted"), counted)
    sizes = {kind: sum(len(v.components) for v in system.variables if v.kind == kind) for kind in system.kinds}
    in_words = tuple((unbroken(kind), kind_in_words(kind), n) for kind, n in sizes.items())
    unknowns = Table("Unknowns", ("kind", "what", "scalars"), in_words, left=(0, 1))
    return Document((Facts(facts), equations, unknowns))


def robot_in_words(system: System) -> str:
    """A system's robot with its size."""
    tree = system.tree
    return f"{unbroken(tree.name)}: {tree.n_links:,} links, {tree.nv:,} freedoms"


def _balance(system: System) -> str:
    rows, columns = system.shape
    if system.is_weighted:
        return f"solved by weighted least squares with {system.n_weights:,} weights"
    return "as many as it takes" if rows == columns else f"{columns - rows:,} too few"


def _counts(own: Sequence[RowBlock]) -> tuple[int, int, int, int]:
    """How many rows some equations have, with readings, with known values, and that are weighed."""
    n = [len(row.equation.components) for row in own]
    read = sum(k for k, row in zip(n, own, strict=True) if row.equation.is_measured)
    known = sum(k for k, row in zip(n, own, strict=True) if row.is_sensor and not row.equation.is_measured)
    return sum(n), read, known, sum(k for k, row in zip(n, own, strict=True) if not row.is_exact)


MOST_OUTPUTS = 24
"""Names of outputs that are shown."""


def elimination_plan_document(plan: EliminationPlan) -> Document:
    """The document of a plan."""
    system, best = plan.system, plan.tried[0]
    again = "; two to three times as many at a state that needs refinement" if system.is_weighted else ""
    rows, columns = system.shape
    if system.is_weighted:
        size = f"{rows:,} equations for {columns:,} unknowns, by least squares with {system.n_weights:,} weights"
    else:
        nonzeros = best.nonzeros - best.fill_in
        share = number(100 * nonzeros / (rows * columns), 2)
        size = f"{rows:,} equations for {columns:,} unknowns, {nonzeros:,} nonzeros ({share} %)"
    facts = (
        ("robot", robot_in_words(system)),
        ("sensors", f"{unbroken(system.sensors.name)}: {system.ny:,} readings per tick"),
        ("limbs", _limbs(system)),
        ("system", size),
        ("left out", _left_out(system)),
        ("undetermined", listed((v.name for v in undetermined(plan)), MOST_OUTPUTS)),
        ("learned", _learned(plan)),
        ("outputs", listed((output.name for output in plan.outputs), MOST_OUTPUTS)),
        ("ordering", _ordering(plan)),
        ("operations", f"{plan.cost.total:,} per tick, from q, qd and y to the outputs{again}"),
        ("bound", _bound(plan)),
        ("stability", _in_words(plan.stability)),
    )
    note = system.note_on_offsets
    figures = {
        **tree_figures(system.tree),
        "sensors": system.sensors.name,
        "rows": system.shape[0],
        "variables": system.shape[1],
        "nonzeros": int(plan.pattern.nnz),
        "outputs": [output.name for output in plan.outputs],
        "over_time": plan.is_over_time,
        "ordering": plan.ordering,
        "cost": cost_figures(plan.cost),
        "stability": asdict(plan.stability),
        "orderings": [
            {
                **attributes(c, "ordering", "fill_in", "nonzeros"),
                "lu": cost_figures(c.cost),
                "program": cost_figures(c.program),
                "program_ordering": c.program_ordering or c.ordering,
                "stability": asdict(c.stability),
                "published_rule": cost_figures(c.published),
            }
            for c in plan.tried
        ],
    }
    return Document((Facts(facts), costs_table(plan.tried), *((f"note: {note}",) if note else ())), figures)


def cost_figures(cost: Cost) -> dict[str, int]:
    """The operations that are counted."""
    return attributes(cost, "additions", "multiplications", "divisions", "total")


def _bound(plan: EliminationPlan) -> str:
    """What no processor is faster than, in words; "" of large systems, whose elimination would be traced for it."""
    if is_large(plan.system):
        return ""
    least = plan_bound(plan)
    return f"{least.cycles:,} cycles per tick or more: {least.chain:,} by dependence, {least.issue:,} by issue"


def _learned(plan: EliminationPlan) -> str:
    """The variables that time alone determines, in words; "" where one instant does."""
    if not plan.is_over_time:
        return ""
    names = listed((one.variable.name for one in without_prior(plan.system)), MOST_OUTPUTS)
    return f"{names}: unknown at first, and not determined by one instant. A filter runs this plan, not a solver"


def _ordering(plan: EliminationPlan) -> str:
    """Whose order the program has and what it eliminates; and whose order that of D is, where that differs."""
    if plan.regrouped is None:
        return f"{plan.ordering}, of D itself: P and Q are the program's"
    own = plan.tried[0].ordering
    matrix = "the conditions of optimality" if plan.system.is_weighted else "D"
    return f"{plan.ordering}, in the refined system" + (f"; P and Q of {matrix}: {own}" if own != plan.ordering else "")


def undetermined(plan: EliminationPlan) -> list[Variable]:
    """The variables that no sensor tells, and no output may show."""
    lost = set(plan.undetermined.tolist())
    return [v for v in plan.system.variables if not lost.isdisjoint(numbers(v.slice))]


def _limbs(system: System) -> str:
    """The limbs that are alike, whose operations vectors can share; "" where there are none."""
    groups = [(len(limbs), len(limbs[0])) for limbs in isomorphic_limbs(system.tree)]
    return "; ".join(f"{n} isomorphic ones of {links} link{'s' * (links > 1)}" for n, links in groups)


def _left_out(system: System) -> str:
    """The rows of loops that repeat others; "" where there are none."""
    names = system.of_components.repeated_names
    return f"{listed(names, MOST_OUTPUTS)}: redundant wherever the loops are closed" if names else ""


def _in_words(stability: Stability) -> str:
    over = f"over {stability.states:,} random configurations"
    if stability.smallest_pivot >= 1:
        return f"stable: {over} all pivots keep their size"
    share, link = number(stability.smallest_pivot, 1), unbroken(stability.smallest_at)
    falls = f"{over} a pivot falls to {share} of its usual size, at link {link}"
    if stability.is_stable:
        return f"stable: {falls}"
    return f"{falls}: nearer to zero, the state is re-factorised with pivoting, in milliseconds"


def costs_table(candidates: Sequence[TriedOrdering]) -> Table:
    """The table of orderings and what each costs a tick."""
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
        "* marks the ordering chosen. program: all operations of a tick but sines and cosines, the sum of + - and x /. "
        "by: the ordering that the program uses. LU: factors of D and both substitutions in this order, without "
        "structure finer than D's. paper: the same by the paper's own rule. pivot: the smallest pivot of the program "
        "over random configurations, relative to its usual size."
    ]
    if not has_umfpack():
        notes.append("UMFPACK is not installed: its ordering comes with the extra 'umfpack'.")
    columns = ("", "ordering", "fill-in", "paper", "LU", "by", "+ -", "x /", "program", "pivot")
    return Table("Operations per tick", columns, rows, tuple(notes), left=(0, 1, 5))


def plan_document(plan: Plan) -> Document:
    """The document of a plan: of its one state, or of several contact states."""
    return states_document(plan) if plan.contact_names else elimination_plan_document(plan)


def states_document(plan: Plan) -> Document:
    """The document of a plan of several contact states."""
    states, sensors = plan.states, plan.sensors
    first = states.first
    facts = (
        ("robot", robot_in_words(first.system)),
        ("sensors", unbroken(sensors.name)),
        ("contacts", listed(sensors.contact_names)),
        ("outputs", listed((output.name for output in first.outputs), MOST_OUTPUTS)),
    )
    rows = tuple(
        (
            named_contacts(state),
            one.system.ny,
            one.system.shape[0],
            one.ordering,
            one.cost.total,
            number(min(one.stability.smallest_pivot, 1.0), 1),
        )
        for state, one in states.items()
    )
    columns = ("closed", "readings", "equations", "ordering", "operations", "pivot")
    notes = ["operations: all of a tick but sines and cosines. pivot: the smallest, relative to its usual size."]
    if find_compiler() is not None:
        notes.append(counted_states(sum(map(is_compiled, states.values())), len(states), "compiled"))
    table = Table("Contact states", columns, rows, tuple(notes), left=(0, 3))
    why = tuple(f"{named_contacts(state)}: {reason}" for state, reason in plan.left_out.items())
    figures = {
        **tree_figures(plan.tree),
        "sensors": sensors.name,
        "contacts": list(plan.contact_names),
        "states": [{"closed": list(state), **elimination_plan_document(one).figures} for state, one in states.items()],
        "left_out": [{"closed": list(state), "reason": reason} for state, reason in plan.left_out.items()],
    }
    return Document((Facts(facts), table, *((Bullets(why, "Left out:"),) if why else ())), figures)


def solver_document(solver: Solver) -> Document:
    """The document of a solver."""
    system = solver.system
    facts = (
        ("robot", robot_in_words(system)),
        ("sensors", unbroken(system.sensors.name)),
        ("backend", solver.backend),
        ("operations", f"{solver.plan.cost.total:,} per tick{_together(solver)}{_room(solver)}"),
        ("readings", listed(system.measurement_names, MOST_READINGS) or "none"),
    )
    arrays = [(name, "read", f"({n},)") for name, n in system.input_sizes.items()]
    parts = output_parts(solver.system, solver.plan.outputs)
    arrays += [(unbroken(part.output.name), "written", str(part.shape)) for part in parts]
    table = Table("Arrays", ("name", "per tick", "shape"), tuple(arrays), left=(0, 1, 2))
    return Document((Facts(facts), table))


def _together(solver: Solver) -> str:
    """How many operations limbs that are alike do together, in the lanes of vectors."""
    packed = {} if solver.native is None else solver.native.packed
    return "".join(f", {count:,} of them on {n} limbs at a time" for n, count in sorted(packed.items()))


def _room(solver: Solver) -> str:
    """The size of a compiled program's workspace, in words: more than a first-level cache is slow."""
    return "" if solver.native is None else f", in a workspace of {number(solver.native.work.nbytes / 1000, 2)} kB"


def switching_solver_document(solver: SwitchingSolver) -> Document:
    """The document of a solver that switches between contact states."""
    facts = (
        ("contacts", listed(solver.contact_names)),
        ("closed now", named_contacts(solver.contacts)),
        ("backend", solver.backend),
        ("readings", listed(solver.measurement_names, MOST_READINGS) or "none"),
    )
    rows = tuple(
        ("*" if state == solver.contacts else "", named_contacts(state), "yes" if state in solver.prepared else "")
        for state in solver.states
    )
    note = counted_states(len(solver.prepared), len(solver.states), "prepared")
    return Document((Facts(facts), Table("Contact states", ("", "closed", "prepared"), rows, (note,), left=(0, 1, 2))))


def counted_states(n: int, n_states: int, what: str) -> str:
    """How many contact states are compiled by now."""
    return f"{n} of {n_states} are {what}{', the others when first needed' if n < n_states else ''}."

"""What `print` shows of solvers: what they take, what they give, and how they run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from nori_dyn.errors import named_contacts
from nori_dyn.program.layout import output_parts
from nori_dyn.system.summary import robot_in_words
from nori_dyn.tables import Document, Facts, Table, listed, number, unbroken

if TYPE_CHECKING:
    from nori_dyn.solve.solver import Solver
    from nori_dyn.solve.switching import SwitchingSolver

MOST_NAMES = 24
"""Names of readings that are shown."""


def solver_document(solver: Solver) -> Document:
    """Return what is shown of a solver."""
    system = solver.system
    facts = (
        ("robot", robot_in_words(system)),
        ("sensors", unbroken(system.sensors.name)),
        ("backend", solver.backend),
        ("operations", f"{solver.plan.cost.total:,} a tick{_together(solver)}{_room(solver)}"),
        ("readings", listed(system.measurement_names, MOST_NAMES) or "none"),
    )
    arrays = [(name, "read", f"({n},)") for name, n in system.input_sizes.items()]
    arrays += [(name, "written", shape) for name, shape in _shapes(solver)]
    table = Table("Arrays", ("name", "a tick", "shape"), tuple(arrays), left=(0, 1, 2))
    return Document((Facts(facts), table))


def _together(solver: Solver) -> str:
    """Return how many operations limbs that are alike do together, in the lanes of vectors."""
    packed = {} if solver.native is None else solver.native.packed
    return "".join(f", {count:,} of them for {n} limbs at a time" for n, count in sorted(packed.items()))


def _room(solver: Solver) -> str:
    """Return what a compiled program reads and writes beside its code: more than a first-level cache is slow."""
    return "" if solver.native is None else f", in a workspace of {number(solver.native.work.nbytes / 1000, 2)} kB"


def _shapes(solver: Solver) -> Iterator[tuple[str, str]]:
    for part in output_parts(solver.system, solver.plan.outputs):
        yield unbroken(part.output.name), str(part.shape)


def switching_document(solver: SwitchingSolver) -> Document:
    """Return what is shown of a solver that switches between contact states."""
    facts = (
        ("contacts", listed(solver.contact_names)),
        ("closed now", named_contacts(solver.contacts)),
        ("backend", solver.backend),
        ("readings", listed(solver.measurement_names, MOST_NAMES) or "none"),
    )
    rows = tuple(
        ("*" if state == solver.contacts else "", named_contacts(state), "yes" if state in solver.prepared else "")
        for state in solver.states
    )
    note = counted_states(len(solver.prepared), len(solver.states), "prepared")
    return Document((Facts(facts), Table("Contact states", ("", "closed", "prepared"), rows, (note,), left=(0, 1, 2))))


def counted_states(n: int, n_states: int, what: str) -> str:
    """Return how many contact states are compiled by now."""
    return f"{n} of {n_states} are {what}{', the others when they are first needed' if n < n_states else ''}."

"""What `print` shows of a plan set: a contact state a row."""

from __future__ import annotations

from typing import TYPE_CHECKING

from nori_dyn.errors import named_contacts
from nori_dyn.system.summary import robot_in_words
from nori_dyn.tables import Bullets, Document, Facts, Table, listed, number, unbroken

if TYPE_CHECKING:
    from nori_dyn.api.plan_set import PlanSet

MOST_OUTPUTS = 24
"""Names of outputs that are shown."""


def plan_set_document(plans: PlanSet) -> Document:
    """Return what is shown of a plan set."""
    first = next(iter(plans.plans.values()))
    facts = (
        ("robot", robot_in_words(first.system)),
        ("sensors", unbroken(plans.sensors.name)),
        ("contacts", listed(plans.contact_names)),
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
        for state, one in plans.plans.items()
    )
    columns = ("closed", "readings", "equations", "ordering", "operations", "pivot")
    note = "operations: all of a tick, sines and cosines left out. pivot: the smallest, relative to its usual size."
    table = Table("Contact states", columns, rows, (note,), left=(0, 3))
    left_out = tuple(f"{named_contacts(state)}: {reason}" for state, reason in plans.left_out.items())
    return Document((Facts(facts), table, *((Bullets(left_out, "Left out:"),) if left_out else ())))

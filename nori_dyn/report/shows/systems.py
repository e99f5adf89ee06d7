"""What `print` shows of a system: how many equations of which kind, in which unknowns, with which readings."""

from __future__ import annotations

from collections.abc import Sequence

from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import kind_in_words
from nori_dyn.tables import Document, Facts, Table, listed, unbroken

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

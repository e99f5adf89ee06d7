"""What a drawing of a robot marks at its links: what is read there, and what is not determined."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from nori_dyn.model.kinematics import positions
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.system.builder import System
from nori_dyn.system.variables import Kind, Variable

Seen: TypeAlias = Literal["always", "sometimes", "never"]
"""Whether a number of d is determined: at every pose looked at, at all but special ones, or at none."""

NEVER: Seen = "never"
SOMETIMES: Seen = "sometimes"

Missing: TypeAlias = tuple[Seen, tuple[str, ...]]
"""Whether some components of a variable are determined, and which."""


@dataclass(slots=True)
class LinkReadings:
    """What sensors of one type read at a link: how many numbers, of known ones, and by which names."""

    read: int = 0
    known: int = 0
    names: tuple[str, ...] = ()


def readings_by_link(system: System) -> list[dict[str, LinkReadings]]:
    """Return what is read at each link, by the type of sensor."""
    at = positions(system.tree, system.tree.neutral_configuration())
    found: list[dict[str, LinkReadings]] = [{} for _ in range(system.tree.n_links)]
    for row in system.rows:
        if not row.is_sensor:
            continue
        n = len(row.equation.components)
        for body in sorted({key.body for key in row.equation.blocks(at)}):
            readings = found[body].setdefault(row.equation.group, LinkReadings())
            readings.read += n if row.equation.is_measured else 0
            readings.known += 0 if row.equation.is_measured else n
            readings.names += (row.name,)
    return found


def undetermined_by_link(system: System, report: ObservabilityReport) -> list[dict[Kind, Missing]]:
    """Return what is not determined at each link by kind: at no pose, or else at special ones, and the components."""
    never = set(report.unobservable)
    vectors = [vector for c in report.loses_rank for part in c.unseen for vector in part.vectors]
    sometimes = {name for vector in vectors for name in vector.coefficients}
    found: list[dict[Kind, Missing]] = [{} for _ in range(system.tree.n_links)]
    for variable in system.variables:
        for names, seen in ((never, NEVER), (sometimes, SOMETIMES)):
            if parts := _components_among(variable, names):
                for link in _links_of(system, variable):
                    worst, others = found[link].get(variable.kind, (seen, ()))
                    found[link][variable.kind] = NEVER if NEVER in (worst, seen) else seen, (*others, *parts)
                break
    return found


def _links_of(system: System, variable: Variable) -> Iterable[int]:
    """Return the links at which a variable is marked: its own; of a component those on which it acts."""
    if not variable.key.component:
        return (variable.body,)
    acting = (part for part in system.parts if any(unknown.key == variable.key for unknown in part.unknowns))
    return dict.fromkeys(key.body for part in acting for key in part.acts_on) or (variable.body,)


def _components_among(variable: Variable, names: set[str]) -> tuple[str, ...]:
    """Return the components of a variable whose numbers are among some names; of what components add, in full."""
    called = variable.component_names if variable.key.component else variable.components
    pairs = zip(called, variable.component_names, strict=True)
    return tuple(component for component, name in pairs if name in names)

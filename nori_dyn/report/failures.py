"""What the failure of sensors takes away, in words, once: text, JSON and the page lay it out."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.report.findings import by_variable
from nori_dyn.tables import listed, unbroken

SHOWN = 6
"""Most outputs that are named in a sentence."""


@dataclass(frozen=True, slots=True)
class Failures:
    """What the failure of sensors takes away.

    Attributes:
        words: how many may fail.
        critical: those that may not, and what is lost without each.
        together: sets of others that may not fail together.
        further: what else is said of sets, in one sentence.
    """

    words: str
    critical: tuple[tuple[str, tuple[str, ...]], ...]
    together: tuple[str, ...]
    further: str


def failures(found: Redundancy, wanted: Sequence[str] | None = None) -> Failures:
    """Return what the failure of sensors takes away.

    Args:
        found: which may fail.
        wanted: the outputs as they were asked for; those that were looked at when None.
    """
    outputs = listed(wanted or found.outputs, SHOWN) or "the outputs"
    n, n_critical = len(found.sensors), len(found.critical)
    if not found.outputs:
        words = f"None of {outputs} is determined: there is nothing to lose."
    elif n_critical == n:
        words = f"None of the {n:,} sensors may fail: without any one, some of {outputs} is lost."
    elif n_critical:
        words = f"Any one of {n - n_critical:,} of the {n:,} sensors may fail; {n_critical:,} may not."
    else:
        words = f"Any one of the {n:,} sensors may fail: {outputs} stays determined."
    together = tuple(_list_sets(found.failing_sets))
    further = ""
    if together:
        further = f"These of the others may not fail together, in sets of up to {found.size}:"
    elif found.size > 1 and n_critical < n and found.outputs:
        further = f"Nothing is lost either where {found.size} of these fail together."
    critical = tuple((name, by_variable(found.lost[name])) for name in found.critical)
    return Failures(words, critical, together, further)


def _list_sets(sets: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield sets of several sensors, those that differ in the last one only as one."""
    several = (failing for failing in sets if len(failing) > 1)
    for first, own in itertools.groupby(several, key=lambda failing: failing[:-1]):
        last = [failing[-1] for failing in own]
        yield " and ".join((*map(unbroken, first), f"{'any one of ' if len(last) > 1 else ''}{listed(last)}"))

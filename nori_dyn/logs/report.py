"""Report of a run over a log: counts, samples that were left out, plausibility warnings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType

import numpy as np

from nori_dyn.filtering.history_summary import Summary
from nori_dyn.logs.reading import LogCounts
from nori_dyn.logs.samples import Samples, samples_by_state
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.plausibility.checks import warnings_of_motion, warnings_of_readings
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.tables import Shown
from nori_dyn.typing import Indices

MOST = 1000
"""Singular samples that are listed by their numbers, at most."""


@dataclass(slots=True)
class LogReport(Shown):
    """Report of a run over a log.

    Attributes:
        samples: how many samples were estimated.
        counts: what was counted on the way: streams, samples that were left out.
        dropped: in how many samples a sensor was dropped, by its name, where it was at all.
        doubts: plausibility warnings about the log.
        n_singular: how many samples have no unique solution.
        singular: the numbers of the first of them in the log.
        fell_back: how many samples were re-factorised with pivoting.
        largest_residual: the largest relative residual of a sample; None where it was not computed.
        backend: what ran.
        preparing: time to compile [s], or to load what was compiled before.
        seconds: time to solve [s], without reading and writing.
        summary: the summary of estimates over time; None of single instants.
    """

    samples: int = 0
    counts: LogCounts = field(default_factory=LogCounts)
    dropped: dict[str, int] = field(default_factory=dict)
    doubts: tuple[PlausibilityWarning, ...] = ()
    n_singular: int = 0
    singular: list[int] = field(default_factory=list)
    fell_back: int = 0
    largest_residual: float | None = None
    backend: str = ""
    preparing: float = 0.0
    seconds: float = 0.0
    summary: Summary | None = None

    def add(self, numbers: Indices, estimate: Estimate) -> None:
        """Count the estimates of samples, by their numbers in the log (n,)."""
        self.samples += len(numbers)
        self.backend = estimate.backend
        self.fell_back += int(np.count_nonzero(estimate.fell_back))
        where = np.flatnonzero(estimate.singular)
        self.n_singular += len(where)
        self.singular += numbers[where[: MOST - len(self.singular)]].tolist()
        residual = np.asarray(estimate.residual)
        if not np.isnan(residual).all():
            self.largest_residual = max(float(np.nanmax(residual)), self.largest_residual or 0.0)

    def add_summary(self, part: Summary) -> None:
        """Take the flags of the samples that come next: after those before, or before them by a smoother."""
        parts = [part] if self.summary is None else [self.summary, part]
        self.summary = Summary.joined(parts if part.is_causal else parts[::-1])

    def doubt(self, found: tuple[PlausibilityWarning, ...]) -> None:
        """Take doubts: of those of one check that are alike, the one that is of the largest share."""
        kept = {(each.check, _subject(each)): each for each in self.doubts}
        for each in found:
            key = each.check, _subject(each)
            if key not in kept or kept[key].share < each.share:
                kept[key] = each
        self.doubts = tuple(kept.values())


def _subject(doubt: PlausibilityWarning) -> str:
    """Subject of a doubt: the quoted name in its message, or ""."""
    return doubt.message.split("'")[1] if doubt.message.count("'") > 1 else ""


LOOKED_AT, EVERY = 2048, 1 << 16
"""Samples that are looked at for what is not likely, of every so many; the first chunk is looked at as a whole."""


def look_at(
    report: LogReport,
    systems: Mapping[ContactState, System],
    samples: Samples,
    before: int,
    dt: float | None = None,
    estimate: Estimate | None = None,
    by_model: bool = True,
    units: Mapping[str, str] = MappingProxyType({}),
    are_recognised: bool = False,
) -> None:
    """Look for what is not likely in samples.

    Args:
        report: takes what is found.
        systems: what is read in each contact state.
        samples: the samples.
        before: how many came before them.
        dt: time between samples [s]; that of their times when None.
        estimate: what was estimated of them, where that is known by now.
        by_model: whether readings are to fit together by the model.
        units: what a mapping says of the units of q, qd and qdd, for people.
        are_recognised: whether nothing says which contacts are closed: readings are to fit together in one state.
    """
    if before and before // EVERY == (before + len(samples)) // EVERY:
        return
    looked = samples.at(slice(0, LOOKED_AT)) if before else samples
    for each, places in samples_by_state(looked).items():
        of_state, states = samples.record.own_readings, dict.fromkeys([each, *systems])
        y_all = looked.y[places]
        in_states = ((systems[state], of_state(state, y_all)) for state in states)
        system, y = next(in_states)
        rest, elsewhere = (list(in_states), ()) if are_recognised else ((), in_states)
        falls = not each and len(systems) > 1  # as it may without a contact
        q, qd = looked.q[places], looked.qd[places]
        report.doubt(warnings_of_readings(system, q, qd, y, by_model, rest, elsewhere, falls))
    whole = None if before else estimate
    t = looked.t if looked.t is not None and len(looked.t) > 1 else None
    (first, system), *more = systems.items()
    y = samples.record.own_readings(first, looked.y)
    others = [other for _, other in more]
    found = warnings_of_motion(system, looked.q, looked.qd, y, whole, dt, t, others, by_model)
    pairs = {"rates": ("q", "qd"), "accelerations": ("qd", "qdd")}
    report.doubt(tuple(replace(each, message=each.message + _said(units, pairs.get(each.check))) for each in found))


def _said(units: Mapping[str, str], kinds: tuple[str, str] | None) -> str:
    """A sentence with the units that a mapping gives to two kinds; "" unless it gives both."""
    if kinds is None or not all(units.get(kind) for kind in kinds):
        return ""
    return f" The mapping says {', and '.join(f'{units[kind]} of {kind}' for kind in kinds)}."

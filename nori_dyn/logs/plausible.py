"""What is not likely about the samples of a log, whoever reads it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from nori_dyn.logs.checks import samples_by_state
from nori_dyn.logs.report import LogReport
from nori_dyn.logs.samples import Samples
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.plausibility.doubts import doubts_of_motion, doubts_of_readings
from nori_dyn.system.builder import System

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
) -> None:
    """Look for what is not likely in samples.

    Args:
        report: takes what is told.
        systems: what is read in each contact state.
        samples: the samples.
        before: how many came before them.
        dt: time between samples [s]; that of their times when None.
        estimate: what was estimated of them, where that is known by now.
        by_model: whether readings are to fit together by the model.
        units: what a mapping says of the units of q, qd and qdd, for people.
    """
    if before and before // EVERY == (before + len(samples)) // EVERY:
        return
    looked = samples.at(slice(0, LOOKED_AT)) if before else samples
    for each, places in samples_by_state(looked).items():
        system, y = systems[each], samples.record.own_readings(each, looked.y[places])
        report.doubt(doubts_of_readings(system, looked.q[places], looked.qd[places], y, by_model))
    whole = None if before else estimate
    t = looked.t if looked.t is not None and len(looked.t) > 1 else None
    first, system = next(iter(systems.items()))
    y = samples.record.own_readings(first, looked.y)
    found = doubts_of_motion(system, looked.q, looked.qd, y, whole, dt, t)
    pairs = {"rates": ("q", "qd"), "accelerations": ("qd", "qdd")}
    report.doubt(tuple(replace(each, message=each.message + _said(units, pairs.get(each.check))) for each in found))


def _said(units: Mapping[str, str], kinds: tuple[str, str] | None) -> str:
    """Return what a mapping says of the units of two kinds, as a sentence; "" where it does not say both."""
    if kinds is None or not all(units.get(kind) for kind in kinds):
        return ""
    return f" The mapping says {', and '.join(f'{units[kind]} of {kind}' for kind in kinds)}."

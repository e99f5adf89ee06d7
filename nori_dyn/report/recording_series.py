"""The series of a Rerun recording, estimated against measured, and how a viewer lays them out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from nori_dyn.report.estimate_picture import HALVES
from nori_dyn.report.recorded import RecordedLog, chosen
from nori_dyn.report.recording_robot import ROBOT
from nori_dyn.report.recording_stream import ESTIMATED, MEASURED, Recording, Series
from nori_dyn.tables import spaced
from nori_dyn.typing import Floats

MOST_VIEWS = 12
"""Plots of a tab that is open at once, at most."""


def series(into: Recording) -> Iterator[Series]:
    """Yield the series."""
    log = into.log
    for name in chosen(tuple(log.estimates), into.names):
        yield from compared(log, name, log.estimates[name])
    if log.diagnosis is None:
        return
    for name in () if into.names else log.told:
        if name not in log.estimates:
            yield from compared(log, name, log.told[name])
    z = log.diagnosis.normalised
    for k, (reading, sensor) in enumerate(zip(log.diagnosis.readings, log.diagnosis.sensors, strict=True)):
        if np.isfinite(z[:, k]).any():
            component = reading.removeprefix(sensor).removeprefix(".") or "residual"
            yield Series(("residuals", "sigma", sensor, component, "residual"), z[:, k], reading)
    yield Series(("fit", "p_value", "p", "p", "p_value"), np.asarray(log.diagnosis.p_value, dtype=float), "p_value")


def compared(log: RecordedLog, name: str, estimated: Floats) -> Iterator[Series]:
    """Yield what is estimated of a number, and what was read of it."""
    kind, _, rest = name.rpartition(":") if ":" in name else ("sensors", "", name)
    owner, _, component = rest.rpartition(".") if rest.rpartition(".")[2] in HALVES else (rest, "", "")
    entity = ("numbers", kind, owner or kind, component or "value")
    alone = not component
    read = log.measured(name)
    if read is not None:
        yield Series((*entity, "measured"), read, f"{name} measured", MEASURED if alone else None)
    yield Series((*entity, "estimated"), estimated, name, ESTIMATED if alone else None)


def blueprint(into: Recording, groups: Sequence[tuple[str, ...]]) -> Any:
    """Return how a viewer lays it out: the robot and what is said on the left, plots on the right."""
    import rerun.blueprint as rrb

    log = into.log
    tabs: dict[str, list[tuple[str, ...]]] = {}
    for group in sorted(groups, key=lambda group: (group[0] != "residuals", log.rank(group[2]))):
        tabs.setdefault("residuals" if group[0] == "residuals" else group[1], []).append(group)
    plots = [
        rrb.Grid(
            *(rrb.TimeSeriesView(origin=into.entity(*group), name=spaced(group[2])) for group in own[:MOST_VIEWS]),
            name=title,
        )
        for title, own in tabs.items()
    ]
    said = rrb.Tabs(
        rrb.TextDocumentView(origin="/verdict", name="verdict"),
        rrb.StateTimelineView(origin="/said", name="when"),
        rrb.TextLogView(origin="/suspects", name="suspects"),
        active_tab=0,
    )
    left = rrb.Vertical(rrb.Spatial3DView(origin=f"/{ROBOT}", name=log.system.tree.name), said, row_shares=[2, 1])
    return rrb.Blueprint(rrb.Horizontal(left, rrb.Tabs(*plots, active_tab=0), column_shares=[1, 1]) if plots else left)

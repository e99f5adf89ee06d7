"""A layout of Foxglove for the topics that estimates are written and published to: plots ready to be looked at.

The format is that of Foxglove's exported layouts: what each panel shows by its id, and how panels share the window. The
topics are those of `nori_dyn.logs.messages.estimates`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nori_dyn.estimation.plan import Plan
from nori_dyn.io.files import write_bytes
from nori_dyn.logs.fields import schema_of
from nori_dyn.logs.formats.writer import SIGMA, FileSchema
from nori_dyn.logs.messages.estimates import ACCEL, JOINT_STATE, WRENCH, EstimateMessages, EstimateTopic
from nori_dyn.planning.outputs import output_columns

MOST_LINES = 12
"""Lines of a panel that are drawn, at most; others are there and switched off."""

MOST_PANELS = 12
"""Panels of a tab, at most: those of the first links."""

TABS = {JOINT_STATE: "Torques", WRENCH: "Wrenches", ACCEL: "Accelerations"}
OTHERS, DEVIATIONS = "Trust", "Sigmas"
"""What the tabs are called: by the kind of messages, and of what has no kind of its own."""


def foxglove_layout(schema: FileSchema) -> dict[str, Any]:
    """The layout for what a file of estimates holds.

    Raises:
        MissingExtraError: the extra `logs` is not installed, which knows the messages.
    """
    labels = [label for each in schema.fields for label in each.labels]
    panels: dict[str, Any] = {}
    tabs: dict[str, list[str]] = {}
    for published in EstimateMessages(schema).published:
        own = [labels[k] for k in published.columns]
        title = TABS.get(published.kind, DEVIATIONS if own[0].startswith(SIGMA) else OTHERS)
        shown = tabs.setdefault(title, [])
        if len(shown) < MOST_PANELS:
            shown.append(f"Plot!{len(panels)}")
            panels[shown[-1]] = _plot(published.topic, list(_lines(published, own)))
    order = sorted(tabs, key=lambda title: [*TABS.values(), OTHERS, DEVIATIONS].index(title))
    panels["Tab!estimates"] = {
        "activeTabIdx": 0,
        "tabs": [{"title": title, "layout": _shared(tabs[title], "column")} for title in order],
    }
    grid = {"visible": True, "layerId": "foxglove.Grid", "instanceId": "grid"}
    panels["3D!robot"] = {"layers": {"grid": grid}}
    return {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {"first": "3D!robot", "second": "Tab!estimates", "direction": "row", "splitPercentage": 35},
    }


def write_foxglove_layout(plans: Plan, path: str | Path, is_judged: bool = False) -> None:
    """Write the layout for the topics that the estimates of a plan are written to.

    Args:
        plans: the plan.
        path: the file.
        is_judged: whether readings are judged as well.

    Raises:
        MissingExtraError: see `foxglove_layout`.
        FileFormatError: the file cannot be written.
    """
    plan = plans.states.first
    whole = len(set(output_columns(plan.system, plan.outputs).tolist())) == plan.system.shape[1]
    schema = schema_of(plan.system, plan.outputs, True, whole, is_judged, {})
    write_bytes(path, (json.dumps(foxglove_layout(schema), indent=2) + "\n").encode())


def _lines(published: EstimateTopic, labels: list[str]) -> Iterator[tuple[str, str]]:
    """Yield where the numbers of a topic are, as Foxglove writes it, and what they are called.

    Elements of arrays go by their names in our columns, and by their places there.
    """
    for k, (path, label) in enumerate(zip(published.paths, labels, strict=True)):
        array, named, _ = path.partition(":")
        yield f"{published.topic}{array}[{k}]" if named else published.topic + path, label


def _plot(title: str, lines: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "title": title,
        "paths": [
            {"value": path, "label": label, "enabled": k < MOST_LINES, "timestampMethod": "receiveTime"}
            for k, (path, label) in enumerate(lines)
        ],
        "showXAxisLabels": True,
        "showYAxisLabels": True,
        "showLegend": True,
        "legendDisplay": "floating",
        "showPlotValuesInLegend": True,
        "isSynced": True,
        "xAxisVal": "timestamp",
        "sidebarDimension": 240,
    }


def _shared(ids: list[str], direction: str) -> Any:
    """Panels that share a place evenly, halved as Foxglove does."""
    if len(ids) == 1:
        return ids[0]
    half = (len(ids) + 1) // 2
    other = "row" if direction == "column" else "column"
    return {
        "first": _shared(ids[:half], other),
        "second": _shared(ids[half:], other),
        "direction": direction,
        "splitPercentage": round(100 * half / len(ids)),
    }

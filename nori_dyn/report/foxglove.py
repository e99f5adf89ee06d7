"""A layout of Foxglove for the topics that estimates are written and published to: plots ready to be looked at.

The format is that of Foxglove's exported layouts: what each panel shows by its id, and how panels share the window.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from nori_dyn.io.files import write_bytes
from nori_dyn.logs.writer import Field, Schema
from nori_dyn.model.joints import FORCE, MOTION

TOPICS = "/nori_dyn"
"""Where the topics of estimates are."""

MOST_LINES = 12
"""Lines of a panel, at most; others are there and switched off."""

VECTORS = {
    **dict(zip(FORCE, ("torque.x", "torque.y", "torque.z", "force.x", "force.y", "force.z"), strict=True)),
    **dict(zip(MOTION, ("angular.x", "angular.y", "angular.z", "linear.x", "linear.y", "linear.z"), strict=True)),
}
"""Where the components of a spatial vector are in WrenchStamped.wrench and AccelStamped.accel."""

OF_LINKS = {"fx": ("wrench", "wrench", FORCE), "a": ("accel", "accel", MOTION)}
"""Of spatial vectors: the topic below `TOPICS`, the field of its messages, the components."""


def foxglove_layout(schema: Schema) -> dict[str, Any]:
    """Return the layout for what a file of estimates holds."""
    tabs = [tab for tab in (_joints(schema), *_links(schema), _trust(schema)) if tab is not None]
    panels: dict[str, Any] = {}
    shown = []
    for title, plots in tabs:
        ids = []
        for name, paths in plots:
            ids.append(f"Plot!{len(panels)}")
            panels[ids[-1]] = _plot(name, paths)
        shown.append({"title": title, "layout": _shared(ids, "column")})
    panels["3D!robot"] = {"layers": {"grid": {"visible": True, "layerId": "foxglove.Grid", "instanceId": "grid"}}}
    panels["Tab!plots"] = {"activeTabIdx": 0, "tabs": shown}
    return {
        "configById": panels,
        "globalVariables": {},
        "userNodes": {},
        "playbackConfig": {"speed": 1},
        "layout": {"first": "3D!robot", "second": "Tab!plots", "direction": "row", "splitPercentage": 35},
    }


def save_foxglove_layout(schema: Schema, path: str | Path) -> None:
    """Write the layout, whole or not at all.

    Raises:
        FileFormatError: the file cannot be written.
    """
    write_bytes(path, (json.dumps(foxglove_layout(schema), indent=2) + "\n").encode())


def message_paths(layout: dict[str, Any]) -> tuple[str, ...]:
    """Return the paths that a layout draws: "/nori_dyn/joint_states.effort[3]"."""
    plots = [panel for panel in layout["configById"].values() if "paths" in panel]
    return tuple(path["value"] for plot in plots for path in plot["paths"])


Plot = tuple[str, list[tuple[str, str]]]
Tab = tuple[str, list[Plot]]


def _field(schema: Schema, name: str) -> Field | None:
    return next((each for each in schema.fields if each.name == name), None)


def _joints(schema: Schema) -> Tab | None:
    """Return the plot of the torques: `joint_states`, effort."""
    owners = [
        owner
        for each in schema.fields
        if each.kind == "tau" and not each.name.startswith("sigma:")
        for owner in each.owners
    ]
    paths = [(f"{TOPICS}/joint_states.effort[{k}]", owner) for k, owner in enumerate(owners)]
    return ("Torques", [("Joint torques [N m or N]", paths)]) if paths else None


def _links(schema: Schema) -> Iterator[Tab]:
    """Yield the plots of the wrenches, and of the accelerations, of links."""
    for kind, (topic, field, components) in OF_LINKS.items():
        plots: list[Plot] = []
        for each in schema.fields:
            if each.kind != kind or each.name.startswith("sigma:"):
                continue
            for owner in each.owners:
                paths = [(f"{TOPICS}/{topic}/{owner}.{field}.{VECTORS[c]}", c) for c in components]
                plots.append((f"{kind}:{owner}", paths))
        if plots:
            yield {"fx": "Contact wrenches", "a": "Accelerations"}[kind], plots


def _trust(schema: Schema) -> Tab | None:
    """Return the plots of what is said of the estimates."""
    words = {
        "p_value": "p value: small where readings do not fit together",
        "residual": "Relative residual of the equations",
    }
    plots = [(text, [(f"{TOPICS}/{name}.data[0]", name)]) for name, text in words.items() if _field(schema, name)]
    return ("Trust", plots) if plots else None


def _plot(title: str, paths: list[tuple[str, str]]) -> dict[str, Any]:
    return {
        "title": title,
        "paths": [
            {"value": path, "label": label, "enabled": k < MOST_LINES, "timestampMethod": "headerStamp"}
            for k, (path, label) in enumerate(paths)
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
    """Return panels that share a place evenly, halved as Foxglove does."""
    if len(ids) == 1:
        return ids[0]
    half = (len(ids) + 1) // 2
    other = "row" if direction == "column" else "column"
    return {
        "first": _shared(ids[:half], other),
        "second": _shared(ids[half:], other),
        "direction": direction,
        "splitPercentage": 50,
    }

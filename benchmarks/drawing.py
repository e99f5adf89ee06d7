"""Records as pictures, by matplotlib."""

from __future__ import annotations

import importlib.util
import io
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.records import Record
from nori_dyn.errors import MissingExtraError
from nori_dyn.io.files import write_bytes

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#999999", "#882255", "#44aa99")
UNSAID = ("problem", "algorithm", "nv")
"""What a label leaves out of a case: the panel's title says it, or nobody needs it."""
MARKERS = "osD^vP*Xph"


def check_drawable() -> None:
    """Check, before the work, that pictures can be drawn.

    Raises:
        MissingExtraError: matplotlib is not installed.
    """
    if importlib.util.find_spec("matplotlib") is None:
        raise MissingExtraError("a picture", "plot")


def write_picture(draw: Callable[[Any, Sequence[Record]], None], records: Sequence[Record], path: Path) -> None:
    """Write a PNG of records.

    Raises:
        FileFormatError: the file cannot be written.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(dpi=130, layout="constrained")
    FigureCanvasAgg(figure)
    draw(figure, records)
    buffer = io.BytesIO()
    figure.savefig(buffer, format="png")
    write_bytes(path, buffer.getvalue())


def draw_ratios(figure: Any, records: Sequence[Record]) -> None:
    """Draw how many times faster our first run is than each other one, with quartiles; a panel a problem."""
    timed = [record for record in records if record.own]
    panels: dict[str, list[Record]] = {}
    for record in timed:
        panels.setdefault(_panel(record), []).append(record)
    names = list(dict.fromkeys(name for record in timed for name in record.seconds if name != record.own))
    longest = max(len(own) for own in panels.values())
    columns = min(len(panels), 4)
    lines = -(-len(panels) // columns)
    figure.set_size_inches(2.0 + 4.2 * columns, 1.4 + lines * (1.0 + 0.5 * longest))
    grid = figure.subplots(lines, columns, sharex=True, squeeze=False)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, (title, own) in zip(grid.flat, panels.items(), strict=False):
        for k, name in enumerate(names):
            places = [i for i, record in enumerate(own) if name in record.seconds]
            if not places:
                continue
            ratios = np.array([own[i].ratio(name) for i in places])
            error = np.abs(ratios[:, [0, 2]] - ratios[:, [1]]).T
            style = {"color": COLOURS[k % len(COLOURS)], "marker": MARKERS[k % len(MARKERS)]}
            axes.errorbar(ratios[:, 1], places, xerr=error, linestyle="none", label=name, markersize=5, **style)
        axes.axvline(1, color="black", linewidth=0.8)
        labels = [", ".join(str(value) for key, value in r.case.items() if key not in UNSAID) for r in own]
        axes.set_xlabel(f"times the time of {timed[0].own}, a state", fontsize=8)
        axes.set(title=title, xscale="log", yticks=range(len(own)), ylim=(len(own) - 0.4, -0.6))
        axes.set_yticklabels(labels, fontsize=8)
        axes.grid(axis="x", alpha=0.3)
    handles: dict[str, Any] = {}
    for axes in grid.flat:
        handles |= {label: handle for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)}
    figure.legend(handles.values(), handles.keys(), loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def draw_seconds(figure: Any, records: Sequence[Record]) -> None:
    """Draw the time of all runs as bars, a group a record."""
    own = [record for record in records if record.seconds]
    names = list(dict.fromkeys(name for record in own for name in record.seconds))
    figure.set_size_inches(9, 1.5 + 0.7 * len(own))
    axes, height = figure.subplots(), 0.8 / len(names)
    for k, name in enumerate(names):
        places = [i for i, record in enumerate(own) if name in record.seconds]
        middles = [own[i].time(name)[1] for i in places]
        at = np.array(places) + height * (k - (len(names) - 1) / 2)
        axes.barh(at, middles, height, color=COLOURS[k % len(COLOURS)], label=name)
    axes.set(xscale="log", xlabel="seconds", yticks=range(len(own)))
    axes.set_yticklabels([record.label for record in own], fontsize=8)
    axes.invert_yaxis()
    axes.grid(axis="x", alpha=0.3)
    figure.legend(loc="outside lower center", ncols=4, fontsize=8, frameon=False)


def plain_ticks(axis: Any) -> None:
    """Have a logarithmic axis of few decades show plain numbers."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(StrMethodFormatter("{x:g}"))
    axis.set_minor_formatter(NullFormatter())


def draw_against(
    axes: Any,
    records: Sequence[Record],
    value: Callable[[Record], float | None],
    label: str,
    number: int,
    **style: Any,
) -> None:
    """Draw a value of records against their number of links n, where they have it."""
    points = [(record.case["n"], value(record)) for record in records]
    known = sorted((n, found) for n, found in points if found is not None)
    if known:
        shown = {"marker": MARKERS[number % len(MARKERS)], "color": COLOURS[number % len(COLOURS)], **style}
        axes.plot(*zip(*known, strict=True), label=label, markersize=4, **shown)


def _panel(record: Record) -> str:
    return str(record.case.get("problem", record.case.get("algorithm", ""))).replace("_", " ")

"""Pictures of a plan, its matrix as it is assembled, as it is solved, and its factors; and of estimates over time."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.io.extras import needed
from nori_dyn.io.files import write_bytes
from nori_dyn.logs.fields import EXTRAS
from nori_dyn.logs.formats.writer import SIGMA, TIME
from nori_dyn.logs.log import whole_table
from nori_dyn.model.joints import FORCE, MOTION, UNITS
from nori_dyn.planning.planner import EliminationPlan
from nori_dyn.report.recorded import chosen
from nori_dyn.report.time_plots import Curve, Panel
from nori_dyn.system.variables import kind_in_words
from nori_dyn.typing import Indices

if TYPE_CHECKING:
    from matplotlib.figure import Figure


COLOURS = {"a": "#0072b2", "f": "#d55e00", "tau": "#009e73", "fx": "#999999", "qdd": "#cc79a7", "tau_J": "#56b4e9"}
OTHERS = "#e69f00"
"""The colour of what components add."""

ENDINGS = (".png", ".svg", ".pdf")


def check_picture_name(path: str | Path) -> None:
    """Check that a picture can be drawn, and that its name says of what kind it is.

    Raises:
        MissingExtraError: matplotlib is not installed.
        FileFormatError: the name ends otherwise.
    """
    needed("a picture", "plot", "matplotlib")
    if not str(path).endswith(ENDINGS):
        raise FileFormatError(f"{path}: must end in {', '.join(ENDINGS[:-1])} or {ENDINGS[-1]}.")


def empty_figure(width: float, height: float, dpi: int) -> Figure:
    """A figure of such a size [inches], without a window."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), dpi=dpi, layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save_figure(figure: Figure, path: str | Path, ending: str = "") -> None:
    """Write a figure in the format of an ending, or of that of its name.

    Raises:
        FileFormatError: the file cannot be written.
    """
    buffer = io.BytesIO()
    figure.savefig(buffer, format=(ending or Path(path).suffix)[1:])
    write_bytes(path, buffer.getvalue())


def draw_plan(plan: EliminationPlan, path: str | Path) -> None:
    """Write a PNG of D as assembled, D permuted and its factors L + U, coloured by the kind of variable.

    Raises:
        MissingExtraError: matplotlib or networkx is not installed.
        FileFormatError: the file cannot be written.
    """
    needed("a picture", "plot", "matplotlib")
    graph = plan.graph()
    n = len(graph) // 2
    row_step, column_step = (np.array([graph.nodes[side, k]["step"] for k in range(n)]) for side in ("row", "column"))
    kinds = np.array([graph.nodes["column", k]["kind"] for k in range(n)])
    row, column = np.array([(i, j) for (_, i), (_, j) in graph.edges]).T

    work = plan.elimination()
    factor_rows = [p.row for p in work.pivots] + [p.row for p in work.pivots for _ in p.u]
    factor_columns = [p.column for p in work.pivots] + [j for p in work.pivots for j in p.u]
    factor_rows += [i for p in work.pivots for i in p.l]
    factor_columns += [p.column for p in work.pivots for _ in p.l]
    rows, columns = np.array(factor_rows), np.array(factor_columns)

    panels = [
        ("D as assembled", row, column, column),
        (f"P D Q, ordering '{graph.graph['ordering']}'", row_step[row], column_step[column], column),
        (f"L + U, fill-in {work.fill_in}", row_step[rows], column_step[columns], columns),
    ]
    figure = empty_figure(15, 6, 150)
    for axes, (title, i, j, owner) in zip(figure.subplots(1, 3), panels, strict=True):
        _spy(axes, title, n, i, j, kinds[owner], [*dict.fromkeys(kinds.tolist())])
    handles, labels = figure.axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels), frameon=False, markerscale=5)
    figure.suptitle(f"{plan.system.tree.name}, {plan.system.sensors.name}: {n} equations and unknowns", fontsize=14)
    save_figure(figure, path, ".png")


def _spy(axes, title: str, n: int, i: Indices, j: Indices, kinds: NDArray[np.str_], known: Sequence[str]) -> None:  # type: ignore[no-untyped-def]
    for kind in known:
        own = kinds == kind
        colour, label = (
            COLOURS.get(kind, OTHERS),
            f"{kind_in_words(kind)} {kind}" if kind in COLOURS else kind_in_words(kind),
        )
        axes.plot(j[own], i[own], "s", markersize=1.1, markeredgewidth=0, color=colour, label=label)
    axes.set(title=f"{title}\n{len(i)} nonzeros", xlim=(-n / 80, n * 81 / 80), ylim=(n * 81 / 80, -n / 80))
    axes.set(aspect="equal", xlabel="column", ylabel="row")


MOST_PANELS = 12
"""Largest number of panels in a picture."""

WORDS = {
    "fx": "external wrench on {}",
    "f": "wrench through the joint of {}",
    "a": "acceleration of {}, gravity included",
    "tau": "joint torques tau",
    "qdd": "joint accelerations qdd",
    "tau_J": "torques in the joints tau_J",
    "loop": "internal wrench of loop {}",
    "coupling": "forces of couplings",
    "tendon": "forces of tendons",
}
"""What the kinds of variables are called; others are called by their kind."""

HALVES = {
    **dict.fromkeys(FORCE[:3], "moment"),
    **dict.fromkeys(FORCE[3:], "force"),
    **dict.fromkeys(MOTION[:3], "angular"),
    **dict.fromkeys(MOTION[3:], "linear"),
}
"""Which half of a spatial vector a component is of: each has a unit of its own, and so a panel."""


def place_of_estimate(name: str) -> tuple[str, str, str]:
    """The panel of an estimate ("fx:l_sole.mz", "tau:l_knee"), what it is called there and its unit; "" if unknown."""
    kind, _, owner = name.partition(":")
    owner, _, component = owner.rpartition(".") if owner.rpartition(".")[2] in HALVES else (owner, "", "")
    words = WORDS.get(kind, kind).format(owner)
    if component:
        return f"{words}: {HALVES[component]}", component, UNITS[component]
    return words, owner or name, ""


def draw_estimates(estimates: str | Path, path: str | Path, names: Sequence[str] = ()) -> tuple[str, ...]:
    """Draw estimates over time, a panel each kind and place, with two standard deviations where the file has them.

    Args:
        estimates: what `nori-dyn estimate` wrote.
        path: the picture to write: .png, .svg or .pdf.
        names: outputs to draw, such as "tau", "fx:l_sole" or "fx:l_sole.mz"; all when empty.

    Returns:
        The columns that were drawn.

    Raises:
        MissingExtraError: matplotlib is not installed.
        FileFormatError: a file cannot be read, or written.
        UnknownOutputError: there are no estimates of such a name.
        InputError: there are none at all, or too many for a picture.
    """
    check_picture_name(path)
    columns = whole_table(estimates)
    known = [name for name in columns if name not in (TIME, *EXTRAS) and not name.startswith(SIGMA)]
    if not known:
        raise InputError(f"{estimates}: holds no estimates. Name a file that `nori-dyn estimate` wrote.")
    drawn = chosen(known, names, str(estimates))
    found: dict[tuple[str, str], list[Curve]] = {}
    for name in drawn:
        title, label, unit = place_of_estimate(name)
        found.setdefault((title, unit), []).append(Curve(label, columns[name], columns.get(f"{SIGMA}{name}")))
    panels = [Panel(*words, tuple(curves)) for words, curves in found.items()]
    if len(panels) > MOST_PANELS:
        some = sorted({name.partition(".")[0] if ":" in name else name for name in drawn})
        raise InputError(
            f"{estimates}: its {len(drawn)} numbers need {len(panels)} panels, more than a picture holds "
            f"({MOST_PANELS}). Name what to draw, for instance {some[-1]}."
        )
    figure = empty_figure(10, 1.2 + 2.6 * len(panels), 120)
    n = len(next(iter(columns.values())))
    x = columns.get(TIME, np.arange(n, dtype=float))
    rows: Any = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for axes, panel in zip(rows[:, 0], panels, strict=True):
        for curve in panel.curves:
            (line,) = axes.plot(x, curve.x, label=curve.label, linewidth=1.2, marker="o" if n == 1 else None)
            if curve.sigma is not None:
                low, high = curve.x - 2 * curve.sigma, curve.x + 2 * curve.sigma
                axes.fill_between(x, low, high, color=line.get_color(), alpha=0.2, linewidth=0)
        axes.set_title(panel.title, loc="left", fontsize=11)
        axes.set_ylabel(f"[{panel.unit}]" if panel.unit else "")
        axes.axhline(0, color="#888888", linewidth=0.6)
        axes.grid(alpha=0.25)
        axes.margins(x=0.01)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    rows[-1, 0].set_xlabel("time [s]" if TIME in columns else "sample")
    bands = "; bands: ± 2 standard deviations" if any(SIGMA in name for name in columns) else ""
    figure.suptitle(f"{Path(estimates).name}{bands}", fontsize=12)
    save_figure(figure, path)
    return drawn

"""Pictures of a plan, its matrix as it is assembled, as it is solved, and its factors; and of a Pareto front."""

from __future__ import annotations

import io
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from nori_dyn.errors import FileFormatError
from nori_dyn.io.extras import needed
from nori_dyn.io.files import write_bytes
from nori_dyn.planning.planner import EliminationPlan
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

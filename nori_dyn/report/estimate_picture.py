"""Pictures of estimates over time, from a file that `nori-dyn estimate` wrote."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.fields import EXTRAS
from nori_dyn.logs.formats.writer import SIGMA, TIME
from nori_dyn.logs.log import whole_table
from nori_dyn.model.joints import FORCE, MOTION, UNITS
from nori_dyn.report.pictures import check_picture_name, empty_figure, save_figure
from nori_dyn.report.recorded import chosen
from nori_dyn.typing import Floats

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


@dataclass(frozen=True, slots=True)
class EstimateLine:
    """A column of estimates in a picture.

    Attributes:
        column: its name in the file.
        panel: the title of its panel.
        label: what it is called in the panel.
        unit: its unit; "" where the file does not say.
    """

    column: str
    panel: str
    label: str
    unit: str

    @staticmethod
    def of(column: str) -> EstimateLine:
        """The line of a column: "fx:l_sole.mz", "tau:l_knee"."""
        kind, _, owner = column.partition(":")
        owner, _, component = owner.rpartition(".") if owner.rpartition(".")[2] in HALVES else (owner, "", "")
        words = WORDS.get(kind, kind).format(owner)
        if component:
            return EstimateLine(column, f"{words}: {HALVES[component]}", component, UNITS[component])
        return EstimateLine(column, words, owner or column, "")


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
    panels: dict[str, list[EstimateLine]] = {}
    for name in drawn:
        line = EstimateLine.of(name)
        panels.setdefault(line.panel, []).append(line)
    if len(panels) > MOST_PANELS:
        some = sorted({name.partition(".")[0] if ":" in name else name for name in drawn})
        raise InputError(
            f"{estimates}: its {len(drawn)} numbers need {len(panels)} panels, more than a picture holds "
            f"({MOST_PANELS}). Name what to draw, for instance {some[-1]}."
        )
    _draw(panels, columns, Path(estimates).name, path)
    return drawn


def _draw(
    panels: Mapping[str, Sequence[EstimateLine]], columns: Mapping[str, Floats], title: str, path: str | Path
) -> None:
    figure = empty_figure(10, 1.2 + 2.6 * len(panels), 120)
    n = len(next(iter(columns.values())))
    x = columns.get(TIME, np.arange(n, dtype=float))
    rows: Any = figure.subplots(len(panels), 1, sharex=True, squeeze=False)
    for axes, (name, lines) in zip(rows[:, 0], panels.items(), strict=True):
        for line in lines:
            y = columns[line.column]
            (drawn,) = axes.plot(x, y, label=line.label, linewidth=1.2, marker="o" if n == 1 else None)
            sigma = columns.get(f"{SIGMA}{line.column}")
            if sigma is not None:
                axes.fill_between(x, y - 2 * sigma, y + 2 * sigma, color=drawn.get_color(), alpha=0.2, linewidth=0)
        unit = next((line.unit for line in lines if line.unit), "")
        axes.set_title(name, loc="left", fontsize=11)
        axes.set_ylabel(f"[{unit}]" if unit else "")
        axes.axhline(0, color="#888888", linewidth=0.6)
        axes.grid(alpha=0.25)
        axes.margins(x=0.01)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), frameon=False, fontsize=9)
    rows[-1, 0].set_xlabel("time [s]" if TIME in columns else "sample")
    bands = "; bands: ± 2 standard deviations" if any(SIGMA in name for name in columns) else ""
    figure.suptitle(f"{title}{bands}", fontsize=12)
    save_figure(figure, path)

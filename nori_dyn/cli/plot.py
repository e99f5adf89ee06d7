"""nori-dyn plot: estimates over time as a picture."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import unbroken


def plot(
    estimates: Annotated[Path, typer.Argument(metavar="ESTIMATES", help="What `nori-dyn estimate` wrote.")],
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="What to draw: tau, fx:l_sole, fx:l_sole.mz. All when left out."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option(help="The picture: .png, .svg or .pdf. ESTIMATES.png when left out.")
    ] = None,
) -> None:
    """Draw estimates over time.

    Where `estimate --monitor` wrote standard deviations, two of them are drawn to each side.

    Example: nori-dyn plot wrench.csv fx:panda_hand --out wrench.png
    """
    from nori_dyn.report.estimate_picture import check_picture_name, draw_estimates

    if out is None:
        out = Path(estimates.name.partition(".")[0] + ".png")
    check_picture_name(out)
    check_writable(out)
    drawn = draw_estimates(estimates, out, names or ())
    show(f"{len(drawn)} estimates drawn: {unbroken(str(out))}.")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(plot)

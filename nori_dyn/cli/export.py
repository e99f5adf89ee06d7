"""nori-dyn export: a plan as source code for a controller."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

import nori_dyn as nd
from nori_dyn.cli.common import show_found
from nori_dyn.cli.estimator import EstimatorOptions
from nori_dyn.cli.options import Json
from nori_dyn.errors import IdentifierError
from nori_dyn.export.names import checked_identifier
from nori_dyn.tables import Document, attributes, listed, unbroken

if TYPE_CHECKING:
    from nori_dyn.export.files import CExport


Language = Literal["c"]
"""Target language of an export."""


def _identifier(name: str | None) -> str | None:
    try:
        return None if name is None else checked_identifier(name)
    except IdentifierError as error:
        raise typer.BadParameter(str(error)) from None


def export(
    plan: Annotated[Path, typer.Argument(metavar="PLAN")],
    out: Path,
    lang: Language = "c",
    name: Annotated[str | None, typer.Option(callback=_identifier)] = None,
    monitor: bool = False,
    as_filter: Annotated[bool, typer.Option("--filter")] = False,
    dt: float | None = None,
    lag: Annotated[int | None, typer.Option(min=0)] = None,
    contacts: str | None = None,
    as_json: Json = False,
) -> None:
    """Write a plan as C that stands alone.

    A header, the code, an example, a class for C++, and a CMake list. A plan set becomes one function, which is given
    which contacts are closed; or of a filter, which recognises them.

    Example: nori-dyn export panda.plan --lang c --out panda_c

    Args:
        plan: The file of a plan, of one contact state or of several.
        out: The folder to write: a new or empty one, or an earlier export's.
        lang: The language: C11, with a header that C++ reads too, and a class of C++17.
        name: What to call files, functions and types. The robot's name by default.
        monitor: Write what judges estimates and readings as well: standard deviations of the outputs, residuals of the
            readings, and p_value, small where these do not fit together.
        as_filter: Write a filter: estimates at each tick from all readings up to it, by the `memory` of the sensors.
        dt: With --filter: the usual time from one tick to the next [s]; each call says its own. What the file of a
            tracker says when left out.
        lag: With --filter: estimate each tick so many later, from the readings until then.
        contacts: With --filter: `recognise` writes one that finds out which contacts are closed.
        as_json: Print the figures as JSON.
    """
    from nori_dyn.estimation.tracker import tracking

    tracked = tracking(plan) if as_filter else None
    if as_filter != (dt is not None or tracked is not None):
        raise typer.BadParameter("--filter and --dt go together: a filter has a usual time between ticks.")
    if as_filter and monitor:
        raise typer.BadParameter("--monitor is of one instant; a filter judges its readings by itself, see nis.")
    from nori_dyn.estimation.run_options import RECOGNISE

    if contacts not in (None, RECOGNISE):
        raise typer.BadParameter(f"--contacts {contacts}: each call tells which are closed; or name {RECOGNISE}.")
    if (contacts is not None or lag) and not as_filter:
        raise typer.BadParameter("--contacts recognise and --lag are of a filter: --filter --dt.")
    from nori_dyn.export.folder import check_folder

    check_folder(out)
    loaded = nd.Plan.load(plan)
    if as_filter:
        usual = dt if dt is not None else tracked.dt if tracked else 0.0
        by = EstimatorOptions(plan)
        chosen = by.contacts(contacts)
        recognised = chosen if isinstance(chosen, nd.Hypotheses) else None
        tracker: nd.Tracker[Any] = nd.Tracker(loaded, usual, by.late(lag), recognised, "numpy")
        made: CExport = tracker.export(out, lang, name)
    else:
        made = loaded.export(out, lang, name, monitor)
    states = f" in each of {len(made.states)} contact states" if len(made.states) > 1 else ""
    up_to = "up to " if states else ""
    function, struct = ("step", "filter") if as_filter else ("solve", "workspace")
    besides = " beside the filter's own" if as_filter else ""
    lines = [
        f"{made.name}_{function}: {up_to}{made.cost.total:,} operations{besides}{states}, {made.n_sines:,} sines and "
        f"cosines, {made.n_pivots:,} guarded pivots, a {struct} of {8 * made.n_work / 1000:,.1f} kB. Outputs: "
        f"{listed(made.outputs)}.",
        *([] if made.monitor is None else [f"{made.name}_check: {made.monitor.function.cost.total:,} operations."]),
        f"Written to {unbroken(str(out))}: {listed(made.files)}. {made.name}.h says how to call it.",
    ]
    build = f"cmake -S {shlex.quote(str(out))} -B build && cmake --build build && build/{made.name}_example"
    show_found(Document(tuple(lines), _figures(made, lang, out)), as_json, unbroken(f"Next: {build}"))


def _figures(made: CExport, lang: str, out: Path) -> dict[str, Any]:
    """Figures of an export, for JSON."""
    from nori_dyn.report.shows.plans import cost_figures

    functions = [*made.functions, *([] if made.monitor is None else [made.monitor.function])]
    return {
        **attributes(made, "name", "inputs", "outputs"),
        "lang": lang,
        "out": str(out),
        "files": {file: len(text) for file, text in made.files.items()},
        "cost": cost_figures(made.cost),
        "sines_and_cosines": made.n_sines,
        "guarded_pivots": made.n_pivots,
        "workspace_bytes": 8 * made.n_work,
        "functions": {function.name: cost_figures(function.cost) for function in functions},
    }

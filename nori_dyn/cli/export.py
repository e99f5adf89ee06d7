"""nori-dyn export: a plan as source code for a controller."""

from __future__ import annotations

import shlex
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import Json, print_json
from nori_dyn.errors import IdentifierError
from nori_dyn.program.c_names import checked_identifier
from nori_dyn.report.terminal import show
from nori_dyn.tables import listed, unbroken


class Language(StrEnum):
    """What a plan can be exported to."""

    C = "c"


def _identifier(name: str | None) -> str | None:
    try:
        return None if name is None else checked_identifier(name)
    except IdentifierError as error:
        raise typer.BadParameter(str(error)) from None


def export(
    plan: Annotated[Path, typer.Argument(metavar="PLAN", help="The plan file.")],
    out: Annotated[Path, typer.Option(help="The folder to write: a new or empty one, or an earlier export's.")],
    lang: Annotated[Language, typer.Option(help="The language: C11, with a header that C++ reads too.")] = Language.C,
    name: Annotated[
        str | None,
        typer.Option(
            callback=_identifier, help="What to call files, functions and types. The robot's name by default."
        ),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write a plan as C that stands alone: a header, the code, an example, and a CMake list.

    Example: nori-dyn export panda.plan --lang c --out panda_c
    """
    from nori_dyn.api.plan import Plan
    from nori_dyn.io.export import check_folder
    from nori_dyn.report.json_figures import cost_json

    check_folder(out)
    made = Plan.load(plan).export(out, lang.value, name)
    if as_json:
        print_json(
            {
                "name": made.name,
                "lang": lang.value,
                "out": str(out),
                "files": {file: len(text) for file, text in made.files.items()},
                "inputs": dict(made.inputs),
                "outputs": {field: list(shape) for field, shape in made.outputs.items()},
                "cost": cost_json(made.cost),
                "sines_and_cosines": made.n_sines,
                "guarded_pivots": made.n_pivots,
                "workspace_bytes": 8 * made.n_work,
            }
        )
        return
    show(
        f"{made.name}_solve: {made.cost.total:,} operations, {made.n_sines:,} sines and cosines, {made.n_pivots:,} "
        f"guarded pivots, a workspace of {8 * made.n_work / 1000:,.1f} kB. Outputs: {listed(made.outputs)}.",
        f"Written to {unbroken(str(out))}: {listed(made.files)}. {made.name}.h says how to call it.",
    )
    build = f"cmake -S {shlex.quote(str(out))} -B build && cmake --build build && build/{made.name}_example"
    typer.echo(f"Next: {build}")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(export)

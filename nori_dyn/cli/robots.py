"""nori-dyn robots: which robots are ready to use, and which models are known by name."""

from __future__ import annotations

from typing import Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import next_command, show_found
from nori_dyn.cli.options import Json
from nori_dyn.tables import Document, Table


def robots(
    preset: Annotated[str | None, typer.Argument(metavar="[PRESET]")] = None,
    as_json: Json = False,
) -> None:
    """List the robots that have a preset, with what each can estimate, and the models that are known by name.

    Nothing is downloaded for it. `nori-dyn robots | grep -i unitree` shows those of a maker.

    Example: nori-dyn robots go2

    Args:
        preset: One that is ready to use: what it can estimate, and from.
        as_json: Print the figures as JSON.
    """
    from nori_dyn.descriptions.robot_names import EXTRA
    from nori_dyn.descriptions.robot_names import robots as known_robots
    from nori_dyn.estimation.presets import known_presets

    if preset is not None:
        show_found(nd.preset(preset), as_json, next_command("estimate", "LOG", "--robot", preset))
        return
    known, presets = known_robots(), known_presets()
    rows = tuple(
        (name, ", ".join(one.data.estimates), "here" if one.file else "not here yet", one.data.about)
        for name, one in presets.items()
    )
    columns = ("preset", "estimates", "model", "what")
    ready = {name: {"estimates": [*one.data.estimates], "model": str(one.file or "")} for name, one in presets.items()}
    parts = (
        Table("Robots that are ready to use", columns, rows, left=(0, 1, 2, 3)),
        next_command("robots", "PRESET") + " says where its model and its numbers are from.",
        next_command("estimate", "LOG", "--robot", "PRESET").replace("Next", "Then", 1),
    )
    found = Document(parts) + known.shown()
    then = "Next: nori-dyn info NAME" if known else f"Next: {EXTRA}, or name a file: nori-dyn info ROBOT.urdf"
    show_found(found, as_json, then, presets=ready)

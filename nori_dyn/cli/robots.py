"""nori-dyn robots: which robots are ready to use, and which models are known by name."""

from __future__ import annotations

from typing import Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import next_command, print_json
from nori_dyn.cli.options import Json
from nori_dyn.report.terminal import show
from nori_dyn.tables import Table


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
        one = nd.preset(preset)
        if as_json:
            print_json(one.data.model_dump(mode="json", by_alias=True))
        else:
            show(one.shown(), next_command("estimate", "LOG", "--robot", preset))
        return
    known, presets = known_robots(), known_presets()
    if as_json:
        ready = {
            name: {"estimates": [*one.data.estimates], "model": str(one.file or "")} for name, one in presets.items()
        }
        print_json({**known.to_dict(), "presets": ready})
        return
    rows = tuple(
        (name, ", ".join(one.data.estimates), "here" if one.file else "not here yet", one.data.about)
        for name, one in presets.items()
    )
    columns = ("preset", "estimates", "model", "what")
    show(
        Table("Robots that are ready to use", columns, rows, left=(0, 1, 2, 3)),
        next_command("robots", "PRESET") + " says where its model and its numbers are from.",
        next_command("estimate", "LOG", "--robot", "PRESET").replace("Next", "Then", 1),
        known.shown(),
        "Next: nori-dyn info NAME" if known else f"Next: {EXTRA}, or name a file: nori-dyn info ROBOT.urdf",
    )

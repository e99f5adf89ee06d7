"""nori-dyn robots: which robots are known by name."""

from __future__ import annotations

import typer

from nori_dyn.cli.common import Json, print_json
from nori_dyn.report.terminal import show


def robots(as_json: Json = False) -> None:
    """List the robots that are known by name, and of which package each is.

    Nothing is downloaded for it. `nori-dyn robots | grep -i unitree` shows those of a maker.

    Example: nori-dyn robots
    """
    from nori_dyn.descriptions.robot_names import EXTRA
    from nori_dyn.descriptions.robot_names import robots as known_robots

    known = known_robots()
    if as_json:
        print_json(known.to_dict())
    elif known:
        show(known.shown(), "Next: nori-dyn info NAME")
    else:
        show(known.shown(), f"Next: {EXTRA}, or name a file: nori-dyn info ROBOT.urdf")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(robots)

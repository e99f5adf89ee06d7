"""nori-dyn map: draft what ties the columns of a log to a robot."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from nori_dyn.cli.common import Base, Components, Keep, Lock, next_command


def map_log(
    log: Annotated[Path, typer.Argument(help="The log, of any format that `nori-dyn estimate` reads.")],
    robot: Annotated[
        str, typer.Option(metavar="ROBOT", help="A URDF or MJCF file, the name of a robot, or a plan file.")
    ],
    sensors: Annotated[
        str | None,
        typer.Option(help="The set of sensors that the mapping is for; joint accelerations and torques when left out."),
    ] = None,
    base: Annotated[Base, typer.Option(help="Whether the root link is fixed or free.")] = Base.FIXED,
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    out: Annotated[Path | None, typer.Option(help="The YAML file to write; printed when left out.")] = None,
) -> None:
    """Draft what ties the columns, topics and keys of a log to a robot: a YAML file to look through and to mend.

    The draft says what each guess rests on, what the sensors need and was not found, and which columns are left over.

    Example: nori-dyn map run.mcap --robot panda --sensors inverse_dynamics --out panda_log.yaml
    """
    from nori_dyn.cli.common import is_planned, load
    from nori_dyn.estimation.log_run import LogRunner
    from nori_dyn.estimation.plan import Plan
    from nori_dyn.estimation.system import System
    from nori_dyn.io.files import check_writable, write_bytes
    from nori_dyn.io.sensor_configs import load_sensors
    from nori_dyn.logs.draft import draft
    from nori_dyn.logs.record import SampleRecord
    from nori_dyn.logs.registry import open_log
    from nori_dyn.measurements.sensor_set import SensorSet
    from nori_dyn.report.mapping_text import mapping_text
    from nori_dyn.report.terminal import show

    if out is not None:
        check_writable(out)
    if is_planned(robot):
        planned = LogRunner(Plan.load(Path(robot)))
        record = SampleRecord.of(planned.systems, planned.contacts)
    else:
        tree = load(robot, base, lock, keep, components, False)
        known = SensorSet.from_dict(USUAL) if sensors is None else load_sensors(sensors, robot, tree)
        record = SampleRecord.of({(): System(tree, known)})
    with open_log(log) as source:
        made = draft(source, record)
    text = mapping_text(made, log)
    if out is None:
        typer.echo(text, nl=False)
        return
    write_bytes(out, text.encode())
    show(
        f"{len(made.guesses)} guesses for '{made.robot}', written to {out}: look through them. Nothing was found for "
        f"{len(made.lacking)} quantities, and {len(made.left_over)} columns are left over; the file lists both.",
        next_command("estimate", "--plan", "PLAN", "--input", log, "--mapping", out, "--out", "OUT"),
    )


USUAL = {
    "name": "joints",
    "measurements": [
        {"type": "joint_acceleration", "joints": "actuated"},
        {"type": "joint_torque", "joints": "actuated", "sigma": 1.0},
    ],
}
"""What is looked for where no sensors are named."""


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command("map")(map_log)

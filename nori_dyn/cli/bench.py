"""nori-dyn bench: what a plan costs on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import in_contact, is_planned, named, named_contacts, show_found
from nori_dyn.cli.options import Json, RobotOptions
from nori_dyn.tables.progress import progress_bar


def bench(
    what: Annotated[str, typer.Argument(metavar="PLAN|ROBOT")],
    sensors: str | None = None,
    outputs: str | None = None,
    *,
    model: RobotOptions,
    contacts: str | None = None,
    batch: Annotated[int, typer.Option(min=1)] = 1024,
    rounds: Annotated[int, typer.Option(min=1)] = 15,
    seed: Annotated[int, typer.Option(min=0)] = 0,
    as_json: Json = False,
) -> None:
    """Count the operations of a plan, and time its ticks, calls and batches on this machine.

    Example: nori-dyn bench panda --sensors inverse_dynamics --outputs tau

    Args:
        what: The file of a plan, or a robot as in `plan`.
        sensors: Of a robot: a shipped set of sensors, or a YAML file. A plan has its own.
        outputs: Of a robot: outputs wanted, with commas: tau,qdd,fx:l_sole. All when left out.
        model: See `RobotOptions`.
        contacts: The contacts that are closed: l_foot,r_foot, or none. Of a plan all its states when left out.
        batch: Number of states of a batch.
        rounds: Number of rounds in which the runs take turns.
        seed: Seed of the states.
        as_json: Print the figures as JSON.
    """
    from nori_dyn.bench import measure

    if is_planned(what):
        if sensors is not None or outputs is not None:
            raise typer.BadParameter(
                "a plan has its own; name the robot for others.", param_hint="--sensors, --outputs"
            )
        plan = nd.Plan.load(what)
        plan = plan if contacts is None else plan[named_contacts(contacts)]
    else:
        tree, known = model.with_sensors(what, sensors)
        plan = nd.plan(nd.System(tree, in_contact(known, contacts)), None if outputs is None else named(outputs))
    with progress_bar("bench") as stage:
        found = measure(plan, batch, rounds, seed, progress=stage)
    show_found(found.document(), as_json)

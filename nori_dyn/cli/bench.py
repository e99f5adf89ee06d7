"""nori-dyn bench: what a plan costs on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from nori_dyn.cli.common import (
    Base,
    Components,
    Json,
    Keep,
    Lock,
    Mended,
    Strict,
    in_contact,
    is_planned,
    load,
    missing_sensors,
    print_json,
)
from nori_dyn.report.terminal import show
from nori_dyn.tables.progress import progress_bar


def bench(
    what: Annotated[str, typer.Argument(metavar="PLAN|ROBOT", help="The file of a plan, or a robot as in `plan`.")],
    sensors: Annotated[
        str | None, typer.Option(help="Of a robot: a shipped set of sensors, or a YAML file. A plan has its own.")
    ] = None,
    outputs: Annotated[
        str | None,
        typer.Option(help="Of a robot: outputs wanted, with commas: tau,qdd,fx:l_sole. All when left out."),
    ] = None,
    base: Base = "fixed",
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    contacts: Annotated[
        str | None,
        typer.Option(
            help="The contacts that are closed: l_foot,r_foot, or none. Of a plan all its states when left out."
        ),
    ] = None,
    batch: Annotated[int, typer.Option(min=1, help="Number of states of a batch.")] = 1024,
    rounds: Annotated[int, typer.Option(min=1, help="Number of rounds in which the runs take turns.")] = 15,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the states.")] = 0,
    inertias: Mended = "as_given",
    strict: Strict = False,
    as_json: Json = False,
) -> None:
    """Count the operations of a plan, and time its ticks, calls and batches on this machine.

    Example: nori-dyn bench panda --sensors inverse_dynamics --outputs tau
    """
    from nori_dyn.bench import measure
    from nori_dyn.cli.common import named_contacts
    from nori_dyn.descriptions.sensor_configs import load_sensors
    from nori_dyn.estimation.plan import Plan
    from nori_dyn.estimation.plan import plan as make_plan
    from nori_dyn.estimation.system import System

    if is_planned(what):
        if sensors is not None or outputs is not None:
            raise typer.BadParameter(
                "a plan has its own; name the robot for others.", param_hint="--sensors, --outputs"
            )
        plan = Plan.load(what)
        plan = plan if contacts is None else plan[named_contacts(contacts)]
    elif sensors is None:
        raise missing_sensors()
    else:
        tree = load(what, base, lock, keep, components, strict, inertias)
        known = in_contact(load_sensors(sensors, what, tree), contacts)
        names = None if outputs is None else tuple(name.strip() for name in outputs.split(","))
        plan = make_plan(System(tree, known), names)
    with progress_bar("bench") as stage:
        found = measure(plan, batch, rounds, seed, progress=stage)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.document())


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(bench)

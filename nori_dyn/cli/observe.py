"""nori-dyn observe: whether sensors suffice, for the dynamics or for the robot's own parameters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from nori_dyn.cli.common import (
    SPECIAL_POSES,
    Base,
    Components,
    Json,
    Keep,
    Lock,
    Mended,
    PosesFile,
    in_contact,
    is_given,
    is_planned,
    load,
    missing_sensors,
    next_command,
    print_json,
    refuse_given,
    robot_options,
    special_poses,
)
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import Document
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.measurements.sensor_set import SensorSet
    from nori_dyn.model.tree import KinematicTree
    from nori_dyn.observe.conditioning import Conditioning
    from nori_dyn.observe.report import ObservabilityReport, Where

SWEPT = 200
"""Number of random poses to sweep."""


OF_DYNAMICS = ["contacts", "poses", "where", "samples", "outputs", "failing", "states", "html", "workers", "scheduler"]
"""Parameters that do not go with --parameters."""


def observe(
    ctx: typer.Context,
    robot: Annotated[
        str, typer.Argument(metavar="ROBOT|PLAN", help="A robot as in `plan`, or the file of a plan or plan set.")
    ],
    sensors: Annotated[
        str | None,
        typer.Option(
            help="A shipped set of sensors, or a YAML file; those of the plan when left out. With --parameters, "
            "`identification`, or `identification_floating` with a floating base."
        ),
    ] = None,
    base: Base = "fixed",
    lock: Lock = None,
    keep: Keep = None,
    components: Components = None,
    contacts: Annotated[
        str | None,
        typer.Option(help="The contacts that are closed, where the sensors have contacts: l_foot,r_foot, or none."),
    ] = None,
    poses: PosesFile = None,
    where: Annotated[
        list[str] | None,
        typer.Option(metavar="POSE:FRAMES", help=f"{SPECIAL_POSES} The likely ones when left out."),
    ] = None,
    samples: Annotated[
        int,
        typer.Option(min=0, help="Random poses to sweep where no --poses are given; 0 leaves them out."),
    ] = SWEPT,
    outputs: Annotated[str, typer.Option(help="What is to be known well, with commas: tau,qdd,fx:l_sole.")] = "tau",
    failing: Annotated[
        int, typer.Option(min=0, metavar="N", help="Largest sets of sensors whose failure is looked at; 0 for none.")
    ] = 2,
    states: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="K",
            help="Poses over which the state, the `memory` of the sensors, is to be learned. As many as tell "
            "anything when left out.",
        ),
    ] = None,
    parameters: Annotated[
        str | None,
        typer.Option(
            help="Tell which parameters of the robot are identifiable instead: alone, in which combinations, or never; "
            "exactly, for motions as rich as they can be. With commas: inertias, friction, rotors, springs, offsets, "
            "gains, names such as m:forearm, or patterns such as viscous:l_*."
        ),
    ] = None,
    still: Annotated[
        list[str] | None,
        typer.Option(
            "--still",
            metavar="JOINT",
            help="With --parameters, a joint that does not move, and may stand anywhere; repeatable. --lock freezes "
            "it, which makes one link of two.",
        ),
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report as a web page that stands alone.")] = None,
    workers: Annotated[
        int | None, typer.Option(min=1, help="Processes of this machine for the sweep. All cores when left out.")
    ] = None,
    scheduler: Annotated[
        str | None, typer.Option(metavar="ADDRESS", help="Sweep on a Dask cluster instead: tcp://host:8786.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    inertias: Mended = "as_given",
    strict: Annotated[
        bool,
        typer.Option(
            "--strict",
            help="Exit with 1 also where rank is lost at a likely special pose, such as flat ground; and refuse "
            "inertias that no distribution of mass has, but with --inertias nearest.",
        ),
    ] = False,
    as_json: Json = False,
) -> None:
    """Tell whether sensors suffice, and what they do not see.

    The exit status is 0 if they do, at almost every configuration and at each one asked for by --poses or --where;
    otherwise 1. What persists, by the `memory` of the sensors, may be learned over several poses. With --strict, so it
    is where they do not at the likely special poses, which nobody asked for.

    Example: nori-dyn observe icub.urdf --base floating --sensors load_cells_five --where parallel:l_sole,r_sole

    Where links may be touched, by the `touch` of the sensors, it tells on which a touch is localized, and which of them
    no reading tells apart.

    Example: nori-dyn observe panda.urdf --parameters inertias,friction
    """
    if parameters is not None:
        refuse_given(ctx, OF_DYNAMICS, "does not go with --parameters.")
        named = sensors or ("identification" if base == "fixed" else "identification_floating")
        _show_identifiable(
            load(robot, base, lock, keep, components, strict, inertias), robot, named, parameters, still, seed, as_json
        )
        return
    refuse_given(ctx, ("still",), "needs --parameters.")
    from nori_dyn.descriptions.sensor_configs import load_sensors
    from nori_dyn.estimation.system import System
    from nori_dyn.logs.log import configurations_in
    from nori_dyn.model.joints import notes_on_limits
    from nori_dyn.observe.conditioning import conditioning
    from nori_dyn.observe.redundancy import redundancy
    from nori_dyn.observe.report import observability
    from nori_dyn.planning.outputs import resolve_outputs
    from nori_dyn.report.html import save_html
    from nori_dyn.report.shows.models import tree_figures
    from nori_dyn.report.shows.observability import conditioning_document, redundancy_document, report_document

    asked: Where = special_poses(where) if where else "auto"
    if workers is not None and scheduler is not None:
        raise typer.BadParameter("with --scheduler, the workers are the cluster's.", param_hint="--workers")
    if html is not None:
        check_writable(html)
    wanted = tuple(name.strip() for name in outputs.split(","))
    if is_planned(robot):
        if sensors is not None:
            raise typer.BadParameter("a plan has its own; name the robot for others.", param_hint="--sensors")
        tree, known = _planned(robot)
    elif sensors is None:
        raise missing_sensors()
    else:
        tree = load(robot, base, lock, keep, components, strict and inertias != "nearest", inertias)
        known = load_sensors(sensors, robot, tree)
    if known.has_touches and contacts is None:
        _show_touches(ctx, tree, known, seed, as_json)
        return
    system = System(tree, in_contact(known, contacts))
    if states is not None and not system.memory:
        raise typer.BadParameter("nothing persists: the sensors have no `memory`.", param_hint="--states")
    resolve_outputs(system, wanted)  # before anything is computed
    given_outputs = wanted if is_given(ctx, "outputs") else ()
    given = None if poses is None else configurations_in(poses, system)
    with progress_bar("observability") as stage:
        stage("exact rank and special poses")
        report = observability(system, None, asked, seed, states=states, outputs=given_outputs)
        swept = None
        if given is not None or samples:
            swept = conditioning(system, given, wanted, samples, seed, scheduler, workers, stage)
        spare = redundancy(system, wanted, failing, seed, stage) if failing else None
    if html is not None:
        save_html(report, html, swept, spare, wanted)
    at_given = swept if given is not None else None
    found = report_document(report, swept, given is not None)
    found += Document((), {**tree_figures(tree), "workspace": None, "redundancy": None})
    if swept is not None:
        rank = swept.n_variables if report.is_observable else report.numerical_rank
        found += conditioning_document(swept, rank, "Over the workspace.").under("workspace")
        if given is None:
            found += Document(tuple(f"note: {note}" for note in notes_on_limits(tree.joint_names, tree.joints)))
    if spare is not None:
        found += redundancy_document(spare, wanted, "If sensors fail.").under("redundancy")
    if as_json:
        typer.echo(found.json())
    else:
        show(found)
    if _fails(report, at_given, poses_count=strict or asked != "auto"):
        raise typer.Exit(1)
    if sensors is not None and not as_json:
        chosen = () if contacts is None else ("--contacts", contacts)
        options = *robot_options(base, lock, keep, components, inertias), *chosen, "--outputs", outputs
        show(next_command("plan", robot, "--sensors", sensors, *options))


def _show_identifiable(
    tree: KinematicTree,
    robot: str,
    sensors: str,
    parameters: str,
    still: Sequence[str] | None,
    seed: int,
    as_json: bool,
) -> None:
    """Show which parameters of a robot the sensors tell."""
    from nori_dyn.descriptions.sensor_configs import load_sensors
    from nori_dyn.estimation.system import System
    from nori_dyn.identification.identifiability import identifiability

    wanted = [word.strip() for word in parameters.split(",") if word.strip()]
    known = load_sensors(sensors, robot, tree)
    states = known.contact_states() if known.contact_names else [()]
    systems = [System(tree, known.in_contact(*state)) for state in states]
    found = identifiability(systems, wanted, still or (), seed)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.shown())


def _show_touches(ctx: typer.Context, tree: KinematicTree, sensors: SensorSet, seed: int, as_json: bool) -> None:
    """Show on which links a touch is localized, and which links are told apart; exit 1 where these are not all."""
    from nori_dyn.observe.touches import touch_observability

    refuse_given(
        ctx, [name for name in OF_DYNAMICS if name != "workers"], "does not go with sensors that have `touch`."
    )
    found = touch_observability(tree, sensors, seed)
    if as_json:
        print_json(found.to_dict())
    else:
        show(found.shown())
    if not found.suffices:
        raise typer.Exit(1)


def _planned(path: str) -> tuple[KinematicTree, SensorSet]:
    """Robot and sensors of a plan."""
    from nori_dyn.estimation.plan import Plan

    plans = Plan.load(path)
    return plans.tree, plans.sensors


def _fails(report: ObservabilityReport, at_given: Conditioning | None, poses_count: bool) -> bool:
    """Whether the sensors do not suffice, in general or where it counts."""
    at_poses = at_given is not None and len(at_given.lacking) > 0
    in_theory_only = report.numerical_rank < report.generic_rank
    return not report.suffices_over_time or in_theory_only or at_poses or (poses_count and bool(report.loses_rank))


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(observe)

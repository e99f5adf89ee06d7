"""nori-dyn observe: whether sensors suffice, for the dynamics or for the robot's own parameters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import nori_dyn as nd
from nori_dyn.cli.common import (
    in_contact,
    is_given,
    is_planned,
    named,
    next_command,
    refuse_given,
    show_found,
    special_poses,
)
from nori_dyn.cli.options import Json, RobotOptions
from nori_dyn.io.files import check_writable
from nori_dyn.report.terminal import show
from nori_dyn.tables import Document, unbroken
from nori_dyn.tables.progress import progress_bar

if TYPE_CHECKING:
    from nori_dyn.observe.report import Where

SWEPT = 200
"""Number of random poses to sweep."""


OF_DYNAMICS = ["contacts", "poses", "where", "samples", "outputs", "failing", "states", "html", "workers"]
"""Parameters that do not go with --parameters."""


def observe(
    ctx: typer.Context,
    robot: Annotated[str, typer.Argument(metavar="ROBOT|PLAN")],
    sensors: str | None = None,
    *,
    model: RobotOptions,
    strict: bool = False,
    contacts: str | None = None,
    poses: Path | None = None,
    where: Annotated[list[str] | None, typer.Option(metavar="POSE:FRAMES")] = None,
    samples: Annotated[int, typer.Option(min=0)] = SWEPT,
    outputs: str = "tau",
    failing: Annotated[int, typer.Option(min=0, metavar="N")] = 2,
    states: Annotated[int | None, typer.Option(min=1, metavar="K")] = None,
    parameters: str | None = None,
    still: Annotated[list[str] | None, typer.Option(metavar="JOINT")] = None,
    html: Path | None = None,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    seed: Annotated[int, typer.Option(min=0)] = 0,
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

    Args:
        ctx: The call.
        robot: A robot as in `plan`, or the file of a plan or plan set.
        sensors: A shipped set of sensors, or a YAML file; those of the plan when left out. With --parameters,
            `identification`, or `identification_floating` with a floating base.
        model: See `RobotOptions`.
        strict: Exit with 1 also where rank is lost at a likely special pose, such as flat ground.
        contacts: The contacts that are closed, where the sensors have contacts: l_foot,r_foot, or none.
        poses: Poses to look at: .csv, .csv.gz or .npz, with q as in a log.
        where: Special poses to look at, such as parallel:l_sole,r_sole; repeatable. parallel, coplanar, flat,
            double_support, closed, at_zero, at_limits. The likely ones when left out.
        samples: Random poses to sweep where no --poses are given; 0 leaves them out.
        outputs: What is to be known well, with commas: tau,qdd,fx:l_sole.
        failing: Largest sets of sensors whose failure is looked at; 0 for none.
        states: Poses over which the state, the `memory` of the sensors, is to be learned. As many as tell anything when
            left out.
        parameters: Tell which parameters of the robot are identifiable instead: alone, in which combinations, or never;
            exactly, for motions as rich as they can be. With commas: inertias, friction, rotors, springs, offsets,
            gains, names such as m:forearm, or patterns such as viscous:l_*.
        still: With --parameters, a joint that does not move, and may stand anywhere; repeatable. --lock freezes it,
            which makes one link of two.
        html: Write the report as a web page that stands alone.
        workers: Processes of this machine for the sweep. All cores when left out.
        seed: Seed of everything random.
        as_json: Print the figures as JSON.
    """
    if parameters is not None:
        refuse_given(ctx, OF_DYNAMICS, "does not go with --parameters.")
        usual = "identification" if model.base == "fixed" else "identification_floating"
        tree, known = model.with_sensors(robot, sensors or usual)
        closed = known.contact_states() if known.contact_names else [()]
        systems = [nd.System(tree, known.in_contact(*state)) for state in closed]
        show_found(nd.identifiability(systems, named(parameters), still or (), seed), as_json)
        return
    refuse_given(ctx, ("still",), "needs --parameters.")
    from nori_dyn.logs.reading import configurations_in
    from nori_dyn.model.joints import notes_on_limits
    from nori_dyn.planning.outputs import resolve_outputs
    from nori_dyn.report.shows.models import tree_figures
    from nori_dyn.report.shows.observability import (
        conditioning_document,
        observability_report_document,
        redundancy_document,
    )

    asked: Where = special_poses(where) if where else "auto"
    check_writable(html)
    wanted = named(outputs)
    if is_planned(robot):
        if sensors is not None:
            raise typer.BadParameter("a plan has its own; name the robot for others.", param_hint="--sensors")
        plans = nd.Plan.load(robot)
        tree, known = plans.tree, plans.sensors
    else:
        tree, known = model.with_sensors(robot, sensors)
    if known.has_touches and contacts is None:
        _show_touches(ctx, tree, known, seed, as_json)
        return
    system = nd.System(tree, in_contact(known, contacts))
    if states is not None and not system.memory:
        raise typer.BadParameter("nothing persists: the sensors have no `memory`.", param_hint="--states")
    resolve_outputs(system, wanted)  # before anything is computed
    given_outputs = wanted if is_given(ctx, "outputs") else ()
    given = None if poses is None else configurations_in(poses, system)
    with progress_bar("observability") as stage:
        stage("exact rank and special poses")
        report = nd.observability(system, None, asked, seed, states=states, outputs=given_outputs)
        swept = None
        if given is not None or samples:
            swept = nd.conditioning(system, given, wanted, samples, seed, workers, stage)
        spare = nd.redundancy(system, wanted, failing, seed, stage) if failing else None
    if html is not None:
        nd.tools.save_html(report, html, swept, spare, wanted)
    found = observability_report_document(report, swept, given is not None)
    found += Document((), {**tree_figures(tree), "workspace": None, "redundancy": None})
    if swept is not None:
        rank = swept.n_variables if report.is_observable else report.numerical_rank
        found += conditioning_document(swept, rank, "Over the workspace.").under("workspace")
        if given is None:
            found += Document(tuple(f"note: {note}" for note in notes_on_limits(tree.joint_names, tree.joints)))
    if spare is not None:
        found += redundancy_document(spare, wanted, "If sensors fail.").under("redundancy")
    show_found(found, as_json, *(() if html is None else (f"Page written to {unbroken(str(html))}.",)))
    lacks = given is not None and swept is not None and len(swept.lacking) > 0
    in_theory_only = report.numerical_rank < report.generic_rank
    at_poses = bool(report.loses_rank) and (strict or asked != "auto")
    if not report.suffices_over_time or in_theory_only or lacks or at_poses:
        raise typer.Exit(1)
    if sensors is not None and not as_json:
        chosen = () if contacts is None else ("--contacts", contacts)
        options = *model.words(), *chosen, "--outputs", outputs
        show(next_command("plan", robot, "--sensors", sensors, *options))


def _show_touches(ctx: typer.Context, tree: nd.KinematicTree, sensors: nd.SensorSet, seed: int, as_json: bool) -> None:
    """Show on which links a touch is localized, and which links are distinguished; exit 1 where these are not all."""
    refuse_given(
        ctx, [name for name in OF_DYNAMICS if name != "workers"], "does not go with sensors that have `touch`."
    )
    found = nd.tools.touch_observability(tree, sensors, seed)
    show_found(found, as_json)
    if not found.suffices:
        raise typer.Exit(1)

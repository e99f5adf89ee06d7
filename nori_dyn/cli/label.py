"""nori-dyn label: forces, torques and contacts as columns of a data set of robot learning."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import nori_dyn as nd
from nori_dyn.cli.common import how_differentiated, named, show_found, tied
from nori_dyn.cli.options import Json, LogOptions, Model
from nori_dyn.tables import Document, unbroken


def label(
    dataset: Annotated[Path, typer.Argument(metavar="DATASET")],
    robot: Annotated[str, typer.Option(metavar="PRESET")],
    model: Model = None,
    what: str | None = None,
    out: Path | None = None,
    *,
    reading: LogOptions,
    workers: Annotated[int | None, typer.Option(min=1)] = None,
    yes: bool = False,
    as_json: Json = False,
) -> None:
    """Add what the robot felt to a data set of robot learning: external torques, wrenches, contacts, and their sigmas.

    Each episode is estimated on its own, as by `nori-dyn estimate`. The estimates are new columns of the new data set,
    and info.json describes them; all other columns are copied, and videos are linked. You are asked what is doubtful
    about columns and units. A run that was killed leaves whole episodes only, and the same command does the others.

    The columns are observation.fx.LINK, observation.offset (what torques have beyond those of the motion),
    observation.tau, observation.contact.FOOT and so on; their standard deviations are observation.sigma.fx.LINK. In
    HDF5 they stand beside the joints' positions, without "observation.".

    Example: nori-dyn label my_dataset --robot panda --what contacts

    Args:
        dataset: A folder of LeRobot (v2.0, v2.1, v3.0); an HDF5 file of robomimic or DROID, or a folder of them.
        robot: A robot, by its preset or its name, or the file of a preset, a URDF or an MJCF.
        model: With --robot, a model of your own: a URDF or MJCF file.
        what: What to estimate, with commas: contacts,torques. All of the preset when left out.
        out: The new data set. Beside the old one, DATASET.PRESET, when left out.
        reading: See `LogOptions`.
        workers: Processes. All cores when left out.
        yes: With --robot, take the log as it is, whatever is doubtful about it.
        as_json: Print the figures as JSON.
    """
    from nori_dyn.estimation.label import SHOWN, episode_logs
    from nori_dyn.estimation.label import label as write
    from nori_dyn.logs.datasets import open_data_set

    known, data = nd.preset(robot, model), open_data_set(dataset)
    names = named(what) if what else tuple(known.data.estimates)
    whole = dataset if dataset.name else dataset.absolute()
    out = out or whole.with_name(f"{whole.stem}.{known.name}{whole.suffix}")
    logs = episode_logs(data, out)
    ready = dict(zip(names, tied(known, nd.read_log(logs[0], reading.mapping), names, yes, as_json), strict=True))
    way = how_differentiated(reading.differentiate), reading.dt
    handling: dict[str, Any] = {"missing": reading.missing or "refuse", "singular": reading.singular or "refuse"}
    columns, outcomes = write(data, out, ready, *way, yes, workers, **handling)
    lines = [f"failed: {each.error}" for each in outcomes if each.error]
    reports = [(each.log.stem, each.report) for each in outcomes if each.report]
    lines += [f"warning: {name}: {doubt.message}" for name, report in reports for doubt in report.doubts]
    for line in lines if len(lines) <= SHOWN else [*lines[:SHOWN], f"and {len(lines) - SHOWN} more"]:
        typer.echo(line, err=True)
    added = {each.name: each.labels for each in columns}
    words = f"{len(logs)} episodes written to {unbroken(str(out))}, with {', '.join(added)}."
    show_found(Document((words,), {"out": str(out), "episodes": len(logs), "columns": added}), as_json)

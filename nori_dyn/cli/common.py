"""What the commands share: what is named on the command line, and what is printed."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

import nori_dyn as nd
from nori_dyn.cli.options import POSES
from nori_dyn.errors import DoubtfulLogError
from nori_dyn.io.files import read_bytes
from nori_dyn.report.terminal import show
from nori_dyn.tables import Bullets, Document, Part, Shown, unbroken

if TYPE_CHECKING:
    from nori_dyn.estimation.preset_logs import PresetLog
    from nori_dyn.estimation.presets import Preset
    from nori_dyn.logs.log import Log
    from nori_dyn.logs.motion.differentiation import Differentiate


def named(text: str) -> tuple[str, ...]:
    """Names with commas between them."""
    return tuple(filter(None, map(str.strip, text.split(","))))


def how_differentiated(option: str | None) -> Differentiate:
    """Method of differentiation that is named on the command line; whether it exists is checked later."""
    if option is None or option == "none":
        return "auto" if option is None else None
    return int(option) if option.lstrip("+-").isdecimal() else cast("Differentiate", option)


def special_poses(asked: Sequence[str]) -> dict[str, Sequence[str]]:
    """Special poses and the frames that they are on, named on the command line as `NAME:FRAME,FRAME`."""
    where: dict[str, Sequence[str]] = {}
    for text in asked:
        name, _, frames = text.partition(":")
        if name not in POSES:
            raise typer.BadParameter(
                f"'{name}' is not a special pose. Known: {', '.join(POSES)}.", param_hint="--where"
            )
        if name in where:
            raise typer.BadParameter(f"'{name}' is given twice.", param_hint="--where")
        where[name] = named(frames)
    return where


def in_contact(known: nd.SensorSet, contacts: str | None) -> nd.SensorSet:
    """Sensors in the contact state that is named on the command line: "l_foot,r_foot", or "none".

    Raises:
        UnknownSensorNameError: there is no such contact.
    """
    return known if contacts is None else known.in_contact(*named_contacts(contacts))


def named_contacts(contacts: str) -> tuple[str, ...]:
    """Contacts that are named on the command line: "l_foot,r_foot", or "none"."""
    return () if contacts.strip() == "none" else named(contacts)


def is_planned(what: str) -> bool:
    """Whether a file is one of a plan rather than of a robot."""
    return Path(what).is_file() and read_bytes(what)[:1] == b"{"


def is_given(ctx: typer.Context, name: str) -> bool:
    """Whether a parameter was given on the command line."""
    source = ctx.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def refuse_given(ctx: typer.Context, names: Collection[str], why: str) -> None:
    """Refuse parameters that were given on the command line.

    Raises:
        BadParameter: one of them was.
    """
    for parameter in ctx.command.params:
        if parameter.name in names and is_given(ctx, parameter.name or ""):
            shown = parameter.opts[0] if parameter.param_type_name == "option" else parameter.name.upper()
            raise typer.BadParameter(why, param_hint=shown)


def next_command(*words: str | Path) -> str:
    """Line that says what to run next; words in capitals are for the reader to fill in."""
    return unbroken(f"Next: nori-dyn {' '.join(shlex.quote(str(word)) for word in words)}")


def print_json(data: Mapping[str, Any]) -> None:
    """Print figures as JSON."""
    typer.echo(json.dumps(data, indent=2))


def show_found(found: Shown | Document, as_json: bool, *more: Part | str, **figures: Any) -> None:
    """Print what was found, and more below it; or as JSON its figures, and others."""
    document = found if isinstance(found, Document) else found.shown()
    if as_json:
        print_json({**document.data(), **figures})
    else:
        show(document, *more)


def tied(preset: Preset, log: Log, names: Sequence[str | None], yes: bool, as_json: bool) -> list[PresetLog]:
    """Tie a log to a robot that has a preset, for estimates by their names; say how, and ask what is doubtful.

    Raises:
        DoubtfulLogError: see `ask`.
    """
    from nori_dyn.estimation.preset_logs import preset_log

    ready = [preset_log(preset, log, name) for name in names]
    reasons, questions = chain(*(one.reasons for one in ready)), chain(*(one.questions for one in ready))
    told_and_asked(log, reasons, questions, yes, as_json)
    return ready


def told_and_asked(log: Log, reasons: Iterable[str], questions: Iterable[str], yes: bool, as_json: bool) -> None:
    """Say how the columns of a log are taken, each reason once, and ask what is doubtful about that.

    Raises:
        DoubtfulLogError: see `ask`.
    """
    shown = tuple(dict.fromkeys(reasons))
    if shown and not as_json:
        show(Bullets(shown, f"How the columns of {unbroken(log.path.name)} are read"))
    if not yes:
        ask(log.path.name, tuple(dict.fromkeys(questions)))


def ask(log: str, questions: Sequence[str]) -> None:
    """Ask whether a log is right, where someone is there to answer.

    Raises:
        DoubtfulLogError: it is not, or nobody is.
    """
    for k, question in enumerate(questions):
        if not sys.stdin.isatty() or not typer.confirm(f"{question} Go on all the same?"):
            raise DoubtfulLogError(log, questions[k:])

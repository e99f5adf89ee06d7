"""The reference of commands and their options, from what `--help` prints."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import typer.main

from docs.generate.places import plain
from nori_dyn.cli import app


def commands() -> str:
    """Return every command that `--help` lists: its help, and its options."""
    known = typer.main.get_command(app).commands  # type: ignore[attr-defined]
    return "\n".join(_command(name, command) for name, command in sorted(known.items()) if not command.hidden)


def _command(name: str, command: Any) -> str:
    rows = [
        f"| {', '.join(f'`{option}`' for option in _written(parameter))} | {_cell(parameter.help)} |"
        for parameter in command.params
        if not parameter.hidden
    ]
    said = inspect.cleandoc(command.help or "").replace("Example:", "\n\nExample:")
    example = re.sub(r"Example: (nori-dyn .*(?:\n(?!\n).*)*)", lambda m: f"\n```sh\n{m[1]}\n```\n", said)
    table = "| option | meaning |\n|---|---|\n" + "\n".join(rows) if rows else ""
    return f"## `nori-dyn {name}` {{ #{name} }}\n\n{example}\n\n{table}\n"


def _written(parameter: Any) -> Iterable[str]:
    if parameter.param_type_name == "argument":
        return (parameter.name.upper(),)
    return (*parameter.opts, *parameter.secondary_opts)


def _cell(text: str | None) -> str:
    return plain(" ".join((text or "").split())).replace("|", "\\|")

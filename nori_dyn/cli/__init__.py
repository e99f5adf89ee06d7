"""The command line: thin. Parse, one call of the library, print; one module a command.

At its top a module imports what options and tables are made of; what a command works with, it imports when it runs, so
that `--help` and wrong usage are told at once.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from nori_dyn.cli import bench, demo, export, info, observe, place, plan, schema, solve
from nori_dyn.errors import NoriError, NoriWarning


class Commands(TyperGroup):
    """All commands, whose own --help is off unless it is given."""

    def get_help_option(self, ctx: Any) -> Any:
        """Return the option --help; its default would be None, which Typer takes pydantic to check."""
        option = super().get_help_option(ctx)
        if option is not None:
            option.default = False
        return option


app = typer.Typer(
    cls=Commands,
    name="nori-dyn",
    help="The dynamics of robots as one sparse linear system: planned once, solved every tick, for any sensors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)
for command in (plan, solve, observe, place, info, export, demo, bench, schema):
    command.register(app)


def main() -> None:
    """Run the command line: exit status 0, 1 on a clear error, 2 on wrong usage."""
    show = warnings.showwarning

    def show_in_one_line(message, category, *rest, **more):  # type: ignore[no-untyped-def]
        if issubclass(category, NoriWarning):
            print(f"warning: {message}", file=sys.stderr)
        else:
            show(message, category, *rest, **more)

    warnings.showwarning = show_in_one_line
    try:
        app()
    except NoriError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)

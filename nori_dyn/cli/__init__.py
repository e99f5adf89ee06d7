"""The command line: thin. Parse, one call of the library, print; one module a command.

The arguments of a command's function are its options, and what the docstring says of each is the help. Options that
several commands have are groups: dataclasses, see `options` and `estimator`.

At its top a module imports what options and tables are made of. What a command works with is loaded when it runs,
public names by `nd`, others by imports of its own, so that `--help` and wrong usage are answered at once.
"""

from __future__ import annotations

import inspect
import os
import sys
import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from nori_dyn import __version__
from nori_dyn.cli.options import command_of
from nori_dyn.cli.renamed import renamed
from nori_dyn.errors import NoriError, NoriWarning
from nori_dyn.io.files import reason
from nori_dyn.report.terminal import line_width

INTERRUPTED = 130
"""Exit status after Ctrl-C, as shells have it."""

UNFOLDED = 10_000
"""Columns of help where output is piped: no line ends in the middle of a sentence."""


class Commands(TyperGroup):
    """All commands; their own options are off unless they are given, and an interrupt ends them with one line."""

    def get_params(self, ctx: Any) -> list[Any]:
        """Options of the group; the default of Typer's own would be None, which it takes pydantic to check."""
        params = super().get_params(ctx)
        for option in params:
            option.default = option.default or False
        return params

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """Command that the words name, by a former word as well, and its arguments."""
        return super().resolve_command(ctx, renamed(args[0], args[1:]))

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt:
            print("interrupted; nothing was written", file=sys.stderr)
            raise typer.Exit(INTERRUPTED) from None


app = typer.Typer(
    cls=Commands,
    name="nori-dyn",
    help="The dynamics of robots as one sparse linear system: planned once, solved every tick, for any sensors.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # its panels break names, and take "[s]" for markup
)
BY_PURPOSE = (
    *("plan", "estimate", "solve", "label", "serve", "observe", "place"),
    *("identify", "info", "robots", "export", "demo", "bench", "schema"),
)
"""The commands: each is a function in a module of its own name; solve is estimate by another name."""

for name in BY_PURPOSE:
    own = "estimate" if name == "solve" else name
    command: Callable[..., None] = getattr(import_module(f"nori_dyn.cli.{own}"), own)
    about = (inspect.getdoc(command) or "").partition("\nArgs:")[0]
    if name == "solve":
        about = f"The same as estimate. {about.replace('nori-dyn estimate', 'nori-dyn solve')}"
    app.command(name, help=about)(command_of(command))


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"nori-dyn {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command line: exit status 0, 1 on a clear error, 2 on wrong usage, 130 where it was interrupted."""
    show, shown = warnings.showwarning, set[str]()

    def show_in_one_line(message, category, *rest, **more):  # type: ignore[no-untyped-def]
        if issubclass(category, NoriWarning):
            if str(message) not in shown:  # a log is opened more than once
                print(f"warning: {message}", file=sys.stderr)
            shown.add(str(message))
        else:
            show(message, category, *rest, **more)

    warnings.showwarning = show_in_one_line
    status: Any = 0
    try:
        try:
            app(prog_name="nori-dyn", terminal_width=line_width() or UNFOLDED)
        except SystemExit as ended:
            status = ended.code
        except NoriError as error:
            print(f"error: {error}", file=sys.stderr)
            status = 1
        sys.stdout.flush()
    except OSError as error:  # those of files are NoriErrors by now
        if error.filename is not None:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # Python writes what waits when it ends
        if not isinstance(error, BrokenPipeError):  # whose reader has gone
            print(f"error: standard output cannot be written: {reason(error)}.", file=sys.stderr)
            status = 1
    sys.exit(status)

"""Tables of text: how the command line lays out figures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.planning.planner import TriedOrdering

console = Console(highlight=False)


def table(title: str, columns: Sequence[str], rows: Iterable[Sequence[object]]) -> Table:
    """Return a table whose first column is text and whose others are figures."""
    result = Table(title=escape(title), title_justify="left", title_style="bold", box=box.SIMPLE_HEAD, pad_edge=False)
    for k, column in enumerate(columns):
        result.add_column(escape(column), justify="left" if k == 0 else "right", overflow="fold")
    for row in rows:
        result.add_row(*(f"{cell:,}" if isinstance(cell, int) else escape(str(cell)) for cell in row))
    return result


def costs_table(tried: Sequence[TriedOrdering]) -> Table:
    """Return the table of orderings and what each costs a tick."""
    rows = [
        (
            f"{'*' if k == 0 else ' '} {c.ordering}",
            c.fill_in,
            c.published.total,
            c.cost.total,
            c.program.additions,
            c.program.multiplications + c.program.divisions,
            c.program.total,
            f"{c.stability.smallest_pivot:.0e}" if c.stability.smallest_pivot < 1 else "1",
        )
        for k, c in enumerate(tried)
    ]
    columns = ("  ordering", "fill-in", "paper", "LU", "+ -", "x /", "program", "pivot")
    result = table("Operations a tick", columns, rows)
    caption = (
        "* is the one chosen. program: all that a tick computes, sines and cosines left out. "
        "LU: factors of D and both substitutions in this order, without structure finer than D's; "
        "paper: the same by the paper's own rule. pivot: the program's smallest one over random configurations, "
        "relative to its usual size."
    )
    if not has_umfpack():
        caption += " UMFPACK is not installed: its ordering comes with the extra 'umfpack'."
    result.caption = caption
    result.caption_justify = "left"
    return result

"""Records as tables of text."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.records import Record
from nori_dyn.tables import Table, number


def timing_tables(title: str, records: Sequence[Record]) -> list[Table]:
    """Return a table a record: the time of each run, and how many times that of our first it is."""
    columns = ("run", "median [us]", "times", "quartiles", "difference")
    found = []
    for record in records:
        rows = [_timing_row(record, name) for name in record.seconds]
        rows += [(name, "not timed", "", "", number(off, 1)) for name, off in record.wrong.items()]
        counts = "".join(f"; {key} {count:,}" for key, count in record.counts.items())
        if rows:
            found.append(Table(f"{title}: {record.label}{counts}", columns, tuple(rows)))
    return found


def _timing_row(record: Record, name: str) -> tuple[str, ...]:
    off = record.differences.get(name)
    ratio = ("", "")
    if record.own and name != record.own:
        below, times, above = record.ratio(name)
        ratio = (number(times), f"{number(below)} - {number(above)}")
    return name, number(1e6 * record.time(name)[1]), *ratio, "" if off is None else number(off, 1)


def figure_tables(title: str, records: Sequence[Record]) -> list[Table]:
    """Return a table with a row a record: its case, counts, times [s] and other figures."""
    kept = [record for record in records if record.counts or record.figures or record.seconds]
    counts, seconds, figures = (
        list(dict.fromkeys(key for record in kept for key in getattr(record, part)))
        for part in ("counts", "seconds", "figures")
    )
    rows = []
    for record in kept:
        row = [record.label]
        row += [f"{record.counts[key]:,}" if key in record.counts else "" for key in counts]
        row += [number(record.time(key)[1]) if key in record.seconds else "" for key in seconds]
        row += [number(record.figures[key]) if key in record.figures else "" for key in figures]
        rows.append(tuple(row))
    columns = ("case", *counts, *(f"{key} [s]" for key in seconds), *figures)
    return [Table(title, columns, tuple(rows))] if rows else []

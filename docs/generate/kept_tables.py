"""Tables that are kept beside the pages: equations of the papers, and what real robots say."""

from __future__ import annotations

import csv

from docs.generate.places import ROOT


def papers(paper: str) -> str:
    """The equations of a paper: where each stands in the code, and which test holds it."""
    with (ROOT / "docs" / "papers.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["paper"] == paper]
    lines = (f"| {' | '.join(row[key] for key in ('equation', 'what', 'files', 'tests'))} |" for row in rows)
    return "\n".join(["| equation | what | file | test |", "|---|---|---|---|", *lines])


def real_robots() -> str:
    """The table of all data sets of real robots, as `make real` writes it."""
    text = (ROOT / "benchmarks" / "real" / "results.md").read_text(encoding="utf-8")
    return text.partition("<!-- real: all -->\n")[2].partition("<!-- end -->")[0]

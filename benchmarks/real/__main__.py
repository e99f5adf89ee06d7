"""What logs of robots that exist tell, held against what else was measured on them: `make real`.

python -m benchmarks.real --data ../shared/data
"""

from __future__ import annotations

import argparse
import importlib
from pathlib import Path

from benchmarks.documents import markdown, with_tables
from benchmarks.real.drawing import draw
from benchmarks.real.finding import Figure, Finding
from benchmarks.real.tables import details, document, overview
from nori_dyn.errors import FileFormatError, MissingExtraError, ModelError

RESULTS = Path(__file__).with_name("results.md")
"""Where the tables are: of all data sets, which docs/real_robots.md shows, and of each, component by component."""

PICTURES = Path(__file__).parents[2] / "docs" / "assets" / "real"

KIND = "real"
"""How the marks of its tables begin."""

MODULES = (
    "human_bowing",
    "icub_one_leg",
    "icub_offsets",
    "icub_walking",
    "icub_base",
    "icub3_base",
    "panda_log",
    "panda_bag",
    "mini_cheetah",
    "ur10e",
    "ur10e_bands",
    "ur10e_pushes",
    "double_pendulum",
)
"""The data sets, each a module of this room."""


def tables_of(found: dict[str, list[Finding | Figure]]) -> dict[str, str]:
    """The tables of each data set that is there, and that of all if all are."""
    tables = {name: "\n\n".join(map(markdown, details(findings))) for name, findings in found.items()}
    return tables | ({"all": markdown(overview(found.values()))} if len(found) == len(MODULES) else {})


def main() -> None:
    """Print what came of each data set, and write it into the documents."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with `real` and `panda_log` in it")
    parser.add_argument("--only", choices=MODULES, action="append", help="a data set; several are named one by one")
    parser.add_argument("--no-page", action="store_true", help="leave the documents as they are")
    options = parser.parse_args()
    found: dict[str, list[Finding | Figure]] = {}
    for name in options.only or MODULES:
        module = importlib.import_module(f"benchmarks.real.{name}")
        try:
            found[name] = module.run(options.data)
        except (FileFormatError, MissingExtraError, ModelError) as error:
            print(f"{module.DATA}: left out: {error}\n")
            continue
        print(document(module.DATA, found[name]).text(120), end="\n\n")
    if found and not options.no_page:
        RESULTS.write_text(with_tables(RESULTS.read_text(), KIND, tables_of(found)))
    if len(found) == len(MODULES) and not options.no_page:
        draw(options.data, PICTURES)


if __name__ == "__main__":
    main()

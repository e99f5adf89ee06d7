"""Notebooks run anew, and kept with what they print and draw: `make notebooks`.

python -m benchmarks.notebooks [notebooks/2_the_paper.ipynb ...]

A notebook is run in an empty folder, its pictures made small. What is kept of it is its text, its outputs and the order
of its cells; nothing of the machine or the hour.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"), key=lambda path: int(path.name.split("_")[0]))
SECONDS = 240
"""Time that a cell may take."""

STYLE = "figure.dpi: 72\nsavefig.dpi: 72\n"
"""Matplotlib's settings, so that pictures are small."""

METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def execute(path: Path, folder: Path) -> Any:
    """A notebook as it is after a run from top to bottom in a folder.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    import nbclient
    import nbformat

    style = folder / "matplotlibrc"
    style.write_text(STYLE)
    kernel = {
        **os.environ,
        "MATPLOTLIBRC": str(style),
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")]),
    }
    notebook = nbformat.read(path, as_version=4)
    where = {"metadata": {"path": str(folder)}}
    client = nbclient.NotebookClient(notebook, timeout=SECONDS, resources=where, coalesce_streams=True)
    client.execute(env=kernel)
    return notebook


def write(notebook: Any, path: Path) -> None:
    """Keep a notebook without what differs from run to run for no reason of its own."""
    import nbformat

    notebook.metadata = nbformat.from_dict(METADATA)
    for cell in notebook.cells:
        cell.metadata = nbformat.from_dict({})
    nbformat.write(notebook, path)


def main() -> None:
    """Run the notebooks given, or all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path, default=NOTEBOOKS, metavar="NOTEBOOK")
    for path in parser.parse_args().paths:
        with tempfile.TemporaryDirectory() as folder:
            notebook = execute(path, Path(folder))
        write(notebook, path)
        print(f"{path.name}: {path.stat().st_size / 1000:.0f} kB")


if __name__ == "__main__":
    main()

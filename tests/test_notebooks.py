"""The notebooks run from top to bottom, and are kept without what they printed."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path

import pytest

NOTEBOOKS = sorted((Path(__file__).parents[1] / "notebooks").glob("*.ipynb"))
SECONDS = 240

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path) -> list[dict]:
    return json.loads(path.read_text(encoding="utf-8"))["cells"]


def test_there_are_six():
    assert [path.name[0] for path in NOTEBOOKS] == list("123456")


@every_notebook
def test_outputs_are_stripped(path):
    for cell in cells(path):
        assert not cell.get("outputs"), cell["source"]
        assert cell.get("execution_count") is None, cell["source"]


@every_notebook
def test_no_cell_names_a_place_of_one_machine(path):
    for cell in cells(path):
        found = re.search(r"(?<![\w.)}/-])(/[a-z]+/\w|~/|[A-Z]:\\)", "".join(cell["source"]))
        assert not found, f"{found[0]} in: {''.join(cell['source'])}"


@every_notebook
def test_runs_from_top_to_bottom(path, tmp_path, monkeypatch):
    nbclient = pytest.importorskip("nbclient", reason="the package nbclient is not installed")
    nbformat = pytest.importorskip("nbformat", reason="the package nbformat is not installed")
    pytest.importorskip("ipykernel", reason="the package ipykernel is not installed")
    pytest.importorskip("matplotlib", reason="the extra 'plot' is not installed")
    source = path.read_text(encoding="utf-8")
    if "icub_models" in source:
        pytest.importorskip("icub_models", reason="the package icub-models is not installed")
    if "example-robot-data" in source:
        from tests.robots import EXAMPLE_ROBOT_DATA

        if not EXAMPLE_ROBOT_DATA.is_dir():
            pytest.skip("the package example-robot-data is not installed")
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(path.parents[1]), os.environ.get("PYTHONPATH", "")]))
    notebook = nbformat.read(path, as_version=4)
    nbclient.NotebookClient(notebook, timeout=SECONDS, resources={"metadata": {"path": str(tmp_path)}}).execute()

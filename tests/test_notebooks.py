"""The notebooks run from top to bottom, and are kept with what they print and draw: `make notebooks`."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from benchmarks.notebooks import NOTEBOOKS, execute

LARGEST = 400_000
"""Bytes of a notebook with its pictures."""

LOGS = Path(__file__).parents[1].parent / "shared" / "data" / "real"
"""Logs of real robots, which are not in the repository."""

PLACE = re.compile(r"(?<![\w.)}/-])(/[a-z]+/\w|~/|[A-Z]:\\)")
"""A path of one machine."""

WITHOUT_UMFPACK = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("scikits"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
"""

every_notebook = pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)


def cells(path: Path, kind: str | None = None) -> list[dict]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if kind in (None, cell["cell_type"])]


def kinds(outputs: list) -> list[str]:
    """Return what outputs are: printed, or drawn."""
    return [output.get("name") or ", ".join(sorted(output["data"])) for output in outputs]


def texts(outputs: list) -> list[str]:
    """Return what outputs say: what is printed, and other than pictures."""
    said = [output.get("text", ()) for output in outputs]
    said += [text for output in outputs for kind, text in output.get("data", {}).items() if kind.startswith("text")]
    return ["".join(text) for text in said]


def test_they_are_numbered():
    assert [path.name.split("_")[0] for path in NOTEBOOKS] == [str(k + 1) for k in range(len(NOTEBOOKS))]


def test_all_are_listed():
    folder = NOTEBOOKS[0].parent
    listed = re.findall(r"\]\((\w+\.ipynb)\)", (folder / "README.md").read_text())
    assert listed == [path.name for path in NOTEBOOKS]


@every_notebook
def test_it_is_kept_as_it_ran_from_top_to_bottom(path):
    code = cells(path, "code")
    assert [cell["execution_count"] for cell in code] == [k + 1 for k in range(len(code))]
    for cell in code:
        source = "".join(cell["source"])
        assert not cell["metadata"], source
        assert set(kinds(cell["outputs"])) <= {"stdout", "image/png, text/plain"}, source
        assert bool(cell["outputs"]) >= ("plt.show()" in source or source.startswith("print(")), source
    assert any("image/png, text/plain" in kinds(cell["outputs"]) for cell in code) or "4_" in path.name
    assert path.stat().st_size < LARGEST


@every_notebook
def test_it_names_no_place_of_one_machine(path):
    for cell in cells(path):
        for text in ("".join(cell["source"]), *texts(cell.get("outputs", []))):
            found = PLACE.search(text)
            assert not found, f"{found[0]} in: {text}"


@every_notebook
def test_it_runs_from_top_to_bottom(path, tmp_path):
    """What it prints and draws is of the same kinds as what is kept of it; the numbers may be a machine's own."""
    for package in ("nbclient", "nbformat", "ipykernel", "matplotlib"):
        pytest.importorskip(package, reason=f"the package {package} is not installed")
    source = path.read_text(encoding="utf-8")
    for package in ("icub_models", "casadi", "sympy"):
        if f"import {package}" in source:
            pytest.importorskip(package, reason=f"the package {package} is not installed")
    if "example-robot-data" in source:
        from tests.robots import EXAMPLE_ROBOT_DATA

        if not EXAMPLE_ROBOT_DATA.is_dir():
            pytest.skip("the package example-robot-data is not installed")
    if "shared/data" in source and not LOGS.is_dir():
        pytest.skip("the logs of real robots are not here: see docs/real_robots.md")
    if "walking.mat" in source:
        pytest.importorskip("h5py", reason="the package h5py is not installed")
    if "nd.identify(" in source:
        for package in ("cvxpy", "clarabel", "rosbags"):
            pytest.importorskip(package, reason=f"the package {package} is not installed")
    ran = [cell for cell in execute(path, tmp_path).cells if cell.cell_type == "code"]
    for now, kept in zip(ran, cells(path, "code"), strict=True):
        assert kinds(now.outputs) == kinds(kept["outputs"]), now.source


def test_the_paper_is_told_without_umfpack(tmp_path, monkeypatch):
    pytest.importorskip("nbclient", reason="the package nbclient is not installed")
    pytest.importorskip("ipykernel", reason="the package ipykernel is not installed")
    hidden, folder = tmp_path / "hidden", tmp_path / "folder"
    hidden.mkdir()
    folder.mkdir()
    (hidden / "sitecustomize.py").write_text(WITHOUT_UMFPACK)
    monkeypatch.setenv("PYTHONPATH", str(hidden))
    paper = next(path for path in NOTEBOOKS if path.stem == "2_the_paper")
    code = [cell for cell in execute(paper, folder).cells if cell.cell_type == "code"]
    assert code[0].outputs[0].text == "ordering: recursive\n"

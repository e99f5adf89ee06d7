"""The notebooks run from top to bottom, and are kept with what they print and draw: `make notebooks`."""

import ast
import importlib
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

NEEDED = {
    "": ("nbclient", "nbformat", "ipykernel", "matplotlib"),
    **{
        f"import {package}": (package,)
        for package in ("icub_models", "casadi", "sympy", "networkx", "mujoco", "pyarrow")
    },
    "walking.mat": ("h5py",),
    "nd.identify(": ("rosbags",),
}
"""What a notebook needs that has some words in it."""

WITHOUT_UMFPACK = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.startswith("scikits"):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Hidden())
"""


def cells(path: Path, kind: str | None = None) -> list[dict]:
    found = json.loads(path.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if kind in (None, cell["cell_type"])]


def kinds(outputs: list) -> list[str]:
    return [output.get("name") or ", ".join(sorted(output["data"])) for output in outputs]


def texts(outputs: list) -> list[str]:
    """What outputs say: what is printed, and other than pictures."""
    said = [output.get("text", ()) for output in outputs]
    said += [text for output in outputs for kind, text in output.get("data", {}).items() if kind.startswith("text")]
    return ["".join(text) for text in said]


def test_they_are_numbered_and_listed():
    assert [path.name.split("_")[0] for path in NOTEBOOKS] == [str(k + 1) for k in range(len(NOTEBOOKS))]
    folder = NOTEBOOKS[0].parent
    listed = re.findall(r"\]\((\w+\.ipynb)\)", (folder / "README.md").read_text())
    assert listed == [path.name for path in NOTEBOOKS]


def test_they_are_kept_as_they_ran_from_top_to_bottom():
    for path in NOTEBOOKS:
        code = cells(path, "code")
        assert [cell["execution_count"] for cell in code] == [k + 1 for k in range(len(code))], path
        for cell in code:
            where = path.stem, "".join(cell["source"])
            assert not cell["metadata"], where
            assert set(kinds(cell["outputs"])) <= {"stdout", "image/png, text/plain"}, where
            assert bool(cell["outputs"]) >= ("plt.show()" in where[1] or where[1].startswith("print(")), where
        assert any("image/png, text/plain" in kinds(cell["outputs"]) for cell in code) or "4_" in path.name, path
        assert path.stat().st_size < LARGEST, path


def test_they_name_no_place_of_one_machine():
    for path in NOTEBOOKS:
        for cell in cells(path):
            for text in ("".join(cell["source"]), *texts(cell.get("outputs", []))):
                assert not PLACE.search(text), (path.stem, text)


def test_what_they_name_of_the_package_is_there():
    for path in NOTEBOOKS:
        for node in ast.walk(ast.parse("\n".join("".join(cell["source"]) for cell in cells(path, "code")))):
            match node:
                case ast.ImportFrom(module=str(home), names=names) if home.startswith("nori_dyn"):
                    named = [name.name for name in names]
                case ast.Attribute(ast.Name("nd"), name):
                    home, named = "nori_dyn", [name]
                case _:
                    continue
            for name in named:
                assert hasattr(importlib.import_module(home), name), (path.stem, home, name)


@pytest.mark.long
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_it_runs_from_top_to_bottom(path, tmp_path):
    """What it prints and draws is of the same kinds as what is kept of it; the numbers may be a machine's own."""
    source = path.read_text(encoding="utf-8")
    for package in (package for sign, packages in NEEDED.items() if sign in source for package in packages):
        pytest.importorskip(package, reason=f"the package {package} is not installed")
    if "example-robot-data" in source:
        from tests.robots import EXAMPLE_ROBOT_DATA

        if not EXAMPLE_ROBOT_DATA.is_dir():
            pytest.skip("the package example-robot-data is not installed")
    if "shared/data" in source and not LOGS.is_dir():
        pytest.skip("the logs of real robots are not here: see docs/real_robots.md")
    ran = [cell for cell in execute(path, tmp_path).cells if cell.cell_type == "code"]
    for now, kept in zip(ran, cells(path, "code"), strict=True):
        assert kinds(now.outputs) == kinds(kept["outputs"]), now.source


@pytest.mark.long
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

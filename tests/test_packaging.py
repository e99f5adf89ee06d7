"""The package as others get it: one version, one list of requirements, a wheel that works where nothing else is."""

import os
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import pytest
import yaml

import nori_dyn as nd

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
BLOCKS = re.compile(r"^```(python|sh)\n(.*?)^```", flags=re.DOTALL | re.MULTILINE)


def test_all_say_the_same_version():
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == nd.__version__
    assert f'{{% set version = "{nd.__version__}" %}}' in (ROOT / "recipe" / "meta.yaml").read_text()


def test_the_conda_recipe_needs_what_the_project_needs():
    recipe = (ROOT / "recipe" / "meta.yaml").read_text()
    listed = re.search(r"  run:\n(.*?)\n\n", recipe, flags=re.DOTALL)[1]
    needed = {line.strip("- ").replace(" ", "") for line in listed.splitlines()}
    assert needed == {*PROJECT["dependencies"], "python" + PROJECT["requires-python"]}


def test_workflows_and_forms_are_yaml():
    """What they run is a target of make, or a file of the repository."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), flags=re.MULTILINE))
    for path in (ROOT / ".github").rglob("*.yml"):
        assert yaml.safe_load(path.read_text()), path
        for command in re.findall(r"- run: (.*)", path.read_text()):
            first, *rest = command.split()
            assert first != "make" or rest[0] in targets, (path, command)
            assert not first.startswith(".") or os.access(ROOT / first, os.X_OK), (path, command)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("wheel")
    built = run(sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "-w", folder, ROOT)
    assert built.returncode == 0, built.stderr
    (path,) = folder.glob("*.whl")
    return path


def test_the_wheel_holds_the_package_alone(wheel):
    with zipfile.ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {"nori_dyn", f"nori_dyn-{nd.__version__}.dist-info"}
    assert {"nori_dyn/bench.py", "nori_dyn/sensor_configs/inverse_dynamics.yaml"} <= {*names}


def test_the_readme_of_the_wheel_leads_somewhere(wheel):
    """On a page of an index there is no folder beside it."""
    with zipfile.ZipFile(wheel) as archive:
        (name,) = [name for name in archive.namelist() if name.endswith("/METADATA")]
        metadata = archive.read(name).decode()
    links = re.findall(r"\]\(([^)]+)\)", metadata)
    assert len(links) > 10
    assert all(link.startswith("https://") for link in links)
    assert "Project-URL: Repository" in metadata


@pytest.mark.long
def test_every_block_of_the_readme_runs_from_the_wheel(wheel, tmp_path):
    """In an empty environment and an empty folder, block by block, in order."""
    environment = tmp_path / "environment"
    bin = environment / "bin"
    run(sys.executable, "-m", "venv", environment)
    work = tmp_path / "work"
    work.mkdir()
    for language, code in BLOCKS.findall((ROOT / "README.md").read_text()):
        if language == "python":
            done = run(bin / "python", "-W", "error", "-c", code, cwd=work)
            assert done.returncode == 0, done.stderr
            continue
        for command in code.strip().splitlines():
            if command.startswith("pip install"):
                command = command.replace("nori_dyn", str(wheel))
            done = run("bash", "-c", command, cwd=work, PATH=f"{bin}:{os.environ['PATH']}")
            assert done.returncode == 0, (command, done.stderr)
    assert "shoulder" in (work / "pendulum.double_pendulum.html").read_text()


def run(*command, cwd=None, **environment):
    """Run a command in an environment that knows nothing of this one's packages."""
    clean = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    return subprocess.run(map(str, command), cwd=cwd, env={**clean, **environment}, capture_output=True, text=True)

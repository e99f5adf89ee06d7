"""What the pages of the documentation show runs as it stands, from the top of each page to its bottom."""

import re
import warnings
from pathlib import Path

import pytest
import yaml

import nori_dyn as nd
from nori_dyn.components.config import components_of
from nori_dyn.program.compiler import find_compiler
from tests.compilers import needs_compiler
from tests.exported import checked, compile_c

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def blocks(page: Path, language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), flags=re.DOTALL | re.MULTILINE)


WALKING = ROOT / "docs" / "tutorials" / "walking_base.md"

SLOW = {"estimation", "humanoid", "identification", "observability", "trust", "view", "walking_base"}
"""Pages whose lines take seconds."""


@pytest.mark.parametrize(
    "page",
    [
        pytest.param(page, id=page.stem, marks=[pytest.mark.long] if page.stem in SLOW else [])
        for page in PAGES[1:]  # the README: below
        if blocks(page, "python")
    ],
)
def test_the_lines_of_python_run(page, tmp_path, monkeypatch):
    """A block of YAML is the file that its name says."""
    monkeypatch.chdir(tmp_path)
    for text in blocks(page, "yaml"):
        if "name" in (config := yaml.safe_load(text)):
            (tmp_path / f"{config['name']}.yaml").write_text(text)
    scope: dict = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        for code in blocks(page, "python"):
            exec(compile(code, str(page), "exec", dont_inherit=True), scope)


def test_the_configs_are_valid():
    for text in (text for page in PAGES for text in blocks(page, "yaml")):
        config = yaml.safe_load(text)
        if "components" in config:
            assert components_of(config), text
        elif {"columns", "streams"} & config.keys():
            assert nd.tools.LogMapping.from_dict(config), text
        else:
            known = ("name", "measurements", "contacts", "memory")
            assert nd.SensorSet.from_dict({key: config[key] for key in known if key in config}).measurements, text


@pytest.mark.long
@pytest.mark.parametrize(
    ("robot", "config"), [("go2", "go2_walks"), ("go1", "go2_walks"), ("go1", None), ("icub", None), ("g1", None)]
)
def test_sensors_of_walking_robots_fit_them(robot, config):
    """With one contact closed, and with all, they determine the base; a Go1 calls the frame of its IMU otherwise."""
    tree, sensors = nd.preset(robot).tree, nd.preset(robot).sensors()
    if config is not None:
        text = next(text for text in blocks(WALKING, "yaml") if text.startswith(f"name: {config}\n"))
        text = text.replace("links: imu,", "links: imu_link,") if robot == "go1" else text
        sensors = nd.SensorSet.from_dict(yaml.safe_load(text))
    contacts = list(sensors.contact_names)
    for closed in (contacts[:1], contacts):
        assert nd.observability(nd.System(tree, sensors.in_contact(*closed)), where=None).over_time.suffices


def test_the_readme_prints_what_it_says(tmp_path, monkeypatch, capsys):
    """Which is how the output begins."""
    (code,) = blocks(PAGES[0], "python")
    (said,) = blocks(PAGES[0], "text")
    monkeypatch.setenv("COLUMNS", "80")
    exec(code, {})
    printed = capsys.readouterr().out
    assert printed.startswith(said)


@needs_compiler
def test_the_lines_of_c_and_cpp_compile(tmp_path):
    arm = nd.autotree(7)
    arm = arm.replace(joint_names=tuple(f"panda_{name}" for name in arm.joint_names))
    nd.plan(nd.System(arm, "inverse_dynamics"), outputs=["tau"]).export(tmp_path / "panda_c", name="panda")
    observed = nd.plan(nd.System(arm, "momentum_observer"), outputs=["qdd"])
    nd.Tracker(observed, dt=0.001, backend="numpy").export(tmp_path / "observer_c", name="observer")
    both = '#include "panda.h"\n#include "observer.h"\n'
    folders = [f"-I{tmp_path / name}" for name in ("panda_c", "observer_c")]
    for code in blocks(ROOT / "docs" / "c.md", "c"):
        source = tmp_path / "tick.c"
        source.write_text(f"{both}void stop(void);\nvoid tick(void);\nvoid tick(void) {{\n{code}}}\n")
        compile_c(*folders, "-c", "-o", tmp_path / "tick.o", source)
    for code in blocks(ROOT / "docs" / "c.md", "cpp"):
        source = tmp_path / "tick.cpp"
        source.write_text(
            f'#include "panda.hpp"\nvoid stop();\nvoid send(std::array<double, 7>);\nvoid tick() {{\n{code}}}\n'
        )
        checked([*find_compiler().command, "-x", "c++", "-std=c++17", folders[0], "-fsyntax-only", source])

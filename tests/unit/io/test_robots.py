"""A robot by what a person types."""

from __future__ import annotations

import sys
import types

import pytest

from nori_dyn.errors import FileFormatError, ModelError
from nori_dyn.io import installed_robots, robots
from nori_dyn.io.robots import load_robot
from tests.robots import ROBOTS

MJCF = """<mujoco model="ball"><option gravity="0 0 -1"/><worldbody>
<body name="a"><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def descriptions(monkeypatch, tmp_path):
    """Return a stand-in for the package robot_descriptions, which would clone repositories."""
    package = types.ModuleType("robot_descriptions")
    package.DESCRIPTIONS = {"ur5_description": None, "ball_mj_description": None, "broken_description": None}
    package.__path__ = [str(tmp_path / "modules")]
    (tmp_path / "modules").mkdir()
    (tmp_path / "ball.xml").write_text(MJCF)
    for name, text in {
        "ur5_description": f"print('Cloning...')\nURDF_PATH = {str(ROBOTS['ur5'])!r}",
        "ball_mj_description": f"MJCF_PATH = {str(tmp_path / 'ball.xml')!r}",
        "broken_description": "raise OSError('could not resolve host: github.com')",
        "_private": "raise AssertionError('imported')",
    }.items():
        (tmp_path / "modules" / f"{name}.py").write_text(text)
        monkeypatch.delitem(sys.modules, f"robot_descriptions.{name}", raising=False)
    monkeypatch.setitem(sys.modules, "robot_descriptions", package)
    yield package
    for name in [name for name in sys.modules if name.startswith("robot_descriptions.")]:
        del sys.modules[name]


def test_the_content_of_a_file_decides(tmp_path):
    tree = load_robot(ROBOTS["ur5"], base="floating", locked=("elbow_joint",))
    assert tree.joint_names[0] == "root_joint"
    assert tree.nv == 11
    path = tmp_path / "model.urdf"  # a wrong extension
    path.write_text(MJCF)
    assert load_robot(str(path)).names == ("a",)
    assert load_robot(path).gravity == (0.0, 0.0, -1.0)
    assert load_robot(path, gravity=(0.0, 0.0, -2.0)).gravity == (0.0, 0.0, -2.0)


def test_mimic_reaches_the_urdf_loader():
    with pytest.raises(ModelError, match="has mimic joints"):
        load_robot(ROBOTS["panda"], mimic="refuse")


def test_other_files(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<html/>")
    with pytest.raises(FileFormatError, match=r"page\.html is not a robot: its root element is <html>"):
        load_robot(path)


def test_a_path_that_does_not_exist(tmp_path):
    (tmp_path / "robot.urdf").touch()
    with pytest.raises(ModelError, match=r"no such file: .*robt\.urdf\. Did you mean '.*robot\.urdf'"):
        load_robot(tmp_path / "robt.urdf")
    with pytest.raises(ModelError, match="There is no folder"):
        load_robot(tmp_path / "models" / "robot.urdf")


def test_names_of_robot_descriptions(descriptions, capsys):
    assert load_robot("ur5_description").nv == 6
    assert load_robot("ball_mj_description").nv == 1
    assert capsys.readouterr().out == ""


def test_a_download_that_fails(descriptions):
    with pytest.raises(ModelError, match=r"'broken_description': .*could not resolve host.*check git and the network"):
        load_robot("broken_description")


@pytest.mark.parametrize("name", ["ur5_descriptoin", "_private", "os"])
def test_unknown_names(descriptions, name):
    with pytest.raises(
        ModelError, match=f"no robot '{name}': there is no such file, and it is none of the robots of"
    ) as caught:
        load_robot(name)
    assert ("Did you mean 'ur5_description'?" in str(caught.value)) == (name == "ur5_descriptoin")


def test_packages_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(ModelError, match=r"searched: robot_descriptions \(pip install 'nori_dyn\[robots\]'\)"):
        load_robot("ur5_descriptoin")
    monkeypatch.setattr(installed_robots, "PACKAGES", {})
    monkeypatch.setattr(robots, "PACKAGES", {"icub-models": "nowhere"})
    monkeypatch.setattr(robots, "robots_folder", lambda package: None)
    with pytest.raises(ModelError, match=r"there is no such file\. Give .* icub-models, robot_descriptions \(pip"):
        load_robot("panda")


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("panda", "panda_description/urdf/panda.urdf"),
        ("anymal", "anymal_b_simple_description/robots/anymal.urdf"),
        ("anymal_c", "anymal_c_simple_description/urdf/anymal.urdf"),
        ("talos", "talos_data/robots/talos_reduced.urdf"),
        ("icub", "iCub/robots/iCubGenova04/model.urdf"),
        ("iCubGenova02", "iCub/robots/iCubGenova02/model.urdf"),
    ],
)
def test_robots_of_installed_packages_come_first(monkeypatch, name, file):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    assert str(robots.robot_by_name(name)).endswith(file)


def test_each_short_name_is_that_of_a_robot():
    assert installed_robots.SHORT.keys() <= installed_robots.installed_robots().keys()

"""A robot by what a person types."""

import re
import sys
import types

import pytest

import nori_dyn as nd
from nori_dyn.descriptions import robot_names
from nori_dyn.descriptions.robots import load_robot
from nori_dyn.errors import FileFormatError, ModelError
from tests.robots import ROBOTS

MJCF = """<mujoco model="ball"><option gravity="0 0 -1"/><worldbody>
<body name="a"><joint name="j"/><geom size=".1"/></body></worldbody></mujoco>"""


@pytest.fixture
def descriptions(monkeypatch, tmp_path):
    """A stand-in for the package robot_descriptions, which would clone repositories."""
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
    with pytest.raises(ModelError, match="has mimic joints"):
        load_robot(ROBOTS["panda"], mimic="refuse")


def test_a_folder_here_hides_no_robot_of_its_name(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("ur5", "elsewhere"):
        (tmp_path / name).mkdir()
    assert load_robot("ur5").n_links == 6
    with pytest.raises(FileFormatError, match="elsewhere: cannot be read: Is a directory"):
        load_robot("elsewhere")


def test_what_is_no_robot(tmp_path):
    path = tmp_path / "page.html"
    path.write_text("<html/>")
    with pytest.raises(FileFormatError, match=r"page\.html is not a robot: its root element is <html>"):
        load_robot(path)
    (tmp_path / "robot.urdf").touch()
    with pytest.raises(ModelError, match=r"no such file: .*robt\.urdf\. Did you mean '.*robot\.urdf'"):
        load_robot(tmp_path / "robt.urdf")
    with pytest.raises(ModelError, match="There is no folder"):
        load_robot(tmp_path / "models" / "robot.urdf")


def test_names_of_robot_descriptions(descriptions, capsys):
    assert load_robot("ur5_description").nv == 6
    assert load_robot("ball_mj_description").nv == 1
    assert capsys.readouterr().out == ""
    with pytest.raises(ModelError, match=r"'broken_description': .*could not resolve host.*check git and the network"):
        load_robot("broken_description")


def test_unknown_names(descriptions):
    for name in ("ur5_descriptoin", "_private", "os"):
        said = f"no robot '{name}': there is no such file, and it is none of the robots of"
        with pytest.raises(ModelError, match=said) as caught:
            load_robot(name)
        assert ("Did you mean 'ur5_description'" in str(caught.value)) == (name == "ur5_descriptoin")
        assert "`nori-dyn robots` lists them." in str(caught.value)


def test_packages_that_are_not_installed_are_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(ModelError, match=r"searched: robot_descriptions \(pip install 'nori_dyn\[robots\]'\)"):
        load_robot("ur5_descriptoin")
    monkeypatch.setattr(robot_names, "robots_folder", lambda package: None)
    said = r"icub-models, example-robot-data, robot_descriptions \(pip install 'nori_dyn\[robots\]'\)"
    with pytest.raises(ModelError, match=rf"there is no such file\. Give .* {said}"):
        load_robot("panda")
    assert not nd.tools.robots()
    assert re.search(rf"0 robots .*Not installed, and not listed: {said}", " ".join(str(nd.tools.robots()).split()))


def test_packages_of_a_folder_near_the_root_have_none_around_them(monkeypatch):
    """As `pip install --target /packages` puts them."""
    package = types.SimpleNamespace(locate_file=lambda name: "/packages")
    monkeypatch.setattr(robot_names, "distribution", lambda name: package)
    monkeypatch.setattr(robot_names.sys, "prefix", "/packages")
    assert robot_names.robots_folder("icub-models") is None


FILES = {
    "panda": "panda_description/urdf/panda.urdf",
    "anymal": "anymal_b_simple_description/robots/anymal.urdf",
    "anymal_c": "anymal_c_simple_description/urdf/anymal.urdf",
    "talos": "talos_data/robots/talos_reduced.urdf",
    "icub": "iCub/robots/iCubGenova04/model.urdf",
    "iCubGenova02": "iCub/robots/iCubGenova02/model.urdf",
    "example-robot-data:icub": "icub_description/robots/icub.urdf",
    "ur3": "ur_description/urdf/ur3_robot.urdf",
}


def test_robots_of_installed_packages_come_first(monkeypatch):
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    for name, file in FILES.items():
        assert str(robot_names.robot_by_name(name)).endswith(file)
    assert robot_names.SHORT.keys() <= robot_names.installed_robots().keys()


# Which there are


def test_listing_imports_no_robot_and_names_all_those_of_packages_first(descriptions, monkeypatch):
    imported, import_module = [], robot_names.importlib.import_module
    monkeypatch.setattr(
        robot_names.importlib, "import_module", lambda name: imported.append(name) or import_module(name)
    )
    known = nd.tools.robots()
    printed = str(known)
    assert not [name for name in imported if not name.startswith("nori_dyn.")]
    for robot in known.robots:
        assert all(known[name] is robot for name in (robot.name, *robot.aliases))
        assert robot.name in printed
    assert known.packages == ("icub-models", "example-robot-data", "robot_descriptions")
    assert {*descriptions.DESCRIPTIONS} == {one.name for one in known.robots if one.path is None}
    assert (known["talos"].package, known["talos"].aliases) == ("example-robot-data", ("talos",))
    assert "broken_description" in known
    descriptions.DESCRIPTIONS["panda"] = None
    assert nd.tools.robots()["panda"].path == ROBOTS["panda"]
    assert robot_names.robot_by_name("panda") == ROBOTS["panda"]


def test_similar_names_and_makers(descriptions):
    told = types.SimpleNamespace(maker="ACME Robotics", robot="Ball", has_urdf=False, has_mjcf=True)
    descriptions.DESCRIPTIONS["ball_mj_description"] = told
    known = nd.tools.robots()
    assert known["ball_mj_description"].about == "ACME Robotics Ball, MJCF"
    for text, first in {
        "pandaa": "panda",
        "PANDA": "panda",
        "icub_genova_04": "iCubGenova04",
        "Acme": "ball_mj_description",
    }.items():
        assert known.similar(text)[0] == first
        with pytest.raises(ModelError, match=f"Did you mean '{first}'"):
            load_robot(text)
    for text in ("nonsense", "", "\u2603"):
        assert nd.tools.robots().similar(text) == ()


def test_robots_of_the_real_package_are_told_by_maker_without_a_download():
    pytest.importorskip("robot_descriptions")
    known = nd.tools.robots()
    assert "Franka" in known["panda_description"].about
    assert known["panda_description"].path is None
    assert any(name.startswith("iiwa") for name in known.similar("kuka"))


def test_a_file_without_links_and_one_whose_name_is_taken(monkeypatch, tmp_path):
    for file, text in {
        "a_description/robot.urdf": "<robot><link name='a'/></robot>",
        "a_description/empty.urdf": "<robot/>",
        "b_description/robot.urdf": "<robot><link name='b'/></robot>",
        "b_description/sub/robot.urdf": "<robot><link name='c'/></robot>",
        "c_description/ur3.urdf": "<robot><link name='d'/></robot>",
        "c_description/ur3_robot.urdf": "<robot><link name='e'/></robot>",
    }.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(text)
    folders = {"icub-models": tmp_path}
    monkeypatch.setattr(robot_names, "robots_folder", folders.get)
    found = {name: str(path.relative_to(tmp_path)) for name, path in robot_names.installed_robots().items()}
    assert found == {
        "robot": "a_description/robot.urdf",
        "b": "b_description/robot.urdf",
        "icub-models:robot": "b_description/sub/robot.urdf",
        "ur3": "c_description/ur3_robot.urdf",
        "ur3_robot": "c_description/ur3_robot.urdf",
        "icub-models:ur3": "c_description/ur3.urdf",
    }

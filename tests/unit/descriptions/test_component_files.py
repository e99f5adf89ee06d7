"""Files of components: what they say reaches the robot, and what is wrong in them is told with file and line."""

import numpy as np
import pytest

import nori_dyn as nd
from benchmarks.urdf_writer import to_urdf
from nori_dyn.components import Friction, Loop, Rotor, Spring
from nori_dyn.components.config import component_types
from nori_dyn.descriptions.component_files import save_components
from nori_dyn.errors import FileFormatError, ModelError
from nori_dyn.system import plugins

MINE = """
name: mine
components:
  - {type: rotor, joints: all, inertia: 2.0e-5, gear: 100}
  - {type: loop, frames: [link_link3, link_link1], constrains: point}
  - {type: coupling, joint: joint2, of: {joint1: 0.5}}
  - {type: tendon, name: rope, through: [link_link3, link_link1]}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "arm.urdf").write_text(to_urdf(nd.autotree(3)))
    (tmp_path / "mine.yaml").write_text(MINE)
    return tmp_path


def test_a_file_adds_to_the_robot(folder):
    found = nd.tools.load_components("mine.yaml")
    for load in (nd.load_urdf, nd.load_robot):
        assert load("arm.urdf", components="mine.yaml").components == found
    assert [c.name for c in found] == ["", "link_link3_link_link1", "joint2_joint1", "rope"]
    assert Loop(frames=["rod end", "wall"], constrains="pose").name == "rod_end_wall"


WRONG = {
    "wrong.yaml:2: .* it lacks 'type', which names the component": "\n  - {joints: all}",
    "wrong.yaml:2: .*at least 2 items": "\n  - {type: loop, frames: [a], constrains: point}",
    "at most 6 items": "[{type: loop, name: x, frames: [a, b], constrains: [[1, 0, 0, 0, 0, 0, 0]]}]",
    "wrong.yaml:1: .*so no configuration closes it": "[{type: loop, name: x, frames: [a, b], constrains: [my]}]",
    "is not YAML": "[",
    "matches the pattern 'x": "[{type: rotor, joints: {match: 'x.*'}, inertia: 1}]",
    "wrong.yaml: .*unknown moving joint 'joint4'": "[{type: rotor, joints: joint4, inertia: 1}]",
}


def test_what_is_wrong_is_told(folder):
    wrong = {message: f"components: {content}" for message, content in WRONG.items()}
    for message, content in (
        *wrong.items(),
        ("a file of components", "sensors: []"),
        ("It has `components:`, a list", "[]"),
    ):
        (folder / "wrong.yaml").write_text(content)
        with pytest.raises(ModelError, match=message):
            nd.load_urdf("arm.urdf", components="wrong.yaml")
    with pytest.raises(FileFormatError, match="no such file"):
        nd.tools.load_components("absent.yaml")


def test_other_packages_may_offer_components_and_the_schema_names_all(monkeypatch):
    class Entry:
        name, value = "mine", "package:Mine"

        def load(self):
            return offered

    class Mine(Rotor):
        pass

    monkeypatch.setattr(plugins, "entry_points", lambda group: [Entry()] if group == "nori_dyn.components" else [])
    offered: type = Mine
    assert component_types.__wrapped__()["mine"] is Mine
    offered = int
    with pytest.raises(ModelError, match=r"component 'mine' .* is not a subclass of Component"):
        component_types.__wrapped__()


def saved(tree, folder, *about):
    save_components(tree, folder / "saved.yaml", about)
    return (folder / "saved.yaml").read_text(), nd.tools.load_components(folder / "saved.yaml")


def test_components_are_read_back_as_they_were_saved(folder):
    tree = nd.load_urdf(folder / "arm.urdf", components=folder / "mine.yaml")
    text, back = saved(tree, folder, "Found on a Sunday.", "", "By us.")
    assert back == tree.components
    assert text.startswith(f"# Found on a Sunday.\n#\n# By us.\n# All components of the robot '{tree.name}'")
    assert "\ninstead: true\ncomponents:\n  - {type: rotor, " in text
    text, back = saved(nd.autotree(2), folder)
    assert back == ()
    assert text.endswith("instead: true\ncomponents: []\n")


def test_joints_with_the_same_numbers_share_an_entry(folder):
    tree = nd.autotree(4)
    parts = [
        Friction(joints="joint1", viscous=np.float64(0.1)),
        Friction(joints="joint2", viscous=1 / 3, coulomb=1e-17),
        Friction(joints=["joint3", "joint4"], viscous=0.1),
        Friction(joints="joint1", viscous=0.1),  # acts besides the first one
        Friction(joints="joint2", viscous=0.1, name="mine"),
        Friction(joints="all", viscous=0.1),
        Rotor(joints={"except": "joint1"}, inertia=0.1),
        Rotor(joints="joint3", inertia=0.1),
    ]
    text, back = saved(tree.replace(components=parts), folder)
    assert back == (
        Friction(joints=["joint1", "joint3", "joint4"], viscous=0.1),
        Friction(joints="joint2", viscous=1 / 3, coulomb=1e-17),
        *parts[3:],
    )
    assert "  - {type: friction, joints: [joint1, joint3, joint4], viscous: 0.1}\n" in text


def test_names_that_yaml_and_selectors_take_otherwise(folder):
    tree = nd.autotree(3).replace(joint_names=("on", "all", "1.5"))
    parts = [Friction(joints=["all"], viscous=0.2), Friction(joints="1.5", viscous=0.3), Rotor(joints="on", inertia=1)]
    assert saved(tree.replace(components=parts), folder)[1] == tuple(parts)


def test_components_instead_of_those_of_the_robot(folder):
    (folder / "own.urdf").write_text(
        """<robot name="r"><link name="w"/><link name="l"/><joint name="j" type="continuous"><parent link="w"/>
        <child link="l"/><dynamics damping="1"/></joint></robot>"""
    )
    entry = "components: [{type: rotor, joints: all, inertia: 1}]"
    for says, types in (("true", ["rotor"]), ("false", ["friction", "rotor"])):
        (folder / "more.yaml").write_text(f"instead: {says}\n{entry}")
        tree = nd.load_urdf(folder / "own.urdf", components=folder / "more.yaml")
        assert [one.type for one in tree.components] == types
    (folder / "more.yaml").write_text(f"instead: 1\n{entry}")
    with pytest.raises(ModelError, match=r"more\.yaml:1: at instead: .*"):
        nd.load_urdf(folder / "own.urdf", components=folder / "more.yaml")


def test_numbers_that_cannot_be_are_not_written(folder):
    for wrong, message in (
        (Rotor.model_construct(joints="joint2", inertia=-0.5), "the rotor of 'joint2' cannot be .*inertia is -0.5"),
        (Friction.model_construct(joints="all", coulomb=2.0, static=1.0), "'joint1, joint2' .*static friction 1"),
        (Spring.model_construct(joints="joint1", stiffness=float("nan")), "stiffness is nan"),
    ):
        with pytest.raises(ModelError, match=message):
            saved(nd.autotree(2).replace(components=[wrong]), folder)
        assert not (folder / "saved.yaml").exists()

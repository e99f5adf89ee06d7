"""The file of an identified robot: of the first one's format, whole or not at all, with what it cannot hold said."""

import sys

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Friction, Rotor, Spring
from nori_dyn.descriptions.component_files import save_components
from nori_dyn.descriptions.corrections import by_joint
from nori_dyn.descriptions.identified import save_robot
from nori_dyn.errors import FileFormatError, MissingExtraError, ModelError, WrongKindError
from nori_dyn.identification.parameters import Parameters
from tests.corrected import corrected, difference
from tests.corrected import loaded as load

URDF = """<robot name="arm">
  <link name="wall"/>
  <link name="rod">
    <visual><geometry><mesh filename="meshes/rod.stl"/></geometry></visual>
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
  </link>
  <joint name="hinge" type="continuous"><parent link="wall"/><child link="rod"/></joint>
</robot>
"""

MJCF = """<mujoco>
  <asset><mesh name="tetra" file="tetra.obj"/></asset>
  <worldbody><body name="rod">
    <joint name="hinge" armature="0.1" damping="0.2"/><geom type="mesh" mesh="tetra"/>
  </body></worldbody>
</mujoco>
"""

TETRA = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 2 3 4\nf 1 4 3\n"


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "arm.urdf").write_text(URDF)
    (tmp_path / "arm.xml").write_text(MJCF)
    (tmp_path / "tetra.obj").write_text(TETRA)
    (tmp_path / "elsewhere").mkdir()
    return tmp_path


@pytest.mark.parametrize("ending", [".urdf", ".xml"])
def test_the_file_and_the_components_give_the_robot_back(folder, ending):
    source, out, more = (folder / f"{name}{ending}" for name in ("arm", "out", "more"))
    tree = load(source)
    parameters = Parameters.of(tree, ["inertias", "friction", "rotors", "springs"])
    values = parameters.prior + np.random.default_rng(0).uniform(0.01, 0.02, len(parameters))
    found = parameters.applied(values)
    notes = save_robot(found, source, out)
    save_components(found, more)
    back = load(out, components=more)
    assert difference(back.I, found.I) < 1e-12
    for kind in (Friction, Rotor, Spring):
        assert by_joint(back, kind) == by_joint(found, kind)
    np.testing.assert_allclose(Parameters.of(back, parameters.names).prior, values, rtol=1e-12)
    if ending == ".urdf":
        assert not any("width" in note for note in notes)
        for what in ("rotor", "spring"):
            assert f"a URDF has no place for the {what} of 'hinge': a file of components has" in notes


def test_robots_by_name(tmp_path):
    tree = corrected(load("panda"), seed=0, joints=False)
    notes = save_robot(tree, "panda", tmp_path / "mine.urdf")
    assert difference(load(tmp_path / "mine.urdf").I, tree.I) < 1e-12
    assert len(notes) == 1
    assert notes[0].startswith("the friction of 'panda_joint1', ")
    assert [path.name for path in tmp_path.iterdir()] == ["mine.urdf"]


def test_meshes_are_found_from_the_folder_of_a_file(folder, monkeypatch):
    tree = load(folder / "arm.urdf")
    assert save_robot(tree.replace(I=2 * tree.I), folder / "arm.urdf", folder / "arm.urdf") == ()  # onto itself
    assert load(folder / "arm.urdf").I[0, 5, 5] == 2
    notes = save_robot(tree, folder / "arm.urdf", folder / "elsewhere" / "arm.urdf")
    assert notes == ("meshes are named from the folder of the first file, and not found from here: 'meshes/rod.stl'",)
    tree = load(folder / "arm.xml")
    save_robot(tree.replace(I=2 * tree.I), folder / "arm.xml", folder / "out.xml")
    with pytest.raises(ModelError, match=r"arm\.xml: corrected, MuJoCo refuses it: .*tetra.*beside the first one"):
        save_robot(tree.replace(I=2 * tree.I), folder / "arm.xml", folder / "elsewhere" / "out.xml")
    assert [path.name for path in (folder / "elsewhere").iterdir()] == ["arm.urdf"]
    monkeypatch.setitem(sys.modules, "mujoco", None)
    with pytest.raises(MissingExtraError, match="mjcf"):
        save_robot(tree, folder / "arm.xml", folder / "out.xml")


F, M = FileFormatError, ModelError


def test_files_that_do_not_fit(folder):
    tree = nd.autotree(1).replace(names=("rod",), joint_names=("joint1",), frames={})
    for source, out, error, message in (
        ("arm.urdf", "out.xml", F, r"out\.xml: '.*arm\.urdf' is a URDF, and is written as one: .*\.urdf"),
        ("arm.xml", "out.urdf", F, r"is an MJCF model, and is written as one: .*\.xml or \.mjcf"),
        ("arm.urdf", "out", F, r"name a file that ends in \.urdf"),
        ("arm.urdf", "nowhere/out.urdf", F, "its folder '.*nowhere' does not exist"),
        ("absent.urdf", "out.urdf", M, r"no such file: .*absent\.urdf"),
        ("tetra.obj", "out.urdf", F, r"tetra\.obj.*not XML"),
        ("arm.xml", "out.xml", M, r"unknown joint 'joint1'.*is it the file that the robot was loaded from"),
    ):
        with pytest.raises(error, match=message):
            save_robot(tree, folder / source, folder / out)
        assert not (folder / out).exists()


def test_robots_of_another_file(folder):
    with pytest.raises(ModelError, match="no robot 'no_such_robot'"):
        save_robot(nd.autotree(1), "no_such_robot", folder / "out.urdf")
    with pytest.raises(WrongKindError, match=r"nd\.tools\.save_robot takes a robot \(KinematicTree\), not 'panda'"):
        nd.tools.save_robot("panda", folder / "arm.urdf", folder / "out.urdf")
    with pytest.raises(WrongKindError, match=r"nd\.tools\.save_components takes a robot"):
        nd.tools.save_components(None, folder / "out.yaml")

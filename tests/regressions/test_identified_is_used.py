"""What was identified was left out where the corrected file was loaded: torques erred by all of the friction."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.components import Friction, Rotor
from nori_dyn.descriptions.corrections import by_joint, widths_by_joint
from nori_dyn.errors import FileFormatError
from tests.peers import mujoco, pin

ARM = """<robot name="arm">
  <link name="wall"/>
  <link name="rod">
    <inertial><origin xyz="0.1 0.2 0.3"/><mass value="1"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>
  </link>
  <joint name="hinge" type="revolute"><parent link="wall"/><child link="rod"/><axis xyz="0 0 1"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
    <dynamics damping="0.1"/></joint>
  <transmission name="drive"><joint name="hinge"/><actuator name="motor">
    <mechanicalReduction>10</mechanicalReduction><rotorInertia>0.001</rotorInertia></actuator></transmission>
</robot>
"""


def states(tree, seed=0, n=50):
    rng = np.random.default_rng(seed)
    return tree.random_configurations(n, rng), rng.normal(size=(n, tree.nv)), rng.normal(size=(n, tree.nv))


def torques(tree, Q, Qd, Qdd):
    return nd.rnea(tree, Q.T, Qd.T, Qdd.T).T


def test_a_robot_is_loaded_as_it_was_saved_and_one_of_another_origin_as_before(tmp_path):
    source, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    source.write_text(ARM)
    assert not nd.load_urdf(source).components
    found = nd.load_urdf(source).replace(
        components=[Friction(joints="hinge", viscous=0.2, coulomb=0.3, width=0.02), Rotor(joints="hinge", inertia=0.3)]
    )
    notes = nd.tools.save_robot(found, source, out)
    assert any('marked, identified="true"' in note for note in notes)
    back = nd.load_urdf(out)
    motion = states(found)
    np.testing.assert_allclose(torques(back, *motion), torques(found, *motion), rtol=1e-12)
    assert widths_by_joint(back) == {"hinge": (0.02,)}
    assert by_joint(back, Rotor) == by_joint(found, Rotor)
    nd.tools.save_robot(back, out, tmp_path / "again.urdf")
    assert (tmp_path / "again.urdf").read_bytes() == out.read_bytes()
    for mark in ("", 'identified="no"', 'identified=""'):
        (tmp_path / "other.urdf").write_text(out.read_text().replace('identified="true"', mark))
        assert not nd.load_urdf(tmp_path / "other.urdf").components
    (tmp_path / "heavier.urdf").write_text(ARM)
    whole = nd.load_urdf(source, components=True)  # inertias that were found beside the friction of the maker
    nd.tools.save_robot(whole.replace(I=1.1 * whole.I), source, tmp_path / "heavier.urdf")
    assert by_joint(nd.load_urdf(tmp_path / "heavier.urdf"), Friction) == by_joint(whole, Friction)


def test_what_is_not_asked_for_is_not_read(tmp_path):
    """A rotor that is no number was no error where rotors were left out."""
    path = tmp_path / "arm.urdf"
    path.write_text(ARM.replace("0.001", "heavy").replace('damping="0.1"', 'damping="much"'))
    assert not nd.load_urdf(path).components
    path.write_text(ARM.replace("<rotorInertia>0.001", '<rotorInertia identified="true">heavy'))
    with pytest.raises(FileFormatError, match="<rotorInertia> is 'heavy'"):
        nd.load_urdf(path)
    path.write_text(ARM.replace('damping="0.1"', 'damping="0.1" friction="1" width="-1" identified="true"'))
    with pytest.raises(nd.errors.ModelError, match="width"):
        nd.load_urdf(path)


def test_other_programs_read_a_marked_file(tmp_path):
    source, out = tmp_path / "arm.urdf", tmp_path / "out.urdf"
    source.write_text(ARM)
    tree = nd.load_urdf(source).replace(components=[Friction(joints="hinge", viscous=0.2, coulomb=0.3, width=0.02)])
    nd.tools.save_robot(tree, source, out)
    model = pin.buildModelFromUrdf(str(out))
    assert (model.damping[0], model.friction[0]) == (0.2, 0.3)
    theirs = mujoco.MjModel.from_xml_path(str(out))
    assert (theirs.dof_damping[0], theirs.dof_frictionloss[0]) == (0.2, 0.3)

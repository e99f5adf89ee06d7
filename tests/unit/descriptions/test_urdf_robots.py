"""Robots of example-robot-data and icub-models against Pinocchio: bodies, frames, lumping, locking; shapes."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.descriptions.urdf_shapes import mesh_file, urdf_shapes
from nori_dyn.model.kinematics import positions, velocities
from tests.oracles import newton_euler
from tests.peers import pin
from tests.robots import ROBOTS, Pinocchio, from_pinocchio, load, pinocchio_model, to_pinocchio
from tests.tolerances import PEER, RECURSION, ROUNDING, assert_close
from tests.trees import random_state

SWAP = np.roll(np.arange(6), 3)
HANDFUL = ("panda", "kinova", "go2", "talos_full", "tiago_pro", "iCubGenova04")
"""Robots with all that is odd: joints that are prismatic, continuous or mimic, unaligned axes, many fixed joints."""

EVERY = [pytest.param(name, marks=[] if name in HANDFUL else pytest.mark.long) for name in ROBOTS]
BASES = ("fixed", "floating")


def assert_same_bodies(tree, model):
    """Assert the same joints, placements and inertias; both have the link frames of the file."""
    assert {*tree.joint_names} == {*model.names} - {"universe"}
    for i, name in enumerate(tree.joint_names):
        number = model.getJointId(name)
        parent = "universe" if tree.is_root(i) else tree.joint_names[tree.parents[i]]
        assert model.names[model.parents[number]] == parent
        placement = model.jointPlacements[number]
        assert_close(tree.X_tree[i].E.T, placement.rotation, ROUNDING)
        assert_close(tree.X_tree[i].r, placement.translation, ROUNDING)
        I = model.inertias[number].matrix()[np.ix_(SWAP, SWAP)]
        assert_close(tree.I[i], I, ROUNDING)


def assert_same_frames(tree, model, q):
    data = model.createData()
    pin.framesForwardKinematics(model, data, to_pinocchio(tree, model, q, np.zeros(tree.nv))[0])
    X_0 = positions(tree, q).X_0
    names = [*tree.names, *tree.frames]
    for name in names:
        at = tree.frame(name).X @ X_0[tree.frame(name).link]
        expected = data.oMf[model.getFrameId(name, pin.FrameType.BODY)]
        assert_close(at.E.T, expected.rotation, PEER)
        assert_close(at.r, expected.translation, PEER)
    return names


@pytest.mark.parametrize("name", EVERY)
def test_bodies_and_frames(name):
    for base in BASES:
        tree, model = load(name, base, clean=False), pinocchio_model(ROBOTS[name], base)
        assert_same_bodies(tree, model)
        names = assert_same_frames(tree, model, tree.random_configuration(0))
        assert {*names} == {frame.name for frame in model.frames if frame.type == pin.FrameType.BODY}


@pytest.mark.parametrize("name", EVERY)
def test_cleaning_changes_next_to_nothing(name):
    clean, raw = load(name), load(name, clean=False)
    largest = 1e-7 * 3  # three angles of a rotation, each by one unit of the seventh decimal
    for X, Y in zip(clean.X_tree, raw.X_tree, strict=True):
        np.testing.assert_allclose(X.E, Y.E, rtol=0, atol=largest)
        np.testing.assert_allclose(X.r, Y.r, rtol=0, atol=largest)
        small = np.abs(X.E)[X.E != 0].min()
        assert small > 1e-12
    assert clean.names == raw.names
    for I in clean.I:  # have the structure of a rigid body's
        np.testing.assert_array_equal(I, I.T)
        np.testing.assert_array_equal(I[3:, 3:], I[3, 3] * np.eye(3))
        np.testing.assert_array_equal(I[:3, 3:], -I[:3, 3:].T)


@pytest.mark.parametrize(
    ("name", "base", "locked"),
    [
        ("panda", "fixed", {"panda_finger_joint1": 0.02, "panda_finger_joint2": 0.0, "panda_joint4": -1.1}),
        ("talos_reduced", "floating", {"torso_1_joint": 0.3, "arm_left_4_joint": -0.7, "leg_right_1_joint": 0.0}),
        ("icub", "floating", {"torso_pitch": 0.4}),
        ("tiago_pro", "fixed", {"torso_lift_joint": 0.1, "wheel_front_left_joint": 2.0}),
    ],
)
def test_locked_joints(name, base, locked):
    tree, model = load(name, base, clean=False, locked=locked), pinocchio_model(ROBOTS[name], base)
    q = pin.neutral(model)
    for joint, position in locked.items():
        peer = model.joints[model.getJointId(joint)]
        q[peer.idx_q : peer.idx_q + peer.nq] = position if peer.nq == 1 else (np.cos(position), np.sin(position))
    reduced = pin.buildReducedModel(model, [model.getJointId(joint) for joint in locked], q)
    assert tree.nv == reduced.nv == model.nv - len(locked)
    assert_same_bodies(tree, reduced)
    assert_same_frames(tree, reduced, tree.random_configuration(1))
    assert f"locked: {', '.join(locked)}" in tree.notes


# The way to Pinocchio, on which the agreement tests stand


def assert_same_dynamics(tree, model, q, qd, qdd, fx):
    there = to_pinocchio(tree, model, q, qd)
    assert [len(part) for part in there] == [model.nq, model.nv]
    for back, start in zip(from_pinocchio(tree, model, *there), (q, qd), strict=True):
        assert_close(back, start, ROUNDING)
    peer = Pinocchio(tree, model)
    assert_close(peer.rnea(q, qd, qdd, fx), newton_euler(tree, q, qd, qdd, fx).tau, RECURSION)
    for i, v in enumerate(velocities(tree, q, qd).v):
        assert_close(v[SWAP], peer.data.v[model.getJointId(tree.joint_names[i])].vector, PEER)


def test_conversion_of_planar_and_floating_joints(tmp_path):
    links = "".join(
        f'<link name="l{i}"><inertial><origin xyz=".1 .2 .3"/><mass value="{i + 1}"/>'
        '<inertia ixx="1" ixy=".1" ixz="0" iyy="1.5" iyz="0" izz="2"/></inertial></link>'
        for i in range(4)
    )
    joints = "".join(
        f'<joint name="j{i}" type="{kind}"><parent link="l{i}"/><child link="l{i + 1}"/>'
        '<origin xyz=".3 .2 .1" rpy=".1 .2 .3"/><axis xyz="0 0 1"/></joint>'
        for i, kind in enumerate(["planar", "floating", "continuous"])
    )
    path = tmp_path / "robot.urdf"
    path.write_text(f'<robot name="r">{links}{joints}</robot>')
    tree, model = load_urdf(path), pin.buildModelFromUrdf(str(path))
    assert_same_bodies(tree, model)
    assert_same_frames(tree, model, tree.random_configuration(6))
    assert_same_dynamics(tree, model, *random_state(tree, 6))


URDF = """
<robot name="r">
  <material name="red"><color rgba="1 0 0 0.5"/></material>
  <link name="a">
    <visual>
      <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><geometry><box size="1 2 3"/></geometry><material name="red"/>
    </visual>
    <visual><geometry><sphere radius="0.5"/></geometry></visual>
    <visual><geometry><cylinder radius="0.1" length="2"/></geometry></visual>
    <visual><geometry><mesh filename="package://arm/meshes/hand.stl" scale="2 2 2"/></geometry></visual>
    <visual><geometry><mesh filename="gone.stl"/></geometry></visual>
    <visual><geometry><box size="1 2"/></geometry></visual>
    <visual/>
  </link>
</robot>
"""


@pytest.fixture
def urdf(tmp_path):
    package = tmp_path / "share" / "arm"
    (package / "urdf").mkdir(parents=True)
    (package / "meshes").mkdir()
    (package / "meshes" / "hand.stl").write_bytes(b"solid")
    path = package / "urdf" / "arm.urdf"
    path.write_text(URDF)
    return path


def test_shapes_meshes_colours_and_places(urdf):
    box, ball, cylinder, mesh, gone = urdf_shapes(urdf)
    assert [(s.kind, s.size) for s in (box, ball, cylinder)] == [
        ("box", (1, 2, 3)),
        ("sphere", (0.5,)),
        ("cylinder", (0.1, 2)),
    ]
    assert box.colour == (1, 0, 0, 0.5)
    assert ball.colour is None
    assert mesh.mesh == urdf.parents[1] / "meshes" / "hand.stl"
    assert mesh.size == (2, 2, 2)
    assert gone.mesh is None
    np.testing.assert_allclose(box.X.E.T, pin.rpy.rpyToMatrix(0.1, 0.2, 0.3), atol=1e-15)
    np.testing.assert_array_equal(box.X.r, [1, 2, 3])


def test_packages_are_found_by_the_environment(urdf, tmp_path, tmp_path_factory, monkeypatch):
    elsewhere = tmp_path_factory.mktemp("elsewhere") / "arm.urdf"
    name = "package://arm/meshes/hand.stl"
    assert mesh_file(elsewhere, name) is None
    for variable, folder in (("ROS_PACKAGE_PATH", tmp_path / "share"), ("AMENT_PREFIX_PATH", tmp_path)):
        monkeypatch.setenv(variable, str(folder))
        assert mesh_file(elsewhere, name) == urdf.parents[1] / "meshes" / "hand.stl"
        monkeypatch.delenv(variable)


def test_installed_robots_have_all_their_meshes_and_what_is_no_xml_is_refused(tmp_path):
    for name in ("panda", "talos_reduced", "iCubGenova04"):
        shapes = urdf_shapes(ROBOTS[name])
        assert len(shapes) > 8
        assert all(shape.mesh is not None for shape in shapes if shape.kind == "mesh"), name
    (tmp_path / "r.urdf").write_text("<robot")
    with pytest.raises(nd.errors.FileFormatError, match="not XML"):
        urdf_shapes(tmp_path / "r.urdf")

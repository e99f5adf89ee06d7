"""Robots that Pinocchio has loaded or made: the same dynamics, frames and limits there and here."""

from __future__ import annotations

from functools import lru_cache
from types import SimpleNamespace

import numpy as np
import pytest

import nori_dyn as nd
from tests.oracles import poses
from tests.peers import pin
from tests.robots import ROBOTS, pinocchio_model
from tests.tolerances import RECURSION, SOLVED, assert_close
from tests.trees import random_state

N_STATES = 3
AXIS = np.array([0.48, -0.6, 0.64])
FROM_FILES = {
    "ur5": "fixed",
    "panda": "fixed",
    "kinova": "fixed",
    "talos_reduced": "floating",
    "anymal": "floating",
    "icub": "floating",
}
FEW = ("kinova", "anymal", "humanoid", "every joint")


def every(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "name", [pytest.param(name, marks=[] if name in FEW else pytest.mark.long) for name in names]
    )


def every_joint() -> pin.Model:
    """A tree with every kind of joint that Pinocchio and we have, a joint on each, siblings out of turn."""
    pin.seed(1)
    model = pin.Model()
    model.name = "every_joint"
    kinds = (
        *(pin.JointModelFreeFlyer(), pin.JointModelRX(), pin.JointModelRY(), pin.JointModelRZ()),
        *(pin.JointModelRevoluteUnaligned(AXIS), pin.JointModelRUBX(), pin.JointModelRUBY(), pin.JointModelRUBZ()),
        *(pin.JointModelPX(), pin.JointModelPY(), pin.JointModelPZ(), pin.JointModelPrismaticUnaligned(AXIS)),
        *(pin.JointModelHX(0.3), pin.JointModelHY(-0.2), pin.JointModelHZ(0.1)),
        *(pin.JointModelHelicalUnaligned(AXIS, 0.4), pin.JointModelSpherical(), pin.JointModelPlanar()),
    )
    for k, kind in enumerate(kinds):
        parent = max(0, k - k % 3)
        number = model.addJoint(parent, kind, pin.SE3.Random(), f"joint_{k}")
        model.appendBodyToJoint(number, pin.Inertia.Random(), pin.SE3.Random())
    model.addFrame(pin.Frame("tool", 5, 0, pin.SE3.Random(), pin.FrameType.OP_FRAME))
    return model


@lru_cache
def model_of(name: str) -> pin.Model:
    pin.seed(2)
    made = {
        "humanoid": pin.buildSampleModelHumanoid,
        "random humanoid": pin.buildSampleModelHumanoidRandom,
        "manipulator": pin.buildSampleModelManipulator,
        "every joint": every_joint,
    }
    return made[name]() if name in made else pinocchio_model(ROBOTS[name], FROM_FILES[name])


every_robot = every(*FROM_FILES, "humanoid", "random humanoid", "manipulator", "every joint")
random_bodies_are_unreal = pytest.mark.filterwarnings("ignore:no distribution of mass:nori_dyn.errors.NoriWarning")


@random_bodies_are_unreal
@every_robot
def test_dynamics(name):
    model = model_of(name)
    tree, data = nd.interop.from_pinocchio(model), model.createData()
    assert tree.joint_names == tuple(model.names)[1:]
    rng = np.random.default_rng(0)
    for _ in range(N_STATES):
        q, fx = tree.random_configuration(rng), rng.normal(size=(tree.n_links, 6))
        qd, qdd = rng.normal(size=(2, tree.nv))
        there = nd.interop.to_convention(tree, model, q, qd, qdd, nd.rnea(tree, q, qd, qdd, fx), fx)
        forces = [pin.Force(wrench) for wrench in there.fx]
        tau = pin.rnea(model, data, there.q, there.qd, there.qdd, forces)
        assert_close(there.tau, tau, SOLVED)
        rate = pin.aba(model, data, there.q, there.qd, tau, forces)
        here = nd.interop.from_convention(tree, model, there.q, there.qd, rate, tau)
        if name != "icub":  # ill-conditioned: see test_pinocchio
            assert_close(nd.aba(tree, q, qd, here.tau, fx), here.qdd, SOLVED)
        M = pin.crba(model, data, there.q)
        energy = there.qd @ (np.triu(M) + np.triu(M, 1).T) @ there.qd / 2
        assert_close(qd @ nd.crba(tree, q) @ qd / 2, energy, SOLVED)


@random_bodies_are_unreal
@every_robot
def test_frames_are_where_pinocchio_has_them(name):
    model = model_of(name)
    tree, data = nd.interop.from_pinocchio(model), model.createData()
    q = tree.random_configuration(3)
    pin.framesForwardKinematics(model, data, nd.interop.to_convention(tree, model, q).q)
    R, o = poses(tree, q)
    assert len(tree.frames) + tree.n_links >= len({f.name for f in model.frames if f.type.name == "BODY"})
    for known in (*tree.names, *tree.frames):
        if model.existFrame(known) and known not in tree.joint_names:
            frame = tree.frame(known)
            turned, origin = (np.eye(3), np.zeros(3)) if frame.on_world else (R[frame.link], o[frame.link])
            numbers = [k for k, f in enumerate(model.frames) if f.name == known]
            there = [data.oMf[k].homogeneous for k in numbers]
            here = np.eye(4)
            here[:3, :3], here[:3, 3] = turned @ frame.X.E.T, origin + turned @ frame.X.r
            assert min(np.abs(here - pose).max() for pose in there) < 1e-11, known


@random_bodies_are_unreal
@every_robot
def test_kinds_and_limits_of_joints_are_those_of_the_model(name):
    """With the dynamics and frames above it is the robot of the file: as test_urdf_robots.py has it of that."""
    model = model_of(name)
    tree = nd.interop.from_pinocchio(model)
    for joint, there in zip(tree.joints, model.joints.tolist()[1:], strict=True):
        assert (joint.nv, joint.kind == "continuous") == (there.nv, there.shortname().startswith("JointModelRUB"))
        if there.nq == 1 and hasattr(joint, "limits"):
            ends = model.lowerPositionLimit[there.idx_q], model.upperPositionLimit[there.idx_q]
            assert joint.limits == tuple(end if abs(end) < 1e300 else np.copysign(np.inf, end) for end in ends)


def test_gravity_and_name_are_the_models_unless_given():
    model = pin.buildSampleModelManipulator()
    model.gravity.linear = np.array([0.0, 1.0, -2.0])
    assert nd.interop.from_pinocchio(model).gravity == (0.0, 1.0, -2.0)
    assert nd.interop.from_pinocchio(model, gravity=(0.0, 0.0, 0.0)).gravity == (0.0, 0.0, 0.0)
    assert nd.interop.from_pinocchio(model, name="arm").name == "arm"


def composite() -> pin.JointModel:
    joint = pin.JointModelComposite(2)
    joint.addJoint(pin.JointModelRX())
    joint.addJoint(pin.JointModelPY())
    return joint


def test_joints_that_we_do_not_have_are_named():
    for joint in (pin.JointModelTranslation(), pin.JointModelSphericalZYX(), composite()):
        model = pin.Model()
        model.addJoint(0, joint, pin.SE3.Identity(), "odd")
        with pytest.raises(nd.errors.ModelError, match=r"joint 'odd' .*not supported"):
            nd.interop.from_pinocchio(model)


def test_what_is_no_robot_is_refused():
    with pytest.raises(nd.errors.ModelError, match=r"pinocchio\.Model is needed, not str"):
        nd.interop.from_pinocchio("panda.urdf")
    with pytest.raises(nd.errors.ModelError, match="no moving link"):
        nd.interop.from_pinocchio(pin.Model())
    turning = pin.buildSampleModelManipulator()
    turning.gravity.angular = np.array([0.0, 0.0, 1.0])
    with pytest.raises(nd.errors.ModelError, match="angular part"):
        nd.interop.from_pinocchio(turning)
    nowhere = pin.buildSampleModelManipulator()
    nowhere.jointPlacements[2] = pin.SE3(np.eye(3), np.full(3, np.nan))
    with pytest.raises(nd.errors.ModelError, match=r"joint 'shoulder2_joint' .*not finite"):
        nd.interop.from_pinocchio(nowhere)
    wrapped = pin.RobotWrapper(pin.buildSampleModelManipulator())
    with pytest.raises(nd.errors.ModelError, match=r"not RobotWrapper\. Give its \.model"):
        nd.interop.from_pinocchio(wrapped)
    names = ("njoints", "joints", "jointPlacements", "inertias", "frames")
    symbolic = SimpleNamespace(**dict.fromkeys(names), lowerPositionLimit=np.array([], dtype=object))
    with pytest.raises(nd.errors.ModelError, match="over doubles"):
        nd.interop.from_pinocchio(symbolic)


def test_armature_friction_and_mimic_joints_become_components():
    model = pin.buildSampleModelHumanoid(True)
    model.armature = np.concatenate([np.full(6, 0.3), np.linspace(0.1, 0.5, model.nv - 6)])
    model.damping = np.full(model.nv, 0.2)
    tree = nd.interop.from_pinocchio(model)
    assert {c.type for c in tree.components} == {"rotor"}
    assert "damping and dry friction left out: friction=True includes them" in tree.notes
    solver = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=["tau"]).solver("numpy")
    q, qd, qdd = random_state(tree, 4)[:3]
    peer = nd.interop.to_convention(tree, model, q, qd, qdd)
    tau = solver.solve(q, qd, np.concatenate([qdd, np.zeros(solver.inputs.y.size - tree.nv)])).tau
    ours = nd.interop.to_convention(tree, model, q, qd, qdd, tau).tau
    assert_close(ours, pin.rnea(model, model.createData(), peer.q, peer.qd, peer.qdd), RECURSION)
    assert nd.interop.from_pinocchio(model, components=False).components == ()
    assert [c.type for c in nd.interop.from_pinocchio(model, components=False, friction=True).components] == [
        "friction"
    ]
    model.armature[:6] = np.arange(6.0)
    with pytest.warns(
        nd.errors.NoriWarning, match="ignored: armature of joint 'root_joint', whose freedoms have different"
    ):
        nd.interop.from_pinocchio(model)


def test_mimic_joints_are_coupled(tmp_path):
    """The joint that the others follow moves as in the model without freedoms of theirs."""
    links = "".join(
        f'<link name="{name}"><inertial><origin xyz="0.1 0.2 0.3"/><mass value="2"/>'
        '<inertia ixx="1" ixy="0.1" ixz="0" iyy="2" iyz="0" izz="1.5"/></inertial></link>'
        for name in ("base", "a", "b", "c")
    )
    joint = (
        '<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/><origin xyz="0 0.3 0.2" rpy="0.4 0 0.1"/>'
    )
    limit = '<axis xyz="0 1 1"/><limit lower="-2" upper="2" effort="1" velocity="1"/>'
    path = tmp_path / "mimics.urdf"
    path.write_text(
        f'<robot name="mimics">{links}{joint.format("j", "revolute", "base", "a")}{limit}</joint>'
        + f'{joint.format("k", "revolute", "a", "b")}{limit}<mimic joint="j" multiplier="-2" offset="0.3"/></joint>'
        + f'{joint.format("l", "prismatic", "b", "c")}{limit}<mimic joint="j" multiplier="0.5"/></joint></robot>'
    )
    model = pin.buildModelFromUrdf(str(path), mimic=True)
    data = model.createData()
    for tree in (nd.interop.from_pinocchio(model), nd.load_urdf(path, mimic="coupled")):
        assert [c.type for c in tree.components] == ["coupling", "coupling"]
        solver = nd.plan(nd.System(tree, "forward_dynamics"), outputs=["qdd"]).solver("numpy")
        rate = np.array([1.0, -2.0, 0.5])
        q, qd = np.array([0.4, 0.3 - 0.8, 0.2]), 0.7 * rate
        tau = np.array([3.0, 0.5, -2.0])
        pin.crba(model, data, q[:1])
        bias = pin.rnea(model, data, q[:1], qd[:1], np.zeros(1))
        expected = (rate @ tau - bias) / data.M[0, 0]
        found = solver.solve(q, qd, np.concatenate([tau, np.zeros(solver.inputs.y.size - 3)])).qdd
        assert_close(found, expected * rate, SOLVED)


def test_unreal_inertias_are_named():
    model = pin.buildSampleModelManipulator()
    model.inertias[2] = pin.Inertia(1.0, np.zeros(3), np.diag([1.0, 1.0, 3.0]))
    said = r"no distribution of mass has .* 'shoulder2_body' \(1, 1, 3 kg m\^2\)"
    with pytest.warns(nd.errors.NoriWarning, match=f"^{said}"):
        nd.interop.from_pinocchio(model)
    with pytest.raises(nd.errors.ModelError, match=said):
        nd.interop.from_pinocchio(model, inertias="refuse")
    mended = nd.interop.from_pinocchio(model, inertias="nearest")
    assert_close(mended.I[1][:3, :3], np.diag([1.5, 1.5, 3.0]), SOLVED)
    assert any("'shoulder2_body' (1, 1, 3 to 1.5, 1.5, 3)" in note for note in mended.notes)


def test_models_of_other_robots_are_refused():
    model = pin.buildSampleModelManipulator()
    tree = nd.interop.from_pinocchio(model)
    with pytest.raises(nd.errors.ModelError, match="unknown moving joint"):
        nd.interop.to_convention(tree, pin.buildSampleModelHumanoid(), tree.neutral_configuration())
    other = pin.Model()
    for k, name in enumerate(tree.joint_names):
        other.addJoint(k, pin.JointModelSpherical() if k == 3 else pin.JointModelRX(), pin.SE3.Identity(), name)
    with pytest.raises(nd.errors.ModelError, match=r"'elbow_joint' is revolute .* Spherical in the model"):
        nd.interop.to_convention(tree, other, tree.neutral_configuration())

"""Presets: robots that are ready to use, and logs that are tied to them without a mapping."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.descriptions.legs import legs_of
from nori_dyn.errors import (
    DoubtfulLogError,
    InputError,
    MappingError,
    ModelError,
    PresetError,
    UnknownPresetError,
    WrongKindError,
)
from nori_dyn.estimation.presets import known_presets
from nori_dyn.logs.drafts.draft import draft
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.motion.differentiation import differentiator
from tests.logs import samples_in
from tests.peers import mujoco
from tests.robots import ROBOTS, load
from tests.walking import Walk, walk

RATE = 200.0


def swinging(seconds=4.0):
    """Time, q, qd and torques of a Panda that swings all its joints, with little noise."""
    arm, t = nd.preset("panda").tree, np.arange(0, seconds, 1 / RATE)
    phase = np.outer(t, 1 + 0.2 * np.arange(7)) + np.arange(7)
    rates = 1 + 0.2 * np.arange(7)
    q = np.array([0, -0.4, 0, -2, 0, 1.8, 0.8]) + 0.4 * np.sin(phase)
    qd, qdd = 0.4 * rates * np.cos(phase), -0.4 * rates**2 * np.sin(phase)
    tau = nd.rnea(arm, q.T, qd.T, qdd.T).T + np.random.default_rng(0).normal(0, 0.05, q.shape)
    return t, q, qd, tau


def written(path, columns):
    """A CSV of columns by their names."""
    np.savetxt(path, np.column_stack([*columns.values()]), delimiter=",", header=",".join(columns), comments="")
    return path


def libfranka(path, t, q, qd, tau):
    """A log as libfranka writes it, in milliseconds."""
    numbered = {f"{name}[{k}]": x[:, k] for name, x in (("q", q), ("dq", qd), ("tau_J", tau)) for k in range(7)}
    return written(path, {"duration": 1e3 * t, **numbered})


def test_every_preset_follows_the_schema_and_says_where_its_numbers_are_from():
    for name, preset in known_presets().items():
        assert preset.name == name
        assert len(preset.data.sources) > 40
        known = nd.tools.robots()
        assert preset.data.obtain or preset.file or {*preset.data.robot} & {*known} or known.absent
        for what, estimand in preset.data.estimates.items():
            assert estimand.about, what


@pytest.mark.parametrize("name", ["panda", "go2", "icub", "double_pendulum"])
def test_a_preset_has_a_model_and_all_that_it_names(name):
    load(name) if name != "double_pendulum" else None  # skips where no package has it
    preset = nd.preset(name)
    for what in preset.data.estimates:
        sensors = preset.sensors(what)
        for state in ((), sensors.contact_names):
            nd.System(preset.tree, sensors.in_contact(*state) if sensors.contact_names else sensors)
    assert set(preset.data.order) <= set(preset.tree.joint_names)
    assert name in str(preset)


def test_a_log_and_a_name_are_enough(tmp_path):
    load("panda")
    t, q, qd, tau = swinging()
    found = nd.estimate(libfranka(tmp_path / "log.csv", t, q, qd, tau), "panda")
    middle = slice(50, -50)
    assert np.abs(found["tau"][middle] - tau[middle]).max() < 1.0
    np.testing.assert_allclose(found.t, t, atol=1e-9)
    told = {"streams": {"": {"delay": 0.5}}}
    late = nd.estimate(nd.read_log(tmp_path / "log.csv", told), "panda", accept=True)  # the columns are the preset's
    np.testing.assert_allclose(late.t, t - 0.5, atol=1e-9)
    np.testing.assert_allclose(late["tau"], found["tau"], atol=1e-6)


def test_what_is_doubtful_is_asked_and_nothing_is_estimated(tmp_path):
    load("panda")
    t, q, qd, tau = swinging()
    columns = {f"{name}{k}": x[:, k] for name, x in (("q", q), ("qd", qd), ("i", tau)) for k in range(7)}
    path = written(tmp_path / "log.csv", {"time": t, **columns})
    with pytest.raises(DoubtfulLogError, match="gains") as refused:
        nd.estimate(path, "panda")
    assert len(refused.value.questions) == 1
    assert nd.estimate(path, "panda", accept=True)["tau"].shape == (len(t), 7)


def test_of_a_log_without_torques_the_motion_tells_them(tmp_path):
    load("panda")
    t, q, qd, tau = swinging()
    columns = {f"{kind}:panda_joint{k + 1}": x[:, k] for kind, x in (("q", q), ("qd", qd)) for k in range(7)}
    model = nd.preset("panda").file
    arm = nd.preset(model).fitted(["panda_finger_joint1", "panda_finger_joint2"])
    path = written(tmp_path / "log.csv", {"time": t, **columns})
    found = nd.estimate(path, arm)
    assert [*found.values] == ["tau"]
    with pytest.raises(MappingError, match=r"torques of six joints.*--what torques"):
        nd.estimate(path, arm, what="contacts")
    assert np.abs(found["tau"][50:-50] - tau[50:-50]).max() < 1.0


@pytest.mark.filterwarnings("ignore:.*mimic joints are taken as independent")
def test_a_robot_without_a_preset_is_estimated_by_its_model_alone(tmp_path):
    load("panda")
    t, q, qd, tau = swinging()
    columns = {f"{kind}:panda_joint{k + 1}": x[:, k] for kind, x in (("q", q), ("tau", tau)) for k in range(7)}
    path, model = written(tmp_path / "log.csv", {"time": t, **columns}), nd.preset("panda").file
    known = nd.preset(model)
    assert [*known.data.estimates] == ["torques"]  # with two fingers there is no single tool
    with pytest.raises(DoubtfulLogError, match=r"of panda_finger_joint1, panda_finger_joint2: taken to stand still"):
        nd.estimate(path, known)
    found = nd.estimate(path, known, accept=True)
    assert np.abs(found["tau"][50:-50] - tau[50:-50]).max() < 1.0
    arm = known.fitted(["panda_finger_joint1", "panda_finger_joint2"])
    assert arm.data.estimates["contacts"].outputs == ["fx:panda_link7"]
    assert np.abs(nd.estimate(path, arm, what="contacts")["fx:panda_link7"][50:-50, 3:]).max() < 5


def test_a_robot_on_a_wall_is_told_by_its_torques_and_estimated_with_its_gravity(tmp_path):
    load("xarm7")
    file = tmp_path / "arm.urdf"
    file.write_text(ROBOTS["xarm7"].read_text())
    wall = (9.81, 0.0, 0.0)
    tree, t = nd.load_robot(file, gravity=wall, inertias="nearest"), np.arange(0, 5, 0.01)
    phase = np.outer(t, 0.3 + 0.1 * np.arange(tree.nv)) + np.arange(tree.nv)
    rest, rates = np.array([0.0, 0, 0, 1.5, 0, 0, 0]), 0.3 + 0.1 * np.arange(tree.nv)
    q, qd, qdd = rest + 0.8 * np.sin(phase), 0.8 * rates * np.cos(phase), -0.8 * rates**2 * np.sin(phase)
    tau = nd.rnea(tree, q.T, qd.T, qdd.T).T
    columns = {
        f"{kind}:{j}": x[:, k]
        for kind, x in (("q", q), ("qd", qd), ("tau", tau))
        for k, j in enumerate(tree.joint_names)
    }
    path = written(tmp_path / "log.csv", {"t": t, **columns})
    with pytest.raises(DoubtfulLogError, match=r"--gravity 9\.81,0,0"):
        nd.estimate(path, nd.preset(file))
    found = nd.estimate(path, nd.preset(file, gravity=wall), backend="numpy")
    assert np.abs(found["tau"][10:-10] - tau[10:-10]).max() < 0.05


GRIPPER = """<mujoco><worldbody><body><joint name="wrist" axis="0 1 0"/><geom size=".1"/>
  <body pos=".3 0 0"><joint name="left" type="slide" axis="0 1 0"/><geom size=".1" mass="1"/></body>
  <body pos=".3 0 0"><joint name="right" type="slide" axis="0 -1 .5"/><geom size=".1" mass="2"/></body>
</body></worldbody><equality><joint joint1="left" joint2="right" active="true"/></equality></mujoco>"""


@pytest.mark.parametrize("is_tied", [True, False])
@pytest.mark.parametrize("read", [("wrist", "left", "right"), ("wrist", "left"), ()], ids=len)
def test_joints_that_are_tied_together_or_whose_torques_are_not_read_need_no_preset(tmp_path, is_tied, read):
    """By MuJoCo: where the fingers are tied the motor of the left one moves both."""
    content, joints = GRIPPER.replace("true", str(is_tied).lower()), ("wrist", "left", "right")
    (tmp_path / "gripper.xml").write_text(content)
    model, t, rates = mujoco.MjModel.from_xml_string(content), np.arange(0, 2, 1 / RATE), np.array([3, 2, 2])
    data, size, phase = mujoco.MjData(model), np.array([1, 0.1, 0.1]), t[:, None] * rates
    q, qd, qdd = size * np.sin(phase), size * rates * np.cos(phase), -size * rates**2 * np.sin(phase)
    model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
    tau = np.zeros_like(q)
    for k in range(len(t)):
        data.qpos[:], data.qvel[:], data.qacc[:] = q[k], qd[k], qdd[k]
        mujoco.mj_inverse(model, data)
        tau[k] = data.qfrc_inverse @ ([[1, 0, 0], [0, 1, 0], [0, 1, 0]] if is_tied else np.eye(3))
    log = {"q": (q, joints), "qd": (qd, joints), "tau": (tau, read)}
    columns = {f"{kind}:{joint}": x[:, joints.index(joint)] for kind, (x, own) in log.items() for joint in own}
    path, robot = written(tmp_path / "log.csv", {"time": t, **columns}), nd.preset(tmp_path / "gripper.xml")
    mapping = {"columns": [{"of": name, "from": name} for name in columns]}
    to_compare = np.array([[1, 0], [0, 1], [0, 1]]) if is_tied and not read else np.eye(3)  # the motion tells sums
    for given in (path, nd.read_log(path, mapping)):
        found = nd.estimate(given, robot, accept=True, backend="numpy")["tau"]
        np.testing.assert_allclose((found @ to_compare)[20:-20], (tau @ to_compare)[20:-20], atol=2e-3)


@pytest.mark.filterwarnings("ignore:robot 'panda'. its mimic joints")
def test_several_limbs_are_asked_whether_they_stand_fixed(tmp_path):
    tree, t = load("panda"), np.arange(0, 1, 0.01)
    columns = {f"{kind}:{name}": 0 * t for kind in ("q", "qd", "tau") for name in tree.joint_names}
    path = written(tmp_path / "log.csv", {"time": t, **columns})
    with pytest.raises(DoubtfulLogError, match="its base is taken to be fixed"):
        nd.estimate(path, nd.preset(ROBOTS["panda"]))


FEET = {  # points, soles, IMU
    "solo12": (["FL_FOOT", "FR_FOOT", "HL_FOOT", "HR_FOOT"], [], "base_link"),
    "anymal": (["LF_FOOT", "RF_FOOT", "LH_FOOT", "RH_FOOT"], [], "imu_link"),
    "g1": ([], ["left_ankle_roll_link", "right_ankle_roll_link"], "imu_in_pelvis"),
    "talos_full": ([], ["left_sole_link", "right_sole_link"], "imu_link"),
}


@pytest.mark.parametrize("name", FEET)
def test_feet_and_the_imu_of_a_robot_without_a_preset_are_found_by_their_names(name):
    load(name)
    points, soles, imu = FEET[name]
    known = nd.preset(ROBOTS[name])
    assert [*known.data.estimates] == ["contacts", "base", "motion", "pose"]
    assert known.data.estimates["contacts"].outputs == [f"fx:{foot}" for foot in points + soles]
    kinds = [f"{kind} {', '.join(own)}," for kind, own in (("points", points), ("flat soles", soles)) if own]
    assert all(f"{told} with an IMU at {imu}" in known.data.doubts[""] for told in kinds)


def without_torques(path):
    """A log of a Go2 that stands: encoders, an IMU and the forces on its feet."""
    tree, t = load("go2", "floating"), np.arange(0, 1, 0.01)
    bent = dict.fromkeys(tree.joint_names[1:], 0.0) | {f"{leg}_thigh_joint": 0.9 for leg in ("FL", "FR", "RL", "RR")}
    bent |= {f"{leg}_calf_joint": -1.8 for leg in ("FL", "FR", "RL", "RR")}
    columns = {f"{kind}_{name}": x * (kind == "q") + 0 * t for kind in ("q", "dq") for name, x in bent.items()}
    columns |= {f"{letter}{axis}": 0 * t + (letter + axis == "az") * 9.81 for letter in "wa" for axis in "xyz"}
    columns |= {f"{leg}_force": 40 + 0 * t for leg in ("FL", "FR", "RL", "RR")}
    return written(path, {"time": t, **columns})


def test_a_log_of_a_legged_robot_without_torques_says_what_it_tells(tmp_path):
    with pytest.raises(
        MappingError, match=r"holds no joint torques, which the estimate of contacts needs\. Without: --what motion"
    ):
        nd.estimate(without_torques(tmp_path / "log.csv"), "go2")


def test_a_log_of_another_robot_is_not_told_to_lack_torques_alone(tmp_path):
    t = np.arange(20) / RATE
    arm = {f"{kind}{k}": np.sin(k * t) for kind in ("pos", "vel", "tau") for k in (1, 2)}
    with pytest.raises(InputError, match="has no column 'q:FL_hip_joint'"):
        nd.estimate(written(tmp_path / "arm.csv", {"time": t, **arm}), "go2")


def test_a_log_that_ends_with_its_names_holds_no_samples(tmp_path):
    (tmp_path / "log.csv").write_text("time,pos1,pos2,vel1,vel2\n")
    with pytest.raises(InputError, match="holds no samples"):
        nd.estimate(tmp_path / "log.csv", "double_pendulum", accept=True)


@pytest.mark.long
def test_a_log_of_a_legged_robot_without_torques_has_its_base_estimated(tmp_path):
    path = without_torques(tmp_path / "log.csv")
    with pytest.raises(DoubtfulLogError, match="contact:FL from FL_force"):
        nd.estimate(path, "go2", what="motion")
    base = nd.estimate(path, "go2", what="motion", accept=True).history.base
    np.testing.assert_allclose(base.gravity[-1], [0, 0, -9.81], atol=0.05)
    np.testing.assert_allclose(base.velocity[-1], 0, atol=0.01)


BIPED = Path(__file__).parents[3] / "benchmarks" / "over_time" / "biped.xml"

LAYOUTS = {  # of position, quaternion (x, y, z, w), angular and linear velocity in its own axes, and those of the world
    "MuJoCo's arrays": ("wxyz", "mujoco", lambda p, o, w, v, W, V: {"qpos": (p, o[:, [3, 0, 1, 2]]), "qvel": (V, w)}),
    "Isaac's array": ("xyzw", "world", lambda p, o, w, v, W, V: {"root_states": (p, o, V, W)}),
    "IsaacLab's arrays": (
        "wxyz",
        "world",
        lambda p, o, w, v, W, V: {
            "projected_gravity_b": (p[:, [1, 0, 2]],),
            "root_pos_w": (p,),
            "root_quat_w": (o[:, [3, 0, 1, 2]],),
            "root_lin_vel_w": (V,),
            "root_ang_vel_w": (W,),
        },
    ),
    "Pinocchio's arrays": ("xyzw", "body", lambda p, o, w, v, W, V: {"q": (p, o), "v": (v, w)}),
    "Drake's arrays": ("wxyz", "world", lambda p, o, w, v, W, V: {"q": (o[:, [3, 0, 1, 2]], p), "v": (W, V)}),
    "RaiSim's arrays": ("wxyz", "world", lambda p, o, w, v, W, V: {"gc": (p, o[:, [3, 0, 1, 2]]), "gv": (V, W)}),
    "arrays": (
        "wxyz",
        "body",
        lambda p, o, w, v, W, V: {"pos": (p,), "quat": (o[:, [3, 0, 1, 2]],), "lin": (v,), "ang": (w,)},
    ),
}


def simulated(path, layout: str, noise: float = 0.0) -> Walk:
    """The log of a biped of MuJoCo, of whose base pose, with noise [m, rad], and velocity are read."""
    of, rng = walk("biped", 6.4)[1000:2000:2], np.random.default_rng(0)
    turned = Rotation.from_quat(of.q[:, 3:7])
    in_world = turned.apply(of.qd[:, :3]), turned.apply(of.qd[:, 3:6])
    off = noise * rng.normal(size=(2, of.n, 3))
    pose = of.q[:, :3] + off[0], (turned * Rotation.from_rotvec(off[1])).as_quat()
    columns = LAYOUTS[layout][2](*pose, of.qd[:, :3], of.qd[:, 3:6], *in_world)
    whole = [*columns] if len(columns) == 2 else ["joint_pos", "joint_vel"]
    for name, own in zip(whole, (of.q[:, 7:], of.qd[:, 6:]), strict=True):
        columns[name] = (*columns.get(name, ()), own)
    arrays = {name: np.hstack(parts) for name, parts in columns.items()}
    np.savez(path, time=2e-3 * np.arange(of.n), torques=of.tau[:, 6:] + 0.1 * rng.normal(size=(of.n, 10)), **arrays)
    return of


@pytest.mark.parametrize(("layout", "noise"), [*((name, 0.0) for name in LAYOUTS), ("arrays", 1e-3)])
def test_the_pose_of_a_base_is_found_by_its_numbers_and_its_velocity_by_how_it_moves(tmp_path, layout, noise):
    of = simulated(tmp_path / "log.npz", layout, noise)
    known = nd.preset(BIPED)
    with open_log(tmp_path / "log.npz") as source:
        made = draft(source, known.record("pose"))
    entries = {guess.entry["of"]: guess.entry for guess in made.guesses}
    assert (entries["q:root"]["orientation"], entries["qd:root"]["axes"]) == LAYOUTS[layout][:2]
    system = nd.System(of.tree, known.sensors("pose").in_contact("l_sole"))
    read = samples_in(tmp_path / "log.npz", system, differentiator("smoother"), mapping=made.data())
    np.testing.assert_allclose(read.q, of.q, atol=1e-9 + 6 * noise)
    np.testing.assert_allclose(read.qd, of.qd, atol=1e-9)


@pytest.mark.parametrize("name", ["log.csv", "log.txt"])
def test_a_table_of_states_without_names_begins_with_a_pose(tmp_path, name):
    """As retargeted motions of humanoids are written; or in JSON, whatever the file is called."""
    of = walk("biped", 6.4)[1000:2000:2]
    states, t = np.hstack([of.q, of.qd[:, 3:6], of.qd[:, :3], of.qd[:, 6:]]), 2e-3 * np.arange(of.n)
    if name == "log.csv":
        np.savetxt(tmp_path / name, np.column_stack([t, states]), delimiter=",")
    else:
        (tmp_path / name).write_text(json.dumps({"time": t.tolist(), "Frames": states.tolist()}))
    system = nd.System(of.tree, "inverse_dynamics")
    with open_log(tmp_path / name) as source:
        made = draft(source, SampleRecord.of({(): system}))
    read = samples_in(tmp_path / name, system, differentiator("smoother"), mapping=made.data())
    np.testing.assert_allclose(read.q, of.q, atol=1e-9)
    np.testing.assert_allclose(read.qd, of.qd, atol=1e-9)
    with pytest.raises(MappingError, match="holds neither joint torques nor readings of the whole IMU"):
        nd.estimate(tmp_path / name, BIPED)


def test_a_base_that_lies_in_a_world_whose_y_is_up_is_asked_about(tmp_path):
    of = walk("biped", 6.4)[1000:2000:20]
    up = Rotation.from_euler("x", -90, degrees=True)
    pose = up.apply(of.q[:, :3]), (up * Rotation.from_quat(of.q[:, 3:7])).as_quat()
    of_base = [f"base_{part}" for part in ("x", "y", "z", "qx", "qy", "qz", "qw")]
    names = ["t", *of_base, *(f"q[{k}]" for k in range(10))]
    table = np.column_stack([0.02 * np.arange(of.n), *pose, of.q[:, 7:]])
    with open_log(written(tmp_path / "log.csv", dict(zip(names, table.T, strict=True)))) as source:
        (guess, *_) = draft(source, nd.preset(BIPED).record("pose")).guesses
    assert guess.entry["of"] == "q:root"
    assert guess.why.endswith("if that is up, --gravity 0,-9.81,0")
    assert guess.is_doubtful


@pytest.mark.parametrize("order", ["wxyz", "xyzw"])
def test_a_base_that_stands_tells_the_order_of_its_quaternion_wherever_it_looks(tmp_path, order):
    of = walk("biped", 6.4)[1000:2000:20]
    quaternions = (Rotation.from_euler("z", 130, degrees=True) * Rotation.from_quat(of.q[:, 3:7])).as_quat()
    quaternions = quaternions if order == "xyzw" else np.roll(quaternions, 1, axis=1)
    np.savez(tmp_path / "log.npz", t=0.02 * np.arange(of.n), q=np.hstack([of.q[:, :3], quaternions, of.q[:, 7:]]))
    with open_log(tmp_path / "log.npz") as source:
        (guess, *_) = draft(source, nd.preset(BIPED).record("pose")).guesses
    assert guess.entry["orientation"] == order


@pytest.mark.parametrize("kept", [1, 2, 10])
def test_poses_of_which_nothing_can_be_differentiated_have_no_velocity(tmp_path, kept):
    simulated(tmp_path / "log.npz", "arrays")
    arrays = {name: values[:kept] for name, values in np.load(tmp_path / "log.npz").items()}
    arrays["quat"][kept // 3] = 0.0  # of a camera that sees nothing yet
    np.savez(tmp_path / "log.npz", **arrays)
    with open_log(tmp_path / "log.npz") as source:
        made = draft(source, nd.preset(BIPED).record("pose"))
    assert not any(guess.entry["of"] == "qd:root" for guess in made.guesses)


def test_no_pose_has_a_quaternion_of_other_times_nor_is_an_accelerometer_how_a_base_accelerates(tmp_path):
    simulated(tmp_path / "log.npz", "arrays")
    known = np.load(tmp_path / "log.npz")
    imu = {"imu/t": np.linspace(0, 1, 250), "imu/quat": known["quat"][::2], "imu/acc": known["pos"][::2]}
    np.savez(tmp_path / "both.npz", **{n: known[n] for n in ("time", "pos", "joint_pos")}, **imu)
    with open_log(tmp_path / "both.npz") as source:
        made = draft(source, nd.preset(BIPED).record("pose"))
    assert not {"q:root", "qdd:root"} & {guess.entry["of"] for guess in made.guesses}


def test_forces_on_feet_are_estimated_by_the_pose_of_the_base(tmp_path):
    """Without an IMU and velocities, beside MuJoCo's own contact forces."""
    of = simulated(tmp_path / "log.npz", "MuJoCo's arrays")
    arrays = dict(np.load(tmp_path / "log.npz"))
    del arrays["qvel"]
    np.savez(tmp_path / "log.npz", **arrays)
    with pytest.raises(MappingError, match=r"holds no readings of the whole IMU, .* Without: --what pose"):
        nd.estimate(tmp_path / "log.npz", BIPED)
    found = nd.estimate(tmp_path / "log.npz", BIPED, what="pose", accept=True, backend="numpy")
    off = np.array(
        [found.estimate[f"fx:{foot}"][:, 3:] - of.fx[:, k, 3:] for k, foot in enumerate(("l_sole", "r_sole"))]
    )
    size = np.sqrt(np.mean(of.fx[..., 3:] ** 2))
    assert np.median(np.abs(off)) < 0.01 * size
    assert np.sqrt(np.mean(off**2)) < 0.08 * size  # feet that hit the ground are faster than a smoother follows


def test_a_foot_that_is_a_point_is_not_on_the_axis_of_its_knee():
    """Where the shank is called a foot, and its end a tip."""
    assert legs_of(nd.preset(BIPED.with_name("quadruped.xml")).tree).points == ("LF_tip", "RF_tip", "LH_tip", "RH_tip")


def test_forces_on_legs_in_a_plane_are_shared_by_a_prior():
    tree = load("solo12", "floating", locked=[f"{leg}_HAA" for leg in ("FL", "FR", "HL", "HR")])
    legs = legs_of(tree)
    assert legs.undetermined == legs.points
    system = nd.System(tree, nd.SensorSet.from_dict(legs.sensors()).in_contact(*legs.feet))
    assert nd.observability(system, where=None).over_time.suffices


def test_a_load_of_a_preset_weighs_on_its_link(tmp_path):
    text = """
name: swing
about: a swing
sources: none, it is a test of what a body adds
robot: [swing.urdf]
loads: [{link: rod, mass: 2, com: [0, 0, -1]}]
limits: {hinge: [-1, 1]}
estimates: {torques: {about: torques, sensors: inverse_dynamics, outputs: [tau]}}
"""
    (tmp_path / "swing.urdf").write_text(
        '<robot name="swing"><link name="wall"/><link name="rod"/><joint name="hinge" type="continuous">'
        '<parent link="wall"/><child link="rod"/><axis xyz="0 1 0"/></joint></robot>'
    )
    (tmp_path / "swing.yaml").write_text(text)
    preset = nd.preset(tmp_path / "swing.yaml")
    held = nd.rnea(preset.tree, np.array([np.pi / 2]), np.zeros(1), np.zeros(1))
    assert abs(held[0]) == pytest.approx(2 * 9.81)
    identified = preset.tree.replace(I=1.5 * preset.tree.I)  # which has the load
    nd.tools.save_robot(identified, preset.source, tmp_path / "found.urdf")
    for model, weight in (("found.urdf", 1.5), ("swing.urdf", 1.0)):
        own = nd.preset(tmp_path / "swing.yaml", tmp_path / model).tree
        np.testing.assert_allclose(own.I, weight * preset.tree.I, atol=1e-12)
    (tmp_path / "swing.yaml").write_text(text.replace("loads", "weights"))
    with pytest.raises(PresetError, match=r"swing.yaml:6.*'weights' is no field"):
        nd.preset(tmp_path / "swing.yaml")
    (tmp_path / "swing.yaml").write_text(text.replace("link: rod", "link: rood"))
    with pytest.raises(ModelError, match=r"'rood'.*Did you mean 'rod'"):
        _ = nd.preset(tmp_path / "swing.yaml").tree


def test_at_a_joint_one_friction_counts_and_what_was_identified_goes_before_the_preset(tmp_path):
    text = """
name: swing
about: a swing
sources: none, it is a test of friction
robot: [swing.urdf]
components: [{type: friction, joints: all, viscous: 1}, {type: rotor, joints: all, inertia: 3}]
estimates: {torques: {about: torques, sensors: inverse_dynamics, outputs: [tau]}}
"""
    urdf = """
<robot name="swing"><link name="wall"/><link name="rod"/><link name="tip"/>
<joint name="hinge" type="continuous"><parent link="wall"/><child link="rod"/>DYNAMICS</joint>
<joint name="wrist" type="continuous"><parent link="rod"/><child link="tip"/></joint></robot>
"""
    (tmp_path / "swing.yaml").write_text(text)
    (tmp_path / "swing.urdf").write_text(urdf.replace("DYNAMICS", ""))
    identified = urdf.replace("DYNAMICS", '<dynamics damping="0.5" friction="0" identified="true"/>')
    (tmp_path / "found.urdf").write_text(identified)
    (tmp_path / "found.yaml").write_text("components: [{type: friction, joints: wrist, viscous: 7}]")

    def torques(model=None, components=None):
        tree = nd.preset(tmp_path / "swing.yaml", model, components=components).tree
        return nd.rnea(tree, np.zeros(2), np.ones(2), np.array([1.0, 0.0])).tolist()  # of links without inertia

    assert torques() == [4.0, 1.0]
    assert torques(tmp_path / "found.urdf") == [3.5, 1.0]
    assert torques(tmp_path / "found.urdf", tmp_path / "found.yaml") == [0.5, 7.0]
    assert torques(tmp_path / "found.urdf", True) == [0.5, 0.0]
    assert torques(tmp_path / "found.urdf", False) == [0.0, 0.0]
    bare = nd.preset(tmp_path / "found.urdf", components=tmp_path / "found.yaml").tree
    assert nd.rnea(bare, np.zeros(2), np.ones(2), np.zeros(2)).tolist() == [0.5, 7.0]
    (tmp_path / "swing.yaml").write_text(text.replace("joints: all, viscous", "joints: [hinge, wrist], viscous"))
    locked = nd.preset(tmp_path / "swing.yaml").fitted(["wrist"]).tree
    assert nd.rnea(locked, np.zeros(1), np.ones(1), np.ones(1)).tolist() == [4.0]


def test_names_that_are_unknown_are_told_with_those_that_are(tmp_path):
    with pytest.raises(UnknownPresetError, match="Did you mean 'panda'"):
        nd.preset("pandaa")
    with pytest.raises(UnknownPresetError, match="estimate of preset 'panda' 'forces'"):
        nd.preset("panda").plan("forces")
    for call in (lambda: nd.preset(None), lambda: nd.preset("panda").estimand(3)):
        with pytest.raises(WrongKindError, match="takes"):
            call()
    with pytest.raises(InputError, match=r"different sensors.* run each by itself"):
        nd.preset("panda").estimand("torques,contacts")
    both = ("about: x, sensors: inverse_dynamics, outputs: [tau]", "about: y, sensors: inverse_dynamics, outputs: [fx]")
    for more in ("contacts: recognise", "components: []", "alarms: {per_hour: 15}"):
        estimates = f"estimates: {{a: {{{both[0]}}}, b: {{{both[1]}}}, c: {{{both[1]}, {more}}}}}"
        (tmp_path / "own.yaml").write_text(f"name: own\nabout: x\nsources: x\nrobot: [ur5]\n{estimates}\n")
        own = nd.preset(tmp_path / "own.yaml")
        assert own.estimand("a,b").outputs == ["tau", "fx"]
        for names in ("a,c", "c,a"):
            with pytest.raises(InputError, match="other settings"):
                own.estimand(names)
    (tmp_path / "own.yaml").write_text((tmp_path / "own.yaml").read_text().replace("per_hour", "per_day"))
    with pytest.raises(PresetError, match=r"'per_day' is no field of estimates.c.alarms. Did you mean 'per_hour'"):
        nd.preset(tmp_path / "own.yaml")
    with pytest.raises(ModelError, match=r"--model|pip install"):
        _ = nd.preset("panda", tmp_path / "nowhere.urdf").tree
    identified, own = (nd.preset("ur10e", model=model).of("collisions").tree for model in (None, "ur5"))
    np.testing.assert_array_equal(own.I, identified.I)  # whose friction was identified with it


def test_an_angle_may_be_given_by_its_cosine_and_its_sine(tmp_path):
    t = np.arange(0, 2, 0.01)
    q = np.column_stack([np.sin(t), 2 * np.cos(t)])
    arrays = {"t": t, "circle": np.stack([np.cos(q), np.sin(q)], axis=2).reshape(len(t), 4), "qd": 0 * q, "qdd": 0 * q}
    np.savez(tmp_path / "log.npz", **arrays)
    columns = [
        {"of": "q:{joint}", "from": [f"circle[{k}]" for k in range(4)], "orientation": "cos_sin"},
        {"of": "qd:{joint}", "from": "qd[{k}]"},
        {"of": "qdd:{joint}", "from": "qdd[{k}]"},
    ]
    plan = nd.plan(nd.System(nd.autotree(2), "inverse_dynamics"), outputs=["tau"])
    found = nd.estimate(nd.read_log(tmp_path / "log.npz", {"columns": columns}), plan, backend="numpy")
    np.testing.assert_allclose(found.samples.q, q, atol=1e-12)

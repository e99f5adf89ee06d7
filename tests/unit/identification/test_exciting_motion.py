"""nd.exciting_motion: what it returns, writes and shows, and what it refuses in words."""

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError, InputError, UnknownModelNameError, UnknownNameError, WrongKindError
from nori_dyn.identification.motion_information import torque_sensors
from nori_dyn.model.closure import gap_rate, gaps
from nori_dyn.model.joints import DriveLimits, Free, Revolute, Spherical
from nori_dyn.model.kinematics import positions
from tests import mechanisms
from tests.in_pinocchio import constrained_dynamics
from tests.oracles import poses
from tests.systems import sensor_set

QUICK = {"duration": 4.0, "harmonics": 3, "starts": 1}
ARM = nd.autotree(2).replace(gravity=(0.0, -9.81, 0.0))


def on_a_base(joint):
    tree = nd.autotree(3)
    return tree.replace(name="robot", joints=(joint, *tree.joints[1:]))


@pytest.fixture(scope="module")
def motion():
    return nd.exciting_motion(ARM, ["inertias", "viscous:*"], **QUICK)


def test_times_of_any_shape(motion):
    q, qd, qdd = motion.at([0.5, 1.5])
    assert (q.shape, qd.shape, qdd.shape, motion.torques([0.5, 1.5]).shape) == ((2, 2),) * 4
    np.testing.assert_allclose(motion.at(0.5)[0], q[0])
    np.testing.assert_allclose(motion.at(4.5)[1], qd[0], atol=1e-12)  # it begins again
    np.testing.assert_allclose(motion.torques(1.5), nd.rnea(ARM, q[1], qd[1], qdd[1]))
    with pytest.raises(InputError, match=r"t\[1\] is nan: values must be finite"):
        motion.at([0.0, np.nan])


def test_the_table_is_a_log(motion, tmp_path):
    """Read back by the library's own reader, and solved by inverse dynamics."""
    path = tmp_path / "motion.csv"
    assert motion.to_csv(path, rate=200) == 801
    plan = nd.plan(nd.System(ARM, "inverse_dynamics"), outputs=("tau",))
    found = nd.estimate(nd.read_log(path), plan)
    t = np.arange(801) / 200
    np.testing.assert_allclose(found.t, t, atol=1e-15)
    np.testing.assert_allclose(found["tau"], motion.torques(t), atol=1e-9)
    columns = path.read_text().partition("\n")[0].split(",")
    assert columns == ["t", *(f"{kind}:joint{k}" for kind in ("q", "qd", "qdd", "tau") for k in (1, 2))]
    table = np.genfromtxt(path, delimiter=",", skip_header=1)
    np.testing.assert_array_equal(table[:, 1:3], motion.at(t)[0])
    np.testing.assert_array_equal(table[:, 7:], motion.torques(t))


def test_files_that_cannot_be_written(motion, tmp_path):
    for path, message in [
        (tmp_path / "motion.xlsx", r"its name must end in \.csv or \.csv\.gz"),
        (tmp_path / "none" / "motion.csv", r"its folder .* does not exist"),
    ]:
        with pytest.raises(FileFormatError, match=message):
            motion.to_csv(path)
    for rate, message in [(0, "rate is 0: it must be a positive"), (1e9, "samples in 4 s"), (np.nan, "rate is nan")]:
        with pytest.raises(InputError, match=message):
            motion.to_csv(tmp_path / "motion.csv", rate)
    assert not list(tmp_path.iterdir())


def test_deviations_follow_from_rate_and_sigmas(motion):
    assert dict(motion.sigmas) == {"tau:joint1": 1.0, "tau:joint2": 1.0}
    assert len(motion.deviations) == len(motion.parameters) == len(motion.units) == len(motion.prior)
    four_times = nd.exciting_motion(ARM, ["inertias", "viscous:*"], rate=400.0, **QUICK)
    np.testing.assert_allclose(four_times.deviations, motion.deviations / 2, rtol=1e-3)
    drives = {"joint1": DriveLimits(effort=200.0), "joint2": DriveLimits(effort=200.0)}
    twice = nd.exciting_motion(ARM.replace(drives=drives), ["inertias", "viscous:*"], **QUICK, torque=np.inf)
    assert dict(twice.sigmas) == {"tau:joint1": 2.0, "tau:joint2": 2.0}
    np.testing.assert_allclose(twice.deviations, 2 * motion.deviations, rtol=1e-3)
    assert set(motion.poorly_identified) <= set(motion.parameters)


def test_what_is_known_already_is_not_excited_again():
    """With an earlier log of all but one parameter, that one is identified better than without."""
    alone = nd.exciting_motion(ARM, ["inertias"], **QUICK)
    n = len(alone.parameters)
    for k in (0, n - 1):
        root = 1e6 * np.eye(n)
        root[k, k] = 0.0
        known = nd.exciting_motion(ARM, ["inertias"], earlier=root, **QUICK)
        assert np.delete(known.deviations, k).max() < 1.1e-6
        unit = np.eye(n)[k]
        conditional = 1 / np.sqrt(unit @ np.linalg.inv(alone.covariance) @ unit)
        assert known.deviations[k] < 1.0001 * conditional < 1.001 * alone.deviations[k]
    root = np.linalg.cholesky(np.linalg.inv(alone.covariance)).T
    again = nd.exciting_motion(ARM, ["inertias"], earlier=root, **QUICK)
    assert (again.deviations < alone.deviations).all()
    for wrong, message in [(np.eye(3), rf"expected a square root \(rows, {n}\)"), (np.eye(20), "this motion does not")]:
        with pytest.raises(InputError, match=message):
            nd.exciting_motion(ARM, ["inertias"], earlier=wrong, **QUICK)


def test_a_floating_base_and_joints_that_are_not_named_stand_still():
    tree = on_a_base(Free())
    at = tree.random_configuration(3)
    motion = nd.exciting_motion(tree, ["inertias"], at=at, **QUICK)
    q, qd, _ = motion.at(np.linspace(0, 4, 50))
    np.testing.assert_allclose(q[:, :7], np.tile(at[:7], (50, 1)))
    assert not qd[:, :6].any()
    assert np.ptp(q[:, 7:], axis=0).min() > 0.1
    assert motion.limits.joints == ("joint2", "joint3")
    assert not motion.unidentifiable or "still" in str(motion)
    motion = nd.exciting_motion(nd.autotree(3, skew=1.0), ["inertias"], joints=["joint2"], **QUICK)
    q, qd, qdd = motion.at(np.linspace(0, 4, 50))
    assert not np.delete(np.hstack([qd, qdd]), [1, 4], axis=1).any()
    assert np.ptp(q[:, 1]) > 0.1
    assert motion.unidentifiable


def test_sensors_of_a_system_are_those_that_count():
    """A force-torque sensor in the base identifies more than the torques do."""
    tree = ARM
    base = {"type": "force_torque", "joints": "joint1", "sigma": 0.1}
    more = sensor_set(*torque_sensors(tree).to_dict()["measurements"], base)
    with_it = nd.exciting_motion(nd.System(tree, more), ["inertias"], **QUICK)
    assert len(with_it.parameters) > len(nd.exciting_motion(tree, ["inertias"], **QUICK).parameters)
    assert set(with_it.sigmas.values()) == {1.0, 0.1}


def test_it_is_shown(motion):
    shown = str(motion)
    assert shown.startswith("Exciting motion of autotree(2, 1, 0, 1)\n")
    assert "times smaller than after the best of these" in shown
    assert "Identified least" in shown
    assert repr(motion).startswith("ExcitingMotion(2 joints, 4 s, D ")


REFUSED = [
    ("panda", {}, WrongKindError, r"nd\.exciting_motion takes a robot .*load it first"),
    (ARM, {"criterion": "E"}, UnknownNameError, r"unknown criterion 'E'\. Known: D, A"),
    (ARM, {"criterion": 3}, UnknownNameError, r"unknown criterion '3'"),
    (ARM, {"duration": 0}, InputError, r"duration is 0 s"),
    (ARM, {"harmonics": 1}, InputError, r"needs 2 or more"),
    (ARM, {"rate": -1}, InputError, r"rate is -1"),
    (ARM, {"starts": 0}, InputError, r"starts is 0"),
    (ARM, {"parameters": ["masses"]}, UnknownNameError, r"unknown parameter 'masses'"),
    (ARM, {"joints": ["elbow"]}, UnknownModelNameError, r"unknown moving joint 'elbow'"),
    (ARM, {"joints": []}, InputError, r"no joint of one freedom moves"),
    (ARM, {"speed": -2}, InputError, r"limit of speed of joint 'joint1' is -2"),
    (ARM, {"at": [0.0]}, InputError, r"at has shape \(1,\), expected \(2,\)"),
    (
        ARM,
        {"torque": 1.0, "position": {"joint1": (-0.1, 0.1), "joint2": (-0.1, 0.1)}},
        InputError,
        r"no posture in which robot .* can rest: in the best of 500, joint 'joint1' needs .* of the 1 N m",
    ),
    (on_a_base(Spherical()), {"joints": ["joint1"]}, InputError, r"joint 'joint1' is spherical, with 3 freedoms"),
    (nd.tools.random_tree(1, seed=0, kinds=["free"]), {}, InputError, r"no joint of one freedom moves"),
    (ARM, {"contacts": {"link2": "flat"}}, InputError, r"contact 'link2' stands in no way called 'flat'"),
    (ARM, {"contacts": ["foot"]}, UnknownModelNameError, r"unknown frame 'foot'"),
    (ARM, {"contacts": ["link2"]}, InputError, r"leave no joint that moves independently"),
    (ARM, {"floor": 0.0}, InputError, r"whose `shapes` are known"),
    (ARM, {"apart": -1.0}, InputError, r"apart is -1"),
    (
        mechanisms.five_bar(),
        {"joints": ["l_crank"]},
        InputError,
        r"1 of the freedoms of l_rod, r_crank, r_rod open",
    ),
    (ARM.replace(joints=(Revolute(), ARM.joints[1])), {"parameters": ["gains"]}, InputError, r"Leave gains out"),
]


def test_what_cannot_be_done():
    for robot, options, error, message in REFUSED:
        with pytest.raises(error, match=message):
            nd.exciting_motion(robot, **(QUICK | options))


def test_loops_are_closed_and_better_than_by_random_motions():
    """Of a four-bar whose crank alone has a motor: what it carries follows, and what it needs is the crank's."""
    tree = mechanisms.four_bar()
    motion = nd.exciting_motion(tree, ["inertias"], 2.0, 2, joints=["crank"], starts=1, torque={"crank": 30.0})
    q, qd, qdd = motion.at(np.linspace(0, 2, 501))
    at = positions(tree, q.T)
    assert np.abs(gaps(at)).max() < 1e-9
    assert np.abs(np.einsum("rvn,nv->rn", gap_rate(at), qd)).max() < 1e-9
    assert motion.limits.joints == ("crank", "coupler", "rocker")
    tau = motion.torques(np.linspace(0, 2, 501))
    assert not tau[:, 1:].any()
    assert np.abs(tau[:, 0]).max() <= 30.0
    for k in (0, 100, 333):
        np.testing.assert_allclose(constrained_dynamics(tree, q[k], qd[k], tau[k])[0], qdd[k], atol=1e-7)
    assert motion.value > motion.of_random.max()
    assert set(motion.sigmas) == {"tau:crank"}


@pytest.mark.long
def test_a_foot_stands_and_the_base_follows():
    """Its last link stands flat: the base is moved by the joints in between. On a point it would tip over."""
    tree, t = on_a_base(Free()), np.linspace(0, 4, 101)
    at = tree.random_configuration(3)
    R, o = poses(tree, at)
    motion = nd.exciting_motion(tree, ["m:*", "mc:*"], at=at, contacts=["link3"], **QUICK, speed=2.0)
    q, _, _ = motion.at(t)
    moved = [poses(tree, each) for each in q]
    assert max(np.abs(places[2] - o[2]).max() for _, places in moved) < 1e-9
    assert max(np.abs(axes[2] - R[2]).max() for axes, _ in moved) < 1e-9
    assert np.ptp(q[:, :3], axis=0).max() > 0.1
    assert motion.limits.joints == ("joint2", "joint3")
    assert motion.unknown[0] == "whether contacts slip or tip over"
    assert not motion.torques(t)[:, :6].any()  # no motor holds the base
    with pytest.raises(InputError, match="leave 3 of the freedoms of joint1 open"):
        nd.exciting_motion(tree, ["m:*"], at=at, contacts={"link3": "point"}, **QUICK)

"""Mappings: units, axes and bases, against SciPy and Pinocchio; the draft of one from the names of columns."""

import json
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.cli.info import USUAL
from nori_dyn.errors import InputError, MappingError
from nori_dyn.logs.drafts.draft import draft
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.mapping.record import SampleRecord, column_named
from nori_dyn.logs.motion.differentiation import SavitzkyGolay
from nori_dyn.logs.reading import LogCounts
from nori_dyn.model.joints import Revolute
from nori_dyn.report.mapping_text import mapping_text
from tests import standing
from tests.logs import samples_in
from tests.noted import noted
from tests.robots import load
from tests.systems import ACCELERATIONS, WRENCHES, sensor_set
from tests.trees import on_a_free_base
from tests.unit.logs.test_reading import FOOT

ARM, BODY = nd.autotree(2), on_a_free_base(nd.autotree(1))
ID = nd.System(ARM, "inverse_dynamics")
MOTION = [{"of": "q:{joint}", "from": "q[{k}]"}, {"of": "qd:{joint}", "from": "qd[{k}]"}]
ACCELERATION = {"of": "qdd:{joint}", "from": "qdd[{k}]"}
FELT = sensor_set(
    ACCELERATIONS | {"sigma": 1.0},
    WRENCHES | {"links": "link2", "name": "cell"},
    WRENCHES | {"links": {"except": ["link2"]}, "value": 0},
)
COMPONENTS = ["fx", "fy", "fz", "mx", "my", "mz"]


def saved(path, **arrays):
    rng = np.random.default_rng(0)
    kept = {kind: rng.normal(size=(5, 2)) for kind in ("q", "qd", "qdd")} | arrays
    np.savez(path, **kept)
    return kept


def test_units_scales_offsets_and_the_order_of_joints(tmp_path):
    told = saved(tmp_path / "log.npz")
    turned = {"joints": ["joint2", "joint1"], "unit": "deg", "scale": -1, "offset": 0.5}
    columns = [
        MOTION[0] | turned,
        {"of": "qd:{joint}", "from": ["qd[0]", "qd[1]"], "unit": "rpm", "scale": [2.0, 3.0]},
        {"of": "qdd:joint1", "from": "qdd[1]", "unit": "deg/s2"},
        {"of": "qdd:joint2", "value": 0.25},
    ]
    log = samples_in(tmp_path / "log.npz", ID, mapping={"columns": columns})
    np.testing.assert_allclose(log.q, 0.5 - np.deg2rad(told["q"][:, ::-1]), rtol=1e-14)
    np.testing.assert_allclose(log.qd, told["qd"] * [2, 3] * 2 * np.pi / 60, rtol=1e-14)
    np.testing.assert_allclose(log.y, np.column_stack([np.deg2rad(told["qdd"][:, 1]), np.full(5, 0.25)]), rtol=1e-14)
    saved(tmp_path / "log.npz", tau=np.ones((5, 2)))
    counts = LogCounts()
    more = {"of": "tau:{joint}", "from": "tau[{k}]", "joints": ["joint1", "joint2"]}  # than the sensors take
    samples_in(tmp_path / "log.npz", ID, mapping={"columns": [*MOTION, ACCELERATION, more]}, counts=counts)
    assert counts.ignored == ("tau (2 columns)",)


def test_a_wrench_in_other_axes_is_that_of_pinocchio(tmp_path):
    pin = pytest.importorskip("pinocchio")
    system = nd.System(ARM, FELT)
    rng = np.random.default_rng(1)
    wrenches, rpy, xyz = rng.normal(size=(5, 6)), [0.3, -0.7, 1.1], [0.1, -0.2, 0.3]
    saved(tmp_path / "log.npz", ft=wrenches)
    cell = {"of": "cell", "from": "ft[{k}]", "components": COMPONENTS, "frame": {"rpy": rpy, "xyz": xyz}}
    log = samples_in(tmp_path / "log.npz", system, mapping={"columns": [*MOTION, ACCELERATION, cell]})
    M = pin.SE3(pin.rpy.rpyToMatrix(*rpy), np.array(xyz))
    for read, raw in zip(log.y[:, 2:], wrenches, strict=True):
        expected = M.act(pin.Force(raw[:3], raw[3:]))
        np.testing.assert_allclose(read, np.concatenate([expected.angular, expected.linear]), rtol=1e-12)


def test_the_pose_and_velocity_of_a_free_base(tmp_path):
    system = nd.System(BODY, "inverse_dynamics")
    rng, n, name = np.random.default_rng(2), 4, BODY.joint_names[0]
    rotation = Rotation.random(n, rng=rng)
    xyzw, position, velocity = rotation.as_quat(), rng.normal(size=(n, 3)), rng.normal(size=(n, 6))
    orientations = {"rpy": rotation.as_euler("xyz"), "wxyz": xyzw[:, [3, 0, 1, 2]], "xyzw": xyzw}
    world = np.column_stack([rotation.apply(velocity[:, :3]), rotation.apply(velocity[:, 3:])])
    velocities = {"body": velocity, "world": world, "mujoco": np.column_stack([velocity[:, :3], world[:, 3:]])}
    for given, axes in product(orientations, velocities):
        told = orientations[given]
        np.savez(tmp_path / "log.npz", p=position, R=told, v=velocities[axes], a=np.zeros((n, 6)))
        pose = [f"p[{k}]" for k in range(3)] + [f"R[{k}]" for k in range(told.shape[1])]
        columns = [
            {"of": f"q:{name}", "from": pose, "orientation": given},
            {"of": f"qd:{name}", "from": "v[{k}]", "axes": axes},
            {"of": f"qdd:{name}", "from": "a[{k}]"},
        ]
        log = samples_in(tmp_path / "log.npz", system, mapping={"columns": columns})
        np.testing.assert_allclose(log.q[:, :3], position)
        assert np.abs((Rotation.from_quat(log.q[:, 3:]) * rotation.inv()).magnitude()).max() < 1e-12, given
        np.testing.assert_allclose(log.qd, velocity, atol=1e-12, err_msg=axes)
        columns[0] |= {"from": pose[3:]}
        alone = samples_in(tmp_path / "log.npz", system, mapping={"columns": columns})
        np.testing.assert_array_equal(alone.q, np.column_stack([np.zeros((n, 3)), log.q[:, 3:]]))


def test_a_gyroscope_that_sits_askew_says_how_a_free_base_turns(tmp_path):
    system = nd.System(BODY, "inverse_dynamics")
    name, rng, rpy = BODY.joint_names[0], np.random.default_rng(4), [0.3, -0.7, 1.1]
    felt = rng.normal(size=(9, 3))
    np.savez(tmp_path / "log.npz", t=0.01 * np.arange(9), gyro=np.degrees(felt), a=np.zeros((9, 6)))
    gyroscope = {"of": f"qd:{name}", "from": "gyro[{k}]", "components": ["wx", "wy", "wz"], "unit": "deg/s"}
    columns = [
        gyroscope | {"frame": {"rpy": rpy}},
        *({"of": f"qd:{name}[{k}]", "value": 0.5} for k in (3, 4, 5)),
        {"of": f"q:{name}", "value": [0, 0, 0, 0, 0, 0, 1]},
        {"of": f"qdd:{name}", "from": "a[{k}]"},
    ]
    log = samples_in(tmp_path / "log.npz", system, mapping={"columns": columns})
    np.testing.assert_allclose(log.qd[:, :3], Rotation.from_euler("xyz", rpy).apply(felt), atol=1e-12)
    np.testing.assert_array_equal(log.qd[:, 3:], 0.5)
    with pytest.raises(InputError, match=r"3 of 6 .*\.ax'.* given by `value` does not tell how a base accelerates"):
        samples_in(tmp_path / "log.npz", system, SavitzkyGolay(5), mapping={"columns": columns[:-1]})
    columns[0] = gyroscope | {"frame": {"rpy": rpy, "xyz": [0, 0, 1]}}
    with pytest.raises(MappingError, match="`xyz` of a frame applies to forces and couples"):
        samples_in(tmp_path / "log.npz", system, mapping={"columns": columns})


WRONG = {
    "`scale` of 'q:{joint}' has 3 numbers, expected one or 2.": {"from": "q[{k}]", "scale": [1, 2, 3]},
    "`above` is for contacts, and 'q:{joint}' is none.": {"from": "q[{k}]", "above": 1.0},
    "`orientation` is for q of free and spherical joints": {"from": "q[{k}]", "orientation": "rpy"},
}


def test_what_does_not_fit_is_told_by_entry(tmp_path):
    """More of it stands in tests/data/mistakes.md."""
    saved(tmp_path / "log.npz")
    for said, entry in WRONG.items():
        columns = [{"of": "q:{joint}"} | entry, MOTION[1], ACCELERATION]
        with pytest.raises(MappingError) as caught:
            samples_in(tmp_path / "log.npz", ID, mapping={"columns": columns})
        assert said in str(caught.value)


def test_contacts_are_closed_above_a_threshold(tmp_path):
    systems = {(): nd.System(nd.autotree(1), FOOT.in_contact())}
    np.savez(tmp_path / "log.npz", q=np.zeros(3), qd=np.zeros(3), qdd=np.zeros(3), force=[19.0, 20.0, -5.0])
    columns = [{"of": f"{kind}:joint1", "from": kind} for kind in ("q", "qd", "qdd")]
    columns.append({"of": "contact:tip", "from": "force", "above": 20})
    log = samples_in(tmp_path / "log.npz", systems, contacts=("tip",), mapping={"columns": columns})
    assert log.contacts.tolist() == [[0.0], [0.0], [0.0]]
    for number, more in ((1, {"above": 19.5}), (2, {"above": 4, "scale": -1})):
        columns[-1] |= more
        with pytest.raises(
            nd.errors.UnplannedStateError, match=f"sample {number}: the contact state 'tip' is not plan"
        ):
            samples_in(tmp_path / "log.npz", systems, contacts=("tip",), mapping={"columns": columns})


N = 50


def arm(*names):
    """An arm whose joints are called so."""
    tree = nd.autotree(len(names))
    return tree.replace(joint_names=names)


def drafted(path, tree, sensors=None):
    system = nd.System(tree, sensors or nd.SensorSet.from_dict(USUAL))
    with open_log(path) as source:
        found = draft(source, SampleRecord.of({(): system}))
    text = mapping_text(found, path)
    assert yaml.safe_load(text) == found.data()  # what is written is what was found
    return found, text


def entries(found):
    return {str(guess.entry["of"]): guess.entry for guess in found.guesses}


def test_columns_that_are_named_after_joints(tmp_path):
    tree = arm("hip", "knee")
    rng = np.random.default_rng(0)
    arrays = {f"{joint}_{kind}": rng.normal(size=N) for joint in ("knee", "hip") for kind in ("pos", "vel", "torque")}
    np.savez(tmp_path / "log.npz", time=0.01 * np.arange(N), note=np.zeros(N), **arrays)
    found, text = drafted(tmp_path / "log.npz", tree)
    assert entries(found)["q:{joint}"] == {"of": "q:{joint}", "from": "{joint}_pos"}
    assert entries(found)["tau:{joint}"]["from"] == "{joint}_torque"
    assert found.left_over == ("note",)
    assert found.lacking == ("qdd (2 columns)",)
    assert "# named after the joints" in " ".join(text.split("  "))
    columns = [*found.data()["columns"], {"of": "qdd:{joint}", "joints": ["hip", "knee"], "value": 0.0}]
    log = samples_in(tmp_path / "log.npz", nd.System(tree, nd.SensorSet.from_dict(USUAL)), mapping={"columns": columns})
    np.testing.assert_array_equal(log.q, np.column_stack([arrays["hip_pos"], arrays["knee_pos"]]))


def test_cosines_and_sines_of_joints_are_positions(tmp_path):
    """As learning has angles; numbers that are none are not taken."""
    tree, q = arm("hip", "knee"), np.random.default_rng(0).uniform(-1, 1, size=(N, 2))
    pairs = np.stack([np.cos(q), np.sin(q)], axis=2).reshape(N, 4)
    np.savez(tmp_path / "log.npz", time=0.01 * np.arange(N), q_js=pairs, qd=q, qdd=q, tau=q)
    found, text = drafted(tmp_path / "log.npz", tree)
    assert "cosine and sine of each of 2 joints, in turn" in " ".join(text.split())
    log = samples_in(
        tmp_path / "log.npz",
        nd.System(tree, nd.SensorSet.from_dict(USUAL)),
        mapping={"columns": found.data()["columns"]},
    )
    np.testing.assert_allclose(log.q, q, atol=1e-12)
    np.savez(tmp_path / "log.npz", time=0.01 * np.arange(N), q_js=2 * pairs, qd=q, qdd=q, tau=q)
    assert "q:{joint}" not in entries(drafted(tmp_path / "log.npz", tree)[0])


def test_what_was_measured_is_taken_and_not_what_was_commanded_or_computed(tmp_path):
    rng = np.random.default_rng(0)
    kinds = ("pos_filt", "pos_meas", "vel_meas", "tau_con", "tau_fric", "tau_meas")
    np.savez(
        tmp_path / "log.npz", time=0.01 * np.arange(N), **{f"{x}{k}": rng.normal(size=N) for x in kinds for k in (1, 2)}
    )
    found, _ = drafted(tmp_path / "log.npz", arm("hip", "knee"))
    taken = [["pos_meas1", "pos_meas2"], ["vel_meas1", "vel_meas2"], ["tau_meas1", "tau_meas2"]]
    assert [guess.entry["from"] for guess in found.guesses] == taken


@pytest.mark.parametrize(
    ("limits", "most", "unit"), [(3.0, 7.0, "deg"), (3.0, 5.0, None), (np.inf, 20.0, None), (np.inf, 90.0, "deg")]
)
def test_a_joint_without_limits_may_turn_more_than_once(tmp_path, limits, most, unit):
    tree = nd.autotree(2).replace(joints=tuple(Revolute(limits=(-limits, limits)) for _ in range(2)))
    np.savez(tmp_path / "log.npz", q=np.linspace([0.0, 0.0], [most, -most], N))
    assert entries(drafted(tmp_path / "log.npz", tree)[0])["q:{joint}"].get("unit") == unit


def test_names_that_end_as_those_of_joints_are_theirs(tmp_path):
    np.savez(tmp_path / "log.npz", **{f"position:fer_joint{k}": np.ones(N) for k in (2, 1)})
    found, text = drafted(tmp_path / "log.npz", arm("panda_joint1", "panda_joint2"))
    assert entries(found)["q:{joint}"]["from"] == ["position:fer_joint1", "position:fer_joint2"]
    assert "whose names in the robot differ a little" in text


def test_degrees_and_milliseconds_are_seen_and_what_was_wanted_is_not_taken_for_what_was_measured(tmp_path):
    tree = arm("hip", "knee")
    angle = np.linspace([-80, 0], [80, 120], N)
    np.savez(tmp_path / "log.npz", q=angle, dq=np.ones((N, 2)), t=10.0 * np.arange(N))
    found, _ = drafted(tmp_path / "log.npz", tree)
    assert entries(found)["q:{joint}"]["unit"] == "deg"
    assert entries(found)["qd:{joint}"]["unit"] == "deg/s"
    assert dict(found.streams[""][0]) == {"unit": "ms"}
    arrays = {"q_d": np.ones((N, 2)), "q": np.zeros((N, 2)), "dq_des": np.ones((N, 2)), "dq": np.zeros((N, 2))}
    np.savez(tmp_path / "log.npz", **arrays)
    found, _ = drafted(tmp_path / "log.npz", tree)
    assert {str(entry["from"]) for entry in entries(found).values()} == {"q[{k}]", "dq[{k}]"}


@pytest.mark.parametrize(
    ("q", "qd", "unit"),
    [
        ("theta{k}", "dtheta{k}", None),
        ("Axis {k} ActPos [°]", "Axis {k} ActVelo [°/s]", "°"),
        ("J{k} angle (deg)", "J{k} speed (deg/s)", "deg"),
    ],
)
def test_what_controllers_call_columns(tmp_path, q, qd, unit):
    names = {"q": q, "qd": qd, "tau": "eff_{k}"}
    arrays = {name.format(k=k): np.linspace(0, k, N) for name in names.values() for k in (1, 2)}
    np.savez(tmp_path / "log.npz", **arrays)
    found = entries(drafted(tmp_path / "log.npz", arm("hip", "knee"))[0])
    for kind, name in names.items():
        assert found[f"{kind}:{{joint}}"]["from"] == [name.format(k=k) for k in (1, 2)]
    assert found["q:{joint}"].get("unit") == unit


@pytest.mark.parametrize("dt", [0.005, 0.4, 2.0])
@pytest.mark.parametrize("name", ["header.stamp.{}sec", "stamp_{}secs"])
def test_times_may_be_seconds_and_nanoseconds(tmp_path, dt, name):
    """As stamps of ROS are in tables."""
    t = 1.7e9 + 0.3 + dt * np.arange(N)
    whole, rest = np.floor(t), np.round(1e9 * (t - np.floor(t)))
    clock = name.format("nano" if "header" in name else "n")
    np.savez(tmp_path / "log.npz", **{name.format(""): whole, clock: rest, "q": np.ones((N, 2)), "qd": np.ones((N, 2))})
    found, _ = drafted(tmp_path / "log.npz", ARM)
    assert dict(found.streams[""][0]) == {"clock": clock, "unit": "ns"}
    assert not found.left_over
    mapping = {
        "columns": [*MOTION, {"of": "qdd:{joint}", "value": 0.0}],
        "streams": {"": {"clock": clock, "unit": "ns"}},
    }
    np.testing.assert_allclose(samples_in(tmp_path / "log.npz", ID, mapping=mapping).t, t, rtol=0, atol=1e-6)


def test_limbs_and_currents(tmp_path):
    tree = arm("l_hip", "l_knee", "r_hip", "r_knee")
    legs = {"right_leg_q": np.zeros((N, 2)), "left_leg_q": np.ones((N, 2))}
    np.savez(tmp_path / "log.npz", **legs, motor_current=np.ones((N, 4)))
    found, text = drafted(tmp_path / "log.npz", tree)
    told = [guess.entry for guess in found.guesses if guess.entry["of"] == "q:{joint}"]
    legs = {entry["from"]: entry.get("joints") for entry in told}
    assert legs == {"right_leg_q[{k}]": ["r_hip", "r_knee"], "left_leg_q[{k}]": ["l_hip", "l_knee"]}
    assert entries(found)["tau:{joint}"]["scale"] == [1.0] * 4
    assert "N m per A" in text


def test_wrenches_and_inertial_units_find_their_sensors(tmp_path):
    tree = arm("hip", "knee")
    accelerometer = {"type": "accelerometer", "links": "link1", "name": "imu", "sigma": 0.1}
    wrench = WRENCHES | {"links": "link2", "name": "foot_ft"}
    sensors = sensor_set(ACCELERATIONS | {"sigma": 1.0}, wrench, accelerometer)
    felt = np.random.default_rng(1).normal(size=(N, 6))
    np.savez(tmp_path / "log.npz", foot_ft=felt, q=np.zeros((N, 2)), qd=np.zeros((N, 2)))
    found, _ = drafted(tmp_path / "log.npz", tree, sensors)
    entry = entries(found)["foot_ft"]
    assert entry["components"] == ["fx", "fy", "fz", "mx", "my", "mz"]
    assert entry["from"] == [f"foot_ft[{k}]" for k in range(6)]


FORCES, MOMENTS = ["fx", "fy", "fz"], ["mx", "my", "mz"]
WHOLE = [([*MOMENTS, *FORCES], None)]
NAMED_WRENCHES = (  # columns of moments, of forces, and what is guessed of each
    ("T{a}", "F{a}", WHOLE),
    ("M{a} [N m]", "F{a} [N]", WHOLE),
    ("T{a} (Nmm)", "F{a} (N)", [(MOMENTS, "Nmm"), (FORCES, None)]),
    ("ft_sensor.m_{a}", "ft_sensor.f_{a}", WHOLE),
    ("eeTorque{A}", "eeForce{A}", WHOLE),
    ("/wrist/wrench.torque.{a}", "/wrist/wrench.force.{a}", WHOLE),
    ("mag_{a}", "force_{a}", [(FORCES, None)]),
    ("t{a}", "com_{a}", []),  # positions, perhaps
    ("T{a}_des", "F{a}_des", []),
)


def test_columns_of_forces_and_moments_find_their_readings(tmp_path):
    sensors = sensor_set(ACCELERATIONS | {"sigma": 1.0}, WRENCHES | {"links": "link2"})
    for moment, force, expected in NAMED_WRENCHES:
        columns = {
            f"{letter}{a}": pattern.format(a=a, A=a.upper())
            for letter, pattern in (("f", force), ("m", moment))
            for a in "xyz"
        }
        np.savez(tmp_path / "log.npz", t=0.01 * np.arange(N), **dict.fromkeys(columns.values(), np.full(N, 5.0)))
        found, _ = drafted(tmp_path / "log.npz", arm("hip", "knee"), sensors)
        with noted((moment, force)):
            told = [guess.entry for guess in found.guesses]
            assert [(entry["components"], entry.get("unit")) for entry in told] == expected
            for entry in told:
                assert entry["of"] == "fx:link2"
                assert entry["from"] == [columns[part] for part in entry["components"]]


def test_messages_of_inertial_units_and_of_a_pose(tmp_path):
    units = ({"type": "accelerometer", "links": f"link{k}", "name": f"imu_{k}", "sigma": 0.1} for k in (1, 2))
    felt = {"imu_2": np.array([0, 0, 9.8]), "imu_1": np.array([0, 0.6, 0.8])}
    columns = {name: [f"/{name}/data.linear_acceleration.{a}" for a in "xyz"] for name in felt}
    pose = [f"/odom.position.{a}" for a in "xyz"] + [f"/odom.orientation.{a}" for a in "xyzw"]
    arrays = {c: np.full(N, x) for name, own in columns.items() for c, x in zip(own, felt[name], strict=True)}
    np.savez(tmp_path / "log.npz", **arrays, **dict.fromkeys(pose, np.full(N, 0.5)))
    found, _ = drafted(tmp_path / "log.npz", on_a_free_base(ARM), sensor_set(ACCELERATIONS, WRENCHES, *units))
    assert entries(found)["q:joint1"]["from"] == pose
    for name, own in columns.items():
        assert entries(found)[name]["from"] == own
        assert entries(found)[name].get("unit") == ("g" if name == "imu_1" else None)
    only = sensor_set(
        ACCELERATIONS, WRENCHES, {"type": "accelerometer", "links": "link2", "name": "wrist", "sigma": 0.1}
    )
    found, _ = drafted(tmp_path / "log.npz", ARM, only)
    assert entries(found)["wrist"]["from"] == columns["imu_2"]  # the first of the log: there is but one sensor


GYRO, ACC = ("gyro:box", ["wx", "wy", "wz"]), ("acc:box", ["ax", "ay", "az"])
INERTIAL = {
    "lowstate.imu_state.gyroscope[{k}]": (GYRO, {}),  # Unitree's messages
    "lowstate.imu_state.accelerometer[{k}]": (ACC, {}),
    "/imu/data.angular_velocity.{a}": (GYRO, {}),  # sensor_msgs/Imu
    "/imu/data.linear_acceleration.{a}": (ACC, {}),
    "imuOmega[{k}]": (GYRO, {}),  # YARP's
    "imuAcc[{k}]": (ACC, {}),
    "imu_ang_vel[{k}]": (GYRO, {}),
    "imu_gyro_{a} [deg/s]": (GYRO, {"unit": "deg/s"}),
    "gyro{A}_dps": (GYRO, {"unit": "deg/s"}),
    "acc_{a} (g)": (ACC, {"unit": "g"}),
    "angular_acceleration_{a}": (None, {}),
    "Base A{a}": (ACC, {}),
    "w{a}": (GYRO, {}),
    "imu_g{A}": (GYRO, {}),
    "com_{a}": (None, {}),
    "gyro_des_{a}": (None, {}),
    "imu.angular_velocity_covariance[{k}]": (None, {}),
}


def test_columns_of_inertial_units_find_their_readings(tmp_path):
    tree = standing.robot()
    sensors = standing.sensors()
    for pattern, (target, unit) in INERTIAL.items():
        n = 9 if "covariance" in pattern else 3
        columns = [pattern.format(k=k, a="xyz"[k % 3], A="XYZ"[k % 3]) for k in range(n)]
        np.savez(tmp_path / "log.npz", t=0.01 * np.arange(N), **dict.fromkeys(columns, np.full(N, 5.0)))
        found, _ = drafted(tmp_path / "log.npz", tree, sensors)
        with noted(pattern):
            assert not any("root" in name for name in found.lacking)  # the base is what is estimated
            if target is None:
                assert found.guesses == ()
                continue
            of, parts = target
            assert entries(found) == {of: {"of": of, "from": columns, "components": parts} | unit}


def test_messages_of_a_quadruped_of_unitree(tmp_path):
    """Twenty motors, of which twelve are there, in another order of legs than that of the URDF."""
    tree = load("go2", "floating")
    fields = {f"motor_state[{k}].{kind}": np.full(N, 0.1 * k) for k in range(20) for kind in ("q", "dq", "tau_est")}
    np.savez(tmp_path / "log.npz", **fields)
    found, text = drafted(tmp_path / "log.npz", tree)
    own = entries(found)
    assert {of: own[of]["from"] for of in ("q:{joint}", "qd:{joint}", "tau:{joint}")} == {
        "q:{joint}": "motor_state[{k}].q",
        "qd:{joint}": "motor_state[{k}].dq",
        "tau:{joint}": "motor_state[{k}].tau_est",
    }
    legs = [f"{leg}_{part}_joint" for leg in ("FR", "FL", "RR", "RL") for part in ("hip", "thigh", "calf")]
    assert own["q:{joint}"]["joints"] == own["tau:{joint}"]["joints"] == legs
    assert "Unitree's motors" in text


def test_vectors_of_an_inertial_unit_are_no_motion_of_three_joints(tmp_path):
    arrays = {"imu_acc": np.full((N, 3), 5.0), "imu_gyro_vel": np.ones((N, 3)), "q": np.zeros((N, 3))}
    np.savez(tmp_path / "log.npz", **arrays)
    imu = {"type": "accelerometer", "links": "link3", "sigma": 0.1}
    found, _ = drafted(tmp_path / "log.npz", nd.autotree(3), sensor_set(ACCELERATIONS, WRENCHES, imu))
    assert {of: entry["from"] for of, entry in entries(found).items()} == {
        "q:{joint}": "q[{k}]",
        "acc:link3": [f"imu_acc[{k}]" for k in range(3)],
    }


def test_a_column_of_the_only_stream_that_has_it_may_be_called_by_its_last_name():
    one, other = (SimpleNamespace(name=name) for name in ("arm", "leg"))
    columns = {"arm.q[0]": one, "arm.t": one, "leg.t": other}
    assert column_named(columns, ("q[0]", "t")) == "arm.q[0]"
    assert column_named(columns, ("t",)) is None


def test_a_table_without_names_tells_its_ranges(tmp_path):
    np.savetxt(tmp_path / "log.csv", np.linspace([0, -1], [5, 1], N), delimiter=",")
    found, text = drafted(tmp_path / "log.csv", arm("hip"))
    assert found.guesses == ()
    assert "column[1]: -1 to 1" in text


def test_columns_that_are_called_as_joints_and_no_more_are_asked_about(tmp_path):
    arrays = {f"{kind}{joint}": np.full(N, 0.1) for kind in ("", "d_") for joint in ("hip", "knee")}
    np.savez(tmp_path / "log.npz", computational_time=np.tile([3.0, 2.0], N // 2), **arrays)
    found, _ = drafted(tmp_path / "log.npz", arm("hip", "knee"))
    assert [(guess.entry["of"], guess.entry["from"]) for guess in found.guesses] == [
        ("q:{joint}", "{joint}"),
        ("qd:{joint}", "d_{joint}"),
    ]
    assert [guess.is_doubtful for guess in found.guesses] == [True, False]
    assert not found.streams  # that time does not go on
    np.savez(tmp_path / "log.npz", **arrays, **{f"{joint}_pos": np.zeros(N) for joint in ("hip", "knee")})
    assert entries(drafted(tmp_path / "log.npz", arm("hip", "knee"))[0])["q:{joint}"]["from"] == "{joint}_pos"


FORCE = np.where(np.arange(N) % 2, 300.0, 2.0)
FORCE[0] = 1500.0  # an impact


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (
            {"FL_force": FORCE, "des_FL_force": FORCE, "RR_force": -FORCE},
            {"FL_foot": {"from": "FL_force", "above": 60.0}},
        ),
        (
            {f"left_foot.wrench.force.{x}": -FORCE for x in "xyz"} | {"left_hand.force.z": FORCE},
            {"l_foot": {"from": "left_foot.wrench.force.z", "scale": -1, "above": 60.0}},
        ),
        (
            {f"left_foot_force.wrench.{part}.{x}": FORCE for part in ("force", "torque") for x in "xyz"},
            {"l_foot": {"from": "left_foot_force.wrench.force.z", "above": 60.0}},
        ),
        (
            {"foot_contact": np.stack([FORCE > 10, FORCE < 10], axis=1).astype(float)},
            {"l_sole": {"from": "foot_contact[0]"}, "r_sole": {"from": "foot_contact[1]"}},
        ),
    ],
)
def test_what_says_which_contacts_are_closed_is_found(tmp_path, columns, expected):
    np.savez(tmp_path / "log.npz", q=np.zeros(N), **columns)
    sensors = nd.System(nd.autotree(1), nd.SensorSet.from_dict(USUAL))
    record = SampleRecord.of({(): sensors}, tuple(expected) if len(expected) > 1 else (*expected, "RL"))
    with open_log(tmp_path / "log.npz") as source:
        found = draft(source, record)
    guesses = [guess for guess in found.guesses if "contact" in guess.entry["of"]]
    assert [guess.entry for guess in guesses] == [{"of": f"contact:{name}", **own} for name, own in expected.items()]
    assert all(guess.is_doubtful for guess in guesses)


@pytest.mark.parametrize(("name", "unit"), [("timestamp_ms", "ms"), ("time_us", "us")])
def test_times_with_a_repeat_are_a_clock_in_the_unit_of_their_name(tmp_path, name, unit):
    t = np.arange(N) * 200
    t[4] = t[3]
    np.savetxt(tmp_path / "log.csv", np.column_stack([t, np.zeros(N)]), delimiter=",", header=f"{name},q", comments="")
    found, _ = drafted(tmp_path / "log.csv", arm("hip"))
    ((settings, _),) = found.streams.values()
    assert settings == {"clock": name, "unit": unit}


@pytest.mark.parametrize(
    ("pattern", "of"),
    [
        ("q_dot_filtered[{k}]", "qd"),
        ("qDDot[{k}]", "qdd"),
        ("jointacttorque[{k}]", "tau"),
        ("Joint{n}_Force", "tau"),
        ("curr_data.Joint_{n}", "tau"),
        ("Joint_{n}", "q"),
        ("force{n}", None),
    ],
)
def test_what_words_of_columns_say(tmp_path, pattern, of):
    columns = {pattern.format(k=k, n=k + 1): np.linspace(0, 0.1, N) for k in range(6)}
    np.savez(tmp_path / "log.npz", t=0.01 * np.arange(N), **columns)
    found, _ = drafted(tmp_path / "log.npz", arm(*"abcdef"))
    assert [guess.entry["of"] for guess in found.guesses] == ([] if of is None else [f"{of}:{{joint}}"])
    assert all(guess.is_doubtful for guess in found.guesses)


def test_columns_that_are_as_likely_are_told(tmp_path):
    arrays = {f"{run}.{kind}": np.zeros((N, 2)) for run in ("first", "second") for kind in ("pos", "vel_meas", "vel")}
    np.savez(tmp_path / "log.npz", **arrays)
    found, _ = drafted(tmp_path / "log.npz", arm("hip", "knee"))
    told = {guess.entry["from"]: guess.why for guess in found.guesses}
    assert "or from second.pos[{k}], which is as likely" in told["first.pos[{k}]"]
    assert "or from second.vel_meas[{k}]" in told["first.vel_meas[{k}]"]


@pytest.mark.parametrize("name", ["q[{}]", "q{}", "position_{}"])
@pytest.mark.parametrize("first", [0, 1])
def test_numbered_columns_need_no_mapping(tmp_path, name, first):
    if "[" in name and first:
        return
    numbers = np.random.default_rng(0).normal(size=(N, 2))
    columns = {name.format(k + first): numbers[:, k] for k in range(2)}
    np.savez(tmp_path / "log.npz", **columns, **{f"dq{k}": numbers[:, k] for k in (0, 1)}, qdd=numbers)
    np.testing.assert_array_equal(samples_in(tmp_path / "log.npz", ID).q, numbers)


def swung(n, seconds=4.0, rate=250.0):
    """Times, positions, velocities, accelerations and torques of n joints that swing, each in its way."""
    t = np.arange(0, seconds, 1 / rate)
    pace = 1 + 0.7 * np.arange(n)
    phase = np.multiply.outer(t, pace) + np.arange(n)
    return t, 0.5 * np.sin(phase), 0.5 * pace * np.cos(phase), -0.5 * pace**2 * np.sin(phase), np.cos(phase) ** 3


@pytest.mark.parametrize("is_by_joint", [False, True], ids=["by quantity", "by joint"])
@pytest.mark.parametrize("unit", [None, "s", "ms"])
@pytest.mark.parametrize("has_accelerations", [False, True])
def test_a_table_without_names_is_told_by_how_its_columns_move(tmp_path, is_by_joint, unit, has_accelerations):
    names = ("hip", "knee", "ankle")
    t, q, qd, qdd, tau = swung(3)
    noise = np.random.default_rng(0).normal(scale=1e-3, size=qd.shape)
    told = {"q": q, "qd": qd + noise, **({"qdd": qdd} if has_accelerations else {}), "tau": tau}
    whole = np.stack([*told.values()], axis=2 if is_by_joint else 1).reshape(len(t), -1)
    times = {None: [], "s": [100 + t], "ms": [1e3 * t]}[unit]
    np.savetxt(tmp_path / "log.csv", np.column_stack([*times, whole]), delimiter=",")
    found, _ = drafted(tmp_path / "log.csv", arm(*names))
    table = np.loadtxt(tmp_path / "log.csv", delimiter=",")
    for kind, numbers in told.items():
        guess = next(guess for guess in found.guesses if guess.entry["of"] == f"{kind}:{{joint}}")
        assert guess.is_doubtful
        places = [int(column[7:-1]) for column in guess.columns]
        np.testing.assert_allclose(table[:, places], numbers, atol=1e-12)
    assert found.rate == (250.0 if unit is None else None)
    settings = {"s": {"clock": "column[0]"}, "ms": {"clock": "column[0]", "unit": "ms"}}.get(unit)
    assert found.data().get("streams", {}).get("") == settings
    assert found.left_over == ()


def test_columns_that_do_not_move_as_others_say_are_left_open(tmp_path):
    rng = np.random.default_rng(0)
    for name, table in (("shuffled", rng.permutation(np.hstack(swung(3)[1:]))), ("noise", rng.normal(size=(300, 9)))):
        np.savetxt(tmp_path / f"{name}.csv", table, delimiter=",")
        found, _ = drafted(tmp_path / f"{name}.csv", arm("hip", "knee", "ankle"))
        assert (found.guesses, found.rate) == ((), None)


def test_a_rate_says_how_far_samples_without_times_are_apart(tmp_path):
    _, q, qd, *_ = swung(2)
    np.savez(tmp_path / "log.npz", q=q, qd=qd)
    found, _ = drafted(tmp_path / "log.npz", arm("hip", "knee"))
    assert found.data()["clock"] == {"rate": 250.0}
    mapping = {"columns": MOTION, "clock": {"rate": 250.0}}
    t = nd.estimate(nd.read_log(tmp_path / "log.npz", mapping), nd.plan(ID, outputs=["tau"]), backend="numpy").t
    np.testing.assert_allclose(t, np.arange(len(q)) / 250, atol=1e-12)


def test_columns_of_some_joints_are_of_those_that_end_in_their_numbers(tmp_path):
    arrays = {"q2": 0.1, "dq2": 0.2, "q2_tau": 0.3, "pos3": 0.4}
    np.savez(tmp_path / "log.npz", t=0.01 * np.arange(N), **{name: np.full(N, x) for name, x in arrays.items()})
    found, _ = drafted(tmp_path / "log.npz", arm("joint1", "joint2", "joint3"))
    given = {name: guess for guess in found.guesses for name in guess.gives}
    assert {name: guess.columns for name, guess in given.items()} == {
        "q:joint2": ("q2",),
        "q:joint3": ("pos3",),
        "qd:joint2": ("dq2",),
        "tau:joint2": ("q2_tau",),
    }
    assert all(guess.is_doubtful for guess in found.guesses)
    np.savez(tmp_path / "log.npz", q=np.zeros((N, 3)), pos2=np.ones(N))  # where all are numbered, these come first
    found, _ = drafted(tmp_path / "log.npz", arm("joint1", "joint2", "joint3"))
    assert entries(found)["q:{joint}"]["from"] == "q[{k}]"


@pytest.mark.parametrize(
    ("said", "has_velocities", "rate"),
    [({"fps": 251.0}, True, 251), ({"fps": 30}, True, 250), ({"dt": 0.004}, False, 250), ({"dt": 2.0}, False, None)],
)
def test_a_number_of_the_file_says_the_rate_unless_the_motion_contradicts_it(tmp_path, said, has_velocities, rate):
    _, q, qd, *_ = swung(2)
    arrays = {"q": q, **({"qd": qd} if has_velocities else {})}
    np.savez(tmp_path / "log.npz", **arrays, **said)
    (tmp_path / "log.json").write_text(json.dumps({**{name: x.tolist() for name, x in arrays.items()}, **said}))
    for name in ("log.npz", "log.json"):
        found, _ = drafted(tmp_path / name, arm("hip", "knee"))
        assert found.rate == rate


def test_arrays_of_legged_robots_find_their_quantities(tmp_path):
    """As loggers of Solo, of MIT's Cheetah and of UMich's contact data set name them."""
    of = {"q": 0.1, "qd": 0.2, "tau": 0.3}
    names = (
        {"q_mes": "q", "v_mes": "qd", "torquesFromCurrentMeasurment": "tau", "mocapVelocity": ""},
        {
            "leg_control_data.q": "q",
            "leg_control_data.qd": "qd",
            "leg_control_data.tau_est": "tau",
            "command.q_des": "",
        },
        {"q": "q", "qd": "qd", "tau_est": "tau", "v": ""},
    )
    for columns in names:
        arrays = {name: np.full((N, 3 if "mocap" in name else 4), of.get(kind, 0)) for name, kind in columns.items()}
        np.savez(tmp_path / "log.npz", tstamps=0.01 * np.arange(N), **arrays)
        found, _ = drafted(tmp_path / "log.npz", arm("a", "b", "c", "d"))
        expected = [(f"{kind}:{{joint}}", f"{name}[{{k}}]") for name, kind in columns.items() if kind]
        with noted(columns):
            assert [(guess.entry["of"], guess.entry["from"]) for guess in found.guesses] == expected
            assert not any("as likely" in guess.why for guess in found.guesses)

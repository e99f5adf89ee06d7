"""Sensors that a model file describes: those of iCub against iDynTree's loader, those of MJCF against MuJoCo's."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.descriptions.model_sensors import counted, roll_pitch_yaw
from nori_dyn.descriptions.robots import model_sensors
from nori_dyn.descriptions.urdf_document import read_urdf
from nori_dyn.descriptions.urdf_sensors import sensor_joints
from nori_dyn.descriptions.urdf_shapes import urdf_shapes
from nori_dyn.errors import FileFormatError, SensorConfigError, UnknownSensorNameError
from nori_dyn.io import xml_file
from nori_dyn.measurements.frame_reading import Pose
from nori_dyn.system.builder import System
from tests.oracles import newton_euler
from tests.peers import idyn, mujoco
from tests.robots import ROBOTS, load, mujoco_model, mujoco_state
from tests.tolerances import PEER, RECURSION, SOLVED, assert_close

ICUB = ROBOTS["iCubGenova04"]


@lru_cache(maxsize=8)
def loader(path: str) -> idyn.ModelLoader:
    """iDynTree's loader, which owns the model and the sensors."""
    found = idyn.ModelLoader()
    assert found.loadModelFromFile(path)
    return found


def pose_of(transform: idyn.Transform) -> tuple[np.ndarray, np.ndarray]:
    return transform.getRotation().toNumPy(), transform.getPosition().toNumPy()


def force_torque_of(theirs, model: idyn.Model) -> tuple[np.ndarray, np.ndarray]:
    """The pose of a sensor in its child link, as iDynTree has it."""
    transform = idyn.Transform()
    assert theirs.getLinkSensorTransform(model.getLinkIndex(theirs.getSecondLinkName()), transform)
    return pose_of(transform)


def reads_of(system: System, q: np.ndarray, qd: np.ndarray, qdd: np.ndarray) -> tuple[np.ndarray, Any]:
    """What the sensors read of a motion without loads, and the motion."""
    truth = newton_euler(system.tree, q, qd, qdd, np.zeros((system.tree.n_links, 6)))
    return system.D(q) @ truth.d(system) + system.b(q, qd, np.zeros(system.ny)), truth


def with_base(tree, model, tmp_path) -> System:
    """A robot with its own sensors and the base as state, gyroscopes among them."""
    path = tmp_path / "own.yaml"
    path.write_text("{name: own, from_model: true, measurements: [], memory: {base: {of: base}}}")
    return System(tree, nd.load_sensors(path, model, tree))


def turns_of(system: System, q: np.ndarray, qd: np.ndarray) -> dict[str, np.ndarray]:
    """What the gyroscopes read of a motion, by their names."""
    d = np.zeros(system.shape[1])
    d[next(v.slice for v in system.variables if v.name == "base:angular_velocity")] = qd[:3]
    reads = system.D(q) @ d + system.b(q, qd, np.zeros(system.ny))
    return {row.name: reads[row.slice] for row in system.measurements if row.equation.group == "gyroscope"}


def fixed_joints(tree) -> list[str]:
    return [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.kind == "fixed"]


def own_pose(entry) -> tuple[np.ndarray, np.ndarray]:
    X = Pose(**{key: v for key, v in entry.get("frame", {}).items() if key != "relative_to"}).transform()
    return X.E.T, X.r


def test_icub_has_the_sensors_that_idyntree_finds_where_it_has_them():
    listed, model, found = loader(str(ICUB)).sensors(), loader(str(ICUB)).model(), model_sensors(ICUB)
    numbers = {"accelerometer": 62, "gyroscope": 15, "force_torque": 6}
    assert counted(found) == numbers
    ours = {kind: [each for each in found if each.type == kind] for kind in numbers}
    for own, theirs in zip(
        ours.values(), (idyn.ACCELEROMETER, idyn.GYROSCOPE, idyn.SIX_AXIS_FORCE_TORQUE), strict=True
    ):
        names = [listed.getSensor(theirs, k).getName() for k in range(listed.getNrOfSensors(theirs))]
        assert [sensor.name for sensor in own] == names
    for kind, theirs_of in (("accelerometer", listed.getAccelerometerSensor), ("gyroscope", listed.getGyroscopeSensor)):
        for k, sensor in enumerate(ours[kind]):
            theirs = theirs_of(k)
            assert (sensor.name, sensor.on) == (theirs.getName(), theirs.getParentLink())
            assert sensor.entry["links"] == sensor.entry["frame"]["relative_to"] == sensor.on
            for mine, expected in zip(own_pose(sensor.entry), pose_of(theirs.getLinkSensorTransform()), strict=True):
                assert_close(mine, expected, PEER)
    for k, sensor in enumerate(ours["force_torque"]):
        theirs = listed.getSixAxisForceTorqueSensor(k)
        assert (sensor.name, sensor.on) == (theirs.getName(), theirs.getParentJoint())
        on_parent = model.getLinkName(theirs.getAppliedWrenchLink()) == theirs.getFirstLinkName()
        assert sensor.entry["measures"] == ("child_on_parent" if on_parent else "parent_on_child")
        for mine, expected in zip(own_pose(sensor.entry), force_torque_of(theirs, model), strict=True):
            assert_close(mine, expected, PEER)


def test_a_robot_with_its_sensors_keeps_their_joints_and_readings_have_their_names():
    """What they read there is that of the sets in contracts/test_measurements.py."""
    tree, found = load("iCubGenova04", "floating", kept="sensors", clean=False), model_sensors(ICUB)
    assert sorted(fixed_joints(tree)) == sorted(sensor_joints(read_urdf(ICUB))) == sorted(s.on for s in found[:6])
    assert tree.n_links == loader(str(ICUB)).model().getNrOfLinks()
    system = System(tree, nd.tools.sensors_from_model(ICUB))
    assert {row.name for row in system.measurements} == {s.name for s in found if s.type != "gyroscope"}
    assert system.ny == 6 * 6 + 62 * 3


# Small models: one arm with a sensor in a fixed joint, whose frame and direction vary.
ARM = """\
<robot name="arm">
  <link name="base"/>
  <link name="upper"><inertial><origin xyz="0.1 0 0.2"/><mass value="2"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="hand"><inertial><origin xyz="0 0.1 0.1"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.2" izz="0.2" ixy="0.01" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="wrist" type="fixed"><parent link="upper"/><child link="hand"/>
    <origin xyz="0.3 0.1 0.4" rpy="0.5 -0.6 0.7"/></joint>
  {sensors}
</robot>
"""
STATE = np.array([0.4]), np.array([0.7]), np.array([-1.1])
WRENCH = """<sensor name="ft" type="force_torque">{parent}
  <force_torque><frame>{frame}</frame><measure_direction>{direction}</measure_direction></force_torque>{origin}</sensor>
"""
ORIGIN = '<origin xyz="0.01 0.02 0.03" rpy="0.1 0.2 0.3"/>'
OWN = '<parent joint="wrist"/>'


def model_file(tmp_path, sensors: str, name: str = "arm.urdf"):
    path = tmp_path / name
    path.write_text(ARM.format(sensors=sensors))
    return path


@pytest.mark.parametrize("frame", ["child", "parent", "sensor"])
def test_every_frame_and_direction_is_that_of_idyntree(tmp_path, frame):
    for direction in ("child_to_parent", "parent_to_child"):
        text = WRENCH.format(parent=OWN, frame=frame, direction=direction, origin=ORIGIN)
        path = model_file(tmp_path, text, f"{direction}.urdf")
        own = loader(str(path))
        (theirs,) = (own.sensors().getSixAxisForceTorqueSensor(k) for k in range(1))
        (sensor,) = model_sensors(path)
        for mine, expected in zip(own_pose(sensor.entry), force_torque_of(theirs, own.model()), strict=True):
            assert_close(mine, expected, PEER)
        tree = nd.load_urdf(path, kept="sensors")
        reads, truth = reads_of(System(tree, nd.tools.sensors_from_model(path)), *STATE)
        found, hand = idyn.Wrench(), tree.joint("wrist")
        measured = idyn.Wrench.FromPython(np.roll(reads[-6:], 3))
        assert theirs.getWrenchAppliedOnLink(own.model().getLinkIndex("hand"), measured, found)
        assert_close(np.roll(found.toNumPy(), 3), truth.f[hand], PEER)


def test_gazebo_reports_about_the_child_in_the_axes_of_the_frame_and_where_there_are_no_others(tmp_path):
    pose = "<pose>0.01 0.02 0.03 0.1 0.2 0.3</pose>"
    for frame, rpy in (("child", (0, 0, 0)), ("sensor", (0.1, 0.2, 0.3)), ("parent", None)):
        text = WRENCH.format(parent="", frame=frame, direction="parent_to_child", origin=pose)
        path = model_file(tmp_path, f'<gazebo reference="wrist">{text}</gazebo>')
        (sensor,) = model_sensors(path)
        R, r = own_pose(sensor.entry)
        wrist = nd.load_urdf(path, kept="wrist").X_tree[1]
        assert_close(R, wrist.E if rpy is None else Pose(rpy=list(rpy)).transform().E.T, PEER)
        assert_close(r, np.zeros(3), PEER)
        assert sensor.entry["measures"] == "parent_on_child"
    gazebo = """
      <gazebo reference="wrist"><sensor name="ft" type="force_torque"/></gazebo>
      <gazebo reference="hand"><sensor name="imu" type="imu"><pose>0 0 0.1 0 0 0</pose></sensor>
        <sensor name="eye" type="camera"/></gazebo>
    """
    found = model_sensors(model_file(tmp_path, gazebo))
    assert [(s.name, s.type, s.on, s.entry is not None) for s in found] == [
        ("ft", "force_torque", "wrist", True),
        ("imu", "accelerometer", "hand", True),
        ("gyro:imu", "gyroscope", "hand", True),
        ("eye", "camera", "hand", False),
    ]
    assert found[0].entry["measures"] == "child_on_parent"
    pose = {"xyz": [0.0, 0.0, 0.1], "rpy": [0.0, 0.0, 0.0], "relative_to": "hand"}
    assert found[2].entry == {"type": "gyroscope", "name": "gyro:imu", "links": "hand", "frame": pose}
    both = gazebo + '<sensor name="acc" type="accelerometer"><parent link="hand"/></sensor>'
    assert [s.name for s in model_sensors(model_file(tmp_path, both, "both.urdf"))] == ["acc"]


def test_a_sensor_on_a_lumped_link_stays_where_it_is_and_one_on_the_world_is_left_out(tmp_path):
    text = f'<sensor name="acc" type="accelerometer"><parent link="hand"/>{ORIGIN}</sensor>'
    path = model_file(tmp_path, text)
    sensors = nd.tools.sensors_from_model(path)
    lumped, kept = (reads_of(System(nd.load_urdf(path, kept=each), sensors), *STATE)[0] for each in ((), "wrist"))
    assert_close(lumped[-3:], kept[-3:], PEER)
    text = "".join(
        f'<sensor name="{link}" type="accelerometer"><parent link="{link}"/></sensor>' for link in ("base", "hand")
    )
    path = model_file(tmp_path, text)
    assert [m.name for m in nd.tools.sensors_from_model(path).measurements] == ["base", "hand"]
    assert [m.name for m in nd.tools.sensors_from_model(path, nd.load_urdf(path)).measurements] == ["hand"]
    free = nd.load_urdf(path, base="floating")
    assert System(free, nd.tools.sensors_from_model(path, free)).measurement_names[0] == "base.ax"


def of_x(rest: str) -> str:
    return f'<sensor name="x" {rest}</sensor>'


LACKING = {
    "a <sensor> has no name": '<sensor type="accelerometer"/>',
    "sensor 'x' has no type": '<sensor name="x"/>',
    "its <parent>: it names no link": of_x('type="accelerometer">'),
    "there is no link 'hnd'": of_x('type="gyroscope"><parent link="hnd"/>'),
    "there is no joint 'hand'": of_x('type="force_torque"><parent joint="hand"/>'),
    "its <frame> is missing": of_x(f'type="force_torque">{OWN}'),
    "its <frame> is 'world'": WRENCH.format(parent=OWN, frame="world", direction="", origin=""),
    "its <measure_direction> is 'up'": WRENCH.format(parent=OWN, frame="child", direction="up", origin=""),
    "its <origin> has rpy='0 0 nan': 'nan' is not finite": of_x(
        'type="accelerometer"><parent link="hand"/><origin rpy="0 0 nan"/>'
    ),
    "its <pose> is '0 0 0': 6 numbers expected, not 3": (
        '<gazebo reference="hand">' + of_x('type="imu"><pose>0 0 0</pose>') + "</gazebo>"
    ),
    "there is no link 'arm'": '<gazebo reference="arm">' + of_x('type="imu">') + "</gazebo>",
}


def test_sensors_that_lack_something_are_refused_with_their_line(tmp_path):
    for message, sensor in LACKING.items():
        with pytest.raises(FileFormatError, match=re.escape(message)) as caught:
            nd.tools.sensors_from_model(model_file(tmp_path, sensor))
        assert re.match(r".*arm\.urdf, line \d+: ", str(caught.value)), message
    twice = of_x('type="accelerometer"><parent link="hand"/>') * 2
    with pytest.raises(SensorConfigError, match=r"arm\.urdf: two sensors are named 'x'"):
        nd.tools.sensors_from_model(model_file(tmp_path, twice))
    path = model_file(tmp_path, WRENCH.format(parent=OWN, frame="child", direction="child_to_parent", origin=""))
    with pytest.raises(UnknownSensorNameError, match=r"'wrist'.*must be kept.*kept='sensors'"):
        System(nd.load_urdf(path), nd.tools.sensors_from_model(path))
    text = WRENCH.format(parent='<parent joint="shoulder"/>', frame="parent", direction="child_to_parent", origin="")
    (sensor,) = model_sensors(model_file(tmp_path, text))  # the links turn against each other
    assert sensor.entry is None
    assert "moves against" in sensor.note


def test_angles_of_a_rotation():
    rng = np.random.default_rng(4)
    quarters = np.array(list(np.ndindex(4, 4, 4))) * np.pi / 2
    for rpy in (*rng.uniform(-np.pi, np.pi, size=(20, 3)), *quarters):
        R = Pose(rpy=list(rpy)).transform().E.T
        again = Pose(rpy=list(roll_pitch_yaw(R))).transform().E.T
        assert_close(again, R, PEER)


def test_a_urdf_is_parsed_once_for_its_tree_its_sensors_components_and_shapes(tmp_path, monkeypatch):
    text = WRENCH.format(parent=OWN, frame="child", direction="child_to_parent", origin="")
    path, counts = model_file(tmp_path, text + "<!-- read once -->"), []
    parsed = xml_file.parsed
    monkeypatch.setattr(xml_file, "parsed", lambda file, content: counts.append(file) or parsed(file, content))
    for loader_of in (nd.load_urdf, nd.load_robot):
        tree = loader_of(path, kept="sensors", components=True)
        assert fixed_joints(tree) == ["wrist"]
    assert nd.tools.sensors_from_model(path, tree).measurements
    assert urdf_shapes(path) == ()
    assert counts == [str(path)]
    path.write_text(path.read_text().replace("hand", "fist"))  # another file by the same name
    assert "fist" in nd.load_urdf(path).frames
    assert len(counts) == 2


# MJCF: a chain with a weld in it, and every sensor that gives rows.
MJCF = """\
<mujoco model="arm">
  <option gravity="0 0 -9.81"/>
  <worldbody>
    <site name="wall"/>
    <body name="upper" pos="0 0 0.5">
      <joint name="shoulder" axis="0 1 0" pos="0.02 0 0.01"/>
      <joint name="slide" type="slide" axis="1 0 0"/>
      <geom size="0.1" mass="2" pos="0.1 0 0.2"/>
      <site name="mid" pos="0.05 0.02 0.1" euler="10 20 30"/>
      <body name="hand" pos="0.3 0.1 0.4" euler="20 -30 40">
        <geom type="box" size="0.1 0.05 0.02" mass="1" pos="0 0.1 0.1"/>
        <site name="palm" pos="0.01 0.02 0.03" euler="5 15 25"/>
        <body name="tip" pos="0 0.1 0.2">
          <joint name="bend" axis="1 0 0"/>
          <geom type="box" size="0.03 0.02 0.1" mass="0.5" pos="0.02 0 0.1"/>
          <site name="tip" pos="0 0.01 0.05"/>
        </body>
      </body>
    </body>
  </worldbody>
  <actuator><motor name="m" joint="bend" gear="1"/></actuator>
  <sensor>
    <force name="force_palm" site="palm"/> <torque name="torque_palm" site="palm"/>
    <force name="force_mid" site="mid"/> <torque name="torque_tip" site="tip"/>
    <accelerometer name="acc_palm" site="palm" noise="0.2"/> <accelerometer site="tip"/>
    <accelerometer name="acc_wall" site="wall"/>
    <gyro name="gyro" site="palm"/> <jointpos name="angle" joint="bend"/>
    <jointactuatorfrc name="motor" joint="bend"/> <framelinacc name="frame" objtype="site" objname="tip"/>
  </sensor>
</mujoco>
"""


@pytest.fixture
def mjcf(tmp_path):
    path = tmp_path / "arm.xml"
    path.write_text(MJCF)
    return path


def test_sensors_of_an_mjcf_model(mjcf):
    found = {sensor.name: sensor for sensor in model_sensors(mjcf)}
    assert counted(list(found.values()))["accelerometer"] == 3
    assert {name for name, sensor in found.items() if sensor.entry is None} == {"acc_wall", "angle", "frame"}
    assert found["force_palm"].entry["joints"] == "hand/fixed"
    assert found["force_mid"].entry["joints"] == "slide"
    assert found["torque_tip"].entry["frame"] == "tip/site"
    assert found["acc_palm"].entry["sigma"] == 0.2
    assert found["sensor5"].on == "tip"


def test_readings_of_mjcf_sensors_are_those_of_mujoco(mjcf):
    tree, lumped = (nd.load_mjcf(mjcf, kept=kept, clean=False) for kept in ("sensors", ()))
    assert fixed_joints(tree) == ["hand/fixed"]
    system = System(tree, nd.tools.sensors_from_model(mjcf))
    model = mujoco_model(mjcf)
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
    data = mujoco.MjData(model)
    rng = np.random.default_rng(2)
    for _ in range(5):
        q = tree.random_configuration(rng)
        qd, qdd = rng.normal(size=(2, tree.nv))
        # Inverse dynamics, its forces applied, and forward dynamics then moves as was asked for.
        reads, truth = reads_of(system, q, qd, qdd)
        state = mujoco_state(lumped, model, q, qd, qdd)
        data.qpos[:], data.qvel[:], data.qacc[:] = state
        mujoco.mj_inverse(model, data)
        data.qfrc_applied[:] = data.qfrc_inverse
        data.qfrc_applied[model.jnt_dofadr[model.joint("bend").id]] = 0
        data.ctrl[0] = truth.tau[tree.v_slices[tree.joint("bend")].start]
        mujoco.mj_forward(model, data)
        assert_close(data.qacc, state[2], SOLVED)
        for row in system.measurements:
            number = 5 if row.name == "sensor5" else model.sensor(row.name).id
            adr, dim = model.sensor_adr[number], model.sensor_dim[number]
            assert_close(reads[row.slice], data.sensordata[adr : adr + dim], SOLVED)


def test_gyroscopes_of_mjcf_read_what_mujoco_says(tmp_path):
    path = tmp_path / "free.xml"
    held = MJCF[MJCF.index('      <joint name="shoulder"') : MJCF.index('      <geom size="0.1"')]
    path.write_text(
        MJCF.replace(held, '<freejoint name="root"/>').replace("<gyro", '<gyro name="two" site="tip"/><gyro')
    )
    tree, model = nd.load_mjcf(path, clean=False), mujoco_model(path)
    model.opt.disableflags &= ~int(mujoco.mjtDisableBit.mjDSBL_SENSOR)
    data, rng = mujoco.MjData(model), np.random.default_rng(5)
    q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
    data.qpos[:], data.qvel[:], _ = mujoco_state(tree, model, q, qd, qd)
    mujoco.mj_forward(model, data)
    sensors = with_base(nd.load_mjcf(path, kept="sensors", clean=False), path, tmp_path)
    reads = turns_of(sensors, q, qd)
    assert [*reads] == ["two", "gyro"]
    for name, reading in reads.items():
        assert_close(reading, data.sensor(name).data, SOLVED)


def test_an_mjcf_model_is_compiled_once_for_its_tree_and_sensors(mjcf, monkeypatch):
    counts: list[str] = []
    compile_of = mujoco.MjModel.from_xml_path

    class Counted:
        @staticmethod
        def from_xml_path(path):
            counts.append(path)
            return compile_of(path)

    monkeypatch.setattr("mujoco.MjModel", Counted)
    assert fixed_joints(nd.load_robot(mjcf, kept="sensors")) == ["hand/fixed"]
    assert counts == [str(mjcf)]


def test_bodies_are_kept_by_name(mjcf):
    kept, lumped = nd.load_mjcf(mjcf, kept=("hand",)), nd.load_mjcf(mjcf)
    assert (kept.n_links, kept.nv) == (lumped.n_links + 1, lumped.nv)
    q = lumped.random_configuration(1)
    assert_close(nd.crba(kept, q), nd.crba(lumped, q), RECURSION)
    assert nd.load_robot(mjcf, kept="hand").fingerprint == kept.fingerprint
    with pytest.raises(nd.errors.ModelError, match=r"body without joints to keep 'hnd'.*mean 'hand'"):
        nd.load_mjcf(mjcf, kept=("hnd",))
    with pytest.raises(nd.errors.ModelError, match=r"body without joints to keep 'upper'"):
        nd.load_mjcf(mjcf, kept=("upper",))

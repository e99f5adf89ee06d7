"""Logs as vendors' software writes them, of simulated motions, estimated by the name of the robot alone."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from nori_dyn.errors import DoubtfulLogError, FileFormatError, MappingError, ModelError
from nori_dyn.live.decoding import topics_of
from nori_dyn.logs.drafts.draft import draft
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.logs.messages.kinds import VENDORS, standard_types
from tests.logs import samples_in
from tests.robots import load
from tests.systems import TORQUES, sensor_set

RATE = 100.0
GAINS = {"ur5e": [10.0] * 6, "ur10e": [14.87, 13.26, 11.13, 10.62, 11.03, 11.47]}


def chain(path, joints):
    """A URDF of an arm whose joints have these names, and the file."""
    links = ["base", *(f"link{k}" for k in range(len(joints)))]
    text = [f'<robot name="arm"><link name="{links[0]}"/>']
    for k, joint in enumerate(joints):
        parent, child, axis = links[k], links[k + 1], ("0 0 1", "0 1 0")[k % 2]
        text.append(
            f'<link name="{child}"><inertial><origin xyz="0.02 0.01 0.1"/><mass value="{3 / (1 + 0.2 * k)}"/>'
            '<inertia ixx="0.02" iyy="0.02" izz="0.01" ixy="0" ixz="0" iyz="0"/></inertial></link>'
            f'<joint name="{joint}" type="revolute"><parent link="{parent}"/><child link="{child}"/>'
            f'<origin xyz="0 0 0.2"/><axis xyz="{axis}"/><limit lower="-6.28" upper="6.28" effort="300" velocity="9"/>'
            "</joint>"
        )
    path.write_text("".join([*text, "</robot>"]))
    return path


class Arm:
    """An arm with a preset, a chain with its joints, that swings."""

    def __init__(self, folder, name, seconds=3.0):
        self.name, self.folder = name, folder
        self.joints = [joint for joint in nd.preset(name).data.order if joint]
        self.preset = nd.preset(name, chain(folder / "arm.urdf", self.joints))
        tree, n = self.preset.tree, len(self.joints)
        rates, t = 1 + 0.2 * np.arange(n), np.arange(0, seconds, 1 / RATE)
        phase = np.outer(t, rates) + np.arange(n)
        q, qd, qdd = 0.3 + 0.4 * np.sin(phase), 0.4 * rates * np.cos(phase), -0.4 * rates**2 * np.sin(phase)
        self.t, self.q, self.qd = t, q, qd
        self.tau = nd.rnea(tree, q.T, qd.T, qdd.T).T
        self.held = nd.rnea(tree, q.T, 0 * qd.T, 0 * qdd.T).T

    def written(self, columns, delimiter=","):
        """A table of columns by their names, of numbers (n,) or (n, joints) whose names have {k} or {joint}."""
        table = {}
        for name, values in columns.items():
            each = enumerate(values.T) if np.ndim(values) == 2 else [(0, values)]
            table |= {name.format(k=k, joint=self.joints[k] if np.ndim(values) == 2 else ""): x for k, x in each}
        path, header = self.folder / "log.csv", delimiter.join(table)
        np.savetxt(path, np.column_stack([*table.values()]), delimiter=delimiter, header=header, comments="")
        return path

    def check(self, log, **options):
        """Check that a log, estimated without questions, gives torques that are those of the motion, and of the log."""
        found = nd.estimate(log, self.preset, backend="numpy", **options)
        middle, size = slice(40, -40), np.abs(self.tau).max()
        assert np.abs(found["tau"][middle] - self.tau[middle]).max() < 0.01 * size
        assert np.abs(found["offset"][middle]).max() < 0.01 * size


def wanted(arm):
    """Columns that no estimate may take: what was wanted, and what others computed."""
    return {"q_d[{k}]": 0 * arm.q, "dq_d[{k}]": 0 * arm.q, "tau_J_d[{k}]": 0 * arm.q, "tau_ext_hat[{k}]": 0 * arm.q}


FRANKA = {
    "robot_state": lambda arm: {
        "duration": 1e3 * arm.t, "q[{k}]": arm.q, "dq[{k}]": arm.qd, "tau_J[{k}]": arm.tau, **wanted(arm)
    },
    "log_to_csv": lambda arm: {
        "time": 1e3 * arm.t, "success_rate": 1 + 0 * arm.t, "state.q[{k}]": arm.q, "state.q_d[{k}]": 0 * arm.q,
        "state.dq[{k}]": arm.qd, "state.dq_d[{k}]": 0 * arm.q, "state.tau_J[{k}]": arm.tau,
        "state.tau_ext_hat_filtered[{k}]": 0 * arm.q, "cmd.q_d[{k}]": 0 * arm.q, "cmd.tau_J_d[{k}]": 0 * arm.q,
    },
    "flattened": lambda arm: {
        "time": arm.t, "robot_state.q.{k}": arm.q, "robot_state.dq.{k}": arm.qd, "robot_state.tau_J.{k}": arm.tau,
        "robot_state.dtau_J.{k}": 0 * arm.q, "robot_state.theta.{k}": 0 * arm.q,
        "robot_state.O_F_ext_hat_K.{k}": 0 * arm.q[:, :6], "robot_state.tau_ext_hat_filtered.{k}": 0 * arm.q,
    },
    "underlines": lambda arm: {"time": arm.t, "q_{k}": arm.q, "dq_{k}": arm.qd, "tau_J_{k}": arm.tau},
}  # fmt: skip


@pytest.mark.parametrize("kind", FRANKA)
def test_logs_of_libfranka(tmp_path, kind):
    arm = Arm(tmp_path, "fr3")
    arm.check(arm.written(FRANKA[kind](arm)))


@pytest.mark.parametrize("robot", ["ur5e", "ur10e"])
def test_recordings_of_rtde(tmp_path, robot):
    arm = Arm(tmp_path, robot)
    moves = {"timestamp": 3e4 + arm.t, "target_q_{k}": 0 * arm.q, "actual_q_{k}": arm.q, "actual_qd_{k}": arm.qd}
    currents = {"target_current_{k}": 0 * arm.q, "actual_current_{k}": arm.tau / GAINS[robot]}
    rest = {"actual_TCP_force_{k}": 0 * arm.q, "robot_mode": 7 + 0 * arm.t}
    arm.check(arm.written(moves | currents | rest, delimiter=" "))  # as RTDE's own client writes it
    newer = {"actual_current_{k}": arm.q, "actual_current_as_torque_{k}": arm.tau}
    arm.check(arm.written(moves | newer | rest))


def joint_states(arm, effort, names=None):
    """A bag of sensor_msgs/JointState, its joints in another order than the robot's."""
    ros = pytest.importorskip("tests.messages_of_ros")
    from rosbags.rosbag2 import StoragePlugin, Writer

    names, folder = names or arm.joints, arm.folder / "bag"
    with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as bag:
        connection = bag.add_connection("/lab/joint_states", ros.JOINT_STATE, typestore=ros.STORE)
        for t, q, qd, tau in zip(arm.t, arm.q, arm.qd, effort, strict=True):
            turned = ros.joint_state(t, names[::-1], q[::-1], qd[::-1], tau[::-1])
            bag.write(connection, int(t * 1e9), turned)
    return folder


def test_joint_states_of_kinovas_driver_have_torques_reversed(tmp_path):
    arm = Arm(tmp_path, "gen3")
    arm.check(joint_states(arm, -arm.tau))


def test_joint_states_of_a_driver_that_calls_joints_otherwise(tmp_path):
    arm = Arm(tmp_path, "iiwa14")
    arm.check(joint_states(arm, arm.tau, [f"lbr_A{k}" for k in range(1, 8)]))


def test_positions_of_kortex_are_whole_turns_off(tmp_path):
    arm = Arm(tmp_path, "gen3")
    degrees = {"actuators[{k}].position": np.degrees(arm.q) % 360, "actuators[{k}].velocity": np.degrees(arm.qd)}
    arm.check(arm.written({"time": arm.t, **degrees, "actuators[{k}].torque": -arm.tau}))


def test_arrays_of_aloha(tmp_path):
    h5py = pytest.importorskip("h5py")
    arm = Arm(tmp_path, "aloha")
    gains = np.tile([2.41, 4.82, 4.82, 2.41, 1.78, 1.78], 2)
    with h5py.File(tmp_path / "episode_0.hdf5", "w") as file:
        for name, x in (("qpos", arm.q), ("qvel", arm.qd), ("effort", 1e3 * arm.tau / gains)):
            grippers = np.full((len(x), 1), 0.5)
            columns = [x[:, :6], grippers, x[:, 6:], grippers]
            file[f"observations/{name}"] = np.concatenate(columns, axis=1)[:: int(RATE / 50)]
        file["action"] = np.zeros((len(arm.t[:: int(RATE / 50)]), 14))
    found = nd.estimate(tmp_path / "episode_0.hdf5", arm.preset, backend="numpy")
    middle = slice(40, -40)
    assert np.abs(found["offset"][middle]).max() < 0.05 * np.abs(arm.tau).max()


def test_motors_of_aloha_in_lerobots_format(tmp_path):
    arm = Arm(tmp_path, "aloha")
    gains = np.tile([2.41, 4.82, 4.82, 2.41, 1.78, 1.78], 2)
    columns = {"timestamp": arm.t, "observation.state:left_gripper": 0.5 + 0 * arm.t}
    for name, x in (("state", arm.q), ("velocity", arm.qd), ("effort", 1e3 * arm.tau / gains)):
        columns |= {f"observation.{name}:{joint.replace('/', '_')}": x[:, k] for k, joint in enumerate(arm.joints)}
    log = arm.written(columns)
    with pytest.raises(DoubtfulLogError, match="name the right arm first"):
        nd.estimate(log, arm.preset, backend="numpy")
    arm.check(log, accept=True)
    slow = {name: x for name, x in columns.items() if "velocity" not in name}
    with pytest.raises(DoubtfulLogError, match="a current in mA"):
        nd.estimate(arm.written(slow), arm.preset, differentiate="smoother", backend="numpy")


def test_names_of_spots_interfaces(tmp_path):
    t, order = np.arange(0, 0.2, 0.02), nd.preset("spot").data.order
    called = nd.preset("spot").data.called
    for k in range(2):  # of spot_ros2, and of its API
        table = {f"position:{called[joint][k]}": 0.1 * j + t for j, joint in enumerate(order)}
        table |= {f"velocity:{called[joint][k]}": 1 + 0 * t for joint in order}
        table |= {f"effort:{called[joint][k]}": 5 * j + t for j, joint in enumerate(order)}
        log = tmp_path / f"log{k}.csv"
        header = ",".join(["time", *table])
        np.savetxt(log, np.column_stack([t, *table.values()]), delimiter=",", header=header, comments="")
        samples, _, places = tied(tmp_path, "spot", log)
        np.testing.assert_allclose(samples.q[:, places], [[0.1 * j + x for j in range(12)] for x in t])
        np.testing.assert_allclose(samples.y[:, places], [[5 * j + x for j in range(12)] for x in t])


def test_effort_of_universal_robots_is_asked_for(tmp_path):
    arm = Arm(tmp_path, "ur5e")
    bag = joint_states(arm, arm.tau / 10)
    with pytest.raises(DoubtfulLogError, match=r"currents.*without: gravity"):
        nd.estimate(bag, arm.preset, backend="numpy")
    arm.check(bag, accept=True)
    other = arm.written(
        {"time": arm.t, "position_{joint}": arm.q, "velocity_{joint}": arm.qd, "effort_{joint}": arm.tau}
    )
    with pytest.raises(DoubtfulLogError, match=r"currents.*without: gravity"):
        nd.estimate(other, arm.preset, backend="numpy")
    arm.check(other, accept=True)


def test_gravity_that_a_driver_took_away_is_added(tmp_path):
    arm = Arm(tmp_path, "ur5e")
    bag = joint_states(arm, arm.tau - arm.held)
    columns = [
        {"of": "q:{joint}", "from": "/lab/joint_states.position:{joint}"},
        {"of": "qd:{joint}", "from": "/lab/joint_states.velocity:{joint}"},
        {"of": "tau:{joint}", "from": "/lab/joint_states.effort:{joint}"},
    ]
    columns[2]["without"] = "gravity"
    arm.check(nd.read_log(bag, {"columns": columns}))
    columns[1]["without"] = columns[2].pop("without")
    with pytest.raises(MappingError, match=r"`without` is for torques of joints, and 'qd:\{joint\}' is none"):
        nd.estimate(nd.read_log(bag, {"columns": columns}), arm.preset, backend="numpy")


class Unitree:
    """Messages of Unitree's, all of whose fields are zero but for those that are given."""

    def __init__(self):
        typesys = pytest.importorskip("rosbags.typesys")
        self.store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
        self.store.register({kind: standard_types("cdr")[kind] for kind in VENDORS})

    def make(self, kind, **fields):
        values = {name: fields.get(name, self._zero(of)) for name, of in self.store.fielddefs[kind][1]}
        return self.store.types[kind](**values)

    def _zero(self, definition):
        node, what = definition
        if node.name == "BASE":
            return 0
        if node.name == "NAME":
            return self.make(what)
        (inner, of), n = what
        if inner.name == "NAME":
            return [self.make(of) for _ in range(n)]
        return np.zeros(n, dtype=of[0])

    def bag(self, folder, package, t, motors, imu=None, definitions=True):
        """A bag of LowState: motors has q, dq and tau_est (n, motors), imu gyroscope and accelerometer (n, 3)."""
        from rosbags.rosbag2 import StoragePlugin, Writer

        kind, zeros = f"{package}/msg/LowState", np.zeros((len(t), 3), dtype=np.float32)
        imu = {name: x.astype(np.float32) for name, x in (imu or {"gyroscope": zeros}).items()}
        with Writer(folder, version=9, storage_plugin=StoragePlugin.SQLITE3) as bag:
            connection = bag.add_connection("/lowstate", kind, typestore=self.store)
            for k, time in enumerate(t):
                states = self._zero(dict(self.store.fielddefs[kind][1])["motor_state"])
                for j, state in enumerate(states[: motors["q"].shape[1]]):
                    for name, x in motors.items():
                        setattr(state, name, x[k, j])
                own = self.make(f"{package}/msg/IMUState", **{name: x[k] for name, x in imu.items()})
                message = self.make(kind, motor_state=states, imu_state=own, tick=k)
                bag.write(connection, int(time * 1e9), self.store.serialize_cdr(message, kind))
        if not definitions:  # as bags of Humble and Foxy are
            with closing(sqlite3.connect(next(folder.glob("*.db3")))) as file, file:
                file.executescript("UPDATE schema SET schema_version = 3; DROP TABLE message_definitions")
        return folder


def tied(folder, name, log):
    """Samples of a log of a robot with a preset's joints, on a fixed base, by a draft without questions; its joints."""
    data = nd.preset(name).data
    joints = [joint for joint in data.order if joint]
    tree = nd.load_robot(chain(folder / "robot.urdf", sorted(joints)))
    system = nd.System(tree, sensor_set(TORQUES, name="drives"))
    with open_log(log) as source:
        made = draft(source, SampleRecord.of({(): system}), data.order, data.called)
    assert not any(guess.is_doubtful for guess in made.guesses)
    samples = samples_in(log, system, mapping=made.data())
    return samples, joints, [list(system.tree.joint_names).index(joint) for joint in joints]


@pytest.mark.parametrize(
    ("name", "package", "definitions"),
    [
        ("go2", "unitree_go", True),
        ("go2", "unitree_go", False),
        ("h1", "unitree_go", True),
        ("g1", "unitree_hg", False),
    ],
)
def test_low_states_of_unitree_are_taken_motor_by_motor(tmp_path, name, package, definitions):
    t, order = np.arange(0, 0.2, 0.02), nd.preset(name).data.order
    n = len(order)
    motors = {key: np.outer(1 + t, c + 0.01 * np.arange(n)) for key, c in (("q", 0.1), ("dq", 1.0), ("tau_est", 9.0))}
    log = Unitree().bag(tmp_path / "bag", package, t, motors, definitions=definitions)
    samples, joints, places = tied(tmp_path, name, log)
    numbers = [order.index(joint) for joint in joints]
    for own, key in ((samples.q, "q"), (samples.qd, "dq"), (samples.y[:, -n:][:, -len(joints) :], "tau_est")):
        np.testing.assert_allclose(own[:, places], motors[key][:, numbers], rtol=1e-6)
    live = nd.preset(name).live
    if live is not None:  # the same, as a stream has it
        assert topics_of(live) == {"/lowstate": f"{package}/msg/LowState"}
        again = samples_in(log, samples.record.systems, mapping=live)
        for ours, theirs in ((again.q, samples.q), (again.qd, samples.qd), (again.y, samples.y)):
            np.testing.assert_array_equal(ours, theirs)


def test_low_states_of_another_firmware_say_what_to_do(tmp_path):
    bag = Unitree().bag(tmp_path / "bag", "unitree_go", np.arange(3.0), {"q": np.zeros((3, 12))}, definitions=False)
    with closing(sqlite3.connect(next(bag.glob("*.db3")))) as file, file:
        file.execute("UPDATE messages SET data = substr(data, 1, length(data) - 40)")
    with pytest.raises(FileFormatError, match=r"end before 'wireless_remote'.*firmware.*record MCAP"):
        open_log(bag)


COLUMNS = {
    "by_index": ["motor_{k}_q", "motor_{k}_dq", "motor_{k}_tau_est"],
    "in_messages": ["motor_state[{k}].q", "motor_state[{k}].dq", "motor_state[{k}].tau_est"],
    "in_messages_of_ros_1": [
        "low_state.motorState[{k}].q",
        "low_state.motorState[{k}].dq",
        "low_state.motorState[{k}].tauEst",
    ],
    "by_joint": ["{name}_q", "{name}_dq", "{name}_tau"],
    "in_words": ["JointPos{name}", "JointVel{name}", "JointTorque{name}"],
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_tables_of_unitrees_motors(tmp_path, kind):
    t, order = np.arange(0, 0.2, 0.02), nd.preset("go2").data.order
    numbers = [np.outer(1 + t, c + 0.01 * np.arange(12)) for c in (0.1, 1.0, 9.0)]
    names = [joint.removesuffix("_joint") for joint in order]
    table = {
        column.format(k=k, name=name): x[:, k]
        for column, x in zip(COLUMNS[kind], numbers, strict=True)
        for k, name in enumerate(names)
    }
    log = tmp_path / "log.csv"
    np.savetxt(
        log, np.column_stack([t, *table.values()]), delimiter=",", header=",".join(["time", *table]), comments=""
    )
    samples, _, places = tied(tmp_path, "go2", log)
    for own, expected in zip((samples.q, samples.qd, samples.y[:, -12:]), numbers, strict=True):
        np.testing.assert_allclose(own[:, places], expected, rtol=1e-6)


LEGS = {"FL": (1, 1), "FR": (1, -1), "RL": (-1, 1), "RR": (-1, -1)}


def standing(tree, t):
    """Motion of a Go2 that sways on its feet: q, qd, gyroscope, accelerometer, tau, and the forces on them."""

    def wave(size, rates):
        return size * np.sin(np.outer(t, rates))

    def rate(x):
        return np.gradient(x, t, axis=0)

    R = Rotation.from_rotvec(wave(0.05, [3, 4, 2])).as_matrix()

    def to_base(x):
        return np.einsum("nji,nj->ni", R, x)

    p, legs = wave(0.01, [5, 6, 7]) + np.array([0, 0, 0.3]), []
    for x, y in LEGS.values():
        u = to_base(np.array([0.19 * x, 0.14 * y, 0]) - p) - [0.1934 * x, 0.0465 * y, 0]
        below = np.sqrt(u[:, 1] ** 2 + u[:, 2] ** 2 - 0.0955**2)
        knee = -2 * np.arccos(np.hypot(u[:, 0], below) / 0.426)
        hip = np.arctan2(u[:, 2], u[:, 1]) + np.arctan2(below, 0.0955 * y)
        legs.append(np.stack([hip, np.arctan2(-u[:, 0], below) - knee / 2, knee], axis=1))
    q, W = np.hstack([p, Rotation.from_matrix(R).as_quat(), *legs]), R.transpose(0, 2, 1) @ rate(R)
    w = np.stack([W[:, 2, 1], W[:, 0, 2], W[:, 1, 0]], axis=1)
    qd = np.hstack([w, to_base(rate(p)), rate(q[:, 7:])])
    J = np.concatenate([nd.jacobian(tree, q.T, f"{foot}_foot")[3:] for foot in LEGS]).transpose(2, 0, 1)
    tau = nd.rnea(tree, q.T, qd.T, rate(qd).T).T
    forces = np.einsum("nij,ni->nj", np.linalg.pinv(J[:, :, :6]), tau[:, :6])
    proper = to_base(rate(rate(p + R @ tree.frame("imu").X.r)) - [0, 0, -9.81])
    return q, qd, w, proper, tau - np.einsum("nij,ni->nj", J, forces), forces


@pytest.mark.long
def test_a_go2_that_stands_is_estimated_by_its_name_from_a_bag(tmp_path):
    load("go2")
    go2, t, noise = nd.preset("go2"), np.arange(0, 2.5, 0.002), np.random.default_rng(0).normal
    q, qd, w, proper, tau, forces = standing(go2.tree, t)

    def read(x, sigma):
        return (x + noise(0, sigma, x.shape))[10:-10:2]

    motors = {"q": read(q[:, 7:], 1e-3), "dq": read(qd[:, 6:], 0.05), "tau_est": read(tau[:, 6:], 0.3)}
    order = [go2.tree.joint_names.index(joint) - 1 for joint in go2.data.order]
    imu = {"gyroscope": read(w + 0.02, 0.01), "accelerometer": read(proper, 0.1)}
    motors = {name: x[:, order] for name, x in motors.items()}
    bag = Unitree().bag(tmp_path / "bag", "unitree_go", t[10:-10:2], motors, imu, definitions=False)
    found = nd.estimate(bag, "go2")
    settled, truth = slice(200, None), forces[10:-10:2]
    for k, foot in enumerate(LEGS):
        error = (found[f"fx:{foot}_foot"][:, 3:] - truth[:, 3 * k : 3 * k + 3])[settled]
        assert np.sqrt((error**2).mean()) < 2.5  # N, of 35
    base = found.history.base
    assert np.abs(base.velocity - qd[10:-10:2, 3:6])[settled].max() < 0.03
    np.testing.assert_allclose(found.history.memory["offset:gyro:imu"][-1], 0.02, atol=0.005)


BENT = {"hip_pitch": -0.3, "knee": 0.6, "ankle_pitch": -0.3}
HUMANOIDS = {
    "g1": (
        {f"{side}_{k}_joint": x for side in ("left", "right") for k, x in BENT.items()},
        "{}_ankle_roll_link",
        "imu_in_pelvis",
    ),
    "talos": (
        {f"leg_{side}_{k}_joint": x for side in ("left", "right") for k, x in zip("345", BENT.values(), strict=True)},
        "leg_{}_6_link",
        "imu_link",
    ),
}


@pytest.mark.long
@pytest.mark.parametrize("name", HUMANOIDS)
def test_a_humanoid_that_stands_is_estimated_by_its_name(tmp_path, name):
    load("talos_reduced" if name == "talos" else name)
    tree, n, noise = nd.preset(name).tree, 250, np.random.default_rng(0).normal
    (bent, foot, imu), q = HUMANOIDS[name], tree.neutral_configuration()
    for joint, angle in bent.items():
        q[tree.q_slices[tree.joint(joint)]] = angle
    feet, up = [foot.format(side) for side in ("left", "right")], np.array([0, 0, 9.81])
    held = nd.rnea(tree, q, np.zeros(tree.nv), np.zeros(tree.nv))
    J = np.concatenate([nd.jacobian(tree, q, foot) for foot in feet])
    wrenches = np.linalg.pinv(J[:, :6].T) @ held[:6]
    tau = held - J.T @ wrenches
    log, read = {"time": 0.005 * np.arange(n)}, nd.jacobian(tree, q, imu)[:3, :3] @ up
    for k, axis in enumerate("xyz"):
        log |= {f"gyro_{axis}": noise(0.01, 0.01, n), f"acc_{axis}": noise(read[k], 0.1, n)}
    for joint in tree.joint_names[1:]:
        own = tree.q_slices[tree.joint(joint)], tree.v_slices[tree.joint(joint)]
        log |= {f"q:{joint}": noise(q[own[0]], 1e-3, n), f"qd:{joint}": noise(0, 0.02, n)}
        log |= {f"tau:{joint}": noise(tau[own[1]], 0.3, n)}
    for k, side in enumerate(("left", "right")):  # what the ground pushes, and the foot does not weigh
        ankle = wrenches[6 * k : 6 * k + 6] - tree.I[tree.link(feet[k])] @ np.append(np.zeros(3), up)
        for j, part in enumerate(f"{kind}.{axis}" for kind in ("torque", "force") for axis in "xyz"):
            log[f"{side}_ankle_ft.{part}"] = noise(ankle[j], 0.2, n)
    path = tmp_path / "log.csv"
    np.savetxt(path, np.column_stack([*log.values()]), delimiter=",", header=",".join(log), comments="")
    found = nd.estimate(path, name, backend="numpy")
    for k, foot in enumerate(feet):
        error = found[f"fx:{foot}"][150:].mean(axis=0) - wrenches[6 * k : 6 * k + 6]
        assert (np.abs(error) < [0.3, 0.3, 0.3, 3, 3, 3]).all()  # N m, and N of hundreds
    assert np.abs(found.history.base.gravity[-1] + up).max() < 0.05


def test_a_model_that_calls_its_joints_otherwise_is_named_with_what_to_do(tmp_path):
    other = chain(tmp_path / "arm.urdf", [f"j{k}" for k in range(7)])
    with pytest.raises(ModelError, match=r"calls its parts otherwise.*'fr3_joint1'.*names of fr3_description.*copy"):
        _ = nd.preset("fr3", other).tree
    with pytest.raises(ModelError, match=r"mini_cheetah.urdf, and no package has it.*--model ROBOT.urdf"):
        _ = nd.preset("mini_cheetah").tree

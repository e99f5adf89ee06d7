"""Arrays on several clocks: which is on which, as a roboticist would say, and data of real robots."""

from pathlib import Path

import numpy as np
import pytest
import scipy.io

from nori_dyn.errors import FileFormatError
from nori_dyn.logs.registry import open_log

REAL = Path(__file__).parents[3] / ".." / "shared" / "data" / "real"


def streams(path):
    with open_log(path) as source:
        return {stream.name: stream for stream in source.streams}


def saved(path, **arrays):
    np.savez(path / "log.npz", **arrays)
    return streams(path / "log.npz")


def test_an_array_is_on_the_clock_whose_name_begins_alike(tmp_path):
    leg = {"leg_t": np.arange(30.0), "leg_q": np.ones((30, 2)), "leg_ft": np.ones(30)}
    found = saved(tmp_path, **leg, arm_time=np.ones(30), arm=np.ones(30))
    assert found["leg"].columns == ("leg_t", "leg_q[0]", "leg_q[1]", "leg_ft")
    assert (found["leg"].clock, found["arm"].clock, found["leg"].samples) == ("leg_t", "arm_time", 30)
    found = saved(tmp_path, ft_t=np.ones(9), ft_left_t=np.ones(9), ft_left=np.ones((9, 6)), ft=np.ones(9))
    assert found["ft_left"].columns[:2] == ("ft_left_t", "ft_left[0]")  # the longest counts
    assert found["ft"].columns == ("ft_t", "ft")


def test_a_lone_clock_or_none_is_that_of_all_that_are_as_long(tmp_path):
    found = saved(tmp_path, jointsTime=np.arange(30.0), q=np.ones((30, 2)), force=np.ones(30), slow=np.ones(10))
    assert set(found) == {"joints", "slow"}
    assert found["joints"].columns == ("jointsTime", "q[0]", "q[1]", "force")
    assert found["slow"].clock is None
    found = saved(tmp_path, q=np.ones((30, 2)), qd=np.ones((30, 2)), force=np.ones((20, 3)), x=np.ones(20))
    assert {name: stream.samples for name, stream in found.items()} == {"30 samples": 30, "20 samples": 20}


def test_constants_are_no_samples_and_arrays_of_more_axes_have_more_numbers(tmp_path):
    found = saved(tmp_path, q=np.ones((300, 2)), gravity=np.ones(3), mass=2.0, turn=np.eye(4), note="text")
    assert list(found) == [""]
    assert found[""].columns == ("q[0]", "q[1]")
    assert saved(tmp_path, q=np.ones((1, 2)))[""].samples == 1
    np.savez(tmp_path / "log.npz", **{"q": np.ones((3, 2)), "q[0]": np.ones(3)})
    with pytest.raises(FileFormatError, match=r"has two columns 'q\[0\]'"):
        open_log(tmp_path / "log.npz")
    assert saved(tmp_path, fx=np.ones((9, 2, 2)))[""].columns == ("fx[0][0]", "fx[0][1]", "fx[1][0]", "fx[1][1]")


def test_blocks_of_several_clocks_come_in_about_their_order(tmp_path, monkeypatch):
    monkeypatch.setattr("nori_dyn.logs.formats.arrays.BLOCK", 10)
    fast, slow = np.arange(100) / 100, np.arange(20) / 20
    np.savez(tmp_path / "log.npz", fast_t=fast, slow_t=slow)
    with open_log(tmp_path / "log.npz") as source:
        blocks = [(block.stream, block.values[0]) for block in source.read({"fast": ["fast_t"], "slow": ["slow_t"]})]
    seen = {"fast": 0.0, "slow": 0.0}
    for name, times in blocks:
        seen[name] = times[-1]
        assert abs(seen["fast"] - seen["slow"]) < 0.61  # a block of the slow one
    np.testing.assert_array_equal(np.concatenate([times for name, times in blocks if name == "slow"]), slow)


def test_samples_of_matlab_may_stand_along_either_axis(tmp_path):
    rows, constant = np.arange(100.0).reshape(50, 2), np.eye(4)
    scipy.io.savemat(tmp_path / "log.mat", {"a": {"q": rows, "qd": rows.T}, "t": np.arange(50.0)[None], "X": constant})
    found = streams(tmp_path / "log.mat")
    assert list(found) == [""]
    assert found[""].columns == ("t", "a.q[0]", "a.q[1]", "a.qd[0]", "a.qd[1]")
    with open_log(tmp_path / "log.mat") as source:
        (block,) = source.read({"": ["a.q[1]", "a.qd[1]"]})
    np.testing.assert_array_equal(block.values, [rows[:, 1], rows[:, 1]])


def test_what_robot_loggers_write(tmp_path):
    """A group with data (k, 1, N), timestamps and the names of elements, as YARP's logger writes it."""
    h5py = pytest.importorskip("h5py")
    with h5py.File(tmp_path / "log.mat", "w", userblock_size=512) as file:
        for group, n in (("log/joints/positions", 50), ("log/joints/velocities", 50), ("log/fts", 20)):
            content = {"data": np.arange(2.0 * n).reshape(n, 1, 2), "timestamps": np.arange(n)[:, None] / 100}
            for name, array in (content | {"dimensions": np.array([[2.0], [1.0], [n]])}).items():
                file[f"{group}/{name}"] = array
                file[f"{group}/{name}"].attrs["MATLAB_class"] = np.bytes_("double")
            cells = []
            for k, word in enumerate(("hip", "knee")):
                cell = file.create_dataset(f"#refs#/{group}/{k}", data=np.array([[ord(c)] for c in word], dtype="u2"))
                cells.append(cell.ref)
            names = file.create_dataset(f"{group}/elements_names", data=np.array([cells], dtype=h5py.ref_dtype))
            names.attrs["MATLAB_class"] = np.bytes_("cell")
    with (tmp_path / "log.mat").open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    found = streams(tmp_path / "log.mat")
    assert set(found) == {"log.joints.positions", "log.joints.velocities", "log.fts"}
    stream = found["log.joints.positions"]
    assert (stream.clock, stream.samples) == ("log.joints.positions.timestamps", 50)
    assert stream.columns[1:] == ("log.joints.positions:hip", "log.joints.positions:knee")


@pytest.mark.long
@pytest.mark.skipif(not REAL.exists(), reason="the data of real robots is not beside the repository")
def test_real_robots():
    one_leg = streams(REAL / "icub_one_leg/left_leg.npz")
    assert len(one_leg) == 10
    assert all(stream.clock == f"{name}_t" for name, stream in one_leg.items())
    assert one_leg["ft_left_foot"].columns == ("ft_left_foot_t", *(f"ft_left_foot[{k}]" for k in range(6)))
    bowing = streams(REAL / "human_bowing/ExperimentDataset.mat")[""]
    assert (bowing.samples, bowing.clock, len(bowing.columns)) == (1465, None, 2 + 2 + 2 + 3 + 6 + 6)
    assert {"joints.q[1]", "sensors.fts_footFrame[5]"} < set(bowing.columns)
    with open_log(REAL / "panda_bag/panda_exciting_trajectory.db3") as bag:
        (arm,) = bag.streams
        assert (arm.samples, arm.clock, arm.kind) == (727, "/joint_states.header.stamp", "sensor_msgs/msg/JointState")
        (block,) = bag.read({arm.name: [arm.clock, "/joint_states.effort:fer_joint2"]})
        assert (np.diff(block.values[0]) > 0).all()
        assert np.isfinite(block.values[1]).all()

    pytest.importorskip("h5py")
    (walking,) = streams(REAL / "icub_walking/walking.mat").values()
    assert (walking.samples, walking.clock) == (1188, "estimatorJointsTime")
    assert {"estimatorJointsPos[25]", "imuAcc[2]", "lfForceZ"} < set(walking.columns)

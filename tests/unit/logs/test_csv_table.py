"""Logs in text tables and in files of arrays: names, clocks, pieces, and what is no sample."""

import gzip
from pathlib import Path

import numpy as np
import pytest
import scipy.io

from nori_dyn.errors import FileFormatError, NoriWarning
from nori_dyn.logs.formats.registry import open_log


def read(path, *columns, text=None):
    """The columns of a table, which is written first where its text is given."""
    if text is not None:
        path.write_text(text)
    with open_log(path) as source:
        wanted = columns or source.streams[0].columns
        blocks = list(source.read({"": wanted}))
    values = [np.concatenate(each) for each in zip(*(block.values for block in blocks), strict=True)]
    return dict(zip(wanted, (each.tolist() for each in values), strict=True))


@pytest.fixture
def path(tmp_path):
    return tmp_path / "log.csv"


@pytest.mark.parametrize("delimiter", [",", ";"])
def test_cells_that_hold_lists_are_columns(tmp_path, delimiter):
    """As pandas writes them."""
    q, rng = np.random.default_rng(0).normal(size=(20, 3)), range(20)
    cells = [["state", f"{0.01 * k:.2f}", f'"{q[k].tolist()}"', f'"{str(q[k]).strip()}"'] for k in rng]
    lines = [["type", "time [s]", "positions", "about"], *cells]
    (tmp_path / "log.csv").write_text("\n".join(delimiter.join(line) for line in lines))
    with open_log(tmp_path / "log.csv") as source:
        table = source.table(source.streams[0])
    np.testing.assert_array_equal(np.column_stack([table[f"positions[{k}]"] for k in range(3)]), q)
    np.testing.assert_allclose(np.column_stack([table[f"about[{k}]"] for k in range(3)]), q, atol=1e-6)
    np.testing.assert_allclose(table["time [s]"], 0.01 * np.arange(20))


def test_the_first_line_may_hold_numbers(path):
    numbers = "798.467,-0.03,1e-3\n798.469,-0.04,0\n"
    found = read(path, text=numbers)
    assert found == {"column[0]": [798.467, 798.469], "column[1]": [-0.03, -0.04], "column[2]": [1e-3, 0]}
    with pytest.raises(FileFormatError, match=r"log\.csv:2: has 3 cells, and the first line of numbers has 2"):
        read(path, text="1,2\n1,2,3\n")


def test_names_may_stand_in_a_remark(tmp_path):
    path = tmp_path / "log.txt"
    np.savetxt(path, [[1, 2], [3, 4]], header="made by a robot\nq[0] q[1]")
    assert read(path) == {"q[0]": [1, 3], "q[1]": [2, 4]}
    assert read(path, text="# made by a robot\n1 2\n3 4\n") == {"column[0]": [1, 3], "column[1]": [2, 4]}
    found = read(path, text="# made by: a robot\nq[0] q[1]\n# more\n1 2\n3 4\n")
    assert found == {"q[0]": [1, 3], "q[1]": [2, 4]}


@pytest.mark.parametrize("delimiter", [";", "\t"])
@pytest.mark.parametrize("fast", [True, False])
def test_decimals_may_stand_behind_commas_where_something_else_stands_between_cells(path, monkeypatch, delimiter, fast):
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.PIECE", 1000)
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.LARGE", 0 if fast else 1 << 30)
    lines = [["t [s]", "q, of one", "mode"], *[["0,5", "-1,5e-1", "a, b"], ["1", "", "b"], ["1,5", "2", "c"]] * 100]
    found = read(path, text="\n".join(map(delimiter.join, lines)))
    np.testing.assert_equal(found, {"t [s]": [0.5, 1.0, 1.5] * 100, "q, of one": [-0.15, np.nan, 2.0] * 100})


def test_columns_of_text_are_left_out_and_others_not_looked_at(path):
    assert str(read(path, text="mode,q[0],\nidle,1,x\nrun,,y\n")) == "{'q[0]': [1.0, nan]}"
    assert read(path, "a", text="a,b\n1,2\n3,broken\n") == {"a": [1, 3]}


@pytest.mark.parametrize("fast", [True, False])
def test_pieces_end_at_lines_and_errors_name_them(path, monkeypatch, fast):
    if fast:
        pytest.importorskip("pyarrow")
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.PIECE", 1000)
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.LARGE", 0 if fast else 1 << 30)
    rows = np.random.default_rng(0).normal(size=(500, 3))
    lines = ["a, b,c", *(f"{x:.17g}, {y:.17g},{z:.17g}" for x, y, z in rows.tolist())]
    lines[7] = '"1", ,3'
    lines[400:400] = ["", "  ", "# a remark"]
    path.write_text("\r\n".join(lines))
    rows[6] = [1, np.nan, 3]
    found = read(path, "c", "a", "b")
    np.testing.assert_array_equal([found["a"], found["b"], found["c"]], rows.T)
    with open_log(path) as source:
        assert source.place("", 0) == f"{path}:2"
        assert source.place("", 398) == f"{path}:400"
        assert source.place("", 399) == f"{path}:404"
    for wrong, said in (("1,2", "has 2 cells, and the first line names 3"), ("1,x,3", "column 'b' is 'x'")):
        with pytest.raises(FileFormatError, match=rf"log\.csv:451: {said}"):
            read(path, text="\n".join([*lines[:450], wrong, *lines[451:]]))


def test_names_alone_are_no_samples_and_what_is_too_long_is_told(path, monkeypatch):
    path.write_text("q[0],q[1]\n")
    with open_log(path) as source:
        assert source.streams[0].columns == ("q[0]", "q[1]")
        assert list(source.read({"": ["q[0]"]})) == []
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.LONGEST", 1 << 20)
    path.with_suffix(".csv.gz").write_bytes(gzip.compress(b"1" * (6 << 20)))
    with pytest.raises(FileFormatError, match="is not a line of text"):
        open_log(path.with_suffix(".csv.gz"))
    with pytest.raises(FileFormatError, match=r"log\.csv:3: column 'a'"):
        read(path, text='a,b\n1,2\n"' + "1" * 200_000 + '",2\n')


def test_times_by_the_calendar(path):
    pd = pytest.importorskip("pandas")
    times = pd.date_range("2024-05-01 12:30:00.25", periods=3, freq="10ms", tz="Europe/Rome")
    table = pd.DataFrame({"q": [1.0, 2.0, np.nan], "mode": ["a", "b", "c"]}, index=times)
    table.to_csv(path, index_label="stamp of it")
    with open_log(path) as source:
        (stream,) = source.streams
        assert (stream.columns, stream.clock) == (("stamp of it", "q"), "stamp of it")
        assert stream.units == {"stamp of it": "s"}
    found = read(path, "q", "stamp of it")
    np.testing.assert_array_equal(found["q"], [1, 2, np.nan])
    np.testing.assert_allclose(found["stamp of it"], times.as_unit("ns").astype("int64") / 1e9, rtol=0, atol=1e-6)
    with pytest.raises(FileFormatError, match=r"log\.csv:3: column 'column\[0\]' is 'soon', which is not a number"):
        read(path, text="2024-05-01T12:30:00Z,1\n2024-05-01T12:30:01Z,2\nsoon,3\n")


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


def test_columns_of_one_name_are_told_and_not_read(tmp_path):
    (tmp_path / "log.csv").write_text("t,i_0,q[0],i_0\n0,1,2,3\n1,4,5,6\n")
    with pytest.warns(NoriWarning, match="has two columns 'i_0', which are not read"):
        source = open_log(tmp_path / "log.csv")
    assert source.streams[0].columns == ("t", "q[0]")
    (block,) = source.read({"": ("q[0]",)})
    assert block.values[0].tolist() == [2, 5]


def test_samples_of_matrices_of_several_lengths_are_along_the_long_side(tmp_path):
    whole = {"q": np.ones((400, 7)), "tau": np.ones((7, 400)), "q_few": np.ones((100, 7)), "tau_few": np.ones((100, 7))}
    gains = {f"gain{k}": np.ones(7) for k in range(9)} | {"k_T": np.array([3.0, 3, 3, 2, 2, 1, 1])}  # that is no time
    scipy.io.savemat(tmp_path / "log.mat", whole | gains)
    with open_log(tmp_path / "log.mat") as source:
        assert sorted((stream.samples, len(stream.columns)) for stream in source.streams) == [(100, 14), (400, 14)]


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


def test_headers_of_opensim_are_left_out_and_samples_side_by_side_told(tmp_path):
    text = "walk\nversion=1\nnRows=2\nnColumns=2\ninDegrees=yes\nendheader\ntime\thip_flexion\n0.0\t1.5\n0.1\t2.5\n"
    assert read(tmp_path / "walk.sto", text=text) == {"time": [0, 0.1], "hip_flexion": [1.5, 2.5]}
    assert read(tmp_path / "log.dat", text="1 2\n3 4\n") == {"column[0]": [1, 3], "column[1]": [2, 4]}
    np.savetxt(tmp_path / "tau.dat", np.zeros((2, 2000)))
    with pytest.raises(FileFormatError, match="2,000 numbers a line and few lines: samples seem to stand side by side"):
        read(tmp_path / "tau.dat")


def test_structures_and_cells_of_matlab_are_read(tmp_path):
    path, q = tmp_path / "log.mat", np.arange(8.0).reshape(4, 2)
    parts = np.array([(q[:, 0], q), (q[:2, 0], q[:2])], dtype=[("t", "O"), ("q", "O")])
    scipy.io.savemat(path, {"trial": {"part": parts}, "cell": np.array([np.arange(3.0), "text"], dtype=object)})
    with open_log(path) as source:
        columns = {stream.clock: set(stream.columns) for stream in source.streams}
        (block,) = source.read({source.streams[1].name: ["trial.part[1].q[1]"]})
    assert columns["trial.part[0].t"] == {"trial.part[0].t", "trial.part[0].q[0]", "trial.part[0].q[1]"}
    assert columns[None] == {"cell[0]"}
    assert block.values[0].tolist() == [1, 3]


def test_objects_of_matlab_and_of_python_are_left_out_by_name(tmp_path):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path := tmp_path / "log.mat", "w", userblock_size=512) as file:
        for name, kind in (("joints", "timeseries"), ("order", "string")):
            file[name] = np.zeros((1, 6), np.uint32)
            file[name].attrs.update({"MATLAB_class": np.bytes_(kind), "MATLAB_object_decode": np.int32(3)})
    with pytest.raises(FileFormatError, match="'joints': it is an object of MATLAB's class timeseries: save") as found:
        open_log(path)
    assert "order" not in str(found.value)
    np.savez(tmp_path / "log.npz", q=np.zeros((3, 2)), contacts=np.array({"a": 1}, dtype=object))
    with pytest.warns(NoriWarning, match="some of its arrays are not read: 'contacts': it holds object, not plain num"):
        assert open_log(tmp_path / "log.npz").streams[0].columns == ("q[0]", "q[1]")

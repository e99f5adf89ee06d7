"""The laws of sources and writers of logs, for every format, with files that other libraries wrote and read."""

import gzip
import json
import shutil
import tracemalloc
import warnings
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError
from nori_dyn.logs.formats.registry import FORMATS, format_of, open_log, writer_of
from nori_dyn.logs.formats.source import LogSource
from nori_dyn.logs.formats.writer import Field, FileSchema, flat
from nori_dyn.model.joints import FORCE, MOTION
from tests.noted import noted
from tests.peers import Peer

pa, pq, pa_feather = Peer("pyarrow"), Peer("pyarrow.parquet"), Peer("pyarrow.feather")
pd, h5py, scipy_io = Peer("pandas"), Peer("h5py"), Peer("scipy.io")
mcap_reader, mcap_writer = Peer("mcap.reader"), Peer("mcap.writer")
bags, bag1_files, bag2_files = Peer("rosbags.highlevel"), Peer("rosbags.rosbag1"), Peer("rosbags.rosbag2")
typesys = Peer("rosbags.typesys")

N, BLOCK = 350, 64
JOINTS = ("hip", "knee", "ankle")

Columns = dict[str, np.ndarray]


@cache
def messages_of(ros: str) -> Any:
    return typesys.get_typestore(typesys.Stores[{"ros1": "ROS1_NOETIC", "ros2": "ROS2_JAZZY"}[ros]])


def numbers(seed: int = 3) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    t = 1.7e9 + np.cumsum(rng.integers(1, 9, N)) / 1024
    return t, rng.normal(size=(N, 3)), rng.normal(size=(N, 3)) * 1e-7


def table() -> Columns:
    t, q, tau = numbers()
    return {"t": t, **by_number(q=q), **{f"tau:{n}": tau[:, k] for k, n in enumerate(JOINTS)}}


def by_number(**arrays: np.ndarray) -> Columns:
    """The columns of arrays by their names."""
    return {f"{name}[{k}]": column for name, array in arrays.items() for k, column in enumerate(array.T)}


# ------------------------------------------------------------- files that others write, and what is in them


def csv(path: Path, **how: object) -> Columns:
    pd.DataFrame(table()).to_csv(path, index=False, **how)
    return table()


def nameless(path: Path) -> Columns:
    columns = table()
    np.savetxt(path, np.column_stack(list(columns.values())), delimiter=" ", fmt="%.17g")
    return {f"column[{k}]": column for k, column in enumerate(columns.values())}


def npz(path: Path, save: Callable[..., None] = np.savez) -> Columns:
    t, q, tau = numbers()
    save(path, t=t, q=q, tau=np.asfortranarray(tau), note="text")
    return {"t": t, **by_number(q=q, tau=tau)}


def npy(path: Path) -> Columns:
    columns = table()
    np.save(path, np.array(list(zip(*columns.values(), strict=True)), dtype=[(name, float) for name in columns]))
    return columns


def records(path: Path, lines: bool = False) -> Columns:
    """Write records with lists, structures, and numbers that lack."""
    t, q, tau = numbers()
    read = [None if k == 5 else row.tolist()[0] for k, row in enumerate(tau)]
    rows = [
        {"time": t[k], "arm": {"q": q[k].tolist()}, "grip": read[k], "note": "text", "x": [0.0] * (k % 2)}
        | {"motors": [{"tau": x} for x in tau[k].tolist()]}
        for k in range(N)
    ]
    path.write_text("\n".join(map(json.dumps, rows)) if lines else json.dumps(rows))
    grip = np.where(np.arange(N) == 5, np.nan, tau[:, 0])
    return {"time": t, **by_number(**{"arm.q": q, "motors.tau": tau}), "grip": grip}


def arrays(path: Path) -> Columns:
    t, q, tau = numbers()
    path.write_text(json.dumps({"robot": "arm", "rate": 100, "t": t.tolist(), "q": q.tolist(), "tau": tau.tolist()}))
    return {"t": t, **by_number(q=q, tau=tau)}


def tables(path: Path) -> Columns:
    """Write a table for times, for positions, and for torques, beside what is none."""
    path.mkdir()
    t, q, tau = numbers()
    np.savetxt(path / "time.txt", t, fmt="%.17g")
    np.save(path / "q.npy", q)
    pd.DataFrame(dict(zip(JOINTS[:2], tau.T, strict=False))).to_csv(path / "tau.csv", index=False)
    scipy_io.savemat(path / "pull.mat", {"pull": tau[:, 2:]})
    (path / "about.md").write_text("An arm.")
    return {"time": t, **by_number(q=q), "tau.hip": tau[:, 0], "tau.knee": tau[:, 1], "pull": tau[:, 2]}


def parquet(path: Path) -> Columns:
    pd.DataFrame(table()).to_parquet(path, row_group_size=100)
    return table()


def lists(path: Path) -> Columns:
    """Write lists of one length, structures, times, and numbers that lack."""
    t, q, tau = numbers()
    fixed = pa.FixedSizeListArray.from_arrays(q.ravel(), 3)
    some = [None if k == 5 else row.tolist() for k, row in enumerate(tau)]
    ns = np.rint(t * 1e9).astype("M8[ns]")
    within = [{"x": float(x), "ok": True} for x in q[:, 0]]
    whole = [None if k == 7 else k for k in range(N)]
    content = {"time": ns, "q": fixed, "tau": some, "imu": within, "k": whole, "text": ["a"] * N}
    pq.write_table(pa.table(content), path, row_group_size=100)
    tau[5] = np.nan
    k = np.where(np.arange(N) == 7, np.nan, np.arange(N))
    more = {"imu.x": q[:, 0], "imu.ok": np.ones(N), "k": k}
    return {"time": ns.astype(np.int64) / 1e9, **by_number(q=q, tau=tau), **more}


def feather(path: Path) -> Columns:
    pa_feather.write_feather(pa.table(table()), path, chunksize=100)
    return table()


def arrow_stream(path: Path) -> Columns:
    content = pa.table(table())
    with pa.ipc.new_stream(path, content.schema) as file:
        file.write_table(content, 100)
    return table()


def mat(path: Path) -> Columns:
    t, q, tau = numbers()
    scipy_io.savemat(path, {"time": t, "arm": {"q": q, "tau": tau.T}, "gravity": np.eye(3), "name": "robot"})
    return {"time": t, **by_number(**{"arm.q": q, "arm.tau": tau})}


def mat73(path: Path) -> Columns:
    """Write as MATLAB 7.3 does: what has N rows and 3 columns there is an array (3, N) in HDF5."""
    t, q, tau = numbers()
    with h5py.File(path, "w", userblock_size=512) as file:
        for name, array in (("time", t[None]), ("arm/q", q.T), ("arm/tau", tau)):
            file[name] = array
            file[name].attrs["MATLAB_class"] = np.bytes_("double")
        file["name"] = np.array([[ord(c)] for c in "robot"], dtype=np.uint16)
        file["name"].attrs["MATLAB_class"] = np.bytes_("char")
    with path.open("r+b") as raw:
        raw.write(b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM")
    return {"time": t, **by_number(**{"arm.q": q, "arm.tau": tau})}


def hdf5(path: Path) -> Columns:
    t, q, tau = numbers()
    with h5py.File(path, "w") as file:
        file["arm/timestamps"], file["arm/q"], file["arm/tau"] = t, q, tau.astype("f4")
        file["arm/q"].attrs["units"] = "deg"
        file["arm/names"] = ["a", "b"]
    return {"arm/timestamps": t, **by_number(**{"arm/q": q, "arm/tau": tau.astype("f4").astype(float)})}


def joint_states(ros: str) -> tuple[list[tuple[int, object]], Columns]:
    """Messages, with their times, whose joints change their order, and one that lacks one."""
    t, q, tau = numbers()
    tau = tau.copy()
    types = messages_of(ros).types
    messages: list[tuple[int, object]] = []
    for k in range(N):
        order = [[0, 1, 2], [2, 0, 1]][k % 2]
        ns = int(np.rint(t[k] * 1e9))
        more = {"seq": k} if ros == "ros1" else {}
        stamp = types["builtin_interfaces/msg/Time"](sec=ns // 10**9, nanosec=ns % 10**9)
        header = types["std_msgs/msg/Header"](stamp=stamp, frame_id="base" * (k % 3), **more)
        if k == 11:
            order, tau[k] = [0, 1], np.nan
        message = types["sensor_msgs/msg/JointState"](
            header=header,
            name=[JOINTS[j] for j in order],
            position=q[k, order],
            velocity=np.zeros(0),
            effort=np.zeros(0) if k == 11 else tau[k, order],
        )
        messages.append((ns + 1000, message))
    q = q.copy()
    q[11, 2] = np.nan
    of = (("position", q), ("effort", tau))
    columns = {f"/arm.{key}:{name}": array[:, k] for key, array in of for k, name in enumerate(JOINTS)}
    times = np.array([ns for ns, _ in messages])
    columns["/arm.header.stamp"] = (times - 1000) // 10**9 + (times - 1000) % 10**9 / 1e9
    columns["/arm.log_time"] = times // 10**9 + times % 10**9 / 1e9
    return messages, columns


KIND = "sensor_msgs/msg/JointState"


def mcap(path: Path, encoding: str = "cdr", **how: object) -> Columns:
    ros, name = ("ros1", "sensor_msgs/JointState") if encoding == "ros1" else ("ros2", KIND)
    store = messages_of(ros)
    serialize = getattr(store, f"serialize_{encoding}")
    messages, columns = joint_states(ros)
    with path.open("wb") as raw:
        file = mcap_writer.Writer(raw, chunk_size=4096, **how)
        file.start()
        text = store.generate_msgdef(KIND, ros_version=int(ros[-1]))[0].encode()
        channel = file.register_channel("/arm", encoding, file.register_schema(name, f"{ros}msg", text))
        for time, message in messages:
            file.add_message(channel, time, bytes(serialize(message, KIND)), time)
        file.finish()
    return columns


def bag1(path: Path, compression: str = "") -> Columns:
    messages, columns = joint_states("ros1")
    bag = bag1_files.Writer(path)
    if compression:
        bag.set_compression(bag.CompressionFormat[compression])
    write_bag(bag, "ros1", messages)
    return columns


def bag2(path: Path, storage: str = "SQLITE3", packed: str = "NONE") -> Columns:
    messages, columns = joint_states("ros2")
    bag = bag2_files.Writer(path, version=9, storage_plugin=bag2_files.StoragePlugin[storage])
    if packed != "NONE":
        bag.set_compression(bag2_files.CompressionMode[packed], bag2_files.CompressionFormat.ZSTD)
    write_bag(bag, "ros2", messages)
    return columns


def write_bag(bag: Any, ros: str, messages: list[tuple[int, object]]) -> None:
    store = messages_of(ros)
    serialize = store.serialize_ros1 if ros == "ros1" else store.serialize_cdr
    with bag:
        connection = bag.add_connection("/arm", KIND, typestore=store)
        for time, message in messages:
            bag.write(connection, time, serialize(message, KIND))


def bare_db3(path: Path) -> Columns:
    columns = bag2(path.parent / "bag")
    shutil.move(path.parent / "bag/bag.db3", path)
    return columns


def packed_db3(path: Path) -> Columns:
    columns = bare_db3(path.parent / "bare.db3")
    path.write_bytes(gzip.compress((path.parent / "bare.db3").read_bytes()))
    return columns


WRITTEN: dict[str, Callable[[Path], Columns]] = {
    "pandas.csv": csv,
    "pandas.csv.gz": csv,
    "tabs.tsv": lambda path: csv(path, sep="\t"),
    "nameless.txt": nameless,
    "numpy.npz": npz,
    "packed.npz": lambda path: npz(path, np.savez_compressed),
    "numpy.npy": npy,
    "records.json": records,
    "lines.jsonl": lambda path: records(path, lines=True),
    "arrays.json": arrays,
    "tables_folder": tables,
    "pandas.parquet": parquet,
    "lists.parquet": lists,
    "arrow.feather": feather,
    "stream.arrow": arrow_stream,
    "scipy.mat": mat,
    "matlab73.mat": mat73,
    "h5py.h5": hdf5,
    "zstd.mcap": mcap,
    "lz4.mcap": lambda path: mcap(path, compression=mcap_writer.CompressionType.LZ4),
    "noindex.mcap": lambda path: mcap(
        path, index_types=mcap_writer.IndexType.NONE, compression=mcap_writer.CompressionType.NONE
    ),
    "nochunks.mcap": lambda path: mcap(path, use_chunking=False),
    "ros1.mcap": lambda path: mcap(path, "ros1"),
    "ros1.bag": bag1,
    "bz2.bag": lambda path: bag1(path, "BZ2"),
    "packed.bag": lambda path: bag1(path, "LZ4"),
    "ros2_folder": bag2,
    "ros2_folder_mcap": lambda path: bag2(path, "MCAP"),
    "ros2_packed_messages": lambda path: bag2(path, packed="MESSAGE"),
    "ros2_packed_file": lambda path: bag2(path, packed="FILE"),
    "bare.db3": bare_db3,
    "packed.db3.gz": packed_db3,
}


@pytest.fixture(scope="session")
def written(tmp_path_factory):
    """A file by its name, and what is in it; each is written once."""
    known: dict[str, tuple[Path, Columns]] = {}

    def make(name: str) -> tuple[Path, Columns]:
        if name not in known:
            path = tmp_path_factory.mktemp("log") / name
            known[name] = path, WRITTEN[name](path)
        return known[name]

    return make


@pytest.fixture(params=list(WRITTEN))
def log(request, written):
    return written(request.param)


@pytest.fixture(autouse=True)
def small_blocks(monkeypatch):
    for library in ("pyarrow", "h5py", "mcap", "rosbags", "pandas"):
        pytest.importorskip(library)
    for each in {*(each.module for each in FORMATS), "arrays", "topics"}:
        monkeypatch.setattr(f"nori_dyn.logs.formats.{each}.BLOCK", BLOCK, raising=False)


def read(source: LogSource, stream: str, columns: list[str]) -> Columns:
    """Columns of a stream, and check that its blocks follow each other."""
    found: list[tuple[np.ndarray, ...]] = []
    at = 0
    for block in source.read({stream: columns}):
        assert (block.stream, block.first) == (stream, at)
        assert len(block) <= BLOCK
        assert all(len(values) == len(block) and values.dtype == float for values in block.values)
        at += len(block)
        found.append(block.values)
    return dict(zip(columns, map(np.concatenate, zip(*found, strict=True)), strict=True))


# ------------------------------------------------------------- laws of sources


def test_every_number_is_read_under_its_name(log):
    path, expected = log
    last, *_, first = expected
    with open_log(path) as source:
        (stream,) = source.streams
        assert expected.keys() <= set(stream.columns) == set(source.columns)
        assert stream.samples in (N, None)
        clocks = (None,) if "column[0]" in expected else ("t", "time", "arm/timestamps", "/arm.header.stamp")
        assert stream.clock in clocks
        assert source.place(stream.name, 200).startswith(str(path))
        found = read(source, stream.name, list(expected))
        blocks = list(source.read({stream.name: [first, last, first]}))  # in any order, and twice
    for name, column in expected.items():
        np.testing.assert_array_equal(found[name], column, err_msg=name)
    for k, name in enumerate((first, last, first)):
        np.testing.assert_array_equal(np.concatenate([block.values[k] for block in blocks]), expected[name])


def test_what_is_cut_off_is_refused_or_read_as_far_as_it_is_whole_with_a_warning(log, tmp_path):
    path, expected = log
    for share in (0.0, 0.02, 0.3, 0.6, 0.9, 0.999):
        cut = tmp_path / str(share) / path.name
        cut.parent.mkdir()
        whole, own = path, cut
        if path.is_dir():
            shutil.copytree(path, cut)
            (whole,) = (each for each in path.iterdir() if each.suffix in (".db3", ".mcap", ".zstd", ".npy"))
            own = cut / whole.name
        own.write_bytes(whole.read_bytes()[: int(share * whole.stat().st_size)])
        check_cut(cut, share, expected)


def check_cut(cut: Path, share: float, expected: Columns) -> None:
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        try:
            with open_log(cut) as source:
                stream = source.streams[0]
                names = [name for name in expected if name in stream.columns]
                found = read(source, stream.name, names)
        except FileFormatError as error:
            if str(cut) not in str(error):
                pytest.fail(str(error))
            return
    is_text = cut.suffix in (".csv", ".tsv", ".txt")  # a text table may end anywhere
    at_end = share > 0.99 and format_of(cut).name not in ("NPZ", "Parquet")  # an index that nobody needs
    assert is_text or at_end or (len(told) == 1 and issubclass(told[0].category, nd.errors.NoriWarning)), share
    for name, values in found.items():
        whole = len(values) - 1 if is_text else len(values)  # of a text table the last row may be cut
        np.testing.assert_array_equal(values[:whole], expected[name][:whole], err_msg=f"{name}, cut at {share}")


def test_what_is_not_there_or_of_another_format_is_refused(tmp_path):
    noise = bytes(np.random.default_rng(1).integers(0, 256, 5000, dtype=np.uint8))
    for ending in (ending for each in FORMATS for ending in each.endings):
        path = tmp_path / f"log{ending}"
        with noted(ending):
            with pytest.raises(FileFormatError, match=r"there is no such file"):
                open_log(path)
            for content in (noise, b""):
                path.write_bytes(content)
                with pytest.raises(FileFormatError, match=str(path)):
                    open_log(path)


# ------------------------------------------------------------- laws of writers

WRITERS = [each for each in FORMATS if each.writer]
LINKS = ("l foot", "2nd/hand")
UNITS = ("N m",) * 3 + ("N",) * 3
FIELDS = (
    Field("tau", (3,), tuple(f"tau:{n}" for n in JOINTS), ("N m",) * 3, "tau", JOINTS),
    Field("fx", (2, 6), tuple(f"fx:{n}.{c}" for n in LINKS for c in FORCE), UNITS * 2, "fx", LINKS),
    Field("f:l foot", (6,), tuple(f"f:l foot.{c}" for c in FORCE), UNITS, "f", ("l foot",)),
    Field("a", (1, 6), tuple(f"a:base.{c}" for c in MOTION), ("rad/s^2",) * 3 + ("m/s^2",) * 3, "a", ("base",)),
    Field("qdd:hip", (1,), ("qdd:hip",), ("rad/s^2",), "qdd", ("hip",)),
    Field("sigma:tau", (3,), tuple(f"sigma:tau:{n}" for n in JOINTS), ("N m",) * 3),
    Field("residual", (), ("residual",), ("",)),
    Field("fell_back", (), ("fell_back",), ("",)),
)
METADATA = {"nori_dyn.fingerprint": "0123abcd", "nori_dyn.robot": "ünïcode, 'quotes': and \"more\""}


def estimates(has_time: bool) -> tuple[FileSchema, np.ndarray | None, dict[str, np.ndarray]]:
    rng = np.random.default_rng(5)
    t = 1.7e9 + np.arange(N) / 1000 if has_time else None
    values = {each.name: rng.normal(size=(N, *each.shape)) for each in FIELDS}
    values["residual"][3] = np.nan
    values["tau"][4] = [0.1, 1e300, -5e-324]
    values["fell_back"][:] = 0
    return FileSchema(FIELDS, has_time, METADATA), t, values


def write(
    path: Path, schema: FileSchema, t: np.ndarray | None, values: dict[str, np.ndarray], begin: int, end: int
) -> Path:
    with writer_of(path)(path, schema) as writer:
        for k in range(begin, end, 60):
            own = slice(k, min(k + 60, end))
            writer.write(None if t is None else t[own], {name: value[own] for name, value in values.items()})
    return path


def read_all(path: Path) -> tuple[Columns, dict[str, str], dict[str, str]]:
    with open_log(path) as source:
        found: Columns = {}
        units: dict[str, str] = {}
        for stream in source.streams:
            found.update(read(source, stream.name, list(stream.columns)))
            units.update(stream.units)
        return found, units, dict(source.metadata)


@pytest.fixture(params=[each.endings[0] for each in WRITERS], ids=[each.name for each in WRITERS])
def ending(request):
    return request.param


def test_what_is_written_is_read_to_the_last_bit_with_names_units_and_metadata(tmp_path, ending):
    for has_time in (True, False):
        folder = tmp_path / str(has_time)
        folder.mkdir()
        with noted(has_time):
            check_round_trip(folder, ending, has_time)


def check_round_trip(folder: Path, ending: str, has_time: bool) -> None:
    schema, t, values = estimates(has_time)
    out = write(folder / f"whole{ending}", schema, t, values, 0, N)
    table = flat(schema, t, values)
    found, units, metadata = read_all(out)
    for k, label in enumerate(schema.labels):
        np.testing.assert_array_equal(found[label], table[:, k], err_msg=label)
        assert units.get(label, "") == schema.units[k]
    assert metadata.items() >= METADATA.items()
    assert ("t" in found) == has_time


def test_a_file_without_samples_is_whole(tmp_path, ending):
    schema, t, values = estimates(True)
    with open_log(write(tmp_path / f"out{ending}", schema, t, values, 0, 0)) as source:
        assert sum(len(block) for stream in source.streams for block in source.read({stream.name: stream.columns})) == 0


# ------------------------------------------------------------- what others read of it


@pytest.fixture(scope="module")
def out(tmp_path_factory):
    schema, t, values = estimates(True)
    folder = tmp_path_factory.mktemp("out")
    return {each.endings[0]: write(folder / f"out{each.endings[0]}", schema, t, values, 0, N) for each in WRITERS}


def test_pandas_reads_tables(out):
    schema, t, values = estimates(True)
    expected = pd.DataFrame(dict(zip(schema.labels, flat(schema, t, values).T, strict=True)))
    pd.testing.assert_frame_equal(pd.read_csv(out[".csv"]), expected, check_exact=True, check_dtype=False)
    pd.testing.assert_frame_equal(pd.read_parquet(out[".parquet"]), expected, check_exact=True)
    pd.testing.assert_frame_equal(pd.read_feather(out[".arrow"]), expected, check_exact=True)
    field = pq.read_schema(out[".parquet"])
    assert field.field("tau:hip").metadata == {b"unit": b"N m"}
    assert field.metadata[b"nori_dyn.fingerprint"] == b"0123abcd"


def test_numpy_scipy_and_h5py_read_an_array_a_field(out):
    _, t, values = estimates(True)
    with np.load(out[".npz"]) as found:
        assert set(found) == {"t", "nori_dyn", *values}
        for name, value in values.items():
            np.testing.assert_array_equal(found[name], value)
    matlab = scipy_io.loadmat(out[".mat"])
    np.testing.assert_array_equal(matlab["t"].ravel(), t)
    np.testing.assert_array_equal(matlab["fx"], values["fx"])
    np.testing.assert_array_equal(matlab["sigma_tau"], values["sigma:tau"])
    with h5py.File(out[".h5"]) as file:
        np.testing.assert_array_equal(file["fx"], values["fx"])
        assert list(file["tau"].attrs["labels"]) == [f"tau:{name}" for name in JOINTS]
        assert file.attrs["nori_dyn.fingerprint"] == "0123abcd"


def decoded(out: dict[str, Path], ending: str) -> list[tuple[str, int, object]]:
    """The messages of a file by its own library, decoded by rosbags."""
    if ending == ".mcap":
        with out[ending].open("rb") as raw:
            reader = mcap_reader.make_reader(raw, validate_crcs=True)
            return [
                (channel.topic, message.log_time, messages_of("ros2").deserialize_cdr(message.data, schema.name))
                for schema, channel, message in reader.iter_messages()
            ]
    with bags.AnyReader([out[ending]]) as reader:
        return [(c.topic, time, reader.deserialize(raw, c.msgtype)) for c, time, raw in reader.messages()]


@pytest.mark.parametrize("ending", [".mcap", ".bag", ".ros2"])
def test_messages_have_the_conventions_of_ros(out, ending):
    _, t, values = estimates(True)
    found: dict[str, list[object]] = {}
    times = []
    for topic, time, message in decoded(out, ending):
        found.setdefault(topic, []).append(message)
        times.append(time)
    assert times == sorted(times)
    wrenches = ("wrench/l_foot", "wrench/_2nd_hand", "joint_wrench/l_foot")
    others = ("about", "joint_states", "accel/base", "qdd/hip", "sigma/tau", "residual", "fell_back")
    assert set(found) == {f"/nori_dyn/{topic}" for topic in (*wrenches, *others)}
    k = 17
    state, wrench = found["/nori_dyn/joint_states"][k], found["/nori_dyn/wrench/_2nd_hand"][k]
    assert state.name == list(JOINTS)
    np.testing.assert_array_equal(state.effort, values["tau"][k])
    assert len(state.position) == len(state.velocity) == 0
    stamp = wrench.header.stamp
    assert stamp.sec + stamp.nanosec / 1e9 == t[k]
    assert wrench.header.frame_id == "2nd/hand"
    force, torque = wrench.wrench.force, wrench.wrench.torque
    np.testing.assert_array_equal([torque.x, torque.y, torque.z, force.x, force.y, force.z], values["fx"][k, 1])
    accel = found["/nori_dyn/accel/base"][k].accel
    angular, linear = accel.angular, accel.linear
    np.testing.assert_array_equal([angular.x, angular.y, angular.z, linear.x, linear.y, linear.z], values["a"][k, 0])
    sigma = found["/nori_dyn/sigma/tau"][k]
    np.testing.assert_array_equal(sigma.data, values["sigma:tau"][k])
    assert sigma.layout.dim[0].label == "sigma:tau:hip,sigma:tau:knee,sigma:tau:ankle"
    assert found["/nori_dyn/residual"][k].data == values["residual"][k]
    assert len(found["/nori_dyn/residual"]) == N
    assert "0123abcd" in found["/nori_dyn/about"][0].data


# ------------------------------------------------------------- memory


ROWS = {"rows.npz": np.savez, "rows_packed.npz": np.savez_compressed}
"""Arrays in Fortran's order stand column by column: they are read whole."""


@pytest.mark.parametrize("name", [*ROWS, "pandas.csv", "pandas.csv.gz", "nochunks.mcap", "lz4.mcap"])
def test_memory_does_not_grow_with_the_log(tmp_path, monkeypatch, name):
    """What Python and NumPy hold at once is a small part of the numbers in a file, and no more for a longer one."""
    monkeypatch.setattr("nori_dyn.logs.formats.csv_table.PIECE", 1 << 12)
    monkeypatch.setattr("nori_dyn.logs.formats.topics.WAITING", 1 << 12)
    monkeypatch.setattr("gzip.READ_BUFFER_SIZE", 1 << 12, raising=False)  # there since Python 3.12
    peaks = []
    for n in (50, 500, 4000):  # the first imports what it needs
        monkeypatch.setitem(globals(), "N", n)
        path = tmp_path / str(n) / name
        path.parent.mkdir()
        if name in ROWS:
            t, q, tau = numbers()
            ROWS[name](path, t=t, q=q, tau=tau)
        else:
            WRITTEN[name](path)
        with open_log(path) as source:
            wanted = {stream.name: stream.columns for stream in source.streams}
            tracemalloc.start()
            assert sum(map(len, source.read(wanted))) == n
            peaks.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
    assert peaks[2] < 1.5 * peaks[1] + 20_000

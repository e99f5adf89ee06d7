"""Logs of messages: what is refused and what is read beside it, what is cut off, JSON, folders of bags."""

import json
import shutil
import sqlite3

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.errors import FileFormatError

pytest.importorskip("rosbags")
pytest.importorskip("mcap")

from mcap.reader import make_reader
from mcap.writer import Writer as McapFile
from rosbags.rosbag1 import Writer as Bag1
from rosbags.rosbag2 import Writer as Bag2
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from nori_dyn.logs.formats.registry import open_log

STORE = get_typestore(Stores.ROS2_JAZZY)
FLOAT = "std_msgs/msg/Float64"


def number(x):
    return bytes(STORE.serialize_cdr(STORE.types[FLOAT](data=x), FLOAT))


def read(path, stream, columns):
    with open_log(path) as source:
        blocks = list(source.read({stream: columns}))
    return [np.concatenate(each).tolist() for each in zip(*(block.values for block in blocks), strict=True)]


@pytest.fixture
def several(tmp_path):
    """An MCAP file with topics in several encodings."""
    path = tmp_path / "log.mcap"
    with path.open("wb") as raw:
        file = McapFile(raw, chunk_size=256)
        file.start()
        of = {}
        for topic, name, how, text, encoding in (
            ("/x", FLOAT, "ros2msg", b"float64 data\n", "cdr"),
            ("/proto", "foo.Bar", "protobuf", b"\x00", "protobuf"),
            ("/flat", "foo.Bar", "flatbuffer", b"\x00", "flatbuffer"),
            ("/json", "state", "jsonschema", b"{}", "json"),
            ("/odd", "odd/msg/Odd", "ros2msg", b"other/Missing x\n", "cdr"),
        ):
            of[topic] = file.register_channel(topic, encoding, file.register_schema(name, how, text))
        for k in range(100):
            state = {"arm": {"q": [k, 2 * k], "on": True}, "mode": "run"}
            for topic, data in (("/x", number(k)), ("/proto", b"\x08\x01"), ("/json", json.dumps(state).encode())):
                file.add_message(of[topic], k * 10**9, data, k * 10**9)
            file.add_message(of["/odd"], k * 10**9, b"\0\1\0\0", k * 10**9)
        file.finish()
    return path


ONE_MAY_BE_REFUSED = pytest.mark.filterwarnings("ignore:.*some of its topics are not read:nori_dyn.errors.NoriWarning")


def test_topics_that_cannot_be_read_are_told_and_the_others_are_read(several):
    with pytest.warns(
        nd.errors.NoriWarning, match=r"some of its topics are not read: '/proto', as .*'protobuf', which is"
    ):
        source = open_log(several)
    with source:
        assert {stream.name for stream in source.streams} == {"/x", "/json"}
        assert "'protobuf', which is not read" in source.refused["/proto"]
        assert "'flatbuffer', which is not read" in source.refused["/flat"]
        assert "other/msg/Missing" in source.refused["/odd"]


@ONE_MAY_BE_REFUSED
def test_the_other_topics_are_read_and_json(several):
    assert read(several, "/x", ["/x.data", "/x.log_time"]) == [list(range(100))] * 2
    found = read(several, "/json", ["/json.arm.q[1]", "/json.arm.on", "/json.mode"])
    assert found[:2] == [[2.0 * k for k in range(100)], [1.0] * 100]
    assert np.isnan(found[2]).all()


@ONE_MAY_BE_REFUSED
def test_several_topics_come_in_about_the_order_of_their_times(several, monkeypatch):
    monkeypatch.setattr("nori_dyn.logs.formats.topics.BLOCK", 10)
    with open_log(several) as source:
        blocks = list(source.read({"/x": ["/x.log_time"], "/json": ["/json.log_time"]}))
    seen = {"/x": 0.0, "/json": 0.0}
    for block in blocks:
        seen[block.stream] = block.values[0][-1]
        assert abs(seen["/x"] - seen["/json"]) <= 11


@ONE_MAY_BE_REFUSED
def test_what_is_whole_of_a_file_that_is_cut_off_is_read_with_a_warning(several):
    several.write_bytes(several.read_bytes()[: several.stat().st_size // 3])
    said = r"log\.mcap: is cut off, or damaged, before byte \d+.* messages before are"
    with pytest.warns(nd.errors.NoriWarning, match=said):
        (data,) = read(several, "/x", ["/x.data"])
    assert 10 < len(data) < 100
    assert data == list(range(len(data)))


@ONE_MAY_BE_REFUSED
def test_a_damaged_chunk_is_refused_with_its_place(several):
    with several.open("rb") as raw:
        chunk = make_reader(raw).get_summary().chunk_indexes[5]
    content = bytearray(several.read_bytes())
    content[chunk.chunk_start_offset + chunk.chunk_length - 20] ^= 0xFF
    several.write_bytes(content)
    with pytest.raises(FileFormatError, match=r"log\.mcap: is damaged: the chunk at byte \d+ cannot be read"):
        read(several, "/x", ["/x.data"])


def test_a_log_of_which_nothing_can_be_read_is_refused(tmp_path):
    path = tmp_path / "log.mcap"
    with path.open("wb") as raw:
        file = McapFile(raw)
        file.start()
        channel = file.register_channel("/proto", "protobuf", file.register_schema("foo.Bar", "protobuf", b""))
        file.add_message(channel, 1, b"", 1)
        file.finish()
    said = r"none of its topics can be read: '/proto', as its messages are in 'proto"
    with pytest.raises(FileFormatError, match=said):
        open_log(path)


@pytest.fixture
def bag(tmp_path):
    """The folder of a bag of ROS 2, with a kind of messages that only the bag defines."""
    store = get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg("float32 current\nbuiltin_interfaces/Time when\n", "odd/msg/Motor"))
    with Bag2(tmp_path / "bag", version=9) as file:
        motor = file.add_connection("/motor", "odd/msg/Motor", typestore=store)
        x = file.add_connection("/x", FLOAT, typestore=store)
        for k in range(20):
            when = store.types["builtin_interfaces/msg/Time"](sec=k, nanosec=5)
            message = store.types["odd/msg/Motor"](current=k / 2, when=when)
            file.write(motor, k, store.serialize_cdr(message, "odd/msg/Motor"))
            file.write(x, k, number(k))
    return tmp_path / "bag"


def test_a_bag_of_ros_1_that_is_cut_off_is_refused_and_told_how_to_mend_it(tmp_path):
    store, path = get_typestore(Stores.ROS1_NOETIC), tmp_path / "log.bag"
    with Bag1(path) as file:
        connection = file.add_connection("/x", FLOAT, typestore=store)
        for k in range(200):
            file.write(connection, k * 10**9, store.serialize_ros1(store.types[FLOAT](data=float(k)), FLOAT))
    whole = path.read_bytes()
    for share in (0.02, 0.4, 0.95):
        path.write_bytes(whole[: int(share * len(whole))])
        with pytest.raises(FileFormatError, match=r"log\.bag: is damaged.*`rosbag reindex`"):
            open_log(path)


def test_kinds_that_only_the_bag_defines_also_without_metadata_but_of_one_file(bag):
    current, when = read(bag, "/motor", ["/motor.current", "/motor.when"])
    assert current == [k / 2 for k in range(20)]
    assert when == [k + 5e-9 for k in range(20)]
    (bag / "metadata.yaml").unlink()
    assert read(bag, "/x", ["/x.data"]) == [list(range(20))]
    shutil.copy(bag / "bag.db3", bag / "again.db3")
    with pytest.raises(FileFormatError, match=r"it has no metadata\.yaml, and 2 files"):
        open_log(bag)


@ONE_MAY_BE_REFUSED
def test_kinds_that_nobody_defines_are_told_and_a_folder_that_is_no_bag_is_refused(bag, tmp_path):
    with sqlite3.connect(bag / "bag.db3") as base:
        base.execute("DELETE FROM message_definitions")
    base.close()
    with open_log(bag) as source:
        assert [stream.name for stream in source.streams] == ["/x"]
        assert "odd/msg/Motor is not defined in the file" in source.refused["/motor"]
    with pytest.raises(FileFormatError, match="holds no bag of ROS 2, and no tables"):
        open_log(tmp_path)

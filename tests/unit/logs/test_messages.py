"""Messages of ROS as columns: every kind that comes with ROS, as rosbags decodes it, and JointStates that differ."""

import re

import numpy as np
import pytest

pytest.importorskip("rosbags")

from rosbags.typesys import Stores, get_typestore

from nori_dyn.logs.messages.kinds import MalformedMessage, parsed_types, standard_types
from nori_dyn.logs.messages.topic import Topic, layout_of

STORES = {"cdr": get_typestore(Stores.ROS2_JAZZY), "ros1": get_typestore(Stores.ROS1_NOETIC)}
KIND = "sensor_msgs/msg/JointState"
BAR = "=" * 80
BOTH = pytest.mark.parametrize("encoding", STORES)


def serialized(encoding, message, kind):
    store = STORES[encoding]
    return bytes((store.serialize_cdr if encoding == "cdr" else store.serialize_ros1)(message, kind))


def drawn(store, kind, rng):
    """A message with random numbers, texts and lengths."""

    def number(name):
        if name == "string":
            return "x" * int(rng.integers(0, 6))
        if name == "bool":
            return bool(rng.integers(0, 2))
        return float(np.float32(rng.normal())) if name.startswith("float") else int(rng.integers(0, 100))

    content = {}
    for name, (node, told) in store.fielddefs[kind][1]:
        if node == 2:
            content[name] = drawn(store, told, rng)
        elif node == 1:
            content[name] = number(told[0])
        else:
            (sub, inner), size = told
            size = size if node == 3 else int(rng.integers(0, 4))
            if sub == 2:
                content[name] = [drawn(store, inner, rng) for _ in range(size)]
            elif inner[0] == "string":
                content[name] = [number("string") for _ in range(size)]
            else:
                dtype = {"byte": "u1", "char": "u1", "octet": "u1"}.get(inner[0], inner[0])
                content[name] = np.array([number(inner[0]) for _ in range(size)], dtype=dtype)
    return store.types[kind](**content)


def found_at(message, path):
    for name, index in re.findall(r"\.(\w+)|\[(\d+)\]", path):
        message = getattr(message, name) if name else message[int(index)]
    return message.sec + message.nanosec / 1e9 if hasattr(message, "nanosec") else float(message)


def numbers_in(store, kind, value):
    """How many numbers a message holds; a time is one."""
    if kind in ("builtin_interfaces/msg/Time", "builtin_interfaces/msg/Duration"):
        return 1
    total = 0
    for name, (node, told) in store.fielddefs[kind][1]:
        own = getattr(value, name)
        if node == 2:
            total += numbers_in(store, told, own)
        elif node == 1:
            total += told[0] != "string" and name != "structure_needs_at_least_one_member"
        elif told[0][0] == 2:
            total += sum(numbers_in(store, told[0][1], each) for each in own)
        elif told[0][1][0] != "string":
            total += len(own)
    return total


@BOTH
def test_every_kind_that_comes_with_ros(encoding):
    store, rng = STORES[encoding], np.random.default_rng(2)
    read = 0
    for kind in store.fielddefs:
        try:
            messages = [drawn(store, kind, rng) for _ in range(3)]
        except KeyError:  # of kinds that rosbags does not ship
            continue
        for message in messages:
            data = serialized(encoding, message, kind)
            places = layout_of(data, kind, standard_types(encoding), encoding).places
            assert len(places) == numbers_in(store, kind, message), kind
            topic = Topic("/x", kind, standard_types(encoding), encoding)
            topic.look(data)
            paths = [path for path in places if ":" not in path]
            values = topic.decode([data], [f"/x{path}" for path in paths])[:, 0]
            np.testing.assert_array_equal(values, [found_at(message, path) for path in paths], err_msg=kind)
            read += len(paths)
    assert read > 2000


def joint_state(names, position, velocity=(), effort=(), encoding="cdr", frame="", stamp=(5, 250_000_000), order=None):
    types = STORES[encoding].types
    more = {"seq": 1} if encoding == "ros1" else {}
    time = types["builtin_interfaces/msg/Time"](sec=stamp[0], nanosec=stamp[1])
    header = types["std_msgs/msg/Header"](stamp=time, frame_id=frame, **more)
    arrays = {"position": position, "velocity": velocity, "effort": effort}
    message = types[KIND](header=header, name=list(names), **{k: np.array(v, dtype=float) for k, v in arrays.items()})
    if order is not None:
        return bytes(STORES["cdr"].serialize_cdr(message, KIND, little_endian=order == "little"))
    return serialized(encoding, message, KIND)


def topic(encoding="cdr"):
    return Topic("/joint_states", KIND, standard_types(encoding), encoding)


def looked_at(name, kind, types, data):
    """A topic that has seen a message."""
    found = Topic(name, kind, types, "cdr")
    found.look(data)
    return found


def test_a_time_that_rounds_up_to_a_second_is_that_second():
    data = joint_state(["a"], [0])
    table = np.tile(np.frombuffer(data, dtype=np.uint8), (2, 1))
    layout_of(data, KIND, standard_types("cdr"), "cdr").put(
        table, (".header.stamp",), np.array([[2.99999999999, 4.25]])
    )
    stamps = [STORES["cdr"].deserialize_cdr(row.tobytes(), KIND).header.stamp for row in table]
    assert [(stamp.sec, stamp.nanosec) for stamp in stamps] == [(3, 0), (4, 250_000_000)]


@BOTH
def test_joints_go_by_name_whatever_their_order(encoding):
    arm = topic(encoding)
    messages = [
        joint_state(["a", "b"], [1, 2], [3, 4], [5, 6], encoding),
        joint_state(["b", "a"], [2, 1], [4, 3], [6, 5], encoding),
        joint_state(["b"], [2], [4], [6], encoding),
        joint_state(["a", "b", "c"], [1, 2, 9], [], [5, 6, 9], encoding, frame="a frame"),
        joint_state([], [], [], [], encoding),
    ]
    for message in messages[:4]:
        arm.look(message)
    names = [f"/joint_states.{kind}:{joint}" for kind in ("position", "velocity", "effort") for joint in "ab"]
    a, b = [1, 1, np.nan, 1, np.nan], [1, 1, 1, 1, np.nan]  # of which messages tell each joint; velocities of fewer
    expected = np.outer(np.arange(1, 7), np.ones(5)) * ([a, b] * 3)
    expected[2:4, 3] = np.nan
    np.testing.assert_array_equal(arm.decode(messages, names), expected)
    assert "/joint_states.position:c" in arm.columns
    assert arm.clock == "/joint_states.header.stamp"


def test_either_order_of_bytes_names_that_occur_twice_and_no_stamp():
    messages = [joint_state(["a"], [1.5], order=order) for order in ("little", "big", "little")]
    names = ["/joint_states.position:a", "/joint_states.header.stamp"]
    np.testing.assert_array_equal(topic().decode(messages, names), [[1.5] * 3, [5.25] * 3])
    arm = topic()
    arm.look(joint_state(["a"], [1], stamp=(0, 0)))
    assert arm.clock == "/joint_states.log_time"
    arm = topic()
    arm.look(joint_state(["a", "a"], [1, 2]))
    assert {"/joint_states.position[0]", "/joint_states.position[1]"} < set(arm.columns)


@BOTH
def test_bytes_that_are_no_message_are_told(encoding):
    whole = joint_state(["a", "b"], [1, 2], [3, 4], [5, 6], encoding)
    for size in range(len(whole)):
        with pytest.raises(MalformedMessage):
            topic(encoding).look(whole[:size])
    with pytest.raises(MalformedMessage, match="it ends after"):
        topic(encoding).look(whole + b"12345678")
    rng = np.random.default_rng(4)
    for _ in range(300):
        data = bytearray(whole)
        data[rng.integers(len(data))] = rng.integers(256)
        try:
            arm = topic(encoding)
            arm.look(bytes(data))
            arm.decode([bytes(data)], arm.columns)
        except MalformedMessage:
            pass


def test_a_malformed_message_among_others_is_named():
    whole = joint_state(["a"], [1], [2], [3])
    broken = bytearray(whole)
    broken[20] = 200  # the length of the list of names
    with pytest.raises(MalformedMessage, match="message 2 of /joint_states"):
        topic().decode([whole, whole, bytes(broken)], ["/joint_states.position:a"])


def test_pictures_and_arrays_of_messages_that_are_too_long_are_no_columns():
    kind = "sensor_msgs/msg/Image"
    picture = drawn(STORES["cdr"], kind, np.random.default_rng(1))
    picture.data = np.zeros(100_000, dtype=np.uint8)
    camera = looked_at("/camera", kind, standard_types("cdr"), serialized("cdr", picture, kind))
    assert {"/camera.height", "/camera.width"} < set(camera.columns)
    assert not any(name.startswith("/camera.data") for name in camera.columns)
    types = parsed_types(f"Point[] points\nfloat64 x\n{BAR}\nMSG: odd/Point\nfloat64 x\n", "odd/msg/Cloud")
    data = b"\0\1\0\0" + np.array([5000, 0], "<u4").tobytes() + np.arange(5001.0).tobytes()
    cloud = looked_at("/cloud", "odd/msg/Cloud", types, data)
    assert cloud.columns == ("/cloud.x", "/cloud.log_time")
    assert cloud.decode([data], ["/cloud.x"])[0, 0] == 5000


def test_definitions_come_from_the_file_also_in_idl():
    text = "# Of a module of its own\nInner[] parts\nuint8 LEFT=1\nfloat32[2] pair\nstring[<=3] names\n"
    types = parsed_types(f"{text}{BAR}\nMSG: odd/Inner\nint16 x\n", "odd/msg/Outer")
    data = b"\0\1\0\0" + b"\2\0\0\0" + b"\7\0\xff\xff" + np.array([1.5, -2], "<f4").tobytes() + b"\0\0\0\0"
    odd = looked_at("/odd", "odd/msg/Outer", types, data)
    assert odd.columns[:-1] == ("/odd.parts[0].x", "/odd.parts[1].x", "/odd.pair[0]", "/odd.pair[1]")
    np.testing.assert_array_equal(odd.decode([data], odd.columns[:-1])[:, 0], [7, -1, 1.5, -2])
    with pytest.raises(MalformedMessage, match="cannot be read"):
        parsed_types("float64[ x", "odd/msg/Odd")
    inner = "module odd { module msg { struct Inner { short x; }; }; };"
    outer = "module odd { module msg { struct Outer { odd::msg::Inner part; sequence<double> y; }; }; };"
    text = f"{BAR}\nIDL: odd/msg/Outer\n{outer}\n{BAR}\nIDL: odd/msg/Inner\n{inner}\n"
    types = parsed_types(text, "odd/msg/Outer", is_idl=True)
    data = b"\0\1\0\0" + np.array([7, 0], "<i2").tobytes() + np.array([1], "<u4").tobytes() + np.array(0.5).tobytes()
    odd = looked_at("/odd", "odd/msg/Outer", types, data)
    assert odd.columns[:-1] == ("/odd.part.x", "/odd.y[0]")
    np.testing.assert_array_equal(odd.decode([data], odd.columns[:-1])[:, 0], [7, 0.5])

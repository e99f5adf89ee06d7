"""Keys, tokens and attachments against the design document of ros2/rmw_zenoh, and against hashes seen on the wire."""

import pytest

pytest.importorskip("rosbags", reason="rosbags, of the extra live, is not installed")

from nori_dyn.live.zenoh_transport import Origin, kind_of, node_token, publisher_token, ros_key, ros_keys, type_hash

STRING = "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
CHATTER = f"0/chatter/std_msgs::msg::dds_::String_/{STRING}"


def test_keys_and_tokens_are_those_of_the_design_document():
    assert ros_key(0, "/chatter", "std_msgs/msg/String") == CHATTER
    assert ros_key(0, "/robot1/chatter", "std_msgs/msg/String") == CHATTER.replace("0/", "0/robot1/", 1)
    session = "8b20917502ee955ac4476e0266340d5c"
    listener = "@ros2_lv/2/aac3178e146ba6f1fc6e6a4085e77f21/0/0/NN/%/%/listener"
    assert node_token(2, "aac3178e146ba6f1fc6e6a4085e77f21", "listener") == listener
    talker = (
        f"@ros2_lv/2/{session}/0/10/MP/%/%/talker/%chatter/std_msgs::msg::dds_::String_/{STRING}/::,7:,:,:,,"
    ).replace(",7:", ",10:")  # how many messages are kept is ours
    assert publisher_token(2, session, "talker", 10, "/chatter", "std_msgs/msg/String") == talker


def test_hashes_are_those_that_others_use_and_types_are_read_from_keys():
    assert type_hash("sensor_msgs/msg/Imu") == "RIHS01_7d9a00ff131080897a5ec7e26e315954b8eae3353c3f995c55faf71574000b5b"
    assert type_hash("sensor_msgs/msg/JointState").startswith("RIHS01_a13ee3")
    assert kind_of(CHATTER) == "std_msgs/msg/String"
    assert kind_of("12/a/b/joint_states/sensor_msgs::msg::dds_::JointState_/TypeHashNotSupported") == (
        "sensor_msgs/msg/JointState"
    )
    assert kind_of("joint_states") == kind_of("0/joint_states/x/y") == ""


def test_expressions_of_keys_take_any_hash_of_their_own_topic_and_domain():
    zenoh = pytest.importorskip("zenoh", reason="eclipse-zenoh, of the extra live, is not installed")
    wanted = zenoh.KeyExpr(ros_keys(3, "/arm/joint_states"))
    types = "sensor_msgs::msg::dds_::JointState_/RIHS01_12"
    assert wanted.includes(zenoh.KeyExpr(f"3/arm/joint_states/{types}"))
    for other in (f"4/arm/joint_states/{types}", f"3/joint_states/{types}", f"3/arm/joint_states/more/{types}"):
        assert not wanted.includes(zenoh.KeyExpr(other))


def test_attachments_are_laid_out_as_the_design_document_says():
    publisher = bytes(range(16))
    attachment = Origin(5, 1_700_000_000_123_456_789, publisher).attachment()
    numbers = b"".join(number.to_bytes(8, "little") for number in (5, 1_700_000_000_123_456_789))
    assert attachment == numbers + b"\x10" + publisher
    assert Origin.of(attachment) == Origin(5, 1_700_000_000_123_456_789, publisher)
    for other in (b"", b"short", bytes(33), bytes(34)):
        assert Origin.of(other) is None


def test_attachments_are_those_of_zenohs_own_serialiser():
    ext = pytest.importorskip("zenoh", reason="eclipse-zenoh, of the extra live, is not installed").ext
    publisher = bytes(range(16))
    theirs = [ext.z_serialize(each).to_bytes() for each in (ext.Int64(5), ext.Int64(77), publisher)]
    assert Origin(5, 77, publisher).attachment() == b"".join(theirs)

"""The latest numbers of streams, and their inbox, against what is said of a few messages by hand."""

import threading

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.live.state import SETTLED, State
from nori_dyn.live.transport import Inbox, Message
from nori_dyn.logs.formats.source import Stream
from nori_dyn.logs.mapping.binding import bind
from nori_dyn.logs.mapping.log_mapping import LogMapping
from nori_dyn.logs.mapping.record import ALWAYS, SampleRecord

JOINTS = "/joint_states"
IMU = "/imu"


@pytest.fixture(scope="module")
def record():
    return SampleRecord.of({ALWAYS: nd.System(nd.autotree(2), "inverse_dynamics")})


def streams():
    own = [f"{JOINTS}.{kind}:joint{k}" for kind in ("position", "velocity") for k in (1, 2)]
    motion = Stream(JOINTS, (f"{JOINTS}.stamp", *own), clock=f"{JOINTS}.stamp")
    accelerations = Stream(IMU, (f"{IMU}.stamp", f"{IMU}.a", f"{IMU}.b"), clock=f"{IMU}.stamp")
    return {column: stream for stream in (motion, accelerations) for column in stream.columns}


COLUMNS = [
    {"of": "q:{joint}", "from": f"{JOINTS}.position:{{joint}}", "unit": "deg"},
    {"of": "qd:{joint}", "from": f"{JOINTS}.velocity:{{joint}}"},
    {"of": "qdd:joint1", "from": f"{IMU}.a", "scale": 2, "offset": 1},
    {"of": "qdd:joint2", "from": f"{IMU}.b"},
]


def state_of(record, **more):
    return State(bind(streams(), LogMapping.from_dict({"columns": COLUMNS, **more}), record))


def joints(state, t, *numbers, arrived=0.0):
    columns = state.tracks[JOINTS].bound.columns
    names = (f"{JOINTS}.{kind}:joint{k}" for kind in ("position", "velocity") for k in (1, 2))
    given = dict(zip(names, numbers or (1.0, 2.0, 3.0, 4.0), strict=True))
    values = np.array([t if column.endswith("stamp") else given[column] for column in columns])
    return state.take(JOINTS, values, arrived)


def imu(state, t, a=1.0, b=2.0, arrived=0.0):
    columns = state.tracks[IMU].bound.columns
    values = {f"{IMU}.stamp": t, f"{IMU}.a": a, f"{IMU}.b": b}
    return state.take(IMU, np.array([values[column] for column in columns]), arrived)


def test_a_sample_is_due_with_each_message_of_the_clock_and_has_the_latest_of_the_others(record):
    state = state_of(record)
    joints(state, 0.5)
    assert np.isnan(state.sample(0.5)).tolist() == [False] * 4 + [True] * 2  # what was never told
    assert imu(state, 0.9) is None
    assert joints(state, 1.0) == 1.0
    np.testing.assert_allclose(
        state.sample(1.0),
        [np.deg2rad(1), np.deg2rad(2), 3, 4, 3, 2],  # q in degrees; twice the acceleration and one
    )
    assert imu(state, 1.05, 10.0, 20.0) is None
    assert joints(state, 1.1, 5.0, 6.0, 7.0, 8.0) == 1.1
    np.testing.assert_allclose(state.sample(1.1), [*np.deg2rad([5, 6]), 7, 8, 21, 20])


def test_repeated_and_earlier_messages_are_counted_and_not_used(record):
    state = state_of(record)
    for t in (1.0, 1.1, 1.2):
        joints(state, t)
    assert joints(state, 1.2, 9.0, 9.0, 9.0, 9.0) is None
    assert joints(state, 1.05, 9.0, 9.0, 9.0, 9.0) is None
    np.testing.assert_allclose(state.sample(1.2)[:4], [*np.deg2rad([1, 2]), 3, 4])
    assert state.tracks[JOINTS].counts == {"repeated": 1, "out_of_order": 1}


def test_what_comes_after_its_estimate_is_late_and_used_from_then_on(record):
    state = state_of(record)
    imu(state, 0.9)
    joints(state, 1.0)
    imu(state, 0.95, 7.0, 7.0)
    assert state.tracks[IMU].counts == {"late": 1}
    assert state.sample(1.0)[-1] == 7.0


def test_time_that_begins_anew_is_taken_as_such(record):
    state = state_of(record)
    imu(state, 99.9)
    joints(state, 100.0)
    assert joints(state, 0.5) == 0.5
    assert state.tracks[JOINTS].counts == {"restarts": 1}
    assert np.isnan(state.sample(0.5)[-1])  # what was heard before is of another time
    assert imu(state, 0.55) is None
    assert joints(state, 0.6) == 0.6
    assert np.isfinite(state.sample(0.6)).all()
    assert joints(state, -0.3) is None  # less than a second is out of order
    assert joints(state, -0.9) == -0.9
    assert state.tracks[JOINTS].counts == {"restarts": 2, "out_of_order": 1}
    state = state_of(record)  # a stamp far in the future does no lasting harm
    joints(state, 1.0)
    joints(state, 1e9)
    assert [joints(state, t) for t in (1.1, 1.2, 1.3)] == [1.1, 1.2, 1.3]
    assert state.tracks[JOINTS].counts == {"restarts": 1}


def test_a_silent_stream_is_missing_after_its_gap(record):
    state = state_of(record, streams={IMU: {"gap": 0.25}})
    imu(state, 1.0)
    for t, is_known in ((1.1, True), (1.25, True), (1.26, False), (2.0, False)):
        joints(state, t)
        assert np.isfinite(state.sample(t)[4:]).all() == is_known
    imu(state, 2.0)
    joints(state, 2.1)
    assert np.isfinite(state.sample(2.1)).all()


def test_a_gap_is_some_usual_steps_where_nothing_is_said(record):
    state = state_of(record)
    for k in range(SETTLED + 1):
        imu(state, 0.01 * k)
    last = 0.01 * SETTLED
    (part,) = state.tracks[IMU].parts.values()
    assert part.step == pytest.approx(0.01)
    other = state_of(record)
    for t in (*0.01 * np.arange(100), 60.0):  # a gap changes little
        imu(other, t)
    (changed,) = other.tracks[IMU].parts.values()
    assert changed.step == pytest.approx(0.01, rel=0.06)
    for after, is_known in ((0.04, True), (0.06, False)):
        joints(state, last + after)
        assert np.isfinite(state.sample(last + after)[4:]).all() == is_known


def test_delays_and_units_of_clocks_are_those_of_the_mapping_and_zero_is_no_stamp(record):
    state = state_of(record, streams={JOINTS: {"unit": "ms", "delay": 0.25}})
    assert joints(state, 2000.0) == pytest.approx(1.75)
    state = state_of(record)
    assert joints(state, 0.0, arrived=5.0) == 5.0
    assert joints(state, 0.0, arrived=5.1) == 5.1


def test_a_rate_leaves_samples_out_and_another_stream_may_be_the_clock(record):
    state = state_of(record, clock={"rate": 100.0})
    due = [t for k in range(1000) if (t := joints(state, 10 + 0.001 * k)) is not None]
    np.testing.assert_allclose(due, 10 + 0.01 * np.arange(100), atol=1.1e-3)
    state = state_of(record, clock={"stream": IMU})
    assert joints(state, 1.0) is None
    assert imu(state, 1.1) == 1.1


def test_publishers_of_parts_have_clocks_of_their_own(record):
    state = state_of(record)
    assert joints(state, 1.0, 1.0, np.nan, 3.0, np.nan) == 1.0
    assert joints(state, 1.001, np.nan, 2.0, np.nan, 4.0) is None  # without the joint that is first in q
    np.testing.assert_allclose(state.sample(1.001)[:4], [*np.deg2rad([1, 2]), 3, 4])
    state = state_of(record)
    one, other = (1.0, np.nan, 3.0, np.nan), (np.nan, 2.0, np.nan, 4.0)
    for k in range(5):
        assert joints(state, 1.0 + 0.1 * k, *one) is not None
        assert joints(state, 0.95 + 0.1 * k, *other) is None
    assert state.tracks[JOINTS].counts == {"late": 5}
    assert joints(state, 2.0, np.nan, np.nan, np.nan, np.nan) is None  # says nothing, not even that time goes on
    assert joints(state, 1.5, *one) == 1.5


@pytest.mark.parametrize(("before", "after"), [(0.001, 0.03), (0.03, 0.001)])
def test_a_new_rate_is_learned(record, before, after):
    state = state_of(record, clock={"stream": JOINTS})
    for k in range(200):
        imu(state, before * k)
    last = before * 199
    for k in range(200):
        imu(state, last + after * (k + 1))
        joints(state, last + after * (k + 1) + after / 2)
    (part,) = state.tracks[IMU].parts.values()
    assert part.step == pytest.approx(after, rel=0.05)
    assert np.isfinite(state.sample(last + after * 200.5)).all()


def numbered(k):
    return Message("/joint_states", b"", arrived=k, number=k)


@pytest.mark.parametrize(("limit", "sent"), [(10, 5), (3, 10)])
def test_messages_come_in_order_and_the_oldest_make_room_and_are_counted(limit, sent):
    inbox = Inbox(limit)
    for k in range(sent):
        inbox.put(numbered(k))
    kept = min(limit, sent)
    assert [inbox.get(0).number for _ in range(kept)] == [*range(sent)][-kept:]
    assert inbox.get(0) is None
    assert (inbox.dropped, len(inbox)) == (sent - kept, 0)


def test_none_is_doubled_or_forgotten_between_threads():
    inbox, each, threads = Inbox(limit=50), 2000, 4
    senders = [
        threading.Thread(target=lambda k=k: [inbox.put(numbered(k * each + n)) for n in range(each)])
        for k in range(threads)
    ]
    for sender in senders:
        sender.start()
    got = []
    while any(sender.is_alive() for sender in senders) or len(inbox):
        message = inbox.get(0.01)
        if message is not None:
            got.append(message.number)
    for sender in senders:
        sender.join()
    assert len(set(got)) == len(got)
    assert threads * each == len(got) + inbox.dropped
    for k in range(threads):
        own = [n for n in got if n // each == k]
        assert own == sorted(own)


def test_what_never_came_is_counted_by_the_numbers_of_what_did():
    inbox = Inbox(limit=2)
    for topic, publisher, number in (
        *(("/a", b"1", n) for n in (5, 6, 9)),
        *(("/a", b"2", n) for n in (1, 2)),
        *(("/b", b"1", n) for n in (1, 3)),
    ):
        inbox.put(Message(topic, b"", 0, number=number, publisher=publisher))
    assert inbox.lost == {"/a": 2, "/b": 1}
    assert inbox.dropped == 5  # which is another matter
    assert inbox.counted() == (5, {"/a": 2, "/b": 1})
    assert inbox.counted() == (0, {})


def test_publishers_beyond_number_are_not_remembered():
    inbox = Inbox(limit=1)
    for k in range(10_000):
        inbox.put(Message("/a", b"", 0, number=1, publisher=k.to_bytes(16, "little")))
    assert len(inbox._numbers) <= 1024

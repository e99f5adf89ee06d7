import threading

import pytest

from nori_dyn.live.inbox import Inbox
from nori_dyn.live.transport import Message


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

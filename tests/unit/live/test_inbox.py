from __future__ import annotations

import threading

import pytest

from nori_dyn.live.inbox import Inbox
from nori_dyn.live.transport import Message


def numbered(k):
    return Message("/joint_states", b"", arrived=k, number=k)


def test_messages_come_in_order():
    inbox = Inbox(limit=10)
    for k in range(5):
        inbox.put(numbered(k))
    assert [inbox.get(0).number for _ in range(5)] == [0, 1, 2, 3, 4]
    assert (inbox.came, inbox.dropped, len(inbox)) == (5, 0, 0)


def test_the_oldest_make_room_and_are_counted():
    inbox = Inbox(limit=3)
    for k in range(10):
        inbox.put(numbered(k))
    assert [inbox.get(0).number for _ in range(3)] == [7, 8, 9]
    assert inbox.get(0) is None
    assert (inbox.came, inbox.dropped) == (10, 7)


@pytest.mark.parametrize("threads", [1, 4])
def test_none_is_doubled_or_forgotten_between_threads(threads):
    inbox, each = Inbox(limit=50), 2000
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
    assert inbox.came == threads * each == len(got) + inbox.dropped
    for k in range(threads):
        own = [n for n in got if n // each == k]
        assert own == sorted(own)

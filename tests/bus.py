"""A transport in memory: what is published on a bus all of its transports receive, in the same thread."""

import time
from itertools import count

from nori_dyn.live.transport import Message

PUBLISHERS = count()


class InMemory:
    place = "memory"

    def __init__(self, bus=None):
        self._bus, self._own, self._is_open = [] if bus is None else bus, [], True
        self._bus.append(self)

    def beside(self):
        """Another transport on the same bus."""
        return InMemory(self._bus)

    def subscribe(self, topic, kind, receive):
        self._own.append((topic, receive))

    def advertise(self, topic, kind):
        publisher, numbers = next(PUBLISHERS).to_bytes(16, "little"), count(1)

        def publish(payload):
            now, number = time.time_ns(), next(numbers)
            message = Message(topic, bytes(payload), now, now, number, publisher, kind)
            for other in self._bus if self._is_open else ():
                for wanted, receive in other._own if other._is_open else ():
                    if wanted == topic:
                        receive(message)

        return publish

    def close(self):
        self._is_open = False

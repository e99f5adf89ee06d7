"""Messages in JSON as columns of numbers."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from nori_dyn.logs.messages.topic import LOG_TIME, MalformedMessage
from nori_dyn.typing import Floats


class JsonTopic:
    """What a topic carries whose messages are JSON."""

    is_stamped = False

    def __init__(self, name: str, kind: str) -> None:
        self.name, self.kind = name, kind
        self._columns: dict[str, None] = {}

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of its columns, of the times of recording too."""
        return (*self._columns, self.name + LOG_TIME)

    @property
    def clock(self) -> str:
        """The column with the times of its messages."""
        return self.name + LOG_TIME

    def look(self, data: bytes) -> None:
        """Learn from a message what columns there are."""
        self._columns.update(dict.fromkeys(self._numbers(data)))

    def decode(self, messages: Sequence[bytes], columns: Sequence[str]) -> Floats:
        """Return columns (columns, n) of messages."""
        found = np.full((len(columns), len(messages)), np.nan)
        for k, data in enumerate(messages):
            numbers = self._numbers(data)
            found[:, k] = [numbers.get(column, np.nan) for column in columns]
        return found

    def _numbers(self, data: bytes) -> dict[str, float]:
        found: dict[str, float] = {}

        def walk(value: Any, path: str) -> None:
            if isinstance(value, dict):
                for key, each in value.items():
                    walk(each, f"{path}.{key}")
            elif isinstance(value, list):
                for k, each in enumerate(value):
                    walk(each, f"{path}[{k}]")
            elif isinstance(value, int | float):
                found[path] = float(value)

        try:
            walk(json.loads(data), self.name)
        except (ValueError, RecursionError, OverflowError) as error:
            raise MalformedMessage(f"{len(data)} bytes of {self.name} are no JSON: {error}") from None
        return found

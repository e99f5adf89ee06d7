"""What a live run has done: figures for programs, a line for a terminal, tables at the end."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass, field
from itertools import accumulate
from typing import Any

from nori_dyn.tables import Document, Facts, Paragraph, Table, attributes, number, unbroken

A_DECADE = 40
"""Bins of durations a decade: neighbours are 6 % apart."""

LEAST = 1e-6
"""Where the first bin of durations ends [s]."""


@dataclass(slots=True)
class Latency:
    """A histogram of durations, in bins that grow by 6 %.

    Attributes:
        bins: how many durations are in each bin that has some. Those that ended before they began, by clocks that
            disagree, are in the first.
        largest: the longest [s].
    """

    bins: Counter[int] = field(default_factory=Counter)
    largest: float = 0.0

    def add(self, seconds: float) -> None:
        """Count a duration."""
        self.bins[int(A_DECADE * math.log10(seconds / LEAST)) + 1 if seconds > LEAST else 0] += 1
        self.largest = max(self.largest, seconds)

    def join(self, other: Latency) -> None:
        """Count what another one has counted."""
        self.bins.update(other.bins)
        self.largest = max(self.largest, other.largest)

    def quantile(self, share: float) -> float:
        """How long a share of them took at most [s], too long by 6 % at most."""
        places, wanted = sorted(self.bins), share * self.bins.total()
        seen = accumulate(self.bins[place] for place in places)
        place = next(place for place, n in zip(places, seen, strict=True) if n >= wanted)
        return min(LEAST * math.pow(10.0, place / A_DECADE), self.largest)

    def figures(self) -> dict[str, float]:
        """p50, p99 and the largest [s], by name; nothing where there are none."""
        return {"p50": self.quantile(0.5), "p99": self.quantile(0.99), "max": self.largest} if self.bins else {}


@dataclass(slots=True)
class Account:
    """What was counted, in a period or in all.

    Attributes:
        seconds: how long it took.
        messages: messages that were taken from the queue.
        estimates: estimates that were published.
        dropped: messages that were dropped from the queue, the oldest first.
        skipped: samples without an estimate, by the reason.
        sensors: in how many samples a sensor was left out, by its name.
        fell_back: estimates that were re-factorised with pivoting.
        overruns: samples that took longer than there is time between two of them.
        suspects: how often a sensor was the likeliest cause of readings that do not fit together, where there is a
            monitor.
        collisions: how many began, by the reading that was furthest off, or the link that was touched.
        streams: what was counted of messages, by topic.
        latency: from publishing a message to publishing the estimate that it brought about.
        work: from taking a message out of the queue to publishing its estimate.
    """

    seconds: float = 0.0
    messages: int = 0
    estimates: int = 0
    dropped: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    sensors: Counter[str] = field(default_factory=Counter)
    fell_back: int = 0
    overruns: int = 0
    suspects: Counter[str] = field(default_factory=Counter)
    collisions: Counter[str] = field(default_factory=Counter)
    streams: dict[str, Counter[str]] = field(default_factory=dict)
    latency: Latency = field(default_factory=Latency)
    work: Latency = field(default_factory=Latency)

    def join(self, other: Account) -> None:
        """Count what another one has counted."""
        for name in ("seconds", "messages", "estimates", "dropped", "fell_back", "overruns"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for name in ("skipped", "sensors", "suspects", "collisions"):
            getattr(self, name).update(getattr(other, name))
        for topic, counts in other.streams.items():
            self.streams.setdefault(topic, Counter()).update(counts)
        self.latency.join(other.latency)
        self.work.join(other.work)

    @property
    def rate(self) -> float:
        """Estimates a second."""
        return self.estimates / self.seconds if self.seconds else 0.0

    def wrong(self) -> dict[str, int]:
        """How many messages were wrong, in all streams, by what was: "malformed", "late", ..."""
        found: Counter[str] = Counter()
        for counts in self.streams.values():
            found.update({name: n for name, n in counts.items() if name != "received"})
        return {name: n for name, n in found.items() if n}

    def figures(self) -> dict[str, Any]:
        """The figures; times in seconds."""
        return {
            **attributes(self, "seconds", "messages", "estimates", "rate", "dropped", "overruns", "fell_back"),
            **attributes(self, "skipped", "suspects", "collisions", "streams"),
            "latency": self.latency.figures(),
            "work": self.work.figures(),
            "sensors_left_out": dict(self.sensors),
        }

    def line(self, total: Account) -> str:
        """This period in one line, with what has been counted in all."""
        words = [f"{total.seconds:.0f} s", f"{number(self.rate, 4)} Hz"]
        if figures := self.latency.figures().items():
            words.append(f"latency {', '.join(f'{name} {number(1e3 * x)}' for name, x in figures)} ms")
        words.append(f"dropped {total.dropped:,}")
        words.append(f"overruns {total.overruns:,}")
        words += [f"{_words(name)} {n:,}" for name, n in total.wrong().items()]
        if total.skipped:
            words.append(f"left out {total.skipped.total():,}")
        return " | ".join(words)

    def document(self, measured_from: str) -> Document:
        """Summary that is shown at the end.

        Args:
            measured_from: from when on latencies are.
        """
        facts = Facts(
            (
                ("time", f"{number(self.seconds, 4)} s"),
                ("messages", f"{self.messages:,}"),
                ("estimates", f"{self.estimates:,}, {number(self.rate, 4)} a second"),
                ("latency", f"{_shown(self.latency)}, from {measured_from} to the estimate" if self.estimates else ""),
                ("work", f"{_shown(self.work)} an estimate" if self.estimates else ""),
                ("dropped", f"{self.dropped:,} messages, the oldest first" if self.dropped else "none"),
                ("overruns", f"{self.overruns:,} samples took longer than their period" if self.overruns else "none"),
                ("fell back", f"{self.fell_back:,} to pivoting" if self.fell_back else ""),
            )
        )
        parts: list[Facts | Table | Paragraph] = [facts]
        columns = ("received", "malformed", "repeated", "out_of_order", "late", "lost", "restarts")
        rows = tuple(
            (unbroken(topic), *(f"{counts[name]:,}" for name in columns)) for topic, counts in self.streams.items()
        )
        parts.append(Table("Messages", ("topic", *map(_words, columns)), rows))
        for title, heading, counts in (
            ("Samples without an estimate", "reason", self.skipped),
            ("Sensors left out", "sensor", self.sensors),
            ("Suspects", "sensor", self.suspects),
            ("Collisions", "reading or link", self.collisions),
        ):
            if counts:
                own = tuple((unbroken(name), f"{n:,}") for name, n in counts.most_common())
                what = "collisions" if counts is self.collisions else "samples"
                parts.append(Table(title, (heading, what), own))
        return Document(tuple(parts), {**self.figures(), "measured_from": measured_from})


def _shown(latency: Latency) -> str:
    """p50, p99 and the largest in milliseconds."""
    return ", ".join(f"{name} {number(1e3 * seconds, 3)} ms" for name, seconds in latency.figures().items())


def _words(name: str) -> str:
    return name.replace("_", " ")

"""Summary of estimates over time: whether the readings fit, and what was learned."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.delays import Delays
from nori_dyn.filtering.false_alarms import APART, clusters
from nori_dyn.measurements.contacts import COLLISION
from nori_dyn.tables import Shown
from nori_dyn.typing import Floats

UNSEEN = 0.999
"""What a standard deviation must fall below, beside what it would be without readings, for these to tell something."""


LIKELY = 0.5
"""Probability above which something counts as recognised."""


@dataclass(frozen=True, slots=True)
class Event:
    """Something that was recognised for a while.

    Attributes:
        name: what was likeliest, as its probability is named: "collision:tau:elbow".
        begin, end: the times of the first and the last tick at which something was [s].
        probability: the largest.
        point: of a touch, where on the link it was, in its frame, and the deviation of that [m], medians over its
            ticks; else empty.
    """

    name: str
    begin: float
    end: float
    probability: float
    point: tuple[float, ...] = ()

    def joined(self, other: Event) -> Event:
        """This and another that goes on from it."""
        longer = max(other, self, key=lambda event: event.end - event.begin)
        point = other.point if other.name == longer.name else longer.point
        return Event(longer.name, self.begin, other.end, max(self.probability, other.probability), point)


def events(
    t: Floats, recognised: Mapping[str, Floats], points: Floats | None = None, apart: float = APART
) -> Iterator[Event]:
    """Yield when something was recognised, each from when it was until nothing was any more.

    Args:
        t: times (N,) [s].
        recognised: probabilities (N,), by name.
        points: where a link is touched, and the deviation of that (N, 4) [m].
        apart: how long nothing is recognised until what is recognised next is another event [s].
    """
    names, p = [*recognised], np.stack([*recognised.values()], axis=1)
    for first, stop in clusters(t, np.asarray((p > LIKELY).any(axis=1)), apart):
        best = int(p[first:stop].sum(axis=0).argmax())
        likely = first + np.flatnonzero(p[first:stop, best] > LIKELY)
        at = np.full(4, np.nan) if points is None or not len(likely) else np.median(points[likely], axis=0)
        point = () if np.isnan(at).any() else tuple(at.tolist())
        yield Event(names[best], float(t[first]), float(t[stop - 1]), float(p[first:stop, best].max()), point)


@dataclass(frozen=True, eq=False)
class Summary(Shown):
    """Summary of the estimates of ticks.

    Attributes:
        begin, end: the times of the first and the last [s].
        is_causal: whether each is estimated from the readings up to it; otherwise it is from all.
        consistency: how well the readings fit the noise that is declared of them.
        names: the name of each number of the memory (k).
        units: the unit of each.
        first: its estimate at the first tick (k,), and the standard deviation of that (k,).
        last: the same at the last.
        shares: the smallest standard deviation of each, as a share of what it would be without readings (k,).
        gaps: the times of the ticks before which the motion is not known [s].
        delays: of a filter, how late it is, where that was worked out.
        events: when collisions were seen.
    """

    begin: float
    end: float
    is_causal: bool
    consistency: Consistency
    names: tuple[str, ...]
    units: tuple[str, ...]
    first: tuple[Floats, Floats]
    last: tuple[Floats, Floats]
    shares: Floats
    gaps: tuple[float, ...]
    delays: Delays | None = None
    events: tuple[Event, ...] = ()

    @staticmethod
    def joined(parts: Sequence[Summary]) -> Summary:
        """Summary of ticks whose parts follow each other."""
        of, last = [part.consistency for part in parts], parts[-1]
        nis, degrees, ticks = (sum(getattr(one, name) for one in of) for name in ("nis", "degrees", "ticks"))
        return replace(
            parts[0],
            end=last.end,
            consistency=Consistency(nis, degrees, ticks),
            last=last.last,
            shares=np.min([part.shares for part in parts], axis=0),
            gaps=tuple(t for part in parts for t in part.gaps),
            events=tuple(_going_on(parts)),
        )

    @property
    def unseen(self) -> tuple[str, ...]:
        """The names of the numbers that no reading observed: their estimate is the prior."""
        return tuple(name for name, share in zip(self.names, self.shares.tolist(), strict=True) if share > UNSEEN)

    def to_dict(self) -> dict[str, Any]:
        """The figures as data."""
        of = self.consistency
        return {
            "begin": self.begin,
            "end": self.end,
            "is_causal": self.is_causal,
            "ticks": of.ticks,
            "chi_square": of.nis,
            "degrees": of.degrees,
            "ratio": of.ratio if of.degrees else None,
            "p_value": of.p_value,
            "memory": {
                name: {"unit": unit, "first": _pair(self.first, k), "last": _pair(self.last, k)}
                for k, (name, unit) in enumerate(zip(self.names, self.units, strict=True))
            },
            "unseen": list(self.unseen),
            "gaps": list(self.gaps),
            "delays": None if self.delays is None else self.delays.to_dict(),
            **({"events": [asdict(event) for event in self.events]} if self.events else {}),
        }


def _going_on(parts: Sequence[Summary]) -> list[Event]:
    """Events of parts that follow each other: one that goes on from a part to the next is one."""
    found: list[Event] = []
    end = -np.inf
    for part in parts:
        for event in part.events:
            last = found.pop() if found else None
            near = APART if event.name.startswith(COLLISION) else 0.0
            is_same = last and ((last.end, event.begin) == (end, part.begin) or event.begin - last.end < near)
            found += [last.joined(event)] if last and is_same else [last, event] if last else [event]
        end = part.end
    return found


def _pair(of: tuple[Floats, Floats], k: int) -> list[float | None]:
    """A mean and its deviation, None where nothing is known."""
    return [float(values[k]) if np.isfinite(values[k]) else None for values in of]

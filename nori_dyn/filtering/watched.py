"""What a tick, or a log, says of collisions: which readings are off by no chance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nori_dyn.filtering.false_alarms import Alarms, clusters
from nori_dyn.filtering.tracked import Tracked
from nori_dyn.measurements.contacts import COLLISION
from nori_dyn.tables import Shown
from nori_dyn.typing import Booleans, Floats, Indices


@dataclass(frozen=True, eq=False, repr=False)
class WatchedHistory(Shown):
    """Whether something touches a robot, over N ticks.

    Attributes:
        t: their times (N,) [s].
        statistics: how far each of m readings is from what was expected, in its deviations (N, m).
        readings: their names.
        threshold: above which a statistic counts as a collision.
        alarms: when collisions count as seen.
    """

    t: Floats
    statistics: Floats
    readings: tuple[str, ...]
    threshold: float
    alarms: Alarms

    @cached_property
    def statistic(self) -> Floats:
        """That of the reading that is furthest off (N,)."""
        return np.asarray(self.statistics.max(axis=1))

    @property
    def furthest(self) -> Indices:
        """Which reading that is (N,)."""
        return np.asarray(self.statistics.argmax(axis=1))

    @property
    def collision(self) -> Booleans:
        """Whether something touches the robot at each tick (N,)."""
        return self.statistic > self.threshold

    @cached_property
    def begins(self) -> Indices:
        """The ticks at which collisions begin, see `clusters`."""
        return np.array([first for first, _ in clusters(self.t, self.collision)], dtype=np.intp)

    @cached_property
    def probabilities(self) -> Floats:
        """Of each reading that it is off by no chance (N, m), see `Alarms.probabilities`."""
        return self.alarms.probabilities(self.statistics, self.threshold)

    @property
    def recognised(self) -> dict[str, Floats]:
        """The same by name (N,): "collision:tau:elbow"."""
        return {f"{COLLISION}{name}": p for name, p in zip(self.readings, self.probabilities.T, strict=True)}

    @property
    def duration(self) -> float:
        """How long the ticks last [s]."""
        return float(self.t[-1] - self.t[0])

    def amended(self, parts: Sequence[WatchedHistory]) -> WatchedHistory:
        """This, as joined of parts: the threshold is the last one's."""
        return replace(self, threshold=parts[-1].threshold)

    def __repr__(self) -> str:
        return f"WatchedHistory({len(self.begins)} collisions in {len(self.t):,} ticks)"


class Watched(Tracked):
    """The estimate of a tick, if nothing touches the robot, and whether something does.

    Attributes:
        estimate: the outputs, by the names of the field.
        tracked: the estimate, if nothing touches the robot, and what it is worth.
        statistic: how far the reading that is furthest off is from what was expected, in its deviations.
        threshold: above which it counts as a collision.
        reading: its name.
        collision: whether the statistic is above the threshold.
        begins: whether it is, and was not for a while before.

    Args:
        tracked: see above.
        now: the tick alone.
        begins: see above.
    """

    def __init__(self, tracked: Tracked, now: WatchedHistory, begins: bool) -> None:
        vars(self).update(vars(tracked))
        self.tracked, self.begins, self.threshold = tracked, begins, now.threshold
        self.statistic, self.collision = float(now.statistic[0]), bool(now.collision[0])
        self.reading, self._now = now.readings[now.furthest[0]], now

    @cached_property
    def probabilities(self) -> dict[str, float]:
        """Of each reading that it is off by no chance, see `WatchedHistory`."""
        return dict(zip(self._now.readings, self._now.probabilities[0].tolist(), strict=True))

    @property
    def recognised(self) -> dict[str, float]:
        return {f"{COLLISION}{name}": p for name, p in self.probabilities.items()}

    def __repr__(self) -> str:
        says = "collision" if self.collision else "no collision"
        return f"Watched({says}, {self.statistic:.3g} of {self.threshold:.3g}, {self.reading})"

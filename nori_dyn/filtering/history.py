"""Estimates of many ticks, one after the other: what filters and smoothers return of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from nori_dyn.errors import UnknownContactError
from nori_dyn.filtering.base_estimate import BaseEstimate
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.delays import Delays
from nori_dyn.filtering.history_summary import Event, Summary, events
from nori_dyn.filtering.knowledge import NamedNumbers
from nori_dyn.filtering.watched import WatchedHistory
from nori_dyn.measurements.contacts import CONTACT, TOUCH_POINT, ContactState
from nori_dyn.solve.diagnosis import Diagnosis, p_value
from nori_dyn.solve.estimate import Estimate
from nori_dyn.tables import Shown
from nori_dyn.typing import Booleans, Floats, Indices


@dataclass(frozen=True, eq=False)
class MemoryHistory(NamedNumbers):
    """What is known of what persists, at each of N ticks.

    Attributes:
        names: the name of each number (k).
        units: the unit of each.
        mean: the estimates (N, k).
        deviations: their standard deviations (N, k); inf where nothing is known.
        shares: the smallest of each, as a share of what it would be without readings (k,): 1 where no reading observed
            anything.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    mean: Floats
    deviations: Floats
    shares: Floats

    def amended(self, parts: Sequence[MemoryHistory]) -> MemoryHistory:
        """This, as joined of parts."""
        return replace(self, shares=np.min([part.shares for part in parts], axis=0))

    def __repr__(self) -> str:
        return f"MemoryHistory({len(self.names)} numbers at {len(self.mean)} ticks)"


@dataclass(frozen=True, eq=False)
class ContactHistory:
    """Contacts that were recognised, at each of N ticks.

    Attributes:
        names: all contacts.
        states: the contact states.
        probabilities: of each, given all readings up to the tick (N, n_states).
        touched: contacts that are links which may be touched, see `measurements.touch`.
        points: where the likeliest of these is touched, in its frame, and the deviation of that (N, 4) [m]; nan where
            none is, or its surface is not known.
    """

    names: tuple[str, ...]
    states: tuple[ContactState, ...]
    probabilities: Floats
    touched: tuple[str, ...] = ()
    points: Floats | None = None

    @cached_property
    def table(self) -> Booleans:
        """Which contacts are closed in each state (n_states, n_contacts)."""
        return np.array([[name in state for name in self.names] for state in self.states], dtype=bool)

    @property
    def closed(self) -> Booleans:
        """Which contacts are closed in the most likely state of each tick (N, n_contacts)."""
        return np.asarray(self.table[self.probabilities.argmax(axis=1)])

    def __getitem__(self, contact: str) -> Floats:
        """The probability that a contact is closed (N,).

        Raises:
            UnknownContactError: there is no such contact.
        """
        if contact not in self.names:
            raise UnknownContactError("contact", contact, self.names)
        return np.asarray(self.probabilities @ self.table[:, self.names.index(contact)])

    def __repr__(self) -> str:
        return f"ContactHistory({', '.join(self.names)} at {len(self.probabilities)} ticks)"


@dataclass(frozen=True, eq=False)
class History(Shown):
    """Estimates of N ticks, one after the other.

    Attributes:
        t: their times (N,) [s].
        estimate: the outputs, each with a leading N.
        deviations: the standard deviations of the outputs by name, in their shapes.
        bands: half of the width of their 95 % bands: 1.96 deviations, less where friction at rest, which is bounded,
            makes most of them.
        memory: what persists, at each tick.
        nis: the normalised innovation squared of each (N,), see `Tracked`: of its readings by those before it, whether
            or not later ones were used.
        degrees: the degrees of freedom of each (N,).
        log_likelihood: of the readings of each, given those before it (N,).
        gaps: the ticks (n,) before which the motion is not known, by their numbers.
        is_causal: whether each estimate is from the readings up to it; otherwise it is from all.
        contacts: the contacts that were recognised; None where they were given.
        base: the floating base at each; None where it is no state.
        watched: what was watched for collisions; None where nothing was.
        diagnosis: of the readings of each by those before it; None where it was not asked for, where later readings
            were used, and where contacts are recognised or change.
        delays: of a filter, how late it is at the first tick's configuration, see `Tracker.delays`; None of a smoother,
            and where that is not determined.

    Example:
        >>> torque = {"type": "joint_torque", "joints": "all", "sigma": 0.1}
        >>> unloaded = {"type": "external_wrench", "links": "all", "value": 0}
        >>> memory = {"speed": {"of": "qd", "rate": "qdd", "noise": 0.001}}
        >>> content = {"name": "sure of speeds", "measurements": [torque, unloaded], "memory": memory}
        >>> system = nd.System(nd.autotree(1), nd.SensorSet.from_dict(content))
        >>> still = np.zeros((50, 1))
        >>> np.savez("log.npz", t=np.arange(50) * 0.01, q=still, qd=still, y=still)
        >>> found = nd.smooth("log.npz", nd.plan(system, outputs=["qdd"])).history
        >>> found.deviations["qdd"].shape, found.consistency.ticks
        ((50, 1), 50)
    """

    t: Floats
    estimate: Estimate
    deviations: Mapping[str, Floats]
    bands: Mapping[str, Floats]
    memory: MemoryHistory
    nis: Floats
    degrees: Indices
    log_likelihood: Floats
    gaps: Indices
    is_causal: bool
    delays: Delays | None = None
    contacts: ContactHistory | None = None
    base: BaseEstimate | None = None
    diagnosis: Diagnosis | None = None
    watched: WatchedHistory | None = None

    def __len__(self) -> int:
        return len(self.nis)

    def __getitem__(self, name: str) -> Floats:
        """An output by name, with a leading N.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.estimate[name]

    @cached_property
    def consistency(self) -> Consistency:
        """How well the readings of all ticks fit the noise that is declared of them."""
        return Consistency(float(self.nis.sum()), int(self.degrees.sum()), len(self))

    @property
    def p_value(self) -> Floats:
        """Probability that sound readings are off by as much as those of a tick, or more (N,); 1 without a check."""
        return np.asarray(p_value(self.nis, self.degrees))

    def __repr__(self) -> str:
        how = "filtered" if self.is_causal else "smoothed"
        return f"History({len(self)} ticks, {how}; {', '.join(self.estimate.values)})"

    @cached_property
    def recognised(self) -> dict[str, Floats]:
        """Probabilities (N,) of what was recognised: "contact:l_foot", "collision:tau:elbow"."""
        of, watched = self.contacts, self.watched
        found = {} if of is None else {f"{CONTACT}{name}": of[name] for name in of.names}
        return found if watched is None else found | watched.recognised

    @property
    def recorded(self) -> dict[str, Floats]:
        """What is written of what was recognised (N,): probabilities, and where a link is touched."""
        points = None if self.contacts is None else self.contacts.points
        return self.recognised | ({} if points is None else dict(zip(TOUCH_POINT, points.T, strict=True)))

    @cached_property
    def summary(self) -> Summary:
        """Their summary."""
        memory = self.memory
        ends = [(memory.mean[k], memory.deviations[k]) for k in (0, -1)]
        gaps = tuple(self.t[self.gaps].tolist())
        begin, end = float(self.t[0]), float(self.t[-1])
        shared = (begin, end, self.is_causal, self.consistency, memory.names, memory.units)
        return Summary(*shared, ends[0], ends[1], memory.shares, gaps, self.delays, self.events)

    @cached_property
    def events(self) -> tuple[Event, ...]:
        """Collisions and touches, one after the other."""
        if self.watched is not None:
            return tuple(events(self.t, self.watched.recognised))
        of = self.contacts
        if of is None or not of.touched:
            return ()
        return tuple(events(self.t, {f"{CONTACT}{name}": of[name] for name in of.touched}, of.points, 0.0))

    @property
    def unseen(self) -> tuple[str, ...]:
        """The names of what persists that no reading observed: its estimate is the prior."""
        return self.summary.unseen

    def amended(self, parts: Sequence[History]) -> History:
        """This, as joined of parts."""
        starts = np.cumsum([0, *(len(part) for part in parts[:-1])]).tolist()
        gaps = np.concatenate([part.gaps + start for part, start in zip(parts, starts, strict=True)])
        return replace(self, gaps=gaps, delays=parts[0].delays)

"""Estimates of many ticks, one after the other: what filters and smoothers return of a log."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise

import numpy as np
from scipy.special import chdtrc

from nori_dyn.errors import UnknownContactError
from nori_dyn.filtering.base_estimate import BaseEstimate
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.delays import Delays
from nori_dyn.filtering.history_summary import Event, Summary, events
from nori_dyn.filtering.knowledge import places_of
from nori_dyn.filtering.watched import WatchedHistory
from nori_dyn.measurements.contacts import CONTACT, TOUCH_POINT, ContactState
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.tables import Shown
from nori_dyn.typing import Booleans, Floats, Indices


@dataclass(frozen=True, eq=False)
class MemoryHistory:
    """What is known of what persists, at each of N ticks.

    Attributes:
        names: the name of each number (k).
        units: the unit of each.
        mean: the estimates (N, k).
        deviations: their standard deviations (N, k); inf where nothing is known.
        shares: the smallest of each, as a share of what it would be without readings (k,): 1 where no reading told
            anything.
    """

    names: tuple[str, ...]
    units: tuple[str, ...]
    mean: Floats
    deviations: Floats
    shares: Floats

    def __getitem__(self, name: str) -> Floats:
        """Return the estimates of a variable, "offset:l_leg_ft", or of one number, "offset:l_leg_ft.mz" (N, n).

        Raises:
            UnknownNameError: it does not persist.
        """
        return self.mean[:, self.places(name)]

    def places(self, name: str) -> list[int]:
        """Return where the numbers of a variable are.

        Raises:
            UnknownNameError: it does not persist.
        """
        return places_of(self.names, name)

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
        """Return the probability that a contact is closed (N,).

        Raises:
            UnknownContactError: there is no such contact.
        """
        if contact not in self.names:
            raise UnknownContactError("contact", contact, self.names)
        return np.asarray(self.probabilities @ self.table[:, self.names.index(contact)])

    @staticmethod
    def joined(parts: Sequence[ContactHistory]) -> ContactHistory:
        """Contacts at ticks that follow each other as one."""
        points = [part.points for part in parts if part.points is not None]
        probabilities = np.concatenate([part.probabilities for part in parts])
        return replace(parts[0], probabilities=probabilities, points=np.concatenate(points) if points else None)

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
        contacts: the contacts that were recognised; None where they were told.
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
        """Return an output by name, with a leading N.

        Raises:
            NotRequestedError: the plan does not compute it.
        """
        return self.estimate[name]

    @cached_property
    def consistency(self) -> Consistency:
        """How well the readings of all ticks fit what is said of their noise."""
        return Consistency(float(self.nis.sum()), int(self.degrees.sum()), len(self))

    @property
    def p_value(self) -> Floats:
        """Probability that sound readings are off by as much as those of a tick, or more (N,); 1 without a check."""
        return np.where(self.degrees > 0, chdtrc(np.maximum(self.degrees, 1), self.nis), 1.0)

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
        """What is said of them in the end."""
        memory = self.memory
        ends = [(memory.mean[k], memory.deviations[k]) for k in (0, -1)]
        gaps = tuple(self.t[self.gaps].tolist())
        begin, end = float(self.t[0]), float(self.t[-1])
        told = (begin, end, self.is_causal, self.consistency, memory.names, memory.units)
        return Summary(*told, ends[0], ends[1], memory.shares, gaps, self.delays, self.events)

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
        """The names of what persists of which no reading told anything: what is said of it was known at first."""
        return self.summary.unseen

    @staticmethod
    def joined(parts: Sequence[History]) -> History:
        """Return histories that follow each other as one."""
        if len(parts) == 1:
            return parts[0]
        first = parts[0]
        starts = np.cumsum([0, *(len(part) for part in parts)])
        memory = replace(
            first.memory,
            mean=np.concatenate([part.memory.mean for part in parts]),
            deviations=np.concatenate([part.memory.deviations for part in parts]),
            shares=np.min([part.memory.shares for part in parts], axis=0),
        )
        contacts = first.contacts and ContactHistory.joined([part.contacts for part in parts if part.contacts])
        based = [part.base for part in parts if part.base is not None]
        judged = [part.diagnosis for part in parts if part.diagnosis is not None]
        watched = [part.watched for part in parts if part.watched is not None]
        whole = Estimate.joined(
            [part.estimate for part in parts], [np.arange(a, b) for a, b in pairwise(starts.tolist())]
        )
        return History(
            np.concatenate([part.t for part in parts]),
            whole,
            {name: np.concatenate([part.deviations[name] for part in parts]) for name in first.deviations},
            {name: np.concatenate([part.bands[name] for part in parts]) for name in first.bands},
            memory,
            np.concatenate([part.nis for part in parts]),
            np.concatenate([part.degrees for part in parts]),
            np.concatenate([part.log_likelihood for part in parts]),
            np.concatenate([part.gaps + a for part, a in zip(parts, starts.tolist(), strict=False)]),
            first.is_causal,
            first.delays,
            contacts,
            BaseEstimate.joined(based) if based else None,
            Diagnosis.joined(judged, whole) if len(judged) == len(parts) else None,
            WatchedHistory.joined(watched) if watched else None,
        )

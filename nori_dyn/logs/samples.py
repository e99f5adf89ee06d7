"""Samples of a robot as a solver takes them: q, qd, readings, contacts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from nori_dyn.errors import InputError, UnplannedStateError
from nori_dyn.logs.mapping.record import ALWAYS, SampleRecord
from nori_dyn.measurements.contacts import CONTACT, ContactState
from nori_dyn.solve.over_ticks import some
from nori_dyn.typing import Booleans, Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class Samples:
    """Successive samples of a robot.

    Attributes:
        record: the numbers of a sample.
        numbers: which of the log each is (n,), from 0.
        t: times (n,) [s], where they are known.
        q: configurations (n, nq).
        qd: velocities (n, nv).
        y: readings (n, ny); of sensors with contacts those of all states, each once, as `SwitchingSolver` takes them.
        contacts: whether each contact is closed (n, n_contacts), where the log says it: 1, 0, or nan.
        silent: which numbers of the record a stream does not say in a gap (n, m); None where there is no gap.
        place: where one of them stands, by its place among these, for people.
        columns: what the log calls the numbers of the record that are a column of it each.
        sigma: standard deviations of the readings (n, ny), where they were estimated; nan where a sensor has its own.
    """

    record: SampleRecord
    numbers: Indices
    t: Floats | None
    q: Floats
    qd: Floats
    y: Floats
    contacts: Floats | None
    silent: Booleans | None
    place: Callable[[int], str] = field(repr=False)
    columns: Mapping[str, str] = field(default_factory=dict, repr=False)
    sigma: Floats | None = None

    def called(self, name: str) -> str:
        """Name of a number of the record in the log."""
        return self.columns.get(name, name)

    def __len__(self) -> int:
        return len(self.q)

    def at(self, chosen: Indices | Booleans | slice) -> Samples:
        """A selection of the samples."""
        return replace(some(self, chosen), place=lambda k: self.place(int(np.arange(len(self))[chosen][k])))

    def states(self) -> tuple[Any, ...]:
        """Arguments of `solve_batch`: q, qd, y, and contacts where there are any."""
        return self.q, self.qd, self.y, *(() if self.contacts is None else (self.contacts == 1,))

    def amended(self, parts: Sequence[Samples]) -> Samples:
        """This, as joined of parts."""
        starts = np.cumsum([0, *(len(part) for part in parts)])

        def place(k: int) -> str:
            of = int(np.searchsorted(starts, k, side="right")) - 1
            return parts[of].place(k - int(starts[of]))

        silent = [part.silent for part in parts]
        if all(each is None for each in silent):
            return replace(self, place=place)
        none = (np.zeros((len(part), len(self.record.names)), dtype=bool) for part in parts)
        each = [no if own is None else own for own, no in zip(silent, none, strict=True)]
        return replace(self, place=place, silent=np.concatenate(each))


def contact_states(samples: Samples) -> Mapping[ContactState, Indices | slice]:
    """Indices of the samples of each contact state that occurs.

    Raises:
        InputError: what says whether a contact is closed is neither 1 nor 0.
    """
    if samples.contacts is None:
        return {ALWAYS: slice(None)}
    names = samples.record.contacts
    wrong = np.argwhere((samples.contacts != 0) & (samples.contacts != 1))
    for k, c in wrong[:1].tolist():
        called = samples.called(CONTACT + names[c])
        raise InputError(
            f"{samples.place(k)}: column '{called}' is {samples.contacts[k, c]:g}: it must be 1 (closed) or 0 (open)."
        )
    found: dict[ContactState, Indices | slice] = {}
    rows, of_samples = np.unique(samples.contacts, axis=0, return_inverse=True)
    for k, row in enumerate(rows):
        state = tuple(name for name, is_closed in zip(names, row, strict=True) if is_closed)
        found[state] = np.flatnonzero(of_samples.reshape(-1) == k)
    return found


def samples_by_state(samples: Samples) -> dict[ContactState, Indices | slice]:
    """Indices of the samples of each contact state that occurs.

    Raises:
        UnplannedStateError: one has no system; says where.
        InputError: a contact is neither open nor closed.
    """
    systems = samples.record.systems
    found = contact_states(samples)
    for state, places in found.items():
        if state not in systems:
            error = UnplannedStateError(state, tuple(systems))
            error.args = (f"{samples.at(places).place(0)}: {error}",)
            raise error
    return dict(found)


def shown_value(value: float) -> str:
    """An invalid number as messages print it."""
    return "empty or nan" if np.isnan(value) else f"{value:g}"

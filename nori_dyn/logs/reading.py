"""Samples of a log that can be estimated: read, brought to one clock, checked."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from itertools import compress

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.logs.ahead import prefetched
from nori_dyn.logs.checks import check_readings, samples_by_state, usable
from nori_dyn.logs.chunks import LogCounts, raw_samples, samples_of
from nori_dyn.logs.formats.source import abbreviated
from nori_dyn.logs.log import Log
from nori_dyn.logs.mapping.binding import Binding
from nori_dyn.logs.motion.differentiation import Differentiator
from nori_dyn.logs.samples import Samples
from nori_dyn.measurements.contacts import CONTACT, ContactState
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing


@dataclass(frozen=True, slots=True, eq=False)
class SampleReader:
    """Reader of the samples of a log for some systems.

    Attributes:
        systems: what is solved in each contact state.
        contacts: the names of the contacts, where there are some.
        closed: those that are closed throughout; None takes them from the log.
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        missing: "drop" lets readings pass that are not numbers, or saturated, where they have a weight, and leaves
            samples out whose q or qd is not a number.
    """

    systems: Mapping[ContactState, System]
    contacts: Sequence[str] = ()
    closed: ContactState | None = None
    differentiation: Differentiator | None = None
    missing: Missing = "refuse"

    def states(self, log: Log) -> set[ContactState]:
        """The contact states that occur in a log.

        Raises:
            InputError: the log does not tell which contacts are closed.
            FileFormatError: it is damaged.
            MappingError: the mapping fits neither the log nor the robot.
        """
        found: set[ContactState] = set()
        with log.opened(self.systems, self.contacts) as (source, binding):
            self._check_contacts(binding)
            for samples in raw_samples(source, binding):
                assert samples.contacts is not None
                is_known = np.isin(samples.contacts, (0, 1)).all(axis=1)
                rows = np.unique(samples.contacts[is_known], axis=0) == 1
                found |= {tuple(compress(self.contacts, row)) for row in rows.tolist()}
        return found

    def chunks(self, log: Log, counts: LogCounts) -> Iterator[Samples]:
        """Yield the samples of a log that can be estimated.

        Args:
            log: the log.
            counts: takes what is counted.

        Raises:
            InputError: the log lacks what is needed, or holds what is no number, or no sample that can be estimated.
            UnplannedStateError: a contact state that has no system.
            FileFormatError: the log is damaged.
            MappingError: the mapping fits neither the log nor the robot.
        """
        is_empty = True
        with log.opened(self.systems, self.contacts) as (source, binding):
            self._check_contacts(binding)
            counts.unused, counts.ignored = abbreviated(binding.unused), abbreviated(binding.ignored)
            read = samples_of(source, binding, self.differentiation, self.closed, counts)
            with closing(prefetched(read)) as chunks:  # its thread stops before the log is closed
                for chunk in chunks:
                    made = counts.differentiated
                    samples = usable(chunk, self.missing, made, counts.left_out)
                    if not len(samples):
                        continue
                    for state, places in samples_by_state(samples).items():
                        without = binding.lacking_in(state, made)
                        if without:
                            of = f"of {len(self.systems[state].measurement_names)} measurements"
                            raise binding.lacks(without, source.columns, of)
                        own = binding.record.own_readings(state, samples.y[places])
                        check_readings(samples, self.systems[state], own, places, self.missing)
                    is_empty, counts.done = False, source.done()
                    yield samples
        if is_empty:
            reasons = "; ".join(f"{n:,} {reason}" for reason, n in counts.left_out.items())
            raise InputError(f"{log.path}: no sample of it can be estimated: {reasons}.")

    def _check_contacts(self, binding: Binding) -> None:
        """Check that the log tells which contacts are closed, where nothing else does.

        Raises:
            InputError: it does not.
        """
        without = next((name for name in self.contacts if f"{CONTACT}{name}" in binding.lacking), None)
        if without is not None and self.closed is None:
            raise InputError(
                f"{binding.where}: has no column '{CONTACT}{without}', 1 where that contact is closed and 0 where it "
                f"is open. Or say which contacts are closed throughout: --contacts {','.join(self.contacts)}, or none."
            )

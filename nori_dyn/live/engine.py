"""From the numbers of a sample to an estimate, or to the reason why there is none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from typing import NamedTuple

import numpy as np

from nori_dyn.api.log_run import LogRunner, RunOptions
from nori_dyn.api.planned import Planned
from nori_dyn.errors import InputError, NoriError, SaturatedReadingError, SingularSystemError, UnplannedStateError
from nori_dyn.live.differentiation import CausalDerivative
from nori_dyn.live.state import State
from nori_dyn.logs.binding import Binding
from nori_dyn.logs.chunks import lacking
from nori_dyn.logs.naming import KINDS
from nori_dyn.logs.record import Record
from nori_dyn.logs.source import suggestion
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import unusable
from nori_dyn.typing import Booleans, Floats, Indices


class Tick(NamedTuple):
    """An estimate of one sample.

    Attributes:
        t: the time of the sample [s].
        estimate: the estimate.
        diagnosis: what a monitor says, where there is one.
        values: the numbers of the sample (m,), as the record names them.
    """

    t: float
    estimate: Estimate
    diagnosis: Diagnosis | None
    values: Floats


class Needs(NamedTuple):
    """What a contact state reads.

    Attributes:
        places: of its readings among all (n,).
        system: its system.
    """

    places: Indices
    system: System


class Solving(NamedTuple):
    """A plan, or plans of contact states, compiled.

    Attributes:
        systems: what is solved in each contact state.
        contacts: the contacts.
        closed: those that are closed throughout; None where the stream tells.
        solve: estimates one sample: q, qd, readings, contacts.
    """

    systems: Mapping[ContactState, System]
    contacts: tuple[str, ...]
    closed: ContactState | None
    solve: Callable[[Floats, Floats, Floats, Booleans | None], Estimate | Diagnosis]


def prepared(
    plans: Planned, monitor: bool = False, backend: str = "auto", closed: ContactState | None = None
) -> Solving:
    """Return plans compiled for one sample at a time.

    Args:
        plans: the plan, or the plans of contact states.
        monitor: whether readings are judged as well.
        backend: as for `Plan.solver`.
        closed: for a plan set, the contacts that are closed throughout; None takes them from the stream.

    Raises:
        InputError: contacts or a monitor where there are none.
        PlanError: the sensors have memory.
        UnknownSensorNameError: there is no such contact.
        BackendError: there is no such backend.
    """
    runner = LogRunner(plans, RunOptions(closed=closed, monitor=monitor, backend=backend))
    runner.check_memory()
    if plans.contact_names:
        closed = None if closed is None else plans.sensors.contact_state(closed)
        solver = plans.solver(backend)
        solver.prepare(None if closed is None else [closed])  # no message waits for a compiler
        many = solver.solve
        return Solving(runner.systems, runner.contacts, closed, lambda q, qd, y, c: many(q, qd, y, c, missing="drop"))
    one = plans.states.first.monitor(backend).check if monitor else plans.solver(backend).solve
    return Solving(runner.systems, runner.contacts, None, lambda q, qd, y, _: one(q, qd, y, missing="drop"))


def warm_up(solving: Solving, record: Record) -> None:
    """Solve once, whatever comes of it: the first time takes longer."""
    zeros, closed = np.zeros(len(record.names)), np.zeros(len(record.contacts), dtype=bool)
    with suppress(NoriError):
        solving.solve(record.tree.neutral_configuration(), zeros[record.qd], zeros[record.y], closed)


class LeftOut(Exception):
    """A sample that cannot be estimated: the reason, and more about it."""


class Engine:
    """Estimates samples, one by one; what cannot be estimated is counted, never raised.

    A reading that is missing is left out with its sensor where that has a sigma; without any other the sample is left
    out.

    Attributes:
        binding: where each number comes from.
        skipped: samples without an estimate, by the reason; see `counted`.
        dropped: in how many samples a sensor was left out, by its name.
        fell_back: estimates that were solved with fresh pivots.
        made: readings that are made by differentiating velocities.
        derivative: what makes them; None where nothing does.
        why: what was last told of a sample that was left out.

    Args:
        solving: the plans, compiled.
        binding: where each number comes from.
        window: samples over which velocities are differentiated for accelerations that nothing tells; None refuses
            such streams.

    Raises:
        InputError: q, qd, or a reading comes from nowhere.
    """

    def __init__(self, solving: Solving, binding: Binding, window: int | None = None) -> None:
        self.binding, self._record, self._closed = binding, binding.record, solving.closed
        self.made = () if window is None else binding.derivable
        _check(binding, solving.closed, self.made)
        record = binding.record
        self.derivative = CausalDerivative(window, record.tree.nv) if self.made and window is not None else None
        self._derived = np.array([record.places[name] for name in self.made], dtype=np.intp)
        self._factors = np.zeros((len(self.made), record.tree.nv))
        for row, name in zip(self._factors, self.made, strict=True):
            row[list(record.freedoms[name].places)] = record.freedoms[name].factors
        self._solve = solving.solve
        self._needs = {state: _needs(record, state) for state in record.systems}
        self._last = -np.inf
        self.skipped: Counter[str] = Counter()
        self.dropped: Counter[str] = Counter()
        self.fell_back = 0
        self.why = ""

    def tick(self, state: State, t: float) -> Tick | None:
        """Return the estimate of the sample at a time; None where there can be none, which is counted."""
        try:
            with np.errstate(all="ignore"):  # numbers from the ends of what doubles are: what is not finite is left out
                return self._ticked(t, state.sample(t), state.period)
        except LeftOut as left:
            reason, why = left.args
        except SingularSystemError as error:
            reason, why = "the sensors do not suffice at this pose", error.args[0]
        except SaturatedReadingError as error:
            reason, why = "a reading is saturated", error
        except UnplannedStateError as error:
            reason, why = "the contact state has no plan", error
        except InputError as error:
            reason, why = "the numbers are refused", error
        self.skipped[reason] += 1
        self.why = f"{reason}: {why}" if why else reason
        return None

    def counted(self) -> tuple[Counter[str], Counter[str], int]:
        """Return `skipped`, `dropped` and `fell_back`, and count from zero."""
        found = self.skipped, self.dropped, self.fell_back
        self.skipped, self.dropped, self.fell_back = Counter(), Counter(), 0
        return found

    def _ticked(self, t: float, values: Floats, period: float) -> Tick:
        """Return the estimate of a sample.

        Raises:
            LeftOut: a number that is needed is not known.
            InputError: the solver refuses it.
            SingularSystemError: it has no unique solution.
        """
        record = self._record
        motion = values[: record.y.start]
        q, qd, y = values[record.q], values[record.qd], values[record.y]
        if not np.isfinite(motion).all():
            raise LeftOut("q or qd is not known", _at(record.names, ~np.isfinite(motion)))
        if self.derivative is not None:
            self._differentiate(t, qd, values, period)
        contacts = None
        if record.contacts:
            told = values[record.closed] if self._closed is None else self._given(record)
            contacts = told == 1.0
            if not (contacts | (told == 0.0)).all():
                raise LeftOut("a contact is neither open nor closed", _at(record.contacts, ~contacts & (told != 0.0)))
        self._check_readings(y, contacts)
        found = self._solve(q, qd, y, contacts)
        diagnosis = found if isinstance(found, Diagnosis) else None
        estimate = found.estimate if isinstance(found, Diagnosis) else found
        if not all(np.isfinite(value).all() for value in estimate.values.values()):
            raise LeftOut("the estimate is not finite", "")
        self.fell_back += bool(estimate.fell_back)
        return Tick(t, estimate, diagnosis, values)

    def _differentiate(self, t: float, qd: Floats, values: Floats, period: float) -> None:
        """Write the accelerations that velocities make; those before a gap as long as the window have no part in it.

        Raises:
            LeftOut: there are too few as yet.
        """
        assert self.derivative is not None
        if t - self._last > self.derivative.window * period:
            self.derivative.forget()
        self._last = t
        try:
            derivative = self.derivative.add(t, qd)
        except np.linalg.LinAlgError:
            raise LeftOut("the times of samples are too uneven to differentiate", "") from None
        if derivative is None:
            raise LeftOut("velocities are collected to differentiate them", "")
        values[self._derived] = self._factors @ derivative

    def _check_readings(self, y: Floats, contacts: Booleans | None) -> None:
        """Count the sensors whose readings (ny,) are of no use, and which the solver therefore leaves out.

        Raises:
            LeftOut: one that is not known holds exactly.
        """
        closed = () if contacts is None else tuple(n for n, c in zip(self._record.contacts, contacts, strict=True) if c)
        needs = self._needs.get(closed)
        if needs is None:
            return  # the solver says so
        system, own = needs.system, y[needs.places]
        is_known = np.isfinite(own)
        if is_known.all() and system.ranges is None:
            return
        lacking = ~is_known & (system.weight_of_readings < 0)
        if lacking.any():
            raise LeftOut("a reading is missing", _at(system.measurement_names, lacking))
        if system.is_weighted:
            for weight in np.flatnonzero(unusable(system, own)).tolist():
                self.dropped[system.weight_names[weight]] += 1

    def _given(self, record: Record) -> Floats:
        """Return which contacts are closed throughout."""
        return np.array([float(name in (self._closed or ())) for name in record.contacts])


def _at(names: Sequence[str], which: Booleans) -> str:
    """Return the names of those that are true."""
    return ", ".join(names[k] for k in np.flatnonzero(which).tolist())


def _check(binding: Binding, closed: ContactState | None, made: tuple[str, ...]) -> None:
    """Check that streams tell all that is needed in some contact state.

    Raises:
        InputError: they do not; says what lacks.
    """
    record = binding.record
    states = record.systems if closed is None or len(record.systems) == 1 else [closed]
    needed = {name: None for state in states for name in lacking(binding, state, made)}
    always = [*record.names[: record.y.start], *(() if closed is not None else record.names[record.closed])]
    missing = [name for name in always if name in binding.lacking] + list(needed)
    if not missing:
        return
    shown = ", ".join(f"'{name}'" for name in missing[:6]) + (", ..." if len(missing) > 6 else "")
    is_made = any(name in record.freedoms and record.freedoms[name].kind == "qdd" for name in needed)
    advice = " Joint accelerations can be made from the velocities: --differentiate 21." if is_made else ""
    columns = {column: bound.stream for bound in binding.streams.values() for column in bound.stream.columns}
    raise InputError(
        f"{binding.where}: lacks {len(missing)} numbers that are needed: {shown}.{advice} "
        f"{suggestion(columns, missing[0], KINDS)} A mapping says what they are called: --mapping."
    )


def _needs(record: Record, state: ContactState) -> Needs:
    system = record.systems[state]
    places = [record.places[name] - record.y.start for name in system.measurement_names]
    return Needs(np.array(places, dtype=np.intp), system)

"""The contact states of a log, and the readings that are needed in each: read, differentiated, and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from nori_dyn.errors import InputError, SaturatedReadingError, UnplannedStateError
from nori_dyn.io.columns import Columns, shown_value
from nori_dyn.io.differentiation import Differentiation
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.binding import without_offset
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.system.variables import LOAD
from nori_dyn.typing import Booleans, Floats, Indices

ALIASES = {
    "q": ("q", "position"),
    "qd": ("qd", "dq", "velocity"),
    "qdd": ("qdd", "ddq", "acceleration"),
    "tau": ("tau", "tau_J", "effort"),
    LOAD: ("tau_J", "effort"),
}
"""What columns with a number, such as `q[0]`, may be called: here, by libfranka and by ROS."""

CONTACT = "contact:"
"""How the names of columns of contacts begin."""

ALWAYS: ContactState = ()
"""The contact state of sensors without contacts."""


def _names(systems: Mapping[ContactState, System]) -> tuple[str, ...]:
    """Return the names of all readings, each once, as `SwitchingSolver` orders them."""
    return tuple({name: None for each in systems.values() for name in each.measurement_names})


def contact_states(columns: Columns, names: Sequence[str], closed: ContactState | None, n: int) -> Booleans:
    """Return whether each contact is closed (N, n_contacts).

    Raises:
        InputError: a contact has no column, or one with other numbers than 0 and 1.
    """
    if closed is not None:
        return np.tile([name in closed for name in names], (n, 1))
    found: list[Booleans] = []
    for name in names:
        column = columns.take((f"{CONTACT}{name}",))
        if column is None:
            raise InputError(
                f"{columns.path}: has no column '{CONTACT}{name}', 1 where that contact is closed and 0 where it is "
                f"open. Or say which contacts are closed throughout: --contacts {','.join(names)}, or none."
            )
        wrong = np.flatnonzero((column != 0) & (column != 1))
        if len(wrong):
            place, value = columns.place(int(wrong[0])), shown_value(column[wrong[0]])
            raise InputError(f"{place}: column '{CONTACT}{name}' is {value}: it must be 1 (closed) or 0 (open).")
        found.append(column == 1)
    return np.column_stack(found)


def samples_by_state(
    columns: Columns,
    systems: Mapping[ContactState, System],
    names: Sequence[str],
    contacts: Booleans | None,
    n: int,
) -> dict[ContactState, Indices]:
    """Return the samples of each contact state that occurs.

    Raises:
        UnplannedStateError: one has no system; says where.
    """
    if contacts is None:
        return {ALWAYS: np.arange(n)}
    found: dict[ContactState, Indices] = {}
    rows, of_samples = np.unique(contacts, axis=0, return_inverse=True)
    for k, row in enumerate(rows):
        state = tuple(name for name, is_closed in zip(names, row, strict=True) if is_closed)
        samples = np.flatnonzero(of_samples.reshape(-1) == k)
        if state not in systems:
            error = UnplannedStateError(state, tuple(systems))
            error.args = (f"{columns.place(int(samples[0]))}: {error}",)
            raise error
        found[state] = samples
    return found


def readings(
    columns: Columns,
    systems: Mapping[ContactState, System],
    states: Sequence[ContactState],
    qd: Floats,
    differentiation: Differentiation | None,
    t: Floats | None,
) -> tuple[Floats, tuple[str, ...]]:
    """Return the readings of all states (N, ny), and the names of those that were made by differentiating.

    Raises:
        InputError: the log lacks readings of states that occur in it.
    """
    names = _names(systems)
    needed = {name for state in states for name in systems[state].measurement_names}
    freedoms = {name: own for each in systems.values() for name, own in _freedoms(each).items()}
    y = np.full((len(qd), len(names)), np.nan)
    differentiated: list[str] = []
    lacking: list[str] = []
    derivative: Floats | None = None
    for k, name in enumerate(names):
        kind, own, factors = freedoms.get(name, ("", [], np.ones(0)))
        is_one = len(own) == 1 and factors[0] == 1.0
        numbered = [f"{alias}[{own[0]}]" for alias in ALIASES[kind]] if is_one else []
        column = columns.take((name, f"y[{k}]", *numbered))
        if column is not None:
            y[:, k] = column
        elif kind == "qdd" and differentiation is not None:
            derivative = differentiation.apply(qd, t) if derivative is None else derivative
            y[:, k] = derivative[:, own] @ factors
            differentiated.append(name)
        elif name in needed:
            lacking.append(name)
    if lacking:
        shown = ", ".join(f"'{name}'" for name in lacking[:6]) + (", ..." if len(lacking) > 6 else "")
        made = any(freedoms.get(name, ("",))[0] == "qdd" for name in lacking)
        hint = " Joint accelerations can be made from the velocities: --differentiate 51." if made else ""
        raise InputError(
            f"{columns.path}: lacks {len(lacking)} of {len(needed)} measurements: {shown}.{hint} "
            f"{columns.suggestion(lacking[0])}"
        )
    return y, tuple(differentiated)


def _freedoms(system: System) -> dict[str, tuple[str, list[int], Floats]]:
    """Return by its name what a reading of joint accelerations or torques is of: the kind, freedoms, and times what."""
    found: dict[str, tuple[str, list[int], Floats]] = {}
    for row in system.measurements:
        equation = without_offset(row.equation)
        if isinstance(equation, VariableReading) and equation.key.kind in ("qdd", "tau", LOAD):
            first = system.tree.v_slices[equation.key.body].start
            for k, factors in enumerate(equation.matrix, start=row.y.start):
                own = np.flatnonzero(factors)
                freedoms = [first + int(j) for j in own]
                found[system.measurement_names[k]] = equation.key.kind, freedoms, factors[own]
    return found


def own_readings(systems: Mapping[ContactState, System], state: ContactState, y: Floats) -> Floats:
    """Return of the readings of all states (n, ny) those of one."""
    names = _names(systems)
    return y if len(systems) == 1 else y[:, [names.index(name) for name in systems[state].measurement_names]]


def check_readings(columns: Columns, system: System, own: Floats, samples: Indices, missing: Missing) -> None:
    """Check the readings (n, ny) of one contact state at its samples (n,).

    Raises:
        InputError: one is no number, or saturated, and cannot be dropped, or is not to be; says where.
    """
    is_exact = system.weight_of_readings < 0
    counts = is_exact if missing == "drop" else np.ones(system.ny, dtype=bool)
    for wrong in np.argwhere(~np.isfinite(own) & counts)[:1]:
        sample, k = int(samples[wrong[0]]), int(wrong[1])
        advice = "It holds exactly and cannot be left out: give the sensor a `sigma`; then" if is_exact[k] else "With"
        raise InputError(
            f"{columns.place(sample)}: '{system.measurement_names[k]}' is {shown_value(own[tuple(wrong)])}. {advice} "
            "--missing drop the estimate does without it."
        )
    for wrong in np.argwhere(system.saturated(own) & counts)[:1]:
        sample, k = int(samples[wrong[0]]), int(wrong[1])
        low, high = system.ranges[:, k].tolist() if system.ranges is not None else (-np.inf, np.inf)
        name, value = system.measurement_names[k], float(own[tuple(wrong)])
        raise SaturatedReadingError(columns.place(sample), name, value, (low, high), bool(is_exact[k]))

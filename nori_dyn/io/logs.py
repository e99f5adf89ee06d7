"""Logs: states, readings and contact states from CSV or NPZ.

A CSV has one column a number: `q[3]` or `q:joint` (`q:joint[1]` where a joint has several), `qd[3]` or `qd:joint`, and
each measurement by its name (`qdd:joint`), as `y[3]`, or, where it is the acceleration or torque of one freedom, as
`qdd[3]` or `tau[3]`; see `ALIASES` for what else these may be called. A contact `l_foot` is closed where
`contact:l_foot` is 1, and open where it is 0. Other columns are left alone. An NPZ has arrays q (N, nq), qd (N, nv),
y (N, ny), or one array a measurement.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.errors import InputError
from nori_dyn.io.columns import Columns, read_columns, shown_value
from nori_dyn.io.differentiation import Differentiation
from nori_dyn.io.log_readings import (
    ALIASES,
    ALWAYS,
    check_readings,
    contact_states,
    own_readings,
    readings,
    samples_by_state,
)
from nori_dyn.measurements.contacts import ContactState
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.system.inputs import Missing
from nori_dyn.typing import Booleans, Floats, Indices

TIMES = ("t", "time", "timestamp")
"""What a column of times is called, in small letters or capitals."""


KINDS = tuple(dict.fromkeys(alias for aliases in ALIASES.values() for alias in aliases))
"""All that columns with a number may be called."""


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """The states and readings of a log.

    Attributes:
        q: configurations (N, nq).
        qd: velocities (N, nv).
        y: readings (N, ny); of sensors with contacts those of all states, each once, as `SwitchingSolver` takes them.
        differentiated: names of the readings that were made by differentiating qd.
        t: times (N,), where there is a column of that kind, see `TIMES`.
        contacts: whether each contact is closed (N, n_contacts), for sensors that have some.
        samples: the samples of each contact state that occurs.
        unused: what else the file holds.
    """

    q: Floats
    qd: Floats
    y: Floats
    differentiated: tuple[str, ...] = ()
    t: Floats | None = None
    contacts: Booleans | None = None
    samples: Mapping[ContactState, Indices] = field(default_factory=dict)
    unused: tuple[str, ...] = ()

    def states(self, most: int | None = None) -> tuple[Any, ...]:
        """Return the first samples, or all, as `solve_batch` takes them: q, qd, y, and contacts where there are any."""
        parts = self.q, self.qd, self.y, *(() if self.contacts is None else (self.contacts,))
        return tuple(part[:most] for part in parts)


def read_log(
    path: str | Path,
    system: System | Mapping[ContactState, System],
    differentiation: Differentiation | None = None,
    missing: Missing = "refuse",
    contact_names: Sequence[str] = (),
    closed: ContactState | None = None,
) -> Log:
    """Return the states and readings in a CSV (`.csv`, `.csv.gz`) or NPZ file.

    Args:
        path: the file.
        system: the system that they are for; for sensors with contacts that of each contact state.
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.
        missing: "drop" lets readings pass that are not numbers, or saturated, where they have a weight.
        contact_names: the contacts, where there are some.
        closed: those that are closed in all samples; None takes them from columns of the log.

    Raises:
        FileFormatError: the file cannot be read, or is neither CSV nor NPZ.
        InputError: columns that are needed are missing, or not numbers where they must be; says where.
        UnplannedStateError: a contact state that has no system.
    """
    systems = system if isinstance(system, Mapping) else {ALWAYS: system}
    tree = next(iter(systems.values())).tree
    rows = {row.name: row for each in systems.values() for row in each.measurements}
    columns = read_columns(path, {name: row.equation.components for name, row in rows.items()})
    t = columns.take(name for name in columns.values if name.lower() in TIMES)
    q, qd = _states(columns, tree, "q"), _states(columns, tree, "qd")
    contacts = contact_states(columns, contact_names, closed, len(q)) if contact_names else None
    by_state = samples_by_state(columns, systems, contact_names, contacts, len(q))
    y, differentiated = readings(columns, systems, tuple(by_state), qd, differentiation, t)
    for state, samples in by_state.items():
        check_readings(columns, systems[state], own_readings(systems, state, y[samples]), samples, missing)
    return Log(q, qd, y, differentiated, t, contacts, by_state, columns.unused)


def read_configurations(path: str | Path, system: System) -> Floats:
    """Return the configurations (N, nq) in a CSV (`.csv`, `.csv.gz`) or NPZ file, which may hold more.

    Raises:
        FileFormatError: the file cannot be read, or is neither CSV nor NPZ.
        InputError: columns of q are missing, or hold what is no number.
    """
    return _states(read_columns(path), system.tree, "q")


def _states(columns: Columns, tree: KinematicTree, kind: str) -> Floats:
    """Return q (N, nq) or qd (N, nv)."""
    labels = [
        f"{kind}:{name}" if size == 1 else f"{kind}:{name}[{k}]"
        for joint, name in zip(tree.joints, tree.joint_names, strict=True)
        for size in (joint.nq if kind == "q" else joint.nv,)
        for k in range(size)
    ]
    found: list[Floats] = []
    for k, label in enumerate(labels):
        numbered = [f"{alias}[{k}]" for alias in ALIASES[kind]]
        name = columns.take_name((label, *numbered))
        if name is None:
            raise InputError(
                f"{columns.path}: has no column '{label}' or '{numbered[0]}' ({len(labels)} numbers of {kind} are "
                f"needed). {columns.suggestion(numbered[0], KINDS)}"
            )
        _check_finite(columns, columns.values[name], name)
        found.append(columns.values[name])
    if not len(found[0]):
        raise InputError(f"{columns.path}: holds no samples.")
    return np.column_stack(found)


def _check_finite(columns: Columns, column: Floats, label: str) -> None:
    wrong = np.flatnonzero(~np.isfinite(column))
    if len(wrong):
        place, value = columns.place(int(wrong[0])), shown_value(column[wrong[0]])
        raise InputError(
            f"{place}: column '{label}' is {value}. Without q and qd nothing can be said: remove such samples "
            f"({len(wrong)} of {len(column)}), or fill them in."
        )

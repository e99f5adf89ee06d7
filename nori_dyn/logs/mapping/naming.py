"""Default names of columns: ours, those of libfranka, and those of ROS."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from nori_dyn.algebra.ranges import holding, width
from nori_dyn.logs.formats.source import Stream
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.system.variables import LOAD

ALIASES = {
    "q": ("q", "position", "positions"),
    "qd": ("qd", "dq", "velocity", "velocities"),
    "qdd": ("qdd", "ddq", "acceleration", "accelerations"),
    "tau": ("tau", "tau_J", "effort", "efforts", "torque", "torques"),
    LOAD: ("tau_J", "effort"),
}
"""What columns with a number, such as `q[0]`, or of a joint, such as `/joint_states.position:elbow`, may be called."""

KINDS = tuple(dict.fromkeys(alias for aliases in ALIASES.values() for alias in aliases))
"""All that such columns may be called."""


def usual_names(record: SampleRecord, columns: Mapping[str, Stream]) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yield each number of a record, and what its column may be called, the likeliest first.

    Args:
        record: the numbers of a sample.
        columns: those of the log: `q[0]` is of the first joint that has columns, where the root is estimated.
    """
    component = {name: (group, k) for group, names in record.groups.items() for k, name in enumerate(names)}
    for k, name in enumerate(record.names):
        group, j = component[name]
        kind, numbers, joint = _as_freedom(record, name, k)
        aliases = ALIASES.get(kind, ()) if numbers is not None else ()
        numbered = [name for alias in aliases for name in _numbered(record, columns, alias, kind, numbers or 0)]
        of_joint = [f"{alias}:{joint}" for alias in ALIASES.get(kind, ())] if joint else []
        in_array = [f"{group}[{j}]"] if len(record.groups[group]) > 1 else []
        of_y = [f"y[{k - record.y.start}]"] if record.y.start <= k < record.y.stop else []
        yield name, tuple(dict.fromkeys([name, *in_array, *of_y, *numbered, *of_joint]))


def _numbered(record: SampleRecord, columns: Mapping[str, Stream], alias: str, kind: str, k: int) -> Iterator[str]:
    """Yield names of the k-th number of a kind: among all, or in a log of fewer those of all but an estimated root.

    Without brackets numbers may begin at one.
    """
    tree = record.tree
    n, of_root = (tree.nq, sum(p < tree.nq for p in record.estimated)) if kind == "q" else (tree.nv, 6)
    has_all = not record.estimated or column_named(columns, [f"{alias}[{n - 1}]"]) is not None
    yield f"{alias}[{k if has_all else k - of_root}]"
    for stem in (alias, f"{alias}_") if not record.estimated else ():
        yield f"{stem}{k if column_named(columns, [f'{stem}0']) else k + 1}"


def column_named(columns: Mapping[str, Stream], names: Iterable[str]) -> str | None:
    """The first of some names that a column of the log has, in full or within a single stream; None without one."""
    for name in names:
        if name in columns:
            return name
        ends = [column for column, stream in columns.items() if stream.name and column == f"{stream.name}.{name}"]
        if len(ends) == 1:
            return ends[0]
    return None


def _as_freedom(record: SampleRecord, name: str, place: int) -> tuple[str, int | None, str | None]:
    """Kind of a number, its index within the kind, and its joint if that has a single one; None otherwise."""
    if place < record.qd.stop:
        kind, first = ("q", 0) if place < record.q.stop else ("qd", record.qd.start)
        return (
            kind,
            place - first,
            _joint_of(record.tree.q_slices if kind == "q" else record.tree.v_slices, record, place - first),
        )
    freedom = record.freedoms.get(name)
    if freedom is None or freedom.factors != (1.0,):
        return "", None, None
    (of,) = freedom.places
    return freedom.kind, of, _joint_of(record.tree.v_slices, record, of)


def _joint_of(slices: Sequence[slice], record: SampleRecord, place: int) -> str | None:
    owner = holding(slices, place)
    return record.tree.joint_names[owner] if width(slices[owner]) == 1 else None

"""Estimates: numbers by the names of joints and links, how far to trust them, and whether the readings fit together."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from nori_dyn.planning.outputs import Output
from nori_dyn.program.layout import output_names
from nori_dyn.program.status import Status
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.system.builder import System
from nori_dyn.system.variables import OF_JOINTS, SPATIAL, WORDS, Kind, component_names
from nori_dyn.tables import Document, Facts, Table, listed, number, numbers, unbroken
from nori_dyn.typing import Floats

NOT_CLOSED = 1e-6
"""Gap of a loop [m or rad] that is shown as such."""

FALSE_ALARMS = 1e-3
"""Probability below which readings are taken not to fit together."""

MOST_NAMES = 12
"""Names of readings that are not checked that are shown."""

MOST_JOINTS = 60
MOST_LINKS = 10
"""Joints and links that are shown, of larger robots, where lines have a width."""


def estimate_document(estimate: Estimate) -> Document:
    """The document of an estimate."""
    system = estimate.system
    facts = Facts((("robot", unbroken(system.tree.name)), *trust(estimate)))
    return Document((facts, *value_tables(system, estimate.outputs, estimate.values)))


def trust(estimate: Estimate) -> Iterator[tuple[str, str]]:
    """Yield how an estimate came about, and how far to trust it."""
    singular, fell_back = np.atleast_1d(estimate.singular), np.atleast_1d(estimate.fell_back)
    residual = np.atleast_1d(np.asarray(estimate.residual))
    N = len(singular) if np.ndim(estimate.singular) else None
    if N is not None:
        yield "states", f"{N:,}"
    yield "backend", estimate.backend
    checked = residual[~np.isnan(residual)]
    largest = number(checked.max(), 2) if len(checked) else "not checked"
    yield ("worst residual" if N else "residual"), f"{largest}, relative" if len(checked) else largest
    yield "fell back", _counted(fell_back, N, "to pivoting")
    if estimate.system.tree.closing_parts:
        gap = float(np.max(np.atleast_1d(np.asarray(estimate.gap)), initial=0.0))
        note = "" if gap < NOT_CLOSED else ": the equations assume closed loops, see nd.tools.closed"
        yield "gap of loops", f"{number(gap, 2)} m or rad{note}"
    if singular.any():
        yield "singular", _counted(singular, N, "no unique solution: the values are nan")


def _counted(found: np.ndarray[tuple[int, ...], np.dtype[np.bool_]], N: int | None, words: str) -> str:
    n = int(np.count_nonzero(found))
    if not n:
        return "no"
    return f"yes, {words}" if N is None else f"{n:,} of {N:,}, {words}; the first is {int(found.argmax())}"


def value_tables(
    system: System, outputs: Sequence[Output], values: Mapping[str, Floats], sigmas: Mapping[str, Floats] | None = None
) -> Iterator[Table]:
    """Yield the values of outputs as tables: joints, links, components; ranges where there are many states.

    Args:
        system: the system.
        outputs: what was asked for.
        values: by their names.
        sigmas: their standard deviations, where they are known.
    """
    many = any(np.ndim(values[output.name]) > (2 if output.is_of_all_links else 1) for output in outputs)
    if many:
        yield _ranges(system, outputs, values, "Range of each output")
        if sigmas is not None:
            yield _ranges(system, outputs, sigmas, "Range of each standard deviation")
        return
    joints = [kind for kind in OF_JOINTS if any(output.kind == kind for output in outputs)]
    if joints:
        yield _joint_table(system, outputs, joints, values, sigmas)
    for kind in SPATIAL:
        if any(output.kind == kind for output in outputs):
            yield _link_table(system, outputs, kind, values, WORDS[kind].capitalize())
            if sigmas is not None:
                yield _link_table(system, outputs, kind, sigmas, f"Standard deviation of {WORDS[kind]}")
    others = [output for output in outputs if not output.is_of_joints and not output.is_spatial]
    if others:
        yield _component_table(system, others, values, sigmas)


def _joint_table(
    system: System,
    outputs: Sequence[Output],
    kinds: Sequence[Kind],
    values: Mapping[str, Floats],
    sigmas: Mapping[str, Floats] | None,
) -> Table:
    columns: dict[str, dict[str, str]] = {}
    for kind in kinds:
        pairs = itertools.product((output for output in outputs if output.kind == kind), system.variables)
        mine = [(output, variable) for output, variable in pairs if output.covers(variable)]
        units = ", ".join(dict.fromkeys(unit for _, variable in mine for unit in variable.units))
        parts = ((kind, values),) if sigmas is None else ((kind, values), ("sigma", sigmas))
        for heading, array in parts:
            flat = [x for name in dict.fromkeys(output.name for output, _ in mine) for x in array[name].tolist()]
            names = (n for _, variable in mine for n in component_names(variable.owner, variable.components))
            column = f"{heading} [{units}]" if heading == kind else f"{heading} of {kind}"
            columns[column] = dict(zip(names, numbers(flat, 5), strict=True))
    rows = dict.fromkeys(name for column in columns.values() for name in column)
    cells = tuple((unbroken(name), *(column.get(name) for column in columns.values())) for name in rows)
    return Table("Joints", ("joint", *columns), cells, most=MOST_JOINTS)


def _link_table(
    system: System, outputs: Sequence[Output], kind: Kind, values: Mapping[str, Floats], title: str
) -> Table:
    tree, mine = system.tree, [output for output in outputs if output.kind == kind]
    names = [name for output in mine for name in (tree.names if output.body is None else (output.owner,))]
    array = np.concatenate([values[output.name].reshape(-1, 6) for output in mine])
    (variable,) = [v for v in system.variables if v.kind == kind and v.body == 0]
    columns = [numbers(column) for column in array.T.tolist()]
    rows = tuple((unbroken(name), *row) for name, row in zip(names, zip(*columns, strict=True), strict=True))
    units = ", ".join(dict.fromkeys(variable.units))
    return Table(f"{title}, {kind} [{units}]", ("link", *variable.components), rows, most=MOST_LINKS)


def _component_table(
    system: System, outputs: Sequence[Output], values: Mapping[str, Floats], sigmas: Mapping[str, Floats] | None
) -> Table:
    """The table of what components add, a number a row."""
    names, units = output_names(system, outputs)
    parts = (("value", values),) if sigmas is None else (("value", values), ("sigma", sigmas))
    columns = {
        heading: numbers([x for output in outputs for x in array[output.name].tolist()], 5) for heading, array in parts
    }
    rows = tuple(zip(map(unbroken, names), *columns.values(), units, strict=True))
    return Table("Components", ("what", *columns, "unit"), rows, left=(0, len(columns) + 1), most=MOST_JOINTS)


def _ranges(system: System, outputs: Sequence[Output], values: Mapping[str, Floats], title: str) -> Table:
    """The range of each output over many states: of each joint, and of each component over all links."""
    rows = []
    for output in outputs:
        array = values[output.name]
        if output.is_of_all_links:
            first = next(variable for variable in system.variables if output.covers(variable))
            names, units = tuple(f"{output.kind}.{c}, all links" for c in first.components), first.units
        else:
            names, units = output_names(system, [output])
        for name, column, unit in zip(names, np.moveaxis(array, -1, 0), units, strict=True):
            rows.append((unbroken(name), *_least_and_largest(column), unit))
    return Table(title, ("output", "least", "median", "largest", "unit"), tuple(rows), left=(0, 4), most=MOST_JOINTS)


def _least_and_largest(column: Floats) -> Sequence[str]:
    """The least, the median and the largest number of those that are not nan."""
    known = column[~np.isnan(column)]
    if not known.size:
        return ("nan",) * 3
    return numbers([float(known.min()), float(np.median(known)), float(known.max())])


def diagnosis_document(found: Diagnosis) -> Document:
    """The document of a monitor's diagnosis."""
    estimate = found.estimate
    suspects = found.suspects() if found.residuals.ndim == 1 and not found.is_consistent(FALSE_ALARMS) else ()
    rows = tuple((unbroken(s.sensor), unbroken(s.reading), number(s.normalised), number(s.explains)) for s in suspects)
    columns = ("sensor", "reading", "residual / spread", "chi-square explained")
    tables = (Table("What explains most of the misfit", columns, rows, left=(0, 1)),) if rows else ()
    values = value_tables(estimate.system, estimate.outputs, estimate.values, found.deviations)
    return Document((Facts(tuple(_diagnosis_facts(found))), *tables, *values))


def _diagnosis_facts(found: Diagnosis) -> Iterator[tuple[str, str]]:
    yield "robot", unbroken(found.estimate.system.tree.name)
    yield from trust(found.estimate)
    consistent = np.asarray(found.is_consistent(FALSE_ALARMS))
    p, squares, freedom = (np.asarray(x) for x in (found.p_value, found.chi_square, found.degrees_of_freedom))
    if found.residuals.ndim == 1:
        verdict = "fit together" if consistent else "do not fit together"
        chi = f"chi-square {number(float(squares))} with {int(freedom):,} degrees of freedom"
        yield "readings", f"{len(found.readings):,} weighted; they {verdict}: {chi}, p = {number(float(p), 2)}"
    else:
        n = int(np.count_nonzero(consistent))
        yield "readings", f"{len(found.readings):,} weighted; they fit together in {n:,} of {len(p):,} states"
    yield "unchecked", listed(found.unchecked, MOST_NAMES) or "none"


def status_document(status: Status) -> Document:
    """The document of the status of a tick."""
    outcome = "solved with pivoting" if status.fell_back else "solved as planned"
    rcond = f"{number(status.rcond, 2)}, singular below {number(status.threshold, 2)}" if status.fell_back else ""
    facts = (
        ("state", outcome if status.ok else "not solved: the outputs are nan"),
        ("cause", status.cause),
        ("residual", "" if math.isnan(status.residual) else f"{number(status.residual, 2)}, relative"),
        ("rcond", rcond),
    )
    return Document((Facts(facts),))

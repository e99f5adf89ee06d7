"""Offsets of outputs in the unknowns that a plan computes, and the transform to the requested frame."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.planning.outputs import Output, output_columns
from nori_dyn.system.builder import System
from nori_dyn.system.variables import component_names
from nori_dyn.typing import Floats


@dataclass(frozen=True, slots=True, eq=False)
class OutputSlice:
    """One output in the unknowns that a plan computes, one output after the other.

    Attributes:
        output: the requested output.
        slice: where it lies.
        shape: (n_links, 6) of a spatial vector for every link, (size,) of anything else.
        matrix: the transform to the coordinates of its frame (6, 6); None in link coordinates.
    """

    output: Output
    slice: slice
    shape: tuple[int, ...]
    matrix: Floats | None


def output_parts(system: System, outputs: Iterable[Output]) -> Iterator[OutputSlice]:
    """Yield where some outputs lie in the unknowns that a backend returns."""
    start = 0
    for output in outputs:
        size = len(output_columns(system, [output]))
        shape = (size // 6, 6) if output.is_of_all_links else (size,)
        matrix = None
        if output.X is not None:
            turn = output.X.motion_matrix() if output.kind == "a" else output.X.force_matrix()
            matrix = np.ascontiguousarray(turn, dtype=float)
        yield OutputSlice(output, slice(start, start + size), shape, matrix)
        start += size


def output_names(system: System, outputs: Iterable[Output]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names and units of the numbers of outputs."""
    known = [
        pair for variable in system.variables for pair in zip(variable.component_names, variable.units, strict=True)
    ]
    found: list[tuple[str, str]] = []
    for output in outputs:
        own = [known[column] for column in output_columns(system, [output])]
        if output.X is not None:
            names = component_names(output.name, MOTION if output.kind == "a" else FORCE)
            own = [(name, unit) for name, (_, unit) in zip(names, own, strict=True)]
        found += own
    return tuple(name for name, _ in found), tuple(unit for _, unit in found)


def sums_of(system: System, output: Output) -> list[dict[int, float]]:
    """Each number of an output as a sum of unknowns: their factors by column."""
    (part,) = output_parts(system, [output])
    columns = output_columns(system, [output]).tolist()
    if part.matrix is None:
        return [{column: 1.0} for column in columns]
    return [dict(zip(columns, map(float, row), strict=True)) for row in part.matrix]


def as_rows(sums: Sequence[Mapping[int, float]], n: int) -> Floats:
    """Sums of n unknowns as rows (n_sums, n)."""
    rows = np.zeros((len(sums), n))
    for row, factors in zip(rows, sums, strict=True):
        row[list(factors)] = list(factors.values())
    return rows

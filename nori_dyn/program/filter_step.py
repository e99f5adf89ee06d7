"""A whole tick of a filter as C: time goes on, the rows of the tick, the update, all outputs; one call.

The straight-line programs of rows and outputs are called through pointers, so that each is compiled alone.

Source: docs/design.md, 4.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from nori_dyn.program.filter_source import FilterShape, defined, filter_numbers, included, listed_table


@dataclass(frozen=True, slots=True)
class TickShape:
    """What the C of a tick has to know beside the sizes of its steps.

    Attributes:
        steps: these.
        n_motion: length of q and qd.
        n_y: length of y.
        exact: which numbers of y the exact rows read.
        weight_of: for each weighed row the number of its weight.
        walk: of each number of the memory, its standard deviation after a second.
        inverse_time: one over the time constant of each; 0 where it stays.
    """

    steps: FilterShape
    n_motion: int
    n_y: int
    exact: Sequence[int]
    weight_of: Sequence[int]
    walk: Sequence[float]
    inverse_time: Sequence[float]


def tick_source(shape: TickShape, lanes: int, alone: bool = False) -> str:
    """Return the C of a tick, see c/tick.h: `step`, `go_on`, `coast`.

    Args:
        shape: what it has to know.
        lanes: see `filter_numbers`.
        alone: see `filter_numbers`; what stands around a tick is there then, too, see c/alone_filter.h.
    """
    headers = ["tick.h", *(["alone.h", "alone_filter.h"] if alone else [])]
    return tick_numbers(shape, lanes, alone) + included(headers, alone)


def tick_numbers(shape: TickShape, lanes: int, alone: bool = False) -> str:
    """Return the sizes and tables of a tick, which its C reads."""
    sizes = {
        "N_MOTION": shape.n_motion,
        "N_STATE": shape.n_motion + shape.n_y,
        "N_EXACT": len(shape.exact),
    }
    tables = listed_table("exact", shape.exact) + listed_table("weight_of", shape.weight_of)
    numbers = listed_table("walk", shape.walk, "double") + listed_table("inverse_time", shape.inverse_time, "double")
    return filter_numbers(shape.steps, lanes, alone) + defined(sizes) + tables + numbers

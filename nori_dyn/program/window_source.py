"""Steps back to ticks that were, as C, and runs over many of them, with fixed sizes.

A step forward leaves all that a step back needs: s given m', which m+ would be without noise, from the rows that the
elimination of s leaves; and the reflections of [R sqrt(Q) | 1] to [0 | U], by which the noise is added, tell the noise
itself. With b = U^-1 (R m+ - z) they are

    e = gain b + spread n,   n of unit variance,   [spread | gain] = the rows of [1 | 0], reflected as well,

so that nothing is eliminated once more, and nothing is subtracted from a covariance.

Source: see `filtering.square_root`, whose `smooth_step` it agrees with: both are those of one textbook
(tests/unit/filtering/test_square_root.py).
"""

from __future__ import annotations

from nori_dyn.program.filter_source import FilterShape, defined, included
from nori_dyn.program.filter_step import TickShape, tick_numbers


def n_kept(shape: FilterShape, lanes: int) -> int:
    """Return how many doubles are kept of a tick."""
    blocks, of_memory = shape.blocks(lanes), -(-shape.k // lanes)
    return lanes * ((shape.n_s + 2 * shape.n_v + 1) * blocks + 2 + (3 * shape.k + 2) * of_memory + 2)


def n_room(shape: FilterShape, lanes: int) -> int:
    """Return how many doubles a step back works with; its C says whether that is enough."""
    blocks, of_memory = shape.blocks(lanes), -(-shape.k // lanes)
    return lanes * ((3 * shape.n + 2) * blocks + (4 * shape.k + 2) * of_memory + 1) + shape.k


def window_source(shape: TickShape, lanes: int, alone: bool = False) -> str:
    """Return the C of a tick that steps back, and of runs, see c/window.h: `forward`, `covariances`, `backward`.

    Args:
        shape: what it has to know.
        lanes: see `filter_numbers`.
        alone: see `filter_numbers`; what stands around a tick is there then, too, see c/alone_window.h.
    """
    sizes = {"N_KEPT": n_kept(shape.steps, lanes), "N_ROOM": n_room(shape.steps, lanes)}
    headers = ["window.h", *(["alone.h", "alone_filter.h", "alone_window.h"] if alone else [])]
    return tick_numbers(shape, lanes, alone) + defined(sizes) + included(headers, alone)

"""The step of a tracker as C: predict, update, outputs; smoothing steps back; contact states as hypotheses.

It is what `filtering.square_root` says in NumPy, with fixed sizes. All rows lie in one array, each with its right-hand
side as last number, in the order of their first column: a step of elimination reflects only the rows that have begun.
A reflection works on SIMD lanes across columns, so that nothing is summed across a vector. There is no allocation, no
call but of functions of C's mathematics, and no name from a model. The straight-line programs of rows and outputs are
called through pointers, so that each is compiled alone.

Smoothing back: a step forward leaves all that a step back needs: s given m', which m+ would be without noise, from the
rows that the elimination of s leaves; and the reflections of [R sqrt(Q) | 1] to [0 | U], by which the noise is added,
tell the noise itself. With b = U^-1 (R m+ - z) they are

    e = gain b + spread n,   n of unit variance,   [spread | gain] = the rows of [1 | 0], reflected as well,

so that nothing is eliminated once more, and nothing is subtracted from a covariance.

Hypotheses: what all contact states share is done once. The rows that hold in all of them are made triangular over all
of u; what they tell of the memory is merged with the prior, once for all states of one prior; then each state adds its
few rows of cases. Those of a state are ordered by their first columns, so that a reflection is of one row and of what
rows of cases have begun. Only states that have a part in another's prior go on to the next tick.

Source: see `filtering.square_root`, with which it agrees: both are those of one textbook
(tests/unit/filtering/test_square_root.py); docs/design.md, 4.12.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any

import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.emit import FOLDER
from nori_dyn.typing import Booleans

ZERO_PIVOT = 1e-11
"""The share of its column's norm below which a pivot is taken for zero: rounding leaves less than 1e-13 of it."""

LARGEST_SQUARE = 1e280
"""Readings whose squares, each over its variance, add up to as much or more are taken for no numbers: what they leave
in the prior would overflow at a later tick."""

SMALLEST_DECAY = 1e-8
"""The least decay that is used: the prior divides by it, and nobody sees the difference to a smaller one."""

LOOSE = 1e-9
"""The share of an undetermined direction below which a number does not take part in it."""

LEAST_LEFT = 1e-4
"""What is left of memory that fades as the state says where nothing is known of that; less would cost digits."""


@dataclass(frozen=True, slots=True)
class TrackShape:
    """What the C of a tracker's step depends on.

    Attributes:
        n_s, n_v, n_f: how many of u = [s | v | f] there are.
        p: number of weighed rows.
        A: row and column of each entry of their matrix (p, n).
        X: row and column of each entry of that of the rates (n_v, n); in columns of v only those of later numbers.
        n_motion: length of q and qd.
        n_y: length of y.
        exact: which numbers of y the exact rows read.
        weight_of: for each weighed row the number of its weight.
        walk: of each number of the memory, its standard deviation after a second; no noise is added to those before
            the first that walks, whatever their variance Q.
        inverse_time: one over the time constant of each; 0 where it stays.
        jump: of each the standard deviation of its change where a contact switches; empty where none has any.
        fading: which of the rows' last numbers says it at each tick; -1 where it is constant.
        of_case: for each weighed row whether it is of a case of a contact; empty where there are no hypotheses.
        base: where the state of a floating base begins in the memory; None where it is none of it.
        heavy: for each whether its weight is much larger than those of others: a reflection that begins with a heavy
            row keeps the digits of light ones.
    """

    n_s: int
    n_v: int
    n_f: int
    p: int
    A: tuple[tuple[int, int], ...]
    X: tuple[tuple[int, int], ...]
    n_motion: int = 0
    n_y: int = 0
    exact: Sequence[int] = ()
    weight_of: Sequence[int] = ()
    walk: Sequence[float] = ()
    inverse_time: Sequence[float] = ()
    jump: Sequence[float] = ()
    fading: Sequence[int] = ()
    of_case: Sequence[bool] = ()
    heavy: Sequence[bool] = ()
    base: int | None = None

    @property
    def n_fading(self) -> int:
        """How many numbers of the memory fade in a time that depends on the state."""
        return sum(number >= 0 for number in self.fading)

    @property
    def n_values(self) -> int:
        """How many numbers the program of a tick's rows computes: A, c, X, x, and one over these times."""
        return len(self.A) + self.p + len(self.X) + self.n_v + self.n_fading

    @property
    def k(self) -> int:
        """Size of the memory."""
        return self.n_v + self.n_f

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.n_s + self.k

    @property
    def first_columns(self) -> list[int]:
        """The first column of each weighed row (p,); n where it has none."""
        first = [self.n] * self.p
        for row, column in self.A:
            first[row] = min(first[row], column)
        return first

    @property
    def cases(self) -> list[int]:
        """The numbers of the weighed rows of cases."""
        return [i for i, is_of_case in enumerate(self.of_case) if is_of_case]

    def blocks(self, lanes: int) -> int:
        """Number of vectors of a row with its right-hand side."""
        return -(-(self.n + 1) // lanes)

    def n_work(self, lanes: int) -> int:
        """Length of the workspace in doubles; its C asserts that it is enough."""
        blocks, of_memory, rows = self.blocks(lanes), -(-self.k // lanes), max(self.k + self.p, self.n)
        vectors = (rows + self.n + self.n_v + 3) * blocks + (self.n + 2) * of_memory + 5
        vectors += self.n_s * -(-self.n_v // lanes)
        return lanes * (vectors + 1) + rows + self.n + self.p + 3

    def n_kept(self, lanes: int) -> int:
        """Doubles that a tick keeps for the step back to it."""
        blocks, of_memory = self.blocks(lanes), -(-self.k // lanes)
        return lanes * ((self.n_s + 2 * self.n_v + 1) * blocks + 2 + (3 * self.k + 2) * of_memory + 2)

    def n_room(self, lanes: int) -> int:
        """Length of the workspace of a step back in doubles; its C asserts that it is enough."""
        blocks, of_memory = self.blocks(lanes), -(-self.k // lanes)
        return lanes * ((3 * self.n + 2) * blocks + (4 * self.k + 2) * of_memory + 1) + self.k

    def n_judging(self, n_states: int) -> int:
        """Length of the workspace of so many hypotheses in doubles, without lanes; its C asserts that it is enough."""
        n, k, cases = self.n, self.k, len(self.cases)
        common = self.p - cases
        rows, of_memory = max(common, n) + cases, k * (k + 1)
        highest = max(common, n, n + cases)
        shared = (rows + n + cases + 2) * (n + 1) + (2 * k + 1) * (k + 1) + of_memory
        shared += highest + 2 * k + 1 + n + 1 + self.p + 1 + k + 4
        return shared + 2 * n_states * (2 * of_memory + k * k + k + 8)


def track_source(shape: TrackShape, lanes: int, smooths: bool = False, alone: bool = False) -> str:
    """C of a tracker's step: c/square_root.h and c/tick.h; with hypotheses c/hypotheses.h, with steps back c/window.h.

    Args:
        shape: what it depends on.
        lanes: doubles of a vector; the compiler splits those that its processor does not have. With 1 it is plain C11.
        smooths: whether ticks keep what steps back need.
        alone: whether it is part of an exported file: then no other file sees its names, and what stands around a tick
            is there too, see c/alone.h.
    """
    kind = "hypotheses" if shape.of_case else "window" if smooths else "tick"
    headers = [f"{kind}.h"]
    if alone:
        around = {"hypotheses": ["alone_hypotheses.h"], "window": ["alone_filter.h", "alone_window.h"]}
        headers += ["alone.h", *around.get(kind, ["alone_filter.h"])]
    text = _sizes_and_tables(shape, lanes, alone)
    if smooths:
        text += defined({"N_KEPT": shape.n_kept(lanes), "N_ROOM": shape.n_room(lanes)})
    if shape.of_case:
        text += _case_tables(shape, lanes)
    return text + "".join(f'#include "{f"{FOLDER}/" if alone else ""}{header}"\n' for header in headers)


def _sizes_and_tables(shape: TrackShape, lanes: int, alone: bool) -> str:
    n, n_s, k, p = shape.n, shape.n_s, shape.k, shape.p
    # A row belongs where its first column is; rows of the prior come first among equals.
    leads = sorted([(n_s + i, 0, i) for i in range(k)] + [(lead, 1, i) for i, lead in enumerate(shape.first_columns)])
    place = {(kind, i): at for at, (_, kind, i) in enumerate(leads)}
    width = lanes * shape.blocks(lanes)
    moving = n_s + shape.n_v if n_s and shape.n_v else 0
    of_s = {row for row, column in shape.A if column < n_s}
    of_v = {row for row, column in shape.A if n_s <= column < n_s + shape.n_v}
    sizes = {
        "SEEN": "static inline" if alone else "",
        "LANES": lanes,
        "N_S": n_s,
        "N_V": shape.n_v,
        "N_F": shape.n_f,
        "P": p,
        "N_A": len(shape.A),
        "N_X": len(shape.X),
        "N_FADING": shape.n_fading,
        "S_APART": int(not of_s & of_v),
        "NOISELESS": len(list(takewhile(lambda walk: walk == 0, shape.walk))),
        "CHAINED": int(any(n_s <= column < n_s + shape.n_v for _, column in shape.X)),
        "N_WORK": shape.n_work(lanes),
        "N_MOTION": shape.n_motion,
        "N_STATE": shape.n_motion + shape.n_y,
        "N_EXACT": len(shape.exact),
        "ZERO_PIVOT": ZERO_PIVOT,
        "LARGEST_SQUARE": LARGEST_SQUARE,
        "SMALLEST_DECAY": SMALLEST_DECAY,
        "LOOSE": LOOSE,
        "LEAST_LEFT": LEAST_LEFT,
    }
    if shape.base is not None:
        sizes["BASE"] = shape.base
    tables: dict[str, Sequence[int]] = {
        "memory_row": [place[0, i] for i in range(k)],
        "sensor_row": [place[1, i] for i in range(p)],
        "entry_sensor": [row for row, _ in shape.A],
        "entry_place": [width * place[1, row] + column for row, column in shape.A],
        "rate_place": [width * row + column for row, column in shape.X],
        "rate_column": [column for _, column in shape.X],
        "row_ends": [sum(lead <= j for lead, *_ in leads) for j in range(n)],
        "moving_ends": [max(moving, j + 1) for j in range(n)],
        "exact": shape.exact,
        "weight_of": shape.weight_of,
        "fading": shape.fading or [-1] * k,
    }
    laws = {"walk": shape.walk, "inverse_time": shape.inverse_time}
    return defined(sizes) + listed_tables(tables) + listed_tables(laws, "double")


def _case_tables(shape: TrackShape, lanes: int) -> str:
    first, cases = shape.first_columns, shape.cases
    common = sorted((first[i], i) for i, is_of_case in enumerate(shape.of_case) if not is_of_case)
    place = {i: max(len(common), shape.n) + number for number, i in enumerate(cases)}
    place |= {i: number for number, (_, i) in enumerate(common)}
    width = lanes * shape.blocks(lanes)
    tables = {
        "measured_row": [place[i] for i in range(shape.p)],
        "measured_place": [width * place[row] + column for row, column in shape.A],
        "common_ends": [sum(lead <= j for lead, _ in common) for j in range(shape.n)],
        "merging_ends": [2 * j + 2 for j in range(shape.k)],
        "mixing_ends": [2 * j + 3 for j in range(shape.k)],
        "of_case": cases,
    }
    sizes = defined({"COMMON": len(common), "CASES": len(cases), "JUMPS": len(shape.jump)})
    return sizes + listed_tables(tables) + listed_tables({"jump": shape.jump}, "double")


def ordered_rows(
    shape: TrackShape, counting: Sequence[Booleans]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Rows of each of S contact states, ordered by first column.

    Args:
        shape: see above.
        counting: of each state, which weighed rows count (p,).

    Returns:
        The rows (S, n + number of rows of cases), below n those that hold in all states, from there on those of cases;
        how many there are (S,); how many have begun by each column (S, n).
    """
    n, first, cases = shape.n, shape.first_columns, shape.cases
    order = np.zeros((len(counting), n + len(cases)), dtype=np.int32)
    ends = np.zeros((len(counting), n), dtype=np.int32)
    counts = np.zeros(len(counting), dtype=np.int32)
    for h, counts_in in enumerate(counting):
        rows = [(first[i], n + at, shape.heavy[i]) for at, i in enumerate(cases) if counts_in[i]]
        light = sorted([(j, j) for j in range(n)] + [(lead, row) for lead, row, is_heavy in rows if not is_heavy])
        heavy = sorted((lead, row) for lead, row, is_heavy in rows if is_heavy)
        counts[h] = len(light) + len(heavy)
        for at in range(counts[h]):
            queue = heavy if heavy and (heavy[0][0] <= at or not light) else light
            lead, order[h, at] = queue.pop(0)
            ends[h, lead:] = at + 1
    return order, counts, ends


def defined(sizes: Mapping[str, object]) -> str:
    """C of some constants."""
    return "".join(f"#define {name} {value}\n" for name, value in sizes.items())


def listed_tables(tables: Mapping[str, Any], kind: str = "int") -> str:
    """C of some tables of numbers."""
    rows = ((name, np.ravel(values).astype(float if kind == "double" else int)) for name, values in tables.items())
    return "".join(
        f"static const {kind} {name}[] = {{{', '.join(map(repr, own.tolist())) or '0'}}};\n" for name, own in rows
    )

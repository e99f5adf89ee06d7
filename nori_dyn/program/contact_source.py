"""A whole tick of a filter that judges contact states as C: one call.

What all states share is done once. The rows that hold in all of them are made triangular over all of u; what they tell
of the memory is merged with what was known of it, once for all states that knew the same; then each state adds its few
rows of cases. Those of a state are ordered by their first columns, so that a reflection is of one row and of what rows
of cases have begun. Only states that have a part in what another knows go on to the next tick.

Source: docs/design.md, 4.12.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from nori_dyn.program.filter_source import defined, included, listed_table
from nori_dyn.program.filter_step import TickShape, tick_numbers
from nori_dyn.typing import Booleans


@dataclass(frozen=True, slots=True)
class ContactShape:
    """What the C of a filter that judges contact states has to know.

    Attributes:
        tick: that of a tick with the rows of all cases.
        of_case: for each weighed row whether it is of a case of a contact.
        heavy: for each whether its weight is much larger than those of others: a reflection that begins with a heavy
            row keeps the digits of light ones.
    """

    tick: TickShape
    of_case: Sequence[bool]
    heavy: Sequence[bool]

    @property
    def cases(self) -> list[int]:
        """The numbers of the weighed rows of cases."""
        return [i for i, is_of_case in enumerate(self.of_case) if is_of_case]

    @property
    def first_columns(self) -> list[int]:
        """The first column of each weighed row (p,); n where it has none."""
        steps = self.tick.steps
        first = [steps.n] * steps.p
        for row, column in steps.A:
            first[row] = min(first[row], column)
        return first


def contact_source(shape: ContactShape, lanes: int, alone: bool = False) -> str:
    """Return the C, see c/contacts.h: `judge` and `contact_room`.

    Args:
        shape: what it has to know.
        lanes: see `filter_numbers`.
        alone: see `filter_numbers`; what stands around `judge` is there then, too, see c/alone_contacts.h.
    """
    steps, first, cases = shape.tick.steps, shape.first_columns, shape.cases
    common = sorted((first[i], i) for i, is_of_case in enumerate(shape.of_case) if not is_of_case)
    place = {i: max(len(common), steps.n) + number for number, i in enumerate(cases)}
    place |= {i: number for number, (_, i) in enumerate(common)}
    width = lanes * steps.blocks(lanes)
    tables = {
        "said_row": [place[i] for i in range(steps.p)],
        "said_place": [width * place[row] + column for row, column in steps.A],
        "common_ends": [sum(lead <= j for lead, _ in common) for j in range(steps.n)],
        "merging_ends": [2 * j + 2 for j in range(steps.k)],
        "mixing_ends": [2 * j + 3 for j in range(steps.k)],
        "of_case": cases,
    }
    head = defined({"COMMON": len(common), "CASES": len(cases)})
    head += "".join(listed_table(name, values) for name, values in tables.items())
    headers = ["contacts.h", *(["alone.h", "alone_contacts.h"] if alone else [])]
    return tick_numbers(shape.tick, lanes, alone) + head + included(headers, alone)


def contact_room(shape: ContactShape, n_states: int) -> int:
    """Return how many doubles judging so many states works with, a number at a time; its C says whether that is enough.

    Args:
        shape: what its C has to know.
        n_states: the number of contact states.
    """
    steps, cases = shape.tick.steps, len(shape.cases)
    n, k, common = steps.n, steps.k, sum(not is_of_case for is_of_case in shape.of_case)
    rows, of_memory = max(common, n) + cases, k * (k + 1)
    highest = max(common, n, n + cases)
    shared = (rows + n + cases + 2) * (n + 1) + (2 * k + 1) * (k + 1) + of_memory
    shared += highest + 2 * k + 1 + n + 1 + steps.p + 1 + k + 4
    return shared + 2 * n_states * (2 * of_memory + k * k + k + 8)


def ordered_rows(
    shape: ContactShape, counting: Sequence[Booleans]
) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]:
    """Return for each of S states which rows it has, by first column.

    Args:
        shape: see above.
        counting: of each state, which weighed rows count (p,).

    Returns:
        The rows (S, n + number of rows of cases), below n those that hold in all states, from there on those of cases;
        how many there are (S,); how many have begun by each column (S, n).
    """
    n, first, cases = shape.tick.steps.n, shape.first_columns, shape.cases
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

"""The steps of a square-root information filter as C: what `filtering.square_root` says in NumPy, with fixed sizes.

All rows lie in one array, each with its right-hand side as last number, in the order of their first column: a step of
elimination reflects only the rows that have begun. A reflection works on vectors across columns, so that nothing is
summed across a vector. There is no allocation, no call but of `sqrt` and `log`, and no name from a model.

Source: see `filtering.square_root`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from nori_dyn.program.emit import FOLDER

ZERO_PIVOT = 1e-11
"""The share of its column's norm below which a pivot is taken for zero: rounding leaves less than 1e-13 of it."""

LARGEST_SQUARE = 1e280
"""Readings whose squares, each over its variance, add up to as much or more are taken for no numbers: what they leave
in what is known would overflow at a later tick."""

SMALLEST_DECAY = 1e-8
"""Decays are taken for this at the least: what was known divides by them, and of what is left nobody sees less."""

LOOSE = 1e-9
"""The share of an unseen direction below which a number does not take part in it."""


@dataclass(frozen=True, slots=True)
class FilterShape:
    """The sizes of a filter, and where its numbers belong.

    Attributes:
        n_s, n_v, n_f: how many of u = [s | v | f] there are.
        p: number of weighed rows.
        A: row and column of each entry of their matrix (p, n).
        X: row and column of each entry of that of the rates (n_v, n); none in columns of v.
    """

    n_s: int
    n_v: int
    n_f: int
    p: int
    A: tuple[tuple[int, int], ...]
    X: tuple[tuple[int, int], ...]

    @property
    def k(self) -> int:
        """Number of what persists."""
        return self.n_v + self.n_f

    @property
    def n(self) -> int:
        """Number of unknowns."""
        return self.n_s + self.k

    def blocks(self, lanes: int) -> int:
        """Return the number of vectors of a row with its right-hand side."""
        return -(-(self.n + 1) // lanes)

    def n_work(self, lanes: int) -> int:
        """Return the length of the workspace in doubles; its C says whether that is enough."""
        blocks, of_memory, rows = self.blocks(lanes), -(-self.k // lanes), max(self.k + self.p, self.n)
        vectors = (rows + self.n + self.n_v + 3) * blocks + (self.n + 2) * of_memory + 5
        vectors += self.n_s * -(-self.n_v // lanes)
        return lanes * (vectors + 1) + rows + self.n + self.p + 3


def filter_source(shape: FilterShape, lanes: int) -> str:
    """Return the C of the steps of a filter, see c/square_root.h: `update` and `propagate`."""
    return filter_numbers(shape, lanes) + included(["square_root.h"])


def filter_numbers(shape: FilterShape, lanes: int, alone: bool = False) -> str:
    """Return the sizes and tables of a filter, which its C reads.

    Args:
        shape: its sizes.
        lanes: doubles of a vector; the compiler splits those that its processor does not have. With 1 it is plain C11.
        alone: whether it is part of a file of its own, and nobody else's: then no other file sees its names.
    """
    n, n_s, k, p = shape.n, shape.n_s, shape.k, shape.p
    # A row belongs where its first column is; rows of what is known come first among equals.
    first = [n] * p
    for row, column in shape.A:
        first[row] = min(first[row], column)
    leads = sorted([(n_s + i, 0, i) for i in range(k)] + [(first[i], 1, i) for i in range(p)])
    place = {(kind, i): at for at, (_, kind, i) in enumerate(leads)}
    width = lanes * shape.blocks(lanes)
    moving = n_s + shape.n_v if n_s and shape.n_v else 0
    of_s = {row for row, column in shape.A if column < n_s}
    of_v = {row for row, column in shape.A if n_s <= column < n_s + shape.n_v}
    tables = {
        "memory_row": [place[0, i] for i in range(k)],
        "sensor_row": [place[1, i] for i in range(p)],
        "entry_sensor": [row for row, _ in shape.A],
        "entry_place": [width * place[1, row] + column for row, column in shape.A],
        "rate_place": [width * row + column for row, column in shape.X],
        "rate_column": [column for _, column in shape.X],
        "row_ends": [sum(lead <= j for lead, *_ in leads) for j in range(n)],
        "moving_ends": [max(moving, j + 1) for j in range(n)],
    }
    sizes = {
        "SEEN": "static inline" if alone else "",
        "LANES": lanes,
        "N_S": n_s,
        "N_V": shape.n_v,
        "N_F": shape.n_f,
        "P": p,
        "N_A": len(shape.A),
        "N_X": len(shape.X),
        "S_APART": int(not of_s & of_v),
        "N_WORK": shape.n_work(lanes),
        "ZERO_PIVOT": ZERO_PIVOT,
        "LARGEST_SQUARE": LARGEST_SQUARE,
        "SMALLEST_DECAY": SMALLEST_DECAY,
        "LOOSE": LOOSE,
    }
    return defined(sizes) + "".join(listed_table(name, values) for name, values in tables.items())


def included(headers: Sequence[str], alone: bool = False) -> str:
    """Return the C that includes headers, in this order; those of a file of its own lie in a folder beside it."""
    return "".join(f'#include "{f"{FOLDER}/" if alone else ""}{header}"\n' for header in headers)


def defined(sizes: Mapping[str, object]) -> str:
    """Return the C of some constants."""
    return "".join(f"#define {name} {value}\n" for name, value in sizes.items())


def listed_table(name: str, values: Sequence[float], kind: str = "int") -> str:
    """Return the C of a table of numbers."""
    return f"static const {kind} {name}[] = {{{', '.join(map(repr, values)) or '0'}}};\n"

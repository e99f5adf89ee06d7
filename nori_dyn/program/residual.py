"""The residual of D d + b = 0 as C: tables of terms, and a loop for rows of the same form.

Rows have the same form if they have as many terms with factors 1, -1, other numbers, numbers of the workspace and
inputs. There are some tens of kinds of rows, whatever the robot, so that the code is small and quick to compile.

Source: docs/design.md, 4.8 and 5.2.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from nori_dyn.algebra.expressions import Expr
from nori_dyn.program.program import Row

ONE, MINUS, NUMBERS, WORK, IN = "1", "-1", "numbers", "w", "in"
KINDS = (ONE, MINUS, NUMBERS, WORK, IN)
"""What a factor is; the last three are the names of arrays in C."""

NOTHING = ""
"""What b is where it is zero for every state."""

Kind: TypeAlias = tuple[str, tuple[int, ...]]


class Tables:
    """The rows of some equations by their kinds, as numbers.

    Attributes:
        numbers: the constants among the factors and among b.
        rows: for each kind of row the rows of that kind: the equation, the place of b, then that of the factor and of
            the unknown of each term; where something needs no place it has none.

    Args:
        equations: the rows of each equation.
        place: returns where a node's value is: the array and the place in it, or NUMBERS and the number.
    """

    def __init__(self, equations: Sequence[Sequence[Row]], place: Callable[[Expr], tuple[str, float]]) -> None:
        self.numbers: dict[float, int] = {}
        self.rows: dict[Kind, list[list[int]]] = {}
        self._place = place
        for e, equation in enumerate(equations):
            for b, terms in equation:
                if terms or not b.is_zero:
                    self._add(e, b, terms)

    def _add(self, e: int, b: Expr, terms: Sequence[tuple[Expr, int]]) -> None:
        array, at = (NOTHING, []) if b.is_zero else self._found(b)
        by_kind: dict[str, list[int]] = {kind: [] for kind in KINDS}
        counts = dict.fromkeys(KINDS, 0)
        for factor, unknown in terms:
            kind = (ONE if factor.value > 0 else MINUS, []) if factor.is_unit else self._found(factor)
            by_kind[kind[0]] += [*kind[1], unknown]
            counts[kind[0]] += 1
        self.rows.setdefault((array, tuple(counts.values())), []).append([e, *at, *chain(*by_kind.values())])

    def _found(self, node: Expr) -> tuple[str, list[int]]:
        array, place = self._place(node)
        return array, [self.numbers.setdefault(place, len(self.numbers)) if array == NUMBERS else int(place)]


def residual_source(equations: Sequence[Sequence[Row]], place: Callable[[Expr], tuple[str, float]]) -> str:
    """The C of `check`, see c/residual.h; nothing without equations.

    Args:
        equations: the rows of each equation.
        place: returns where a node's value is: the array and the place in it, or NUMBERS and the number.
    """
    if not equations:
        return ""
    tables = Tables(equations, place)
    kinds = sorted(tables.rows)
    terms = [*chain(*(chain(*tables.rows[kind]) for kind in kinds))]
    kind_of_number = "unsigned short" if max(terms, default=0) < 1 << 16 else "int"
    loops = (f"LOOP({len(tables.rows[k])}, {len(tables.rows[k][0])}, {' '.join(_statements(*k))})" for k in kinds)
    return (
        f"typedef {kind_of_number} place;\n"
        f"static const number numbers[] = {{{', '.join(map(repr, tables.numbers)) or '0'}}};\n"
        f"static const place terms[] = {{{', '.join(map(str, terms)) or '0'}}};\n"
        f"#define N_EQUATIONS {len(equations)}\n"
        "#define ROWS(LOOP) \\\n    " + " \\\n    ".join(loops) + '\n#include "residual.h"\n'
    )


def _statements(array: str, counts: Sequence[int]) -> Iterator[str]:
    """Yield the statements of a row: r is the sum of its terms, m that of their magnitudes."""
    yield f"r = (real){{0}}{f' + {array}[at[1]]' if array else ''}; m = MAG(r);"
    at = 2 if array else 1
    for factor, count in zip(KINDS, counts, strict=True):
        for _ in range(count):
            if factor in (ONE, MINUS):
                yield f"p = out[at[{at}]]; r {'+' if factor == ONE else '-'}= p; m += MAG(p);"
            else:
                yield f"p = {factor}[at[{at}]] * out[at[{at + 1}]]; r += p; m += MAG(p);"
            at += 1 if factor in (ONE, MINUS) else 2

"""The residual of D d + b = 0 as C: tables of terms, and a loop for the rows that are alike.

Rows are alike that have as many terms with factors 1, -1, other numbers, numbers of the workspace and inputs. There are
some tens of kinds of rows, whatever the robot, so that the code is small and quick to compile.

Source: docs/design.md, 4.8 and 5.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from typing import TypeAlias

from nori_dyn.algebra.expressions import Expr

Row: TypeAlias = tuple[Expr, tuple[tuple[Expr, int], ...]]
"""A row of D d + b: b, and each entry with the place of its unknown among the outputs."""

ONE, MINUS, NUMBERS, WORK, IN = "1", "-1", "numbers", "w", "in"
KINDS = (ONE, MINUS, NUMBERS, WORK, IN)
"""What a factor is; the last three are the names of arrays in C."""

NOTHING = ""
"""What b is where it is zero for every state."""

Kind: TypeAlias = tuple[str, tuple[int, ...]]

FUNCTION = """
STRAIGHT static void check(const real *restrict in, const real *restrict w, const real *restrict out,
                           real *worst, real *taint) {{
    real error[{n}], size[{n}], r, m, p;
    flag strange = (flag){{0}};
    const {type} *at = terms;
    for (int k = 0; k < {n}; ++k) {{
        error[k] = (real){{0}};
        size[k] = (real){{0}} + DBL_MIN;
    }}
{loops}
    for (int k = 0; k < {n}; ++k) *worst = MAX(error[k] / size[k], *worst);
    *taint = TAINT(strange);
}}
"""
LOOP = """\
    for (int k = 0; k < {rows}; ++k, at += {step}) {{
{lines}
        error[at[0]] = MAX(MAG(r), error[at[0]]);
        size[at[0]] = MAX(m, size[at[0]]);
        strange |= STRANGE(m);
    }}"""


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
    """Return `check`, which compares each equation of D d + b with the size of its terms.

    It leaves the largest ratio in `worst`, and nan in `taint` where a term is not finite. Nothing without equations.

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
    loops = (LOOP.format(rows=len(tables.rows[k]), step=len(tables.rows[k][0]), lines=_lines(k)) for k in kinds)
    return (
        f"static const double numbers[] = {{{', '.join(map(repr, tables.numbers)) or '0'}}};\n"
        f"static const {kind_of_number} terms[] = {{{', '.join(map(str, terms)) or '0'}}};\n"
        + FUNCTION.format(n=len(equations), type=kind_of_number, loops="\n".join(loops))
    )


def _lines(kind: Kind) -> str:
    """Return the statements of a row: r is what its terms add up to, m what their sizes do."""
    array, counts = kind
    return "\n".join(f"        {line}" for line in _statements(array, counts))


def _statements(array: str, counts: Sequence[int]) -> Iterator[str]:
    yield f"r = (real){{0}}{f' + {array}[at[1]]' if array else ''}; m = MAG(r);"
    at = 2 if array else 1
    for factor, count in zip(KINDS, counts, strict=True):
        for _ in range(count):
            if factor in (ONE, MINUS):
                yield f"p = out[at[{at}]]; r {'+' if factor == ONE else '-'}= p; m += MAG(p);"
            else:
                yield f"p = {factor}[at[{at}]] * out[at[{at + 1}]]; r += p; m += MAG(p);"
            at += 1 if factor in (ONE, MINUS) else 2

"""Rows of a program as C: statements over blocks of columns, which are vectors of the processor.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from nori_dyn.algebra.expressions import Graph
from nori_dyn.program.row_needs import BLOCK
from nori_dyn.program.row_plan import ColumnLoop, Operation, Phase, RowPlan
from nori_dyn.program.statements import FORMATS

PIECE = 600
"""Instructions a function, about: compilers are more than linear in the size of one."""

ONE = 1
"""The node of the number 1: rows are added as they are."""

SUMS = 8
"""Terms that are added up one after the other; more are added up apart, as each addition waits for the one before."""


def rows_source(
    plan: RowPlan, storage: int, place: Callable[[int], int], outputs: Mapping[int, int], kept: Mapping[int, int]
) -> tuple[str, list[list[str]]]:
    """C functions, and the names of those of each phase; the last phase comes after all other statements.

    Args:
        plan: the rows.
        storage: where their storage is in the workspace, a whole number of blocks from its beginning.
        place: returns where a coefficient is in the workspace.
        outputs: which node each output is, of those that are elements of rows.
        kept: which node goes to each place of the workspace, of those that are elements of rows.
    """
    text = f'#define BLOCK {BLOCK}\n#include "rows.h"\n'
    names: list[list[str]] = []

    def where(i: int) -> int:
        return storage + plan.where[i] if i in plan.where else place(i)

    for number, phase in enumerate(plan.phases):
        names.append([])
        for k, lines in enumerate(_pieces(phase, storage, where)):
            names[-1].append(f"rows{number}_{k}")
            text += _function(names[-1][-1], lines)
    names.append(["put"])
    found = {k: where(i) for k, i in outputs.items()}
    table, lines = _put(found)
    lines += [f"w[{at}] = w[{where(i)}];" for at, i in kept.items()]
    return text + table + _function("put", lines, ""), names


def _function(name: str, lines: Sequence[str], attribute: str = "STRAIGHT ") -> str:
    head = f"{attribute}static void {name}(const double *in, double *w, double *out) {{"
    return "\n".join([head, *lines, "(void)in; (void)w; (void)out;\n}\n"])


def _pieces(phase: Phase, storage: int, place: Callable[[int], int]) -> Iterator[list[str]]:
    """Yield the statements of a phase, function by function."""
    lines: list[str] = []
    size, copies = 0, list(phase.copies)
    for number, o in enumerate(phase.operations):
        while copies and copies[0][2] <= number:
            source, target, _ = copies.pop(0)
            lines.append(f"w[{storage + target}] = w[{storage + source}];")
        lines.extend(_loop(o, storage) if isinstance(o, ColumnLoop) else _statements(o, storage, place))
        size += o.instructions
        if size >= PIECE:
            yield lines
            lines, size = [], 0
    if lines:
        yield lines


def _loop(o: ColumnLoop, storage: int) -> Iterator[str]:
    """Yield the statements of a loop over blocks."""
    graph, names = o.graph, {}
    yield f"for (ptrdiff_t k = 0; k < {BLOCK * o.width}; k += LANES) {{"
    for x, at in o.sources:
        names[x.index] = f"x{x.index}"
        yield f"const columns x{x.index} = B({storage + at});"
    for i in o.statements:
        parts = [_operand(graph, s, names) for s in (graph.left[i], graph.right[i]) if s >= 0]
        names[i] = f"x{i}"
        yield f"const columns x{i} = {FORMATS[graph.ops[i]].format(*parts)};"
    for x, at in o.targets:
        value = _operand(graph, x.index, names)
        yield f"B({storage + at}) = {value if x.index in names else f'(columns){{0}} + {value}'};"
    yield "}"


def _operand(graph: Graph, i: int, names: Mapping[int, str]) -> str:
    return names[i] if i in names else f"({graph.values[i]!r})"


def _statements(o: Operation, storage: int, place: Callable[[int], int]) -> Iterator[str]:
    """Yield the statements of an operation."""
    signed = [*(("+", term) for term in o.added), *(("-", term) for term in o.subtracted)]
    yield "{"
    if o.mask is not None:
        kept = ", ".join(str(o.mask >> k & 1) for k in range(BLOCK))
        yield f"static const double mask[] __attribute__((aligned({8 * BLOCK}))) = {{{kept}}};"
    for k, (_, (coefficient, _)) in enumerate(signed):
        if coefficient != ONE:
            yield f"const double c{k} = w[{place(coefficient)}];"
    yield "PARTS {"
    for b in range(o.width):
        sums = [f"B({storage + o.initial + BLOCK * b})"] if o.initial is not None else []
        for first in range(0, len(signed), SUMS):
            text = sums.pop(0) if first == 0 and sums else ""
            for k, (sign, (_, blocks)) in enumerate(signed[first : first + SUMS]):
                factor = "" if signed[first + k][1][0] == ONE else f"c{first + k} * "
                text += f" {sign} {factor}B({storage + blocks + BLOCK * b})"
            sums.append(text)
        value = " + ".join(f"({x})" for x in sums) or "(columns){0}"
        if o.mask is not None:
            value = f"({value}) * *(const columns *)(mask + k)"
        yield f"B({storage + o.target + BLOCK * b}) = {value};"
    yield "}}"


def _put(where: Mapping[int, int]) -> tuple[str, list[str]]:
    """A table, and statements, which copy some numbers of the workspace to outputs."""
    lines: list[str] = []
    single: list[int] = []
    for to, source, n in _runs(where):
        if n < BLOCK:
            single += (x for k in range(n) for x in (to + k, source + k))
        else:  # the last block overlaps the one before
            starts = [*range(0, n - BLOCK, BLOCK), n - BLOCK]
            lines += [f"OUT({to + k}, {source + k});" for k in starts]
    if not single:
        return "", lines
    kind = "unsigned short" if max(single) < 1 << 16 else "int"
    table = f"static const {kind} single[] = {{{', '.join(map(str, single))}}};\n"
    return table, [*lines, f"for (int k = 0; k < {len(single)}; k += 2) out[single[k]] = w[single[k + 1]];"]


def _runs(where: Mapping[int, int]) -> Iterator[tuple[int, int, int]]:
    """Yield contiguous runs of both sides: to, from, length."""
    run: tuple[int, int, int] | None = None
    for to, source in sorted(where.items()):
        if run and run[0] + run[2] == to and run[1] + run[2] == source:
            run = (*run[:2], run[2] + 1)
            continue
        if run:
            yield run
        run = to, source, 1
    if run:
        yield run

"""Where the code can be made wrong, and how: one small change of a source each.

cosmic-ray and mutmut were looked at: neither leaves guards out, swaps arguments or changes C, and both change
annotations, which nobody evaluates.
"""

import ast
import re
from bisect import bisect_right
from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

SWAPPED = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "*", "**": "*", "%": "*", "@": "*", "|": "&", "&": "|"}
COMPARED = {"<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
COMPARED |= {"in": "not in", "not in": "in", "is": "is not", "is not": "is"}
LOGICAL = {"and": "or", "or": "and"}
OF_C = {"+": "-", "-": "+", "*": "/", "/": "*", "<": "<=", "<=": "<", ">": ">=", ">=": ">", "==": "!=", "!=": "=="}
OF_C |= {"&&": "||", "||": "&&"}
SKIPPED = (ast.JoinedStr, ast.Import, ast.ImportFrom)


class Site(NamedTuple):
    """A change of a source.

    Attributes:
        kind: what becomes wrong.
        line, last: where, from 1.
        start, end: which characters go.
        text: what comes in their place.
    """

    kind: str
    line: int
    last: int
    start: int
    end: int
    text: str

    def applied(self, source: str) -> str:
        """A source with the change."""
        return source[: self.start] + self.text + source[self.end :]

    def changes(self, source: str) -> bool:
        """Whether a source is still Python with the change, and another; of C that is not looked at."""
        if self.kind == "C":
            return True
        try:
            return ast.dump(ast.parse(self.applied(source))) != ast.dump(ast.parse(source))
        except SyntaxError:
            return False


def sites(source: str) -> list[Site]:
    """Where a module can be changed; some of them may leave it no Python."""
    return list(_Finder(source).visit(ast.parse(source)))


def sites_of_c(source: str) -> list[Site]:
    """Where a file of C can be changed."""
    text = re.sub(r"/\*.*?\*/|#[^\n]*", lambda found: re.sub(r"[^\n]", " ", found.group()), source, flags=re.DOTALL)
    found = [one for one in re.finditer(r"(?<= )\S+(?= )", text) if one.group() in OF_C]
    lines = [source.count("\n", 0, one.start()) + 1 for one in found]
    return [Site("C", line, line, *one.span(), OF_C[one.group()]) for line, one in zip(lines, found, strict=True)]


class _Finder:
    """Goes through a tree, but for what is not evaluated."""

    def __init__(self, source: str) -> None:
        self.source = source
        lines = source.encode().splitlines(keepends=True)
        self._starts = [0, *accumulate(len(line.decode()) for line in lines)]
        self._lines = lines

    def visit(self, node: ast.AST, above: ast.AST | None = None) -> Iterator[Site]:
        if isinstance(node, SKIPPED) or self._is_text(node, above):
            return
        yield from self.of(node, above)
        for name, part in ast.iter_fields(node):
            if name in ("annotation", "returns", "type_params", "ctx"):
                continue
            for child in part if isinstance(part, list) else [part]:
                if isinstance(child, ast.AST):
                    yield from self.visit(child, node)

    @staticmethod
    def _is_text(node: ast.AST, above: ast.AST | None) -> bool:
        return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)

    def of(self, node: ast.AST, above: ast.AST | None) -> Iterator[Site]:
        """Yield the changes of one node."""
        match node:
            case ast.BinOp():
                yield from self.between("operator", node.left, node.right, SWAPPED)
            case ast.Compare(left, _, comparators):
                for one, other in zip([left, *comparators], comparators, strict=False):
                    yield from self.between("bound", one, other, COMPARED)
            case ast.BoolOp(_, values):
                yield from self.between("logic", values[0], values[1], LOGICAL)
            case ast.UnaryOp(ast.USub(), operand) if not isinstance(above, ast.Subscript | ast.Slice):
                yield self.instead("sign", node, self.text(operand))
            case ast.UnaryOp(ast.Not(), operand):
                yield self.instead("logic", node, self.text(operand))
            case ast.If(test, [ast.Raise() | ast.Return() | ast.Continue() | ast.Break()], []):
                yield self.instead("guard left out", test, "False")
            case ast.If(test) | ast.IfExp(test):
                yield self.instead("logic", test, f"not ({self.text(test)})")
            case ast.Call(args=[one, other, *_]) if not any(isinstance(x, ast.Starred) for x in (one, other)):
                yield self.instead("swapped arguments", (one, other), f"{self.text(other)}, {self.text(one)}")
            case ast.Call(ast.Name("range"), [stop]):
                yield self.instead("bound", stop, f"{self.text(stop)} - 1")
            case ast.Constant(bool(value)):
                yield self.instead("constant", node, str(not value))
            case ast.Constant(int(value)):
                kind = "index" if isinstance(above, ast.Subscript | ast.Slice) else "constant"
                yield self.instead(kind, node, str(value + 1))
            case ast.Constant(float(value)):
                yield self.instead("constant", node, repr(2 * value + (value == 0)))

    def between(self, kind: str, one: ast.AST, other: ast.AST, words: dict[str, str]) -> Iterator[Site]:
        """Yield the change of an operator between two nodes."""
        start, end = self.end(one), self.start(other)
        gap = self.source[start:end]
        bare = gap.strip("() \t\n\\")
        if bare in words and gap.count(bare) == 1:
            at = start + gap.index(bare)
            yield Site(kind, self.line(at), self.line(at), at, at + len(bare), words[bare])

    def instead(self, kind: str, node: ast.AST | tuple[ast.AST, ast.AST], text: str) -> Site:
        first, last = node if isinstance(node, tuple) else (node, node)
        start, end = self.start(first), self.end(last)
        return Site(kind, self.line(start), self.line(end), start, end, text)

    def start(self, node) -> int:
        return self._at(node.lineno, node.col_offset)

    def end(self, node) -> int:
        return self._at(node.end_lineno, node.end_col_offset)

    def text(self, node) -> str:
        return self.source[self.start(node) : self.end(node)]

    def line(self, at: int) -> int:
        return bisect_right(self._starts, at)

    def _at(self, line: int, column: int) -> int:
        return self._starts[line - 1] + len(self._lines[line - 1][:column].decode())

"""Packs of statements as C: vectors of two, four or eight doubles.

Vector extensions of GCC and Clang: operators between vectors, and between a vector and a number.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from nori_dyn.algebra.expressions import Op
from nori_dyn.program.packs import Operand, Pack, Signs

VectorOf = Callable[[int], str | None]
"""Returns how to refer to a pack by its number; None where its numbers stand in no vector."""


def pack_text(pack: Pack, vector_of: VectorOf, name: Callable[[int], str]) -> str:
    """The C expression of a pack.

    Args:
        pack: the pack.
        vector_of: how to refer to other packs.
        name: how to refer to the value of a node, a double.
    """
    read = [_read(operand, vector_of, name) for operand in pack.operands]
    if pack.op is Op.ADD:
        (x, _), (y, signs) = sorted(read, key=lambda operand: operand[1] != (1,) * len(pack.nodes))
        return x + _added(y, signs)
    texts = [_signed(text, signs) for text, signs in read]
    if pack.op is Op.MUL:
        return " * ".join(texts)
    return f"1.0 / {texts[0]}" if pack.op is Op.RECIPROCAL else texts[0]


def _signed(text: str, signs: Signs) -> str:
    if len(set(signs)) == 1:
        return text if signs[0] > 0 else f"-{text}"
    return f"{_numbers(signs)} * {text}"


def _added(text: str, signs: Signs) -> str:
    if len(set(signs)) == 1:
        return f" + {text}" if signs[0] > 0 else f" - {text}"
    return f" + {_numbers(signs)} * {text}"


def _read(operand: Operand, vector_of: VectorOf, name: Callable[[int], str]) -> tuple[str, Signs]:
    """How to refer to an operand, and the signs that it is still to be multiplied with."""
    plain = (1,) * len(operand.nodes)
    vector = vector_of(operand.pack) if operand.pack >= 0 else None
    if vector is not None:
        return vector, operand.signs
    names = [name(i) for i in operand.nodes]
    if len(set(names)) == 1 and (len(set(operand.signs)) == 1 or not names[0].lstrip("(-")[0].isdigit()):
        return names[0], operand.signs
    signed = (n if s > 0 else f"-{n}" for n, s in zip(names, operand.signs, strict=True))
    return f"(v{len(plain)}){{{', '.join(signed)}}}", plain


def _numbers(signs: Sequence[int]) -> str:
    return f"(v{len(signs)}){{{', '.join(map(str, signs))}}}"

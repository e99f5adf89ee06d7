"""The C compiler that is here, and for vectors of another width, so that no processor decides what is tested.

Narrower vectors than the processor's come with the code that a processor without the wide ones gets; wider ones are
split by the compiler.
"""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cache

import pytest

from nori_dyn.program import compiler
from nori_dyn.program.compiler import Compiler

needs_compiler = pytest.mark.skipif(compiler.find_compiler() is None, reason="there is no C compiler here")

AS_SHIPPED = compiler.FLAGS
QUICK = ("-O1", *AS_SHIPPED[1:])
"""Flags that users have, and those of tests of what code computes: the compiler takes half the time, and reads the same
C for the same processor."""

WIDTHS = (2, 4, 8)
NARROWING = {2: "-mno-avx", 4: "-mno-avx512f"}
"""What keeps the compiler from vectors that are wider."""


@cache
def compiler_for(lanes: int) -> Compiler:
    """The compiler that is here for vectors of so many doubles; what it makes is cached apart from all else."""
    found = compiler.find_compiler.__wrapped__()
    if found is None:
        pytest.skip("there is no C compiler here")
    if lanes < found.lanes and lanes in NARROWING:
        with pytest.MonkeyPatch.context() as patch:
            patch.setitem(os.environ, "CC", " ".join([*found.command, NARROWING[lanes]]))
            found = compiler.find_compiler.__wrapped__()
        assert found is not None
        assert found.lanes == lanes
    return replace(found, lanes=lanes, identity=f"{found.identity}, {lanes} lanes")


@contextmanager
def compiled_with(flags: tuple[str, ...]) -> Iterator[None]:
    """Have all that is compiled meanwhile compiled with other flags; the cache keeps it apart."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(compiler, "FLAGS", flags)
        yield


def compile_for(lanes: int, patch: pytest.MonkeyPatch) -> None:
    """Have all that is compiled from now on compiled for vectors of so many doubles."""
    found = compiler_for(lanes)
    patch.setattr(compiler, "find_compiler", lambda: found)

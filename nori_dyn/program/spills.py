"""Numbers that compiled code puts away, as there are not registers enough, and fetches again: counted in its assembly.

Source: docs/design.md, 4.8.
"""

from __future__ import annotations

import re
from typing import NamedTuple

PUT = re.compile(r"\s*v?mov\w+\s+%[xyz]mm\d+, ")
"""An instruction that only moves a register of numbers to memory."""


class Spills(NamedTuple):
    """How often numbers are put away and fetched, in the text of the code.

    Attributes:
        puts: instructions that write a register of numbers to the stack.
        fetches: instructions that read numbers there.
    """

    puts: int
    fetches: int


def spills_in(assembly: str) -> Spills | None:
    """Return what is put on the stack by code for x86, as GCC and clang write it; None of other code."""
    functions = assembly.split(".cfi_startproc")[1:]
    if not functions or "%xmm" not in assembly:
        return None
    puts = fetches = 0
    for function in functions:
        has_frame = "%rsp, %rbp" in function
        for line in function.splitlines():
            if "mm" in line and ("(%rsp)" in line or (has_frame and "(%rbp)" in line)):
                if PUT.match(line):
                    puts += 1
                else:
                    fetches += 1
    return Spills(puts, fetches)

"""Threads for batches: they wait in C for parts of one, and sleep between batches.

A batch is described to them by NumPy's arrays as they lie in memory: to ask through Python takes a microsecond for the
arrays of a batch, in which fifty states of an arm are solved.

Source: docs/design.md, 4.8.
"""

import os
from functools import cache
from typing import Any

import numpy as np

from nori_dyn.algebra.arrays import DOUBLE
from nori_dyn.program.compiler import Compiler, c_file, load_library


@cache
def pool(ffi: Any, compiler: Compiler) -> Any:
    """Return the library of the threads, of which a process has one, for good: they wait in its code.

    Args:
        ffi: the cffi interface with its declarations.
        compiler: the compiler.

    Raises:
        CompilerError: the compiler fails, or there is no room for its output.
    """
    found = load_library(ffi, c_file("threads.c"), compiler, ffi.RTLD_NOW | ffi.RTLD_NODELETE)
    found.array_class, found.double_type = (ffi.cast("void *", id(known)) for known in (np.ndarray, DOUBLE))
    found.head, found.items = object.__basicsize__, tuple.__basicsize__
    os.register_at_fork(after_in_child=found.forget_threads)
    return found

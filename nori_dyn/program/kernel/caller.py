"""Calls of C from Python without overhead: a tick of an arm takes less time than a foreign call through libffi.

What is called is a built-in function of CPython, made from a C function here through the stable part of CPython's own
interface, which its `ctypes.pythonapi` offers: no header of Python is needed, and nothing is linked. Other Pythons, and
calls that take long, go through cffi; only these let other threads of Python run meanwhile.

Source: docs/design.md, 4.8.
"""

import ctypes
import sys
from collections.abc import Callable
from functools import cache, partial
from typing import Any
from weakref import WeakKeyDictionary

from nori_dyn.errors import CompilerError
from nori_dyn.program.compiler import Compiler, c_file, load_library
from nori_dyn.program.kernel.base import Returns

LONG = 20_000
"""Operations from which on a call takes long: some three microseconds."""

METH_NOARGS = 0x0004

_KEPT: WeakKeyDictionary[Any, tuple[Any, ...]] = WeakKeyDictionary()
"""What C refers to, by the functions that do."""


class _PythonCall(ctypes.Structure):
    _fields_ = [(name, ctypes.c_void_p) for name in ("run", "at", "good", "otherwise")]


class _Method(ctypes.Structure):
    """CPython's PyMethodDef."""

    _fields_ = [
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("doc", ctypes.c_char_p),
    ]


def caller(run: Any, at: Any, returns: Returns | None, ffi: Any, compiler: Compiler) -> Callable[[], Any]:
    """A function that calls `run(at)` and returns its result.

    Args:
        run: a C function, of cffi.
        at: the C struct that it takes, of cffi.
        returns: a constant to return instead of 0, and a function whose result to return instead of anything else.
        ffi: the cffi interface that has both.
        compiler: the compiler.
    """
    made = _maker(ffi, compiler)
    if made is not None:
        return made(int(ffi.cast("uintptr_t", run)), int(ffi.cast("uintptr_t", at)), returns, (run, at))
    return by_cffi(run, at, returns)


def by_cffi(run: Any, at: Any, returns: Returns | None) -> Callable[[], Any]:
    """The same by way of cffi: others may run in Python meanwhile."""
    if returns is None:
        return partial(run, at)
    good, otherwise = returns
    return lambda: otherwise() if run(at) else good


@cache
def _maker(ffi: Any, compiler: Compiler) -> Callable[..., Callable[[], Any]] | None:
    """A maker of built-in functions; None where there is none."""
    if sys.implementation.name != "cpython":
        return None
    python = ctypes.pythonapi
    try:
        library = load_library(ffi, c_file("python_call.c"), compiler)
        taken = python.PyCapsule_GetPointer, python.Py_IncRef, python.PyObject_CallObject, python.PyLong_FromLong
    except (AttributeError, CompilerError):
        return None
    library.begin(*(ctypes.cast(function, ctypes.c_void_p).value for function in taken))
    tick = int(ffi.cast("uintptr_t", library.tick))
    pointer, made = ctypes.c_void_p, partial(ctypes.PYFUNCTYPE, ctypes.py_object)  # types of our own: others set theirs
    capsule = made(pointer, ctypes.c_char_p, pointer)(("PyCapsule_New", python))
    function = made(pointer, ctypes.py_object, pointer)(("PyCFunction_NewEx", python))
    method = _Method(b"tick", tick, METH_NOARGS, b"Compute the outputs from the inputs.")

    def make(run: int, at: int, returns: Returns | None, kept: Any) -> Callable[[], Any]:
        call = _PythonCall(run, at, *map(id, returns or ()))
        made: Callable[[], Any] = function(ctypes.addressof(method), capsule(ctypes.addressof(call), None, None), None)
        _KEPT[made] = (call, returns, kept, library)
        return made

    return make

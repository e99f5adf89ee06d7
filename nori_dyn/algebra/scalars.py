"""The functions that the equations need of a scalar beyond + - * /: sine, cosine and square root.

A scalar is a float, an expression of ours, or one of a computer algebra: anything with the operators and with methods
`sin`, `cos` and `sqrt`, as CasADi's SX; SymPy has functions instead. Nothing is imported for it.
"""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np

from nori_dyn.typing import Array


def sin(x: Any) -> Any:
    """The sine of a scalar or an array [rad]."""
    return _of(np.sin, x)


def cos(x: Any) -> Any:
    """The cosine of a scalar or an array [rad]."""
    return _of(np.cos, x)


def sqrt(x: Any) -> Any:
    """The square root of a scalar or an array."""
    return _of(np.sqrt, x)


def is_numeric(x: Array) -> bool:
    """Whether an array holds numbers, and not expressions of any kind."""
    return x.dtype != object


def is_zero(x: Any) -> bool:
    """Whether a scalar is zero; an expression, for all values of its inputs."""
    if isinstance(x, int | float | np.floating):
        return bool(x == 0)
    return getattr(x, "is_zero", None) is True


def _of(function: np.ufunc, x: Any) -> Any:
    array = np.asarray(x)
    if is_numeric(array):
        return function(x)
    if not array.ndim:
        return _of_one(function.__name__, array.item())
    result = np.empty_like(array)
    for index, part in np.ndenumerate(array):
        result[index] = _of_one(function.__name__, part)
    return result


def _of_one(name: str, x: Any) -> Any:
    method = getattr(x, name, None)
    if method is not None:
        return method()
    if isinstance(x, int | float):
        return getattr(math, name)(x)
    sympy = sys.modules.get("sympy")
    if sympy is not None and isinstance(x, sympy.Expr):
        return getattr(sympy, name)(x)
    raise TypeError(f"{type(x).__name__} is no scalar that has a {name}")

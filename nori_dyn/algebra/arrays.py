"""Checks of what users give: numbers, shapes and finite values, refused by name before any arithmetic."""

from __future__ import annotations

import math
import numbers
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.errors import InputError
from nori_dyn.typing import Floats

DOUBLE, SINGLE = np.dtype(np.float64), np.dtype(np.float32)

REAL = "iuf"
"""Kinds of NumPy's types that are real numbers."""

OTHERS = {"b": "booleans", "c": "complex numbers", "m": "time spans", "M": "dates", "S": "text", "U": "text"}
"""What NumPy's other kinds hold; it makes floats of them without a word, or with a warning at most."""


def numeric(name: str, value: ArrayLike) -> Floats:
    """A value as a contiguous float array, of whatever shape, its columns one after the other or its rows.

    Real numbers only: no booleans, complex numbers, dates or text, and no masked arrays, whose masks would be lost.

    Args:
        name: its name in messages.
        value: anything that NumPy takes for real numbers.

    Raises:
        InputError: not real numbers.
    """
    if is_masked(value):
        raise InputError(
            f"{name} is a masked array, whose masked entries have no value. Give plain numbers: `.filled(numpy.nan)` "
            "makes missing readings of them, `.data` ignores the mask."
        )
    try:
        array = np.asarray(value)
        if array.dtype.kind == "O":
            wrong = [x for x in array.flat if isinstance(x, bool) or not isinstance(x, numbers.Real)]
            if wrong:
                raise TypeError(f"it holds {wrong[0]!r:.40}")
        elif array.dtype.kind not in REAL:
            raise TypeError(f"it holds {OTHERS.get(array.dtype.kind, 'records')}")
        return np.asarray(array, dtype=float, order="A")
    except (TypeError, ValueError, OverflowError, RuntimeError) as error:
        raise InputError(f"{name} is not an array of numbers: {error}.") from None


def is_masked(value: object) -> bool:
    """Whether a value is a masked array, or holds one in its lists."""
    if isinstance(value, list | tuple):
        return any(map(is_masked, value))
    return isinstance(value, np.ma.MaskedArray)


def shaped(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """A value as `numeric` does, of a shape.

    Args:
        name: its name in messages.
        value: anything that NumPy takes for real numbers.
        shape: the shape expected.

    Raises:
        InputError: another shape, or not real numbers.
    """
    array = numeric(name, value)
    if array.shape != shape:
        raise InputError(f"{name} has shape {array.shape}, expected {shape}.")
    return array


def checked(name: str, value: ArrayLike, shape: tuple[int, ...], labels: Sequence[str] = ()) -> Floats:
    """A value as `shaped` does, all of it finite.

    Args:
        name: its name in messages.
        value: anything that NumPy takes for real numbers.
        shape: the shape expected.
        labels: names of the numbers along the last axis, for messages.

    Raises:
        InputError: another shape, not real numbers, or a value that is not finite.
    """
    array = shaped(name, value, shape)
    flat = array.ravel(order="K")
    with np.errstate(over="ignore", invalid="ignore"):
        product = flat.dot(flat)
    if not math.isfinite(product) and not np.isfinite(array).all():  # the product is the quicker of the two
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        place = ", ".join(map(str, at))
        label = f" ('{labels[at[-1]]}')" if labels else ""
        raise InputError(f"{name}[{place}]{label} is {array[at]}: values must be finite.")
    return array


def batched(name: str, value: ArrayLike, size: int) -> Floats:
    """The numbers of N states (N, size), with N at least 1; they need not be finite.

    Args:
        name: their name in messages.
        value: anything that NumPy takes for real numbers.
        size: how many numbers a state has.

    Raises:
        InputError: another shape, no state, or not real numbers.
    """
    array = numeric(name, value)
    if array.ndim != 2 or not len(array) or array.shape[1] != size:
        raise InputError(f"{name} has shape {array.shape}, expected (N, {size}) with N at least 1.")
    return array


def check_in_place(name: str, array: object, size: int, is_written: bool) -> None:
    """Check an array that a program reads or writes where it lies: of its own type, in one piece.

    Args:
        name: its name in messages.
        array: the array.
        size: its length.
        is_written: whether the program writes it.

    Raises:
        InputError: its type, shape or layout is another one.
    """
    wanted = f"a {'writeable ' if is_written else ''}array of {size} doubles, one after the other"
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{name} is a {type(array).__name__}, expected {wanted}: it is used where it lies.")
    flags = array.flags
    as_expected = array.dtype == np.float64 and array.dtype.isnative and array.shape == (size,)
    if not (as_expected and flags.c_contiguous and flags.aligned and (flags.writeable or not is_written)):
        found = [f"shape {array.shape} of {array.dtype}"]
        found += [f"steps of {array.strides[0]} bytes"] if array.ndim == 1 and not flags.c_contiguous else []
        found += [] if flags.aligned else ["not aligned"]
        found += ["read-only"] if is_written and not flags.writeable else []
        raise InputError(f"{name} has {', '.join(found)}; expected {wanted}: it is used where it lies.")


def checked_out(
    name: str, array: object, shape: tuple[int, ...], read: Mapping[str, object], dtype: np.dtype[Any] = DOUBLE
) -> Floats:
    """An array that results are written to, wherever its numbers lie.

    Args:
        name: its name in messages.
        array: the array.
        shape: its shape.
        read: objects that are read meanwhile, by name, arrays or not.
        dtype: its type.

    Raises:
        InputError: it cannot hold the results, or shares a number with an input, or with itself, as
            `np.broadcast_to` makes them.
    """
    wanted = f"a writeable array {shape} of {'doubles' if dtype == DOUBLE else dtype}"
    if not isinstance(array, np.ndarray) or isinstance(array, np.ma.MaskedArray):
        raise InputError(f"{name} is a {type(array).__name__}, expected {wanted}: results are written there.")
    flags = array.flags
    if array.dtype != dtype or array.shape != shape or not (flags.aligned and flags.writeable):
        found = [f"shape {array.shape} of {array.dtype}"]
        found += [] if flags.aligned else ["not aligned"]
        found += [] if flags.writeable else ["read-only"]
        raise InputError(f"{name} has {', '.join(found)}; expected {wanted}: results are written there.")
    if 0 in array.strides and array.size > 1:
        raise InputError(f"{name} has several results in one place, by steps of {array.strides} bytes: give a copy.")
    for other, given in read.items():
        if isinstance(given, np.ndarray) and np.may_share_memory(array, given) and np.shares_memory(array, given):
            raise InputError(f"{name} and {other} share memory: writing one would change the other. Copy one.")
    return array


def is_positive(value: object) -> bool:
    """Whether something is a number above 0, and finite."""
    return isinstance(value, int | float | np.number) and not isinstance(value, bool) and bool(0 < value < np.inf)


def counted(name: str, value: object, least: int = 1) -> int:
    """A number of things.

    Args:
        name: the counted quantity in messages.
        value: a whole number.
        least: the smallest that it may be.

    Raises:
        InputError: not a whole number, or below that.
    """
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise InputError(f"{name} is {value!r}: it must be a whole number, at least {least}.")
    return int(value)

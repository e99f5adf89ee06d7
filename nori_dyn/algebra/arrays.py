"""Checks of what users give: shapes and finite values, refused by name before any arithmetic."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

from nori_dyn.errors import InputError

Floats = NDArray[np.float64]


def shaped(name: str, value: ArrayLike, shape: tuple[int, ...]) -> Floats:
    """Return a value as a contiguous float array of a shape.

    Args:
        name: what it is, for messages.
        value: anything that NumPy takes for numbers.
        shape: the shape expected.

    Raises:
        InputError: another shape, or not numbers.
    """
    try:
        if np.iscomplexobj(value):
            raise TypeError("complex numbers")
        array = np.ascontiguousarray(value, dtype=float)
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} is not an array of numbers: {error}") from None
    if np.shape(value) != shape:
        raise InputError(f"{name} has shape {np.shape(value)}, expected {shape}.")
    return array


def checked(name: str, value: ArrayLike, shape: tuple[int, ...], labels: Sequence[str] = ()) -> Floats:
    """Return a value as `shaped` does, all of it finite.

    Args:
        name: what it is, for messages.
        value: anything that NumPy takes for numbers.
        shape: the shape expected.
        labels: names of the numbers along the last axis, for messages.

    Raises:
        InputError: another shape, not numbers, or a value that is not finite.
    """
    array = shaped(name, value, shape)
    flat = array.reshape(-1)
    with np.errstate(over="ignore", invalid="ignore"):
        product = flat.dot(flat)
    if not math.isfinite(product) and not np.isfinite(array).all():  # the product is the quicker of the two
        at = tuple(int(k) for k in np.argwhere(~np.isfinite(array))[0])
        place = ", ".join(map(str, at))
        label = f" ('{labels[at[-1]]}')" if labels else ""
        raise InputError(f"{name}[{place}]{label} is {array[at]}: values must be finite.")
    return array

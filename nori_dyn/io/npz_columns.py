"""Reading the columns of an NPZ: one array a column, or one with a column a number; pickled objects are refused."""

from __future__ import annotations

import io
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.io.files import read_bytes
from nori_dyn.system.variables import component_names
from nori_dyn.typing import Floats


def npz_columns(path: str | Path, blocks: Mapping[str, tuple[str, ...]]) -> dict[str, Floats]:
    """Return the columns (N,) of an `.npz` by name; those of an array `q` (N, n) are `q[0]` to `q[n - 1]`.

    Args:
        path: the file.
        blocks: arrays whose columns have names of their own: the components of measurements.

    Raises:
        FileFormatError: it is damaged, or holds objects, complex numbers or times.
        InputError: its arrays have different numbers of samples.
    """
    columns: dict[str, Floats] = {}
    for key, array in _arrays(path).items():
        if array.ndim == 1:
            columns[key] = array
        elif array.ndim == 2 and len(blocks.get(key, ())) == array.shape[1]:
            columns.update(zip(component_names(key, blocks[key]), array.T, strict=True))
        elif array.ndim == 2:
            columns.update({f"{key}[{k}]": column for k, column in enumerate(array.T)})
    sizes = sorted({len(column) for column in columns.values()})
    if len(sizes) > 1:
        raise InputError(f"{path}: its arrays have different numbers of samples: {sizes}.")
    return columns


def _arrays(path: str | Path) -> dict[str, Floats]:
    """Return the arrays of numbers; text is left out."""
    content = read_bytes(path)
    try:
        with np.load(io.BytesIO(content), allow_pickle=False) as archive:
            arrays = {key: np.asarray(archive[key]) for key in archive.files}
    except Exception as error:  # NumPy and zipfile raise all kinds of them for damaged files
        raise FileFormatError(f"{path}: is not an NPZ file of plain numbers: {error}.") from None
    for key, array in arrays.items():
        if array.dtype.kind not in "biufUS":
            raise FileFormatError(f"{path}: its array '{key}' holds {array.dtype}, not plain numbers.")
    return {key: array.astype(float) for key, array in arrays.items() if array.dtype.kind not in "US"}

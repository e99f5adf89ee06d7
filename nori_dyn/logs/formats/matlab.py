"""MATLAB's files: those before 7.3 through SciPy, whole; the others are HDF5."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import scipy.io
from scipy.io.matlab import MatlabOpaque, mat_struct

from nori_dyn.errors import FileFormatError
from nori_dyn.io.extras import needed
from nori_dyn.logs.formats.arrays import TEXT, ArraySeries, ArraySource, object_of
from nori_dyn.logs.formats.numpy_files import ABOUT, about, read_about
from nori_dyn.logs.formats.source import LogSource, refusing
from nori_dyn.logs.formats.writer import TIME, FileSchema, Writer, with_time
from nori_dyn.typing import Floats

LONGEST_NAME = 63
"""Letters of a variable of MATLAB."""


class Mat5Source(ArraySource):
    """The arrays of numbers in a file of MATLAB before 7.3, by the names of structures and fields: `joints.q[0]`."""

    def __init__(self, path: Path) -> None:
        with refusing(f"{path}: is damaged, or no file of MATLAB"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            content: Any = scipy.io.loadmat(path, struct_as_record=False, squeeze_me=True)
        text = content.pop(ABOUT, "")
        labels, units, shapes, metadata = read_about(text if isinstance(text, str) else "")
        refused: dict[str, str] = {}
        series = [
            ArraySeries.of(name, each, name.rpartition(".")[0], labels.get(name, ()), units.get(name, ()))
            for name, each in _arrays(content, shapes, refused)
        ]
        super().__init__(path, series, metadata, turns=not shapes, refused=refused)


def open_mat(path: Path) -> LogSource:
    """Open a MATLAB file, of version 5 or 7.3.

    Raises:
        FileFormatError: it cannot be read, or is no such file.
        MissingExtraError: it is of the newer one, and h5py is not installed.
    """
    with path.open("rb") as file:
        head = file.read(520)
    if not head.startswith(b"MATLAB 7.3") and b"\x89HDF" not in (head[:4], head[512:516]):
        return Mat5Source(path)
    needed(f"{path}: reading files of MATLAB 7.3", "logs", "h5py")
    from nori_dyn.logs.formats.hdf5 import Hdf5Source

    return Hdf5Source(path, is_matlab=True)


def _arrays(
    content: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]], refused: dict[str, str], path: str = ""
) -> Iterator[tuple[str, Any]]:
    """Yield the arrays of numbers in structures and cells, by their paths `log[0].q`, and note objects."""
    for key, value in content.items():
        name = f"{path}{key}"
        if isinstance(value, MatlabOpaque):
            own_name, kind = (str(value[0][field], "latin-1") for field in ("s0", "s2"))
            if kind not in TEXT:
                refused[f"{path}{own_name or key}"] = object_of(kind)
        elif isinstance(value, mat_struct):
            own = {field: each for field, each in vars(value).items() if field != "_fieldnames"}
            yield from _arrays(own, shapes, refused, f"{name}.")
        elif isinstance(value, np.ndarray) and value.dtype.kind == "O":
            parts = {f"{key}[{k}]": each for k, each in enumerate(value.ravel())}
            yield from _arrays(parts, shapes, refused, path)
        elif name in shapes:
            array = np.asarray(value, dtype=float)
            yield name, array.reshape(array.size // max(1, int(np.prod(shapes[name]))), *shapes[name])
        elif isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
            yield name, value


class MatWriter(Writer):
    """A variable a field, in the format before 7.3; the text `nori_dyn` says what their columns are called.

    That format has variables of 2 GB at most, and is written whole.
    """

    def __init__(self, path: Path, schema: FileSchema) -> None:
        super().__init__(path, schema)
        self._waiting: list[dict[str, Floats]] = []

    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        values = with_time(t, values)
        self._waiting.append({each.name: np.array(values[each.name]) for each in self.schema.arrays})

    def close(self) -> None:
        names = {TIME: TIME, ABOUT: ABOUT}
        for each in self.schema.fields:
            name = re.sub(r"\W", "_", each.name, flags=re.ASCII)[: LONGEST_NAME - 3]
            name = name if name[:1].isalpha() else f"x{name}"
            same = sum(other == name or other.startswith(f"{name}_") for other in names.values())
            names[each.name] = f"{name}_{same + 1}" if name in names.values() else name
        content: dict[str, Any] = {ABOUT: about(self.schema, names)}
        for each in self.schema.arrays:
            parts = [np.zeros((0, *each.shape)), *(values[each.name] for values in self._waiting)]
            content[names[each.name]] = np.concatenate(parts)
        try:
            with self.path.open("wb") as file:  # SciPy does not tell why it cannot open one
                scipy.io.savemat(file, content, do_compression=True, oned_as="column")  # type: ignore[arg-type]
        except (ValueError, scipy.io.matlab.MatWriteError) as error:
            raise FileFormatError(
                f"{self.path}: cannot be written: {error}. More than 2 GB? Write HDF5 or Parquet instead."
            ) from None

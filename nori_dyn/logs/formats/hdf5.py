"""HDF5, and MATLAB's files from 7.3 on, which are HDF5: arrays in groups, read in parts."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np

from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import reason
from nori_dyn.logs.formats.arrays import ArraySource, Series, part_of
from nori_dyn.logs.source import Source
from nori_dyn.logs.writer import TIME, Schema, Writer
from nori_dyn.typing import Floats

CLASSES = ("double", "single", "logical", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)))
"""The classes of MATLAB that are numbers."""

ROW_BYTES = 1 << 16
"""Bytes of a piece of an array that is written."""


class Hdf5Source(ArraySource):
    """The arrays of numbers in an HDF5 file, by their paths: `left_arm/position[0]`."""

    separator: ClassVar[str] = "/"

    def __init__(self, path: Path, turns: bool = False) -> None:
        self.path = path
        try:
            self._file = h5py.File(path, "r")
        except FileNotFoundError:
            raise FileFormatError(f"{path}: there is no such file.") from None
        except Exception as error:  # h5py raises all kinds of them for damaged files
            raise FileFormatError(f"{path}: is damaged, or no HDF5 file: {reason(error)}.") from None
        try:
            series = list(self._series(self._file, turns))
            metadata = {str(key): value for key, value in self._file.attrs.items() if isinstance(value, str)}
            super().__init__(path, series, metadata, turns)
        except FileFormatError:
            self._file.close()
            raise
        except Exception as error:
            self._file.close()
            raise FileFormatError(f"{path}: is damaged: {reason(error)}.") from None

    def close(self) -> None:
        self._file.close()

    def _series(self, file: Any, is_matlab: bool) -> Iterator[Series]:
        links: list[tuple[str, Any]] = []
        file.visititems_links(lambda name, link: links.append((name, link)))
        found: list[tuple[str, Any]] = []
        file.visititems(lambda name, each: found.append((name, each)) if isinstance(each, h5py.Dataset) else None)
        self._refuse_others(links, found)
        for name, each in found:
            kind = _text(each.attrs.get("MATLAB_class"))
            is_number = each.dtype.kind in "biuf" and each.shape
            if name.startswith("#") or not is_number or "MATLAB_empty" in each.attrs or (kind and kind not in CLASSES):
                continue
            group, _, _ = name.rpartition("/")
            dotted, own = name.replace("/", self.separator), group.replace("/", self.separator)
            labels = _texts(each.attrs.get("labels"))
            if is_matlab and name.endswith("/data"):
                labels = tuple(f"{own}:{element}" for element in _elements(file, group))
            units = _texts(each.attrs.get("units", each.attrs.get("unit")))
            yield Series(dotted, each.shape, partial(part_of, each), own, labels, units)

    def _refuse_others(self, links: Sequence[tuple[str, Any]], found: Sequence[tuple[str, Any]]) -> None:
        """Refuse what brings in other files: who makes a log would choose which files its reader reads."""
        for name, link in links:
            if isinstance(link, h5py.ExternalLink):
                raise self._outside(name, "is a link to", link.filename)
        for name, each in found:
            if each.external:
                raise self._outside(name, "has its numbers in", each.external[0][0])
            sources = each.virtual_sources() if each.is_virtual else ()
            if other := next((source.file_name for source in sources if source.file_name != "."), None):
                raise self._outside(name, "is made of", other)

    def _outside(self, name: str, how: str, other: str) -> FileFormatError:
        return FileFormatError(
            f"{self.path}: '{name}' {how} another file, '{other}', and a log brings in no others. Copy its numbers "
            "into the log, by h5repack or h5py."
        )


class Mat73Source(Hdf5Source):
    """The arrays of numbers in a file of MATLAB 7.3, by the names of structures and fields: `joints.q[0]`.

    A group `positions` with `data`, `timestamps` and `elements_names`, as robot loggers write it, has columns
    `positions:l_knee`.
    """

    separator: ClassVar[str] = "."

    def __init__(self, path: Path) -> None:
        super().__init__(path, turns=True)


def _elements(file: Any, group: str) -> Iterator[str]:
    """Yield the names of the elements of a group's data, a cell of texts."""
    names = file.get(f"{group}/elements_names")
    if isinstance(names, h5py.Dataset) and names.dtype == h5py.ref_dtype:
        for reference in np.ravel(names[()]):
            content = file[reference][()]
            yield "".join(map(chr, np.ravel(content))) if np.asarray(content).dtype.kind in "ui" else ""


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str | bytes):
        return (_text(value),)
    return tuple(_text(each) for each in value) if isinstance(value, np.ndarray) and value.ndim == 1 else ()


class Hdf5Writer(Writer):
    """An array a field, which says by attributes what its columns are called and their units."""

    source: ClassVar[Callable[[Path], Source]] = Hdf5Source

    def __init__(self, path: Path, schema: Schema) -> None:
        super().__init__(path, schema)
        self._disk = _Disk(path)
        self._file = h5py.File(self._disk, "w")
        self._arrays: dict[str, Any] = {}
        self._file.attrs.update(schema.metadata)
        if schema.has_time:
            self._create(TIME, (), (TIME,), ("s",))
        for each in schema.fields:
            self._create(each.name, each.shape, each.labels, each.units)

    def _create(self, name: str, shape: tuple[int, ...], labels: Sequence[str], units: Sequence[str]) -> None:
        rows = max(1, ROW_BYTES // (8 * max(1, int(np.prod(shape)))))
        limits, pieces = (None, *shape), (rows, *(max(1, n) for n in shape))
        array = self._file.create_dataset(
            name.replace("/", "_"), (0, *shape), dtype="f8", maxshape=limits, chunks=pieces
        )
        array.attrs["labels"] = np.array(labels, dtype=h5py.string_dtype())
        array.attrs["units"] = np.array(units, dtype=h5py.string_dtype())
        self._arrays[name] = array

    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        for name, array in self._arrays.items():
            own = t if name == TIME and t is not None else values[name]
            n = len(array)
            array.resize(n + len(own), axis=0)
            array[n:] = own
            self._disk.check()

    def close(self) -> None:
        self._file.close()
        self._disk.close()
        self._disk.check()


class _Disk(io.FileIO):
    """A file that HDF5 writes, which tells of a full disk afterwards: the library crashes where it is told at once.

    Args:
        path: the file.

    Raises:
        OSError: it cannot be opened.
    """

    def __init__(self, path: Path) -> None:
        super().__init__(path, "w+")
        self._problem: OSError | None = None

    def check(self) -> None:
        """Raise what went wrong since the file was opened.

        Raises:
            OSError: something was not written.
        """
        if self._problem is not None:
            raise self._problem

    def write(self, data: Any) -> int:
        left = memoryview(data)
        size = left.nbytes
        try:
            while left.nbytes and self._problem is None:
                left = left[super().write(left) :]
        except OSError as error:
            self._problem = error
        return size

    def truncate(self, size: int | None = None) -> int:
        try:
            return super().truncate(size)
        except OSError as error:
            self._problem = error
            return size or 0

    def readinto(self, data: Any) -> int:
        n = super().readinto(data) or 0
        if n < len(data) and self._problem is not None:
            data[n:] = bytes(len(data) - n)  # of what was not written
            return len(data)
        return n

"""HDF5, and MATLAB's files from 7.3 on, which are HDF5: arrays in groups, read in parts."""

from __future__ import annotations

import io
import math
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np

from nori_dyn.errors import FileFormatError
from nori_dyn.logs.formats.arrays import LONGEST, TEXT, ArraySeries, ArraySource, object_of, part_of
from nori_dyn.logs.formats.source import refusing
from nori_dyn.logs.formats.writer import FileSchema, Writer, with_time
from nori_dyn.typing import Array, Floats

CLASSES = ("double", "single", "logical", *(f"{u}int{n}" for u in ("", "u") for n in (8, 16, 32, 64)))
"""The classes of MATLAB that are numbers."""

LARGEST_PIECE, USUAL_CACHE, CACHES = 1 << 28, 1 << 20, 1 << 30
"""Bytes of a piece of an array that is read, at most: pieces are decompressed as a whole; of those that HDF5 keeps of
an array anyway; and of those that are kept of all arrays, so that large ones are decompressed once."""

FEW_PIECES, LEAST = 1 << 16, 8
"""Pieces that any file may say to have, and bytes that each of more takes in it at the least, with its place."""

CLAIMED, EXPANDS = 1 << 30, 1100
"""Bytes that arrays may have in all, and how many times those of the file, whichever is more: zlib gives 1,032."""

DEEPEST = 64
"""Groups that may be one in the other."""

SLOTS = 10_007
"""Places of HDF5's table of pieces that it keeps: a prime."""

LONGEST_NAME = 1024
"""Characters of the name of an element."""

ROW_BYTES = 1 << 16
"""Bytes of a piece of an array that is written."""


class Hdf5Source(ArraySource):
    """The arrays of numbers in an HDF5 file, by their paths: `left_arm/position[0]`.

    In a file of MATLAB 7.3 they go by the names of structures and fields, `joints.q[0]`. A group `positions` with
    `data`, `timestamps` and `elements_names`, as robot loggers write it, has columns `positions:l_knee`.

    Args:
        path: the file.
        is_matlab: whether it is of MATLAB.
    """

    def __init__(self, path: Path, is_matlab: bool = False) -> None:
        self.path, self._separator = path, "." if is_matlab else "/"
        self._kept: dict[str, Any] = {}
        self._cached = 0
        self._objects: dict[str, str] = {}
        with ExitStack() as stack:
            stack.enter_context(refusing(f"{path}: is damaged, or no HDF5 file"))
            self._file, self._size = stack.enter_context(h5py.File(path, "r")), path.stat().st_size
            series = list(self._series(self._file, is_matlab))
            metadata = {str(key): value for key, value in self._file.attrs.items() if isinstance(value, str)}
            super().__init__(path, series, metadata, is_matlab, self._objects)
            stack.pop_all()

    def close(self) -> None:
        self._kept.clear()
        self._file.close()

    def _part(self, name: str, axis: int, start: int, stop: int) -> Array:
        """Read a slice of an array. Open arrays take memory, so only those in large chunks stay open."""
        needed = 0 if name in self._kept else self._needed(name, axis)
        if USUAL_CACHE < needed <= CACHES - self._cached:
            access = h5py.h5p.create(h5py.h5p.DATASET_ACCESS)
            access.set_chunk_cache(SLOTS, needed, 1.0)
            self._kept[name] = h5py.Dataset(h5py.h5d.open(self._file.id, name.encode(), access))
            self._cached += needed
        return part_of(self._kept.get(name) or self._file[name], axis, start, stop)

    def _needed(self, name: str, axis: int) -> int:
        """Bytes of the chunks that hold a sample. The chunk cache of an open array cannot be changed."""
        each = self._file[name]
        pieces = [-(-n // k) for n, k in zip(each.shape, each.chunks or each.shape, strict=True) if k]
        across = math.prod(pieces[:axis] + pieces[axis + 1 :])
        return int(math.prod(each.chunks or (0,)) * each.dtype.itemsize * across)

    def _series(self, file: Any, is_matlab: bool) -> Iterator[ArraySeries]:
        names = list(self._names(file, "", {_address(file)}, 0))
        found: list[ArraySeries | None] = []
        claimed: dict[str, int] = {}
        for name in names:
            with refusing(f"{self.path}: '{name}' is damaged"):
                each = file[name]
                self._check(file, name, each)
                claimed[name] = each.nbytes
                found.append(self._one(file, name, each, is_matlab))
        whole = sum(claimed.values())
        if whole > max(CLAIMED, EXPANDS * self._size):
            largest = max(claimed, key=lambda name: claimed[name])
            raise FileFormatError(
                f"{self.path}: its arrays declare {whole / 1e9:,.1f} GB, '{largest}' most of it, and the file "
                f"has {self._size / 1e3:,.0f} kB. If more was allocated than written, resize them with h5py."
            )
        yield from (series for series in found if series is not None)

    def _names(self, group: Any, before: str, seen: set[tuple[int, int]], depth: int) -> Iterator[str]:
        """Yield the names of the arrays in a group and those in it, each once, whatever leads to it.

        h5py's own way follows each path from its beginning, which takes minutes where groups are nested deeply.
        """
        for own in group:
            name = f"{before}{own}"
            link = group.get(own, getlink=True)
            if isinstance(link, h5py.ExternalLink):
                raise self._outside(name, "is a link to", link.filename)
            if not isinstance(link, h5py.HardLink):
                continue
            with refusing(f"{self.path}: '{name}' is damaged"):
                each = group[own]
            if (at := _address(each)) in seen:
                continue
            seen.add(at)
            if isinstance(each, h5py.Dataset):
                yield name
            elif isinstance(each, h5py.Group):
                if depth >= DEEPEST:
                    raise FileFormatError(f"{self.path}: '{name}' is in more groups than {DEEPEST}, one in the other.")
                yield from self._names(each, f"{name}/", seen, depth + 1)

    def _one(self, file: Any, name: str, each: Any, is_matlab: bool) -> ArraySeries | None:
        """An array of numbers, or None; it is opened again where it is read, as open arrays take memory."""
        kind = _text(each.attrs.get("MATLAB_class"))
        is_number = each.dtype.kind in "biuf" and each.shape
        if "MATLAB_object_decode" in each.attrs and not name.startswith("#") and kind not in TEXT:
            self._objects[name.replace("/", self._separator)] = object_of(kind)
        if name.startswith("#") or not is_number or "MATLAB_empty" in each.attrs or (kind and kind not in CLASSES):
            return None
        group, _, _ = name.rpartition("/")
        dotted, own = name.replace("/", self._separator), group.replace("/", self._separator)
        labels = _texts(each.attrs.get("labels"))
        if is_matlab and name.endswith("/data"):
            labels = tuple(f"{own}:{element}" for element in self._elements(file, group))
        units = _texts(each.attrs.get("units", each.attrs.get("unit")))
        return ArraySeries(dotted, each.shape, partial(self._part, name), own, labels, units)

    def _check(self, file: Any, name: str, each: Any) -> None:
        """Refuse an array that brings in other files, is made of itself, or is in pieces that take all memory.

        Who makes a log would choose otherwise which files its reader reads.
        """
        if each.external:
            raise self._outside(name, "has its numbers in", each.external[0][0])
        for source in each.virtual_sources() if each.is_virtual else ():
            if source.file_name != ".":
                raise self._outside(name, "is made of", source.file_name)
            other = file.get(source.dset_name)
            if "%" in source.dset_name or (isinstance(other, h5py.Dataset) and other.is_virtual):
                raise FileFormatError(
                    f"{self.path}: '{name}' is made of '{source.dset_name}', which itself refers to others. Copy its "
                    "numbers, by h5repack or h5py."
                )
        chunks = each.chunks or each.shape or ()
        piece = math.prod(each.chunks or ()) * each.dtype.itemsize
        n, size = math.prod(-(-n // k) for n, k in zip(each.shape or (), chunks, strict=True) if k), self._size
        if n > max(FEW_PIECES, size // LEAST):
            raise FileFormatError(
                f"{self.path}: '{name}' declares {n:,} pieces, and the file has {size / 1e3:,.0f} kB. If "
                "more was allocated than written, resize it with h5py."
            )
        if piece > LARGEST_PIECE:
            raise FileFormatError(
                f"{self.path}: '{name}' is in pieces of {piece / 1e9:,.1f} GB, and more than {LARGEST_PIECE / 1e9:.1f} "
                "GB are not read at once. h5repack -l makes them smaller."
            )

    def _outside(self, name: str, how: str, other: str) -> FileFormatError:
        return FileFormatError(
            f"{self.path}: '{name}' {how} another file, '{other}', and a log must be one file. Copy its numbers "
            "into the log, by h5repack or h5py."
        )

    def _elements(self, file: Any, group: str) -> Iterator[str]:
        """Yield the names of the elements of a group's data, a cell of texts."""
        link = file[group].get("elements_names", getlink=True)
        names = file[group]["elements_names"] if isinstance(link, h5py.HardLink) else None
        if not isinstance(names, h5py.Dataset) or names.dtype != h5py.ref_dtype:
            return
        if names.size > LONGEST:
            raise FileFormatError(
                f"{self.path}: '{names.name}' has {names.size:,} names; at most {LONGEST:,} are read."
            )
        for reference in np.ravel(names[()]):
            text = file[reference]
            if text.size > LONGEST_NAME:
                raise FileFormatError(
                    f"{self.path}: '{text.name}' is a name of {text.size:,} characters, which is too long."
                )
            content = np.asarray(text[()])
            yield "".join(map(chr, np.ravel(content))) if content.dtype.kind in "ui" else ""


def _address(each: Any) -> tuple[int, int]:
    """Identity of an object, the same for all its names."""
    info = h5py.h5o.get_info(each.id)
    return int(info.fileno), int(info.addr)


def _text(value: object) -> str:
    return value.decode(errors="replace") if isinstance(value, bytes) else value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str | bytes):
        return (_text(value),)
    return tuple(_text(each) for each in value) if isinstance(value, np.ndarray) and value.ndim == 1 else ()


class Hdf5Writer(Writer):
    """An array a field, which says by attributes what its columns are called and their units."""

    def __init__(self, path: Path, schema: FileSchema) -> None:
        super().__init__(path, schema)
        self._disk = _Disk(path)
        self._file = h5py.File(self._disk, "w")
        self._arrays: dict[str, Any] = {}
        self._file.attrs.update(schema.metadata)
        for each in schema.arrays:
            rows = max(1, ROW_BYTES // (8 * max(1, int(np.prod(each.shape)))))
            limits, pieces = (None, *each.shape), (rows, *(max(1, n) for n in each.shape))
            array = self._file.create_dataset(
                each.name.replace("/", "_"), (0, *each.shape), dtype="f8", maxshape=limits, chunks=pieces
            )
            array.attrs["labels"] = np.array(each.labels, dtype=h5py.string_dtype())
            array.attrs["units"] = np.array(each.units, dtype=h5py.string_dtype())
            self._arrays[each.name] = array

    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        values = with_time(t, values)
        for name, array in self._arrays.items():
            n, own = len(array), values[name]
            array.resize(n + len(own), axis=0)
            array[n:] = own
            self._disk.check()

    def close(self) -> None:
        self._file.close()
        self._disk.close()
        self._disk.check()


class _Disk(io.FileIO):
    """A file for HDF5 to write, which reports a full disk at the end: the library crashes if it sees it at once.

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

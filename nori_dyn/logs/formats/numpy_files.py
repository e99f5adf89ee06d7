"""NumPy's files: NPZ with an array a quantity, NPY with a table; read in pieces, pickled objects are never loaded."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from nori_dyn.errors import FileFormatError
from nori_dyn.logs.formats.arrays import ArraySeries, ArraySource, part_of
from nori_dyn.logs.formats.source import refusing
from nori_dyn.logs.formats.writer import FileSchema, Writer, with_time
from nori_dyn.typing import Array, Floats

ABOUT = "nori_dyn"
"""The text in a file of arrays, as JSON, that says what it holds: names and units of columns, and metadata."""


class NpzSource(ArraySource):
    """The arrays of numbers of an NPZ; text is left out, and so are objects, with a warning."""

    def __init__(self, path: Path) -> None:
        with refusing(f"{path}: is not an NPZ file of plain numbers"):
            self._archive = zipfile.ZipFile(path)
            members = [Member(self._archive, info) for info in self._archive.infolist()]
            text = next((str(each.whole()) for each in members if each.name == ABOUT and each.dtype.kind == "U"), "")
        refused = {m.name: f"it holds {m.dtype}, not plain numbers" for m in members if m.dtype.kind not in "biufUS"}
        labels, units, _, metadata = read_about(text)
        series = [
            ArraySeries(m.name, m.shape, m.take, labels=labels.get(m.name, ()), units=units.get(m.name, ()))
            for m in members
            if m.dtype.kind in "biuf"
        ]
        self._members = members
        super().__init__(path, series, metadata, refused=refused)

    def close(self) -> None:
        for each in self._members:  # an archive stays open as long as one of these is
            each.close()
        self._archive.close()


class Member:
    """An array in an NPZ: its shape is known at once, its samples are read one after the other."""

    def __init__(self, archive: zipfile.ZipFile, info: zipfile.ZipInfo) -> None:
        self._archive, self._info = archive, info
        self.name = info.filename.removesuffix(".npy")
        with archive.open(info) as file:
            version = npy.read_magic(file)
            read = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
            self.shape, self._is_fortran, self.dtype = read(file)
            self._begin = file.tell()
        if not self.dtype.hasobject and info.file_size != self._begin + int(np.prod(self.shape)) * self.dtype.itemsize:
            raise ValueError(f"the array '{self.name}' is shorter than it declares")
        self._row = int(np.prod(self.shape[1:])) * self.dtype.itemsize
        self._file: IO[bytes] | None = None
        self._all: Array | None = None

    def close(self) -> None:
        """Let go of the file."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def whole(self) -> Array:
        """Read all of it."""
        with self._archive.open(self._info) as file:
            return npy.read_array(file, allow_pickle=False)

    def take(self, axis: int, start: int, stop: int) -> Array:
        """Read a slice of it; going forward is fast. An array in Fortran order is read once and kept."""
        if axis or self._is_fortran:
            self._all = self.whole() if self._all is None else self._all
            return part_of(self._all, axis, start, stop)
        self._file = self._file or self._archive.open(self._info)
        self._file.seek(self._begin + start * self._row)
        content = self._file.read((stop - start) * self._row)
        return np.frombuffer(content, self.dtype).reshape(stop - start, *self.shape[1:])


class NpySource(ArraySource):
    """A table in an NPY: with fields by their names, else by numbers, as a text table without names."""

    def __init__(self, path: Path) -> None:
        with refusing(f"{path}: is not an NPY file of plain numbers"):
            array: Any = np.load(path, mmap_mode="r", allow_pickle=False)
        fields = array.dtype.names
        arrays = {name: array[name] for name in fields} if fields else {"column": np.atleast_2d(array.T).T}
        wrong = next((name for name, each in arrays.items() if each.dtype.kind not in "biuf"), None)
        if wrong is not None:
            raise FileFormatError(f"{path}: its array '{wrong}' holds {arrays[wrong].dtype}, not plain numbers.")
        super().__init__(path, [ArraySeries.of(name, each) for name, each in arrays.items()])


Texts = dict[str, tuple[str, ...]]


def read_about(text: str) -> tuple[Texts, Texts, dict[str, tuple[int, ...]], dict[str, str]]:
    """Parse what `about` wrote: by array the names of columns, units and shape of a sample; and the metadata."""
    try:
        content = json.loads(text or "{}")
        arrays = content.get("arrays", {})
        labels = {name: tuple(map(str, each["labels"])) for name, each in arrays.items()}
        units = {name: tuple(map(str, each["units"])) for name, each in arrays.items()}
        shapes = {name: tuple(map(int, each["shape"])) for name, each in arrays.items()}
        return labels, units, shapes, {str(key): str(value) for key, value in content.get("metadata", {}).items()}
    except (ValueError, TypeError, KeyError, AttributeError):  # somebody else's
        return {}, {}, {}, {}


def about(schema: FileSchema, names: Mapping[str, str]) -> str:
    """Description of the arrays of a file, as text.

    Args:
        schema: what it holds.
        names: what each array is called.
    """
    arrays = {
        names[each.name]: {"labels": each.labels, "units": each.units, "shape": each.shape} for each in schema.arrays
    }
    return json.dumps({"metadata": dict(schema.metadata), "arrays": arrays}, ensure_ascii=False)


class NpzWriter(Writer):
    """An array a field, as NumPy's own; beside them a text, `nori_dyn`, with the names of their columns.

    The numbers wait in files of no name beside it until all of them are there, as an NPZ says first how many there are.
    """

    def __init__(self, path: Path, schema: FileSchema) -> None:
        super().__init__(path, schema)
        self._arrays = {each.name: each.shape for each in schema.arrays}
        self._waiting = {name: _spool(path) for name in self._arrays}
        self._n = 0

    def write(self, t: Floats | None, values: Mapping[str, Floats]) -> None:
        values = with_time(t, values)
        for name, file in self._waiting.items():
            array = np.ascontiguousarray(values[name], dtype=float)
            file.write(array.tobytes())
            n = len(array)
        self._n += n

    def close(self) -> None:
        with contextlib.ExitStack() as stack:
            for waiting in self._waiting.values():
                stack.enter_context(waiting)
            archive = stack.enter_context(zipfile.ZipFile(stack.enter_context(self.path.open("wb")), "w"))
            for name, shape in self._arrays.items():
                self._waiting[name].seek(0)
                with archive.open(_entry(name), "w", force_zip64=True) as file:
                    header = {"descr": "<f8", "fortran_order": False, "shape": (self._n, *shape)}
                    npy.write_array_header_1_0(file, header)
                    shutil.copyfileobj(self._waiting[name], file, 1 << 22)
            with archive.open(_entry(ABOUT), "w") as file:
                text = about(self.schema, {name: name for name in self._arrays})
                npy.write_array(file, np.array(text), allow_pickle=False)


def _spool(path: Path) -> IO[bytes]:
    return tempfile.TemporaryFile(dir=path.parent)


def _entry(name: str) -> zipfile.ZipInfo:
    entry = zipfile.ZipInfo(f"{name}.npy")  # of 1980: the same estimates make the same file
    entry.compress_type = zipfile.ZIP_DEFLATED
    return entry

"""Registry of log formats: by suffix and first bytes, with their readers and writers."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from nori_dyn.errors import FileFormatError
from nori_dyn.io.extras import needed
from nori_dyn.io.files import reason
from nori_dyn.logs.formats.source import LogSource
from nori_dyn.logs.formats.writer import Writer

FOLDER = (".ros2",)
"""How the names of folders end that are written; those that are read may be called anything."""

TABLES = "folder of tables"
"""The format of a folder that is no bag."""

BAG = ("metadata.yaml", ".db3", ".db3.gz", ".mcap")
"""How the names of files end in the folder of a bag."""

ELSEWHERE = {
    (".xlsx", ".xls", ".ods"): "Save the sheet as CSV.",
    (".pkl", ".pickle"): "A pickle runs what stands in it and is never opened: save its arrays by np.savez.",
}
"""What to do with files of other kinds, by how their names end."""

EXTRA = "logs"
"""The extra that brings the libraries of formats."""


@dataclass(frozen=True, slots=True)
class Format:
    """A format of logs.

    Attributes:
        name: what it is called.
        endings: how the names of its files end.
        module: its module in `nori_dyn.logs.formats`.
        source: what reads it there.
        writer: the class there that writes it; "" where it is only read.
        needs: the optional libraries that it is read and written with.
        begins: what files of it begin with, by which one is known whose name tells nothing.
    """

    name: str
    endings: tuple[str, ...]
    module: str
    source: str
    writer: str = ""
    needs: tuple[str, ...] = ()
    begins: bytes = b""


FORMATS = (
    Format("CSV", (".csv", ".csv.gz", ".tsv", ".tsv.gz", ".txt", ".txt.gz"), "csv_table", "CsvSource", "CsvWriter"),
    Format("table of text", (".dat", ".sto", ".mot"), "csv_table", "CsvSource"),
    Format("NPZ", (".npz",), "numpy_files", "NpzSource", "NpzWriter", begins=b"PK\x03\x04"),
    Format("NPY", (".npy",), "numpy_files", "NpySource", begins=b"\x93NUMPY"),
    Format("JSON", (".json", ".jsonl", ".ndjson"), "json_files", "JsonSource", begins=b"{"),
    Format("MATLAB", (".mat",), "matlab", "open_mat", "MatWriter", begins=b"MATLAB "),
    Format("HDF5", (".h5", ".hdf5", ".hdf"), "hdf5", "Hdf5Source", "Hdf5Writer", ("h5py",), b"\x89HDF"),
    Format("Parquet", (".parquet", ".pq"), "arrow", "ParquetSource", "ParquetWriter", ("pyarrow",), b"PAR1"),
    Format("Arrow", (".arrow", ".feather", ".ipc"), "arrow", "ArrowSource", "ArrowWriter", ("pyarrow",), b"ARROW1"),
    Format("MCAP", (".mcap",), "mcap_files", "McapSource", "McapWriter", ("mcap", "rosbags"), b"\x89MCAP"),
    Format("bag of ROS 1", (".bag",), "bags", "Bag1Source", "Bag1Writer", ("rosbags",), b"#ROSBAG"),
    Format("bag of ROS 2", FOLDER, "bags", "open_folder", "Bag2Writer", ("rosbags", "mcap")),
    Format("file of a bag of ROS 2", (".db3", ".db3.gz"), "bags", "BagSource", "", ("rosbags",)),
    Format(TABLES, (), "folders", "TablesSource"),
)


def open_log(path: str | Path) -> LogSource:
    """Open a log; its suffix, or its first bytes, tell the format.

    Raises:
        FileFormatError: it cannot be read, or is of no known format.
        MissingExtraError: the library for its format is not installed.
    """
    path = Path(path)
    found = format_of(path)
    source: Callable[[Path], LogSource] = _loaded(found, found.source)
    try:
        if path.is_file() or not path.exists():
            path.open("rb").close()
        return source(path)
    except FileNotFoundError:
        raise FileFormatError(f"{path}: there is no such file.") from None
    except OSError as error:
        raise FileFormatError(f"{path}: cannot be read: {reason(error)}.") from None


def writer_of(path: str | Path) -> type[Writer]:
    """The `Writer` of estimates for a file name.

    Raises:
        FileFormatError: its ending is that of no format that is written.
        MissingExtraError: the library for its format is not installed.
    """
    path = Path(path)
    found = next((each for each in FORMATS if each.writer and _ends(path, each)), None)
    if found is None:
        raise FileFormatError(f"{path}: must end in {_listed(tuple(each for each in FORMATS if each.writer))}.")
    writer: type[Writer] = _loaded(found, found.writer)
    return writer


def format_of(path: Path) -> Format:
    """Format of an existing file.

    Raises:
        FileFormatError: it is of no known format.
    """
    if path.is_dir():
        is_bag = any(file.name.lower().endswith(BAG) for file in path.iterdir())
        return next(each for each in FORMATS if (each.endings == FOLDER if is_bag else each.name == TABLES))
    found = next((each for each in FORMATS if _ends(path, each)), None)
    advice = next((f" {hint}" for endings, hint in ELSEWHERE.items() if path.name.lower().endswith(endings)), "")
    begun = _begins(path) if not advice and (found is None or found.module == "csv_table") else None
    if begun is not None and (found is None or begun.module == "json_files"):  # JSON that is called .txt
        found = begun
    if found is None:
        known = _listed(FORMATS)
        raise FileFormatError(f"{path}: must end in {known}, or be the folder of a bag or of tables.{advice}")
    return found


def endings() -> tuple[str, ...]:
    """Suffixes of all log formats."""
    return tuple(ending for each in FORMATS for ending in each.endings)


def _ends(path: Path, each: Format) -> bool:
    return path.name.lower().endswith(each.endings)


def _begins(path: Path) -> Format | None:
    try:
        with path.open("rb") as file:
            head = file.read(8)
    except OSError:
        return None
    return next((each for each in FORMATS if each.begins and head.startswith(each.begins)), None)


def _listed(formats: tuple[Format, ...]) -> str:
    *most, last = (ending for each in formats for ending in each.endings)
    return f"{', '.join(most)} or {last}"


def _loaded(found: Format, name: str) -> Any:
    if found.needs:
        needed(f"reading and writing {found.name}", EXTRA, *found.needs)
    return getattr(import_module(f"nori_dyn.logs.formats.{found.module}"), name)

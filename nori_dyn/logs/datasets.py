"""Data sets of robot learning: their episodes as logs, and copies of them with columns more.

LeRobot's are folders of Parquet (v2.0, v2.1, v3.0); those of robomimic are HDF5 with a group a demonstration, those of
DROID with a file a trajectory.
"""

from __future__ import annotations

import json
import math
import os
import shutil
from collections import defaultdict
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from nori_dyn.errors import FileFormatError
from nori_dyn.io.files import drafted, read_text, write_bytes
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.formats.writer import Field
from nori_dyn.logs.log import whole_table
from nori_dyn.typing import Array, Floats

if TYPE_CHECKING:
    import pyarrow as pa

VERSIONS = ("v2.0", "v2.1", "v3.0")
"""Versions of LeRobot's format."""

INFO = Path("meta") / "info.json"
"""Where LeRobot describes a data set."""

EPISODE = "episode_index"
"""LeRobot's column with the number of the episode."""

NOT_RECORDED = ("action", "next.", "index", EPISODE, "frame_index", "task_index")
"""How the names begin of LeRobot's columns that no sensor tells."""

HDF5 = (".h5", ".hdf5")

LINKED = ("videos", "images")
"""Folders of LeRobot whose files nobody changes in place, so that a copy may share them."""

Labels: TypeAlias = Callable[[str, int], Sequence[tuple[Field, Floats]]]
"""What is added to an episode, by its name and number of samples n: columns, and their numbers (n, k)."""


class LeRobotDataSet:
    """A folder of LeRobot. Columns are called after what info.json calls their numbers: observation.state:elbow.

    Attributes:
        path: the folder.
        files: the files with its episodes.
        dt: time between samples [s], where no column tells it: one does.
    """

    dt: float | None = None

    def __init__(self, path: Path) -> None:
        self.path, self.files = path, sorted(path.glob("data/**/*.parquet"))
        try:
            self._info = json.loads(read_text(path / INFO))
            version = self._info["codebase_version"]
            self._names = {
                f"{feature}[{k}]": f"{feature}:{name}"
                for feature, meta in self._info["features"].items()
                if (names := _names(meta.get("names"))) and len({*names}) == math.prod(meta["shape"])
                for k, name in enumerate(names)
            }
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise FileFormatError(f"{path / INFO}: is not LeRobot's: {error!r}.") from None
        if version not in VERSIONS:
            raise FileFormatError(f"{path}: is in LeRobot's format {version}; {', '.join(VERSIONS)} are read.")
        self._labels: dict[int, Sequence[tuple[Field, Floats]]] = {}

    def episodes(self, file: Path) -> Iterator[tuple[str, Mapping[str, Array]]]:
        """Yield the episodes of a file: their names, and what was recorded, each (n,) or (n, k), by column.

        Raises:
            FileFormatError: the file is damaged.
            MissingExtraError: the library for its format is not installed.
        """
        table = whole_table(file)
        recorded = {self._names.get(name, name): x for name, x in table.items() if not name.startswith(NOT_RECORDED)}
        for k in np.unique(table[EPISODE]):
            yield _numbered(k), {name: x[table[EPISODE] == k] for name, x in recorded.items()}

    def write(self, file: Path, out: Path, labels: Labels, _beside: str) -> None:
        """Write one of the files with labels, whole or not at all."""
        import pyarrow as pa

        episode, columns = whole_table(file)[EPISODE], dict[str, Any]()
        own = {int(k): labels(_numbered(k), int(np.count_nonzero(episode == k))) for k in np.unique(episode)}
        for k, (field, _) in enumerate(next(iter(own.values()))):
            x = np.empty((len(episode), len(field.labels)), dtype=np.float32)
            for number, found in own.items():
                x[episode == number] = found[k][1]
            flat = pa.array(x.ravel())
            one = len(field.labels) == 1
            columns[_feature(field)] = flat if one else pa.FixedSizeListArray.from_arrays(flat, len(field.labels))
        _refuse_twice(file, columns, self._info["features"])
        _copy_with(file, out, pa.table(columns))
        self._labels |= own

    def finish(self, out: Path) -> None:
        """Copy the other files, and write statistics of the labels, and in the end what they are."""
        _copy_rest(self, out)
        fields = [field for field, _ in next(iter(self._labels.values()))]
        if (file := self.path / "meta" / "stats.json").is_file():
            stats = json.loads(read_text(file))
            like: Collection[str] = next(iter(stats.values()), ())
            for k, field in enumerate(fields):
                stats[_feature(field)] = _stats(np.concatenate([own[k][1] for own in self._labels.values()]), like)
            _write_json(out / "meta" / file.name, stats)
        absent = [(field, np.full((1, len(field.labels)), np.nan)) for field in fields]
        self._labels = defaultdict(lambda: absent, self._labels)  # of episodes whose file is not here
        if (file := self.path / "meta" / "episodes_stats.jsonl").is_file():
            lines = [json.loads(line) for line in read_text(file).splitlines()]
            for meta in lines:
                like = next(iter(meta["stats"].values()), ())
                meta["stats"] |= {_feature(f): _stats(x, like) for f, x in self._labels[meta[EPISODE]]}
            write_bytes(out / "meta" / file.name, "".join(f"{json.dumps(meta)}\n" for meta in lines).encode())
        for file in self.path.glob("meta/episodes/**/*.parquet"):
            self._write_statistics(file, out / file.relative_to(self.path))
        meta = {_feature(f): {"dtype": "float32", "shape": [len(f.labels)], "names": [*f.labels]} for f in fields}
        _write_json(out / INFO, self._info | {"features": self._info["features"] | meta})

    def _write_statistics(self, file: Path, out: Path) -> None:
        """Write a file of v3.0 that describes episodes."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        episodes = pq.read_table(file)
        like = [name.rpartition("/")[2] for name in episodes.column_names if name.startswith("stats/timestamp/")]
        found: dict[str, list[Any]] = {}
        for k in episodes[EPISODE].to_pylist():
            for field, values in self._labels[k]:
                for key, value in _stats(values, like).items():
                    found.setdefault(f"stats/{_feature(field)}/{key}", []).append(value)
        _copy_with(file, out, pa.table(found))


class Hdf5DataSet:
    """HDF5 of robomimic, with a group a demonstration; or of DROID and others, with a file an episode.

    Attributes:
        path: the file, or a folder with files.
        files: the files.
        dt: time between samples [s], where the episodes that were read say it beside their columns.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.dt = path, None
        self.files = [path] if path.is_file() else sorted(f for f in path.rglob("*") if f.suffix in HDF5)
        if not self.files or self.files[0].suffix not in HDF5:
            raise FileFormatError(f"{path}: is neither a folder of LeRobot, with {INFO}, nor HDF5, nor has such files.")

    def episodes(self, file: Path) -> Iterator[tuple[str, Mapping[str, Array]]]:
        """Yield the episodes of a file; see `LeRobotDataSet.episodes`."""
        import h5py

        open_log(file).close()  # refuses what is damaged, or refers to other files
        with h5py.File(file) as opened:
            if "env_args" in (data := opened.get("data", opened)).attrs:
                rate = json.loads(data.attrs["env_args"]).get("env_kwargs", {}).get("control_freq")
                self.dt = 1 / rate if rate else None
            for name, episode in self._episodes(file, opened):
                found: dict[str, Any] = {}
                episode.visititems(found.__setitem__)
                yield name, {each: x[()] for each, x in found.items() if _is_read(each, x)}

    def write(self, file: Path, out: Path, labels: Labels, beside: str) -> None:
        """Write one of the files with labels beside an array of each episode, whole or not at all."""
        import h5py

        with drafted(out) as draft:
            shutil.copyfile(file, draft)
            with h5py.File(draft, "r+") as opened:
                for name, episode in self._episodes(file, opened):
                    group = episode[beside].parent
                    for field, values in labels(name, len(episode[beside])):
                        _refuse_twice(file, (field.name,), group)
                        each = group.create_dataset(field.name, data=values.reshape(-1, *field.shape))
                        each.attrs.update({"labels": field.labels, "units": field.units})

    def finish(self, out: Path) -> None:
        """Copy the other files of a folder."""
        _copy_rest(self, out)

    def _episodes(self, file: Path, opened: Any) -> list[tuple[str, Any]]:
        """The groups with an episode each, by name; the file itself where it is one."""
        name = str(file.relative_to(self.path.parent).with_suffix(""))
        demos = [(f"{name}/{k}", each) for k, each in opened.get("data", {}).items() if "num_samples" in each.attrs]
        return demos or [(f"{name}/episode", opened)]


DataSet: TypeAlias = LeRobotDataSet | Hdf5DataSet


def open_data_set(path: Path) -> DataSet:
    """Open a data set.

    Raises:
        FileFormatError: it is of no known format.
    """
    return LeRobotDataSet(path) if (path / INFO).is_file() else Hdf5DataSet(path)


def _copy_rest(data: DataSet, out: Path) -> None:
    """Copy the other files of a folder, all but LeRobot's info.json; videos and images are linked where that works."""
    done = {*data.files, data.path / INFO}
    for file in data.path.rglob("*") if data.path.is_dir() else ():
        new = out / (own := file.relative_to(data.path))
        if file in done or not file.is_file():
            continue
        new.parent.mkdir(parents=True, exist_ok=True)
        with drafted(new) as draft:
            try:
                (os.link if own.parts[0] in LINKED else shutil.copy2)(file.resolve(), draft)
            except OSError:  # on another disk
                shutil.copy2(file, draft)


def _refuse_twice(file: Path, names: Iterable[str], known: Container[str]) -> None:
    if twice := [name for name in names if name in known]:
        raise FileFormatError(f"{file}: has '{twice[0]}' already. Label the data set from which this one was made.")


def _is_read(name: str, x: Any) -> bool:
    return getattr(x, "ndim", 0) in (1, 2) and x.dtype.kind in "biuf" and not name.startswith("next_obs/")


def _numbered(episode: float) -> str:
    return f"episode_{int(episode):06d}"


def _feature(field: Field) -> str:
    return f"observation.{field.name}"


def _names(meta: Any) -> list[str]:
    """Names of the numbers of a feature: a list, or lists by what they are, such as motors."""
    if isinstance(meta, dict):
        return [name for each in meta.values() for name in _names(each)]
    return [*map(str, meta)] if isinstance(meta, list) else []


def _stats(values: Floats, like: Collection[str]) -> dict[str, list[float]]:
    """Statistics of a column, of those kinds that others have; of the samples that have numbers, if any has."""
    whole = values[np.isfinite(values).all(axis=1)]
    known = whole if len(whole) else values
    found = {key: getattr(known, key)(axis=0).tolist() for key in ("min", "max", "mean", "std") if key in like}
    found |= {key: np.quantile(known, int(key[1:]) / 100, axis=0).tolist() for key in like if key[1:].isdecimal()}
    return found | ({"count": [len(whole)]} if "count" in like else {})


def _write_json(path: Path, data: Any) -> None:
    write_bytes(path, json.dumps(data, indent=4, ensure_ascii=False).encode())


def _copy_with(file: Path, out: Path, added: pa.Table) -> None:
    """Copy a Parquet file with columns more, a row group at a time; the others stay as they are."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    with drafted(out) as draft, pq.ParquetFile(file) as source:
        schema = pa.schema([*source.schema_arrow, *added.schema], _described(source.schema_arrow.metadata, added))
        codec = source.metadata.row_group(0).column(0).compression if source.num_row_groups else "SNAPPY"
        start = 0
        with pq.ParquetWriter(draft, schema, compression=codec.replace("UNCOMPRESSED", "NONE")) as writer:
            for k in range(source.num_row_groups):
                group = source.read_row_group(k)
                more = added.slice(start, len(group))
                writer.write_table(pa.Table.from_arrays([*group.columns, *more.columns], schema=schema), len(group))
                start += len(group)


def _described(metadata: Mapping[bytes, bytes] | None, added: pa.Table) -> dict[bytes, bytes]:
    """Metadata of a table with columns more, in which Hugging Face's libraries describe them all."""
    found, key = dict(metadata or {}), b"huggingface"
    if key in found:
        meta = json.loads(found[key])
        features = meta["info"]["features"]
        kind = "List" if any(each.get("_type") == "List" for each in features.values()) else "Sequence"
        for field in added.schema:
            of, size = getattr(field.type, "value_type", field.type), getattr(field.type, "list_size", -1)
            value = {"dtype": str(np.dtype(of.to_pandas_dtype())), "_type": "Value"}
            features[field.name] = value if of == field.type else {"feature": value, "length": size, "_type": kind}
        found[key] = json.dumps(meta).encode()
    return found

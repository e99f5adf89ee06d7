"""Logs: states and readings from CSV or NPZ, and estimates back to the same.

A CSV has one column a number: `q[3]` or `q:joint` (`q:joint[1]` where a joint has several), `qd[3]`, `dq[3]` or
`qd:joint`, and each measurement by its name (`qdd:joint`) or as `y[3]`; other columns are left alone, and an
empty cell is nan. An NPZ has arrays q (N, nq), qd (N, nv), y (N, ny), or one array a measurement; pickled objects are
refused.
"""

from __future__ import annotations

import gzip
import io
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.signal import savgol_filter

from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.io.files import read_bytes, write_bytes
from nori_dyn.measurements.base import VariableReading
from nori_dyn.planning.outputs import resolve_outputs
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.system.builder import System
from nori_dyn.system.variables import component_names
from nori_dyn.typing import Floats, Indices

TIMES = ("t", "time", "timestamp")
"""What a column of times is called, in small letters or capitals."""

SIGMA = "sigma:"
"""How the names of standard deviations begin in a file of estimates."""

SMOOTHING_ORDER = 3
"""Order of the Savitzky-Golay polynomial that differentiates velocities."""


@dataclass(frozen=True, slots=True, eq=False)
class Log:
    """The states and readings of a log.

    Attributes:
        q: configurations (N, nq).
        qd: velocities (N, nv).
        y: readings (N, ny).
        differentiated: names of the readings that were made by differentiating qd.
        t: times (N,), where there is a column of that kind, see `TIMES`.
    """

    q: Floats
    qd: Floats
    y: Floats
    differentiated: tuple[str, ...] = ()
    t: Floats | None = None


@dataclass(frozen=True, slots=True)
class Differentiation:
    """How accelerations that a log lacks are made from its velocities.

    Attributes:
        window: length of the Savitzky-Golay window in samples, odd.
        dt: time between samples [s].
    """

    window: int
    dt: float

    def __post_init__(self) -> None:
        if self.window <= SMOOTHING_ORDER or self.window % 2 == 0:
            raise InputError(f"the window must be odd and at least {SMOOTHING_ORDER + 2} samples, not {self.window}.")
        if not 0 < self.dt < np.inf:
            raise InputError(f"the time between samples must be positive, not {self.dt} s.")

    def apply(self, qd: Floats) -> Floats:
        """Return the derivative of velocities (N, nv).

        Raises:
            InputError: fewer samples than the window.
        """
        if len(qd) < self.window:
            raise InputError(f"the log has {len(qd)} samples, fewer than the window of {self.window}.")
        return np.asarray(savgol_filter(qd, self.window, SMOOTHING_ORDER, deriv=1, delta=self.dt, axis=0))


def read_log(path: str | Path, system: System, differentiation: Differentiation | None = None) -> Log:
    """Return the states and readings in a CSV (`.csv`, `.csv.gz`) or NPZ file.

    Args:
        path: the file.
        system: the system that they are for.
        differentiation: how to make joint accelerations that the log lacks; None refuses a log without them.

    Raises:
        FileFormatError: the file cannot be read, or is neither CSV nor NPZ.
        InputError: columns that the system needs are missing or of another length.
    """
    columns = _columns(path, system)
    tree = system.tree
    q = _gather(path, columns, "q", _joint_labels(system, "q", nq=True), tree.nq)
    qd = _gather(path, columns, "qd", _joint_labels(system, "qd", nq=False), tree.nv)
    if len(q) == 0:
        raise InputError(f"{path}: holds no samples.")
    y = np.empty((len(q), system.ny))
    differentiated: list[str] = []
    missing: dict[int, str] = {}
    accelerations = _acceleration_rows(system)
    derivative: Floats | None = None
    for k, label in enumerate(system.measurement_names):
        column = columns.get(label, columns.get(f"y[{k}]"))
        if column is not None:
            y[:, k] = column
        elif k in accelerations and differentiation is not None:
            derivative = differentiation.apply(qd) if derivative is None else derivative
            freedoms, factors = accelerations[k]
            y[:, k] = derivative[:, freedoms] @ factors
            differentiated.append(label)
        else:
            missing[k] = label
    if missing:
        shown = ", ".join(f"'{label}'" for label in [*missing.values()][:6]) + (", ..." if len(missing) > 6 else "")
        hint = ""
        if missing.keys() & accelerations.keys():
            hint = " Joint accelerations can be made from the velocities: see --differentiate."
        raise InputError(f"{path}: lacks {len(missing)} of {system.ny} measurements: {shown}.{hint}")
    t = next((column for name, column in columns.items() if name.lower() in TIMES), None)
    return Log(q, qd, y, tuple(differentiated), t)


def _acceleration_rows(system: System) -> dict[int, tuple[Indices, Floats]]:
    """Return the freedoms whose accelerations readings are of, and times what, by the place of the reading in y."""
    found: dict[int, tuple[Indices, Floats]] = {}
    for row in system.measurements:
        equation = row.equation
        if isinstance(equation, VariableReading) and equation.key.kind == "qdd":
            first = system.tree.v_slices[equation.key.body].start
            for k, factors in enumerate(equation.matrix, start=row.y.start):
                own = np.flatnonzero(factors)
                found[k] = first + own, factors[own]
    return found


def read_configurations(path: str | Path, system: System) -> Floats:
    """Return the configurations (N, nq) in a CSV (`.csv`, `.csv.gz`) or NPZ file, which may hold more.

    Raises:
        FileFormatError: the file cannot be read, or is neither CSV nor NPZ.
        InputError: columns of q are missing or of another length.
    """
    return _gather(path, _columns(path, system), "q", _joint_labels(system, "q", nq=True), system.tree.nq)


def write_estimate(path: str | Path, estimate: Estimate, system: System, diagnosis: Diagnosis | None = None) -> None:
    """Write the estimates of N states to a CSV (`.csv`, `.csv.gz`) or NPZ file, whole or not at all.

    Args:
        path: the file.
        estimate: the estimates.
        system: the system that they are of.
        diagnosis: what a monitor says of them: then `sigma:` and an output's name stand for its standard deviation, and
            `p_value` for how likely it is that sound sensors fit together as badly.

    Raises:
        FileFormatError: the file cannot be written, or its name has another ending.
    """
    name = str(path)
    buffer = io.BytesIO()
    extra = {"residual": np.asarray(estimate.residual), "fell_back": np.asarray(estimate.fell_back)}
    outputs = [("", key, values) for key, values in estimate.values.items()]
    if diagnosis is not None:
        outputs += [(SIGMA, key, values) for key, values in diagnosis.deviations.items()]
        extra["p_value"] = np.asarray(diagnosis.p_value)
    if name.endswith(".npz"):
        arrays = {f"{sigma}{key}": values for sigma, key, values in outputs}
        np.savez_compressed(buffer, allow_pickle=False, **arrays, **extra)
        write_bytes(path, buffer.getvalue())
        return
    check_log_name(path)
    labels: list[str] = []
    parts: list[Floats] = []
    for sigma, key, values in outputs:
        labels.extend(sigma + label for label in _output_labels(system, key))
        parts.append(values.reshape(len(values), -1))
    table = np.column_stack([*parts, *extra.values()])
    header = ",".join([*(_quote(label) for label in labels), *extra])
    np.savetxt(buffer, table, fmt="%.17g", delimiter=",", header=header, comments="", encoding="utf-8")
    content = buffer.getvalue()
    write_bytes(path, gzip.compress(content, mtime=0) if name.endswith(".gz") else content)


def check_log_name(path: str | Path) -> None:
    """Check that a file's name says what it is.

    Raises:
        FileFormatError: it ends neither in .csv, .csv.gz nor .npz.
    """
    if not str(path).endswith((".csv", ".csv.gz", ".npz")):
        raise FileFormatError(f"{path}: must end in .csv, .csv.gz or .npz.")


def _quote(label: str) -> str:
    return '"' + label.replace('"', '""') + '"' if any(c in label for c in ',"\n') else label


def _output_labels(system: System, name: str) -> list[str]:
    (output,) = resolve_outputs(system, [name])
    own = [v for v in system.variables if v.kind == output.kind and output.body in (None, v.body)]
    if output.body is None:
        return [label for v in own for label in v.component_names]
    return list(component_names(name, own[0].components))


def _joint_labels(system: System, kind: str, nq: bool) -> list[str]:
    labels: list[str] = []
    for joint, name in zip(system.tree.joints, system.tree.joint_names, strict=True):
        size = joint.nq if nq else joint.nv
        labels.extend([f"{kind}:{name}"] if size == 1 else [f"{kind}:{name}[{k}]" for k in range(size)])
    return labels


def _gather(path: str | Path, columns: Mapping[str, Floats], kind: str, labels: list[str], size: int) -> Floats:
    found: list[Floats] = []
    for k, label in enumerate(labels):
        aliases = [label, f"{kind}[{k}]"] + ([f"dq[{k}]"] if kind == "qd" else [])
        column = next((columns[alias] for alias in aliases if alias in columns), None)
        if column is None:
            raise InputError(f"{path}: has no column '{label}' or '{kind}[{k}]' ({size} numbers of {kind} are needed).")
        found.append(column)
    return np.column_stack(found)


def _columns(path: str | Path, system: System) -> dict[str, Floats]:
    name = str(path)
    if name.endswith(".npz"):
        return _npz_columns(path, system)
    if name.endswith((".csv", ".csv.gz")):
        return _csv_columns(path)
    raise FileFormatError(f"{path}: is neither .csv, .csv.gz nor .npz.")


def _csv_columns(path: str | Path) -> dict[str, Floats]:
    content = read_bytes(path)
    try:
        if str(path).endswith(".gz"):
            content = gzip.decompress(content)
        text = content.decode("utf-8")
    except (OSError, EOFError, zlib.error, UnicodeDecodeError, MemoryError) as error:
        raise FileFormatError(f"{path}: is damaged or not text: {error}.") from None
    header, _, body = text.partition("\n")
    names = [name.strip().strip('"') for name in header.split(",")]
    twice = next((name for name in names if name and names.count(name) > 1), None)
    if twice is not None:
        raise FileFormatError(f"{path}: has two columns '{twice}'. Rename or remove one of the two.")
    if not body.strip():
        raise InputError(f"{path}: holds no samples.")
    try:
        table = _table(body)
    except ValueError as error:
        raise FileFormatError(f"{path}: is not a table of numbers below one line of names: {error}.") from None
    if table.shape[1] != len(names):
        raise FileFormatError(f"{path}: has {len(names)} names for {table.shape[1]} columns.")
    return dict(zip(names, table.T, strict=True))


def _table(body: str) -> Floats:
    """Return the numbers of a CSV's rows (N, columns), nan where a cell is empty.

    Raises:
        ValueError: it is no table of numbers.
    """
    try:
        return np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2)
    except ValueError:  # the slower way, for empty cells
        return np.loadtxt(io.StringIO(body), delimiter=",", ndmin=2, converters=_number, encoding="utf-8")


def _number(cell: str) -> float:
    return float(cell) if cell.strip() else np.nan


def _npz_columns(path: str | Path, system: System) -> dict[str, Floats]:
    arrays = _npz_arrays(path)
    sizes = {len(array) for array in arrays.values() if array.ndim}
    columns: dict[str, Floats] = {}
    blocks = {row.name: row.equation.components for row in system.measurements}
    for key, array in arrays.items():
        if key in ("q", "qd", "y") and array.ndim == 2:
            columns.update({f"{key}[{k}]": column for k, column in enumerate(array.T)})
        elif key in blocks and array.ndim == 2 and array.shape[1] == len(blocks[key]):
            columns.update(zip(component_names(key, blocks[key]), array.T, strict=True))
        elif array.ndim == 1:
            columns[key] = array
    if len(sizes) > 1 and len({len(column) for column in columns.values()}) > 1:
        raise InputError(f"{path}: its arrays have different numbers of samples: {sorted(sizes)}.")
    return columns


def _npz_arrays(path: str | Path) -> dict[str, Floats]:
    """Return the arrays of numbers in an NPZ file; text is left out.

    Raises:
        FileFormatError: it is damaged, or holds objects, complex numbers or times.
    """
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

"""Estimates as files: CSV with a column a number, or NPZ with an array an output."""

from __future__ import annotations

import gzip
import io
from pathlib import Path

import numpy as np

from nori_dyn.io.columns import check_table_name
from nori_dyn.io.files import write_bytes
from nori_dyn.planning.outputs import resolve_outputs
from nori_dyn.solve.diagnosis import Diagnosis
from nori_dyn.solve.estimate import Estimate
from nori_dyn.system.builder import System
from nori_dyn.system.variables import component_names
from nori_dyn.typing import Floats

SIGMA = "sigma:"
"""How the names of standard deviations begin."""

TIME = "t"
EXTRAS = ("residual", "fell_back", "p_value")
"""Columns of a file of estimates that are no estimates."""


def write_estimate(
    path: str | Path,
    estimate: Estimate,
    system: System,
    diagnosis: Diagnosis | None = None,
    t: Floats | None = None,
) -> None:
    """Write the estimates of N states to a CSV (`.csv`, `.csv.gz`) or NPZ file, whole or not at all.

    Args:
        path: the file.
        estimate: the estimates. Their residual is written where it was computed.
        system: the system that they are of.
        diagnosis: what a monitor says of them: then `sigma:` and an output's name stand for its standard deviation, and
            `p_value` for how likely it is that sound sensors fit together as badly.
        t: times (N,) [s], where they are known: column `t`.

    Raises:
        FileFormatError: the file cannot be written, or its name has another ending.
    """
    check_table_name(path)
    before = {} if t is None else {TIME: t}
    residual = np.asarray(estimate.residual)
    after = {} if np.isnan(residual).all() else {"residual": residual}
    after["fell_back"] = np.asarray(estimate.fell_back)
    outputs = [("", key, values) for key, values in estimate.values.items()]
    if diagnosis is not None:
        outputs += [(SIGMA, key, values) for key, values in diagnosis.deviations.items()]
        after["p_value"] = np.asarray(diagnosis.p_value)
    buffer = io.BytesIO()
    if str(path).endswith(".npz"):
        arrays = {f"{sigma}{key}": values for sigma, key, values in outputs}
        np.savez_compressed(buffer, allow_pickle=False, **before, **arrays, **after)
        write_bytes(path, buffer.getvalue())
        return
    labels: list[str] = []
    parts: list[Floats] = []
    for sigma, key, values in outputs:
        labels.extend(sigma + label for label in _output_labels(system, key))
        parts.append(values.reshape(len(values), -1))
    table = np.column_stack([*before.values(), *parts, *after.values()])
    header = ",".join([*before, *(_quote(label) for label in labels), *after])
    np.savetxt(buffer, table, fmt="%.17g", delimiter=",", header=header, comments="", encoding="utf-8")
    content = buffer.getvalue()
    write_bytes(path, gzip.compress(content, mtime=0) if str(path).endswith(".gz") else content)


def _quote(label: str) -> str:
    return '"' + label.replace('"', '""') + '"' if any(c in label for c in ',"\n') else label


def _output_labels(system: System, name: str) -> list[str]:
    (output,) = resolve_outputs(system, [name])
    own = [v for v in system.variables if output.covers(v)]
    if output.body is None:
        return [label for v in own for label in v.component_names]
    return list(component_names(name, own[0].components))

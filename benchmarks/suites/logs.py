"""Long logs: how fast a humanoid's minutes at 1 kHz go through a plan, from file to file, and in how much memory.

MuJoCo simulates `humanoid.xml`, held by a spring and moved by its motors; its own q, qd and qdd are the log, and the
torques that it applied are what inverse dynamics must find again. Every run is a process of its own; those of all
files take turns, so that what else the machine does is shared by all.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.harness import Result, figure_tables, in_process, peak_megabytes
from benchmarks.suites.base import Options, Suite
from nori_dyn.bench import quartiles
from nori_dyn.estimation.log_file import estimate_to_file
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.logs.log import whole_table
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

ROBOT = Path(__file__).parents[1] / "models" / "humanoid.xml"
SAMPLES, QUICK = 600_000, 20_000
RATE = 1000
CHUNK = 20_000
"""Samples that are simulated, and written, at once."""

GROUP = 1 << 20
"""Samples of a row group: pyarrow's own choice where a table is written at once."""

STATE, KIND = "/state", "std_msgs/msg/Float64MultiArray"
"""The topic of the messages of MCAP, and their kind: a message a sample, with all its numbers."""

NEEDS = ("mujoco", "pyarrow", "mcap", "rosbags")


class McapTable:
    """An MCAP file that is written as tables are: compressed by Zstandard, as its library does by default."""

    def __init__(self, path: Path, schema: Any) -> None:
        typesys, writer = import_module("rosbags.typesys"), import_module("mcap.writer")
        store = typesys.get_typestore(typesys.Stores.ROS2_JAZZY)
        empty = store.types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
        numbers = np.zeros(len(schema) - 1)
        self._head = bytes(store.serialize_cdr(store.types[KIND](layout=empty, data=numbers), KIND))[: -numbers.nbytes]
        self._raw = path.open("wb")
        self._file = writer.Writer(self._raw)
        self._file.start(profile="ros2", library="benchmark")
        text = store.generate_msgdef(KIND, ros_version=2)[0].encode()
        self._channel = self._file.register_channel(STATE, "cdr", self._file.register_schema(KIND, "ros2msg", text))

    def write_table(self, table: Any) -> None:
        """Write samples, the first column of which are their times."""
        numbers = np.column_stack([column.to_numpy() for column in table.columns])
        for t, row in zip(numbers[:, 0], numbers[:, 1:], strict=True):
            at = round(float(t) * 1e9)
            self._file.add_message(self._channel, at, self._head + row.tobytes(), at)

    def close(self) -> None:
        self._file.finish()
        self._raw.close()


def formats() -> dict[str, Callable[[Path, Any], Any]]:
    """What opens a table to be written, by the name of its file: Parquet as pyarrow writes it by default, and plain."""
    pa, pq = import_module("pyarrow"), import_module("pyarrow.parquet")
    plain = {"compression": "none", "use_dictionary": False}
    return {
        "default.parquet": pq.ParquetWriter,
        "plain.parquet": lambda path, schema: pq.ParquetWriter(path, schema, **plain),
        "run.arrow": pa.ipc.new_file,
        "run.mcap": McapTable,
    }


def simulated(tree: nd.KinematicTree, samples: int, seed: int) -> Iterator[tuple[Floats, ...]]:
    """Times, q, qd, qdd and tau of a run of a humanoid, chunk by chunk."""
    mujoco = import_module("mujoco")
    model = mujoco.MjModel.from_xml_path(str(ROBOT))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data, rng, n = mujoco.MjData(model), np.random.default_rng(seed), model.nv - 6
    swing, speed, phase = rng.uniform(0.1, 0.6, n), rng.uniform(0.5, 7.0, n), rng.uniform(0.0, 2 * np.pi, n)
    weight = np.array([0, 0, 9.81 * model.body_subtreemass[1]])
    data.qpos[7:] = swing * np.sin(phase)
    turn = np.zeros(3)
    for first in range(0, samples, CHUNK):
        size = min(CHUNK, samples - first)
        q, qd, qdd, tau = (np.empty((size, k)) for k in (model.nq, model.nv, model.nv, model.nv))
        for k in range(size):
            t, force = data.time, data.qfrc_applied
            force[6:] = 200 * (swing * np.sin(speed * t + phase) - data.qpos[7:]) - 10 * data.qvel[6:]
            place = np.array([0.3 * np.sin(0.2 * t), 0.3 * np.sin(0.13 * t), 1 + 0.1 * np.sin(0.31 * t)])
            force[:3] = 4000 * (place - data.qpos[:3]) - 400 * data.qvel[:3] + weight
            mujoco.mju_quat2Vel(turn, data.qpos[3:7], 1.0)
            force[3:6] = -400 * turn - 60 * data.qvel[3:6]
            q[k], qd[k], tau[k] = data.qpos, data.qvel, force
            mujoco.mj_step(model, data)
            qdd[k] = data.qacc
        state = nd.interop.from_convention(tree, "mujoco", q, qd, qdd, tau)
        yield (first + np.arange(size)) / RATE, *(values for values in state[:4] if values is not None)


def write_logs(folder: Path, tree: nd.KinematicTree, samples: int, seed: int) -> tuple[list[Path], Floats]:
    """Write a run as tables of all formats; the logs, and the torques that MuJoCo applied."""
    pa = import_module("pyarrow")
    counts = {"q": tree.nq, "qd": tree.nv, "qdd": tree.nv}
    names = ["t", *(f"{kind}[{k}]" for kind, n in counts.items() for k in range(n))]
    schema = pa.schema([pa.field(name, pa.float64()) for name in names])
    files = {folder / name: opened(folder / name, schema) for name, opened in formats().items()}
    torques, waiting = [], []
    for k, (*columns, tau) in enumerate(simulated(tree, samples, seed), 1):
        arrays = [pa.array(np.ascontiguousarray(column)) for column in np.column_stack(columns).T]
        waiting.append(pa.record_batch(arrays, schema=schema))
        torques.append(tau)
        if len(waiting) * CHUNK >= GROUP or k * CHUNK >= samples:
            table, waiting = pa.Table.from_batches(waiting), []
            for file in files.values():
                file.write_table(table)
    for file in files.values():
        file.close()
    return list(files), np.concatenate(torques)


def run_once(plan: Path, log: Path, out: Path) -> dict[str, float]:
    """Run a log through a plan in this process; what it took."""
    begun, cpu = time.perf_counter(), time.process_time()
    runner = LogRunner(nd.Plan.load(plan))
    names = SampleRecord.of(runner.systems).names
    of_messages = {"columns": [{"of": name, "from": f"{STATE}.data[{k}]"} for k, name in enumerate(names)]}
    report = estimate_to_file(runner, nd.read_log(log, of_messages if log.suffix == ".mcap" else None), out)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    return {"samples": report.samples, "seconds": seconds, "cpu": cpu, "MB": peak_megabytes()}


def measure(options: Options, progress: Progress) -> list[Result]:
    for name in NEEDS:
        try:
            import_module(name)
        except ImportError:
            return [Result({}, skipped={"long logs": f"{name} is not installed"})]
    samples, rounds = (QUICK, 2) if options.quick else (SAMPLES, 5)
    with tempfile.TemporaryDirectory() as name:
        folder, tree = Path(name), nd.load_robot(ROBOT)
        plan = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=["tau"])
        plan.save(folder / "humanoid.plan")
        LogRunner(plan).compile()
        progress("logs, simulated", 0.0)
        logs, torques = write_logs(folder, tree, samples, options.seed)
        found: dict[Path, list[dict[str, float]]] = {log: [] for log in logs}
        errors = {}
        for k in range(options.rounds or rounds):
            for log in logs:
                progress(f"logs, {log.name}, round {k + 1}", 0.5)
                out = folder / ("out.arrow" if log.suffix == ".arrow" else "out.parquet")
                found[log].append(in_process(run_once, folder / "humanoid.plan", log, out))
                table = whole_table(out)
                columns = np.column_stack([table[name] for name in table if name.startswith("tau:")])
                errors[log] = float(np.abs(columns - torques).max())
    return [_result(log, found[log], errors[log]) for log in logs]


def _result(log: Path, found: list[dict[str, float]], error: float) -> Result:
    low, middle, high = quartiles([each["samples"] / each["seconds"] / 1e3 for each in found])
    figures = {
        "thousand samples a second": middle,
        "from": low,
        "to": high,
        "us of CPU a sample": quartiles([1e6 * each["cpu"] / each["samples"] for each in found])[1],
        "peak MB": max(each["MB"] for each in found),
        "largest error [N m]": error,
        "cores": os.cpu_count() or 0,
    }
    return Result({"log": log.name, "samples": int(found[0]["samples"])}, figures=figures)


SUITE = Suite(
    "logs",
    "A long log of a humanoid, from file to file",
    measure,
    tables=figure_tables,
    notes=("The start of the process is left out; from and to are quartiles over the rounds.",),
)

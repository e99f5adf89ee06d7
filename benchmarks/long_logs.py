"""Long logs: how fast a humanoid's minutes at 1 kHz go through a plan, from file to file, and in how much memory.

python -m benchmarks.long_logs [--samples 600000 2400000] [--rounds 5] [--folder DIR] [--json FILE]

MuJoCo simulates `humanoid.xml`, held by a spring and moved by its motors; its own q, qd and qdd are the log, and the
torques that it applied are what inverse dynamics must find again. Every run is a process of its own; those of all
files take turns, so that what else the machine does is shared by all.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from mcap.writer import Writer
from rosbags.typesys import Stores, get_typestore

import nori_dyn as nd
from nori_dyn.bench import quartiles
from nori_dyn.estimation.log_file import estimate_to_file
from nori_dyn.estimation.log_run import LogRunner
from nori_dyn.estimation.plan import Plan
from nori_dyn.logs.log import whole_table
from nori_dyn.logs.mapping.record import SampleRecord
from nori_dyn.typing import Floats

ROBOT = Path(__file__).with_name("humanoid.xml")
RATE = 1000
CHUNK = 20_000
"""Samples that are simulated, and written, at once."""

GROUP = 1 << 20
"""Samples of a row group: pyarrow's own choice where a table is written at once."""

Chunk = tuple[Floats, Floats, Floats, Floats, Floats]
"""Times, q, qd, qdd and tau of samples (n, ...), as nori_dyn has them."""

STATE, KIND = "/state", "std_msgs/msg/Float64MultiArray"
"""The topic of the messages of MCAP, and their kind: a message a sample, with all its numbers."""


class McapLog:
    """An MCAP file that is written as tables are: compressed by Zstandard, as its library does by default."""

    def __init__(self, path: Path, schema: pa.Schema) -> None:
        store = get_typestore(Stores.ROS2_JAZZY)
        empty = store.types["std_msgs/msg/MultiArrayLayout"](dim=[], data_offset=0)
        numbers = np.zeros(len(schema) - 1)
        self._head = bytes(store.serialize_cdr(store.types[KIND](layout=empty, data=numbers), KIND))[: -numbers.nbytes]
        self._raw = path.open("wb")
        self._file = Writer(self._raw)
        self._file.start(profile="ros2", library="benchmark")
        text = store.generate_msgdef(KIND, ros_version=2)[0].encode()
        self._channel = self._file.register_channel(STATE, "cdr", self._file.register_schema(KIND, "ros2msg", text))

    def write_table(self, table: pa.Table) -> None:
        """Write samples, the first column of which are their times."""
        numbers = np.column_stack([column.to_numpy() for column in table.columns])
        for t, row in zip(numbers[:, 0], numbers[:, 1:], strict=True):
            time = round(float(t) * 1e9)
            self._file.add_message(self._channel, time, self._head + row.tobytes(), time)

    def close(self) -> None:
        """Write the index."""
        self._file.finish()  # type: ignore[no-untyped-call]
        self._raw.close()


FORMATS: dict[str, Callable[[Path, pa.Schema], Any]] = {
    "default.parquet": pq.ParquetWriter,
    "plain.parquet": lambda path, schema: pq.ParquetWriter(path, schema, compression="none", use_dictionary=False),
    "zstd.parquet": lambda path, schema: pq.ParquetWriter(path, schema, compression="zstd"),
    "run.arrow": pa.ipc.new_file,
    "run.mcap": McapLog,
}
"""What opens a table to be written, by the name of its file: Parquet as pyarrow writes it by default, and otherwise."""


def simulated(tree: nd.KinematicTree, samples: int, seed: int = 0) -> Iterator[Chunk]:
    """Yield a run of a humanoid, chunk by chunk.

    Args:
        tree: the robot.
        samples: how many there are to be.
        seed: of the motion.
    """
    model = mujoco.MjModel.from_xml_path(str(ROBOT))
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data = mujoco.MjData(model)
    rng = np.random.default_rng(seed)
    n = model.nv - 6
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
        yield (first + np.arange(size)) / RATE, state.q, state.qd, state.qdd, state.tau


def write_logs(folder: Path, tree: nd.KinematicTree, samples: int) -> list[Path]:
    """Write a run as tables of all `FORMATS`, and the torques that MuJoCo applied, and return the logs."""
    counts = {"q": tree.nq, "qd": tree.nv, "qdd": tree.nv}
    names = ["t", *(f"{kind}[{k}]" for kind, n in counts.items() for k in range(n))]
    schema = pa.schema([pa.field(name, pa.float64()) for name in names])
    paths = [folder / f"{samples}-{name}" for name in FORMATS]
    files = [opened(path, schema) for path, opened in zip(paths, FORMATS.values(), strict=True)]
    torques = []
    waiting: list[Any] = []
    for k, (t, q, qd, qdd, tau) in enumerate(simulated(tree, samples), 1):
        columns = [np.ascontiguousarray(column) for column in np.column_stack([t, q, qd, qdd]).T]
        waiting.append(pa.record_batch([pa.array(column) for column in columns], schema=schema))
        torques.append(tau)
        if len(waiting) * CHUNK >= GROUP or k * CHUNK >= samples:
            table = pa.Table.from_batches(waiting)
            waiting = []
            for file in files:
                file.write_table(table)
    for file in files:
        file.close()
    np.save(folder / f"{samples}-tau.npy", np.concatenate(torques))
    return paths


def run_once(plan: Path, log: Path, out: Path) -> dict[str, float]:
    """Run a log through a plan in this process, and return what it took."""
    begun, cpu = time.perf_counter(), time.process_time()
    runner = LogRunner(Plan.load(plan))
    names = SampleRecord.of(runner.systems).names
    of_messages = {"columns": [{"of": name, "from": f"{STATE}.data[{k}]"} for k, name in enumerate(names)]}
    opened = nd.read_log(log, of_messages if log.suffix == ".mcap" else None)
    report = estimate_to_file(runner, opened, out)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()  # what getrusage tells begins with the memory of the parent
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    return {
        "samples": report.samples,
        "seconds": seconds,
        "seconds_to_load": report.preparing,
        "seconds_to_solve": report.seconds,
        "cpu_seconds": cpu,
        "megabytes": peak * 1024 / 1e6,
    }


def measured(plan: Path, log: Path, out: Path) -> dict[str, float]:
    """Run a log through a plan in a process of its own, and return what it took, its start included as well."""
    begun = time.perf_counter()
    command = [sys.executable, "-m", "benchmarks.long_logs", "--once", plan, log, out]
    done = subprocess.run(list(map(str, command)), capture_output=True, text=True, check=True)
    return {**json.loads(done.stdout), "seconds_with_start": time.perf_counter() - begun}


def largest_error(out: Path, tau: Path) -> float:
    """Return how far estimated torques are from those that MuJoCo applied, at most [N m]."""
    found = whole_table(out)
    columns = np.column_stack([found[name] for name in found if name.startswith("tau:")])
    return float(np.abs(columns - np.load(tau)).max())


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, nargs="+", default=[600_000, 2_400_000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", type=Path, help="where logs and estimates go; a folder that is removed by default")
    parser.add_argument("--json", type=Path, help="write the figures of all rounds")
    parser.add_argument("--once", nargs=3, metavar=("PLAN", "LOG", "OUT"), help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.once:
        print(json.dumps(run_once(*map(Path, given.once))))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = given.folder or Path(temporary)
        folder.mkdir(exist_ok=True)
        tree = nd.load_robot(ROBOT)
        plan = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=["tau"])
        plan.save(folder / "humanoid.plan")
        LogRunner(plan).compile()
        logs = [(samples, log) for samples in given.samples for log in write_logs(folder, tree, samples)]
        rounds: dict[str, list[dict[str, float]]] = {log.name: [] for _, log in logs}
        errors = {}
        for _ in range(given.rounds):
            for samples, log in logs:
                out = folder / ("out.arrow" if log.suffix == ".arrow" else "out.parquet")
                rounds[log.name].append(measured(folder / "humanoid.plan", log, out))
                errors[log.name] = largest_error(out, folder / f"{samples}-tau.npy")
        show(rounds, errors)
        if given.json:
            told = {"cores": os.cpu_count(), "robot": tree.name, "freedoms": tree.nv, "largest_errors": errors}
            given.json.write_text(json.dumps(told | {"rounds": rounds}, indent=2) + "\n")


def show(rounds: dict[str, list[dict[str, float]]], errors: dict[str, float]) -> None:
    """Print a line a log: medians and quartiles over the rounds."""
    print(f"{'log':28} {'thousand samples a second':>26} {'with start':>11} {'us of CPU':>10} {'peak MB':>8} error N m")
    for name, told in rounds.items():
        low, middle, high = quartiles([each["samples"] / each["seconds"] / 1e3 for each in told])
        start = quartiles([each["samples"] / each["seconds_with_start"] / 1e3 for each in told])[1]
        cpu = quartiles([1e6 * each["cpu_seconds"] / each["samples"] for each in told])[1]
        peak = max(each["megabytes"] for each in told)
        rate = f"{middle:,.0f} ({low:,.0f} to {high:,.0f})"
        print(f"{name:28} {rate:>26} {start:>11,.0f} {cpu:>10.2f} {peak:>8,.0f} {errors[name]:.1e}")


if __name__ == "__main__":
    main()

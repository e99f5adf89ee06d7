"""Identification of parameters: how fast samples are gathered, beside a loop over Pinocchio, and in how much memory.

python -m benchmarks.identification [--samples 20000] [--rounds 11] [--long 1000000 10000000] [--folder DIR]

A Panda of seven links moves as a sum of sines, and the torques are those of Pinocchio: 140,000 rows of 70 parameters.
Ours is the compiled regressor of the base parameters and the QR decomposition of its rows; that of others is
`computeJointTorqueRegressor`, sample by sample, and NumPy's least squares on all rows. Both run in one thread, in
turns, and times are of the processor. Long logs are simulated into a file and identified from it, each in a process of
its own.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pinocchio as pin
import pyarrow as pa
import pyarrow.parquet as pq
from threadpoolctl import threadpool_limits

import nori_dyn as nd
from benchmarks.robots import robot_file
from nori_dyn.bench import quartiles
from nori_dyn.identification.base_parameters import base_parameters
from nori_dyn.identification.estimation import solved
from nori_dyn.identification.evidence import Evidence
from nori_dyn.identification.moment_accumulator import MomentAccumulator
from nori_dyn.identification.prior import ParameterPrior
from nori_dyn.identification.regression import Regression
from nori_dyn.typing import Floats

FINGERS = "panda_finger_joint1", "panda_finger_joint2"
RATE = 1000
CHUNK = 100_000
"""Samples that are simulated, and written, at once."""


def motion(nv: int, first: int, samples: int, seed: int = 0) -> tuple[Floats, Floats, Floats]:
    """Return positions, velocities and accelerations (samples, nv) of joints that move as sums of three sines."""
    rng = np.random.default_rng(seed)
    t = (first + np.arange(samples)) / RATE
    size, w, phase = rng.uniform(0.2, 0.5, (3, nv, 1)), rng.uniform(0.5, 4.0, (3, nv, 1)), rng.uniform(0, 6, (3, nv, 1))
    angle = w * t + phase
    waves = size * np.sin(angle), size * w * np.cos(angle), -size * w**2 * np.sin(angle)
    q, qd, qdd = (np.ascontiguousarray(wave.sum(axis=0).T) for wave in waves)
    return q, qd, qdd


class Ours:
    """Gathers samples and solves for the base parameters.

    Args:
        tree: the robot.
    """

    def __init__(self, tree: nd.KinematicTree) -> None:
        found = Regression.of(nd.System(tree, "identification"), ["inertias"])
        base = base_parameters(found)
        self._found, self.columns = found, base.independent
        self._program = found.program(self.columns)
        self._n = found.n_rows

    def estimate(self, q: Floats, qd: Floats, qdd: Floats, tau: Floats) -> Floats:
        """Return the base parameters (n,) that explain torques (samples, nv)."""
        accumulator = MomentAccumulator(self._found, self._program, np.ones(self._n))
        accumulator.add(q, qd, qdd, np.concatenate([qdd, tau], axis=1), 1 / RATE)
        k = len(self.columns)
        log = Evidence(accumulator.segments.each(), np.eye(k), np.zeros(k))
        return solved([log], ParameterPrior(np.zeros(k), 1e-9 * np.eye(k)), np.ones(self._n), is_known=True).values


class Loop:
    """Stacks Pinocchio's regressors, and solves for all parameters of least norm."""

    def __init__(self) -> None:
        whole = pin.buildModelFromUrdf(str(robot_file("panda")))
        self.model = pin.buildReducedModel(whole, [whole.getJointId(name) for name in FINGERS], pin.neutral(whole))
        self.data = self.model.createData()

    def torques(self, q: Floats, qd: Floats, qdd: Floats) -> Floats:
        """Return the torques (samples, nv) of a motion."""
        return np.array([pin.rnea(self.model, self.data, *each) for each in zip(q, qd, qdd, strict=True)])

    def estimate(self, q: Floats, qd: Floats, qdd: Floats, tau: Floats) -> Floats:
        """Return the parameters (70,) that explain torques (samples, nv)."""
        n = self.model.nv
        W = np.empty((len(q) * n, 10 * n))
        for k in range(len(q)):
            W[k * n : (k + 1) * n] = pin.computeJointTorqueRegressor(self.model, self.data, q[k], qd[k], qdd[k])
        return np.asarray(np.linalg.lstsq(W, tau.ravel(), rcond=None)[0])


def compare(samples: int, rounds: int) -> None:
    """Print what both take, in turns."""
    loop, ours = Loop(), Ours(nd.load_robot("panda", locked=FINGERS))
    q, qd, qdd = motion(loop.model.nv, 0, samples)
    tau = loop.torques(q, qd, qdd)
    times: dict[str, list[float]] = {"ours": [], "Pinocchio and NumPy": []}
    with threadpool_limits(1):
        ours.estimate(q, qd, qdd, tau)
        for _ in range(rounds):
            for name, run in zip(times, (ours.estimate, loop.estimate), strict=True):
                begun = time.process_time()
                run(q, qd, qdd, tau)
                times[name].append(1e3 * (time.process_time() - begun))
    print(f"{samples:,} samples of the Panda, {samples * loop.model.nv:,} rows of 70 parameters")
    for name, told in times.items():
        low, middle, high = quartiles(told)
        print(f"  {name:20} {middle:8.1f} ms ({low:.1f} to {high:.1f})")


def write_log(path: Path, samples: int) -> None:
    """Write a simulated log of the Panda, with noise of 0.1 N m on torques."""
    tree = nd.load_robot("panda", locked=FINGERS)
    torques, rng = nd.compile(nd.rnea, tree), np.random.default_rng(1)
    names = ["t", *(f"{of}[{k}]" for of in ("q", "qd", "qdd", "tau") for k in range(tree.nv))]
    schema = pa.schema([pa.field(name, pa.float64()) for name in names])
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as file:
        for first in range(0, samples, CHUNK):
            q, qd, qdd = motion(tree.nv, first, min(CHUNK, samples - first))
            tau = torques.batch(q, qd, qdd) + 0.1 * rng.normal(size=q.shape)
            t = (first + np.arange(len(q))) / RATE
            columns = [np.ascontiguousarray(column) for column in np.column_stack([t, q, qd, qdd, tau]).T]
            file.write_table(pa.table([pa.array(column) for column in columns], schema=schema))


def run_once(log: Path) -> dict[str, float]:
    """Identify from a log in this process, and return what it took."""
    tree = nd.load_robot("panda", locked=FINGERS)
    begun, cpu = time.perf_counter(), time.process_time()
    found = nd.identify(log, tree, ["inertias", "friction", "rotors", "offsets"], physical=False, progress=False)
    seconds, cpu = time.perf_counter() - begun, time.process_time() - cpu
    status = Path("/proc/self/status").read_text()
    peak = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM"))
    left = max(fit.after for fit in found.fits)
    return {"samples": found.n_samples, "seconds": seconds, "cpu": cpu, "megabytes": peak * 1024 / 1e6, "left": left}


def long_logs(counts: Sequence[int], folder: Path) -> None:
    """Print what logs take that are simulated into a file, one after the other."""
    for samples in counts:
        log = folder / "log.parquet"
        write_log(log, samples)
        command = [sys.executable, "-m", "benchmarks.identification", "--once", str(log)]
        told = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
        took = f"{told['seconds']:.1f} s, {told['cpu']:.1f} s of the processor"
        print(
            f"{samples:>12,} samples, {log.stat().st_size / 1e6:,.0f} MB: {took}, at most "
            f"{told['megabytes']:,.0f} MB of memory, residual {told['left']:.4f} N m"
        )
        log.unlink()


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and print what came of it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=11)
    parser.add_argument("--long", type=int, nargs="*", default=[1_000_000, 10_000_000], help="samples of long logs")
    parser.add_argument("--folder", type=Path, help="where long logs go; a folder that is removed by default")
    parser.add_argument("--once", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args(arguments)
    if given.once:
        print(json.dumps(run_once(given.once)))
        return
    compare(given.samples, given.rounds)
    with tempfile.TemporaryDirectory() as temporary:
        long_logs(given.long, given.folder or Path(temporary))


if __name__ == "__main__":
    main()

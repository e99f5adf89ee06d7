"""The Panda's torques from outside, as the peers of a filter estimate them, beside what Franka's own observer says.

python -m benchmarks.real.panda_observers --data ../shared/data

What the log calls tau_ext_hat has the sign of a torque that the arm exerts, so that it is turned. It is low-passed at
about 25 1/s, and knows the arm without its hand, as offsets and correlations tell.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.arm_filter import FilterNoise, by_filter
from benchmarks.real.panda_arm import bare_arm
from benchmarks.real.panda_log import BANDWIDTH, RATE, STARTED, WINDOW
from benchmarks.real.peers import backward_difference, correlations, momentum_observer, outside
from benchmarks.real.pushed_panda import LOCKED
from benchmarks.real.signals import derivative, lagging
from nori_dyn.logs.log import whole_table
from nori_dyn.tables import Document, Table
from nori_dyn.typing import Floats

FILTER_NOISE = FilterNoise(noise=0.002, sigma=1.0, walk=0.8)
"""What the filter is told, as by the shipped set `momentum_observer`: about the bandwidth of Franka's observer."""

LOG = Path("panda_log") / "beam_z_15cm_1khz.csv.gz"


@dataclass(frozen=True, slots=True, eq=False)
class PandaLog:
    """The samples of the log.

    Attributes:
        t: times (n,) [s]; some ticks are missing, which the peers do not see.
        q: positions (n, 7) [rad].
        qd: velocities [rad/s].
        tau: what the torque sensors read [N m].
        outside: torques from outside by Franka's own observer, with the sign of what acts on the arm [N m].
    """

    t: Floats
    q: Floats
    qd: Floats
    tau: Floats
    outside: Floats


def panda_log(data: Path) -> PandaLog:
    """The samples of the log.

    Raises:
        FileFormatError: it is not there.
    """
    table = {name.strip(): column for name, column in whole_table(data / LOG).items()}

    def of(name: str) -> Floats:
        return np.stack([table[f"{name}[{k}]"] for k in range(7)], axis=1)

    t = 1e-3 * (table["duration"] - table["duration"][0])
    return PandaLog(t, of("q"), of("dq"), of("tau_J"), -of("tau_ext_hat_filtered"))


def estimates(tree: nd.KinematicTree, log: PandaLog) -> Iterator[tuple[str, Floats]]:
    """Yield the torques from outside (n, 7) as each of the peers estimates them, with its name."""
    q, qd, tau = log.q, log.qd, log.tau
    ahead = outside(tree, q, qd, derivative(qd, RATE, WINDOW), tau)
    yield "Savitzky-Golay, 51 samples, ahead", ahead
    yield "the same, low-passed", lagging(ahead, RATE, BANDWIDTH)
    central = outside(tree, q, qd, np.gradient(qd, 1 / RATE, axis=0), tau)
    yield "central differences, low-passed", lagging(central, RATE, BANDWIDTH)
    backward = outside(tree, q, qd, backward_difference(qd, RATE), tau)
    yield "backward differences, low-passed", lagging(backward, RATE, BANDWIDTH)
    for gain in (5.0, BANDWIDTH, 100.0):
        yield f"momentum observer, {gain:g}/s, explicit", momentum_observer(tree, q, qd, tau, RATE, gain, True)
        yield f"momentum observer, {gain:g}/s", momentum_observer(tree, q, qd, tau, RATE, gain)
    for name, read in (("velocities", (None, qd)), ("both", (q, qd))):
        motion = nd.tools.joint_motion(log.t, *read, causal=True)
        filtered = outside(tree, q, qd, motion.qdd, tau)
        yield f"joint filter of {name}, low-passed", lagging(filtered, RATE, BANDWIDTH)
    yield "filter", by_filter(tree, log.t, q, qd, tau, FILTER_NOISE).torques


def main() -> None:
    """Print how each estimate correlates with Franka's own."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder with `panda_log` in it")
    log = panda_log(parser.parse_args().data)
    columns = ("torques from outside", *(f"{k}" for k in range(1, 8)))
    for arm, tree in (("with its hand", nd.load_robot("panda", locked=LOCKED)), ("without its hand", bare_arm())):
        rows = tuple(
            (name, *(f"{c:.2f}" for c in correlations(found[STARTED:], log.outside[STARTED:])))
            for name, found in estimates(tree, log)
        )
        print(Document((Table(f"Correlation with Franka's observer, arm {arm}", columns, rows),)).text(120))


if __name__ == "__main__":
    main()

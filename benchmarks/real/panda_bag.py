"""A real Panda on an exciting trajectory, from a bag of ROS 2: its torques.

Estimated: the torques of the joints of the bare arm, by inverse dynamics with the inertias of its URDF; then with
friction and rotors as well, fitted on the first half of the log. No acceleration is in the log: velocities are
differentiated.

Held against: the torque sensors in the joints, on the second half.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.real.arms import ArmLog, fitted_drives, with_drives
from benchmarks.real.finding import Finding, held_against
from benchmarks.real.panda_arm import JOINTS, bare_arm
from nori_dyn.typing import Floats

DATA = "Panda bag"
WINDOW = 9
"""Samples over which velocities are differentiated."""
WIDTH = 0.02
"""Velocity over which friction changes its sign [rad/s]."""
EDGE = 5
"""Samples at both ends that the filter has touched."""


def run(data: Path) -> list[Finding]:
    """Return what came of the data set."""
    path = data / "real" / "panda_bag" / "panda_exciting_trajectory.db3"
    log, arm = ArmLog.of(path, "panda_bag.log.yaml", WINDOW, edge=EDGE), bare_arm()
    rigid = log.torques(arm)
    half = len(rigid.t) // 2
    drives = fitted_drives(arm, log, WIDTH, slice(0, half))
    driven = log.torques(with_drives(arm, drives, WIDTH)).expected + np.array([drive.offset for drive in drives])
    second = slice(half, None)
    return [
        compared("torques, links alone", rigid.expected, rigid.measured),
        compared("torques of the second half, links alone", rigid.expected[second], rigid.measured[second]),
        compared(
            "torques of the second half, with friction and rotors fitted on the first",
            driven[second],
            rigid.measured[second],
        ),
    ]


def compared(estimate: str, tau: Floats, measured: Floats) -> Finding:
    """Return how far torques are from those measured."""
    return held_against(DATA, estimate, "torque sensors in the joints", JOINTS, ("N m",), tau, measured)

"""A real Panda on an exciting trajectory, from a bag of ROS 2: its torques.

Estimated: the torques of the joints of the bare arm, by inverse dynamics with the inertias of its URDF; then with
friction and rotors as well, fitted on the first half of the log. No acceleration is in the log: velocities are
differentiated.

Held against: the torque sensors in the joints, on the second half.

Then all parameters are identified on the first two thirds, and held against the last.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.arms import ArmLog, fitted_drives, with_drives
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.identified import judged, with_friction
from benchmarks.real.panda_arm import JOINTS, bare_arm
from nori_dyn.typing import Floats

DATA = "Panda bag"
WINDOW = 9
"""Samples over which velocities are differentiated."""
WIDTH = 0.02
"""Velocity over which friction changes its sign [rad/s]."""
EDGE = 5
"""Samples at both ends that the filter has touched."""
CUTOFF = 2.0
"""What is slower than this is identified from [Hz]: the arm shakes above."""


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
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
        *identified(log),
    ]


def identified(log: ArmLog) -> list[Finding | Figure]:
    """What all parameters found on two thirds of the log explain of the last."""
    arm = with_friction(bare_arm(), WIDTH)
    found = nd.identify(log.log, arm, held_out=1 / 3, cutoff=CUTOFF, differentiate=WINDOW)
    title = "torques of the last third, all parameters identified on the others"
    return [
        judged(DATA, title, "torque sensors in the joints", JOINTS, found),
        Figure(DATA, "combinations of parameters that are identifiable", found.base.rank),
        Figure(DATA, "independent ones that the log identifies", found.n_identified),
    ]


def compared(estimate: str, tau: Floats, measured: Floats) -> Finding:
    """How far torques are from those measured."""
    return held_against(DATA, estimate, "torque sensors in the joints", JOINTS, ("N m",), tau, measured)

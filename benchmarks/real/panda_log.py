"""A real Panda that lifts a beam: its torques, and the torques from outside.

Estimated: the torques of the joints, by inverse dynamics of the arm with its hand, which weighs about what the beam does; and
what acts from outside, the torques that were measured less those of the bare arm. No acceleration is in the log: velocities
are differentiated.

Held against: the torque sensors in the joints; and the torques that Franka's own observer says, which is a filter of first
order of some bandwidth. Its log has the sign of a torque that the arm exerts, as the difference has.
"""

from __future__ import annotations

from pathlib import Path

import nori_dyn as nd
from benchmarks.real.arms import Motion, inverse_dynamics, recorded_arm, torques
from benchmarks.real.finding import Finding, held_against
from benchmarks.real.pandas import JOINTS, bare_arm
from benchmarks.real.signals import derivative, lagging

DATA = "Panda log"
WINDOW = 51
"""Samples over which velocities are differentiated."""
BANDWIDTH = 25.0
"""That of Franka's observer [1/s]."""
STARTED = 500
"""Samples until the arm has stopped, and the observer has forgotten how it began."""


def run(data: Path) -> list[Finding]:
    """Return what came of the data set."""
    path = data / "panda_log" / "beam_z_15cm_1khz.csv.gz"
    arm = nd.load_robot("panda", locked=("panda_finger_joint1", "panda_finger_joint2"))
    log = recorded_arm(path, "panda_log.log.yaml", arm, "panda_log.sensors.yaml")
    motion = Motion(log.t - log.t[0], log.q, log.qd, derivative(log.qd, log.rate, WINDOW), torques(log, arm))
    outside = motion.tau - inverse_dynamics(bare_arm(), motion)
    observed = log.of(*(f"observer{k}" for k in range(1, 8)))
    late = lagging(outside, log.rate, BANDWIDTH)[STARTED:]
    return [
        held_against(
            DATA, "torques, arm with hand", "torque sensors in the joints", JOINTS, ("N m",), inverse_dynamics(arm, motion), motion.tau
        ),
        held_against(
            DATA,
            f"torques from outside, low-passed at {BANDWIDTH:g}/s",
            "Franka's observer (tau_ext_hat)",
            JOINTS,
            ("N m",),
            late,
            observed[STARTED:],
        ),
    ]

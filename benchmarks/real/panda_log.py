"""A real Panda that lifts a beam: its torques, and the torques from outside.

Estimated: the torques of the joints, by inverse dynamics of the arm with its hand, which weighs about what the beam
does; and what acts from outside, as what is left of each torque sensor's reading when the bare arm's part is taken
out: the sensor's offset. No acceleration is in the log: velocities are differentiated.

Held against: the torque sensors in the joints; and the torques that Franka's own observer says, which is a filter of
first order of some bandwidth. Its log has the sign of a torque that the arm exerts, as the difference has.

Then inertias and offsets are free: what the log identifies of them, and whether that explains more of its last third
than offsets alone.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.identified import SENSORS as OF_ARMS
from benchmarks.real.identified import identified_combinations, judged
from benchmarks.real.panda_arm import JOINTS, bare_arm
from benchmarks.real.recording import beside, readings
from benchmarks.real.signals import lagging
from nori_dyn.typing import Floats

DATA = "Panda log"
SENSORS = "panda_log.sensors.yaml"
RATE = 1000.0
"""Samples a second."""
WINDOW = 51
"""Samples over which velocities are differentiated."""
BANDWIDTH = 25.0
"""That of Franka's observer [1/s]."""
STARTED = 500
"""Samples until the arm has stopped, and the observer has forgotten how it began."""


CUTOFF = 20.0
"""What is slower than this is identified from [Hz]."""


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    log = nd.read_log(data / "panda_log" / "beam_z_15cm_1khz.csv.gz", beside("panda_log.log.yaml"))
    with_hand = nd.load_robot("panda", locked=("panda_finger_joint1", "panda_finger_joint2"))
    names = [f"tau:{name}" for name in with_hand.joint_names]
    outputs = ["tau", *(f"offset:{name}" for name in names)]
    arm, bare = (
        nd.estimate(
            log, nd.plan(nd.System(tree, beside(SENSORS)), outputs=outputs), differentiate=WINDOW, backend="numpy"
        )
        for tree in (with_hand, bare_arm())
    )
    outside = np.concatenate([bare[f"offset:{name}"] for name in names], axis=1)
    observed = readings(bare, *(f"observer{k}" for k in range(1, 8)))
    return [
        compared("torques, arm with hand", "torque sensors in the joints", arm["tau"], readings(arm, *names)),
        compared(
            f"torques from outside, low-passed at {BANDWIDTH:g}/s",
            "Franka's observer (tau_ext_hat)",
            lagging(outside, RATE, BANDWIDTH)[STARTED:],
            observed[STARTED:],
        ),
        *identified(log, with_hand),
    ]


def identified(log: nd.results.Log, tree: nd.KinematicTree) -> list[Finding | Figure]:
    """What the log identifies of inertias beside offsets."""
    arm, against = nd.System(tree, OF_ARMS), "torque sensors in the joints"
    offsets = nd.identify(log, arm, ["offsets"], cutoff=CUTOFF, differentiate=WINDOW)
    found = nd.identify(log, arm, ["inertias", "offsets"], cutoff=CUTOFF, differentiate=WINDOW)
    return [
        judged(DATA, "torques of the last third, offsets identified", against, JOINTS, offsets),
        judged(DATA, "torques of the last third, inertias and offsets identified", against, JOINTS, found),
        Figure(DATA, "combinations of inertias and offsets that are identifiable", found.base.rank),
        Figure(DATA, "independent ones that the log identifies, offsets included", found.n_identified),
        *identified_combinations(DATA, found),
    ]


def compared(estimate: str, against: str, tau: Floats, measured: Floats) -> Finding:
    """How far torques are from those measured."""
    return held_against(DATA, estimate, against, JOINTS, ("N m",), tau, measured)

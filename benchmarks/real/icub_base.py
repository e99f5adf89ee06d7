"""A real iCub that walks: attitude, velocity and path of its base, from encoders and the IMU in its pelvis.

Contacts are told by the force-torque sensors of the feet; nothing else of these is read.

Held against: the pose of the base that those who made the data estimated; its velocity is a Savitzky-Golay derivative
of the position (11 samples, order 2). The first two seconds are left out, and yaw and position aligned there.
"""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.icub_walking import STATES, WRISTS
from benchmarks.real.recording import beside, recorded

DATA = "iCub walking, its base"
AGAINST = "pose of the base in the data"
BEARS = 80.0
"""Measured force from which on a foot is told to stand [N]: a quarter of the weight."""
ALIGNED = 2.0
"""From when on it is compared [s]."""


def run(data: Path) -> list[Finding | Figure]:
    """Return what came of the data set."""
    folder = data / "real" / "icub_walking"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        tree = nd.load_urdf(folder / "model.urdf", base="floating", locked=WRISTS)
        read = nd.System(tree, beside("icub_walking.read.sensors.yaml"))
        log = recorded(nd.read_log(folder / "walking.mat", beside("icub_walking.log.yaml")), read)
        plan = nd.plan(tree, beside("icub_base.sensors.yaml"), outputs=["fx:l_sole"], states=STATES)
    tracker = nd.Tracker(plan, dt=1 / log.rate)
    imu, forces = log.of("imu.ax", "imu.ay", "imu.az"), log.of("l_force.fz", "r_force.fz")
    gyro = log.qd[:, :3] @ tree.frame("root_link_imu_frame").X.E.T
    names = [f"{sensor}.{axis}" for sensor, axes in (("imu", "a"), ("gyro", "w")) for axis in (axes + c for c in "xyz")]
    found, ratios = [], []
    for k, y in enumerate(np.hstack([imu, gyro])):
        stands = tuple(name for name, f in zip(("l_foot", "r_foot"), forces[k], strict=True) if f > BEARS)
        tracker.switch(stands or ("l_foot", "r_foot"))
        tracked = tracker.step(log.q[k], log.qd[k], dict(zip(names, y.tolist(), strict=True)))
        found.append(tracker.base)
        ratios.append(tracked.nis / tracked.degrees)
    first = int(np.searchsorted(log.t - log.t[0], ALIGNED))
    part = slice(first, None)
    true, position = Rotation.from_quat(log.q[:, 3:7]), log.q[:, :3]
    mine = Rotation.from_quat([base.rotation for base in found])
    up = [rotation.inv().apply([0.0, 0.0, 1.0]) for rotation in (mine, true)]
    tilt = np.degrees(np.arccos(np.clip((up[0] * up[1]).sum(axis=1), -1.0, 1.0)))
    velocity = true.inv().apply(savgol_filter(position, 11, 2, deriv=1, delta=1 / log.rate, axis=0))
    yaw = Rotation.from_euler("z", (true[first] * mine[first].inv()).as_euler("xyz")[2])
    path = yaw.apply([base.position - found[first].position for base in found])
    off = np.linalg.norm((path - (position - position[first]))[part], axis=1)
    own = np.array([base.velocity for base in found])
    return [
        held_against(DATA, "velocity of the base", AGAINST, "xyz", ("m/s",) * 3, own[part], velocity[part]),
        Figure(DATA, "tilt, rms error", float(np.sqrt((tilt[part] ** 2).mean())), "deg"),
        Figure(DATA, "path, rms error", float(np.sqrt((off**2).mean())), "m"),
        Figure(DATA, "length of the path", float(np.linalg.norm(position[-1] - position[first])), "m"),
        Figure(DATA, "chi-square over degrees of freedom, mean", float(np.mean(ratios[part])), "", 1.0),
    ]

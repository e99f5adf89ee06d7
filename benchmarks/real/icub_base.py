"""A real iCub that walks: attitude, velocity and path of its base, from encoders and the IMU in its pelvis.

How far a foot stands goes by its share of the load, by the force-torque sensors of the feet; nothing else of these is
read. Joint velocities are differentiated from the encoders: those of the log are late, as chi-square says.

Held against: the pose of the base that those who made the data estimated; its velocity is a Savitzky-Golay derivative
of the position (11 samples, order 2). The first two seconds are left out, and yaw and position aligned there. The
contact forces are those of icub_walking, with this attitude of the base instead of the given one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.signal import savgol_filter
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.icub_walking import BEARS, findings, read, walk_of
from benchmarks.real.recording import RecordedSamples, beside
from benchmarks.real.signals import causal_derivative
from nori_dyn.filtering.base_estimate import BaseEstimate
from nori_dyn.typing import Floats

DATA = "iCub walking, its base"
AGAINST = "pose of the base in the data"
STANDS = 0.5
"""Share of the weight from which on a foot stands as well as it ever does; with less, its sigma goes as one over it."""
WINDOW = 5
"""Samples through which the parabola goes whose derivatives are the velocity and the acceleration of a joint."""
ALIGNED = 2.0
"""From when on it is compared [s]."""


@dataclass(frozen=True, slots=True, eq=False)
class BaseMotion:
    """The pose and velocity of a link.

    Attributes:
        rotation: from link to world coordinates.
        position: of its origin, in world coordinates (n, 3) [m].
        velocity: of that, in link coordinates (n, 3) [m/s].
    """

    rotation: Rotation
    position: Floats
    velocity: Floats


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    tree, log = read(data)
    gyro = log.qd[:, :3] @ tree.frame("root_link_imu_frame").X.E.T
    log = replace(log, readings=log.readings | {f"gyro.w{axis}": gyro[:, k] for k, axis in enumerate("xyz")})
    found = [tracked(tree, "icub_base.sensors.yaml", log, causal) for causal in (True, False)]
    bases = [base_of(one) for one in found]
    motions = [BaseMotion(Rotation.from_quat(base.rotation), base.position, base.velocity) for base in bases]
    q = log.q.copy()
    q[:, 3:7] = bases[0].rotation
    walk = findings(walk_of(tree, replace(log, q=q)))
    forces = [replace(one, data=DATA) for one in walk if isinstance(one, Finding) and "left" in one.components]
    return [*compared(DATA, log, *motions), chi_square(DATA, log, found[0]), *forces]


def base_of(found: nd.results.History) -> BaseEstimate:
    """The base at all ticks."""
    assert found.base is not None
    return found.base


def tracked(tree: nd.KinematicTree, sensors: str, log: RecordedSamples, causal: bool) -> nd.results.History:
    """What a tracker says of the base at each sample, by the readings up to it, or by all."""
    plan = nd.plan(tree, beside(sensors), outputs=["fx:l_sole"])
    forces = log.of("l_force.fz", "r_force.fz")
    share = forces / forces.sum(axis=1).mean()
    counts = np.where(share > BEARS, np.clip(share / STANDS, 0.0, 1.0) ** 2, 0.0)
    weights = np.tile(plan.system.weights, (len(forces), 1))
    for k, foot in enumerate(("l_stands", "r_stands")):
        own = [place for place, name in enumerate(plan.system.weight_names) if name.startswith(foot)]
        weights[:, own] *= counts[:, k, None]
    qd = log.qd.copy()
    qd[:, 6:] = causal_derivative(log.q[:, 7:], log.rate, WINDOW)
    y = log.of(*plan.system.measurement_names)
    return nd.Tracker(plan, dt=1 / log.rate).over(None, log.q, qd, y, weights=weights, causal=causal)


def compared(data: str, log: RecordedSamples, filtered: BaseMotion, smoothed: BaseMotion) -> list[Finding | Figure]:
    """How far motions are from the pose in a log: estimated from the readings up to each instant, and from all."""
    first = first_of(log)
    part, results = slice(first, None), list[Finding | Figure]()
    true, position = Rotation.from_quat(log.q[:, 3:7]), log.q[:, :3]
    velocity = true.inv().apply(savgol_filter(position, 11, 2, deriv=1, delta=1 / log.rate, axis=0))
    for motion, how in ((filtered, ""), (smoothed, "smoothed ")):
        what = f"{how}velocity of the base"
        results.append(held_against(data, what, AGAINST, "xyz", ("m/s",) * 3, motion.velocity[part], velocity[part]))
    for motion, how in ((filtered, ""), (smoothed, "smoothed ")):
        up = [rotation.inv().apply([0.0, 0.0, 1.0]) for rotation in (motion.rotation, true)]
        tilt = np.degrees(np.arccos(np.clip((up[0] * up[1]).sum(axis=1), -1.0, 1.0)))
        yaw = Rotation.from_euler("z", (true[first] * motion.rotation[first].inv()).as_euler("xyz")[2])
        path = yaw.apply(motion.position - motion.position[first])
        off = np.linalg.norm((path - (position - position[first]))[part], axis=1)
        results.append(Figure(data, f"{how}tilt, rms error", float(np.sqrt((tilt[part] ** 2).mean())), "deg"))
        results.append(Figure(data, f"{how}path, rms error", float(np.sqrt((off**2).mean())), "m"))
    return [*results, Figure(data, "length of the path", float(np.linalg.norm(position[-1] - position[first])), "m")]


def first_of(log: RecordedSamples) -> int:
    """The sample from which on it is compared."""
    return int(np.searchsorted(log.t - log.t[0], ALIGNED))


def chi_square(data: str, log: RecordedSamples, found: nd.results.History) -> Figure:
    """How large the innovations are beside what is said of the noise."""
    part = slice(first_of(log), None)
    ratio = float(found.nis[part].sum() / found.degrees[part].sum())
    return Figure(data, "chi-square over degrees of freedom", ratio, "", 1.0)

"""A simulated iCub 3 that walks on soles that slip: motion of its chest, from encoders and the IMU there.

As icub_base. Joint velocities are differentiated from the encoders: those of the log are zero with spikes. So are the
accelerations of the joints between base and IMU.

Held against: the pose of the chest by the simulator.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
from scipy.spatial.transform import Rotation

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding
from benchmarks.real.icub_base import WINDOW, BaseMotion, base_of, chi_square, compared, tracked
from benchmarks.real.icub_walking import WRISTS
from benchmarks.real.recording import beside, recorded
from benchmarks.real.signals import causal_derivative
from nori_dyn.algebra.crossing import as_transform
from nori_dyn.filtering.base_estimate import BaseEstimate
from nori_dyn.model.kinematics import transform_between, velocities
from nori_dyn.typing import Floats

DATA = "iCub 3 walking in simulation, its base"
LINK = "chest"


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    folder = data / "real" / "icub3_walking_sim"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        tree = nd.load_urdf(folder / "model.urdf", base="floating", locked=WRISTS)
        read = nd.System(tree, beside("icub3_base.read.sensors.yaml"))
        log = recorded(nd.read_log(folder / "walking.mat", beside("icub3_base.log.yaml")), read)
    qd, qdd = (
        np.hstack([np.zeros((len(log.t), 6)), causal_derivative(log.q[:, 7:], log.rate, WINDOW, order)])
        for order in (1, 2)
    )
    read_too = {f"gyro.w{axis}": log.qd[:, k] for k, axis in enumerate("xyz")}
    read_too |= {f"qdd:{name}": values for name, values in zip(tree.joint_names[1:], qdd.T[6:], strict=True)}
    log = replace(log, readings=log.readings | read_too)
    found = [tracked(tree, "icub3_base.sensors.yaml", log, causal) for causal in (True, False)]
    motions = [carried(tree, base_of(one), log.q, qd) for one in found]
    return [*compared(DATA, log, *motions), chi_square(DATA, log, found[0])]


def carried(tree: nd.KinematicTree, base: BaseEstimate, q: Floats, qd: Floats) -> BaseMotion:
    """The motion of the link, which joints carry on the base.

    Args:
        tree: the robot.
        base: its base at n samples.
        q, qd: configurations (n, nq) and velocities (n, nv); those of the root are not read.
    """
    of_root = np.hstack([base.angular_velocity, base.velocity])
    at = velocities(tree, q.T, np.hstack([of_root, qd[:, 6:]]).T)
    link = tree.names.index(LINK)
    X = as_transform(transform_between(at, link, 0))
    E, r = np.moveaxis(np.asarray(X.E), 2, 0), np.asarray(X.r).T
    rotation = Rotation.from_quat(base.rotation)
    return BaseMotion(
        rotation * Rotation.from_matrix(np.swapaxes(E, 1, 2)),
        base.position + rotation.apply(r),
        np.asarray(at.v[link]).T[:, 3:],
    )

"""A log of an arm whose sensors check each other, with faults that were put in, as files and as estimates."""

from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import numpy as np

import nori_dyn as nd
from nori_dyn.estimation.log_estimate import LogEstimate
from nori_dyn.estimation.plan import Plan
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES

N, DT, START = 2000, 0.01, 1000.0
FAULTY = slice(800, 1000)
"""When the second accelerometer of joint 2 is off by `OFFSET`."""

OFFSET = 2.0
SPIKE = 1500
"""A sample at which the third accelerometer of joint 4 is off by 5 rad/s^2."""

GAP = 1200
"""The sample after which there is none for two seconds."""

MISSING = slice(300, 310)
"""When the torque of joint 3 is missing."""

SIGMA = 0.1

FINGERS = ("panda_finger_joint1", "panda_finger_joint2")
JOINTS = tuple(f"panda_joint{k}" for k in range(1, 8))

SENSORS = {
    "name": "checked",
    "measurements": [
        ACCELERATIONS | {"sigma": SIGMA},
        *({"type": "joint_acceleration", "joints": j, "sigma": SIGMA, "name": f"second:{j}"} for j in JOINTS),
        *({"type": "joint_acceleration", "joints": j, "sigma": SIGMA, "name": f"third:{j}"} for j in JOINTS),
        TORQUES | {"sigma": SIGMA},
        {"type": "external_wrench", "links": {"except": "panda_link7"}, "value": 0},
    ],
}


@cache
def arm() -> nd.KinematicTree:
    return load("panda", locked=FINGERS)


@cache
def checked_plan() -> Plan:
    return nd.plan(nd.System(arm(), nd.SensorSet.from_dict(SENSORS)), outputs=["tau", "fx:panda_link7"])


@cache
def exact_plan(outputs: tuple[str, ...] | None) -> Plan:
    return nd.plan(nd.System(arm(), "inverse_dynamics"), outputs=outputs)


@cache
def folder() -> Path:
    return Path(mkdtemp(prefix="logs-"))


@cache
def log_file(name: str = "faulty") -> Path:
    """A log: "sound", or "faulty" with all that is said above."""
    tree, rng = arm(), np.random.default_rng(4)
    t = START + DT * np.arange(N)
    t[GAP + 1 :] += 2.0
    pace = np.linspace(0.5, 2.0, tree.nv)
    phase = np.multiply.outer(t, pace) + np.arange(tree.nv)
    q = np.array([0, -0.4, 0, -2, 0, 1.8, 0.8]) + 0.3 * np.sin(phase)
    qd, qdd = 0.3 * pace * np.cos(phase), -0.3 * pace**2 * np.sin(phase)
    tau = nd.rnea(tree, q.T, qd.T, qdd.T).T
    y = np.hstack([qdd, qdd, qdd, tau])
    y = y + SIGMA * rng.normal(size=y.shape)
    if name == "faulty":
        y[FAULTY, tree.nv + 1] += OFFSET
        y[SPIKE, 2 * tree.nv + 3] += 5.0
        y[MISSING, 3 * tree.nv + 2] = np.nan
    path = folder() / f"{name}.npz"
    np.savez(path, t=t, q=q, qd=qd, y=y)
    return path


@cache
def estimated(name: str = "faulty") -> LogEstimate:
    plan = checked_plan()
    return nd.estimate(log_file(name), plan, monitor=True, missing="drop", singular="nan", backend="numpy")

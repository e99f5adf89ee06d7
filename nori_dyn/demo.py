"""The demo: inverse dynamics of the iCub humanoid along a smooth motion, planned once and solved every tick."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from nori_dyn.descriptions.robot_names import installed_robots
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.errors import MissingExtraError, NoriWarning
from nori_dyn.estimation.plan import Plan, plan
from nori_dyn.estimation.presets import shipped_presets
from nori_dyn.estimation.system import System
from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.program.compiler import find_compiler
from nori_dyn.recursions.rnea import rnea
from nori_dyn.typing import Floats

ROBOT = "iCubGenova04"
TICK = 1e-3
"""Time between ticks [s]."""

REPEATS = 5
"""Number of times that a batch is timed."""


@dataclass(frozen=True, slots=True)
class Timing:
    """How fast a way of running the plan is.

    Attributes:
        name: the backend, and how it was run.
        quartiles: lower quartile, median and upper quartile of the time a tick [s].
    """

    name: str
    quartiles: tuple[float, float, float]


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """What the demo found.

    Attributes:
        plan: the plan.
        warnings: what the loader had to say.
        n_ticks: number of ticks.
        planning_seconds: time to plan, the cache left aside.
        timings: how fast each backend ran.
        largest_difference: largest difference of any torque from the recursive Newton-Euler algorithm, relative to
            the largest torque.
    """

    plan: Plan
    warnings: tuple[str, ...]
    n_ticks: int
    planning_seconds: float
    timings: tuple[Timing, ...]
    largest_difference: float


def sample_log() -> Path:
    """File of the sample log, of a real double pendulum, beside the presets; see its README."""
    return shipped_presets()["double_pendulum"].parent / "logs" / "double_pendulum.csv.gz"


def icub_path() -> Path:
    """Path of the URDF of iCub.

    Raises:
        MissingExtraError: icub-models is not installed.
    """
    path = installed_robots().get(ROBOT)
    if path is None:
        raise MissingExtraError("the demo's robot", "demo")
    return path


def run_demo(n_ticks: int) -> Demo:
    """Plan and run inverse dynamics of iCub with a floating base.

    Args:
        n_ticks: number of ticks, a millisecond each.
    """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoriWarning)
        tree = load_urdf(icub_path(), base="floating")
    system = System(tree, sensors("inverse_dynamics"))
    start = time.perf_counter()
    planned = plan(system, cache=False)
    planning_seconds = time.perf_counter() - start

    q, qd, qdd = smooth_motion(tree, n_ticks)
    reference = rnea(tree, q.T, qd.T, qdd.T).T
    timings: list[Timing] = []
    difference = 0.0
    backends = ["numpy"]
    if has_umfpack():
        backends.insert(0, "umfpack")
    if find_compiler() is not None:
        backends.append("native")
    for backend in backends:
        solver = planned.solver(backend)
        seconds = np.empty(n_ticks)
        for k in range(n_ticks):
            start = time.perf_counter()
            solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = q[k], qd[k], qdd[k]
            solver.tick().raise_for_status()
            seconds[k] = time.perf_counter() - start
            difference = max(difference, float(np.abs(solver.outputs.tau - reference[k]).max()))
        timings.append(Timing(f"{backend}, tick by tick", _quartiles(seconds)))
        if backend != "umfpack":  # which has no batch of its own
            repeats = np.empty(REPEATS)
            for k in range(REPEATS):
                start = time.perf_counter()
                estimate = solver.solve_batch(q, qd, qdd)
                repeats[k] = (time.perf_counter() - start) / n_ticks
            difference = max(difference, float(np.abs(estimate.tau - reference).max()))
            timings.append(Timing(f"{backend}, all in one batch", _quartiles(repeats)))
    return Demo(
        plan=planned,
        warnings=tuple(str(warning.message) for warning in caught),
        n_ticks=n_ticks,
        planning_seconds=planning_seconds,
        timings=tuple(timings),
        largest_difference=difference / float(np.abs(reference).max()),
    )


def smooth_motion(tree: KinematicTree, n_ticks: int) -> tuple[Floats, Floats, Floats]:
    """Positions (n, nq), velocities (n, nv) and accelerations (n, nv) of a smooth motion.

    Each joint of one freedom follows a sine within its limits; a free joint sways and turns about its z axis.
    """
    t = TICK * np.arange(n_ticks)
    q = np.tile(tree.neutral_configuration(), (n_ticks, 1))
    qd, qdd = np.zeros((n_ticks, tree.nv)), np.zeros((n_ticks, tree.nv))
    for i, (joint, s, v) in enumerate(zip(tree.joints, tree.q_slices, tree.v_slices, strict=True)):
        rate = 2 * np.pi * (0.5 + 0.05 * i)
        phase = rate * t + i
        if isinstance(joint, Free):
            reach, angle = 0.1, 0.3
            yaw, yaw_d, yaw_dd = (
                angle * np.sin(phase),
                angle * rate * np.cos(phase),
                -angle * rate**2 * np.sin(phase),
            )
            x, x_d, x_dd = (
                reach * np.cos(phase),
                -reach * rate * np.sin(phase),
                -reach * rate**2 * np.cos(phase),
            )
            c, sn = np.cos(yaw), np.sin(yaw)
            q[:, s.start] = x
            q[:, s.start + 5], q[:, s.start + 6] = np.sin(yaw / 2), np.cos(yaw / 2)
            qd[:, v.start + 2], qd[:, v.start + 3], qd[:, v.start + 4] = yaw_d, c * x_d, -sn * x_d
            qdd[:, v.start + 2] = yaw_dd
            qdd[:, v.start + 3] = c * x_dd - sn * yaw_d * x_d
            qdd[:, v.start + 4] = -sn * x_dd - c * yaw_d * x_d
        elif joint.nv == joint.nq == 1:
            lower, upper = max(joint.room[0], -1.0), min(joint.room[1], 1.0)
            middle, swing = (lower + upper) / 2, 0.4 * (upper - lower)
            q[:, s.start] = middle + swing * np.sin(phase)
            qd[:, v.start] = swing * rate * np.cos(phase)
            qdd[:, v.start] = -swing * rate**2 * np.sin(phase)
    return q, qd, qdd


def _quartiles(seconds: Floats) -> tuple[float, float, float]:
    low, median, high = np.percentile(seconds, [25, 50, 75])
    return float(low), float(median), float(high)

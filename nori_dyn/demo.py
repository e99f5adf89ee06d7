"""The demo: inverse dynamics of the iCub humanoid, planned once and solved every tick."""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np

from nori_dyn.bench import BATCH, Quartiles, in_turns, quartiles, random_states
from nori_dyn.descriptions.robot_names import installed_robots
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.descriptions.urdf import load_urdf
from nori_dyn.errors import MissingExtraError, NoriWarning
from nori_dyn.estimation.plan import Plan, plan
from nori_dyn.estimation.presets import shipped_presets
from nori_dyn.estimation.system import System
from nori_dyn.planning.orderings.umfpack import has_umfpack
from nori_dyn.program.compiler import find_compiler
from nori_dyn.recursions.rnea import rnea

ROBOT = "iCubGenova04"
REPEATS = 5
"""Number of times that a batch is timed."""


@dataclass(frozen=True, slots=True, eq=False)
class Demo:
    """What the demo found.

    Attributes:
        plan: the plan.
        warnings: what the loader had to say.
        planning_seconds: time to plan, the cache left aside.
        timings: quartiles of the time of a tick of each backend [s], one by one and in a batch.
        largest_difference: largest difference of any torque from the recursive Newton-Euler algorithm, relative to
            the largest torque.
    """

    plan: Plan
    warnings: tuple[str, ...]
    planning_seconds: float
    timings: dict[str, Quartiles]
    largest_difference: float


def sample_log() -> Path:
    """File of the sample log, of a real double pendulum, beside the presets; see its README."""
    return shipped_presets()["double_pendulum"].parent / "logs" / "double_pendulum.csv.gz"


def run_demo(n_ticks: int) -> Demo:
    """Plan and run inverse dynamics of iCub with a floating base.

    Args:
        n_ticks: number of ticks, each at a random state.

    Raises:
        MissingExtraError: icub-models is not installed.
    """
    path = installed_robots().get(ROBOT)
    if path is None:
        raise MissingExtraError("the demo's robot", "demo")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", NoriWarning)
        tree = load_urdf(path, base="floating")
    system = System(tree, sensors("inverse_dynamics"))
    start = time.perf_counter()
    planned = plan(system, cache=False)
    planning_seconds = time.perf_counter() - start

    q, qd, qdd = random_states(system, n_ticks, seed=0)
    reference = rnea(tree, q.T, qd.T, qdd.T).T
    timings: dict[str, Quartiles] = {}
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
        timings[f"{backend}, tick by tick"] = quartiles(seconds)
        if backend != "umfpack":  # which has no batch of its own
            difference = max(difference, float(np.abs(solver.solve_batch(q, qd, qdd).tau - reference).max()))
            batches = in_turns({BATCH: partial(solver.solve_batch, q, qd, qdd)}, REPEATS, seconds=0.0)[BATCH]
            timings[f"{backend}, all in one batch"] = quartiles(each / n_ticks for each in batches)
    return Demo(
        plan=planned,
        warnings=tuple(str(warning.message) for warning in caught),
        planning_seconds=planning_seconds,
        timings=timings,
        largest_difference=difference / float(np.abs(reference).max()),
    )

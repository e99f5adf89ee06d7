"""Pushes by hand of a real UR10e that stands still: whether, and how soon, a filter that knows of none sees them.

The model and the noise are those of `ur10e_bands`. The threshold is learnt on two logs in which nothing touches the
arm, for a chosen number of false alarms; they are counted in all four. Three of these end with a stop by the operator
in which a joint loses its speed within 60 ms, and the arm rings: what comes after is left out, and stops that are seen
are counted beside.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding
from benchmarks.real.recording import beside
from benchmarks.real.ur10e import DATA, WINDOW
from benchmarks.real.ur10e_bands import LOGS, identified, torque_rows
from nori_dyn.filtering.collisions import CollisionDetector
from nori_dyn.filtering.watched import WatchedHistory

LEARNT = "exciting_1", "one_joint_2"
"""The logs by which thresholds are learnt."""
STOPPED = {"exciting_1": 54.0, "exciting_2": 52.1, "one_joint_2": 61.5}
"""When the arm is stopped [s]."""
ONSETS = 0.52, 2.46, 4.88, 8.03, 11.37, 14.20
"""When pushes begin, from the beginning of the log [s]: where a current leaves its noise, by eye, to 20 ms."""
EARLY = 0.02
"""How much before an onset it may be seen [s]: as far as the eye may be wrong."""
FALSE_ALARMS = 15.0, 60.0, 120.0
"""Chosen rates of false alarms an hour: one, four and eight in all logs."""
UNSURE = 0.2
"""Standard deviation of accelerations where velocities do not tell it, as they never change [rad/s^2]."""
TIME = 0.08
"""Over which time residuals are smoothed [s]."""


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    folder = data / "real" / "ur10e"
    robot, logs, _, noise = identified(folder)
    moving, *rows = torque_rows(robot, noise)
    rows = [{**moving, "sigma": UNSURE}, *rows]
    content = {"name": "untouched", "measurements": rows, "memory": {"friction": {"of": "stiction"}}}
    plan = nd.plan(nd.System(robot, nd.SensorSet.from_dict(content)), outputs=["tau"])
    pushed = nd.read_log(folder / "push_pose_2.csv.gz", beside("ur10e.log.yaml"))
    histories = {
        name: nd.estimate(log, plan, differentiate=WINDOW, monitor=True).history  # type: ignore[attr-defined]
        for name, log in {**logs, "pushed": pushed}.items()
    }
    results: list[Finding | Figure] = []
    for rate in FALSE_ALARMS:
        detector = CollisionDetector(nd.Tracker(plan, dt=0.01), rate, TIME)
        detector.calibrate(until_stopped(name, detector.over(histories[name])) for name in LEARNT)
        free = {name: detector.over(histories[name]) for name in LOGS}
        running = [until_stopped(name, one) for name, one in free.items()]
        chosen = rate / 3600 * sum(one.duration for one in running)
        delays = delays_of(detector.over(histories["pushed"]))
        title = f"with {rate:g} false alarms an hour chosen"
        counted = sum(len(one.begins) for one in running)
        stops = sum(len(one.begins) > len(until.begins) for one, until in zip(free.values(), running, strict=True))
        results += [
            Figure(DATA, f"false alarms {title}", counted, expected=chosen),
            Figure(DATA, f"stops of the arm that are seen {title}", stops, expected=len(STOPPED)),
            Figure(DATA, f"pushes that are seen {title}", int(np.isfinite(delays).sum()), expected=len(ONSETS)),
            Figure(DATA, f"median delay {title}", float(np.median(delays)), "s"),
            Figure(DATA, f"largest delay {title}", float(np.max(delays)), "s"),
        ]
    return results


def until_stopped(name: str, watched: WatchedHistory) -> WatchedHistory:
    """What was watched of a log before the arm is stopped."""
    before = watched.t - watched.t[0] < STOPPED.get(name, np.inf)
    return replace(watched, t=watched.t[before], statistics=watched.statistics[before])


def delays_of(watched: WatchedHistory) -> np.ndarray:
    """How long after its onset each push is seen [s]; inf where it is not before the next."""
    t = watched.t - watched.t[0]
    seen = t[watched.collision]
    later = [*ONSETS[1:], np.inf]
    first = [
        next((s for s in seen if onset - EARLY <= s < end - EARLY), np.inf)
        for onset, end in zip(ONSETS, later, strict=True)
    ]
    return np.subtract(first, ONSETS)

"""A real iCub on its left foot: what its force-torque sensors should read, and what they do.

Estimated: the wrenches through the six sensors, from the joints alone; and the constant offset of each sensor, by least
squares over the whole log. At each instant the motion is known, so that the offset is the reading minus what is expected of
it; the least squares over all instants together is then the mean of these, weighed by 1 / sigma^2, and 0 where a sensor hung.

Held against: the sensors themselves, less their offsets. What was estimated has not seen them but for these.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.finding import Finding, held_against
from benchmarks.real.recording import beside, recorded
from benchmarks.real.signals import derivative, hung, low_passed
from nori_dyn.typing import Booleans, Floats

DATA = "iCub on one leg"
FIRST = 1457614036.659765
"""Time of the first sample of any stream [s]."""
STANDS = 13.07, 65.64
"""From when to when it stands on its left foot [s after the first sample]."""
FREE = 23.0, 58.0
"""When the hip's yaw of the lifted leg is at the end of its range throughout [s after the first sample]."""
CUTOFF = 2.0
"""What is slower than this is compared [Hz]: the robot takes seconds for a move, and its sensors' noise is white."""
WINDOW = 31
"""Samples over which velocities are differentiated."""
SHORTEST = 20
"""Samples that are the same to the last digit, from which on a sensor hangs."""

SENSORS = {
    "right leg": "r_leg_ft_sensor",
    "left foot": "l_foot_ft_sensor",
    "left leg": "l_leg_ft_sensor",
    "right foot": "r_foot_ft_sensor",
    "left arm": "l_arm_ft_sensor",
    "right arm": "r_arm_ft_sensor",
}
COMPONENTS = ("fx", "fy", "fz", "mx", "my", "mz")
UNITS = ("N", "N", "N", "N m", "N m", "N m")


@dataclass(frozen=True, slots=True, eq=False)
class Sensor:
    """What one force-torque sensor should read and what it does, over the time on one leg.

    Attributes:
        expected: the wrench that the motion of the joints asks for (n, 6), in the order of `COMPONENTS`.
        read: what it reads (n, 6).
        works: where it does not hang (n,).
        offset: what it reads too much (6,).
    """

    expected: Floats
    read: Floats
    works: Booleans
    offset: Floats


def estimated(data: Path) -> tuple[Floats, dict[str, Sensor]]:
    """Return times (n,) [s after the first sample], and what came of each sensor."""
    folder = data / "real" / "icub_one_leg"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.NoriWarning)
        tree = nd.load_urdf(folder / "iCubGenova02.urdf", base="floating", kept="sensors")
    system = nd.System(tree, beside("icub_one_leg.sensors.yaml"))
    log = recorded(folder / "left_leg.npz", "icub_one_leg.log.yaml", system)
    inside = (log.t - FIRST > STANDS[0] - 5) & (log.t - FIRST < STANDS[1] + 5)  # the filter needs some more
    names = list(system.measurement_names)
    y, qd, rate = log.y(system)[inside], low_passed(log.qd[inside], log.rate, CUTOFF), 100.0
    works = {name: ~hung(y[:, columns_of(names, name)], SHORTEST) for name in SENSORS.values()}
    for k, name in enumerate(names):
        if name.startswith("qdd:"):
            joint = tree.joint_names.index(name.removeprefix("qdd:"))
            y[:, k] = derivative(qd, rate, WINDOW)[:, tree.v_slices[joint]][:, 0]
    read = [k for k, name in enumerate(names) if name.startswith("ft:")]
    y[:, read] = low_passed(y[:, read], rate, CUTOFF)
    q = log.q[inside].copy()
    q[:, 7:] = low_passed(q[:, 7:], rate, CUTOFF)

    links = {name: tree.names[tree.joint_names.index(name)] for name in SENSORS.values()}
    outputs = [name for joint, link in links.items() for name in (f"f:{link}", f"offset:ft:{joint}")]
    t = log.t[inside] - FIRST
    stands = (t >= STANDS[0]) & (t <= STANDS[1])
    estimate = nd.plan(system, outputs=outputs).solver().solve_batch(q[stands], qd[stands], y[stands])
    found: dict[str, Sensor] = {}
    order = [3, 4, 5, 0, 1, 2]  # ours has couples first
    for title, joint in SENSORS.items():
        is_well = works[joint][stands]
        offset = estimate[f"offset:ft:{joint}"][is_well].mean(axis=0)
        own = y[stands][:, columns_of(names, joint)]
        expected = -estimate[f"f:{links[joint]}"]
        found[title] = Sensor(expected[:, order], own[:, order], is_well, offset[order])
    return t[stands], found


def columns_of(names: list[str], joint: str) -> list[int]:
    """Return where the six readings of the sensor in a joint are, couples first."""
    return [k for k, name in enumerate(names) if name.startswith(f"ft:{joint}.")]


def run(data: Path) -> list[Finding]:
    """Return what came of the data set."""
    t, sensors = estimated(data)
    leg = sensors["right leg"]
    at_end = (t >= FREE[0]) & (t <= FREE[1])
    again = Sensor(leg.expected[at_end], leg.read[at_end], leg.works[at_end], np.zeros(6))
    again = Sensor(again.expected, again.read, again.works, (again.read - again.expected)[again.works].mean(axis=0))
    return [
        compared("wrench below the right hip", leg),
        compared("the same, while the hip's yaw is at its end", again),
        compared("wrench of the standing foot", sensors["left foot"]),
        compared("wrench below the left hip", sensors["left leg"]),
    ]


def compared(estimate: str, sensor: Sensor) -> Finding:
    """Return how far what is expected of a sensor is from what it reads, less its offset, where it does not hang."""
    read = (sensor.read - sensor.offset)[sensor.works]
    against = "its force-torque sensor, less a constant offset"
    return held_against(DATA, estimate, against, COMPONENTS, UNITS, sensor.expected[sensor.works], read)

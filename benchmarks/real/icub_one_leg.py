"""A real iCub on its left foot: what its force-torque sensors should read, and what they do.

Estimated: the wrenches through the six sensors, from the joints alone; and the constant offset of each sensor, by
least squares over the whole log. At each instant the motion is known, so that the offset is the reading minus what is
expected of it; the least squares over all instants together is then the mean of these, weighed by 1 / sigma^2, and 0
where a sensor hung.

Held against: the sensors themselves, less their offsets. What was estimated has not seen them but for these.

Then masses and centres of the lifted leg are identified from the sensor below its hip, and held against the URDF.
"""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.identified import combination
from benchmarks.real.recording import beside, readings
from benchmarks.real.signals import hung, low_passed
from nori_dyn.typing import Booleans, Floats

DATA = "iCub on one leg"
FIRST = 1457614036.659765
"""Time of the first sample of any stream [s]."""
STANDS = 13.07, 65.64
"""From when to when it stands on its left foot [s after the first sample]."""
BOTH = 0.5, 9.5
"""From when to when it stands on both feet before [s after the first sample]."""
TURNED = 25.0, 58.3
"""From when to when the lifted leg is turned out by 70 degrees [s after the first sample]."""
MARGIN = 2.0
"""Time before and after that a low-pass sees [s]."""
RATE = 100.0
"""Samples a second, as the mapping has it."""
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
COUPLES_LAST = [3, 4, 5, 0, 1, 2]
"""The order of these among ours."""
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


@dataclass(frozen=True, slots=True, eq=False)
class Stand:
    """What was estimated of the robot on one leg.

    Attributes:
        t: times (n,) [s after the first sample].
        sensors: what came of each sensor.
        before: the force on both feet before it lifted one, by their sensors less their offsets [N].
        weight: what is above these two sensors weighs [N].
    """

    t: Floats
    sensors: dict[str, Sensor]
    before: float
    weight: float


@lru_cache(maxsize=1)
def estimated(data: Path) -> Stand:
    """What was estimated. NumPy runs the plan: that takes less time than to compile it for one short log."""
    folder = data / "real" / "icub_one_leg"
    tree = robot(folder)
    links = {joint: tree.names[tree.joint_names.index(joint)] for joint in SENSORS.values()}
    outputs = [name for joint, link in links.items() for name in (f"f:{link}", f"offset:ft:{joint}")]
    plan = nd.plan(nd.System(tree, beside("icub_one_leg.sensors.yaml")), outputs=outputs)
    log = nd.read_log(folder / "left_leg.npz", beside("icub_one_leg.log.yaml"))
    found = nd.estimate(log, plan, differentiate=WINDOW, missing="drop", backend="numpy")
    assert found.t is not None
    t = found.t - FIRST
    stands = (t >= STANDS[0]) & (t <= STANDS[1])
    near = (t >= STANDS[0] - MARGIN) & (t <= STANDS[1] + MARGIN)  # what the low-pass is to see
    sensors: dict[str, Sensor] = {}
    before, weight = 0.0, -sum(tree.I[:, 5, 5]) * tree.gravity[2]
    for title, joint in SENSORS.items():
        read = readings(found, *(f"ft:{joint}.{component}" for component in COMPONENTS))
        expected = -found[f"f:{links[joint]}"][:, COUPLES_LAST]
        works = ~hung(read, SHORTEST)[stands]
        offset = found[f"offset:ft:{joint}"][stands][works].mean(axis=0)[COUPLES_LAST]
        if "foot" in title:  # soles are flat on the ground: z is up
            before += float(np.abs(np.mean((read - offset)[(t >= BOTH[0]) & (t <= BOTH[1]), 2])))
            weight += tree.I[tree.names.index(links[joint]), 5, 5] * tree.gravity[2]
        expected, read = (low_passed(x[near], RATE, CUTOFF)[stands[near]] for x in (expected, read))
        sensors[title] = Sensor(expected, read, works, offset)
    return Stand(t[stands], sensors, before, weight)


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    stand = estimated(data)
    chosen = (stand.t >= TURNED[0]) & (stand.t <= TURNED[1])
    found: list[Finding | Figure] = []
    for title, sensor in (
        ("wrench below the right hip", "right leg"),
        ("wrench of the standing foot", "left foot"),
        ("wrench below the left hip", "left leg"),
        ("wrench of the lifted foot", "right foot"),
    ):
        whole = stand.sensors[sensor]
        found += [compared(title, whole), compared(f"{title}, the leg turned out", part_of(whole, chosen))]
    return [
        *found,
        Figure(DATA, "force on both feet before, with the offsets of the time on one", stand.before, "N", stand.weight),
        Figure(
            DATA,
            "share of the time that the sensor of the left leg hung",
            float(np.mean(~stand.sensors["left leg"].works)),
        ),
        *identified(data),
    ]


def identified(data: Path) -> Iterator[Figure]:
    """Yield what the sensor below the right hip tells of the leg that hangs on it."""
    folder = data / "real" / "icub_one_leg"
    tree = robot(folder)
    links = beyond(tree, "r_leg_ft_sensor")
    wanted = [f"{of}:{link}*" for of in ("m", "mc", "I") for link in links]
    for (first, last), when in ((STANDS, "on one leg"), (TURNED, "the leg turned out")):
        with tempfile.TemporaryDirectory() as temporary:
            path = Path(temporary) / "leg.npz"
            np.savez(path, **between(folder / "left_leg.npz", FIRST + first, FIRST + last))
            found = nd.identify(
                nd.read_log(path, beside("icub_one_leg.log.yaml")),
                nd.System(tree, beside("icub_leg.sensors.yaml")),
                [*wanted, "offsets"],
                held_out=0,
                robust=True,
                cutoff=CUTOFF,
                differentiate=WINDOW,
                missing="drop",
            )
        for what, name in (
            ("mass of the leg", f"m:{links[0]} +"),
            ("first moment along the thigh, shank and foot at the knee", f"mc:{links[0]}.z +"),
            ("first moment along the shank, foot at the ankle", f"mc:{links[2]}.y +"),
        ):
            yield combination(DATA, f"{what}, {when}", found, name)
        for reading, offset in found.offsets.items():
            component = reading.rpartition(".")[2]
            unit = UNITS[COMPONENTS.index(component)]
            yield Figure(
                DATA,
                f"offset below the right hip, {component}, {when}",
                offset,
                unit,
                deviation=found.deviations[f"offset:{reading}"],
            )


def robot(folder: Path) -> nd.KinematicTree:
    """The robot, its base free."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", nd.errors.NoriWarning)
        return nd.load_urdf(folder / "iCubGenova02.urdf", base="floating", kept="sensors")


def beyond(tree: nd.KinematicTree, joint: str) -> list[str]:
    """The links that a joint carries."""
    found = [tree.joint_names.index(joint)]
    for i, parent in enumerate(tree.parents):
        if parent in found:
            found.append(i)
    return [tree.names[i] for i in found]


def between(path: Path, first: float, last: float) -> dict[str, Floats]:
    """The streams of a log between two times [s], each stream an array of times `NAME_t` and others."""
    arrays = np.load(path)
    clocks = [name for name in arrays.files if name.endswith("_t")]
    found = {}
    for clock in clocks:
        inside = (arrays[clock] >= first) & (arrays[clock] <= last)
        own = clock.removesuffix("t")
        found |= {name: arrays[name][inside] for name in arrays.files if name.startswith(own) or name == own[:-1]}
    return found


def part_of(sensor: Sensor, chosen: Booleans) -> Sensor:
    """Some of the samples of a sensor, with the offset that it has in these."""
    expected, read, works = sensor.expected[chosen], sensor.read[chosen], sensor.works[chosen]
    return Sensor(expected, read, works, (read - expected)[works].mean(axis=0))


def compared(estimate: str, sensor: Sensor) -> Finding:
    """How far what is expected of a sensor is from what it reads, less its offset, where it does not hang."""
    read = (sensor.read - sensor.offset)[sensor.works]
    against = "its force-torque sensor, less a constant offset"
    return held_against(DATA, estimate, against, COMPONENTS, UNITS, sensor.expected[sensor.works], read)

"""A real iCub on its left foot: the offsets of its six force-torque sensors, learned while it stands, by a filter.

The robot, its sensors and its motion are those of `icub_one_leg`; what persists are the 36 offsets. Three filters:

- constants: white noise is all that there is between what is read and what the model says, as `icub_one_leg` has it;
- walking: the offsets walk, and the noise is what it is;
- model: the offsets are constants, and on one link beside each sensor acts a wrench that nobody told, which fades in
  seconds: what the model is off.

What walks and wrenches amount to comes from the first half of the time on one leg, and is held against the second half.

Held against: later estimates, which are to lie within the deviations of earlier ones; and readings that come some
seconds later, less the offset that was known when they were still to come.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.icub_one_leg import (
    COMPONENTS,
    COUPLES_LAST,
    CUTOFF,
    FIRST,
    RATE,
    SENSORS,
    STANDS,
    UNITS,
    WINDOW,
    robot,
)
from benchmarks.real.recording import beside, readings
from benchmarks.real.signals import low_passed
from nori_dyn.estimation.tracker import Filter
from nori_dyn.system.inputs import dropped
from nori_dyn.typing import Booleans, Floats, Indices

DATA = "iCub on one leg, offsets learned online"
KINDS = "constants", "walking", "model"
ORDER = ("mx", "my", "mz", "fx", "fy", "fz")
"""The order of the components in what is remembered."""
ALONE = STANDS[0], 61.5
"""From when to when nothing but the left foot touches the ground [s after the first sample]: the right one is early."""
MIDDLE = float(np.mean(ALONE))
"""When the second half begins [s after the first sample]."""
BLOCK = 0.2
"""Time over which errors are averaged, so that what is left is slow [s]."""
LAGS = 0.4, 1.0, 2.0, 5.0, 10.0
"""Times over which it is looked how far errors walk [s]."""
FADES = 10.0
"""Time in which what the model is off fades [s]."""
CAUTION = 1.5
"""Deviation of what the model is off, over what it was in the first half."""
AHEAD = 5.0
"""How long before a reading the offset was known that it is held against [s]."""
STEP = 0.2
"""Time between looks at what is known [s]."""
LAST = 1.0
"""Estimates of the last second are not held against the last one [s]."""
ABOVE = ("l_foot_ft_sensor", "l_leg_ft_sensor")
"""Sensors between the ground and the rest of the robot: what is wrong above them is what they see."""


@dataclass(frozen=True, slots=True, eq=False)
class Motion:
    """The log on one leg.

    Attributes:
        t: times (n,) [s after the first sample].
        q, qd: states (n, nq), (n, nv).
        y: readings (n, ny); nan where a sensor repeats itself to the last digit.
        names: of these.
        read: what each sensor reads (n, 6), in the order of `ORDER`.
        errors: what each sensor reads too much (n, 6), in the order of `ORDER`.
        works: where each sensor does not repeat itself (n,).
    """

    t: Floats
    q: Floats
    qd: Floats
    y: Floats
    names: tuple[str, ...]
    read: dict[str, Floats]
    errors: dict[str, Floats]
    works: dict[str, Booleans]


@dataclass(frozen=True, slots=True, eq=False)
class OffsetHistory:
    """What a filter knew of the offsets over time.

    Attributes:
        at: the samples after which that is said (m,).
        mean: (m, 36).
        variance: (m, 36).
        walk: by which they walk in a second (36,).
        ratio: chi-square over its degrees of freedom, over the whole time.
    """

    at: Indices
    mean: Floats
    variance: Floats
    walk: Floats
    ratio: float


@lru_cache(maxsize=1)
def motion(data: Path) -> Motion:
    """The log."""
    folder = data / "real" / "icub_one_leg"
    tree = robot(folder)
    outputs = [f"offset:ft:{joint}" for joint in SENSORS.values()]
    plan = nd.plan(nd.System(tree, beside("icub_one_leg.sensors.yaml")), outputs=outputs)
    log = nd.read_log(folder / "left_leg.npz", beside("icub_one_leg.log.yaml"))
    found = nd.estimate(log, plan, differentiate=WINDOW, missing="drop", backend="numpy")
    assert found.t is not None
    t = found.t - FIRST
    inside = (t >= ALONE[0]) & (t <= ALONE[1])
    names, y = plan.system.measurement_names, found.samples.y[inside].copy()
    read, errors, works = {}, {}, {}
    for joint in SENSORS.values():
        places = [names.index(f"ft:{joint}.{component}") for component in ORDER]
        repeated = np.concatenate([[False], np.all(np.diff(y[:, places], axis=0) == 0, axis=1)])
        read[joint] = readings(found, *(f"ft:{joint}.{component}" for component in ORDER))[inside]
        errors[joint] = found[f"offset:ft:{joint}"][inside]
        works[joint] = ~repeated & np.isfinite(errors[joint]).all(axis=1)
        y[np.ix_(repeated, places)] = np.nan
    return Motion(t[inside], found.samples.q[inside], found.samples.qd[inside], y, names, read, errors, works)


def spreads(log: Motion, joint: str) -> tuple[Floats, Floats, Floats]:
    """Of a sensor's errors in the first half the noise, how they walk in a second, and their deviation (6,)."""
    first = log.t < MIDDLE
    errors = np.where((first & log.works[joint])[:, None], log.errors[joint], np.nan)[first]
    noise = np.nanstd(np.diff(errors, axis=0), axis=0) / np.sqrt(2)
    n = round(BLOCK * RATE)
    blocks = errors[: len(errors) // n * n].reshape(-1, n, 6)
    full = np.isfinite(blocks).all(axis=2).sum(axis=1) > n // 2
    slow = np.full((len(blocks), 6), np.nan)
    slow[full] = np.nanmean(blocks[full], axis=1)
    walks = []
    for lag in LAGS:
        k = round(lag / BLOCK)
        walks.append(np.sqrt(np.nanmean((slow[k:] - slow[:-k]) ** 2, axis=0) / lag))
    return noise, np.max(walks, axis=0), np.nanstd(slow, axis=0)


def sensors(tree: nd.KinematicTree, log: Motion, kind: str) -> nd.SensorSet:
    """The sensors of one of the filters."""
    content: dict[str, Any] = yaml.safe_load(beside("icub_one_leg.sensors.yaml").read_text())
    wrenches, reading = content["measurements"][-2:]
    own, memory, slack = [], {}, []
    for joint in SENSORS.values():
        noise, walk, slow = (each.tolist() for each in spreads(log, joint))
        sigma = reading["sigma"] if kind == "constants" else noise
        own.append({**reading, "joints": joint, "sigma": sigma})
        memory[joint] = {"of": f"offset:ft:{joint}", "walk": walk if kind == "walking" else 0.0}
        if kind == "model":
            i = tree.joint_names.index(joint)
            link = tree.names[tree.parents[i] if joint in ABOVE else i]
            size = [CAUTION * value for value in slow]
            rate = [value * np.sqrt(2 / FADES) for value in size]
            memory[f"{joint} model"] = {"of": f"fx:{link}", "sigma": size, "walk": rate, "time_constant": FADES}
            slack.append(link)
    known = {**wrenches, "links": {"except": ["l_sole", *slack]}}
    content["measurements"] = [*content["measurements"][:-2], known, *own]
    return nd.SensorSet.from_dict({**content, "name": f"icub_{kind}", "memory": memory})


@lru_cache(maxsize=3)
def learned(data: Path, kind: str) -> OffsetHistory:
    """What one of the filters knew over time."""
    log = motion(data)
    tree = robot(data / "real" / "icub_one_leg")
    system = nd.System(tree, sensors(tree, log, kind))
    outputs = [f"offset:ft:{joint}" for joint in SENSORS.values()]
    filter_ = Filter(nd.plan(system, outputs=outputs), 1 / RATE)
    order = [log.names.index(name) for name in system.measurement_names]
    wanted = [f"offset:ft:{joint}.{component}" for joint in SENSORS.values() for component in ORDER]
    places = [filter_.memory_names.index(name) for name in wanted]
    at = np.arange(0, len(log.t), round(STEP * RATE))
    mean, variance = np.empty((len(at), 36)), np.empty((len(at), 36))
    Y, W = dropped(system, log.y[:, order], np.broadcast_to(system.weights, (len(log.t), system.n_weights)))
    for k in range(at[-1] + 1):
        inputs = filter_.inputs
        inputs.q[:], inputs.qd[:], inputs.y[:], inputs.weights[:] = log.q[k], log.qd[k], Y[k], W[k]
        filter_.tick(float(log.t[k] - log.t[k - 1]) if k else None).raise_for_status()
        if k % round(STEP * RATE) == 0:
            state = filter_.state
            mean[k // round(STEP * RATE)] = state.mean[places]
            variance[k // round(STEP * RATE)] = np.diagonal(state.covariance)[places]
    walks = [spreads(log, joint)[1] if kind == "walking" else np.zeros(6) for joint in SENSORS.values()]
    return OffsetHistory(at, mean, variance, np.concatenate(walks), filter_.consistency.ratio)


def honesty(log: Motion, found: OffsetHistory) -> Floats:
    """How far the last estimate is from earlier ones of the second half, over what these say (m, 36).

    A later estimate knows all that an earlier one does, so that the variance of what it changes is the difference of
    theirs, and what the offset may have walked.
    """
    t = log.t[found.at]
    early = (t >= MIDDLE) & (t <= t[-1] - LAST)
    change = found.mean[-1] - found.mean[early]
    gained = np.square(found.walk) * (t[-1] - t[early])[:, None]
    return np.asarray(change / np.sqrt(np.maximum(found.variance[early] + gained - found.variance[-1], 1e-12)))


def run(data: Path, kinds: Sequence[str] = KINDS) -> list[Finding | Figure]:
    """What came of the data set, by some of the filters."""
    return [*compared(data), *(figure for kind in kinds for figure in judged(data, kind))]


def compared(data: Path) -> Iterator[Finding]:
    """Yield how far readings less what was known of offsets are from what the motion asks for."""
    log = motion(data)
    joints = list(SENSORS.values())
    late = round(AHEAD * RATE)
    at = np.flatnonzero(log.t >= MIDDLE)
    for title, joint in SENSORS.items():
        own = slice(6 * joints.index(joint), 6 * joints.index(joint) + 6)
        seen = at[log.works[joint][at]]
        first = log.errors[joint][(log.t < MIDDLE) & log.works[joint]].mean(axis=0)
        slow_read, slow_error = (low_passed(x, RATE, CUTOFF)[seen] for x in (log.read[joint], log.errors[joint]))
        what = {"as read": np.zeros(6), "less the mean of the first half": first}
        for kind in KINDS[:2]:
            known = learned(data, kind)
            what[f"less the offset {AHEAD:g} s before, {kind}"] = known.mean[
                np.searchsorted(known.at, seen - late, side="right") - 1, own
            ]
        for name, offset in what.items():
            found = held_against(
                DATA,
                f"{title}, {name}",
                "what its motion asks for",
                COMPONENTS,
                UNITS,
                (slow_read - offset)[:, COUPLES_LAST],
                (slow_read - slow_error)[:, COUPLES_LAST],
            )
            yield replace(found, is_detail=True)


def judged(data: Path, kind: str) -> Iterator[Figure]:
    """Yield whether the deviations of a filter are honest, and how large they are."""
    log = motion(data)
    found = learned(data, kind)
    z = honesty(log, found)
    yield Figure(DATA, f"{kind}: later estimates within 3 deviations, share", float(np.mean(np.abs(z) <= 3)), "", 0.997)
    yield Figure(
        DATA,
        f"{kind}: worst of the 36 offsets, rms over its deviation",
        float(np.sqrt(np.mean(z**2, axis=0)).max()),
        "",
        1,
    )
    yield Figure(DATA, f"{kind}: rms over deviations, all offsets", float(np.sqrt(np.mean(z**2))), "", 1)
    yield Figure(DATA, f"{kind}: chi-square over degrees of freedom", found.ratio, "", 1)
    spread = np.sqrt(found.variance[-1].reshape(6, 6))
    yield Figure(DATA, f"{kind}: deviation of forces at the end, largest", float(spread[:, 3:].max()), "N")
    yield Figure(DATA, f"{kind}: deviation of moments at the end, largest", float(spread[:, :3].max()), "N m")

"""Whether q and qd are plausible: within the limits, increasing times, q consistent with qd, and qd with qdd."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import numpy as np

from nori_dyn.algebra.ranges import holding
from nori_dyn.measurements.binding import scalar_rows
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.plausibility.warning import DEGREE, PlausibilityWarning, counted
from nori_dyn.system.builder import System
from nori_dyn.tables import number
from nori_dyn.typing import Booleans, Floats

FEW = 0.02
"""Share of the samples that may be outside the limits without a word."""

SLACK = 0.05
"""Share of a joint's range by which it may be outside: limits in models are rarely those of the stops."""

STRIDES = 100
"""Parts of a log over which motion is compared: long against the noise of a sample, short against drift."""

MOTION = 0.02
"""Range [rad, m] of q from which on a joint is taken to move."""

FAR = 10.0
"""Size [rad, m, rad/s] from which on another unit is likely."""

RELATED = (0.5, 0.9)
"""Correlation of q and qd up to which they are taken for different motions, and from which on for the same."""

APART = (0.2, 0.4)
"""How far the motion by a velocity may be from that of the position that it is of, and how far that of another is."""

DEGREES = "Angles look like degrees."

STEP = "is the step of time right?"

DEGREES_IN_WORDS = {
    "q": ("degrees", "rad"),
    "qd": ("degrees per second", "rad/s"),
    "qdd": ("degrees per second squared", "rad/s^2"),
}
"""Units that angles and their rates may have by mistake, and those that they should have."""

LATE, SEVERAL, OFTEN = 5.0, 2, 0.05
"""How many usual steps of time make a gap; gaps, and their share of all steps, from which on time goes on in bursts."""

SAME = (0.5, 2.0)
"""Ratio of the motion of q to that by qd, where the two agree but for noise."""

HALF_A_TURN = math.pi + 1e-6
"""Angles that are never farther apart than twice that may jump by a turn [rad]."""


def limits(tree: KinematicTree, q: Floats) -> Iterator[PlausibilityWarning]:
    """Yield a warning where configurations (N, nq) are outside the joint limits."""
    limited = [i for i in range(tree.n_links) if _is_limited(tree, i)]
    if not limited:
        return
    lower, upper = np.array([tree.joints[i].limits for i in limited]).T  # type: ignore[attr-defined]
    slack = SLACK * np.where(np.isfinite(upper - lower), upper - lower, math.pi)
    turns = np.array([tree.joints[i].coordinates[0] == "angle" for i in limited])
    positions = q[:, [tree.q_slices[i].start for i in limited]]

    def outside(positions: Floats) -> Booleans:
        return np.asarray((positions < lower - slack) | (positions > upper + slack))

    found = outside(positions)
    share = float(found.any(axis=1).mean())
    if share <= FEW:
        return
    explanations = {
        DEGREES: np.where(turns & reaches_far(positions[:, turns]), positions / DEGREE, positions),
        "Lengths look like millimetres.": np.where(
            ~turns & reaches_far(positions[:, ~turns]), positions / 1000, positions
        ),
        "They are within these less whole turns: map q with `orientation: modulo`.": np.where(
            turns, (positions + math.pi) % math.tau - math.pi, positions
        ),
    }
    fits = [words for words, other in explanations.items() if outside(other).any(axis=1).mean() <= share / 10]
    worst = int(np.argmax(found.sum(axis=0)))
    low, high = (number(end, 4) for end in (positions[:, worst].min(), positions[:, worst].max()))
    yield PlausibilityWarning(
        "limits",
        share,
        f"q is outside the joint limits at {counted(share, len(q))}: '{tree.joint_names[limited[worst]]}' is "
        f"{low if low == high else f'between {low} and {high}'} {'rad' if turns[worst] else 'm'}, its limits are "
        f"{number(lower[worst], 4)} and {number(upper[worst], 4)}. "
        f"{fits[0] if fits else 'Are units and order of the joints those of the model?'}",
    )


def degrees(tree: KinematicTree, q: Floats) -> PlausibilityWarning | None:
    """The warning that the angles in configurations (N, nq) are degrees, where they are outside their limits."""
    return next((each for each in limits(tree, q) if each.message.endswith(DEGREES)), None)


def rates(tree: KinematicTree, q: Floats, qd: Floats, dt: float) -> Iterator[PlausibilityWarning]:
    """Yield a warning where configurations (N, nq) contradict velocities (N, nv), at samples dt [s] apart.

    Joints with quaternions are left out.
    """
    rates_of: dict[str, Floats] = {}
    moved: dict[str, Floats] = {}
    for i, joint in enumerate(tree.joints):
        for k, kind in enumerate(joint.coordinates if "quaternion" not in joint.coordinates else ()):
            name, position = tree.joint_names[i], q[:, tree.q_slices[i].start + k]
            position = unwrapped(position) if kind == "angle" else position
            rates_of[name] = qd[:, tree.v_slices[i].start + k]
            if np.ptp(position) > MOTION:
                moved[name] = position
    moving = {name: compared(position, rates_of[name], dt) for name, position in moved.items()}
    alone = [name for name, (correlation, _) in moving.items() if abs(correlation) < RELATED[0]]
    swapped = [
        (one, other)
        for one, position in moved.items()
        for other, velocity in rates_of.items()
        if _apart(position, rates_of[one], dt) > APART[1] and _apart(position, velocity, dt) < APART[0]
    ]
    if swapped:
        words = " and ".join(f"q of '{one}' moves with qd of '{other}'" for one, other in swapped[:2])
        yield PlausibilityWarning("rates", 1.0, f"{words}. Are both in the order of the model?")
    elif moving and len(alone) == len(moving):
        words = "q does not move with qd, at any joint. Are they of the same samples, in the order of the model?"
        yield PlausibilityWarning("rates", 1.0, words)
    yield from _disagreeing("rates", "q moves {} times as far as the integral of qd", ("q", "qd"), moving, dt)


def _apart(position: Floats, velocity: Floats, dt: float) -> float:
    """How far the motion of a position is from that by a velocity, as a share of the motion."""
    moved, stated = _strides(position, velocity, dt)
    return float(np.linalg.norm(moved - stated)) / max(float(np.linalg.norm(moved)), 1e-300)


def accelerations(system: System, qd: Floats, y: Floats, dt: float) -> Iterator[PlausibilityWarning]:
    """Yield a warning where velocities (N, nv) contradict the accelerations among readings (N, ny).

    Accelerations that are noisy are not compared: those that go along with the velocities are.
    """
    tree = system.tree
    moving: dict[str, tuple[float, float]] = {}
    for place, stated in freedoms_read(system, y, "qdd"):
        if np.isfinite(stated).all() and np.ptp(qd[:, place]) > MOTION:
            moving[joint_of(tree, place)] = compared(qd[:, place], stated, dt)
    yield from _disagreeing(
        "accelerations", "qd changes {} times as much as the integral of qdd", ("qd", "qdd"), moving, dt
    )


def freedoms_read(system: System, y: Floats, *kinds: str) -> Iterator[tuple[int, Floats]]:
    """Yield what readings (N, ny) say of single freedoms (N,), by their places among the nv.

    Args:
        system: the system.
        y: the readings.
        kinds: of variables, such as "qdd".
    """
    for row, k, freedom, factor in scalar_rows(system, system.measurements, *kinds):
        yield freedom, y[:, row.y.start + k] / factor


def joint_of(tree: KinematicTree, place: int) -> str:
    """Name of the joint of a freedom."""
    return tree.joint_names[holding(tree.v_slices, place)]


def _disagreeing(
    check: str, words: str, kinds: tuple[str, str], moving: Mapping[str, tuple[float, float]], dt: float
) -> Iterator[PlausibilityWarning]:
    """Yield a warning where a motion and its rates correlate, but differ in size.

    Args:
        check: the name of the check.
        words: the message on their ratio.
        kinds: the quantity and its rate: keys of `DEGREES_IN_WORDS`.
        moving: correlation, and how much further it moves, of each joint that does.
        dt: time between samples [s].
    """
    off = {
        name: slope
        for name, (correlation, slope) in moving.items()
        if abs(correlation) >= RELATED[1] and not SAME[0] <= slope <= SAME[1]
    }
    if off:
        slope = float(np.median(list(off.values())))
        where = "every joint" if len(off) == len(moving) else ", ".join(f"'{name}'" for name in [*off][:4])
        yield PlausibilityWarning(
            check,
            1.0,
            f"{words.format(number(slope, 4))} with {dt:g} s between samples, at {where}. "
            f"{_explained(slope, dt, *kinds)}",
        )


def clock(t: Floats, dt: float | None) -> Iterator[PlausibilityWarning]:
    """Yield a warning where times (N,) do not increase, not by dt [s] a sample, or in bursts."""
    halts = ~(np.diff(t) > 0)
    if halts.any():
        share = float(halts.sum() / len(t))
        yield PlausibilityWarning(
            "clock", share, f"time does not increase at {counted(share, len(t))}. Are some missing, or doubled?"
        )
        return
    found = step(t)
    if dt is not None and found is not None and not SAME[0] < found / dt < SAME[1]:
        yield PlausibilityWarning(
            "clock", 1.0, f"time increases by {found:.4g} a sample, and the given time step is {dt:g} s."
        )
    elif dt is None and found is not None:
        steps = np.diff(t)
        late, short = steps > LATE * found, steps < found / 2
        lost, made_up = (float(np.abs(steps[which] - found).sum()) for which in (late, short))
        if late.sum() > SEVERAL and (late.mean() > OFTEN or made_up > lost / 2):
            share, size = float(late.mean()), float(np.median(steps[late]))
            yield PlausibilityWarning(
                "clock",
                share,
                f"time goes on in bursts: {counted(share, len(t))} are {number(size, 3)} s after the one before, and "
                "those that follow make up for it, as if they were stamped when they arrived. A mapping spaces them "
                f"evenly: `streams: {{'': {{step: {number((t[-1] - t[0]) / (len(t) - 1), 4)}}}}}`.",
            )


def step(t: Floats) -> float | None:
    """The median time between samples at times (N,); None where there is none."""
    found = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    return found if 0 < found < np.inf else None


def reaches_far(values: Floats) -> bool:
    """Whether angles [rad], lengths [m] or their rates reach beyond where they usually are."""
    return bool(np.abs(values).max(initial=0.0) > FAR)


def angular(tree: KinematicTree) -> tuple[Booleans, Booleans]:
    """Which numbers of q (nq,) are angles, and which of qd (nv,) are angular velocities."""
    in_q = [kind == "angle" for joint in tree.joints for kind in joint.coordinates]
    in_qd = [turns for joint in tree.joints for turns in joint.is_angular]
    return np.array(in_q, dtype=bool), np.array(in_qd, dtype=bool)


def _is_limited(tree: KinematicTree, i: int) -> bool:
    lower, upper = getattr(tree.joints[i], "limits", (-math.inf, math.inf))
    return bool(lower < upper and (math.isfinite(lower) or math.isfinite(upper)))


def unwrapped(angle: Floats) -> Floats:
    """An angle (N,) without the jumps of one that is kept within a turn."""
    return np.asarray(np.unwrap(angle)) if np.ptp(angle) <= 2 * HALF_A_TURN else angle


def _strides(position: Floats, velocity: Floats, dt: float) -> tuple[Floats, Floats]:
    """The motion of a joint in each part of a log, and that by its velocity."""
    starts = np.arange(0, len(position) - 1, max(1, len(position) // STRIDES))
    steps = np.diff(position), dt * (velocity[1:] + velocity[:-1]) / 2
    moved, stated = (np.add.reduceat(each, starts) for each in steps)
    return moved, stated


def compared(position: Floats, velocity: Floats, dt: float) -> tuple[float, float]:
    """The correlation of a joint's motion with that by its velocity, and the ratio of their sizes."""
    moved, stated = _strides(position, velocity, dt)
    lengths = np.linalg.norm(moved), np.linalg.norm(stated)
    if not (0 < lengths[0] < np.inf and 0 < lengths[1] < np.inf):
        return 0.0, 1.0
    correlation = float(moved @ stated / (lengths[0] * lengths[1]))
    return correlation, float(np.copysign(lengths[0] / lengths[1], correlation))


def _explained(slope: float, dt: float, moving: str, rate: str) -> str:
    """The explanation for a motion that is so much larger than its rate."""
    (degrees, radians), (rate_degrees, rate_radians) = DEGREES_IN_WORDS[moving], DEGREES_IN_WORDS[rate]
    explanations = {
        DEGREE: f"{moving} looks like {degrees}, or {rate} like {rate_radians} that were taken for {rate_degrees}.",
        1 / DEGREE: f"{rate} looks like {rate_degrees}, or {moving} like {radians} that were taken for {degrees}.",
        -1.0: "One of the two has the other sign.",
    }
    near = [words for factor, words in explanations.items() if 0.9 < slope / factor < 1.1]
    return near[0] if near else f"They agree with {slope * dt:.3g} s between samples: {STEP}"

"""Whether wrenches, torques and accelerations are plausible for the robot's weight and reach."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nori_dyn.measurements.acceleration import FrameAcceleration
from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.binding import without_offset
from nori_dyn.model.joints import FORCE, MOTION
from nori_dyn.model.tree import GRAVITY, KinematicTree
from nori_dyn.recursions.centroidal import momentum_rate
from nori_dyn.solve.estimate import Estimate
from nori_dyn.solve.plausibility.warning import PlausibilityWarning, counted
from nori_dyn.system.builder import System
from nori_dyn.system.rows import RowBlock
from nori_dyn.system.variables import LOAD
from nori_dyn.tables import number
from nori_dyn.typing import Floats

LARGE = 30.0
"""How many times the robot's weight, or that at its full reach, nothing is likely to be for long."""

LONG = 0.1
"""Share of the samples that is long."""

SHORT = 0.1
"""Smallest reach [m] that couples are compared with."""

CARRIED, FEWEST = (0.7, 1.4), 100
"""Average of the forces that carry a robot, over its weight; and samples from which on it is one."""

AT_REST = (0.2, 5.0)
"""What the median reading of an accelerometer may be over gravity, at a robot that does not fall most of the time."""


def robot_weight(tree: KinematicTree) -> float:
    """The weight of all that moves [N], on Earth where the tree has no gravity."""
    return float(tree.I[:, 5, 5].sum() * (np.linalg.norm(tree.gravity) or np.linalg.norm(GRAVITY)))


def reach(tree: KinematicTree) -> float:
    """The length of the longest chain of the robot [m], up to centres of mass."""
    lengths: list[float] = []
    for i, parent in enumerate(tree.parents):
        before = 0.0 if tree.is_root(i) else lengths[parent] + float(np.linalg.norm(tree.X_tree[i].r))
        lengths.append(before)
    masses = np.maximum(tree.I[:, 5, 5], 1e-12)
    centres = np.linalg.norm([tree.I[:, 2, 4], tree.I[:, 0, 5], tree.I[:, 1, 3]], axis=0) / masses
    return float(np.max(np.array(lengths) + np.where(tree.I[:, 5, 5] > 0, centres, 0.0)))


def readings(system: System, y: Floats, falls: bool = False) -> Iterator[PlausibilityWarning]:
    """Yield warnings about the sizes of readings (N, ny), of gravity where the robot does not fall."""
    for row in system.measurements:
        if _feels_gravity(row) and not falls:
            yield from _gravity(system.tree, row, y[:, row.y])
        for unit, columns in _wrench_columns(system.tree, row).items():
            yield from _too_large(system.tree, "magnitudes", f"'{row.name}'", unit, y[:, row.y][:, columns])


def estimates(system: System, q: Floats, estimate: Estimate) -> Iterator[PlausibilityWarning]:
    """Yield warnings about estimated wrenches, (N, n_links, 6) or (N, 6), at configurations (N, nq)."""
    for name, values in estimate.values.items():
        if estimate.kinds[name] in ("f", "fx"):
            forces = values.reshape(len(values), -1, 6)[..., 3:].reshape(len(values), -1)
            yield from _too_large(system.tree, "estimate", f"the estimate of {name}", "N", forces)
    yield from _carried(system, q, estimate)


def _carried(system: System, q: Floats, estimate: Estimate) -> Iterator[PlausibilityWarning]:
    """Yield a warning where forces on a robot that nothing else carries are not its weight, on average."""
    tree, up = system.tree, -np.array(system.tree.gravity)
    at = {
        name: tree.frame(name.partition(":")[2])
        for name, kind in estimate.kinds.items()
        if kind == "fx" and ":" in name
    }
    untouched = {
        row.equation.key.body
        for row in system.rows
        if isinstance(row.equation, VariableReading) and row.equation.key.kind == "fx" and len(row.component_names) == 6
        if row.is_exact and row.y.start == row.y.stop
    }
    links = sorted(frame.link for frame in at.values())
    floats = all(tree.joints[i].nq == 7 for i in range(tree.n_links) if tree.is_root(i))
    if not links or not floats or not np.any(up) or links != [i for i in range(tree.n_links) if i not in untouched]:
        return
    fx = np.zeros((tree.n_links, 6, len(q)))
    for name, frame in at.items():
        fx[frame.link, 3:] = frame.X.E.T @ estimate.values[name][:, 3:].T
    usable = np.isfinite(fx).all(axis=(0, 1))
    if usable.sum() < FEWEST:
        return
    rate = np.asarray(momentum_rate(tree, q[usable].T, fx[..., usable]), dtype=float)[3:].mean(axis=1)
    weight = robot_weight(tree)
    share = 1 + float(rate @ up) / float(np.linalg.norm(up)) / weight
    if not CARRIED[0] < share < CARRIED[1]:
        yield PlausibilityWarning(
            "estimate",
            1.0,
            f"the forces that carry the robot are {number(share * weight)} N upwards, on average, and it weighs "
            f"{number(weight)} N. Are torques those of the joints, and is it this robot?",
        )


def _too_large(tree: KinematicTree, check: str, what: str, unit: str, values: Floats) -> Iterator[PlausibilityWarning]:
    """Yield a warning where values (N, n) are large for long."""
    usual = robot_weight(tree) * (1.0 if unit == "N" else max(reach(tree), SHORT))
    largest = np.max(np.nan_to_num(np.abs(values)), axis=1, initial=0.0)
    share = float((largest > LARGE * usual).mean())
    if not usual or share <= LONG:
        return
    size = float(np.median(largest[largest > LARGE * usual]))
    compared = "the weight of the robot" if unit == "N" else "its weight times the length of its longest chain"
    hint = f" It looks like m{unit}." if check == "magnitudes" and size / 1000 < LARGE * usual else ""
    yield PlausibilityWarning(
        check,
        share,
        f"{what} is {number(size)} {unit}, {number(size / usual, 2)} times {compared}, at "
        f"{counted(share, len(values))}.{hint}",
    )


def _wrench_columns(tree: KinematicTree, row: RowBlock) -> dict[str, list[int]]:
    """Which numbers of a reading are couples or torques [N m], and which are forces [N]."""
    components, read = row.equation.components, without_offset(row.equation)
    if isinstance(read, VariableReading) and read.key.kind in ("tau", LOAD):
        are_couples = tree.joints[read.key.body].is_angular
    elif set(components) <= set(FORCE):
        are_couples = tuple(component in FORCE[:3] for component in components)
    else:
        return {}
    return {
        "N m": [k for k, is_couple in enumerate(are_couples) if is_couple],
        "N": [k for k, is_couple in enumerate(are_couples) if not is_couple],
    }


def _feels_gravity(row: RowBlock) -> bool:
    """Whether a row reads all of the proper acceleration of a frame, as an accelerometer does."""
    read = without_offset(row.equation)
    reads = isinstance(read, FrameAcceleration) and not read.at_rest
    return reads and set(row.equation.components) == set(MOTION[3:])


def _gravity(tree: KinematicTree, row: RowBlock, values: Floats) -> Iterator[PlausibilityWarning]:
    """Yield a warning where an accelerometer (N, n) does not measure gravity."""
    gravity = float(np.linalg.norm(tree.gravity))
    lengths = np.linalg.norm(values, axis=1)
    lengths = lengths[np.isfinite(lengths)]
    if not gravity or not len(lengths):
        return
    felt = float(np.median(lengths))
    if AT_REST[0] < felt / gravity < AT_REST[1]:
        return
    explanations = {
        "It looks like g instead of m/s^2.": felt,
        "It looks like thousandths of g.": felt / 1000,
        "It looks like mm/s^2.": felt / 1000 / gravity,
    }
    near = [words for words, in_g in explanations.items() if 0.8 < in_g < 1.25]
    hint = near[0] if near else "At rest an accelerometer measures gravity, upwards: was it subtracted?"
    yield PlausibilityWarning(
        "magnitudes", 1.0, f"'{row.name}' is {number(felt)} m/s^2 in the median, and gravity {number(gravity)}. {hint}"
    )

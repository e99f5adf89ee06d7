"""Whether measured joint torques follow gravity where a robot moves slowly: those of some drivers are without it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from nori_dyn.measurements.base import VariableReading
from nori_dyn.measurements.binding import without_offset
from nori_dyn.recursions.rnea import rnea
from nori_dyn.solve.plausibility.motion import STRIDES
from nori_dyn.solve.plausibility.warning import PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.system.variables import LOAD
from nori_dyn.tables import number
from nori_dyn.typing import Floats

SLOW = 0.3
"""Share of the torques of gravity up to which those of the motion count for nothing."""

FEWEST = 10
"""Slow parts of a log from which on it tells."""

VARIES = 0.2
"""Share of the largest torque of gravity by which that in a joint must vary."""

UNRELATED = (0.4, 0.7)
"""Slope of torques over those of gravity, and correlation, below which the two have nothing to do with each other."""

BARE = ("friction", "rotor")
"""Components that leave the torques of gravity as they are."""


def without_gravity(system: System, q: Floats, qd: Floats, y: Floats, dt: float) -> Iterator[PlausibilityWarning]:
    """Yield a warning where torques among readings (N, ny) do not follow gravity, at samples dt [s] apart.

    Wrong gains or signs are another thing: such torques follow it, by another slope.
    """
    tree, read = system.tree, dict(_torques(system, y))
    is_bare = not tree.closing_parts and all(each.type in BARE for each in tree.components)
    if not read or not is_bare or tree.nq != tree.nv or not np.any(tree.gravity):
        return
    width = max(3, len(q) // STRIDES)
    parts = len(q) // width
    if parts < FEWEST:
        return
    q, qd, torques = (
        values[: parts * width].reshape(parts, width, -1) for values in (q, qd, np.column_stack([*read.values()]))
    )
    qdd = (qd[:, -1] - qd[:, 0]) / ((width - 1) * dt)
    is_known = np.isfinite(torques).all(axis=(1, 2))
    middle, rates, torques = (values.mean(axis=1) for values in (q, qd, torques))
    bare, zero = tree.replace(components=()), np.zeros(rates.T.shape)
    held, moved = (np.asarray(rnea(bare, middle.T, *of), dtype=float).T for of in ((zero, zero), (rates.T, qdd.T)))
    is_slow = is_known & (np.linalg.norm(moved - held, axis=1) <= SLOW * np.linalg.norm(held, axis=1))
    if is_slow.sum() < FEWEST:
        return
    gravity, torques = held[is_slow][:, [*read]], torques[is_slow]
    tells = gravity.std(axis=0) > VARIES * np.abs(held).max()
    varied, other = (values[:, tells] - values[:, tells].mean(axis=0) for values in (gravity, torques))
    shared, sizes = float(np.sum(varied * other)), (float(np.linalg.norm(varied)), float(np.linalg.norm(other)))
    slope, scale = UNRELATED[0] * sizes[0] ** 2, UNRELATED[1] * sizes[0] * sizes[1]
    if not tells.any() or abs(shared) > slope or abs(shared) > scale:
        return
    worst = int(np.argmax(np.where(tells, gravity.std(axis=0), 0.0)))
    joint = next(k for k, at in enumerate(tree.v_slices) if at.start <= [*read][worst] < at.stop)
    changes = (f"{number(values[:, worst].std(), 2)} N m" for values in (torques, gravity))
    yield PlausibilityWarning(
        "gravity",
        1.0,
        f"the torques do not follow gravity where the robot moves slowly: that of '{tree.joint_names[joint]}' changes "
        f"by {next(changes)}, and gravity's by {next(changes)}, unrelated. Did the driver subtract gravity, as newer "
        "ones of Universal Robots do? Log torques that hold it, or currents.",
    )


def _torques(system: System, y: Floats) -> Iterator[tuple[int, Floats]]:
    """Yield the torques that are read, by their places among the nv."""
    for row in system.measurements:
        read = without_offset(row.equation)
        if not isinstance(read, VariableReading) or read.key.kind not in ("tau", LOAD):
            continue
        for own, said in zip(np.asarray(read.matrix, dtype=float), y[:, row.y].T, strict=True):
            (places,) = np.nonzero(own)
            if len(places) == 1:
                yield system.tree.v_slices[read.key.body].start + int(places[0]), said / own[places[0]]

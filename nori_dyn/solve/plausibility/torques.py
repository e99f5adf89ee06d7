"""Whether measured joint torques are those that the motion asks of the model.

Those of some drivers are without gravity; others are of another sign, unit, gain, order of joints, or robot.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product

import numpy as np

from nori_dyn.algebra.ranges import holding
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.rnea import rnea
from nori_dyn.solve.plausibility.magnitudes import reach, robot_weight
from nori_dyn.solve.plausibility.motion import STRIDES, angular, freedoms_read, joint_of, unwrapped
from nori_dyn.solve.plausibility.warning import DEGREE, PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.system.variables import LOAD
from nori_dyn.tables import number
from nori_dyn.typing import Floats

SLOW = 0.3
"""Share of the torques of gravity up to which those of the motion count for nothing."""

FEWEST = 10
"""Parts of a log from which on it tells."""

VARIES = 0.2
"""Share of the largest torque of gravity by which that in a joint must vary, or of the largest that it must be."""

UNRELATED = (0.4, 0.7)
"""Slope of torques over those of gravity, and correlation, below which the two have nothing to do with each other."""

LEAST = 0.05
"""Torques from which on they are more than friction, as a share of the robot's weight at its full reach: those of a
motion that tell, and what is wrong about those of a joint."""

CANCELLED = 0.4
"""Share of the torques of gravity and of motion below which their sum does not tell, as of links that swing."""

SLOPES, OF_A_JOINT = (0.55, 1.9), (0.35, 2.8)
"""Slopes of torques over those of the motion that loads and friction explain: of all joints together, and of one.

On seven logs of a Panda, a UR10e with and without an unknown load, and a double pendulum they are 0.90 to 1.46, and
0.83 to 1.82.
"""

ALIKE = 0.8
"""Cosine of the angle between torques and those of the motion, above which they go together; 0.88 to 1 there."""

CLEAR, GAIN = 0.95, 0.05
"""That cosine above which other zeros of joints explain torques, of which there are many; and what each of them has to
add to `_likeness`."""

UPRIGHT = 0.9
"""Cosine above which two directions are taken for one."""

MOST = 14
"""Joints whose zeros are looked for, at most: it takes as long as their number squared."""

TURNS = {0.0: "", np.pi / 2: "turned by 90 deg", -np.pi / 2: "turned by -90 deg", np.pi: "turned by 180 deg"}
"""How far zeros of joints may be off by convention [rad], in words."""

MOVING = 0.05
"""Speed [rad/s, m/s] from which on friction is as large as it is."""

DRIVEN = -0.5
"""Correlation with the direction of motion below which what is left of a torque is no friction: it drives."""

BARE = ("friction", "rotor")
"""Components that leave the torques of gravity as they are."""


@dataclass(frozen=True, slots=True, eq=False)
class _Parts:
    """Means over the parts of a log.

    Attributes:
        tree: the robot.
        q: configurations (n, nq).
        qd: velocities (n, nv).
        qdd: accelerations (n, nv).
        tau: torques that are read (n, m).
        places: where these are among the nv (m).
    """

    tree: KinematicTree
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    places: Sequence[int]

    def joint(self, k: int) -> str:
        """Name of the joint of a torque."""
        return joint_of(self.tree, self.places[k])

    def of_links(self, share: float = 1.0, unit: float = 1.0) -> Floats:
        """Torques of inverse dynamics (n, nv) by a share of the motion, without friction and rotors, q in a unit."""
        return self._torques(self.tree.replace(components=()), share, unit)

    def turned(self, place: int, sign: float, zero: float) -> _Parts:
        """The parts where a joint turns by a sign, and is so far from its zero [rad] where the log has it there."""
        q, qd, qdd, tau = (values.copy() for values in (self.q, self.qd, self.qdd, self.tau))
        for values, k in ((q, place), (qd, place), (qdd, place), (tau, self.places.index(place))):
            values[:, k] *= sign
        q[:, place] += zero
        return replace(self, q=q, qd=qd, qdd=qdd, tau=tau)

    def compared(
        self, order: Sequence[int] | None = None, unit: float = 1.0, sign: float = 1.0
    ) -> tuple[Floats, Floats]:
        """Torques that the links ask (n, m), and those that are read less friction and rotors of the model.

        Args:
            order: that of the readings; as they are when None.
            unit: what q is given in [rad].
            sign: what the readings are taken times.
        """
        links = self.of_links(1.0, unit)
        read = sign * (self.tau if order is None else self.tau[:, order])
        if self.tree.components:
            read = read - (self._torques(self.tree, 1.0, unit) - links)[:, self.places]
        return links[:, self.places], read

    def _torques(self, tree: KinematicTree, share: float, unit: float) -> Floats:
        q, qd, qdd = (values.T / unit for values in (self.q, share * self.qd, share * self.qdd))
        return np.asarray(rnea(tree, q, qd, qdd), dtype=float).T


def misread_torques(
    system: System, q: Floats, qd: Floats, y: Floats, dt: float, by_model: bool = True
) -> Iterator[PlausibilityWarning]:
    """Yield a warning where torques among readings (N, ny) are not those of the motion, at samples dt [s] apart.

    Args:
        system: the system.
        q: configurations (N, nq).
        qd: velocities (N, nv).
        y: readings (N, ny).
        dt: time between samples [s].
        by_model: whether sizes and order are held against the model too, whose gains may be unknown where it is
            identified.
    """
    tree, read = system.tree, dict(freedoms_read(system, y, "tau", LOAD))
    is_bare = not tree.closing_parts and all(each.type in BARE for each in tree.components)
    if not read or not is_bare or tree.nq != tree.nv or not np.any(tree.gravity):
        return
    q = np.column_stack([unwrapped(x) if turns else x for x, turns in zip(q.T, angular(tree)[0], strict=True)])
    width = max(3, len(q) // STRIDES)
    n = len(q) // width
    if n < FEWEST:
        return
    q, qd, torques = (
        values[: n * width].reshape(n, width, -1) for values in (q, qd, np.column_stack([*read.values()]))
    )
    known = np.isfinite(torques).all(axis=(1, 2))
    qdd = (qd[:, -1] - qd[:, 0]) / ((width - 1) * dt)
    for place, rates in freedoms_read(system, y[: n * width], "qdd"):
        means = rates.reshape(n, width).mean(axis=1)
        qdd[:, place] = np.where(np.isfinite(means), means, qdd[:, place])
    q, qd, torques = (values[known].mean(axis=1) for values in (q, qd, torques))
    parts = _Parts(tree, q, qd, qdd[known], torques, [*read])
    if len(parts.tau) < FEWEST:
        return
    lacking = _without_gravity(parts)
    if lacking is not None:
        yield lacking
    elif by_model:
        yield from _of_another_robot(parts)


def _without_gravity(parts: _Parts) -> PlausibilityWarning | None:
    """The warning that torques do not follow gravity where the robot moves slowly."""
    held, moved = parts.of_links(0.0), parts.of_links()
    is_slow = np.linalg.norm(moved - held, axis=1) <= SLOW * np.linalg.norm(held, axis=1)
    if is_slow.sum() < FEWEST:
        return None
    gravity, torques = held[is_slow][:, parts.places], parts.tau[is_slow]
    tells = gravity.std(axis=0) > VARIES * np.abs(held).max()
    varied, other = (values[:, tells] - values[:, tells].mean(axis=0) for values in (gravity, torques))
    shared, sizes = float(np.sum(varied * other)), (float(np.linalg.norm(varied)), float(np.linalg.norm(other)))
    slope, scale = UNRELATED[0] * sizes[0] ** 2, UNRELATED[1] * sizes[0] * sizes[1]
    if not tells.any() or abs(shared) > slope or abs(shared) > scale:
        return None
    worst = int(np.argmax(np.where(tells, gravity.std(axis=0), 0.0)))
    changes = (f"{number(values[:, worst].std(), 2)} N m" for values in (torques, gravity))
    why = _by_other_zeros(parts) or _by_another_gravity(parts)
    why = why or (
        "Did the driver subtract gravity, as newer ones of Universal Robots do? Log torques that hold it, or currents."
    )
    return PlausibilityWarning(
        "gravity",
        1.0,
        f"the torques do not follow gravity where the robot moves slowly: that of '{parts.joint(worst)}' changes "
        f"by {next(changes)}, and gravity's by {next(changes)}, unrelated. {why}",
    )


def _of_another_robot(parts: _Parts) -> Iterator[PlausibilityWarning]:
    """Yield the warning that torques are not those of the motion."""
    asked, read = parts.compared()
    least = LEAST * robot_weight(parts.tree) * reach(parts.tree)
    size, held = np.linalg.norm(asked, axis=1).mean(), parts.of_links(0.0)[:, parts.places]
    balanced = CANCELLED * (np.linalg.norm(held, axis=1) + np.linalg.norm(asked - held, axis=1)).mean()
    if size <= max(least, balanced) or not np.isfinite(asked).all():
        return
    slope, cosine = _compared(asked, read)
    slopes = np.sum(asked * read, axis=0) / np.maximum(np.sum(asked**2, axis=0), 1e-300)
    tells = np.abs(asked).mean(axis=0) > VARIES * np.abs(asked).max()
    is_off = tells & ((slopes < OF_A_JOINT[0]) | (slopes > OF_A_JOINT[1])) & (np.abs(read - asked).mean(axis=0) > least)
    if cosine >= ALIKE and SLOPES[0] < slope < SLOPES[1] and not is_off.any():
        yield from _driving_friction(parts, parts.tau - asked)
        return
    if abs(cosine) >= ALIKE and not SLOPES[0] < slope < SLOPES[1]:
        words = f"the torques are {number(slope, 2)} times those that the motion asks of the model"
        why = (
            "They have the other sign: map tau with `scale: -1`."
            if slope < 0
            else "Are unit and gains right, and is it this robot?"
        )
    else:
        words = "the torques are not those that the motion asks of the model: "
        if is_off.any():
            worst = int(np.argmax(np.where(is_off, np.abs(slopes - 1), 0.0)))
            words += f"that of '{parts.joint(worst)}' is {number(slopes[worst], 2)} times as large"
        else:
            words += f"the cosine of the angle between them is {number(cosine, 2)}"
        why = _explained(parts)
    yield PlausibilityWarning("torques", 1.0, f"{words}. {why}")


def _driving_friction(parts: _Parts, rest: Floats) -> Iterator[PlausibilityWarning]:
    """Yield the warning that what is left of torques drives the joints, which no friction does."""
    found: dict[str, float] = {}
    for k, place in enumerate(parts.places):
        moves = np.abs(parts.qd[:, place]) > MOVING
        direction = np.sign(parts.qd[moves, place])
        if min((direction > 0).sum(), (direction < 0).sum()) >= FEWEST:
            found[parts.joint(k)] = float(np.corrcoef(direction, rest[moves, k])[0, 1])
    driven = [name for name, correlation in found.items() if correlation < DRIVEN]
    if len(driven) > len(found) / 2:
        yield PlausibilityWarning(
            "torques",
            1.0,
            f"what the motion leaves of the torques goes with it where friction would go against it, at '{driven[0]}'"
            f"{f' and {len(driven) - 1} more' if driven[1:] else ''}. Have q and qd, or the torques, the other sign?",
        )


def _explained(parts: _Parts) -> str:
    """What would make torques fit to the motion, for people."""
    if _fits(*parts.compared(sign=-1.0)):
        return "They would be with the other sign."
    if np.abs(parts.q).max() > np.pi and _fits(*parts.compared(unit=DEGREE)):
        return "They would be if q were in degrees."
    for one, other in combinations(range(len(parts.places)), 2):
        order = [*range(len(parts.places))]
        order[one], order[other] = other, one
        if _fits(*parts.compared(order)):
            return f"They would be with '{parts.joint(one)}' and '{parts.joint(other)}' exchanged."
    why = _by_other_zeros(parts) or _by_another_gravity(parts)
    return why or "Are units, gains and order of the joints right, and is it this robot?"


def _by_other_zeros(parts: _Parts) -> str:
    """Which joints would have to turn the other way, or from another zero, for torques to fit, in words; "" if none."""
    found: dict[int, tuple[float, float]] = {}
    best, alike = parts, _likeness(parts)
    turning = [k for k in parts.places if parts.tree.joints[holding(parts.tree.v_slices, k)].coordinates == ("angle",)]
    if len(turning) > MOST:
        return ""
    ways = [*product(turning, (1.0, -1.0), TURNS)]
    while len(found) < len(turning):
        others = [(_likeness(other := best.turned(*way)), other, way) for way in ways if way[0] not in found]
        reached, other, (place, sign, zero) = max(others, key=lambda each: each[0])
        if reached < alike + GAIN:
            break
        best, alike, found[place] = other, reached, (sign, zero)
    slope, cosine = _compared(*best.compared())
    if not found or cosine < CLEAR or not SLOPES[0] < slope < SLOPES[1]:
        return ""
    words = [
        f"'{joint_of(parts.tree, place)}' {' and '.join(filter(None, ('the other way' * (sign < 0), TURNS[zero])))}"
        for place, (sign, zero) in found.items()
    ]
    signs, zeros = zip(*(found.get(place, (1.0, 0.0)) for place in parts.places), strict=True)
    offset = f"`offset: [{', '.join(f'{zero:.5g}' for zero in zeros)}]`"
    scale = f", and q, qd and tau with `scale: [{', '.join(f'{sign:g}' for sign in signs)}]`" if -1.0 in signs else ""
    return (
        f"They would be with {', '.join(words)}. Does the log count from other zeros than the model? "
        f"Map q with {offset}{scale}."
    )


def _by_another_gravity(parts: _Parts) -> str:
    """In which direction gravity would have to be for torques to fit, in words; "" if in none."""
    weightless = replace(parts, tree=parts.tree.replace(gravity=(0.0, 0.0, 0.0)))
    asked, read = weightless.compared()
    along = [replace(parts, tree=parts.tree.replace(gravity=tuple(axis))) for axis in np.eye(3)]
    held = np.stack([each.of_links(0.0)[:, parts.places].ravel() for each in along], axis=1)
    found = np.linalg.lstsq(held, (read - asked).ravel(), rcond=None)[0]
    size, usual = float(np.linalg.norm(found)), float(np.linalg.norm(parts.tree.gravity))
    cosine = _compared(asked + (held @ found).reshape(read.shape), read)[1]
    is_known = np.dot(found, parts.tree.gravity) > UPRIGHT * size * usual
    if is_known or cosine < CLEAR or not SLOPES[0] < size / usual < SLOPES[1]:
        return ""
    nearest = np.where(np.abs(found) > UPRIGHT * size, np.sign(found) * usual, 0.0)
    direction = nearest if nearest.any() else found / size * usual
    words = ",".join(f"{value + 0.0:.3g}" for value in direction)
    return f"They would be with another gravity: is the base mounted otherwise than in the model? --gravity {words}"


def _likeness(parts: _Parts) -> float:
    """The cosine between torques that are read and those of the motion, and the mean over joints of their correlation.

    The first is that of joints that carry much, the second lets small ones count.
    """
    asked, read = parts.compared()
    varied, other = asked - asked.mean(axis=0), read - read.mean(axis=0)
    sizes = np.linalg.norm(varied, axis=0) * np.linalg.norm(other, axis=0)
    return _compared(asked, read)[1] + float(np.mean(np.sum(varied * other, axis=0) / np.maximum(sizes, 1e-300)))


def _compared(asked: Floats, read: Floats) -> tuple[float, float]:
    """Slope of torques over those of the motion, and the cosine of the angle between the two."""
    shared, sizes = float(np.sum(asked * read)), (float(np.linalg.norm(asked)), float(np.linalg.norm(read)))
    return shared / sizes[0] ** 2, shared / max(sizes[0] * sizes[1], 1e-300)


def _fits(asked: Floats, read: Floats) -> bool:
    slope, cosine = _compared(asked, read)
    return cosine >= ALIKE and SLOPES[0] < slope < SLOPES[1]

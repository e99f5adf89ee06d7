"""Whether an inertial measurement unit reads in the axes and units of its frame: by gravity, and by what stands.

A gyroscope is held against how its frame turns in the world where q tells it, otherwise against feet that stand: seen
from the frame, the ground turns the other way. An accelerometer is held against gravity, whose direction is that of q
or, in the mean, the way from the centre of mass to the feet below it. What fits best is one of the 48 ways to name
three perpendicular axes and their directions, and a unit.

Source: own derivation (tests/unit/solve/test_plausibility_imu.py); Wahba, SIAM Review 7(3), 1965, for the question.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, combinations, permutations, product

import numpy as np
from scipy.spatial.transform import Rotation

from nori_dyn.algebra.spatial import Transform, skew
from nori_dyn.measurements.acceleration import FrameAcceleration
from nori_dyn.measurements.binding import without_offset
from nori_dyn.measurements.floating_base import VelocityReading
from nori_dyn.model.joints import MOTION, Free
from nori_dyn.model.kinematics import Kinematics, positions, transform_between
from nori_dyn.model.tree import WORLD
from nori_dyn.recursions.centroidal import centroidal
from nori_dyn.solve.plausibility.motion import degrees
from nori_dyn.solve.plausibility.warning import DEGREE, PlausibilityWarning
from nori_dyn.system.builder import System
from nori_dyn.tables import number
from nori_dyn.typing import Floats, Indices

PART = 0.1
"""Length of the parts of a log over which turning is compared [s]: long against noise, short against a step."""

FEWEST, MOST = 20, 1000
"""Parts from which on a log tells, and that are looked at at most."""

KEPT = 0.9
"""Share of the parts that count, those that fit best: the others are slips, and jumps of q."""

MOVES = 0.05
"""Turning [rad/s] from which on a frame is taken to turn."""

FITS = 0.25
"""Share of the turning, or of gravity, in squares, that readings which fit may leave unexplained."""

STEADY = 0.2
"""Share by which an accelerometer may differ from its median in the median, to be taken for one that feels gravity."""

CLEARLY = 0.7
"""What is named leaves less than this times what is left as the readings are."""

ALIKE = 0.05
"""Difference of what is left up to which the simpler of two explanations is named."""

UNITS = {
    1.0: "",
    DEGREE: "degrees per second",
    30 / np.pi: "turns per minute",
    1 / DEGREE: "radians per second that were taken for degrees",
}
"""Factors of the readings of a gyroscope, and what it may read in."""

SIMPLE = {
    (1, 3, 3): "",
    (1, 3, -1): "when turned half a turn about {0} of its frame",
    (1, 1, 1): "when turned a quarter about {0} of its frame",
    (-1, 3, -3): "with the other sign",
    (-1, 3, 1): "with the other sign along {0}",
    (-1, 1, 1): "with {1} and {2} swapped",
}
"""What simple axes are to those of the readings, by the determinant, how many axes stay but for signs, the trace."""


def _kind(C: Floats) -> tuple[int, int, int]:
    """The key of `SIMPLE` of axes (3, 3), if they are."""
    return round(float(np.linalg.det(C))), int(np.count_nonzero(np.diag(C))), int(np.trace(C))


AXES = sorted(
    (
        np.diag(signs) @ np.eye(3)[[*order]]
        for order in permutations(range(3))
        for signs in product((1.0, -1.0), repeat=3)
    ),
    key=lambda C: [*SIMPLE].index(_kind(C)) if _kind(C) in SIMPLE else len(SIMPLE),
)
"""Matrices C (3, 3) that give readings other axes; the first leaves them as they are, and simple ones come first."""

STANDS = ("zero_velocity", "rigid_contact")
"""Kinds of rows that say that a frame stands."""

_Frames = dict[tuple[str, int], Transform]

GRAVITY, TURNING, LEGS = "gravity", "the motion of q", "the feet that stand"


@dataclass(frozen=True, slots=True)
class _Sensor:
    """A gyroscope or an accelerometer.

    Attributes:
        name: of the reading.
        turns: whether it is a gyroscope.
        body: its link.
        X: from link coordinates to those of its frame.
        values: what it reads (N, 3).
    """

    name: str
    turns: bool
    body: int
    X: Transform
    values: Floats


@dataclass(frozen=True, slots=True)
class _Fit:
    """How the readings of a sensor fit in other axes and units.

    Attributes:
        sensor: the sensor.
        left: what is left unexplained (48, n_units), from 0 to 2, see `_turning_left`.
        against: what it is held against, for people.
    """

    sensor: _Sensor
    left: Floats
    against: str

    def fits_in(self, axes: int) -> bool:
        """Whether the readings fit in one of `AXES`, in some unit, as well as in any other."""
        return bool(self.left[axes].min() <= min(FITS, self.left.min() + ALIKE))


def misread_imus(
    systems: Sequence[System], q: Floats, qd: Floats, y: Floats, t: Floats
) -> Iterator[PlausibilityWarning]:
    """Yield a warning for each IMU whose readings fit in other axes or units only.

    Args:
        systems: the system of the readings, and those of other contact states.
        q: configurations (N, nq).
        qd: velocities (N, nv).
        y: readings (N, ny) of the first system.
        t: times (N,) [s].
    """
    sensors = [*_sensors(systems[0], qd, y)]
    parts = _parts(t) if sensors and degrees(systems[0].tree, q) is None else np.zeros((0, 2), dtype=np.intp)
    if len(parts) < FEWEST:
        return
    fits = [*_fits(sensors, _PosesOfParts.of(systems, q, t, parts), parts)]
    while fits:
        one = fits.pop(0)
        other = next((fit for fit in fits if _beside(one.sensor, fit.sensor)), None)
        pair = [one] if other is None else [one, other]
        both = _better(pair)
        if other is not None and both and _is_of_both(pair, both[0]):
            fits.remove(other)
            yield _warning(pair, both)
        elif alone := _better([one]):
            yield _warning([one], alone)


def _is_of_both(pair: Sequence[_Fit], axes: int) -> bool:
    """Whether one of `AXES` is that of both sensors of an IMU: turned as a whole, or left-handed where neither fits."""
    is_turned = bool(np.linalg.det(AXES[axes]) > 0) or not any(fit.fits_in(0) for fit in pair)
    return axes > 0 and is_turned and all(fit.fits_in(axes) for fit in pair)


def _beside(one: _Sensor, other: _Sensor) -> bool:
    """Whether two sensors are the two of one IMU."""
    return one.turns != other.turns and one.body == other.body and np.allclose(one.X.E, other.X.E)


def _sensors(system: System, qd: Floats, y: Floats) -> Iterator[_Sensor]:
    """Yield the gyroscopes and accelerometers with three axes, and the root of which qd says how it turns."""
    for row in system.measurements:
        read = without_offset(row.equation)
        if isinstance(read, VelocityReading | FrameAcceleration) and read.group not in STANDS:
            turns = isinstance(read, VelocityReading)
            names = MOTION[:3] if turns else MOTION[3:]
            if set(names) == set(row.equation.components):
                order = [row.equation.components.index(name) for name in names]
                yield _Sensor(row.name, turns, read.place.body, read.place.X, y[:, row.y][:, order])
    tree = system.tree
    for i in () if _base_is_state(system) else range(tree.n_links):
        if tree.is_root(i) and isinstance(tree.joints[i], Free):
            name = f"qd:{tree.joint_names[i]}"
            yield _Sensor(name, True, i, Transform.identity(), qd[:, tree.v_slices[i]][:, :3])


def _base_is_state(system: System) -> bool:
    """Whether nothing is known of the base but what is estimated."""
    return any(isinstance(without_offset(row.equation), VelocityReading) for row in system.rows)


def _parts(t: Floats) -> Indices:
    """The first and last sample of parts of a log (n, 2) in which time goes on evenly."""
    dt = float(np.median(np.diff(t))) if len(t) > 1 else 0.0
    if not 0 < dt <= 2 * PART:
        return np.zeros((0, 2), dtype=np.intp)
    width = max(1, round(PART / dt))
    firsts = np.arange(0, len(t) - width, width)
    firsts = firsts[np.abs((t[firsts + width] - t[firsts]) / (width * dt) - 1) < 0.5]
    firsts = firsts[np.unique(np.linspace(0, len(firsts) - 1, MOST).astype(int))] if len(firsts) else firsts
    return np.stack([firsts, firsts + width], axis=1)


@dataclass(frozen=True, slots=True)
class _PosesOfParts:
    """How the robot stands in the first and in the last sample of parts of a log, and what stands beside it.

    Attributes:
        first, last: the positions in these samples.
        steps: the times between them (n,) [s].
        is_state: whether nothing is known of the base.
        soles: frames that do not turn, as names and links, and from link coordinates to theirs.
        points: frames that stand, but may turn.
    """

    first: Kinematics
    last: Kinematics
    steps: Floats
    is_state: bool
    soles: _Frames
    points: _Frames

    @staticmethod
    def of(systems: Sequence[System], q: Floats, t: Floats, parts: Indices) -> _PosesOfParts:
        """The motion of configurations (N, nq) at times (N,) [s]."""
        is_state, soles, points = _base_is_state(systems[0]), _Frames(), _Frames()
        for row in chain(*(system.rows for system in systems)) if is_state else ():
            read = without_offset(row.equation)
            if isinstance(read, VelocityReading | FrameAcceleration) and read.group in STANDS:
                of = soles if set(MOTION[:3]) <= set(row.equation.components) else points
                of[row.name, read.place.body] = read.place.X
        if not is_state:
            soles["", WORLD] = Transform.identity()
        first, last = (positions(systems[0].tree, q[parts[:, k]].T) for k in (0, 1))
        return _PosesOfParts(first, last, t[parts[:, 1]] - t[parts[:, 0]], is_state, soles, points)

    def pose(self, at: Kinematics, sensor: _Sensor, link: int, X: Transform) -> tuple[Floats, Floats]:
        """The axes (n, 3, 3) and the origin (n, 3) of a frame on a link, in coordinates of a sensor."""
        seen, n = sensor.X @ transform_between(at, sensor.body, link) @ X.inverse(), len(self.steps)
        E = np.broadcast_to(np.asarray(seen.E, dtype=float).reshape(3, 3, -1), (3, 3, n))
        r = np.broadcast_to(np.asarray(seen.r, dtype=float).reshape(3, -1), (3, n))
        return np.moveaxis(E, 2, 0), -np.einsum("ijn,jn->ni", E, r)

    def turning(self, sensor: _Sensor) -> Iterator[tuple[Floats, Floats]]:
        """Yield A (n, 3, 3) and b (n, 3) such that A w + b = 0 if something stands, and the sensor turns by w.

        A sole tells all of w; two points r apart turn by -w x r.
        """
        for (_, link), X in self.soles.items():
            (E, _), (later, _) = (self.pose(at, sensor, link, X) for at in (self.first, self.last))
            yield np.broadcast_to(np.eye(3), E.shape), -_turned(E @ np.swapaxes(later, 1, 2)) / self.steps[:, None]
        at = [
            [self.pose(at, sensor, link, X)[1] for at in (self.first, self.last)]
            for (_, link), X in self.points.items()
        ]
        for one, other in combinations(at, 2):
            before, after = one[0] - other[0], one[1] - other[1]
            length = np.linalg.norm(before, axis=1)[:, None]
            A = -np.moveaxis(skew(((before + after) / (2 * length)).T), 2, 0)
            yield A, (after - before) / (length * self.steps[:, None])

    def upwards(self, sensor: _Sensor) -> Floats:
        """The direction (n, 3) of the proper acceleration at rest, in coordinates of a sensor."""
        tree, (E, origin) = self.first.tree, self.pose(self.first, sensor, WORLD, Transform.identity())
        if not self.is_state:
            return np.asarray(-E @ np.array(tree.gravity) / np.linalg.norm(tree.gravity))
        com = np.einsum("nij,jn->ni", E, np.asarray(centroidal(tree, self.first.q, None).com, dtype=float)) + origin
        feet = [
            self.pose(self.first, sensor, link, X)[1] for (_, link), X in (*self.soles.items(), *self.points.items())
        ]
        above = com - np.mean(feet, axis=0)
        return np.asarray(above / np.linalg.norm(above, axis=1)[:, None])


def _turned(R: Floats) -> Floats:
    """The rotation vectors (n, 3) of matrices (n, 3, 3) by less than half a turn; any of what is no rotation."""
    twice = np.stack([R[:, 2, 1] - R[:, 1, 2], R[:, 0, 2] - R[:, 2, 0], R[:, 1, 0] - R[:, 0, 1]], axis=1)
    sine, cosine = np.linalg.norm(twice, axis=1), np.trace(R, axis1=1, axis2=2) - 1
    return np.asarray(twice * (np.arctan2(sine, cosine) / np.where(sine > 0, sine, 1.0))[:, None])


def _fits(sensors: Sequence[_Sensor], motion: _PosesOfParts, parts: Indices) -> Iterator[_Fit]:
    """Yield how sensors fit that tell enough."""
    tree, inner = motion.first.tree, parts[:, :1] + np.arange(parts[0, 1] - parts[0, 0] + 1)
    for sensor in sensors:
        values = sensor.values[inner].mean(axis=1)
        known = np.isfinite(values).all(axis=1)
        values = values[known]
        if len(values) < FEWEST or not (motion.soles or motion.points):
            continue
        if sensor.turns:
            A, b = (np.stack(each, axis=1)[known] for each in zip(*motion.turning(sensor), strict=True))
            yield _Fit(sensor, _turning_left(A, b, values), LEGS if motion.is_state else TURNING)
        elif np.any(tree.gravity) and tree.I[:, 5, 5].sum() > 0:
            sizes = np.linalg.norm(values, axis=1)
            size = float(np.median(sizes))
            if np.median(np.abs(sizes - size)) < STEADY * size:
                off = np.einsum("cij,nj->cni", AXES, values / size) - motion.upwards(sensor)[known]
                yield _Fit(sensor, _kept((off**2).sum(axis=2) / 2)[:, None], GRAVITY)


def _turning_left(A: Floats, b: Floats, values: Floats) -> Floats:
    """What is left of the turning with each of `AXES` and `UNITS`: |A w + b|^2 over |A w|^2 + |b|^2, in the mean.

    It is 0 where readings fit, 1 where they have nothing to do with the turning, or a wrong unit, and 2 of the other
    sign.

    Args:
        A: of A w + b = 0, which holds for what stands (n, m, 3, 3); in each part that counts which fits best.
        b: see A (n, m, 3).
        values: the readings (n, 3).
    """
    turned = np.einsum("nmij,cjk,nk->cnmi", A, AXES, values)
    found = []
    for factor in UNITS:
        off = ((turned / factor + b) ** 2).sum(axis=3)
        best = off.argmin(axis=2)[..., None]
        ours, theirs = ((each**2).sum(axis=3) for each in (turned / factor, np.broadcast_to(b, turned.shape)))
        of_both, of_theirs = (_kept(np.take_along_axis(each, best, axis=2)[..., 0]) for each in (ours + theirs, theirs))
        left = _kept(np.take_along_axis(off, best, axis=2)[..., 0]) / of_both
        found.append(np.where(of_theirs > MOVES**2, left, 1.0))
    return np.stack(found, axis=1)


def _kept(squares: Floats) -> Floats:
    """The mean of the smaller ones of squares (..., n)."""
    kept: Floats = np.sort(squares, axis=-1)[..., : max(1, round(KEPT * squares.shape[-1]))].mean(axis=-1)
    return kept


def _better(fits: Sequence[_Fit]) -> list[int]:
    """The numbers of the axes in which sensors fit clearly better than as they are, simple ones first; or none.

    An empty list where they fit as they are, or not at all; 0 comes first where only a unit is wrong.
    """
    left = np.sum([fit.left.min(axis=1) for fit in fits], axis=0)
    as_read = float(np.sum([fit.left[0, 0] for fit in fits]))
    best = float(left.min())
    if best > min(FITS * len(fits), CLEARLY * as_read, as_read - ALIKE):
        return []
    found: list[int] = np.flatnonzero(left <= best + ALIKE).tolist()
    return found


def _warning(fits: Sequence[_Fit], axes: Sequence[int]) -> PlausibilityWarning:
    """The warning that sensors fit in some of `AXES`, in the units that fit best there."""
    names, best = [fit.sensor.name for fit in fits], axes[0]
    ends = {name.partition(":")[2] for name in names} if len(fits) > 1 else set()
    imu = f"'{ends.pop()}'" if len(ends) == 1 and "" not in ends else " and ".join(f"'{name}'" for name in names)
    against = " and ".join(dict.fromkeys(fit.against for fit in fits))
    left = float(np.mean([fit.left[best].min() for fit in fits]))
    as_read = float(np.mean([fit.left[0, 0] for fit in fits]))
    factors = [[*UNITS][int(np.argmin(fit.left[best]))] for fit in fits if fit.sensor.turns]
    off = [factor for factor in factors if factor != 1.0]
    how = [*([_in_words(AXES[best])] if best else []), *(f"when divided by {number(factor, 3)}" for factor in off)]
    others = [_in_words(AXES[k]) for k in axes[1:3] if best and _kind(AXES[k]) in SIMPLE]
    words = [
        f"the readings of {imu} fit {against} {' and '.join(how)} ({left:.0%} unexplained; {as_read:.0%} as they are)"
        f"{', or nearly as well ' if others else ''}{', or '.join(others)}.",
        *(f"Is the gyroscope in {UNITS[factor]}?" for factor in off),
    ]
    if best and np.linalg.det(AXES[best]) > 0:
        turn = Rotation.from_matrix(AXES[best])
        rpy = turn.as_rotvec() if _kind(AXES[best]) in SIMPLE else turn.as_euler("xyz")
        angles = ", ".join(f"{angle:.5g}" for angle in rpy.round(12) + 0.0)
        words.append(f"If it is mounted so, say frame: {{rpy: [{angles}]}} of its columns in the mapping.")
        if names[0].startswith("qd:"):
            words.append("If it is said along axes of the world, say axes: world.")
    elif best:
        words.append("Check the order and the signs of its columns.")
    return PlausibilityWarning("imu", 1.0, " ".join(words))


def _in_words(C: Floats) -> str:
    """What is done to readings that C (3, 3) gives other axes."""
    kind = _kind(C)
    if kind not in SIMPLE:
        axes = ", ".join(f"{'-' * bool(row.sum() < 0)}{'xyz'[int(np.argmax(np.abs(row)))]}" for row in C)
        return f"taken as ({axes}){', which is left-handed' * (kind[0] < 0)}"
    axis = int(np.argmax(-np.diag(C) if kind == (-1, 3, 1) else np.diag(C)))
    is_back = kind == (1, 1, 1) and Rotation.from_matrix(C).as_rotvec()[axis] < 0
    others = [name for name in "xyz" if name != "xyz"[axis]]
    return SIMPLE[kind].format(f"{'-' * bool(is_back)}{'xyz'[axis]}", *others)

"""Exciting motions as a problem: a criterion of the information, and limits, of the coefficients of Fourier series.

The coefficients are in units of what fills the limits: the mean position of half the room there is, every other one of
the largest amplitude that position, speed and acceleration allow it alone. All limits are ratios, at most 1.

Source: Swevers et al. (1997).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np

from nori_dyn.algebra.arrays import numeric
from nori_dyn.algebra.ranges import width
from nori_dyn.algebra.ranks import independent_columns
from nori_dyn.components.friction import sliding
from nori_dyn.errors import InputError
from nori_dyn.identification.base_parameters import BaseParameters, base_parameters
from nori_dyn.identification.clearance import Clearance
from nori_dyn.identification.dependent_joints import MovingJoints
from nori_dyn.identification.limits import (
    FAR,
    JointLimits,
    MotionConstraint,
    MotionLimits,
    motion_limits,
    resting_posture,
)
from nori_dyn.identification.motion_information import Criterion, MotionInformation, criterion_named
from nori_dyn.identification.regression import Regression
from nori_dyn.identification.surroundings import Balance, Surroundings, joints_of, torque_sensors
from nori_dyn.identification.trajectory import FourierSeries, MotorTorques
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

SAMPLES = 40
"""Samples of a period, for each harmonic, at which motions are judged while they are sought."""

FINER = 10
"""Times as many at which limits are checked."""

MARGIN = 1e-3
"""What is left free of the limits for between the samples that are checked.

Of a sum of L harmonics at m samples a period the largest is less than 1 / cos(pi L / m) times that of the samples, here
3e-5 more, as it falls off from its largest value no faster than a cosine (M. Riesz, 1914); torques have some more
harmonics.
"""

HALVINGS = 8
"""Times that the interval is halved in which the largest motion is that keeps the limits."""

SMALLER, LEAST = 0.99, 1e-3
"""How much smaller a motion is made that leaves the limits between samples only, and from where on there is none."""

STATES = 400
"""Random states from which the sensitivity of readings to each parameter is taken."""

DEPENDENT = 1e-9
"""Share of a column that other columns leave of it below which it depends on them, where joints stand still."""

EXACT = 1e4
"""How many times as exact as readings rows count that hold exactly, such as that a joint has no motor."""

Bases: TypeAlias = tuple[Floats, Floats, Floats]
"""The functions of a series at some times, and their derivatives, (N, n) each."""


@dataclass(frozen=True, eq=False)
class Excitation:
    """The problem of the most exciting motion.

    Attributes:
        base: which combinations of parameters the sensors identify.
        identifiable: which of these the motion can identify, by their number.
        sigmas: the standard deviation of each row.
        joints: those that move.
        series: how they move.
        limits: within which.
        constraints: these, and what else motions keep, the quickest to check first.
        clearance: one of these, where shapes are known.
        balance: one of these, where the robot stands and its soles are known.
        information: of a motion.
        criterion: how that is judged.
        forces: of motors.
        rate: samples a second of the log that is to be.
        middle: the positions (n_joints,) about which motions are drawn, in which the robot can rest.
        unknown: what motions could disturb, in words.
    """

    base: BaseParameters
    identifiable: tuple[int, ...]
    sigmas: dict[str, float]
    joints: MovingJoints
    series: FourierSeries
    limits: MotionLimits
    constraints: tuple[MotionConstraint, ...]
    clearance: Clearance | None
    balance: Balance | None
    information: MotionInformation
    criterion: Criterion
    forces: MotorTorques
    rate: float
    middle: Floats
    unknown: tuple[str, ...]

    @cached_property
    def shape(self) -> tuple[int, int]:
        """Numbers of joints and of coefficients of each."""
        return len(self.joints.bodies), self.series.n

    @cached_property
    def coarse(self) -> Bases:
        """The series at the samples at which motions are judged."""
        return self.series.basis(self.series.times(SAMPLES * self.series.harmonics))

    @cached_property
    def fine(self) -> Bases:
        """The series at those at which limits are checked."""
        return self.series.basis(self.series.times(FINER * SAMPLES * self.series.harmonics))

    @cached_property
    def units(self) -> Floats:
        """The unit of each coefficient (n_joints, n)."""
        largest = [np.abs(basis[:, 1:]).max(axis=0) for basis in self.fine]
        ratios = [np.outer(limit, 1.0 / top) for limit, top in zip(self._sizes, largest, strict=True)]
        return np.column_stack([self._sizes[0], np.min(ratios, axis=0)])

    @property
    def _sizes(self) -> tuple[Floats, Floats, Floats]:
        """Room, speed and acceleration of the joints that move independently (n_joints,) each."""
        n, limits = self.shape[0], self.limits
        return limits.room[:n], limits.speed[:n], limits.acceleration[:n]

    def coefficients(self, z: Floats) -> Floats:
        """Coefficients (n_joints, n) of the series."""
        found = z.reshape(self.shape) * self.units
        found[:, 0] += self.limits.middle[: self.shape[0]]
        return found

    def motion(self, z: Floats, bases: Bases) -> tuple[Floats, Floats, Floats]:
        """Motion q (N, nq), qd (N, nv), qdd (N, nv) of the whole robot; no numbers where loops cannot be closed."""
        return self.joints.whole(*(basis @ self.coefficients(z).T for basis in bases))

    def ratios(self, z: Floats, bases: Bases) -> tuple[Floats, ...]:
        """What a motion takes of all that it has to keep, (N, n) each."""
        motion = self.motion(z, bases)
        is_closed = bool(np.isfinite(motion[0]).all())
        at = motion if is_closed else self.motion(self.at_rest, bases)
        parts = tuple(each.of_motion(*at)[0] for each in self.constraints)
        return parts if is_closed else tuple(np.full(part.shape, FAR) for part in parts)

    def is_within(self, z: Floats, bases: Bases) -> bool:
        """Whether a motion keeps all that it has to, with the margin, at the samples of some bases."""
        q, qd, qdd = self.motion(z, bases)
        if not np.isfinite(q).all():
            return False
        for each in self.constraints:
            if each is self.clearance and not self.clearance.is_kept(q):
                return False
            if each is not self.clearance and np.abs(each.of_motion(q, qd, qdd)[0]).max(initial=0.0) > 1.0 - MARGIN:
                return False
        return True

    def judged(self, z: Floats) -> float:
        """Criterion of a motion."""
        return self.criterion(self.information_of(z))[0]

    def information_of(self, z: Floats) -> Floats:
        """Information of a motion."""
        return self.information.of_motion(*self.motion(z, self.coarse), self.stands_for)[0]

    @property
    def stands_for(self) -> float:
        """How many samples of the log each sample stands for at which motions are judged."""
        return self.rate * self.series.duration / len(self.coarse[0])

    def shrunk(self, z: Floats) -> Floats:
        """Bring a motion towards rest in the middle, as far as it has to be."""
        rest, z, size = self.at_rest, self._shrunk_roughly(z), 1.0
        while not self.is_within(rest + size * (z - rest), self.fine):
            size = SMALLER * size if size > LEAST else 0.0
            if not size:
                break
        return rest + size * (z - rest)

    def _shrunk_roughly(self, z: Floats) -> Floats:
        """The same at the samples at which motions are judged."""
        if self.is_within(z, self.coarse):
            return z
        rest, within, beyond = self.at_rest, 0.0, 1.0
        for _ in range(HALVINGS):
            size = (within + beyond) / 2
            within, beyond = (size, beyond) if self.is_within(rest + size * (z - rest), self.coarse) else (within, size)
        return rest + within * (z - rest)

    @cached_property
    def at_rest(self) -> Floats:
        """Rest in the middle."""
        z = np.zeros(self.shape)
        z[:, 0] = (self.middle - self.limits.middle[: self.shape[0]]) / self._sizes[0]
        return z

    def random(self, rng: np.random.Generator) -> Floats:
        """Draw a random motion that fills the limits at the samples at which motions are judged.

        It is about rest where it could not be made about another posture.
        """
        z = rng.normal(size=self.shape)
        z[:, 0] = 0.0
        mean = rng.uniform(-0.3, 0.3, len(z))
        mean += self.at_rest[:, 0] * (1.0 - np.abs(mean))
        parts = zip(self.coarse, self._sizes, strict=True)
        position, speed, acceleration = (np.abs(basis @ (z * self.units).T).max(axis=0) / size for basis, size in parts)
        z *= (1.0 - 2 * MARGIN) / np.max([position / (1.0 - np.abs(mean)), speed, acceleration], axis=0)[:, None]
        z[:, 0] = mean
        if not self.is_within(z, self.coarse):
            z[:, 0] = self.at_rest[:, 0]
        return self._shrunk_roughly(z)


def excitation(
    robot: KinematicTree | System,
    wanted: Sequence[str],
    series: FourierSeries,
    limits_given: dict[str, Any],
    criterion: str,
    joints: Sequence[str] | None,
    at: Any,
    surroundings: Surroundings,
    earlier: Any,
    rate: float,
    seed: int,
    progress: Progress,
) -> Excitation:
    """Formulate the problem, see `nori_dyn.exciting_motion` for the arguments.

    Raises:
        NoriError: see there.
    """
    judge = criterion_named(criterion)
    moving, motors = joints_of(robot, joints, at, surroundings.contacts)
    tree, bodies = moving.tree, moving.bodies
    if isinstance(robot, System):
        system = robot
    elif moving.dependents is None:
        system = System(tree, torque_sensors(tree))
    else:
        system = System(tree, torque_sensors(tree, motors, surroundings.contacts))
    limits = motion_limits(tree, bodies, **limits_given, followers=moving.followers)
    progress("equations")
    regression = Regression.of(system.replace(sliding(tree)), wanted, seed)
    moved = {i for i, s in enumerate(tree.v_slices) if set(range(s.start, s.stop)) & set(moving.moved)}
    stays = [name for k, name in enumerate(tree.joint_names) if tree.joints[k].nv and k not in moved]
    progress("base parameters")
    base = base_parameters(regression, stays, seed)
    weights = _weights(regression)
    progress("compiling")
    information = MotionInformation.of(regression, base.independent, moving, weights)
    own, forces = JointLimits(moving, limits), MotorTorques.of(moving, motors, limits.torque)
    clearance, balance, unknown = surroundings.constraints(moving)
    others = [each for each in (forces, moving.dependents, balance, clearance) if each is not None]
    rest = resting_posture(own, others, seed)
    is_special = bool(stays) or bool(surroundings.contacts)
    identifiable, information = _identifiable(information, limits, moving, rest, is_special, seed)
    if not identifiable:
        raise InputError(
            "the motion of these joints identifies none of the requested parameters. Let other joints move, or request "
            "other parameters: the report of `nd.identify` says which a motion identified."
        )
    information = _with_earlier(information, base, earlier)
    each = zip(regression.row_names, regression.reads, weights.tolist(), strict=True)
    sigmas = {name: 1.0 / weight for name, reads, weight in each if reads >= 0}
    return Excitation(
        base,
        identifiable,
        sigmas,
        moving,
        series,
        limits,
        (own, *others),
        clearance,
        balance,
        information,
        judge,
        forces,
        rate,
        rest,
        unknown,
    )


def _weights(regression: Regression) -> Floats:
    """Weights 1 / sigma of the rows; without a sigma, as the most exact row that has one, or 1."""
    known: dict[str, float] = {}
    for row in regression.system.sensor_rows:
        if width(row.weights):
            sizes = regression.system.weights[list(row.weight_of_rows)]
            known.update(zip(row.component_names, np.sqrt(sizes).tolist(), strict=True))
    most = max((known[name] for name in regression.row_names if name in known), default=1.0)
    exact = [reads < 0 and is_exact for reads, is_exact in zip(regression.reads, regression.is_exact, strict=True)]
    usual = np.where(exact, EXACT * most, most)
    return np.array([known.get(name, size) for name, size in zip(regression.row_names, usual, strict=True)])


def _identifiable(
    information: MotionInformation,
    limits: MotionLimits,
    joints: MovingJoints,
    rest: Floats,
    something_stands_still: bool,
    seed: int,
) -> tuple[tuple[int, ...], MotionInformation]:
    """Parameters that motions identify, and their information in units of what moves the readings alike.

    Where joints stand still, as they do here and not just anywhere, fewer may be identifiable.
    """
    n = len(joints.bodies)
    rng, shape = np.random.default_rng(seed), (STATES, n)
    q = limits.middle[:n] + limits.room[:n] * rng.uniform(-1, 1, shape)
    qd, qdd = (limit[:n] * rng.uniform(-1, 1, shape) for limit in (limits.speed, limits.acceleration))
    way = np.ones((STATES, 1))
    while np.isnan((whole := joints.whole(rest + way * (q - rest), qd, qdd))[0]).any():
        way[np.isnan(whole[0]).any(axis=1)] /= 2
    q, qd, qdd = whole
    V = information.left(q, qd, qdd)
    rows = V.reshape(-1, V.shape[2])
    size = np.linalg.norm(rows, axis=0)
    kept = np.flatnonzero(size > DEPENDENT * size.max(initial=0.0))
    if something_stands_still and len(kept):
        kept = np.sort(kept[independent_columns(rows[:, kept], DEPENDENT)])
    units = np.zeros((len(size), len(kept)))
    units[kept, np.arange(len(kept))] = np.sqrt(STATES) / size[kept]
    return tuple(kept.tolist()), information.in_units(units)


def _with_earlier(information: MotionInformation, base: BaseParameters, earlier: Any) -> MotionInformation:
    """Add the information of an earlier log.

    Raises:
        InputError: a square root of another width, or of other combinations of parameters.
    """
    if earlier is None:
        return information
    R0 = numeric("earlier", earlier)
    n, n_all = len(base.independent), len(base.parameters)
    if R0.ndim != 2 or R0.shape[1] not in (n, n_all) or not np.isfinite(R0).all():
        raise InputError(
            f"earlier has shape {R0.shape}: expected a square root (rows, {n}) of the information of the base "
            f"parameters, or (rows, {n_all}) of all parameters, of finite numbers."
        )
    if R0.shape[1] == n_all and n_all != n:
        independent = R0[:, list(base.independent)]
        others = R0[:, list(base.dependent)] - independent @ base.K
        if np.abs(others).max(initial=0.0) > 1e-6 * np.abs(R0).max(initial=0.0):
            raise InputError(
                "earlier has information on combinations that this motion does not identify: use the same robot, "
                "sensors and moving joints for both."
            )
        R0 = independent
    return replace(information, earlier=R0 @ information.units)

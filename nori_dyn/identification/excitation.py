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
import scipy.linalg as la

from nori_dyn.algebra.arrays import checked, numeric
from nori_dyn.algebra.ranges import width
from nori_dyn.errors import InputError, UnknownModelNameError
from nori_dyn.identification.base_parameters import BaseParameters, base_parameters
from nori_dyn.identification.criteria import Criterion, criterion_named
from nori_dyn.identification.limits import MotionLimits, Torques, motion_limits, resting_posture
from nori_dyn.identification.motion_information import MotionInformation
from nori_dyn.identification.regression import Regression
from nori_dyn.identification.trajectory import FourierSeries, MovingJoints
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import Free
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

HALVINGS = 12
"""Times that the interval is halved in which the largest motion is that keeps the limits."""

STATES = 400
"""Random states from which the sensitivity of readings to each parameter is taken."""

DEPENDENT = 1e-9
"""Share of a column that other columns leave of it below which it depends on them, where joints stand still."""

OF_DRIVES = 0.01
"""Standard deviation of torques that are read, as a share of what the drive can give; 1 N m or 1 N where not known."""

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
        information: of a motion.
        criterion: how that is judged.
        torques: of motions.
        rate: samples a second of the log that is to be.
        middle: the positions (n_joints,) about which motions are drawn, in which the robot can rest.
    """

    base: BaseParameters
    identifiable: tuple[int, ...]
    sigmas: dict[str, float]
    joints: MovingJoints
    series: FourierSeries
    limits: MotionLimits
    information: MotionInformation
    criterion: Criterion
    torques: Torques
    rate: float
    middle: Floats

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
        allowed = (self.limits.room, self.limits.speed, self.limits.acceleration)
        ratios = [np.outer(limit, 1.0 / top) for limit, top in zip(allowed, largest, strict=True)]
        return np.column_stack([self.limits.room, np.min(ratios, axis=0)])

    def coefficients(self, z: Floats) -> Floats:
        """Coefficients (n_joints, n) of the series."""
        found = z.reshape(self.shape) * self.units
        found[:, 0] += self.limits.middle
        return found

    def motion(self, z: Floats, bases: Bases) -> tuple[Floats, Floats, Floats]:
        """Motion q (N, nq), qd (N, nv), qdd (N, nv) of the whole robot."""
        return self.joints.follow(self.coefficients(z), bases)

    def ratios(self, z: Floats, bases: Bases) -> tuple[Floats, ...]:
        """Position from the middle, speed, acceleration (N, n_joints) and torque (N, n_limited) by their limits."""
        return self.ratios_of(*self.motion(z, bases))

    def ratios_of(self, q: Floats, qd: Floats, qdd: Floats) -> tuple[Floats, ...]:
        """The same of a motion of the whole robot."""
        of_q, of_v, limits, torques = self.joints.of_q, self.joints.of_v, self.limits, self.torques
        return (
            (q[:, of_q] - limits.middle) / limits.room,
            qd[:, of_v] / limits.speed,
            qdd[:, of_v] / limits.acceleration,
            torques.of_motion(q, qd, qdd) / torques.limit,
        )

    def is_within(self, z: Floats) -> bool:
        """Whether a motion keeps the limits, with the margin, at all samples that are checked."""
        return bool(max(np.abs(part).max(initial=0.0) for part in self.ratios(z, self.fine)) <= 1.0 - MARGIN)

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
        """Bring a motion towards rest in the middle, as far as the limits need."""
        if self.is_within(z):
            return z
        rest, within, beyond = self.at_rest, 0.0, 1.0
        for _ in range(HALVINGS):
            size = (within + beyond) / 2
            within, beyond = (size, beyond) if self.is_within(rest + size * (z - rest)) else (within, size)
        return rest + within * (z - rest)

    @cached_property
    def at_rest(self) -> Floats:
        """Rest in the middle."""
        z = np.zeros(self.shape)
        z[:, 0] = (self.middle - self.limits.middle) / self.limits.room
        return z

    def random(self, rng: np.random.Generator) -> Floats:
        """Draw a random motion that fills the limits."""
        z = rng.normal(size=self.shape)
        z[:, 0] = 0.0
        mean = rng.uniform(-0.3, 0.3, len(z))
        mean += self.at_rest[:, 0] * (1.0 - np.abs(mean))
        position, speed, acceleration = (np.abs(part).max(axis=0) for part in self.ratios(z, self.coarse)[:3])
        z *= (1.0 - 2 * MARGIN) / np.max([position / (1.0 - np.abs(mean)), speed, acceleration], axis=0)[:, None]
        z[:, 0] = mean
        return self.shrunk(z)


def torque_sensors(tree: KinematicTree) -> SensorSet:
    """Sensors of joint torques on a robot that nothing touches, but for what holds a floating base."""
    entries: list[dict[str, Any]] = [{"type": "joint_acceleration", "joints": "all"}]
    for joint, name in zip(tree.joints, tree.joint_names, strict=True):
        if joint.nv and not isinstance(joint, Free):
            effort = tree.drives[name].effort if name in tree.drives else np.inf
            sigma = OF_DRIVES * effort if np.isfinite(effort) else 1.0
            entries.append({"type": "joint_torque", "joints": [name], "sigma": sigma})
    floats = any(isinstance(joint, Free) for joint in tree.joints)
    held = [name for name, joint in zip(tree.names, tree.joints, strict=True) if isinstance(joint, Free)]
    links = {"except": held} if floats else "all"
    if len(held) < tree.n_links:
        entries.append({"type": "external_wrench", "links": links, "value": 0})
    return SensorSet.from_dict({"name": "joint torques", "measurements": entries})


def moving_joints(tree: KinematicTree, joints: Sequence[str] | None) -> tuple[int, ...]:
    """Bodies whose joints move: those that are named, or all of one freedom.

    Raises:
        UnknownModelNameError: a joint that the robot does not have.
        InputError: none moves, one has several freedoms, or loops and couplings hold them together.
    """
    if tree.closing_parts:
        names = ", ".join(part.name for part in tree.closing_parts[:4])
        raise InputError(
            f"robot '{tree.name}' has loops or couplings ({names}), so its joints do not move independently. "
            "Load it without components, or lock the joints that follow others."
        )
    single = [i for i, joint in enumerate(tree.joints) if (joint.nq, joint.nv) == (1, 1)]
    if joints is None:
        found = single
    else:
        names_of = [joints] if isinstance(joints, str) else list(joints)
        known = [name for name, joint in zip(tree.joint_names, tree.joints, strict=True) if joint.nv]
        for name in names_of:
            if name not in known:
                raise UnknownModelNameError("moving joint", name, known, f"robot '{tree.name}'")
        found = sorted({tree.joint(name) for name in names_of})
        for i in found:
            if i not in single:
                raise InputError(
                    f"joint '{tree.joint_names[i]}' is {tree.joints[i].kind}, with {tree.joints[i].nv} freedoms: "
                    "only joints of one freedom are moved. Leave it out of `joints`; it stays where `at` puts it."
                )
    if not found:
        raise InputError(f"robot '{tree.name}': no joint of one freedom moves, so there is nothing to excite.")
    return tuple(found)


def excitation(
    system: System,
    wanted: Sequence[str],
    series: FourierSeries,
    limits_given: dict[str, Any],
    criterion: str,
    joints: Sequence[str] | None,
    at: Any,
    earlier: Any,
    rate: float,
    seed: int,
    progress: Progress,
) -> Excitation:
    """Formulate the problem, see `nori_dyn.exciting_motion` for the arguments.

    Raises:
        NoriError: see there.
    """
    tree = system.tree
    judge = criterion_named(criterion)
    bodies = moving_joints(tree, joints)
    still = tree.neutral_configuration() if at is None else tree.normalised(checked("at", at, (tree.nq,)))
    moving = MovingJoints(tree, bodies, still)
    limits = motion_limits(tree, bodies, **limits_given)
    progress("equations")
    regression = Regression.of(system, wanted, seed)
    stays = [name for k, name in enumerate(tree.joint_names) if tree.joints[k].nv and k not in bodies]
    progress("base parameters")
    base = base_parameters(regression, stays, seed)
    weights = _weights(regression)
    progress("compiling")
    information = MotionInformation.of(regression, base.independent, moving, weights)
    torques = Torques.of(moving, limits.torque)
    identifiable, information = _identifiable(information, limits, moving, bool(stays), seed)
    if not identifiable:
        raise InputError(
            "the motion of these joints identifies none of the requested parameters. Let other joints move, or request "
            "other parameters: the report of `nd.identify` says which a motion identified."
        )
    information = _with_earlier(information, base, earlier)
    rest = resting_posture(moving, limits, torques, seed)
    sigmas = dict(zip(regression.row_names, (1.0 / weights).tolist(), strict=True))
    return Excitation(base, identifiable, sigmas, moving, series, limits, information, judge, torques, rate, rest)


def _weights(regression: Regression) -> Floats:
    """Weights 1 / sigma of the rows; without a sigma, as the most exact row that has one, or 1."""
    known: dict[str, float] = {}
    for row in regression.system.sensor_rows:
        if width(row.weights):
            sizes = regression.system.weights[list(row.weight_of_rows)]
            known.update(zip(row.component_names, np.sqrt(sizes).tolist(), strict=True))
    most = max((known[name] for name in regression.row_names if name in known), default=1.0)
    return np.array([known.get(name, most) for name in regression.row_names])


def _identifiable(
    information: MotionInformation, limits: MotionLimits, joints: MovingJoints, something_stands_still: bool, seed: int
) -> tuple[tuple[int, ...], MotionInformation]:
    """Parameters that motions identify, and their information in units of what moves the readings alike.

    Where joints stand still, as they do here and not just anywhere, fewer may be identifiable.
    """
    rng, shape = np.random.default_rng(seed), (STATES, len(joints.bodies))
    q = limits.middle + limits.room * rng.uniform(-1, 1, shape)
    qd, qdd = (limit * rng.uniform(-1, 1, shape) for limit in (limits.speed, limits.acceleration))
    q, qd, qdd = joints.whole(q, qd, qdd)
    V = information.left(q, qd, qdd)
    rows = V.reshape(-1, V.shape[2])
    size = np.linalg.norm(rows, axis=0)
    kept = np.flatnonzero(size > DEPENDENT * size.max(initial=0.0))
    if something_stands_still and len(kept):
        R, order = la.qr(rows[:, kept] / size[kept], mode="r", pivoting=True)
        rank = int((np.abs(np.diag(R)) > DEPENDENT).sum())
        kept = np.sort(kept[order[:rank]])
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

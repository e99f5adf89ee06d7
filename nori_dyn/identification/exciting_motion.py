"""The most exciting motions of robots: `nd.exciting_motion`."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cached_property
from importlib.metadata import version
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import ArrayLike

from nori_dyn.algebra.arrays import counted
from nori_dyn.components.friction import sliding
from nori_dyn.errors import FileFormatError, InputError
from nori_dyn.identification.base_parameters import base_parameters
from nori_dyn.identification.limits import (
    MotionLimits,
    PerJoint,
    Positions,
    is_number,
    motion_limits,
    resting_posture,
)
from nori_dyn.identification.motion_information import (
    MotionInformation,
    criterion_named,
    torque_sensors,
    weights_of,
)
from nori_dyn.identification.motion_search import FourierSeries, MotionSearch, Trajectory
from nori_dyn.identification.motor_torques import MotorTorques
from nori_dyn.identification.moving_joints import Hold, holds_of, moving_joints
from nori_dyn.identification.regression import Regression
from nori_dyn.identification.surroundings import Surroundings
from nori_dyn.io.files import check_writable, drafted
from nori_dyn.logs.fields import motion_schema
from nori_dyn.logs.formats.registry import writer_of
from nori_dyn.model.tree import KinematicTree
from nori_dyn.renamed import Renamed
from nori_dyn.system.builder import System
from nori_dyn.system.given import check_tree
from nori_dyn.tables import Shown
from nori_dyn.tables.progress import Watched, progress_bar
from nori_dyn.typing import Floats

RATE = 100.0
"""Samples a second of the log that is to be, by default."""

STARTS = 3
"""Random motions that are improved, by default."""

ENDINGS = (".csv", ".csv.gz")
"""How the names of tables end."""

MOST_ROWS = 10_000_000
"""Samples of a file, at most."""

POOR = 0.5
"""Share of a parameter's value in the model that its deviation must not exceed."""


@dataclass(frozen=True, eq=False)
class ExcitingMotion(Shown, Renamed):
    """A motion that identifies parameters well.

    Attributes:
        trajectory: the motion.
        limits: within which it stays; of robots' own limits, nine tenths.
        criterion: "D" or "A".
        value: the criterion: of D the logarithm of the determinant of the information of the base parameters, of A
            minus that of the sum of their variances; each in units that move the readings by a sigma, over random
            motions.
        of_random: that of random motions that fill the same limits (200,).
        condition: the condition number of the rows of all samples over the parameters in these units.
        condition_of_random: that of the best of the random motions.
        parameters: the base parameters that it identifies, by name; "+" says that there is more to one, see
            `combinations`.
        combinations: what each is: "I:l2.zz + 0.25 m:l3".
        units: the SI unit of each.
        prior: what each is by the robot's model (n,).
        covariance: of each with each (n, n), at `rate` samples a second of readings with `sigmas`.
        unidentifiable: base parameters that other motions identify, and this one cannot, since joints stand still.
        sigmas: the standard deviation of each reading.
        rate: samples a second of the log.
        evaluations: how often a motion was judged while it was sought.
        clearance: how near shapes of links get to one another or to the floor [m], and which: at most a tenth of a
            metre; None where nothing is known of them.
        balance: the most that it takes of what keeps the robot from tipping or slipping, at most 1 on nine tenths of
            soles and friction; None where it does not stand, or its soles are not known.
        unknown: what the motion could disturb, in words.

    Example:
        >>> motion = nd.exciting_motion(nd.autotree(2), ["inertias"], duration=4.0, harmonics=3)
        >>> q, qd, qdd = motion.at([0.0, 1.0, 4.0])
        >>> bool(np.abs(qd[[0, 2]]).max() < 1e-9)  # at rest at both ends
        True
        >>> bool(motion.value > motion.of_random.max())
        True
        >>> motion.parameters
        ('I:link1.zz +', 'I:link2.zz', 'mc:link2.x', 'mc:link2.y')
    """

    FORMER: ClassVar[Mapping[str, str]] = {"badly_told": "poorly_identified", "untold": "unidentifiable"}

    trajectory: Trajectory
    limits: MotionLimits
    criterion: str
    value: float
    of_random: Floats
    condition: float
    condition_of_random: float
    parameters: tuple[str, ...]
    combinations: tuple[str, ...]
    units: tuple[str, ...]
    prior: Floats
    covariance: Floats
    unidentifiable: tuple[str, ...]
    sigmas: Mapping[str, float]
    rate: float
    evaluations: int
    clearance: tuple[float, str] | None
    balance: float | None
    unknown: tuple[str, ...]

    def __repr__(self) -> str:
        n, joints = len(self.parameters), len(self.limits.joints)
        return (
            f"ExcitingMotion({joints} joints, {self.duration:g} s, {self.criterion} {self.value:.4g} of {n} parameters)"
        )

    @property
    def duration(self) -> float:
        """How long it lasts [s]; after that it begins again."""
        return self.trajectory.series.duration

    @cached_property
    def deviations(self) -> Floats:
        """The standard deviation of each parameter (n,) that is to be expected."""
        return np.sqrt(np.diag(self.covariance))

    @property
    def gain(self) -> float:
        """How many times smaller deviations are than after the best random motion: of D their geometric mean."""
        n = len(self.parameters) if self.criterion == "D" else 1
        return math.exp((self.value - float(self.of_random.max())) / (2 * n))

    @property
    def poorly_identified(self) -> tuple[str, ...]:
        """The parameters that stay uncertain: deviations of more than half of what they are in the model, if not 0."""
        known = np.abs(self.prior) > 0
        bad = known & (self.deviations > POOR * np.abs(self.prior))
        return tuple(self.parameters[k] for k in np.flatnonzero(bad))

    def at(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """State q, qd and qdd at times t [s]: (nq,), (nv,), (nv,) at one, with a leading N at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        return self.trajectory.at(t)

    def torques(self, t: ArrayLike) -> Floats:
        """Joint forces (nv,) [N m, N] that the model needs at a time t [s], or (N, nv) at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        return self.trajectory.torques(t)

    def to_csv(self, path: str | os.PathLike[str], rate: float | None = None) -> int:
        """Write the motion as a table, whole or not at all: columns t, q:, qd:, qdd: and tau: of each joint.

        `nd.read_log` reads it. Beside it stands a file with the units.

        Args:
            path: the file.
            rate: samples a second; `self.rate` when None. Both ends are written.

        Returns:
            The number of samples.

        Raises:
            InputError: a rate that is not positive, or of more than ten million samples.
            FileFormatError: the file cannot be written, or its name does not end in .csv or .csv.gz.

        Example:
            >>> motion = nd.exciting_motion(nd.autotree(2), ["inertias"], duration=4.0, harmonics=3)
            >>> motion.to_csv("motion.csv", rate=50)
            201
        """
        path = Path(path)
        check_table(path)
        rate = checked_rate(self.rate if rate is None else rate, self.duration)
        t = np.arange(math.floor(self.duration * rate * (1 + 1e-12)) + 1) / rate
        q, qd, qdd = self.at(t)
        schema = motion_schema(self.trajectory.tree, {"nori_dyn.version": version("nori_dyn")})
        with drafted(path) as draft, closing(writer_of(path)(draft, schema)) as file:
            file.write(t, {"q": q, "qd": qd, "qdd": qdd, "tau": self.torques(t)})
        return len(t)


def exciting_motion(
    robot: KinematicTree | System,
    parameters: Sequence[str] = ("inertias", "friction"),
    duration: float = 10.0,
    harmonics: int = 5,
    criterion: Literal["D", "A"] = "D",
    *,
    joints: Sequence[str] | None = None,
    at: ArrayLike | None = None,
    contacts: Sequence[str] | Mapping[str, Hold] = (),
    shapes: str | os.PathLike[str] | None = None,
    floor: float | None = None,
    apart: float = 0.01,
    ground_friction: float | None = 0.5,
    at_rest: bool = True,
    position: Positions | None = None,
    speed: PerJoint | None = None,
    acceleration: PerJoint | None = None,
    torque: PerJoint | None = None,
    earlier: ArrayLike | None = None,
    rate: float = RATE,
    starts: int = STARTS,
    seed: int = 0,
    progress: Watched = None,
) -> ExcitingMotion:
    """Find the motion, within limits, that identifies parameters best: a Fourier series of each joint.

    Limits of position, speed and torque in the robot's file are used up to nine tenths; arguments are used in full.
    Where nothing is known: positions within pi of zero, 1 rad/s or 0.25 m/s, an acceleration that reaches the largest
    speed in a quarter of a second, any torque. Loops and couplings are closed at every time, by joints that follow.
    Nothing is known of what else the robot could hit: look at the motion in a simulator first.

    Args:
        robot: the robot, whose joint torques are read with sigmas of a hundredth of what the drives can give (1 N m or
            1 N where that is not known); or a system, which says what is read, and with which sigma.
        parameters: what is to be identified: words such as "inertias", "friction", "rotors", "offsets", names or
            patterns, as for `nd.identify`. Gains cannot be.
        duration: of the motion [s], the period of the series.
        harmonics: how many; the highest frequency is harmonics / duration [Hz].
        criterion: "D" for the determinant of the information, which no choice of units changes; "A" for the sum of
            variances.
        joints: those that move; all of one freedom when None. Others stand still, or follow where loops, couplings and
            contacts hold them; of what is left, those that motors move are independent.
        at: a configuration (nq,), for what stands still, and near which loops are closed; neutral when None.
        contacts: links or frames that stand on the ground as they do `at`: flat, or as {"foot": "point"} on a point; a
            floating base then follows its legs. Without any it stands still.
        shapes: the robot's file or its name, whose collision shapes stay apart, meshes as their convex hulls; by the
            extra `mjcf`. Links that a joint joins, and those that are near by design, are not looked at.
        floor: the height of a floor [m], beneath which no link gets; of contacts that of their shapes when None.
        apart: how far shapes stay apart [m].
        ground_friction: the coefficient of level ground on which a robot stands in balance, by soles of its `shapes`
            or on points: it neither tips nor slips. Nine tenths of soles and friction are used. None leaves it open.
        at_rest: whether it begins and ends at rest: with speeds and accelerations of zero.
        position: how far joints go from zero, or pairs (smallest, largest) [rad or m]; for all, or by name.
        speed: largest speeds [rad/s or m/s], for all or by name.
        acceleration: largest accelerations [rad/s^2 or m/s^2], for all or by name.
        torque: largest torques [N m or N], for all or by name. Where more motors act than joints move independently,
            those torques count whose squares, in units of the limits, are least.
        earlier: a square root R0 (rows, n) of the information R0^T R0 of earlier logs, on all parameters of the
            regression, or on the base parameters; then what is not known yet is excited.
        rate: samples a second of the log that is to be.
        starts: how many random motions are improved.
        seed: seed of everything random.
        progress: True to show it, or a function that gets it, see `nori_dyn.tables.progress`; on a terminal when None.

    Raises:
        WrongKindError: neither a robot nor a system.
        UnknownNameError: a parameter, joint or criterion that does not exist.
        InputError: a duration, rate or limit that is not positive, limits in which the robot cannot rest, joints of
            several freedoms, loops that leave these free, parameters that no motion identifies.
        NotClosedError: loops that cannot be closed near `at`.
        UnsupportedComponentError: components that inverse dynamics does not take in.

    Source: Swevers, Ganseman, Tukel, De Schutter and Van Brussel (1997).

    Example:
        >>> motion = nd.exciting_motion(nd.autotree(2), ["inertias"], 4.0, 3, speed=2.0, torque={"joint1": 25})
        >>> t = np.linspace(0, 4, 1000)
        >>> print(np.abs(motion.at(t)[1]).max() <= 2, np.abs(motion.torques(t)[:, 0]).max() <= 25)
        True True
    """
    if not isinstance(robot, System):
        check_tree(robot, "nd.exciting_motion", "parameters")
    tree = robot.tree if isinstance(robot, System) else robot
    holds, wanted = holds_of(contacts), (parameters,) if isinstance(parameters, str) else tuple(parameters)
    surroundings = Surroundings(holds, shapes, floor, apart, ground_friction)
    series, judge = FourierSeries(duration, harmonics, at_rest), criterion_named(criterion)
    rate, starts = checked_rate(rate, series.duration), counted("starts", starts)
    with progress_bar(f"exciting {tree.name}", progress) as stage:
        moving, motors = moving_joints(robot, joints, at, holds)
        limits = motion_limits(moving, position, speed, acceleration, torque)

        stage("equations")
        read = motors if moving.dependents is not None else None
        system = robot if isinstance(robot, System) else System(tree, torque_sensors(tree, read, holds))
        regression = Regression.of(system.replace(sliding(tree)), wanted, seed)
        stage("base parameters")
        base = base_parameters(regression, moving.still_joints, seed)

        stage("compiling")
        weights = weights_of(regression)
        information = MotionInformation.of(regression, base.independent, moving.moved, weights, rate * series.duration)
        forces = MotorTorques.of(moving, motors, limits.torque)
        clearance, balance, unknown = surroundings.constraints(moving)
        each = limits, forces, moving.dependents, balance, clearance  # the quickest first
        constraints = tuple(constraint for constraint in each if constraint is not None)
        rest = resting_posture(moving, limits, constraints, seed)
        information = information.identifiable(moving, limits, rest, bool(moving.still_joints or holds), seed)
        if not len(information.kept):
            raise InputError(
                "the motion of these joints identifies none of the requested parameters. Let other joints move, or "
                "request other parameters: the report of `nd.identify` says which a motion identified."
            )
        if earlier is not None:
            information = information.with_earlier(base, earlier)

        search = MotionSearch(moving, series, limits, constraints, information, judge, rest)
        found = search.best(starts, seed, stage)

    F, units, kept = search.information_of(found.z), information.units, information.kept.tolist()
    fine = search.motion(found.z, search.fine)
    sigmas = zip(regression.row_names, regression.reads, weights.tolist(), strict=True)
    return ExcitingMotion(
        trajectory=Trajectory(moving, forces, series, search.coefficients(found.z)),
        limits=limits,
        criterion=criterion,
        value=found.value,
        of_random=found.of_random,
        condition=_condition(F),
        condition_of_random=_condition(search.information_of(found.random)),
        parameters=tuple(base.names[k] for k in kept),
        combinations=tuple(base.combination(k) for k in kept),
        units=tuple(base.parameters.each[base.independent[k]].unit for k in kept),
        prior=(base.G @ base.parameters.prior)[kept],
        covariance=np.linalg.pinv(F, hermitian=True) * np.outer(units, units),
        unidentifiable=tuple(name for k, name in enumerate(base.names) if k not in kept),
        sigmas={name: 1.0 / weight for name, reads, weight in sigmas if reads >= 0},
        rate=rate,
        evaluations=found.evaluations,
        clearance=None if clearance is None else clearance.least(fine[0]),
        balance=None if balance is None else float(balance.of_motion(*fine)[0].max()),
        unknown=unknown,
    )


def check_table(path: Path) -> None:
    """Check, before the work, that a motion can be written to a file.

    Raises:
        FileFormatError: its name is that of no table, its folder does not exist or cannot be written.
    """
    if not path.name.lower().endswith(ENDINGS):
        raise FileFormatError(f"{path}: its name must end in {' or '.join(ENDINGS)}.")
    check_writable(path)


def checked_rate(rate: Any, duration: float) -> float:
    """Check a rate of samples [1/s].

    Raises:
        InputError: it is not positive, or makes too many samples.
    """
    if not is_number(rate) or not 0 < rate < math.inf:
        raise InputError(f"rate is {rate!r:.40}: it must be a positive number of samples a second.")
    if not 1 <= rate * duration <= MOST_ROWS:
        raise InputError(
            f"rate is {rate:g}: that makes {rate * duration:,.3g} samples in {duration:g} s. Between 1 and "
            f"{MOST_ROWS:,} are written."
        )
    return float(rate)


def _condition(F: Floats) -> float:
    values = np.linalg.eigvalsh(F)
    return math.sqrt(values[-1] / max(values[0], np.finfo(float).tiny))

"""The search for the most exciting motion: augmented Lagrangians, each minimised by L-BFGS, from several starts.

Motions are coefficients z of Fourier series, in units of what fills the limits: the mean position of half the room
there is, every other one of the largest amplitude that position, speed and acceleration allow it alone. With r(z) all
ratios to limits, which may be between -s and s, J the criterion, and multipliers a, b >= 0 of the ends,

    L(z) = -J(z) + 1 / (2 rho) sum (max(0, a + rho (r - s))^2 + max(0, b - rho (r + s))^2)

is minimised, then a = max(0, a + rho (r - s)) and b alike, and rho grows. A motion that leaves the limits between
samples is sought again with smaller s there, and what is left of that is taken away by a smaller motion about the same
rest: so the limits hold in any case. Steps are counted, and no clock is asked.

Source: Swevers et al. (1997); Nocedal and Wright, Numerical Optimization (2006), ch. 17.4; Hestenes, Powell and
Rockafellar for inequalities.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import block_diag, null_space
from scipy.optimize import minimize

from nori_dyn.algebra.arrays import checked, counted, numeric
from nori_dyn.errors import InputError
from nori_dyn.identification.limits import MotionConstraint, MotionLimits, is_number
from nori_dyn.identification.motion_function import Pullback
from nori_dyn.identification.motion_information import Criterion, MotionInformation
from nori_dyn.identification.motor_torques import MotorTorques
from nori_dyn.identification.moving_joints import MovingJoints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats


@dataclass(frozen=True)
class FourierSeries:
    """The functions of time that a joint's motion is a sum of, which may begin and end at rest.

    Joint j moves by

        q_j(t) = q0_j + sum_l a_lj / (w l) sin(w l t) - b_lj / (w l) cos(w l t),  l = 1 ... harmonics, w = 2 pi / T

    with the duration T, so that a_lj and b_lj are amplitudes of its speed. Where the motion is to begin and end at
    rest, speed and acceleration are zero at t = 0, and so at the end of the period: sum a_lj = 0 and sum l b_lj = 0.
    Both are linear, and the coefficients are taken from the space that they leave.

    Source: Swevers, Ganseman, Tukel, De Schutter and Van Brussel, Optimal robot excitation and identification (1997).

    Attributes:
        duration: the period [s].
        harmonics: how many multiples of the lowest frequency there are.
        at_rest: whether speed and acceleration are zero at both ends.

    Raises:
        InputError: a duration that is not positive; too few harmonics.
    """

    duration: float
    harmonics: int
    at_rest: bool = True

    def __post_init__(self) -> None:
        if not is_number(self.duration):
            raise InputError(f"duration is {self.duration!r:.40}: give a number of seconds.")
        if not 0 < self.duration < math.inf:
            raise InputError(f"duration is {self.duration:g} s: it must be positive and finite.")
        if counted("harmonics", self.harmonics) < 2 and self.at_rest:
            raise InputError(
                "harmonics is 1: a motion that begins and ends at rest needs 2 or more. Take 5, or at_rest=False."
            )

    @property
    def n(self) -> int:
        """Number of coefficients of a joint, that of its mean position first."""
        return int(self._free.shape[1])

    @cached_property
    def _free(self) -> Floats:
        """What q0, a and b (1 + 2 harmonics, n) may be."""
        L = self.harmonics
        if not self.at_rest:
            return np.eye(1 + 2 * L)
        ends = np.zeros((2, 2 * L))
        ends[0, :L], ends[1, L:] = 1.0, np.arange(1, L + 1)
        return np.asarray(block_diag(np.eye(1), null_space(ends)))

    def basis(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """Functions at times t (N,) [s], and their first and second derivatives: (N, n) each."""
        k = 2.0 * math.pi / self.duration * np.arange(1, self.harmonics + 1)
        angle = np.multiply.outer(np.asarray(t, dtype=float), k)
        s, c = np.sin(angle), np.cos(angle)
        one, none = np.ones((len(s), 1)), np.zeros((len(s), 1))
        q, qd, qdd = np.hstack([one, s / k, -c / k]), np.hstack([none, c, s]), np.hstack([none, -s * k, c * k])
        return q @ self._free, qd @ self._free, qdd @ self._free

    def times(self, n: int) -> Floats:
        """Times (n,) [s] of a period, evenly spaced; the end, which is the beginning, is none of them."""
        return np.asarray(np.arange(n) * (self.duration / n))


@dataclass(frozen=True, eq=False)
class Trajectory:
    """A motion of a robot.

    Attributes:
        joints: those that move.
        forces: of their motors.
        series: the functions of time.
        coefficients: of the series (n_joints, n).
    """

    joints: MovingJoints
    forces: MotorTorques
    series: FourierSeries
    coefficients: Floats

    @property
    def tree(self) -> KinematicTree:
        """The robot."""
        return self.joints.tree

    def at(self, t: ArrayLike) -> tuple[Floats, Floats, Floats]:
        """State q, qd and qdd at times t [s]: (nq,), (nv,), (nv,) at one, with a leading N at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        times = numeric("t", t)
        flat = checked("t", np.atleast_1d(times).ravel(), (times.size,))
        q, qd, qdd = self.joints.whole(*(basis @ self.coefficients.T for basis in self.series.basis(flat)))
        shape = times.shape
        return q.reshape(*shape, -1), qd.reshape(*shape, -1), qdd.reshape(*shape, -1)

    def torques(self, t: ArrayLike) -> Floats:
        """Joint forces (nv,) [N m, N] at a time t [s], or (N, nv) at N of them.

        Raises:
            InputError: times that are no finite numbers.
        """
        q, qd, qdd = (x.reshape(-1, x.shape[-1]) for x in self.at(t))
        return self.forces(q, qd, qdd).reshape(*np.shape(t), -1)


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

ROUNDS = 8
"""Times that multipliers are set."""

MENDING = 3
"""Times that a motion is sought again that leaves the limits between the samples."""

STIFFNESS, STIFFER = 1.0, 2.0
"""rho at first, for each parameter, and how much it grows each time."""

STEPS = 100
"""Steps of L-BFGS before the multipliers are set, each time."""

OPEN = 1e12
"""What the Lagrangian is where loops cannot be closed: the step is then made smaller."""

RANDOM = 200
"""Random motions of which the best are starts, and with which what is found is compared."""

WithRates: TypeAlias = tuple[Floats, Floats, Floats]
"""Numbers at N samples, their first and second derivatives: functions of time (N, n), or a robot's q, qd and qdd."""


@dataclass(frozen=True, slots=True, eq=False)
class BestMotion:
    """The most exciting motion that was found.

    Attributes:
        z: the coefficients (n_joints, n), in the units of the search.
        value: the criterion.
        of_random: the criterion of random motions, as they were drawn.
        random: the best of these.
        evaluations: how often a motion was judged, with derivatives.
    """

    z: Floats
    value: float
    of_random: Floats
    random: Floats
    evaluations: int


@dataclass(frozen=True, eq=False)
class MotionSearch:
    """What is sought: the motion of the best criterion that keeps its limits.

    Attributes:
        joints: those that move.
        series: how they move.
        limits: theirs.
        constraints: these, and what else motions keep, the quickest to check first.
        information: of a motion.
        criterion: how that is judged.
        middle: the positions (n_joints,) about which motions are drawn, in which the robot can rest.
    """

    joints: MovingJoints
    series: FourierSeries
    limits: MotionLimits
    constraints: tuple[MotionConstraint, ...]
    information: MotionInformation
    criterion: Criterion
    middle: Floats

    def best(self, starts: int, seed: int, progress: Progress) -> BestMotion:
        """Search; what is found is never worse than the best random motion.

        Args:
            starts: how many of the best random motions are improved.
            seed: seed of the random motions.
            progress: receives how far it is.
        """
        rng, drawn = np.random.default_rng(seed), []
        for k in range(RANDOM):
            if not k % 10:
                progress("random motions", k / RANDOM)
            drawn.append(self.random(rng))
        values = np.array([self.judged(z) for z in drawn])
        order = np.argsort(-values)
        best, evaluations = self.shrunk(drawn[order[0]], self.fine), 0
        value = self.judged(best)
        for number, k in enumerate(order[:starts], start=1):
            z, n = self.improved(drawn[k], partial(progress, f"start {number} of {starts}"))
            evaluations += n
            if (reached := self.judged(z)) > value:
                best, value = z, reached
        return BestMotion(best, value, values, drawn[order[0]], evaluations)

    # Motions, from their coefficients

    @cached_property
    def coarse(self) -> WithRates:
        """The functions of the series (N, n), and their derivatives, at the samples at which motions are judged."""
        return self.series.basis(self.series.times(SAMPLES * self.series.harmonics))

    @cached_property
    def fine(self) -> WithRates:
        """Those at which limits are checked."""
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
        n, limits = len(self.joints.bodies), self.limits
        return limits.room[:n], limits.speed[:n], limits.acceleration[:n]

    def coefficients(self, z: Floats) -> Floats:
        """Coefficients (n_joints, n) of the series."""
        found = z * self.units
        found[:, 0] += self.limits.middle[: len(z)]
        return found

    def motion(self, z: Floats, bases: WithRates) -> WithRates:
        """The motion of the whole robot; no numbers where loops cannot be closed."""
        coefficients = self.coefficients(z)
        return self.joints.whole(*(basis @ coefficients.T for basis in bases))

    @cached_property
    def at_rest(self) -> Floats:
        """Rest in the middle."""
        z = np.zeros((len(self.middle), self.series.n))
        z[:, 0] = (self.middle - self.limits.middle[: len(z)]) / self._sizes[0]
        return z

    # What they are worth, and what they keep

    def judged(self, z: Floats) -> float:
        """Criterion of a motion."""
        return self.criterion(self.information_of(z))[0]

    def information_of(self, z: Floats) -> Floats:
        """Information of a motion."""
        return self.information.of_motion(*self.motion(z, self.coarse))[0]

    def ratios(self, motion: WithRates) -> tuple[Floats, Pullback]:
        """What a motion takes of all that it has to keep (N, n), and the derivatives."""
        parts, pullbacks = zip(*(each.of_motion(*motion) for each in self.constraints), strict=True)
        ends = np.cumsum([part.shape[1] for part in parts])[:-1]

        def pullback(factors: Floats) -> Floats:
            own = np.split(factors, ends, axis=1)
            return np.asarray(sum(pulled(part) for pulled, part in zip(pullbacks, own, strict=True)))

        return np.hstack(parts), pullback

    def is_within(self, motion: WithRates) -> bool:
        """Whether a motion keeps all that it has to, with the margin."""
        return bool(np.isfinite(motion[0]).all()) and all(
            np.abs(each.of_motion(*motion)[0]).max(initial=0.0) <= 1.0 - MARGIN for each in self.constraints
        )

    def shrunk(self, z: Floats, bases: WithRates) -> Floats:
        """Bring a motion towards rest in the middle, as far as it has to be to keep all at some samples."""
        rest, within, beyond = self.at_rest, 0.0, 1.0
        if self.is_within(self.motion(z, bases)):
            return z
        for _ in range(HALVINGS):
            size = (within + beyond) / 2
            is_within = self.is_within(self.motion(rest + size * (z - rest), bases))
            within, beyond = (size, beyond) if is_within else (within, size)
        return rest + within * (z - rest)

    def random(self, rng: np.random.Generator) -> Floats:
        """Draw a random motion that fills the limits at the samples at which motions are judged.

        It is about rest where it could not be made about another posture.
        """
        z = rng.normal(size=self.at_rest.shape)
        z[:, 0] = 0.0
        mean = rng.uniform(-0.3, 0.3, len(z))
        mean += self.at_rest[:, 0] * (1.0 - np.abs(mean))
        parts = zip(self.coarse, self._sizes, strict=True)
        position, speed, acceleration = (np.abs(basis @ (z * self.units).T).max(axis=0) / size for basis, size in parts)
        z *= (1.0 - 2 * MARGIN) / np.max([position / (1.0 - np.abs(mean)), speed, acceleration], axis=0)[:, None]
        z[:, 0] = mean
        if not self.is_within(self.motion(z, self.coarse)):
            z[:, 0] = self.at_rest[:, 0]
        return self.shrunk(z, self.coarse)

    # The search

    def improved(self, z: Floats, progress: Callable[[float], None]) -> tuple[Floats, int]:
        """Improve a motion that keeps the limits at the coarse samples; and how often one was judged for that."""
        lagrangian = _Lagrangian(self, self.ratios(self.motion(z, self.coarse))[0])
        for k in range(ROUNDS + MENDING):
            progress(k / (ROUNDS + MENDING))
            if k >= ROUNDS:
                motion = self.motion(z, self.fine)
                if self.is_within(motion) or not np.isfinite(motion[0]).all():
                    break
                lagrangian.tighten(self.ratios(motion)[0])
            z = minimize(lagrangian, z.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": STEPS}).x.reshape(
                z.shape
            )
            lagrangian.update(self.ratios(self.motion(z, self.coarse))[0])
            if k < ROUNDS:
                lagrangian.rho *= STIFFER
        return self.shrunk(z, self.fine), lagrangian.evaluations


class _Lagrangian:
    """The augmented Lagrangian.

    Args:
        search: what is sought.
        ratios: of the start (N, n).
    """

    def __init__(self, search: MotionSearch, ratios: Floats) -> None:
        self._search, self.evaluations = search, 0
        self._upper, self._lower = np.zeros(ratios.shape), np.zeros(ratios.shape)
        self._allowed = np.full(ratios.shape[1], 1.0 - 2 * MARGIN)
        self.rho = STIFFNESS * search.information.layout.shape[1]

    def _pushes(self, ratios: Floats) -> tuple[Floats, Floats]:
        """What the multipliers of both ends would be (N, n) each."""
        above = np.maximum(0.0, self._upper + self.rho * (ratios - self._allowed))
        return above, np.maximum(0.0, self._lower - self.rho * (ratios + self._allowed))

    def update(self, ratios: Floats) -> None:
        """Set the multipliers."""
        self._upper, self._lower = self._pushes(ratios)

    def tighten(self, ratios: Floats) -> None:
        """Allow less of what leaves the limits between the samples."""
        most = np.abs(ratios).max(axis=0, initial=0.0)
        self._allowed *= np.minimum(1.0, (1.0 - 2 * MARGIN) / np.maximum(most, 0.5))

    def __call__(self, flat: Floats) -> tuple[float, Floats]:
        """The value, and its derivatives."""
        search = self._search
        self.evaluations += 1
        motion = search.motion(flat.reshape(search.units.shape), search.coarse)
        if not np.isfinite(motion[0]).all():
            return OPEN, np.zeros(flat.shape)
        F, by_information = search.information.of_motion(*motion)
        J, G = search.criterion(F)
        ratios, by_ratios = search.ratios(motion)
        above, below = self._pushes(ratios)
        value = -J + float((above**2).sum() + (below**2).sum()) / (2 * self.rho)
        by_joints = search.joints.pullback(*motion, by_ratios(above - below) - by_information(G))
        gradient = sum(part.T @ basis for part, basis in zip(by_joints, search.coarse, strict=True))
        return value, (gradient * search.units).ravel()

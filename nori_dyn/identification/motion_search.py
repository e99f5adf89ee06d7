"""The search for the most exciting motion: augmented Lagrangians, each minimised by L-BFGS, from several starts.

With r(z) all ratios to limits, which may be between -s and s, J the criterion, and multipliers a, b >= 0 of the ends,

    L(z) = -J(z) + 1 / (2 rho) sum (max(0, a + rho (r - s))^2 + max(0, b - rho (r + s))^2)

is minimised, then a = max(0, a + rho (r - s)) and b alike, and rho grows. A motion that leaves the limits between
samples is sought again with smaller s there, and what is left of that is taken away by a smaller motion about the same
rest: so the limits hold in any case. Steps are counted, and no clock is asked.

Source: Nocedal and Wright, Numerical Optimization (2006), ch. 17.4; Hestenes, Powell and Rockafellar for inequalities.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from nori_dyn.identification.excitation import MARGIN, Excitation
from nori_dyn.tables.progress import Progress
from nori_dyn.typing import Floats

ROUNDS = 8
"""Times that multipliers are set."""

MENDING = 3
"""Times that a motion is sought again that leaves the limits between the samples."""

STIFFNESS, STIFFER = 1.0, 2.0
"""rho at first, for each parameter, and how much it grows each time."""

OPEN = 1e12
"""What the Lagrangian is where loops cannot be closed: the step is then made smaller."""

RANDOM = 200
"""Random motions of which the best are starts, and with which what is found is compared."""


@dataclass(frozen=True, slots=True, eq=False)
class BestMotion:
    """The most exciting motion that was found.

    Attributes:
        z: the coefficients (n_joints, n), in the units of the problem.
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


def most_exciting(problem: Excitation, starts: int, steps: int, seed: int, progress: Progress) -> BestMotion:
    """Search for the most exciting motion within the limits; never one worse than the best random one.

    Args:
        problem: the problem.
        starts: how many of the best random motions are improved.
        steps: steps of L-BFGS before the multipliers are set, each time.
        seed: seed of the random motions.
        progress: is told how far it is.
    """
    rng = np.random.default_rng(seed)
    drawn = []
    for k in range(RANDOM):
        if not k % 10:
            progress("random motions", k / RANDOM)
        drawn.append(problem.random(rng))
    values = np.array([problem.judged(z) for z in drawn])
    order = np.argsort(-values)
    best, evaluations = problem.shrunk(drawn[order[0]]), 0
    value = problem.judged(best)
    for number, k in enumerate(order[:starts], start=1):
        search = _AugmentedLagrangian(problem, steps, progress, f"start {number} of {starts}")
        z = search.best(drawn[k])
        evaluations += search.evaluations
        if (reached := problem.judged(z)) > value:
            best, value = z, reached
    return BestMotion(best, value, values, drawn[order[0]], evaluations)


class _AugmentedLagrangian:
    """The search from one start.

    Args:
        problem: the problem.
        steps: steps of L-BFGS each time.
        progress: is told how far it is.
        stage: what to call it.
    """

    def __init__(self, problem: Excitation, steps: int, progress: Progress, stage: str) -> None:
        self._problem, self._steps, self._progress, self._stage = problem, steps, progress, stage
        self._allowed = [np.full(part.shape[1], 1.0 - 2 * MARGIN) for part in self._ratios(problem.at_rest)]
        self._pairs: list[tuple[Floats, Floats]] = []
        self._stiffness = STIFFNESS * len(problem.information.columns)
        self.evaluations = 0

    def best(self, z: Floats) -> Floats:
        """Improve a start that is within the limits."""
        self._pairs = [(np.zeros(part.shape), np.zeros(part.shape)) for part in self._ratios(z)]
        total = ROUNDS + MENDING
        for k in range(ROUNDS):
            self._progress(self._stage, k / total)
            z = self._round(z)
            self._stiffness *= STIFFER
        for k in range(MENDING):
            if self._problem.is_within(z, self._problem.fine):
                break
            self._progress(self._stage, (ROUNDS + k) / total)
            for part, allowed in zip(self._problem.ratios(z, self._problem.fine), self._allowed, strict=True):
                most = np.abs(part).max(axis=0, initial=0.0)
                allowed *= np.minimum(1.0, (1.0 - 2 * MARGIN) / np.maximum(most, 0.5))
            z = self._round(z)
        return self._problem.shrunk(z)

    def _round(self, z: Floats) -> Floats:
        """Minimise the Lagrangian, and set the multipliers."""
        found = minimize(self._lagrangian, z.ravel(), jac=True, method="L-BFGS-B", options={"maxiter": self._steps})
        z = found.x.reshape(z.shape)
        for (upper, lower), part, allowed in zip(self._pairs, self._ratios(z), self._allowed, strict=True):
            upper[:] = np.maximum(0.0, upper + self._stiffness * (part - allowed))
            lower[:] = np.maximum(0.0, lower - self._stiffness * (part + allowed))
        return z

    def _ratios(self, z: Floats) -> tuple[Floats, ...]:
        return self._problem.ratios(z, self._problem.coarse)

    def _lagrangian(self, flat: Floats) -> tuple[float, Floats]:
        """Lagrangian and its derivatives."""
        problem, rho = self._problem, self._stiffness
        self.evaluations += 1
        z = flat.reshape(problem.shape)
        q, qd, qdd = problem.motion(z, problem.coarse)
        if not np.isfinite(q).all():
            return OPEN, np.zeros(flat.shape)
        F, pullback = problem.information.of_motion(q, qd, qdd, problem.stands_for)
        J, G = problem.criterion(F)
        by_motion = -pullback(G)
        value = -J
        for each, (upper, lower), allowed in zip(problem.constraints, self._pairs, self._allowed, strict=True):
            part, pulled = each.of_motion(q, qd, qdd)
            above = np.maximum(0.0, upper + rho * (part - allowed))
            below = np.maximum(0.0, lower - rho * (part + allowed))
            value += float((above**2).sum() + (below**2).sum()) / (2 * rho)
            by_motion += pulled(above - below)
        by_joints = problem.joints.pullback(q, qd, qdd, by_motion)
        gradient = sum(part.T @ basis for part, basis in zip(by_joints, problem.coarse, strict=True))
        return value, (gradient * problem.units).ravel()

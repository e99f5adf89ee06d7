"""Plausibility of an identification: signs that are turned, readings that are late, motions that excite nothing.

And parameters of joints that logs do not show, which are left out: Stribeck's curve, and harmonics.
"""

from __future__ import annotations

import math
import re
from collections.abc import Container, Iterator, Mapping, Sequence

import numpy as np
from scipy.linalg import solve_triangular
from scipy.special import chdtrc

from nori_dyn.components.friction import Friction
from nori_dyn.identification.estimation import Solution
from nori_dyn.identification.formulation import Formulation, LogMoments
from nori_dyn.identification.moments import Evidence, Moments, joined, triangular
from nori_dyn.identification.parameters import WAVES, Parameters
from nori_dyn.identification.prior import ParameterPrior, PriorCheck
from nori_dyn.identification.problem import IdentificationProblem
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions.crba import crba
from nori_dyn.tables import listed, number
from nori_dyn.typing import Floats

STILL = (0.01, 0.001)
"""Range of a joint up to which it stands still: [rad] of one that turns, [m] of one that shifts."""

FEW = 0.5
"""Share of the combinations below which a log identifies few, and these are listed."""

LISTED = 8
"""Most combinations, or links, that are listed in a sentence."""

LOOKS = 8
"""Configurations at which the inertia that joints feel is looked at."""

HEAVY = 10.0
"""Masses that are as many times those of the model, or as small a part, mean nothing alone: a log tells sums."""

OPPOSITE = -0.5
"""Correlation of a reading with what the model predicts, below which its sign is likely turned."""

ROUNDING = 1e-6
"""Share of what is read below which its spread is rounding: the root of that of squares, and some."""

LATE = 0.02
"""Share of a reading's residual, squared, that its delay has to explain."""

FAR, SEVERAL = 30.0, 3
"""By how much a prior is widened that is far from what logs say; and of how many links at least a load is not why."""

NUMBER = r"(?<!\w)\d[\d.,e-]*"
"""A number in a sentence, which is none in a name, as of joint1."""


def doubts_of_logs(logs: Sequence[LogMoments]) -> Iterator[str]:
    """Yield what is implausible about each log; what is so of several, but for its numbers, once."""
    alike: dict[str, list[tuple[str, str]]] = {}
    for log in logs:
        for doubt in log.doubts:
            alike.setdefault(re.sub(NUMBER, "", doubt.message), []).append((log.log.path.name, doubt.message))
    for (first, message), *others in alike.values():
        names = dict.fromkeys(name for name, _ in others if name != first)
        yield f"{first}: {message}" + (f" The same is so in {listed(names)}, with other numbers." if names else "")


def still_joints(tree: KinematicTree, logs: Sequence[LogMoments]) -> tuple[str, ...]:
    """Joints that stand still in all logs though they could move."""
    moved = np.max([log.high for log in logs], axis=0) - np.min([log.low for log in logs], axis=0)
    return tuple(
        name
        for name, joint, part in zip(tree.joint_names, tree.joints, tree.q_slices, strict=True)
        if joint.nv and (moved[part] < (STILL[0] if any(joint.is_angular) else STILL[1])).all()
    )


def constant_readings(names: Sequence[str], readings: Container[str], logs: Sequence[LogMoments]) -> tuple[str, ...]:
    """Readings, among the rows of these names, that never change in any log: they tell nothing of their gains."""
    each = zip(names, *(joined(log.segments) for log in logs), strict=True)
    constant = (name for name, *rows in each if all(m.n and not _spread(m, m.unit("reading")) for m in rows))
    return tuple(name for name in constant if name in readings)


def _spread(m: Moments, u: Floats) -> float:
    """Standard deviation of a combination of columns; 0 where it is rounding."""
    spread = m.spread(u)
    return spread if spread > ROUNDING * m.rms(u) else 0.0


def weak_motion(
    still: Sequence[str], identified: Sequence[str], n_identified: int, n_identifiable: int
) -> Iterator[str]:
    """Yield sentences on a motion that excites little: joints that stand still, and all that it identifies.

    Args:
        still: the joints that stand still.
        identified: the combinations that the log identifies.
        n_identified: the number of independent directions that it identifies.
        n_identifiable: the number of those that the sensors can identify.
    """
    if still:
        plural = len(still) > 1
        their, they = ("their", "they") if plural else ("its", "it")
        yield (
            f"{'Joints' if plural else 'Joint'} {listed(map(repr, still))} stood still all the time: the log does not "
            f"identify {their} friction and rotor{'s' if plural else ''}, and says little of what "
            f"{they} carr{'y' if plural else 'ies'}. Friction and rotor{'s' if plural else ''} are left as in the "
            f"model: move {'them' if plural else 'it'} to identify these."
        )
    if n_identified < FEW * n_identifiable:
        names = listed(identified, LISTED) or "none by itself"
        yield (
            f"This motion identifies only {n_identified:,} of {n_identifiable:,} combinations, which are, or are sums "
            f"of: {names}. All else is as in the model. Move all joints at once, far and fast."
        )


def unread(joints: Sequence[str], feet: Sequence[str], others: Sequence[str], are_told: bool) -> Iterator[str]:
    """Yield sentences on what the logs do not hold, and what is taken for it.

    Args:
        joints: those whose torque is not read.
        feet: those whose wrench is not.
        others: links at the ends of other limbs whose wrench is not.
        are_told: whether the logs tell which feet stand.
    """
    if joints:
        yield (
            f"The logs hold no torque of {listed(map(repr, joints))}, which is not read: friction, rotors and offsets "
            "there are as in the model."
        )
    if feet:
        when = (
            "" if are_told else f" at every sample. Columns contact:{feet[0]} and so on, 1 where it stands, tell more"
        )
        yield f"The logs hold no wrench on {listed(map(repr, feet))}: what the ground does there is unknown{when}."
    if others:
        yield f"The logs hold no wrench on {listed(map(repr, others))}: nothing is taken to touch it."


def flat_curves(joints: Sequence[str]) -> Iterator[str]:
    """Yield a sentence on joints whose friction is no more at rest than in motion, by as much as logs tell."""
    if joints:
        yield (
            f"The logs show no Stribeck friction of {listed(map(repr, joints))}: it is not more at low velocities, but "
            "for what may be chance, and is left as in the model."
        )


def insignificant_harmonics(joints: Sequence[str]) -> Iterator[str]:
    """Yield a sentence on joints whose torque does not depend on the position in a way of its own, as logs tell."""
    if joints:
        yield f"The logs show no harmonics of {listed(map(repr, joints))} but what may be chance: they are left out."


def turned_signs(parameters: Parameters, plain: Floats) -> Iterator[str]:
    """Yield a sentence for each joint that, by plain least squares, feels a negative inertia.

    What a joint feels depends on base parameters alone, so that no choice among the others can mend it.

    Args:
        parameters: of the robot.
        plain: their values by least squares alone (n,).
    """
    tree = parameters.tree.replace(I=parameters.inertias(plain[: len(parameters)]), components=())
    rotors = _rotors(parameters, plain)
    H = crba(tree, tree.random_configurations(LOOKS, 0).T)
    felt = np.diagonal(H).max(axis=0) + rotors
    names = [tree.joint_names[i] for i, part in enumerate(tree.v_slices) if (felt[part] < 0).any()]
    if names:
        yield (
            f"By least squares alone, joint{'s' if len(names) > 1 else ''} {listed(map(repr, names))} would have a "
            "negative inertia in every pose: masses below zero. The motion is too slow there to identify inertias; or "
            "the sign of the torques, or of the accelerations, is turned."
        )


def opposite_readings(names: Sequence[str], logs: Sequence[Evidence], before: Floats) -> Iterator[str]:
    """Yield a sentence where readings are opposite to what the model predicts.

    Args:
        names: of the rows.
        logs: their evidence.
        before: parameters by the model as it was (n,).
    """
    each = zip(names, logs[0].rows, strict=True)
    found = {name: m.correlation(m.unit("reading"), m.prediction(logs[0].beta(before))) for name, m in each}
    opposite = [f"'{name}' ({correlation:.2f})" for name, correlation in found.items() if correlation < OPPOSITE]
    if opposite:
        yield (
            f"Readings are opposite to what the model predicts, by their correlation: {listed(opposite)}. "
            "Their sign is probably wrong: map them with scale -1."
        )


def unconnected_readings(
    constant: Sequence[str], names: Sequence[str], logs: Sequence[Evidence], before: Floats
) -> Iterator[str]:
    """Yield a sentence on readings that never change where the motion asks for torques that do.

    Args:
        constant: these readings.
        names: of the rows.
        logs: their evidence.
        before: parameters by the model as it was (n,).
    """
    each = zip(names, logs[0].rows, strict=True)
    found = [name for name, m in each if name in constant and _spread(m, m.prediction(logs[0].beta(before)))]
    if found:
        yield (
            f"{listed(map(repr, found))} never change{'' if found[1:] else 's'}, though the motion asks for it by the "
            "model: that is right of joints without a motor. Leave what is not measured out of the mapping."
        )


def unlikely_masses(parameters: Parameters, values: Floats) -> Iterator[str]:
    """Yield a sentence where links would weigh many times what they do in the model, or as little of it.

    Args:
        parameters: of the robot.
        values: what was found (n,).
    """
    known = zip(parameters.each, parameters.prior.tolist(), values[: len(parameters)].tolist(), strict=True)
    masses = [(each.owner, kg, found) for each, kg, found in known if each.kind == "m" and kg > 0]
    for far, odd in (
        ("more", [each for each in masses if each[2] > HEAVY * each[1]]),
        ("less", [each for each in masses if each[2] < each[1] / HEAVY]),
    ):
        if odd:
            link, kg, found = odd[0]
            names = listed(repr(name) for name, *_ in odd)
            yield (
                f"{'Links' if odd[1:] else 'Link'} {names} would weigh far {far} than in the model: '{link}' "
                f"{number(found)} kg, there {number(kg)} kg. That fits the logs and is no weight: they tell sums, and "
                "what the model lacks may be taken for inertia. Look at signs, zeros, gravity and units (of motor "
                "currents look for `gains`), or give what is known: known (--known m:LINK=1.5)."
            )


def contradicted_priors(checks: Sequence[PriorCheck]) -> Iterator[str]:
    """Yield a sentence for each link, and each other parameter, of which logs contradict the prior.

    Where these are several links, and far from the model, no load is why.

    Args:
        checks: tests of the priors.
    """
    far = {each.of: each.widened for each in checks if each.widened > FAR}
    if len(far) < SEVERAL:
        far = {}
    else:
        yield (
            f"The logs contradict all that the model says of {listed([*far], LISTED)}: their standard deviations are "
            f"multiplied by up to {number(max(far.values()))}. No load does that: signs, units, the order of joints or "
            "the motion of the base are wrong, more likely than the model. Use nothing of this until that is clear."
        )
    for each in checks:
        if each.widened > 1.0 and each.of not in far:
            yield (
                f"The logs contradict the prior of '{each.of}': chi-square {number(each.chi_square)} for "
                f"{each.freedoms} degrees of freedom. Its standard deviations are multiplied by "
                f"{number(each.widened)}, so that the logs decide. Does a link carry something that the model lacks? A "
                "load is identified from a log without it and one with it: loaded, load_on (--loaded, --load-on)."
            )


def delays(names: Sequence[str], logs: Sequence[Evidence], solution: Solution, dt: float | None) -> Mapping[str, float]:
    """Delay of each reading against the motion [s], where that explains something.

    A reading that is late by d reads true - d times its rate, as long as d is short: one more unknown a reading, found
    together with all parameters.

    Args:
        names: of the rows.
        logs: their evidence.
        solution: the estimate.
        dt: time between samples [s]; None where it is not known, and there is no answer.
    """
    if dt is None or not logs:
        return {}
    prior = solution.prior
    n = len(prior.values)
    every = [m for log in logs for m in log.rows]
    changing = {int(j) for m in every for j, rate in zip(m.delayed, m.rates.T, strict=True) if rate.any()}
    readings = sorted(changing)
    place, rows = {reading: k for k, reading in enumerate(readings)}, len(readings)
    stacked = []
    for log in logs:
        gains = np.array([log.gain(k, solution.values) for k in range(len(names))])
        for k, m in enumerate(log.rows):
            own = log.over(k, m, solution.values)
            late = np.zeros((len(own), rows))
            for j, rate in zip(m.delayed.tolist(), m.rates.T, strict=True):
                if j in place:
                    late[:, place[j]] = -rate * gains[j] / gains[k]
            stacked.append(np.column_stack([own[:, :-1], late, own[:, -1]]) / solution.sigma[k])
    known = np.column_stack([prior.L, np.zeros((len(prior.L), rows)), -prior.L @ prior.values])
    T = triangular(np.vstack([*stacked, known]))
    d = T[n : n + rows, n : n + rows]
    if not rows or (np.abs(np.diag(d)) == 0).any():
        return {}
    inverse = solve_triangular(d, np.eye(rows))
    late_by = -inverse @ T[n : n + rows, n + rows]
    explained = late_by**2 / np.sum(inverse**2, axis=1)  # growth of the sum of squares were one of them zero
    left = float(T[-1, -1] ** 2)
    return {
        names[reading]: float(late_by[k])
        for k, reading in enumerate(readings)
        if abs(late_by[k]) > 0.5 * dt and explained[k] > LATE * (left / rows + explained[k])
    }


def late_readings(found: Mapping[str, float], tree: KinematicTree, cutoff: float | None) -> Iterator[str]:
    """Yield sentences on readings that are late, of a robot whose friction may know presliding already.

    Args:
        found: how late they are [s].
        tree: the robot.
        cutoff: frequency of the low-pass over regressor and readings [Hz]; None without one.
    """
    has = any(isinstance(each, Friction) and each.presliding for each in tree.components)
    advice = "compare what was held out without `presliding`" if has else "look for `presliding` too"
    noisy = "" if cutoff is not None else " Noisy velocities look so as well: compare with a cutoff first (--cutoff 5)."
    for verb, sign in (("lag", 1.0), ("lead", -1.0)):
        own = {name: sign * late for name, late in found.items() if sign * late > 0}
        if own:
            shown = ", ".join(f"'{name}' by {1e3 * late:.3g} ms" for name, late in own.items())
            yield (
                f"Readings {verb} the motion: {shown}.{noisy} Correct it in the mapping (delay); until then friction "
                "and inertia are biased. For a single joint, friction that is no function of the velocity looks the "
                f"same: {advice}."
            )


def _rotors(parameters: Parameters, values: Floats) -> Floats:
    """Rotor inertia at each freedom (nv,), those that are not parameters by the model."""
    tree: KinematicTree = parameters.tree
    found = np.zeros(tree.nv)
    every = Parameters.of(tree, ["rotors"])
    for each, before in zip(every.each, every.prior, strict=True):
        at = parameters.place.get(each.name)
        found[tree.v_slices[tree.joint(each.owner)]] = before if at is None else values[at]
    return found


NONE = 1e-9
"""Deviation of harmonics that are none [N m]."""

BY_CHANCE = 1e-3
"""Chance of a joint's harmonics by noise, from which on that is what they are."""

CLEARLY = 3.0
"""Standard deviations by which friction is more at rest, from which on there is a Stribeck's curve."""


def flat_joints(problem: IdentificationProblem, solution: Solution) -> list[str]:
    """Joints whose friction is not clearly more at rest: noise determines where it would be."""
    parameters = (problem.all_parameters[k] for k in problem.free)
    each = zip(parameters, solution.values, solution.deviations, strict=True)
    return [one.owner for one, excess, off in each if one.kind == "excess" and excess < CLEARLY * off]


def significant(
    formulation: Formulation, logs: Sequence[LogMoments], prior: ParameterPrior, solution: Solution
) -> tuple[Formulation, ParameterPrior, Solution, tuple[str, ...]]:
    """The regression with those harmonics that logs show, their prior, its estimate, and joints of which they do not.

    A joint that moves in a small range determines six waves by their smallest differences: unbounded they are large,
    cancel each other there, and are wrong elsewhere. So each is expected to be as large as one that would be all that
    is left.

    Args:
        formulation: the regression.
        logs: moments of the logs.
        prior: the prior, which says nothing of harmonics.
        solution: the estimate with that.

    Raises:
        InputError: nothing else was looked for, and logs show no harmonics.
    """
    if not (groups := _groups(formulation)):
        return formulation, prior, solution, ()
    none = prior.with_deviation([place for places in groups.values() for place in places], NONE)
    left = formulation.solution(logs, none).sigma
    insignificant: tuple[str, ...] = ()
    while True:
        groups = _groups(formulation)
        for places in groups.values():
            prior = prior.with_deviation(places, math.sqrt(2.0) * _left_of(formulation, logs, left, places))
        solution = formulation.solution(logs, prior)
        found = tuple(name for name, places in groups.items() if _chance(solution, places) > BY_CHANCE)
        if not found:
            return formulation, prior, solution, insignificant
        insignificant += found
        formulation = formulation.without(WAVES, found, "show no harmonics", "Ask for other parameters.")
        prior = formulation.prior(logs)


def _groups(formulation: Formulation) -> Mapping[str, list[int]]:
    """Places of the harmonics of each joint among free parameters."""
    problem = formulation.problem
    found: dict[str, list[int]] = {}
    for place, k in enumerate(problem.free.tolist()):
        each = problem.all_parameters[k]
        if each.kind in WAVES:
            found.setdefault(each.owner, []).append(place)
    return found


def _left_of(formulation: Formulation, logs: Sequence[LogMoments], left: Floats, places: Sequence[int]) -> float:
    """What is left of the rows that some parameters are in, at the most; nothing where they are in none."""
    rows = {
        k
        for log in map(formulation.evidence, logs)
        for k, row in enumerate(log.rows)
        if log.E[row.columns][:, places].any()
    }
    return float(max((left[k] for k in rows), default=NONE))


def _chance(solution: Solution, places: Sequence[int]) -> float:
    """Chance that noise makes them so large, by how far the estimate is off."""
    own = solution.values[places]
    chi_square = own @ np.linalg.solve(solution.covariance[np.ix_(places, places)], own)
    return float(chdtrc(len(places), chi_square))

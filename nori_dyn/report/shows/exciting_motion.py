"""What `print` shows of an exciting motion: its criterion, what it asks of each joint, and what it identifies least."""

from __future__ import annotations

import numpy as np

from nori_dyn.identification.exciting_motion import ExcitingMotion
from nori_dyn.tables import Document, Facts, Paragraph, Part, Table, attributes, listed, number, unbroken

SAMPLES = 2000
"""Samples of which the largest values are shown."""

LEAST = 6
"""Parameters that are identified least that are shown."""

MOST_NAMES = 8
"""Names in a sentence."""


PARAMETER = ("name", "combination", "unit", "model", "deviation")
"""What JSON has of each parameter."""


def exciting_motion_document(motion: ExcitingMotion) -> Document:
    """The document of an exciting motion."""
    series = motion.trajectory.series
    ends = "at rest at both ends" if series.at_rest else "periodic"
    n = len(motion.parameters)
    what = "log det of the information" if motion.criterion == "D" else "-log of the sum of variances"
    best, median = motion.of_random.max(), np.median(motion.of_random)
    facts = (
        ("motion", f"{motion.duration:g} s, {series.harmonics} harmonics, {ends}"),
        ("identified", f"{n:,} base parameters, from {motion.rate:g} samples a second"),
        (
            f"criterion {motion.criterion}",
            f"{number(motion.value, 4)}, {what}; of {len(motion.of_random)} random motions the best has "
            f"{number(best, 4)}, half less than {number(median, 4)}",
        ),
        ("deviations", f"{motion.gain:.2f} times smaller than after the best of these"),
        ("condition", f"{number(motion.condition)}; of the best of these {number(motion.condition_of_random)}"),
    )
    title = f"Exciting motion of {unbroken(motion.trajectory.tree.name)}"
    parts: list[Part | str] = [Facts(facts, title), _joints(motion), _least(motion)]
    bad = motion.poorly_identified
    if bad:
        words = f"{len(bad):,}, deviations of more than half of the model's value: {listed(bad, MOST_NAMES)}."
        parts.append(Paragraph(words, "Poorly identified:"))
    if motion.unidentifiable:
        words = (
            f"{listed(motion.unidentifiable, MOST_NAMES)}. Other motions identify them: some joints stand still here."
        )
        parts.append(Paragraph(words, "Not identifiable:"))
    if motion.clearance is not None:
        distance, between = motion.clearance
        words = f"{between} come as near as {1e3 * distance:.1f} mm" if between else "nothing comes nearer than 100 mm"
        parts.append(Paragraph(f"{words}, by collision shapes.", "Distances:"))
    if motion.balance is not None:
        words = f"{motion.balance:.0%} is taken of what soles and friction leave, so that no contact tips or slips."
        parts.append(Paragraph(words, "Balance:"))
    if motion.unknown:
        words = f"{'; '.join(motion.unknown)}. Look at the motion in a simulator first."
        parts.append(Paragraph(words, "Not known:"))
    of_each = motion.prior.tolist(), motion.deviations.tolist()
    columns = motion.parameters, motion.combinations, motion.units, *of_each
    figures = {
        "robot": motion.trajectory.tree.name,
        "joints": list(motion.limits.joints),
        **attributes(motion, "duration", "criterion", "value", "gain", "condition", "condition_of_random"),
        "best_of_random": float(motion.of_random.max()),
        "parameters": [dict(zip(PARAMETER, each, strict=True)) for each in zip(*columns, strict=True)],
        **attributes(motion, "poorly_identified", "unidentifiable", "balance", "unknown"),
        "clearance": None if motion.clearance is None else motion.clearance[0],
    }
    return Document(tuple(parts), figures)


def _joints(motion: ExcitingMotion) -> Table:
    """The largest values of each joint, beside its limits."""
    limits, trajectory = motion.limits, motion.trajectory
    t = trajectory.series.times(SAMPLES)
    q, qd, qdd = trajectory.at(t)
    tau = np.abs(trajectory.torques(t)).max(axis=0)
    rows = []
    for k, i in enumerate((*trajectory.joints.bodies, *trajectory.joints.followers)):
        own_q, own_v = trajectory.tree.q_slices[i].start, trajectory.tree.v_slices[i].start
        low, high = q[:, own_q].min(), q[:, own_q].max()
        row = (
            unbroken(limits.joints[k]),
            unbroken(f"{low:.2f} to {high:.2f}"),
            unbroken(f"{limits.lower[k]:.2f} to {limits.upper[k]:.2f}"),
            _of(float(np.abs(qd[:, own_v]).max()), float(limits.speed[k])),
            _of(float(np.abs(qdd[:, own_v]).max()), float(limits.acceleration[k])),
            _of(float(tau[own_v]), float(limits.torque[own_v])),
        )
        rows.append(row)
    columns = ("joint", "position", "limits", "speed", "acceleration", "torque")
    note = "Largest values, of what they may be; in rad or m, seconds, N m or N. The torque is that of the model."
    return Table("Joints", columns, tuple(rows), (note,))


def _of(value: float, limit: float) -> str:
    return unbroken(f"{number(value)} of {number(limit) if np.isfinite(limit) else 'any'}")


def _least(motion: ExcitingMotion) -> Table:
    """The parameters whose deviations are largest beside what they are in the model."""
    known = np.abs(motion.prior) > 0
    share = np.where(known, motion.deviations / np.where(known, np.abs(motion.prior), 1.0), 0.0)
    worst = [int(k) for k in np.argsort(-share)[:LEAST] if known[k]]
    rows = tuple(
        (
            unbroken(motion.parameters[k]),
            number(motion.prior[k]),
            number(motion.deviations[k]),
            unbroken(motion.units[k]),
            f"{share[k]:.1%}" if share[k] < 1 else unbroken(f"{number(share[k], 2)} times"),
        )
        for k in worst
    )
    sigmas = sorted(set(motion.sigmas.values()))
    between = number(sigmas[0]) if len(sigmas) == 1 else f"{number(sigmas[0])} to {number(sigmas[-1])}"
    note = f"With readings whose sigma is {between}. A + says that there is more to a parameter than its name."
    return Table(
        "Identified least", ("parameter", "model", "deviation", "unit", "of the model"), rows, (note,), left=(0, 3)
    )

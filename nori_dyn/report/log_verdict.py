"""The verdict on a log, before anything is drawn: whether it is plausible and its readings fit, what was counted."""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from nori_dyn.filtering.false_alarms import HOUR
from nori_dyn.filtering.history_summary import Event
from nori_dyn.measurements.contacts import COLLISION, CONTACT
from nori_dyn.measurements.floating_base import BASE
from nori_dyn.report.layout import Verdict
from nori_dyn.report.recorded import DROPPED, FELL_BACK, SINGULAR, RecordedLog, Suspicion, misfit, window_probabilities
from nori_dyn.system.variables import kind_in_words
from nori_dyn.tables import listed, number, unbroken

MOST_NAMED = 6
"""Most sensors that are named in a sentence."""

NEARLY = 1.2
"""Chi-square over its expectation up to which readings fit, however long the log: sigmas are a tenth too small."""

LOW = 1e-3
"""A probability below which readings do not fit together."""

IMPLAUSIBLE = {
    "limits": "q is outside the joint limits",
    "clock": "time does not go on as it should",
    "rates": "q and qd contradict each other",
    "accelerations": "qd and qdd contradict each other",
    "magnitudes": "readings have an impossible size",
    "estimate": "wrenches have an impossible size",
    "gravity": "torques do not follow gravity",
    "torques": "torques are not those of the motion",
    "imu": "an IMU reads in another frame or unit",
    "consistency": "the readings contradict each other",
}
"""What a plausibility warning says in a heading, by its check."""

ORDER = ("tau", "tau_J", "fx", BASE, "", "qdd", "f", "a")
"""The kinds of estimates as they follow each other, what most people look for first; "" is any other."""


def verdict(log: RecordedLog) -> Verdict:
    """What is not plausible about a log; otherwise whether its readings fit together, or what is estimated."""
    found = _fit_of_readings(log)
    is_judged = log.diagnosis is not None or log.consistency is not None
    doubts = [each for each in log.doubts if each.check != "consistency" or not is_judged]
    if not doubts:
        return found
    others = f"{counted(len(log.doubts) - 1, 'more plausibility warning')}; see below." if len(log.doubts) > 1 else ""
    sentences = tuple(sentence for sentence in found.sentences if sentence != _warned(log))
    message = re.sub("^the ", "The ", doubts[0].message)
    return Verdict("no", f"Not plausible: {IMPLAUSIBLE[doubts[0].check]}", (message, others, *sentences))


def rank_of(kind: str) -> int:
    """How early a kind of estimates is drawn: what most people look for comes first."""
    return ORDER.index(kind if kind in ORDER else "")


def _estimated(log: RecordedLog) -> str:
    """What was asked for, as a heading."""
    outputs = sorted(log.outputs, key=lambda output: rank_of(output.kind))
    kinds = [*dict.fromkeys(kind_in_words(output.kind) for output in outputs)]
    owners = [unbroken(output.owner) for output in outputs]
    if len(kinds) > 2:
        words = f"{', '.join(kinds[:2])} and {counted(len(kinds) - 2, 'other quantity', 'other quantities')}"
    elif len(kinds) == 1 and len(owners) <= 2 and all(owners):
        words = f"{kinds[0]} {'on' if outputs[0].kind == 'fx' else 'of'} {' and '.join(owners)}"
    else:
        words = " and ".join(kinds)
    return f"Estimated: {words}"


def _fit_of_readings(log: RecordedLog) -> Verdict:
    """Whether the readings of a log fit together, where that is known."""
    odd = tuple(_odd(log))
    if log.is_watched:
        return _watched(log, odd)
    is_partial = any(flag.any() for name, flag in log.flags.items() if name == SINGULAR or name.startswith(DROPPED))
    plain = "sometimes" if is_partial else "plain"
    if log.consistency is not None and log.consistency.degrees > 0:
        ratio, p = log.consistency.ratio, log.consistency.p_value
        sentence = (
            f"{log.unjudged} Chi-square is {number(ratio, 3)} times what it is of sound readings (p {number(p, 2)})."
        )
        if p < LOW and ratio > NEARLY:
            return Verdict("no", "The readings do not fit their sigmas and the model", (sentence, *odd))
        heading = "The readings fit together"
        if p < LOW and ratio > 1:
            sentence += f" So long a log shows that sigmas are {100 * (ratio**0.5 - 1):.0f} % too small."
        elif p < LOW:
            heading = "The readings fit better than their sigmas say"
        return Verdict("sometimes" if odd else "yes", heading, (sentence, *odd))
    if log.diagnosis is None:
        return Verdict(plain, _estimated(log), (f"{log.unjudged} Nothing checks the readings.", *odd))
    spare = int(np.max(log.diagnosis.degrees_of_freedom))
    if spare < 1:
        alone = "No reading is redundant, so none checks another: each sensor is taken at its word."
        return Verdict(plain, _estimated(log), (alone, *odd))
    fit = tuple(_fit(log))
    if not log.suspects:
        return Verdict("sometimes" if odd else "yes", "The readings fit together", (*fit, *odd))
    first, *others = log.suspects
    accused = [_accusation(log, first, log.suspects[first])]
    if others:
        accused.append(
            f"Suspect as well: {listed(others, MOST_NAMED)}. A faulty sensor, a wrong model or sigmas too small "
            "disturb the residuals of sound sensors too; only the clearest in each window is certainly off."
        )
    if spare == 1:
        accused.append("With one redundant reading it shows that something is off, but not which reading it is.")
    windows = window_probabilities(log.diagnosis)
    if min(p for _, _, p in windows) >= LOW / len(windows):
        steady = (
            "No residual is larger than the sigmas allow, but they do not average out as noise does: an offset, or a "
            "model that is a little off. Standard deviations do not contain it."
        )
        return Verdict(
            "sometimes", "The readings fit within their sigmas, but are steadily off", (steady, *accused, *fit, *odd)
        )
    vague = spare == 1 or len(others) >= MOST_NAMED
    heading = "The readings do not fit together" if vague else f"{unbroken(first)} does not fit the other sensors"
    return Verdict("no", heading, (*accused, *fit, *odd))


def _accusation(log: RecordedLog, sensor: str, own: tuple[Suspicion, ...]) -> str:
    worst = max(own, key=lambda each: each.strength)
    unit = log.units.get(worst.fault.reading, "")
    ends = (log.time[own[0].first], log.time[min(own[-1].stop, len(log)) - 1])
    mean = f"{number(worst.fault.offset, 2)} {unit}".strip()
    when = f"from {_moment(log, ends[0])} to {_moment(log, ends[1])}"
    about = _moment(log, log.time[worst.first])
    return (
        f"{unbroken(sensor)}: in {counted(len(own), 'window')} {when}, the worst about {about}, where "
        f"{unbroken(worst.fault.reading)} is off by {number(worst.strength, 2)} sigma at most and by {mean} on average."
    )


def _moment(log: RecordedLog, time: float) -> str:
    return f"sample {int(time):,}" if log.start is None else f"{number(time)} s"


def _fit(log: RecordedLog) -> Iterator[str]:
    if log.diagnosis is None:
        return
    ratio = misfit(log.diagnosis)
    ratio = ratio[np.isfinite(ratio)]
    if len(ratio):
        p = np.asarray(log.diagnosis.p_value)
        bad = int(np.count_nonzero(p < LOW))
        yield (
            f"The residuals are {number(float(np.sqrt(np.median(ratio))), 2)} times as large as the sigmas say "
            f"(median); in {bad:,} of {len(p):,} samples they contradict each other (p < {LOW:g})."
        )


def _watched(log: RecordedLog, odd: tuple[str, ...]) -> Verdict:
    """Whether something touched the robot."""
    watched, words = log.watched, list[str]()
    what = "touch" if watched is None else "collision"
    if watched is not None:
        chosen, learnt = watched.alarms.per_hour, watched.alarms.peaks is not None
        how = "by logs in which nothing touches the robot" if learnt else "if noise is as the sensors say"
        expected = number(chosen * watched.duration / HOUR, 2)
        words.append(f"By chance {expected} are expected in so long a log: {number(chosen)} an hour, {how}.")
    if not log.events:
        return Verdict("sometimes" if odd else "yes", f"No {what}", (*words, *odd))
    events = [f"at {number(log.time[first], 4)} s {_where(event)}" for first, _, event in log.events]
    return Verdict("no", counted(len(events), what, plural(what)), (f"{listed(events, MOST_NAMED)}.", *words, *odd))


def _where(event: Event) -> str:
    """What showed a collision, or which link was touched and where."""
    if event.name.startswith(COLLISION):
        return f"by {unbroken(event.name.removeprefix(COLLISION))}"
    link = f"on {unbroken(event.name.removeprefix(CONTACT))}"
    return f"{link} at ({', '.join(number(x, 3) for x in event.point[:3])}) m" if event.point else link


def plural(what: str) -> str:
    """Several of a collision, or of a touch."""
    return f"{what}es" if what.endswith("h") else f"{what}s"


def _odd(log: RecordedLog) -> Iterator[str]:
    counts = {name: int(np.count_nonzero(flag)) for name, flag in log.flags.items()}
    if counts.get(SINGULAR):
        yield f"{counts[SINGULAR]:,} of {len(log):,} samples have no unique solution: there the sensors do not suffice."
    dropped = {name.removeprefix(DROPPED): n for name, n in counts.items() if name.startswith(DROPPED) and n}
    if dropped:
        most = sorted(dropped, key=lambda name: -dropped[name])
        shown = [f"{unbroken(name)} in {dropped[name]:,}" for name in most[:MOST_NAMED]]
        more = f" and {len(most) - MOST_NAMED:,} more" if len(most) > MOST_NAMED else ""
        yield f"Readings that are missing or saturated were left out: {', '.join(shown)}{more} of {len(log):,} samples."
    if len(log.gaps):
        longest = float(np.diff(log.time).max())
        yield f"The log has {counted(len(log.gaps), 'gap')}, the longest of {number(longest)} s."
    if log.doubts:
        yield _warned(log)


def _warned(log: RecordedLog) -> str:
    return f"{counted(len(log.doubts), 'plausibility warning')} about the log; see below."


def counted(n: int, one: str, more: str = "") -> str:
    """So many of something, as people write it."""
    return f"{n:,} {one if n == 1 else more or one + 's'}"


def facts(log: RecordedLog) -> Iterator[tuple[str, str]]:
    """Yield what was counted, as names and words."""
    yield "robot", unbroken(log.system.tree.name)
    yield "sensors", unbroken(log.system.sensors.name)
    span = float(log.time[-1] - log.time[0])
    if log.start is None:
        yield "samples", f"{len(log):,}; their times are not known"
    else:
        rate = f", {number((len(log) - 1) / span)} a second" if span > 0 else ""
        yield "samples", f"{len(log):,} in {number(span)} s{rate}"
        if log.start:
            yield "first sample", f"at {log.start:.6f} s of the log's own time"
    if log.diagnosis is not None:
        yield "readings", f"{len(log.diagnosis.readings):,} weighted, of {len(set(log.diagnosis.sensors)):,} sensors"
        unchecked = log.diagnosis.unchecked
        yield "unchecked", listed(unchecked, MOST_NAMED) if unchecked else "none"
        least = min((p for _, _, p in window_probabilities(log.diagnosis)), default=1.0)
        yield "lowest p of a window", number(least, 2)
    if log.residual is not None and not log.system.is_weighted:  # weighed equations do not hold exactly
        yield "largest equation residual", f"{number(log.residual, 2)}, relative to its terms"
    if log.start is not None:
        yield "gaps", f"{len(log.gaps):,}"
    for name in (SINGULAR, FELL_BACK):
        if name in log.flags:
            yield name, f"{int(np.count_nonzero(log.flags[name])):,} of {len(log):,} samples"
    if log.notes:
        yield "of the log", "; ".join(log.notes)

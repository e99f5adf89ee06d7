"""What is said of a log before anything is drawn: whether its readings fit together, and what was counted."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from nori_dyn.report.recorded import DROPPED, FELL_BACK, SINGULAR, Recorded
from nori_dyn.report.suspicions import Suspicion, misfit, window_probabilities
from nori_dyn.tables import listed, number, unbroken

MOST_NAMED = 6
"""Most sensors that are named in a sentence."""

LOW = 1e-3
"""A probability below which readings do not fit together."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What stands at the top of a page.

    Attributes:
        level: "yes", "sometimes" or "no".
        heading: in a few words.
        sentences: the rest.
    """

    level: str
    heading: str
    sentences: tuple[str, ...]


def verdict(log: Recorded) -> Verdict:
    """Return what is said of a log first."""
    odd = tuple(_odd(log))
    if log.diagnosis is None:
        known = "Estimated; nothing checks the readings"
        return Verdict("sometimes", known, (log.unjudged, *odd))
    if not np.any(np.asarray(log.diagnosis.degrees_of_freedom) > 0):
        alone = "No reading is to spare, so that none checks another: what a sensor says is believed as it is."
        return Verdict("sometimes", "Estimated; nothing checks the readings", (alone, *odd))
    if not log.suspects:
        level = "sometimes" if odd else "yes"
        return Verdict(level, "The readings fit together", (*_fit(log), *odd))
    first, *others = log.suspects
    heading = f"{unbroken(first)} does not fit the other sensors"
    if len(others) >= MOST_NAMED:
        heading = "The readings do not fit together"
    said = [_accusation(log, first, log.suspects[first])]
    if others:
        said.append(
            f"Suspect in other windows: {listed(others, MOST_NAMED)}. A faulty sensor, a wrong model or sigmas that are too "
            "small disturb the residuals of sound sensors too: only the clearest one of a window is marked as such."
        )
    return Verdict("no", heading, (*said, *_fit(log), *odd))


def _accusation(log: Recorded, sensor: str, own: tuple[Suspicion, ...]) -> str:
    worst = max(own, key=lambda each: each.strength)
    unit = log.units.get(worst.fault.reading, "")
    ends = (log.time[own[0].first], log.time[min(own[-1].stop, len(log)) - 1])
    mean = f"{number(worst.fault.offset)} {unit}".strip()
    return (
        f"{unbroken(sensor)}: in {len(own)} windows from {_moment(log, ends[0])} to {_moment(log, ends[1])}, at worst about "
        f"{_moment(log, log.time[worst.first])}, where {unbroken(worst.fault.reading)} is off by {mean} on average and by "
        f"{number(worst.strength, 2)} sigma at most."
    )


def _moment(log: Recorded, time: float) -> str:
    return f"sample {int(time):,}" if log.start is None else f"{number(time)} s"


def _fit(log: Recorded) -> Iterator[str]:
    if log.diagnosis is None:
        return
    ratio = misfit(log.diagnosis)
    ratio = ratio[np.isfinite(ratio)]
    if len(ratio):
        p = np.asarray(log.diagnosis.p_value)
        bad = int(np.count_nonzero(p < LOW))
        yield (
            f"The residuals are {number(float(np.sqrt(np.median(ratio))), 2)} times as large as the sigmas say (median); "
            f"in {bad:,} of {len(p):,} samples they contradict each other (p < {LOW:g})."
        )


def _odd(log: Recorded) -> Iterator[str]:
    counts = {name: int(np.count_nonzero(flag)) for name, flag in log.flags.items()}
    if counts.get(SINGULAR):
        yield f"{counts[SINGULAR]:,} of {len(log):,} samples have no unique solution: the sensors do not suffice there."
    dropped = {name.removeprefix(DROPPED): n for name, n in counts.items() if name.startswith(DROPPED) and n}
    if dropped:
        most = sorted(dropped, key=lambda name: -dropped[name])
        told = [f"{unbroken(name)} in {dropped[name]:,}" for name in most[:MOST_NAMED]]
        more = f" and {len(most) - MOST_NAMED:,} more" if len(most) > MOST_NAMED else ""
        yield f"Readings that are missing or saturated were left out: {', '.join(told)}{more} of {len(log):,} samples."
    if len(log.gaps):
        longest = float(np.diff(log.time).max())
        yield f"The log has {_counted(len(log.gaps), 'gap')}, the longest of {number(longest)} s."
    if log.doubts:
        yield f"{_counted(len(log.doubts), 'thing is', 'things are')} not likely about the log; see below."


def _counted(n: int, one: str, more: str = "") -> str:
    return f"{n:,} {one if n == 1 else more or one + 's'}"


def facts(log: Recorded) -> Iterator[tuple[str, str]]:
    """Yield what was counted, as names and words."""
    yield "robot", unbroken(log.system.tree.name)
    yield "sensors", unbroken(log.system.sensors.name)
    span = float(log.time[-1] - log.time[0])
    if log.start is None:
        yield "samples", f"{len(log):,}; their times are not known"
    else:
        rate = f", {number((len(log) - 1) / span)} a second" if span > 0 else ""
        yield "samples", f"{len(log):,} in {number(span)} s{rate}"
        yield "first sample", f"at {log.start:.6f} s of the log's own time"
    if log.diagnosis is not None:
        yield "readings", f"{len(log.diagnosis.readings):,} weighed, of {len(set(log.diagnosis.sensors)):,} sensors"
        unchecked = log.diagnosis.unchecked
        yield "checked by nothing", listed(unchecked, MOST_NAMED) if unchecked else "none"
        least = min((p for _, _, p in window_probabilities(log.diagnosis)), default=1.0)
        yield "lowest p of a window", number(least, 2)
    if log.residual is not None:
        yield "largest equation residual", f"{number(log.residual, 2)}, relative to its terms"
    if log.start is not None:
        yield "gaps", f"{len(log.gaps):,}"
    for name in (SINGULAR, FELL_BACK):
        if name in log.flags:
            yield name, f"{int(np.count_nonzero(log.flags[name])):,} of {len(log):,} samples"

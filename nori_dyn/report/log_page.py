"""The page of a log: sections with parts and plots; panels of curves and the verdict, which a recording has, too."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from nori_dyn.filtering.false_alarms import HOUR
from nori_dyn.filtering.history_summary import LIKELY, Event
from nori_dyn.measurements.contacts import COLLISION, CONTACT
from nori_dyn.measurements.floating_base import BASE
from nori_dyn.report.layout import Box, Note, Page, PagePart, Section, Verdict, side_by_side
from nori_dyn.report.pictures import HALVES, place_of_estimate
from nori_dyn.report.recorded import (
    DROPPED,
    FELL_BACK,
    SINGULAR,
    RecordedLog,
    Suspicion,
    alarm,
    chosen,
    misfit,
    window_probabilities,
)
from nori_dyn.report.shows.trackers import IMPROBABLE, fit_of_readings
from nori_dyn.report.skeleton import skeleton
from nori_dyn.report.time_plots import BUDGET, EACH_BIN, Curve, Panel, Plots, Strip, is_constant
from nori_dyn.system.variables import SPATIAL, kind_in_words
from nori_dyn.tables import Bullets, Facts, listed, number, unbroken

SHOWN = 6
"""Panels of a section that are shown at once."""


def log_page(log: RecordedLog, names: Sequence[str] = ()) -> Page:
    """Make the page of a log; equal logs give equal pages.

    Args:
        log: the log, run through a plan.
        names: estimates to draw, such as "tau", "fx:l_sole" or "fx:l_sole.mz"; all when empty.
    """
    groups = log_panels(log, names)
    wanted = sum(panel.lines for group in groups for panel in group.panels)
    plots = Plots.of(log.time, wanted, log.gaps)
    left = BUDGET // (EACH_BIN * len(plots.bins.starts))
    sections = []
    for id, title, words, own in groups:
        fits = int(np.searchsorted(np.cumsum([panel.lines for panel in own]), left, side="right"))
        left -= sum(panel.lines for panel in own[:fits])
        lost = len(own) - fits
        if lost:
            words = (*words, f"{lost} more panels are left out to keep the page small: name what to draw.")
        sections.append(Section(title, (*map(Note, words), *side_by_side(own[:fits], SHOWN)), id, "plots"))
    strips, resolution, answer = tuple(_strips(log, plots)), _resolution(log, plots), verdict(log)
    if strips:
        since = "samples from the first" if log.start is None else f"{log.unit_of_time}, from the first sample on"
        when = Box(strips, "strips"), Note(f"Time in {since}. {resolution}")
        sections.insert(0, Section("What happened when", when, "when", "plots"))
    drawn_robot = skeleton(log, plots.at)
    if drawn_robot is not None:
        sections.insert(0, Section("The robot", (drawn_robot,), "robot", "robot"))
    counts: list[PagePart] = [Facts(tuple(facts(log)))]
    if log.doubts:
        counts.append(Section("Plausibility warnings", (Bullets(tuple(doubt.message for doubt in log.doubts)),)))
    counts += [] if strips else [Note(resolution)]
    robot = log.system.tree.name
    return Page(
        f"{answer.heading}: {log.name} of {robot}",
        ("", log.name, ", recorded of ", robot),
        answer,
        (*sections, Section("Counts", tuple(counts), "counted", "plots")),
        plots,
        log.unit_of_time,
    )


def _resolution(log: RecordedLog, plots: Plots) -> str:
    if not plots.bins.width:
        return "Every sample is drawn."
    n = number(len(log) / len(plots.bins.starts), 2)
    width = f"{number(plots.bins.width, 2)} {log.unit_of_time if log.start is not None else 'samples'}"
    return (
        f"Each point of a line stands for {width}, about {n} samples: the smallest and the largest of them are drawn."
    )


def _strips(log: RecordedLog, plots: Plots) -> Iterator[Strip]:
    if log.diagnosis is not None:
        low = [(first, stop, p) for first, stop, p in window_probabilities(log.diagnosis) if p < IMPROBABLE]
        parts = [(first, stop, "alarm" if p < IMPROBABLE**3 else "other") for first, stop, p in low]
        windows = len(window_probabilities(log.diagnosis))
        yield plots.windowed("readings contradict", f"{len(low)} of {windows} windows", parts)
        for sensor, own in log.suspects.items():
            yield plots.windowed(sensor, describe_suspicions(own), [(s.first, s.stop, mark_of(s)) for s in own])
    if log.is_watched:
        what = "collision" if log.watched is not None else "touch"
        drawn = [(first, last + 1, "alarm") for first, last, _ in log.events]
        yield plots.windowed(plural(what), counted(len(drawn), what, plural(what)), drawn)
    for label, flag in log.flags.items():
        if flag.any():
            yield plots.flagged(label, flag)
    if len(log.gaps):
        gaps = [(int(k), int(k) + 1, "count") for k in log.gaps]
        yield plots.windowed("gaps in time", f"{len(gaps):,}", gaps)


class PanelGroup(NamedTuple):
    """Panels of one kind: how they are referred to, their heading, a note, and they themselves."""

    id: str
    title: str
    words: tuple[str, ...]
    panels: list[Panel]


def log_panels(log: RecordedLog, names: Sequence[str] = ()) -> list[PanelGroup]:
    """The panels of a log, those groups that have some.

    Args:
        log: the log, run through a plan.
        names: estimates to draw, such as "tau", "fx:l_sole" or "fx:l_sole.mz"; all when empty.
    """
    groups = _collisions(log), _residuals(log), _estimates(log, names), _readings(log, names)
    return [group for group in groups if group.panels]


def mark_of(suspicion: Suspicion) -> str:
    """How a suspicion is marked: whether it is the clearest."""
    return "first" if suspicion.is_first else "other"


def describe_suspicions(own: Sequence[Suspicion]) -> str:
    """In how many windows a sensor is a suspect, and how far off it is."""
    first = sum(each.is_first for each in own)
    at_most = f"{number(max(each.strength for each in own), 2)} sigma at most"
    return f"suspect in {counted(len(own), 'window')}, the clearest in {first}; {at_most}"


def _collisions(log: RecordedLog) -> PanelGroup:
    """How far each reading is from what is expected where nothing touches the robot."""
    shades, of = tuple((first, last + 1, "first") for first, last, _ in log.events), log.watched
    if of is None:
        links = {} if log.history is None or not log.is_watched else log.history.recognised
        curves = tuple(Curve(unbroken(name.removeprefix(CONTACT)), p) for name, p in links.items())
        words = ("Which link is touched, if any.",)
        panels = [Panel("All links", "", curves, shades, level=LIKELY, note="Probabilities.")] if curves else []
        return PanelGroup("collisions", "Touches", words, panels)
    curves = tuple(Curve(unbroken(name), x) for name, x in zip(of.readings, of.statistics.T, strict=True))
    words = (
        f"How far each reading is from what is expected where nothing touches the robot, smoothed over "
        f"{number(1e3 * of.alarms.time)} ms. Above the line, {number(of.threshold, 3)} sigma, it is a collision.",
    )
    panel = Panel("All readings", "sigma", curves, shades, level=of.threshold)
    return PanelGroup("collisions", "Collisions", words, [panel])


def _residuals(log: RecordedLog) -> PanelGroup:
    """The residuals of each sensor in sigma, the suspects first, then those of the largest residuals."""
    title, panels = "Residuals, sensor by sensor", list[Panel]()
    if log.diagnosis is None:
        return PanelGroup("residuals", title, (), panels)
    z, limit = log.diagnosis.normalised, alarm(log.diagnosis)
    by_sensor: dict[str, list[int]] = {}
    for k, sensor in enumerate(log.diagnosis.sensors):
        if not np.isnan(z[:, k]).all():
            by_sensor.setdefault(sensor, []).append(k)
    ratio = misfit(log.diagnosis)
    if np.isfinite(ratio).any():
        curve = Curve("chi-square over its expectation", np.log10(np.maximum(ratio, 1e-6)))
        panels.append(Panel("All readings together", "log10", (curve,), level=0.0))
    everyone = {s: [(e.first, e.stop, mark_of(e)) for e in log.suspicions if e.fault.sensor == s] for s in by_sensor}
    size = {sensor: float(np.nanmean(z[:, own] ** 2)) for sensor, own in by_sensor.items()}
    for sensor in sorted(by_sensor, key=lambda sensor: (log.rank(sensor), -size[sensor])):
        readings = [(log.diagnosis.readings[k], z[:, k]) for k in by_sensor[sensor]]
        curves = tuple(Curve(_component(name, sensor) or "residual", x) for name, x in readings)
        rms = f"rms {number(np.sqrt(size[sensor]), 2)} sigma"
        note = f"{rms}; {describe_suspicions(log.suspects[sensor])}." if sensor in log.suspects else f"{rms}."
        panels.append(Panel(unbroken(sensor), "sigma", curves, tuple(everyone[sensor]), limit, note=note))
    words = (
        "Each is the reading less what all sensors together predict for it, over the expected deviation of that. "
        f"Sound sensors stay between the dashed lines, at {number(limit, 2)} sigma, in all but one log in a thousand.",
    )
    return PanelGroup("residuals", title, words, panels)


def _component(reading: str, sensor: str) -> str:
    return reading.removeprefix(sensor).removeprefix(".")


def _estimates(log: RecordedLog, names: Sequence[str]) -> PanelGroup:
    """The estimates, with their bands, and what was read of the same."""
    groups: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for name in chosen(log.estimates, names):
        title, label = _place(name) if name not in log.states else _place_of_state(name)
        groups.setdefault((title, log.units.get(name, "")), []).append((name, label))
    panels = [
        Panel(title, unit, tuple(_curves(log, own)), _shades(log, own), note=_difference(log, own, unit))
        for (title, unit), own in groups.items()
    ]
    kinds = [re.split("[:_]" if own[0][0] in log.states else ":", own[0][0])[0] for own in groups.values()]
    ranks = [(all(is_constant(c.x) for c in p.curves), rank_of(kind)) for p, kind in zip(panels, kinds, strict=True)]
    panels = [panels[k] for k in sorted(range(len(panels)), key=lambda k: ranks[k])]  # known ones last
    words = []
    if log.deviations:
        words.append(
            "The bands are two standard deviations to each side, as they follow from the sigmas of the sensors."
        )
    if any("measured" in curve.mark for panel in panels for curve in panel.curves):
        words.append("Readings of the same are drawn beneath.")
    if log.held:
        words.append("Torques that are measured have no part in the estimates, or differ from them by an offset.")
    return PanelGroup("estimates", "Estimates", tuple(words), panels)


def _place(name: str) -> tuple[str, str]:
    """The panel of a number, and what it is called there."""
    owner, _, component = name.rpartition(".")
    if component not in HALVES:
        return name, "estimated"
    if name.partition(":")[0] not in SPATIAL:
        return f"{owner}: {HALVES[component]}", component
    return place_of_estimate(name)[:2]


def _place_of_state(name: str) -> tuple[str, str]:
    """The panel of a number that persists, and what it is called there."""
    owner, _, component = name.rpartition(".")
    what, is_of_base, quantity = owner.partition("base_")
    words = f"{quantity.replace('_', ' ')} of the base" if is_of_base and not what else owner
    return words or name, component if owner else "estimated"


def _curves(log: RecordedLog, own: Sequence[tuple[str, str]]) -> Iterator[Curve]:
    """Yield what was read of some numbers, where something was, and then what is estimated of them."""
    for k, (name, label) in enumerate(own):
        read = log.measured(name)
        if read is not None:
            alone = len(own) == 1
            yield Curve("measured" if alone else f"{label} measured", read, None, f"c{1 if alone else k} measured")
    for k, (name, label) in enumerate(own):
        estimated = log.estimates[name] if name in log.estimates else log.predicted[name]
        yield Curve(label, estimated, log.deviations.get(name), f"c{k}")


def _shades(log: RecordedLog, own: Sequence[tuple[str, str]]) -> tuple[tuple[int, int, str], ...]:
    """Collisions, those first that some numbers show clearest."""
    names = {f"{COLLISION}{name}" for name, _ in own}
    return tuple((a, b + 1, "first" if event.name in names else "other") for a, b, event in log.events)


def _difference(log: RecordedLog, own: Sequence[tuple[str, str]], unit: str) -> str:
    """How far an estimate is from what was read of it beside the plan, and how much they move together."""
    if len(own) != 1 or own[0][0] not in log.held:
        return ""
    x, y = log.estimates[own[0][0]], log.held[own[0][0]]
    known = np.isfinite(x) & np.isfinite(y)
    if not known.any():
        return ""
    rms = f"rms difference {number(np.sqrt(np.mean((x - y)[known] ** 2)), 2)} {unit}"
    if np.ptp(x[known]) == 0 or np.ptp(y[known]) == 0:
        return f"{rms}."
    return f"{rms}, correlation {np.corrcoef(x[known], y[known])[0, 1]:.3f}."


def _readings(log: RecordedLog, names: Sequence[str]) -> PanelGroup:
    """Panels of readings beside their predictions, of those that are no estimates themselves."""
    panels: list[Panel] = []
    if log.diagnosis is not None and not names:
        groups: dict[tuple[str, str], list[str]] = {}
        for name, sensor in zip(log.diagnosis.readings, log.diagnosis.sensors, strict=True):
            if name in log.predicted and name not in log.estimates:
                groups.setdefault((sensor, log.units.get(name, "")), []).append(name)
        for (sensor, unit), own in sorted(groups.items(), key=lambda group: log.rank(group[0][0])):
            numbers = [(name, _component(name, sensor) or "estimated") for name in own]
            panels.append(Panel(unbroken(sensor), unit, tuple(_curves(log, numbers))))
    words = ("What each sensor read, and what all sensors together predict for it.",)
    return PanelGroup("readings", "Other readings, measured and as estimated", words, panels)


MOST_NAMED = 6
"""Most sensors that are named in a sentence."""

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
        level, heading = fit_of_readings(log.consistency)
        if level == "yes" and p < IMPROBABLE and ratio > 1:
            sentence += f" So long a log shows that sigmas are {100 * (ratio**0.5 - 1):.0f} % too small."
        return Verdict("sometimes" if odd and level == "yes" else level, heading, (sentence, *odd))
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
    if min(p for _, _, p in windows) >= IMPROBABLE / len(windows):
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
        bad = int(np.count_nonzero(p < IMPROBABLE))
        yield (
            f"The residuals are {number(float(np.sqrt(np.median(ratio))), 2)} times as large as the sigmas say "
            f"(median); in {bad:,} of {len(p):,} samples they contradict each other (p < {IMPROBABLE:g})."
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

"""The page of a log: which parts and plots, in which sections."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from nori_dyn.report.layout import Box, Note, Page, PagePart, Section, side_by_side
from nori_dyn.report.log_panels import describe_suspicions, log_panels, mark_of
from nori_dyn.report.log_verdict import LOW, counted, facts, plural, verdict
from nori_dyn.report.recorded import RecordedLog, window_probabilities
from nori_dyn.report.skeleton import skeleton
from nori_dyn.report.time_plots import BUDGET, EACH_BIN, Plots, Strip
from nori_dyn.tables import Bullets, Facts, number

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
        low = [(first, stop, p) for first, stop, p in window_probabilities(log.diagnosis) if p < LOW]
        parts = [(first, stop, "alarm" if p < LOW**3 else "other") for first, stop, p in low]
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

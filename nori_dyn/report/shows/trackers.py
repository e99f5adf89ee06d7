"""Estimates over time: what is known of the memory, how late estimates are, and whether readings fit their noise."""

from __future__ import annotations

from collections.abc import Iterator

from nori_dyn.errors import named_contacts
from nori_dyn.estimation.log_estimate import LogHistory
from nori_dyn.filtering.consistency import Consistency
from nori_dyn.filtering.delays import Delays, shown_delay
from nori_dyn.filtering.history import History
from nori_dyn.filtering.history_summary import Summary
from nori_dyn.filtering.knowledge import MemoryState
from nori_dyn.filtering.localization import LinkContact, LocalizedContact
from nori_dyn.filtering.tracked import Recognised, Tracked
from nori_dyn.filtering.watched import Watched, WatchedHistory
from nori_dyn.tables import Document, Facts, Paragraph, Table, attributes, listed, number

MOST_NUMBERS = 60
"""Numbers of a memory, and outputs, that are shown where lines have a width."""

MOST_DELAYS = 8
"""Outputs whose delay is shown."""

MOST_GAPS = 4
"""Gaps that are shown."""

NEARLY = 1.2
"""Chi-square over its expectation up to which readings fit, however long the log: sigmas are a tenth too small."""

IMPROBABLE = 1e-3
"""A probability below which readings do not fit together."""


def tracked_document(found: Tracked) -> Document:
    """The document of the estimate of a tick."""
    facts = Facts((("readings", f"chi-square {number(found.nis, 3)} of {found.degrees} degrees of freedom"),))
    return Document((facts, *found.estimate.shown().parts, *found.memory.shown().parts))


def recognised_document(found: Recognised) -> Document:
    """The document of the estimate of a tick whose contact state was recognised."""
    ranked = sorted(found.probabilities.items(), key=lambda one: -one[1])
    rows = tuple((", ".join(state) or "none", number(p, 3)) for state, p in ranked)
    facts = () if found.switch is None else (("switched", f"from {named_contacts(found.switch.before)}"),)
    return Document((Facts(facts), Table("Contact states", ("closed", "probability"), rows, left=(0,))))


def watched_document(found: Watched) -> Document:
    """The document of a tick that was watched for collisions."""
    says = "yes" if found.collision else "no"
    words = (
        f"{says}: {found.reading} is off by {number(found.statistic, 3)} deviations, threshold "
        f"{number(found.threshold, 3)}"
    )
    return Document((Facts((("collision", words),)), *found.tracked.shown().parts))


def watched_history_document(found: WatchedHistory) -> Document:
    """The document of ticks that were watched for collisions."""
    rows = tuple(
        (f"{found.t[k]:.3f}", found.readings[found.furthest[k]], number(found.statistic[k], 3))
        for k in found.begins.tolist()
    )
    facts = (("ticks", f"{len(found.t):,}, of {number(found.duration, 4)} s"), ("collisions", str(len(rows))))
    words = f"Off by more than {number(found.threshold, 3)} deviations, smoothed."
    table = Table("Collisions", ("begins [s]", "reading", "off by"), rows, left=(1,), most=MOST_NUMBERS)
    return Document((Facts(facts), table, Paragraph(words)))


def memory_state_document(found: MemoryState) -> Document:
    """The document of the state of the memory."""
    rows = zip(found.names, found.mean.tolist(), found.deviations.tolist(), found.units, strict=True)
    table = tuple((name, number(value, 3), number(spread, 2), unit) for name, value, spread, unit in rows)
    facts = Facts((("time", f"{found.time:g} s since the first tick"),))
    return Document((facts, Table("Memory", ("of", "is", "+-", "unit"), table, left=(0, 3), most=MOST_NUMBERS)))


def delays_document(found: Delays) -> Document:
    """The document of delays."""
    rows = [(name, shown_delay(seconds)) for name, seconds in zip(found.names, found.seconds.tolist(), strict=True)]
    memory = Table("Delays of the memory", ("of", "mean delay [ms]"), tuple(rows), left=(0,), most=MOST_NUMBERS)
    worst = tuple((name, shown_delay(seconds)) for name, seconds in found.largest.items())
    outputs = Table("Delays of outputs", ("of", "largest mean delay [ms]"), worst, left=(0,), most=MOST_NUMBERS)
    words = "Of a settled filter at rest, after a step of a number of the memory; inf where nothing follows."
    return Document((memory, outputs, Paragraph(words)), found.to_dict())


def fit_of_readings(found: Consistency) -> tuple[str, str]:
    """Whether readings over time fit the noise model: the level and the heading of a verdict."""
    if found.p_value >= IMPROBABLE:
        return "yes", "The readings fit together"
    if found.ratio > NEARLY:
        return "no", "The readings do not fit their sigmas and the model"
    return "yes", "The readings fit together" if found.ratio > 1 else "The readings fit better than their sigmas say"


def consistency_document(found: Consistency) -> Document:
    """The document of how well readings fit the noise model."""
    facts = (
        ("ticks", str(found.ticks)),
        ("chi-square", f"{number(found.nis, 4)} of {found.degrees} degrees of freedom"),
        ("ratio", f"{number(found.ratio, 3)}, expected 1 if the noise model is right"),
        ("p-value", number(found.p_value, 2)),
    )
    words = (Paragraph(f"{fit_of_readings(found)[1]}."),) if found.degrees else ()
    return Document((Facts(facts), *words))


def history_document(found: History) -> Document:
    """The document of estimates of many ticks."""
    return summary_document(found.summary)


def log_history_document(found: LogHistory) -> Document:
    """The document of estimates of a log over time."""
    return summary_document(found.history.summary)


def _events(found: Summary) -> Iterator[Table]:
    """The table of what was recognised."""
    rows = tuple(
        (f"{e.begin:.3f}", f"{e.end:.3f}", e.name, number(e.probability, 3), *_place(e.point)) for e in found.events
    )
    if rows:
        columns = ("begins [s]", "ends [s]", "by", "probability", "at, in its frame [m]", "+-")
        n = 6 if any(e.point for e in found.events) else 4
        yield Table("Events", columns[:n], tuple(row[:n] for row in rows), left=(2, 4), most=MOST_NUMBERS)


def _place(point: tuple[float, ...]) -> tuple[str, str]:
    """A point in words, and its deviation."""
    return (", ".join(f"{x:.3f}" for x in point[:3]), number(point[3], 2)) if point else ("", "")


def summary_document(found: Summary) -> Document:
    """The document of estimates over time, as a whole."""
    how = "each from the readings up to it" if found.is_causal else "each from all readings"
    facts = [("estimates", f"{found.consistency.ticks:,}, {how}, of {number(found.end - found.begin, 4)} s")]
    if found.gaps:
        where = listed([f"{number(t - found.begin, 6)} s" for t in found.gaps], MOST_GAPS)
        ended = f"{len(found.gaps):,}, ending {where} after the first sample: the motion through them is unknown"
        facts.append(("gaps", ended))
    if found.delays is not None:
        named = found.delays.largest.items()
        late = listed([f"{name} {shown_delay(seconds)} ms" for name, seconds in named], MOST_DELAYS)
        facts.append(("mean delay", f"{late}, after a step of the memory"))
    columns = ["of", "at first", "+-", "at last", "+-", "unit"]
    lags: list[tuple[str, ...]] = [()] * len(found.names)
    if found.delays is not None:
        columns.append("late [ms]")
        lags = [(shown_delay(seconds),) for seconds in found.delays.seconds.tolist()]
    numbers = zip(*(each.tolist() for each in (*found.first, *found.last)), strict=True)
    rows = tuple(
        (name, number(a, 3), number(sa, 2), number(b, 3), number(sb, 2), unit, *more)
        for name, (a, sa, b, sb), unit, more in zip(found.names, numbers, found.units, lags, strict=True)
    )
    table = Table("Memory", tuple(columns), rows, left=(0, 5), most=MOST_NUMBERS)
    words = []
    if found.unseen:
        names = listed(found.unseen, 4)
        words = [Paragraph(f"No reading observes {names}: its estimate is the prior.")]
    parts = (Facts(tuple(facts)), *consistency_document(found.consistency).parts, table, *words, *_events(found))
    return Document(parts, found.to_dict())


def localized_contact_document(found: LocalizedContact) -> Document:
    """The document of where a robot is touched."""
    where = "no link" if found.contact is None else found.contact.link
    facts = Facts((("touched", f"{where}, probability {number(max(found.free, *found.probabilities.values()), 3)}"),))
    rows = tuple(_contact_row(one) for one in found.links)
    columns = ("link", "probability", "force [N]", "point [m]", "+- [m]")
    notes = ("Force and point in coordinates of the link.",)
    figures = {
        **attributes(found, "free", "probabilities"),
        "links": [
            attributes(one, "link", "probability", "wrench", "force", "point", "deviation") for one in found.links
        ],
    }
    return Document((facts, Table("If a link is touched", columns, rows, notes, left=(0,))), figures)


def _contact_row(one: LinkContact) -> tuple[str, ...]:
    force = " ".join(f"{x:.1f}" for x in one.force)
    if one.point is None:
        return one.link, number(one.probability, 3), force, "no surface", ""
    return one.link, number(one.probability, 3), force, " ".join(f"{x:.3f}" for x in one.point), f"{one.deviation:.3f}"

"""Touches anywhere: where a robot is touched, and what sensors tell of that."""

from __future__ import annotations

from nori_dyn.filtering.localization import LinkContact, LocalizedContact
from nori_dyn.observe.touches import AT_A_POINT, TouchedLink, TouchObservability
from nori_dyn.tables import Document, Facts, Paragraph, Table, attributes, listed, number

MOST_LISTED = 6
"""Links that are listed in a sentence, or a cell."""


def localized_document(found: LocalizedContact) -> Document:
    """The document of where a robot is touched."""
    where = "no link" if found.contact is None else found.contact.link
    facts = Facts((("touched", f"{where}, probability {number(max(found.free, *found.probabilities.values()), 3)}"),))
    rows = tuple(_row(one) for one in found.links)
    columns = ("link", "probability", "force [N]", "point [m]", "+- [m]")
    notes = ("Force and point in coordinates of the link.",)
    figures = {
        **attributes(found, "free", "probabilities"),
        "links": [
            attributes(one, "link", "probability", "wrench", "force", "point", "deviation") for one in found.links
        ],
    }
    return Document((facts, Table("If a link is touched", columns, rows, notes, left=(0,))), figures)


def _row(one: LinkContact) -> tuple[str, ...]:
    force = " ".join(f"{x:.1f}" for x in one.force)
    if one.point is None:
        return one.link, number(one.probability, 3), force, "no surface", ""
    return one.link, number(one.probability, 3), force, " ".join(f"{x:.3f}" for x in one.point), f"{one.deviation:.3f}"


def touch_observability_document(found: TouchObservability) -> Document:
    """The document of what sensors tell of touches."""
    n, localized = len(found.links), found.localized
    words = [
        f"Sensors '{found.sensors}' determine force and line of action of a touch on "
        + ("each link." if len(localized) == n else f"{listed(localized, MOST_LISTED)}." if localized else "no link.")
    ]
    groups = {frozenset((one.link, *one.same)): None for one in found.links if one.same}
    apart = [f"No reading tells apart: {listed(sorted(group), MOST_LISTED)}." for group in groups]
    words += apart or ["All links are distinguished, but by touches that read alike by coincidence."]
    columns = ("link", "of 6 numbers", "a force at a point", "each touch reads like some on")
    rows = tuple((one.link, str(one.rank), _told(one), listed(one.like, MOST_LISTED) or "none") for one in found.links)
    note = f"At almost every pose; wrong with a probability below {number(found.error, 1)}."
    figures = {
        **attributes(found, "robot", "sensors", "localized", "suffices", "error"),
        "links": [attributes(one, "link", "rank", "like", "same") for one in found.links],
    }
    return Document(
        (Paragraph(" ".join(words), "Touches"), Table("By link", columns, rows, (note,), left=(0, 2, 3))), figures
    )


def _told(one: TouchedLink) -> str:
    if one.is_localized:
        return "with its line of action"
    return f"but for {AT_A_POINT - one.rank} of {AT_A_POINT}" if one.rank else "not at all"

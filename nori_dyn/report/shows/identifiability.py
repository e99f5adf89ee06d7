"""What `print` shows of what sensors tell of parameters."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nori_dyn.identification.identifiability import CommonFactor, Identifiability
from nori_dyn.identification.parameters import INERTIAL, Parameter
from nori_dyn.tables import Bullets, Document, Facts, Paragraph, Part, Table, describe_sum, listed, number, unbroken

TERMS = 4
"""Most terms of a combination that are shown; all others are counted."""

FEW = 5
"""Most parameters of a link that are listed as never identifiable."""

SHOWN = 12
"""Most combinations that are listed as text, and most names in a sentence."""


def identifiability_document(found: Identifiability) -> Document:
    """What is shown: how many combinations are identifiable, link by link and joint by joint how, and which."""
    n = len(found.parameters)
    parts: list[Part | str] = [
        Paragraph(_counts(found), f"{found.rank:,} combinations of {n:,} parameters are identifiable.")
    ]
    parts += [describe_factor(each) for each in found.common_factors]
    parts.append(Facts(tuple(_facts(found))))
    rows = tuple(_rows(found))
    note = "Of a link, in its frame: the mass m, first moments mc, and rotational inertias I."
    notes = (note,) if any(each.kind in INERTIAL for each in found.parameters.each) else ()
    parts.append(Table("Parameters", ("of", "alone", "in combinations", "never"), rows, notes, left=(0, 1, 2, 3)))
    if found.combinations:
        items = tuple(describe_sum(each.terms, TERMS) for each in found.combinations)
        parts.append(Bullets(items, "Identifiable combinations:", SHOWN))
    return Document(tuple(parts), found.to_dict())


def describe_factor(found: CommonFactor) -> str:
    """What is identifiable up to a factor, and what would give the factor."""
    others = listed(found.others, SHOWN)
    return (
        f"Identifiable up to one common factor: {unbroken(found.name)}, {others}. No reading gives a force in absolute "
        "terms: one of these that is known, or a sensor of forces whose gain is known, gives the factor."
    )


def _counts(found: Identifiability) -> str:
    alone, combined, never = (len(found.names_of(how)) for how in ("alone", "combined", "never"))
    words = f"{alone:,} parameters are identifiable alone, {combined:,} only together with others"
    return words + (f", and {never:,} never, however the robot moves." if never else ".")


def _facts(found: Identifiability) -> Iterator[tuple[str, str]]:
    yield "robot", unbroken(found.robot)
    yield "sensors", unbroken(found.sensors)
    yield "rows", listed(found.rows, SHOWN)
    if found.still:
        yield "standing still", f"{listed(found.still)}; factors below are those at one position of theirs"
    if found.unknowns:
        taken = f"{found.base.n_unknown:,} numbers of each sample go into finding them, and say nothing of parameters"
        yield "unknown wrenches", f"{listed(found.unknowns, SHOWN)}: {taken}"
    if found.error is None:
        gap = number(found.base.gap, 1)
        yield "exactness", f"rank in doubles at closed motions; what is taken as zero is {gap} times below the rest"
    else:
        yield "exactness", f"rank over a prime field, wrong with a probability below {number(found.error, 1)}"


def _rows(found: Identifiability) -> Iterator[tuple[str, str, str, str]]:
    """Yield a row of the table for each link, joint and reading: its parameters by how they are identifiable."""
    owned: dict[tuple[str, str], dict[str, list[Parameter]]] = {}
    for each in found.parameters.each:
        owner = "link" if each.kind in INERTIAL else "joint", each.owner
        owned.setdefault(owner, {}).setdefault(found.identifiable[each.name], []).append(each)
    for (_, name), by_how in owned.items():
        alone, combined, never = (by_how.get(how, []) for how in ("alone", "combined", "never"))
        rest = ("all others" if alone or combined else "all") if len(never) > FEW else _grouped(never)
        yield unbroken(name), _grouped(alone), _grouped(combined), rest


def _grouped(parameters: Sequence[Parameter]) -> str:
    """Parameters of one owner by their kinds: "m, mc x y, I zz"."""
    kinds: dict[str, list[str]] = {}
    for each in parameters:
        kinds.setdefault(each.kind, []).append(each.component)
    return ", ".join(" ".join([kind, *components]).strip() for kind, components in kinds.items())

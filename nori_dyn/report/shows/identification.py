"""What `print` shows of identified parameters: how well they fit, what is identified, what to excite next."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from nori_dyn.identification.findings import Identification, ParameterEstimate
from nori_dyn.identification.fits import BaseParameterEstimate, ReadingFit
from nori_dyn.identification.parameters import INERTIAL, OF_READINGS, WAVES, Parameter, ten_of
from nori_dyn.tables import Bullets, Document, Facts, Paragraph, Part, Table, describe_sum, listed, number, unbroken
from nori_dyn.typing import Floats

MOST = 12
"""Most rows of a table, and most names in a sentence."""

FEW = 4
"""Most links and joints that are named as those to excite next."""

WORST = 5
"""Most combinations that are listed as least identified."""

TERMS = 3
"""Most terms of a combination that are shown; all others are counted."""

COLUMNS = (
    "viscous",
    "asymmetry",
    "quadratic",
    "coulomb",
    "excess",
    "stribeck",
    "mu",
    "rotor",
    "stiffness",
    "preload",
    "offset",
    "gain",
)
"""Kinds of parameters that have a column."""

ON_LINKS = (
    "Identified alone: which of the link's mass m, first moments mc and moments of inertia I, in its frame. All "
    "others (in brackets) are identified in sums with those of other links at most: what stands there is the nearest "
    "to the model that fits."
)
"""The note below tables of links."""

ROUNDING = 1e-9
"""How far a centre has moved [cm] that has not moved."""

IN_SUMS, OPEN = "in sums", "open"
"""What stands for the value of a parameter that is identified only together with others, or not at all."""


def identification_document(found: Identification) -> Document:
    """What is shown: the verdict, doubts, the fit by reading, parameters, what is identified least, and notes."""
    parts: list[Part | str] = [Paragraph(*verdict(found))]
    if found.doubts:
        parts.append(Bullets(found.doubts, "Look at this first:"))
    parts += [Facts(tuple(facts(found))), fit_table(found.fits)]
    parts += tables(found)
    parts.append(Paragraph(next_words(found)))
    worst = worst_table(found)
    parts += [worst] if worst is not None else []
    parts += [Bullets(found.remarks, "Notes:")] if found.remarks else []
    return Document(tuple(parts), found.to_dict())


def verdict(found: Identification) -> tuple[str, str]:
    """What is identified in all, in words, and as a heading."""
    can, identified, wanted = len(found.directions), found.n_identified, len(found.problem.free)
    logs = "this log identifies" if len(found.logs) == 1 else "these logs identify"
    which = f"{can:,} independent combinations" if can != 1 else "one combination"
    words = (
        f"Of {wanted:,} parameters the sensors can identify {which}; {logs} {identified:,} of them at least twice as "
        "well as they were known. What is left open stays next to the model."
    )
    return words, f"{identified:,} of {can:,} combinations are identified."


def facts(found: Identification) -> Iterator[tuple[str, str]]:
    """Yield what was identified from what."""
    yield "robot", unbroken(found.problem.tree.name)
    yield "logs", f"{listed(found.logs, MOST)}: {found.n_samples:,} samples"
    for unit, fits in by_unit(found.fits).items():
        before, after = (range_of([getattr(fit, name) for fit in fits]) for name in ("before", "after"))
        kept = [fit.held_out for fit in fits if fit.held_out is not None]
        judged = f", {range_of(kept)} on what was held out" if kept else ""
        by_model, by_found = unbroken(f"{before} {unit}"), unbroken(f"{after} {unit}")
        yield "fit", f"{by_model} by the model, {by_found} by what was found{judged}"
    yield "held out", found.held_out or "nothing: how well it fits other motions is not known"
    chi_square, freedoms = sum(each.chi_square for each in found.prior), sum(each.freedoms for each in found.prior)
    yield "prior", f"chi-square {number(chi_square)} for {freedoms} degrees of freedom"
    if any(each.kind in INERTIAL for each in found.parameters.each):
        yield "inertias", "such as bodies can have" if found.is_physical else "not all such as a body can have"


def by_unit(fits: Iterable[ReadingFit]) -> dict[str, list[ReadingFit]]:
    """The fits of each unit."""
    found: dict[str, list[ReadingFit]] = {}
    for fit in fits:
        found.setdefault(fit.unit, []).append(fit)
    return found


NOISE = " noise: of the reading, by what the filter took off, while its joint moves, and at rest."


def fit_table(fits: Sequence[ReadingFit]) -> Table:
    """How well each reading is explained."""
    units = {fit.unit for fit in fits}
    (unit,) = units if len(units) == 1 else ("",)
    columns = ["reading", *(("unit",) if not unit else ()), "spread", "before", "after", "held out", "correlation"]
    has_noise = any(np.isfinite(fit.noise_at_rest) for fit in fits)
    columns += ["noise", "at rest"] if has_noise else []
    rows = []
    for fit in fits:
        own = [unbroken(fit.name), *((fit.unit,) if not unit else ()), fit.spread, fit.before, fit.after]
        noise = [each if np.isfinite(each) else "" for each in (fit.noise, fit.noise_at_rest)] if has_noise else []
        rows.append((*own, "" if fit.held_out is None else fit.held_out, f"{fit.correlation:.4f}", *noise))
    where = "held out" if any(fit.held_out is not None for fit in fits) else "read"
    note = (
        "spread: standard deviation of what was read. before, after, held out: rms of the error by the model, by what "
        f"was found, and of what was held out. correlation: of what was {where} with what the found model says."
        f"{NOISE if has_noise else ''}"
    )
    left = (0,) if unit else (0, 1)
    most = [max(fit.before, fit.after) or 1.0 for fit in fits]
    bars = tuple((fit.before / one, fit.after / one) for fit, one in zip(fits, most, strict=True))
    return Table(
        f"Fit by reading{f' [{unit}]' if unit else ''}", tuple(columns), tuple(rows), (note,), left, MOST, bars
    )


def joint_table(found: Identification) -> Table | None:
    """The parameters of each joint and its reading; None where none was looked for."""
    names = found.problem.tree.joint_names
    by_owner: dict[str, dict[str, ParameterEstimate]] = {}
    for parameter, each in zip(found.problem.all_parameters, found.estimates, strict=True):
        if parameter.kind in COLUMNS:
            if parameter.kind in OF_READINGS and parameter.owner.removeprefix("tau:") in names:
                parameter = replace(parameter, owner=parameter.owner.removeprefix("tau:"))
            by_owner.setdefault(_owner(parameter), {})[parameter.kind] = each
    if not by_owner:
        return None
    kinds = [kind for kind in COLUMNS if any(kind in own for own in by_owner.values())]
    units = {kind: {own[kind].unit for own in by_owner.values() if kind in own} for kind in kinds}
    called = {kind: kind.replace("coulomb", "Coulomb") for kind in kinds}
    words = [f"{called[kind]} in {' or '.join(sorted(units[kind]))}" for kind in kinds if units[kind] != {""}]
    rows = [
        (unbroken(owner), *(described(own[kind]) if kind in own else "" for kind in kinds))
        for owner, own in by_owner.items()
    ]
    every = [each for own in by_owner.values() for each in own.values()]
    note_on_units = (f"Units: {', '.join(map(unbroken, words))}.",) if words else ()
    notes = (*note_on_units, *_notes_on(every))
    columns = ("of", *called.values())
    return Table("Joints and readings", columns, tuple(rows), notes, most=MOST)


def harmonics_table(found: Identification) -> Table | None:
    """The harmonics of each joint of which logs show some; None where they show none."""
    by_owner: dict[str, dict[str, str]] = {}
    for parameter, each in zip(found.problem.all_parameters, found.estimates, strict=True):
        if parameter.kind in WAVES and each.how != "known":
            by_owner.setdefault(_owner(parameter), {})[parameter.kind] = number(each.value, 2)
    rows = tuple((unbroken(owner), *(own.get(kind, "") for kind in WAVES)) for owner, own in by_owner.items())
    note = "sin2: the amplitude of the sine of twice the angle, and so on."
    return Table("Harmonics [N m]", ("of", *WAVES), rows, (note,), most=MOST) if rows else None


def tables(found: Identification) -> list[Table]:
    """The parameters of joints, links and the load, as far as there are any."""
    each = joint_table(found), harmonics_table(found), link_table(found), load_table(found)
    return [table for table in each if table is not None]


def link_table(found: Identification) -> Table | None:
    """The mass of each link, and by how far its centre moved; None where no inertia was looked for."""
    rows, by_name = [], {each.name: each for each in found.estimates}
    inertias = [each for each in found.problem.all_parameters if each.kind in INERTIAL]
    for i in found.parameters.links():
        link, before, after = found.problem.tree.names[i], found.problem.tree.I[i], found.robot.I[i]
        own = [each for each in inertias if each.owner == link]
        identified = (each for each in own if by_name[each.name].how == "identified")
        alone = [f"{each.kind}.{each.component}".rstrip(".") for each in identified]
        mass = by_name.get(f"m:{link}")
        shown = number(after[5, 5]) if mass is None else described(mass, always=True)
        has_centres = before[5, 5] > 0 and after[5, 5] > 0
        moved = ""
        if has_centres:
            centimetres = 100 * float(np.linalg.norm(centre_of(after) - centre_of(before)))
            moved = number(centimetres if centimetres > ROUNDING else 0.0, 2)
        each_alone = "all" if len(alone) == len(own) > 1 else ", ".join(alone) or "none"
        rows.append((unbroken(link), number(before[5, 5]), shown, moved, each_alone))
    if not rows:
        return None
    columns = ("link", "mass before [kg]", "found", "centre moved [cm]", "identified alone")
    return Table("Links", columns, tuple(rows), (ON_LINKS,), left=(0, 4), most=MOST)


def load_table(found: Identification) -> Table | None:
    """The parameters of the load; None where there is none."""
    if found.problem.load_on is None:
        return None
    own = [each for each in found.estimates if each.name in found.load]
    rows = [(each.name, described(each), each.unit) for each in own]
    rows += [(f"centre {axis}", *shown) for axis, shown in zip("xyz", _load_centre(found), strict=False)]
    title = f"Load on {unbroken(found.problem.load_on)}, in its frame"
    return Table(title, ("parameter", "found", "unit"), tuple(rows), tuple(_notes_on(own)), left=(0, 2))


def _load_centre(found: Identification) -> Iterator[tuple[str, str]]:
    """Yield the centre of mass of the load, with its deviation, along each axis."""
    by_name = {each.name: each for each in found.estimates}
    m = by_name["m:load"]
    for axis in "xyz":
        h = by_name[f"mc:load.{axis}"]
        if m.value <= 0 or "identified" not in (m.how, h.how) or {m.how, h.how} - {"identified", "known"}:
            return
        c = h.value / m.value
        both = found.covariance_of((h.name, m.name))
        by = np.array([1.0, -c]) / m.value
        yield with_deviation(c, float(np.sqrt(by @ both @ by))), "m"


def next_words(found: Identification) -> str:
    """What is open, and what to excite next, in words."""
    unclear = least_identified(found)
    if not unclear:
        return "Each combination is identified at least twice as well as it was known: nothing is left to excite."
    by_name = {each.name: each for each in found.problem.all_parameters}
    owners = Counter(_owner(by_name[each.name.removesuffix(" +")]) for each in unclear)
    return (
        f"Left open is most of {listed((name for name, _ in owners.most_common()), FEW)}. Excite these next: "
        "nd.exciting_motion(robot) designs the motion that identifies most."
    )


def least_identified(found: Identification) -> list[BaseParameterEstimate]:
    """The combinations that are identified least, the worst first: as many as independent directions are open."""
    n_open = len(found.directions) - found.n_identified
    by_left = sorted(found.combinations, key=lambda each: -each.left)
    return [each for k, each in enumerate(by_left) if k < n_open or not each.is_identified]


def worst_table(found: Identification) -> Table | None:
    """The combinations that are identified least."""
    unclear = least_identified(found)
    if not unclear:
        return None
    rows = tuple((described_sum(each), left_of(each)) for each in unclear)
    note = "Left: the share of the deviation before that is left, where 100 % says that the log says nothing of it."
    bars, levels = tuple((min(each.left, 1.0),) for each in unclear), ("low",) * len(unclear)
    return Table("Identified least", ("combination", "left"), rows, (note,), most=WORST, bars=bars, levels=levels)


def left_of(each: BaseParameterEstimate) -> str:
    """The share of the prior deviation that is left of a combination, "12 %"."""
    return f"{100 * min(each.left, 1.0):.{0 if each.left > 0.01 else 1}f} %"


def described(found: ParameterEstimate, always: bool = False) -> str:
    """The estimate of a parameter, as a cell of a table.

    Args:
        found: the parameter.
        always: whether the value of one that is not identified by itself stands there, without a deviation.
    """
    if found.how == "identified":
        return with_deviation(found.value, found.deviation)
    if found.how == "known":
        return f"{number(found.value)} known"
    if always:
        return f"({number(found.value)})"
    return IN_SUMS if found.how == "combined" else OPEN


def with_deviation(value: float, deviation: float) -> str:
    """A value and its standard deviation, "3.079 ± 0.016": two digits of the latter count."""
    if not (math.isfinite(value) and deviation > 0 and math.isfinite(deviation)):
        return number(value)
    decimals = 1 - math.floor(math.log10(float(f"{deviation:.1e}")))
    if decimals > 6 or abs(value) >= 1e6:
        return unbroken(f"{number(value)} ± {number(deviation, 2)}")
    shown = (f"{round(x, decimals) + 0.0:,.{max(decimals, 0)}f}" for x in (value, deviation))
    return unbroken(" ± ".join(shown))


def described_sum(found: BaseParameterEstimate, most: int | None = TERMS) -> str:
    """A combination as a sum, "I:l2.zz + 0.25 m:l3 + 4 more", the parameter that stands for it first."""
    first = found.name.removesuffix(" +")
    return describe_sum({first: found.terms[first], **found.terms}, most)


def _owner(parameter: Parameter) -> str:
    """The link, joint or reading that a parameter is of; of one of several robots with its name."""
    return parameter.owner + (f"@{parameter.robot}" if parameter.robot else "")


def _notes_on(found: Iterable[ParameterEstimate]) -> Iterator[str]:
    hows = {each.how for each in found}
    words = []
    if "combined" in hows:
        words.append(f"{IN_SUMS}: identified only together with other parameters")
    if "open" in hows:
        words.append(f"{OPEN}: the log says less of it than was known")
    if words:
        yield "; ".join(words) + "."


def centre_of(I: Floats) -> Floats:
    """The centre of mass (3,) [m] of a spatial inertia (6, 6)."""
    return np.asarray(ten_of(I)[1:4] / I[5, 5], dtype=float)


def range_of(values: Sequence[float]) -> str:
    """From where to where numbers go, "0.36 to 4.9"."""
    low, high = number(min(values), 2), number(max(values), 2)
    return low if low == high else f"{low} to {high}"

"""Sensors that were chosen, in words: what they cost, whether anything is better, and how exact the outputs are."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from nori_dyn.placement.cases import Demand
from nori_dyn.placement.design import Design, ParetoFront
from nori_dyn.placement.selection import Placement
from nori_dyn.report.findings import describe_worst
from nori_dyn.report.layout import Verdict
from nori_dyn.report.shows.observability import deviations_parts
from nori_dyn.tables import Document, Paragraph, Part, Table, attributes, listed, number, unbroken

SHOWN = 8
"""Most outputs that are named in a sentence."""

ALMOST_EVERY = "almost every pose"


def verdict(found: Placement | Design) -> Verdict:
    """How many sensors, and for what; whether anything is better, what they determine, and how exactly."""
    if isinstance(found, Placement):
        is_best, heading = found.is_optimal, f"{_sensors(found)} for {found.cost:,g}"
        better = "the cheapest possible" if is_best else f"the cheapest costs at least {number(found.bound)}"
        outputs = "everything" if found.outputs == ("all",) else listed(found.outputs, SHOWN)
        purpose = f"They determine {outputs} at {where(found.demand)}."
    else:
        what = "sum of variances" if found.criterion == "A" else "determinant of the covariance"
        is_best, heading = found.gap == 0, f"{_sensors(found)} of the least {what}"
        better = "no choice is better" if is_best else f"no choice has deviations more than {found.gap:.1%} smaller"
        asked = f", and determine the outputs at {where(found.demand)}" if where(found.demand) != ALMOST_EVERY else ""
        purpose = f"They cost {found.cost:,g}{asked}."
    return Verdict("yes" if is_best else "sometimes", heading, (better, purpose, describe_worst(found.bought.expected)))


def where(demand: Demand) -> str:
    """In words where outputs are determined, and what may fail."""
    poses = [f"{name} ({len(Q):,} {'pose' if len(Q) == 1 else 'poses'})" for name, Q in demand.at.items()]
    places = " and ".join([", ".join([ALMOST_EVERY, *poses[:-1]]), *poses[-1:]])
    n = len(demand.states)
    states = f", in {'the contact state' if n == 1 else f'each of {n} contact states'}" if n else ""
    who = "one" if demand.survive == 1 else f"{demand.survive}"
    fails = f", whichever {who} of them {'fails' if demand.survive == 1 else 'fail'}" if demand.survive else ""
    return f"{places}{states}{fails}"


def _sensors(found: Placement | Design) -> str:
    return "1 sensor" if len(found.chosen) == 1 else f"{len(found.chosen):,} sensors"


def chosen_table(found: Placement | Design) -> Table:
    """The sensors with their costs, and what could be had instead of each where that is known."""
    rows = tuple((unbroken(name), f"{cost:,g}") for name, cost in found.costs.items())
    exchanges = found.exchanges if isinstance(found, Placement) else {}
    others = [_describe_others(exchanges.get(name), found.bought.offered) for name in found.costs]
    if not any(others):
        return Table("", ("sensor", "cost"), rows)
    both = tuple((*row, other) for row, other in zip(rows, others, strict=True))
    return Table("", ("sensor", "cost", "instead of it"), both, left=(0, 2))


def method(found: Placement | Design) -> str:
    """How they were found, and among how many."""
    return f"Found among {len(found.bought.offered):,} candidates by: {found.method}."


def _describe_others(others: Sequence[str] | None, costs: Mapping[str, float]) -> str:
    """In words what could be had instead of a sensor."""
    if others is None:
        return ""
    if not others:
        return "irreplaceable"
    least = others[0]
    return f"{least} for {costs[least]:,g}" + (f", or {len(others) - 1:,} others" if len(others) > 1 else "")


def placement_document(found: Placement) -> Document:
    """The document of the cheapest sensors."""
    others = {name: list(others) for name, others in found.exchanges.items()}
    figures = {**_figures(found), "is_optimal": found.is_optimal, "exchanges": others}
    return Document(_parts(found), figures)


def front_verdict(front: ParetoFront) -> Verdict:
    """How many sets, from what cost to what; whether they are proven; what they determine."""
    points, n = front.points, len(front.points)
    proven = sum(point.is_optimal for point in points)
    heading = f"{n:,} {'set' if n == 1 else 'sets'} of sensors, for {points[0].cost:,g}"
    heading += f" to {points[-1].cost:,g}" if n > 1 else ""
    if front.is_complete:
        better = "no set is both cheaper and more precise than one of them, and there are no others"
    else:
        better = f"{proven:,} of them are proven: no set is as cheap and more precise; the time was too short for more"
    purpose = f"Each determines {listed(front.outputs, SHOWN)} at {where(front.demand)}."
    mean = "root mean square" if front.criterion == "A" else "geometric mean"
    what = f"A deviation is the {mean} of those of {front.n_outputs:,} outputs, with all sensors at work."
    return Verdict("yes" if front.is_complete else "sometimes", heading, (better, purpose, what))


def front_table(front: ParetoFront, spread: bool = False) -> Table:
    """The sets, the cheapest first, and how much more precise others of that cost could be where it is not proven.

    Args:
        front: the front.
        spread: whether each type of sensor has a column.
    """
    unit, is_open = f" {unbroken(f'[{front.unit}]')}" if front.unit else "", not front.is_complete
    counts = [Counter(front.types[name] for name in point.chosen) for point in front.points]
    types = [*dict.fromkeys(front.types[name] for name in front.offered if any(front.types[name] in c for c in counts))]
    rows = []
    for point, count in zip(front.points, counts, strict=True):
        best = ("proven" if point.is_optimal else number(point.bound),) if is_open else ()
        which = [str(count[name] or "") for name in types]
        if not spread:
            which = [listed(f"{n} {unbroken(name)}" for name, n in count.most_common())]
        rows.append((f"{point.cost:,g}", str(len(point.chosen)), number(point.deviation), *best, *which))
    last = [name.replace("_", " ") for name in types] if spread else ["which"]
    columns = ("cost", "sensors", f"deviation{unit}", *(("at best",) if is_open else ()), *last)
    return Table("", columns, tuple(rows), left=() if spread else (len(columns) - 1,))


def pareto_front_document(front: ParetoFront) -> Document:
    """The document of a Pareto front."""
    better, *sentences = front_verdict(front).sentences
    numbers = ("cost", "deviation", "bound", "is_optimal", "chosen")
    figures = {
        "points": [{**attributes(one, *numbers), "sensors": one.sensors.to_dict()} for one in front.points],
        **attributes(front, "is_complete", "bound", "criterion", "outputs", "n_outputs", "unit"),
        "candidates": dict(front.offered),
        **_asked(front.demand),
    }
    lead = f"{front_verdict(front).heading}:"
    return Document((Paragraph(f"{better}.", lead), *sentences, front_table(front), front_method(front)), figures)


def front_method(front: ParetoFront) -> str:
    """Among how many they were found."""
    return f"Found among {len(front.offered):,} candidates by integer programs with a limit on the deviation."


def _asked(demand: Demand) -> dict[str, Any]:
    return {
        "survive": demand.survive,
        "where": {name: Q.tolist() for name, Q in demand.at.items()},
        "contact_states": [list(state) for state in demand.states],
    }


def design_document(found: Design) -> Document:
    """The document of the best sensors."""
    sigma = dict(zip(found.outputs, found.sigma.tolist(), strict=True))
    figures = {**_figures(found), **attributes(found, "criterion", "value", "gap"), "sigma": sigma}
    return Document(_parts(found), figures)


def _parts(found: Placement | Design) -> tuple[Part | str, ...]:
    """Parts on chosen sensors, and how exact the outputs are with them."""
    answer = verdict(found)
    better, *others = answer.sentences
    sentences = [sentence for sentence in others if sentence]
    deviations = deviations_parts(found.bought.expected)
    return Paragraph(f"{better}.", f"{answer.heading}:"), *sentences, chosen_table(found), *deviations, method(found)


def _figures(found: Placement | Design) -> dict[str, Any]:
    return {
        **attributes(found, "chosen", "costs", "cost", "outputs", "method", "bound"),
        "candidates": dict(found.bought.offered),
        "expected": found.bought.expected.to_dict(),
        "sensors": found.sensors.to_dict(),
        **_asked(found.demand),
    }

"""What was found of sensors that suffice, or do not, in words, once: text, JSON and the page lay it out.

First what was found over many configurations, how near to singular they are and how exact outputs; then reports, what
may fail, and what is learned over time.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.model.joints import Free
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.additions import MOST_LOOKS, Addable, Addition
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.learned import Learned, Sum
from nori_dyn.observe.learned_exact import MotionRequirement
from nori_dyn.observe.null_space import SHOWN, UnobservableSubspace, list_names
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import ObservabilityReport, RankWhere
from nori_dyn.report.layout import Verdict
from nori_dyn.system.rows import GIVEN
from nori_dyn.tables import Bullets, Paragraph, Part, Table, describe_sum, listed, number, unbroken
from nori_dyn.typing import Floats, Indices

NEARLY_SINGULAR = 1e-5
"""Smallest singular value, relative to the largest, below which a pose is called nearly singular."""

MARGIN = (
    "Margin: the smallest singular value of the equations, relative to the largest: from 1, far from losing one more "
    f"combination of the unknowns, to 0; below {number(NEARLY_SINGULAR, 1)} a pose is nearly singular."
)

MOST_UNITS = 2
"""Most units of which the output that is known least is named."""

NO_SIGMA = "No sensor has a sigma: with sigmas, the standard deviations of the outputs are shown here."


@dataclass(frozen=True, slots=True)
class Deviation:
    """The expected standard deviation of an output, in its unit.

    Attributes:
        output: its name.
        worst, median: over the configurations; infinite where it is not determined.
        pose: number of the worst configuration.
    """

    output: str
    worst: float
    median: float
    pose: int

    @property
    def sizes(self) -> tuple[float, float]:
        """At the worst configuration, and at the median."""
        return self.worst, self.median

    @property
    def is_known(self) -> bool:
        """Whether the output is determined at most configurations, and not known exactly."""
        return self.worst > 0.0 and math.isfinite(self.median)


def deviations_of(found: Conditioning) -> dict[str, list[Deviation]]:
    """The deviations of the outputs of each unit, the largest first; none where no sensor has a sigma."""
    medians, worsts = found.median_sigma, found.worst_sigma
    if found.sigma is None or medians is None or worsts is None:
        return {}
    sizes = worsts.tolist(), medians.tolist(), found.sigma.argmax(axis=0).tolist()
    by_unit: dict[str, list[Deviation]] = {unit: [] for unit in found.units}
    for unit, *each in zip(found.units, found.outputs, *sizes, strict=True):
        by_unit[unit].append(Deviation(*each))
    return {unit: sorted(own, key=lambda one: (-one.worst, -one.median)) for unit, own in by_unit.items()}


def format_deviation(value: float, unit: str = "") -> str:
    """A deviation as text."""
    return f"{number(value, 2)} {unit}".strip() if np.isfinite(value) else "not determined"


def describe_worst(found: Conditioning) -> str:
    """The outputs that are known least, at the worst pose and at the median; "" where no sensor has a sigma."""
    N = len(found.ranks)
    words = []
    for unit, own in deviations_of(found).items():
        for line in [one for one in own if one.is_known][:1]:
            at_worst = f"{format_deviation(line.worst, unit)} at the worst of {N:,} poses (no. {line.pose})"
            words.append(f"{unbroken(line.output)}, {at_worst}, {format_deviation(line.median, unit)} at the median")
    return f"Least precise: {'; '.join(words[:MOST_UNITS])} (expected standard deviations)." if words else ""


def describe_margins(poses: str, ranks: Indices, smallest: Floats, rank: int, n_variables: int) -> str:
    """In words at how many poses something is not determined, and how near to that the others are.

    Args:
        poses: what they are.
        ranks: the rank at each (N,).
        smallest: the smallest relative singular value that counts at each (N,).
        rank: that at almost every pose.
        n_variables: full rank.
    """
    N = len(ranks)
    if rank < n_variables:
        n = int(np.sum(ranks < rank))
        further = f"{count_or_none(n)} {'leaves' if n == 1 else 'leave'} more undetermined"
        return f"At each of {N:,} {poses} something is not determined, as at almost every pose; {further}."
    margin = np.where(ranks < n_variables, 0.0, smallest)
    short, nearly = int(np.sum(margin == 0.0)), int(np.sum((margin > 0.0) & (margin < NEARLY_SINGULAR)))
    worst, median = number(margin.min(), 1), number(np.median(margin), 1)
    return (
        f"Of {N:,} {poses}, {count_or_none(short)} {'leaves' if short == 1 else 'leave'} something undetermined and "
        f"{count_or_none(nearly)} {'is' if nearly == 1 else 'are'} nearly singular. The margin is {worst} at the worst "
        f"(no. {int(margin.argmin())}) and {median} at the median."
    )


def count_or_none(n: int) -> str:
    """A number, or "none"."""
    return f"{n:,}" if n else "none"


OF_SEVERAL = ("a", "f", "fx", "loop")
"""Kinds of variables that are of several numbers, each with a name of its own."""

LISTED = 6
"""Most outputs, sensors and combinations that are listed."""

MOST_RANKS = 8
"""Most ranks over several poses that are listed."""


def verdict(report: ObservabilityReport, conditioning: Conditioning | None = None) -> Verdict:
    """Whether the sensors suffice, in one line and in one sentence; then the outputs that are known least.

    Args:
        report: the report.
        conditioning: what was found over many configurations, where they were looked at.
    """
    level, heading, words = _verdict(report, conditioning)
    worst = "" if conditioning is None else describe_worst(conditioning)
    return Verdict(level, heading, (words, *((worst,) if worst else ())))


def _verdict(report: ObservabilityReport, conditioning: Conditioning | None) -> tuple[str, str, str]:
    n = report.n_variables
    unknowns = f"all {n:,} unknowns of the robot's motion and forces"
    lacking = 0 if conditioning is None else len(conditioning.lacking)
    given = int(np.sum(report.rank_at < n))
    if not report.is_observable and report.over_time is not None and report.over_time.suffices:
        return (
            "sometimes",
            "Yes, but not at once",
            f"At one pose {len(report.unobservable):,} of the {n:,} unknowns of the robot's motion and forces do not "
            "follow from the readings; all of them do as soon as the memory is learned.",
        )
    if not report.is_observable:
        return (
            "no",
            _answer(report),
            f"Whatever the pose, {len(report.unobservable):,} of the {n:,} unknowns of the robot's motion and forces "
            "do not follow from the readings.",
        )
    if report.numerical_rank < n:
        return (
            "no",
            "No, these sensors suffice on paper only",
            f"In exact arithmetic {unknowns} follow from the readings, but some of them so weakly that in double "
            f"precision they do not: there the rank is {report.numerical_rank:,} of {n:,}.",
        )
    if report.loses_rank or given or lacking:
        where = []
        if report.loses_rank:
            kinds = "kind" if len(report.loses_rank) == 1 else "kinds"
            where.append(f"{len(report.loses_rank)} {kinds} of special pose")
        if given:
            where.append(f"{given:,} of the {len(report.rank_at):,} given configurations")
        if conditioning is not None and lacking:
            where.append(f"{lacking:,} of the {len(conditioning.ranks):,} configurations looked at")
        return (
            "sometimes",
            "Yes, but not at every pose",
            f"At almost every pose {unknowns} follow from the readings; at {' and at '.join(where)} some do not.",
        )
    return "yes", "Yes, these sensors suffice", f"At almost every pose {unknowns} follow from the readings."


def _answer(report: ObservabilityReport) -> str:
    """What the sensors, which do not suffice, tell of what is asked for."""
    if not report.asked:
        return "No, these sensors do not suffice"
    lost, parts = set(report.unobservable), []
    for name, own in report.asked.items():
        n, total = len(lost.intersection(own)), len(own)
        if n:
            parts.append(name if total == 1 else f"{f'{n} of' if n < total else 'all'} {total} components of {name}")
    outputs = parts or [*report.asked]
    words, is_one = list_names(outputs, LISTED), len(outputs) == 1 and outputs[0] in report.asked
    words = f"{words.replace('all', 'All', words.startswith('all '))} {'is' if is_one else 'are'}"
    return f"{words} undetermined" if parts else f"{words} determined, but these sensors do not suffice"


def reason(report: ObservabilityReport) -> str:
    """The reason in one sentence: how many equations there are, and how many of them count."""
    n = report.n_variables
    there = f"The equations of motion and of the sensors are {report.n_rows:,}, for {n:,} unknowns"
    if report.is_observable:
        return f"{there}; at almost every pose {n:,} of them are independent, as many as it takes."
    return f"{there}, but at most {report.generic_rank:,} of them are independent: {report.deficiency:,} too few."


def describe_unseen(part: UnobservableSubspace) -> str:
    """What the sensors do not see, in words."""
    several = part.dimension > 1 and not part.words.startswith(f"{part.dimension} ")
    return f"{part.words} ({part.dimension} independent)" if several else part.words


def unseen_at_poses(report: ObservabilityReport) -> tuple[UnobservableSubspace, ...]:
    """What else the sensors do not see at special poses."""
    known = {part.words for part in report.unseen}
    found = {part.words: part for c in report.loses_rank for part in c.unseen if part.words not in known}
    return tuple(found.values())


def advice(report: ObservabilityReport) -> Iterator[tuple[Part, ...]]:
    """Yield what to add for almost every pose, and for the special poses as well; with each what does as well."""
    for k, addition in enumerate(report.additions):
        at_once = report.suffices_over_time and not report.is_observable
        first = "To know all at once, add this." if at_once else "Add this."
        lead = "Or this, for the special poses as well." if k else first
        others = tuple(_group_by_type(addition.others, "one of "))
        instead = (Bullets(others, "Instead of it, any one of these does as well:"),) if others else ()
        yield Paragraph(describe_addition(addition), lead), *instead
    if not report.suffices_over_time and not report.additions:
        given_up = f"So much is missing that the search for additions was given up after {MOST_LOOKS:,} steps."
        yield (Paragraph(given_up, "What to add?"),)


def describe_addition(addition: Addition) -> str:
    """What to add, and what is determined with it."""
    what = list_names([*_group_by_type(addition.sensors, "each of ", most=None)])
    where = "also at the special poses that were looked at" if addition.at_poses else "at almost every pose"
    fewer = "" if addition.is_smallest else " Fewer may suffice."
    return f"{what[0].upper()}{what[1:]}: then everything is determined, {where}.{fewer}"


def _group_by_type(sensors: Iterable[Addable], several: str, most: int | None = SHOWN) -> Iterator[str]:
    """Yield sensors of one type together, with so many of their places: "a torque sensor in one of l_knee, r_knee"."""
    places: dict[str, list[str]] = {}
    for sensor in sensors:
        places.setdefault(sensor.type, []).append(sensor.place)
    for type_, own in places.items():
        yield f"{type_} {several if len(own) > 1 else ''}{list_names(own, most)}"


def special_poses(report: ObservabilityReport) -> Table:
    """Table of what becomes at special poses of what is determined at almost every other."""
    found = [_describe_pose(where, report.is_observable) for where in report.conditions]
    rows, levels = tuple(row for row, _ in found), tuple(level for _, level in found)
    return Table("Special poses", ("pose", "result", "margin"), rows, (MARGIN,), left=(0, 1), levels=levels)


def _describe_pose(where: RankWhere, is_observable: bool) -> tuple[tuple[str, str, str], str]:
    """A row of that table, and how good it is."""
    smallest = float(where.smallest.min(initial=1.0))
    nearly = smallest < NEARLY_SINGULAR
    if where.lost:
        links = [*dict.fromkeys(link for part in where.unseen for link in part.links)]
        joints = [*dict.fromkeys(joint for part in where.unseen for joint in part.joints)]
        moved = [f"the external wrenches on {list_names(links)}"] if links else []
        moved += [f"the accelerations of {list_names(joints)}"] if joints else []
        added = [*dict.fromkeys(name for part in where.unseen for name in part.added)]
        moved += [f"the forces {list_names(added)}"] if added else []
        further = "" if is_observable else "further "
        combinations = f"{where.lost} {further}combination{'' if where.lost == 1 else 's'}"
        outcome = f"{combinations} of {' and '.join(moved)} not determined"
        outcome += "" if where.always else ", at the worst"
        outcome += ", nearly one more" if nearly else ""
    else:
        outcome = "all determined" if is_observable else "nothing more lost"
        outcome += ", but only just" if nearly else ""
    level = "no" if where.lost else "sometimes" if nearly else "yes"
    return (where.meaning, outcome, number(smallest, 1)), level


def describe_given(report: ObservabilityReport) -> str:
    """What became of the configurations that were given; "" where there are none."""
    if not len(report.rank_at):
        return ""
    n = report.n_variables
    return describe_margins("configurations given", report.rank_at, report.smallest_at, report.generic_rank, n)


def facts(report: ObservabilityReport) -> Iterator[tuple[str, str]]:
    """Yield names and sizes."""
    tree = report.system.tree
    short = f", {report.deficiency:,} short" if report.deficiency else ""
    numerical = f"; {report.numerical_rank:,} in doubles" if report.numerical_rank < report.generic_rank else ""
    pattern = f"; the pattern would allow {report.structural_rank:,}" if report.deficiency else ""
    yield "robot", f"{unbroken(report.robot)}: {tree.n_links} links, {tree.nv} freedoms"
    yield "sensors", f"{unbroken(report.sensors)}: {report.system.ny:,} numbers read"
    yield "rank", f"{report.generic_rank:,} of {report.n_variables:,}{short}{numerical}{pattern}"
    if report.error is None:
        yield "numerical", f"all ranks, {_describe_looks(report)}"
    else:
        exact = f"the rank, wrong with a probability below {number(report.error, 1)}; poses are judged numerically"
        yield "exact", exact
    if report.over_time is not None:
        ranks = listed([f"{rank:,}" for rank in report.over_time.ranks], MOST_RANKS)
        yield "memory", f"{len(report.over_time.names):,} numbers; rank after 1, 2, ... poses: {ranks}"
    if report.repeated:
        yield "repeated", f"{listed(report.repeated)}: redundant wherever loops and couplings are closed"
    if report.skipped and report.system.tree.closing_parts:
        yield "left out", f"poses at which no loop is closed: {listed(report.skipped)}"


def _describe_looks(report: ObservabilityReport) -> str:
    """Where ranks were taken that are not exact, and how clearly they are determined."""
    margin = f"; the smallest singular value that counts is {number(report.gap, 1)} times the largest taken as zero"
    return f"at closed configurations of the loops and couplings{margin if np.isfinite(report.gap) else ''}"


def by_variable(names: Iterable[str]) -> tuple[str, ...]:
    """Numbers of d by their variables, with how many where there are several, sources first.

    Names of links may have dots: only what is known to be of several numbers is taken together.
    """
    of: dict[str, list[str]] = {}
    for name in names:
        of.setdefault(name.rpartition(".")[0] if name.partition(":")[0] in OF_SEVERAL else name, []).append(name)
    order = sorted(of, key=lambda variable: variable.partition(":")[0] in GIVEN)
    return tuple(
        f"{variable} ({len(of[variable])})" if len(of[variable]) > 1 else of[variable][0] for variable in order
    )


def describe_failures(found: Redundancy, wanted: Sequence[str] | None = None) -> str:
    """How many sensors may fail, in words.

    Args:
        found: which may fail.
        wanted: the outputs as they were asked for; those that were looked at when None.
    """
    outputs = listed(wanted or found.outputs, LISTED) or "the outputs"
    if found.undetermined and found.outputs:
        outputs = listed(by_variable(found.outputs), LISTED)
    n, n_critical = len(found.sensors), len(found.critical)
    if not found.outputs:
        return f"Nothing of {outputs} is determined, so nothing can be lost."
    if n_critical == n:
        return f"None of the {n:,} sensors may fail: without any one of them, some of {outputs} is lost."
    if n_critical:
        return f"Any one of {n - n_critical:,} of the {n:,} sensors may fail; {n_critical:,} may not."
    return f"Any one of the {n:,} sensors may fail: {outputs} stays determined."


def lost_without(found: Redundancy) -> list[tuple[str, tuple[str, ...]]]:
    """The sensors that may not fail, and what is lost without each."""
    return [(name, by_variable(found.lost[name])) for name in found.critical]


def failing_together(found: Redundancy) -> Bullets | str:
    """The sets of others that may not fail together, or that any may, in one sentence; "" where nothing is known."""
    together = tuple(_list_sets(found.failing_sets))
    if together:
        return Bullets(together, f"Of the others, these may not fail together (sets of up to {found.size}):", LISTED)
    any_may = found.size > 1 and len(found.critical) < len(found.sensors) and found.outputs
    return f"Any {found.size} of these may also fail together." if any_may else ""


def _list_sets(sets: Sequence[tuple[str, ...]]) -> Iterator[str]:
    """Yield sets of several sensors, those that differ in the last one only as one."""
    several = (failing for failing in sets if len(failing) > 1)
    for first, own in itertools.groupby(several, key=lambda failing: failing[:-1]):
        last = [failing[-1] for failing in own]
        yield " and ".join((*map(unbroken, first), f"{'any one of ' if len(last) > 1 else ''}{listed(last)}"))


NAMED = 6
"""Most variables of one fate that are named."""

MANY = 6
"""Numbers of a kind above which it is named instead of them, where they are all seen alike."""

FATES = 12
"""Most kinds of what becomes of what persists that are listed."""

TERMS = 4
"""Most terms of a sum that are shown."""


def memory_words(found: Learned, n_variables: int) -> str:
    """How much of the memory is learned, and what follows, in some sentences."""
    return " ".join(_words(found, n_variables))


def memory_lists(found: Learned) -> Iterator[Bullets]:
    """Yield what becomes of which numbers, and the combinations that are observable where their terms are not."""
    yield Bullets(tuple(_lines(found)), "The memory, and what determines it:", FATES)
    if found.sums:
        sums = tuple(_describe_sum(each, found) for each in found.sums)
        yield Bullets(sums, "Combinations that are determined where their terms are not:", LISTED)


def _describe_sum(each: Sum, found: Learned) -> str:
    """A combination with its factors, or by its names only where these depend on the poses."""
    need = next((need for need in found.needs.each if next(iter(each.terms)) in need.names), None)
    words = "" if need is None else f": {describe_need(need, found.needs.moving)}"
    if all(each.terms.values()):
        return f"{describe_sum(each.terms, TERMS)}{words}"
    return f"{listed(each.terms, TERMS)}, with factors that depend on the poses{words}"


def _poses(found: Learned, n: int) -> str:
    """Over how many poses, or instants where what persists does not stay."""
    one = "pose" if found.stays else "instant"
    return f"at one {one}" if n == 1 else f"over {n} {one}s"


def _words(found: Learned, n_variables: int) -> Iterator[str]:
    n, alone = len(found.names), sum(map(bool, found.seen_after))
    where = _poses(found, found.states)
    if found.is_learned:
        first = found.seen_after.count(1)
        some = f", {first:,} of them already {_poses(found, 1)}" if 0 < first < n else ""
        numbers = f"all {n:,} numbers of the memory" if n > 1 else "the one number of the memory"
        yield f"The sensors determine {numbers}, {where}{some}."
    elif not found.rank:
        numbers = f"the {n:,} numbers of the memory" if n > 1 else "the one number of the memory"
        yield f"The sensors tell nothing of {numbers}" + ("." if found.is_asked else ", however many poses there are.")
    else:
        parts = [f"{alone:,} alone"] if alone else []
        if found.sums:
            mixed = n - alone - len(found.untold)
            several, others = "s" if len(found.sums) > 1 else "", " others" if alone else ""
            parts.append(f"{len(found.sums):,} combination{several} of {mixed:,}{others}")
        rest = f", and nothing of {len(found.untold):,}" if found.untold else ""
        yield f"Of the {n:,} numbers of the memory the sensors determine {' and '.join(parts)}, {where}{rest}."
    if found.is_asked and not found.is_learned and (len(found.ranks) == 1 or found.ranks[-1] > found.ranks[-2]):
        yield f"More {'poses' if found.stays else 'instants'} may tell more."
    enough = found.needs.all
    if enough is not None and len(found.needs.each) > 1:
        yield f"It suffices that {_move(enough.enough)}, {_poses(found, enough.after)}."
    missing, at_first = len(found.undetermined), len(found.undetermined_at_first)
    if missing:
        yield f"Even then {missing:,} of all {n_variables:,} unknowns do not follow without a prior."
    elif at_first:
        yield f"Once they are known all {n_variables:,} unknowns follow from the readings, at almost every pose."


def _lines(found: Learned) -> Iterator[str]:
    """Yield those of one fate together: "offset:l_leg_ft (mz): over 2 poses, only if l_knee moves"."""
    of_number = {name: need for need in found.needs.each for name in need.names}
    mixed = {name for each in found.sums for name in each.terms}
    groups: dict[tuple[str, str], list[str]] = {}
    for name, after in zip(found.names, found.seen_after, strict=True):
        seen = _poses(found, after) if after else "only in combinations" if name in mixed else "never"
        words = ""
        if after and name in of_number:
            need = of_number[name]
            words = describe_need(need, found.needs.moving)
            words += f" ({_poses(found, need.after)} if nothing else moves)" if need.after > after else ""
        groups.setdefault((seen, words), []).append(name)
    for (seen, needs), names in groups.items():
        yield f"{listed(_by_variable(found, names), NAMED)}: {', '.join(filter(None, (seen, needs)))}"


def describe_need(need: MotionRequirement, moving: Sequence[str]) -> str:
    """The motion required, in words: "only if l_knee moves".

    Args:
        need: what has to.
        moving: the joints that change what is observable.
    """
    if need.by_time:
        return "as time passes, even at rest"
    if need.any_of and len(need.any_of) == len(moving):
        return f"only if {moving[0]} moves" if len(moving) == 1 else "only if some joint moves"
    if need.any_of:
        names = need.any_of
        one = list_names(names) if len(names) == 1 else f"one of {list_names(names)}"
        return f"only if {one} moves" if need.is_only else f"if {one} moves, for example"
    if need.is_only:
        return f"only if {_move(need.all_of)}"
    others = [name for name in need.enough if name not in need.all_of]
    if not need.all_of:
        return f"if {_move(others)}, for example"
    return f"only if {_move(need.all_of)}; {list_names([*need.all_of, *others])} suffice, for example"


def _move(names: Sequence[str]) -> str:
    """That joints move: "l_hip and l_knee move"."""
    return f"{list_names(names, most=None)} move{'s' if len(names) == 1 else ''}"


def _by_variable(found: Learned, names: Iterable[str]) -> Iterator[str]:
    """Yield numbers by their variables: "fx:hand (mx, my)", or "fx:hand" for all of it; many of a kind as one."""
    wanted = set(names)
    kinds: dict[str, list[str]] = {}
    for each in found.memory:
        kinds.setdefault(each.variable.kind, []).extend(each.variable.component_names)
    whole = [kind for kind, own in kinds.items() if len(own) > MANY and wanted.issuperset(own)]
    for each in found.memory:
        v = each.variable
        own = [c for c, name in zip(v.components, v.component_names, strict=True) if name in wanted]
        if v.kind in whole:
            if v.component_names[0] == kinds[v.kind][0]:
                yield f"{v.kind} (all {len(kinds[v.kind]):,})"
        elif len(own) == len(v.components):
            yield v.name
        elif own:
            yield f"{v.name} ({', '.join(own)})"


def memory_notes(found: Learned, tree: KinematicTree) -> Iterator[str]:
    """Yield what else is to be known of it."""
    yield "Priors and initial sigmas are left out: only the sensors count."
    after = dict(zip(found.names, found.seen_after, strict=True))
    uncertain = [each for each in found.memory if not all(after[name] for name in each.variable.component_names)]
    unsaid = [each.variable.name for each in uncertain if each.sigma is None]
    if len(uncertain) > len(unsaid):
        yield "What the sensors do not determine keeps its initial uncertainty."
    if unsaid:
        verb = "have" if len(unsaid) > 1 else "has"
        yield f"{listed(unsaid, SHOWN)} {verb} no initial sigma: a filter needs one."
    if found.needs.each:
        yield "How well the memory is determined depends on how far apart the poses are."
    walking = [name for each in found.memory if any(each.walk) for name in each.variable.component_names]
    if walking:
        names = listed(_by_variable(found, walking), SHOWN)
        yield f"These drift by their random walk: {names}. What is learned of them fades and is learned again."
    pushes = [each.variable for each in found.memory if each.variable.kind == "fx"]
    if pushes:
        one = "External wrenches persist in the coordinates of their links"
        if len(pushes) == 1:
            one = f"{unbroken(pushes[0].name)} persists in the coordinates of its link"
        yield f"{one}. The weight of a payload does not, as it turns with the link: nd.identify identifies loads."
    bases = {tree.joint_names[i] for i, joint in enumerate(tree.joints) if tree.is_root(i) and isinstance(joint, Free)}
    if found.error is None:
        yield "Ranks are numerical, at closed configurations; which joints must move is not determined."
    elif found.needs.moving and bases and bases.isdisjoint(found.needs.moving):
        yield "Moving or turning the base alone adds nothing: the masses are known, and gravity with them."

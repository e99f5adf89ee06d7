"""The pages of reports, of chosen sensors and of identified parameters: which parts, in which sections.

    nd.tools.save_html(report, "page.html")                          also with conditioning=, redundancy=
    nd.tools.save_html(nd.place(tree, candidates), "place.html")
    nd.tools.save_html(nd.identify("log.csv", tree, curves=True), "identified.html")

To add a page: a function that makes a `Page` (`layout.py`) of its sections; their parts are those of documents.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from nori_dyn.errors import WrongKindError
from nori_dyn.identification.findings import Identification
from nori_dyn.identification.fits import Curves
from nori_dyn.io.files import write_bytes
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.null_space import UnobservableSubspace
from nori_dyn.observe.redundancy import Redundancy
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.placement.design import Design, ParetoFront
from nori_dyn.placement.selection import Placement
from nori_dyn.report import findings
from nori_dyn.report.drawings import FrontDrawing, TreeDrawing, readings_by_link, tree_drawing
from nori_dyn.report.layout import Box, Fold, Note, Page, PagePart, Section, Verdict, rendered, side_by_side
from nori_dyn.report.shows import identification as shown
from nori_dyn.report.shows import placement
from nori_dyn.report.shows.observability import deviations_parts
from nori_dyn.report.time_plots import Curve, Panel, Plots
from nori_dyn.system.builder import System
from nori_dyn.tables import Bullets, Facts, Table, listed, number
from nori_dyn.typing import Floats

SHOWN = 8
"""Outputs of a unit that are shown at once, those that are known least; and most panels."""

TALL = 20
"""Links of a robot whose drawing is taller than all that stands beside it."""

MOST_DECADES = 3
"""Most decades of margins that are shown in thirds; more are shown whole."""


def margin_bars(smallest: Floats) -> Table:
    """How many configurations have which margin, the worst first, from the first that is not empty to the last.

    Args:
        smallest: the smallest relative singular value at each configuration (N,), 0 where something is not determined.
    """
    positive = smallest[smallest > 0.0]
    lost = len(smallest) - len(positive)
    low = math.floor(math.log10(positive.min())) if len(positive) else 0
    steps = (1, 2, 5) if low >= -MOST_DECADES else (1,)
    edges = np.array([float(f"{step}e{decade}") for decade in range(low, 0) for step in steps] + [1.0])
    counts = np.histogram(np.minimum(positive, 1.0), edges)[0] if len(edges) > 1 else np.array([], dtype=int)
    filled = np.flatnonzero(counts)
    longest = max(lost, int(counts.max(initial=1)))
    rows = [("not determined", lost, True)] if lost else []
    for k in range(filled[0], filled[-1] + 1) if len(filled) else ():
        is_low = bool(edges[k + 1] <= findings.NEARLY_SINGULAR)
        words = f"{number(edges[k], 1)} to {number(edges[k + 1], 1)}"
        rows.append((words, int(counts[k]), is_low))
    return Table(
        "Poses by their margin",
        ("margin", "poses"),
        tuple((words, n) for words, n, _ in rows),
        (findings.MARGIN,),
        left=(),
        bars=tuple((n / longest,) for _, n, _ in rows),
        levels=tuple("low" if is_low else "" for *_, is_low in rows),
    )


POSES_SHOWN = 5
"""Most configurations whose numbers are listed."""


def list_special_poses(tree: KinematicTree, report: ObservabilityReport) -> Iterator[Table]:
    """Yield the worst poses of a report: of each special kind, and of the configurations that were given."""
    if report.loses_rank:
        worst = [c.configurations[int(c.ranks.argmin())] for c in report.loses_rank]
        headings = [c.meaning for c in report.loses_rank]
        yield _pose_table(tree, "Where something is not determined: one pose of each kind", headings, worst)
    if len(report.rank_at):
        order = np.lexsort((report.smallest_at, report.rank_at))[:POSES_SHOWN]
        headings = [_name_pose(k, report.n_variables - report.rank_at[k], report.smallest_at[k]) for k in order]
        yield _pose_table(tree, "The worst of the configurations given", headings, report.configurations[order])


def list_swept_poses(tree: KinematicTree, found: Conditioning) -> Iterator[Table]:
    """Yield the worst poses of a sweep: by their margin, and by what is known least there."""
    order = found.worst[:POSES_SHOWN]
    headings = [_name_pose(k, found.n_variables - found.ranks[k], found.smallest[k]) for k in order]
    title = f"The worst margins of {len(found.ranks):,} {found.poses}"
    yield _pose_table(tree, title, headings, found.configurations[order])
    each = findings.deviations_of(found).items()
    lines = [(unit, line) for unit, own in each for line in [one for one in own if one.is_known][:1]]
    if lines:
        headings = [
            f"no. {line.pose}, {line.output} {findings.format_deviation(line.worst, unit)}" for unit, line in lines
        ]
        Q = found.configurations[[line.pose for _, line in lines]]
        yield _pose_table(tree, "Where an output is known least, of each unit", headings, Q)


def _name_pose(k: int, short: int, smallest: float) -> str:
    return f"no. {k}, {short} not determined" if short else f"no. {k}, margin {number(smallest, 1)}"


def _pose_table(tree: KinematicTree, title: str, headings: Sequence[str], Q: Sequence[Floats] | Floats) -> Table:
    rows = []
    for k, (name, kind) in enumerate(_coordinate_names(tree)):
        scale = np.degrees(1.0) if kind == "angle" else 1.0
        digits = 1 if kind == "angle" else 3
        unit = {"angle": "°", "length": "m", "quaternion": ""}[kind]
        cells = (f"{round(float(scale * q[k]), digits) + 0.0:.{digits}f}".replace("-", "−") for q in Q)
        rows.append((name, *cells, unit))
    return Table(title, ("joint", *headings, "unit"), tuple(rows), left=(0, len(headings) + 1))


def _coordinate_names(tree: KinematicTree) -> Iterator[tuple[str, str]]:
    """Yield the name of each number of q, and how it enters."""
    for name, joint in zip(tree.joint_names, tree.joints, strict=True):
        for kind, axis in zip(joint.coordinates, joint.coordinate_axes, strict=True):
            words = {"quaternion": f"quaternion {axis}"}.get(kind, axis or kind)
            yield f"{name} {words}" if joint.nq > 1 else name, kind


def observability_page(
    report: ObservabilityReport,
    conditioning: Conditioning | None = None,
    redundancy: Redundancy | None = None,
    outputs: Sequence[str] | None = None,
) -> Page:
    """Make the page of a report; equal reports give equal pages.

    Args:
        report: as `nori_dyn.observability` returns it.
        conditioning: margins and expected deviations over many configurations, where they were looked at.
        redundancy: what sensors may fail, where it was looked at.
        outputs: the outputs of that as they were asked for; those that were looked at when None.
    """
    tree, answer, to_add = report.system.tree, findings.verdict(report, conditioning), [*findings.advice(report)]
    poses, special = [*list_special_poses(tree, report)], findings.special_poses(report)
    swept: tuple[Section, ...] = ()
    if conditioning is not None:
        rank = conditioning.n_variables if report.is_observable else report.numerical_rank
        swept = _swept(conditioning, rank)
        poses += list_swept_poses(tree, conditioning)
    has_bars = bool(swept) and len(swept[0].parts) > 1
    at_special = [Section("Special poses", (replace(special, notes=()) if has_bars else special,), "special")]
    at_special = at_special if special.rows else []
    # The columns are about as long as each other: a tall drawing has the shorter sections beside it.
    read, is_tall = _readings(report.system), tree.n_links > TALL
    first = [_why(report)]
    if learned := report.over_time:
        lists = [Section(own.title.rstrip(":"), (replace(own, title=""),)) for own in findings.memory_lists(learned)]
        words, notes = findings.memory_words(learned, report.n_variables), findings.memory_notes(learned, tree)
        first.append(Section("Over time", (words, *lists, *map(Note, notes)), "overtime"))
    first += [] if is_tall and not has_bars else at_special
    first += [_robot(tree_drawing(report.system, report)), *([] if is_tall else [read])]
    second = [*(at_special if is_tall and not has_bars else []), *swept, *([_folded(poses)] if poses else [])]
    second += [] if redundancy is None else [_failures(redundancy, outputs)]
    second += [*([read] if is_tall else []), Section("Facts", (Facts(tuple(findings.facts(report))),), "facts")]
    add = Section("What to add", (Box(tuple(map(Box, to_add)), "sides"),), "add", "advice")
    return Page(
        f"{answer.heading}: {report.sensors} on {report.robot}",
        ("Do the sensors ", report.sensors, " suffice on ", report.robot, "?"),
        answer,
        (*([add] if to_add else []), Box(tuple(first), "column"), Box(tuple(second), "column")),
    )


def _why(report: ObservabilityReport) -> Section:
    at_poses = findings.unseen_at_poses(report)
    special = f"{'Also unobservable' if report.unseen else 'Unobservable'} at special poses"
    named = (("Unobservable at every pose", report.unseen), (special, at_poses))
    unseen = [Section(title, _unseen(parts)) for title, parts in named if parts]
    given = findings.describe_given(report)
    return Section("Why", (findings.reason(report), *unseen, *([given] if given else [])), "why")


def _unseen(parts: Sequence[UnobservableSubspace]) -> tuple[Bullets, Fold]:
    vectors = tuple(str(vector) for part in parts for vector in part.vectors)
    changes = Bullets(vectors, "Changes that no sensor sees")
    folded = Fold("In numbers: changes that no sensor sees", (changes,), "vectors")
    return Bullets(tuple(map(findings.describe_unseen, parts))), folded


def _robot(drawing: TreeDrawing) -> Section:
    return Section("The robot and its sensors", (drawing,), "robot")


def _folded(poses: Sequence[Table]) -> Section:
    return Section("The worst poses", tuple(Fold(own.title, (own,)) for own in poses), "poses")


def _failures(found: Redundancy, outputs: Sequence[str] | None) -> Section:
    rows = tuple((name, ", ".join(without)) for name, without in findings.lost_without(found))
    critical = Table("Critical sensors", ("sensor", "lost without it"), rows, left=(0, 1))
    parts: list[PagePart] = [findings.describe_failures(found, outputs)]
    parts += [Fold("Lost without each of those that may not", (critical,))] if rows else []
    together = findings.failing_together(found)
    if isinstance(together, Bullets):
        sets = replace(together, title="Sensors that may not fail together")
        parts.append(Fold(together.title.rstrip(":"), (sets,)))
    elif together:
        parts.append(together)
    return Section("When a sensor fails", tuple(parts), "failures")


def _swept(found: Conditioning, rank: int) -> tuple[Section, Section]:
    """How near to singular many configurations are, of which almost all have a rank, and how exact outputs there."""
    words = findings.describe_margins(found.poses, found.ranks, found.smallest, rank, found.n_variables)
    bars = margin_bars(found.smallest) if rank == found.n_variables else None
    drawn = [bars] if bars is not None and bars.rows else []
    exact = Section("Precision of the estimates", tuple(deviations_parts(found, SHOWN)), "accuracy")
    return Section("Distance from singular", (words, *drawn), "conditioning"), exact


def _readings(system: System) -> Section:
    """What the sensors of a system read, by their type."""
    links = readings_by_link(system)
    rows = [row for row in system.rows if not row.is_dynamic]
    found = []
    for group in dict.fromkeys(row.equation.group for row in rows):
        own = [row.equation for row in rows if row.equation.group == group]
        read = sum(len(equation.components) for equation in own if equation.is_measured)
        known = sum(len(equation.components) for equation in own if not equation.is_measured)
        found.append((group.replace("_", " "), read, known, sum(group in link for link in links)))
    table = Table("Sensors by type", ("type", "numbers read", "known without", "links"), tuple(found))
    return Section("What the sensors read", (table,), "sensors")


def placement_page(found: Placement | Design) -> Page:
    """Make the page of chosen sensors."""
    bought = found.bought
    robot, answer, expected = bought.system.tree, placement.verdict(found), bought.expected
    better, purpose, precision = answer.sentences
    rows = [(name, f"{cost:,g}", "yes" if name in found.chosen else "no") for name, cost in bought.offered.items()]
    offered = Table("All candidates", ("candidate", "cost", "chosen"), tuple(rows), left=(0, 2))
    table = replace(placement.chosen_table(found), title="Chosen sensors")
    all_offered = Fold(f"All {len(rows)} candidates", (offered,))
    chosen = Section("What to buy", (table, placement.method(found), all_offered), "chosen")
    margins, accuracy = _swept(expected, int(expected.ranks.max()))
    second = [accuracy, *([margins] if len(margins.parts) > 1 else [])]
    second += [_folded([*list_swept_poses(robot, expected)]), _readings(bought.system)]
    drawing = tree_drawing(bought.system, chosen=bought.readings)
    return Page(
        f"{answer.heading}: {bought.name} on {robot.name}",
        ("Which of the candidates ", bought.name, " does ", robot.name, " need?"),
        replace(answer, sentences=(f"{better[:1].upper()}{better[1:]}. {purpose}", precision)),
        (Box((chosen, _robot(drawing)), "column"), Box(tuple(second), "column")),
    )


def front_page(front: ParetoFront) -> Page:
    """Make the page of a Pareto front: the drawing, and the sets as a table and in full."""
    answer = placement.front_verdict(front)
    better, *others = answer.sentences
    in_full = [(f"{point.cost:,g}", listed(point.chosen)) for point in front.points]
    offered = Table("All candidates", ("candidate", "cost"), tuple((n, f"{c:,g}") for n, c in front.offered.items()))
    folds = [
        Fold("All sensors of each set", (Table("Sets of sensors", ("cost", "sensors"), tuple(in_full), left=(1,)),)),
        Fold(f"All {len(front.offered)} candidates", (offered,)),
    ]
    method = placement.front_method(front) + ("" if front.is_complete else " Hollow points are not proven.")
    table = replace(placement.front_table(front, spread=True), title="Sets of sensors")
    return Page(
        f"{answer.heading}: {front.name} on {front.robot}",
        ("What does precision cost ", front.robot, " with the candidates ", front.name, "?"),
        replace(answer, sentences=(f"{better[:1].upper()}{better[1:]}.", *others)),
        (
            Section("Cost and deviation", (FrontDrawing.of(front), method), "front", "whole"),
            Section("The sets", (table, *folds), "sets", "whole"),
        ),
    )


def to_html(
    found: object,
    conditioning: Conditioning | None = None,
    redundancy: Redundancy | None = None,
    outputs: Sequence[str] | None = None,
) -> str:
    """Render a page; equal reports give equal pages. For arguments and errors see `save_html`."""
    if isinstance(found, ObservabilityReport):
        return rendered(observability_page(found, conditioning, redundancy, outputs))
    if isinstance(found, Placement | Design):
        return rendered(placement_page(found))
    if isinstance(found, ParetoFront):
        return rendered(front_page(found))
    if isinstance(found, Identification):
        return rendered(identification_page(found))
    expected = "what nd.observability, nd.place, nd.placement.best_sensors, .pareto_front or nd.identify returns"
    example = "nd.tools.save_html(nd.observability(system), 'page.html')"
    raise WrongKindError("nd.tools.save_html", expected, found, example)


def save_html(
    found: ObservabilityReport | Placement | Design | ParetoFront | Identification,
    path: str | Path,
    conditioning: Conditioning | None = None,
    redundancy: Redundancy | None = None,
    outputs: Sequence[str] | None = None,
) -> None:
    """Write a page for the browser that stands alone.

    Args:
        found: what `nd.observability`, `nd.place`, `nd.placement.best_sensors`, `nd.placement.pareto_front` or
            `nd.identify` returns; the latter with `curves=True` has readings over the time drawn as well.
        path: the file.
        conditioning: of a report, margins and expected deviations over many configurations: `nd.conditioning`.
        redundancy: of a report, what sensors may fail: `nd.redundancy`.
        outputs: the outputs of the latter as they were asked for; those that were looked at when None.

    Raises:
        WrongKindError: something else.
        FileFormatError: the file cannot be written.

    Example:
        >>> system = nd.System(nd.autotree(2), "inverse_dynamics")
        >>> nd.tools.save_html(nd.observability(system), "page.html")
    """
    write_bytes(path, to_html(found, conditioning, redundancy, outputs).encode())


PREDICTED = "Readings as dots, with the predictions of the original and of the identified model."

HOW = {"identified": "identified", "open": shown.OPEN, "combined": shown.IN_SUMS, "known": "known"}
"""How a parameter is identified, in words."""


def identification_page(found: Identification) -> Page:
    """Make the page of identified parameters; equal findings give equal pages."""
    robot, curves = found.problem.tree.name, found.curves[-1] if found.curves else None
    words, lead = shown.verdict(found)
    answer = Verdict("sometimes" if found.doubts else "yes", _heading(found), (f"{lead} {words}",))
    worst = shown.worst_table(found)
    notes = [Bullets(found.remarks)] if found.remarks else []
    first = (
        Section("Fit", (shown.fit_table(found.fits),), "fit"),
        Section("What to excite next", (shown.next_words(found), *([worst] if worst else [])), "next"),
        Section("Facts", (Facts(tuple(shown.facts(found))), *notes), "facts"),
    )
    second = (Section(own.title, (own,), f"table{k}") for k, own in enumerate(shown.tables(found), 1))
    doubts = Section("Look at this first", (Bullets(found.doubts),), "doubts", "advice")
    parts: list[PagePart] = [*([doubts] if found.doubts else []), Box(first, "column"), Box(tuple(second), "column")]
    plots = None if curves is None else Plots.of(curves.t, 3 * len(found.fits))
    if curves is not None and plots is not None:
        title = f"Measured and predicted: {curves.log}"
        parts.append(Section(title, (Note(PREDICTED), *side_by_side(_panels(found, curves), SHOWN)), "curves", "plots"))
    every = (_all_combinations(found), _all_parameters(found))
    folds = tuple(Fold(f"{own.title}: {len(own.rows)}", (own,)) for own in every)
    parts.append(Section("Everything", folds, "all", "plots"))
    about = ("The parameters of ", robot, ", identified from its logs")
    unit = "" if curves is None else curves.unit
    return Page(f"{answer.heading}: {robot}", about, answer, tuple(parts), plots, unit)


def _heading(found: Identification) -> str:
    """How large errors are, and how large they were, of the most common unit."""
    unit, fits = max(shown.by_unit(found.fits).items(), key=lambda each: len(each[1]))
    before, after = shown.range_of([fit.before for fit in fits]), shown.range_of([fit.after for fit in fits])
    kept = [fit.held_out for fit in fits if fit.held_out is not None]
    if kept:
        return f"Errors of {shown.range_of(kept)} {unit} on what was held out, {before} {unit} before"
    return f"Errors of {after} {unit} now, {before} {unit} before"


def _all_parameters(found: Identification) -> Table:
    rows = tuple(
        (
            each.name,
            number(each.before),
            shown.with_deviation(each.value, each.deviation) if each.how == "identified" else number(each.value),
            number(each.plain),
            each.unit,
            HOW[each.how],
        )
        for each in found.estimates
    )
    columns = ("parameter", "before", "found", "by least squares alone", "unit", "how")
    notes = (
        f"{shown.IN_SUMS}: identified only together with others, and what is found is the nearest to the model that "
        f"fits; {shown.OPEN}: the log says less of it than was known.",
    )
    return Table("All parameters", columns, rows, notes, left=(0, 4, 5))


def _all_combinations(found: Identification) -> Table:
    rows = tuple(
        (
            shown.described_sum(each, None),
            number(each.before),
            shown.with_deviation(each.value, each.deviation),
            each.unit,
            shown.left_of(each),
        )
        for each in found.combinations
    )
    return Table("All combinations", ("combination", "before", "found", "unit", "left"), rows, left=(0, 3))


def _panels(found: Identification, curves: Curves) -> Sequence[Panel]:
    """A panel of each reading: as read, by the model before, and as found."""
    drawn = zip(found.fits, curves.read, curves.before, curves.found, strict=True)
    return [
        Panel(
            fit.name,
            fit.unit,
            (
                Curve("by the model", before, mark="c1"),
                Curve("found", after, mark="c0"),
                Curve("read", read, mark="c0 measured"),
            ),
        )
        for fit, read, before, after in drawn
    ]

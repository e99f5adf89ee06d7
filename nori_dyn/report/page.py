"""What the pages of reports and of chosen sensors say beside their findings; `templates/` lays them out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.placement.design import Design
from nori_dyn.placement.selection import Placement
from nori_dyn.report.findings import Failures, Findings, failures, findings, special_poses
from nori_dyn.report.shows.placement import Choice, describe_design, describe_placement
from nori_dyn.report.tree_drawing import TreeDrawing, readings_by_link, tree_drawing
from nori_dyn.report.workspace import (
    MARGIN,
    NEARLY_SINGULAR,
    NO_SIGMA,
    DeviationTable,
    describe_margins,
    format_deviation,
    tabulate_deviations,
)
from nori_dyn.system.builder import System
from nori_dyn.tables import Table, listed, number
from nori_dyn.typing import Floats

if TYPE_CHECKING:
    from nori_dyn.observe.redundancy import Redundancy


SHOWN = 8
"""Outputs of a unit that are shown at once, those that are known least."""

MOST_NAMED = 12
"""Most outputs that are named in a sentence."""

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
        is_low = bool(edges[k + 1] <= NEARLY_SINGULAR)
        words = f"{number(edges[k], 1)} to {number(edges[k + 1], 1)}"
        rows.append((words, int(counts[k]), is_low))
    return Table(
        "Poses by their margin",
        ("margin", "poses"),
        tuple((words, n) for words, n, _ in rows),
        (MARGIN,),
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
    lines = [(table.unit, line) for table in tabulate_deviations(found) for line in table.lines[:1]]
    if lines:
        headings = [f"no. {line.pose}, {line.output} {format_deviation(line.worst, unit)}" for unit, line in lines]
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
        rows.append((name, *(_format_signed(scale * q[k], digits) for q in Q), unit))
    return Table(title, ("joint", *headings, "unit"), tuple(rows), left=(0, len(headings) + 1))


def _format_signed(value: float, digits: int) -> str:
    return f"{round(float(value), digits) + 0.0:.{digits}f}".replace("-", "−")


def _coordinate_names(tree: KinematicTree) -> Iterator[tuple[str, str]]:
    """Yield the name of each number of q, and how it enters."""
    for name, joint in zip(tree.joint_names, tree.joints, strict=True):
        letters = {kind: iter("xyzw") for kind in joint.coordinates}
        for kind in joint.coordinates:
            if joint.nq == 1:
                yield name, kind
            elif kind == "quaternion":
                yield f"{name} quaternion {next(letters[kind])}", kind
            else:
                several = joint.coordinates.count(kind) > 1
                yield f"{name} {next(letters[kind]) if several else kind}", kind


@dataclass(frozen=True, slots=True)
class Swept:
    """What was found over many configurations.

    Attributes:
        words: how near to singular they are.
        margins: how many have which margin; None where almost all have the smallest.
        deviations: of the outputs, unit by unit.
        note: what stands instead where there are none.
    """

    words: str
    margins: Table | None
    deviations: tuple[Table, ...]
    note: str


@dataclass(frozen=True, slots=True)
class Page:
    """All that the page says."""

    robot: str
    sensors: str
    findings: Findings
    tree: TreeDrawing
    swept: Swept | None
    poses: tuple[Table, ...]
    special: Table
    failures: Failures | None
    critical: Table | None
    readings: Table


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
    tree = report.system.tree
    poses = [*list_special_poses(tree, report)]
    swept = None
    if conditioning is not None:
        swept = describe_sweep(
            conditioning, conditioning.n_variables if report.is_observable else report.numerical_rank
        )
        poses += list_swept_poses(tree, conditioning)
    said = findings(report, conditioning)
    special = special_poses(said)
    lost = None if redundancy is None else failures(redundancy, outputs)
    rows = () if lost is None else tuple((name, ", ".join(without)) for name, without in lost.critical)
    return Page(
        robot=report.robot,
        sensors=report.sensors,
        findings=said,
        tree=tree_drawing(report.system, report),
        swept=swept,
        poses=tuple(poses),
        special=special if swept is None or swept.margins is None else replace(special, notes=()),
        failures=lost,
        critical=Table("Critical sensors", ("sensor", "lost without it"), rows, left=(0, 1)) if rows else None,
        readings=_readings(report.system),
    )


def describe_sweep(found: Conditioning, rank: int) -> Swept:
    """Margins and deviations over many configurations, where almost all have a rank."""
    margins = margin_bars(found.smallest) if rank == found.n_variables else None
    return Swept(
        words=describe_margins(found.poses, found.ranks, found.smallest, rank, found.n_variables),
        margins=margins if margins is not None and margins.rows else None,
        deviations=tuple(map(_deviations, tabulate_deviations(found))),
        note=NO_SIGMA if found.sigma is None else "",
    )


def _deviations(table: DeviationTable) -> Table:
    rows = [
        (line.output, format_deviation(line.worst), format_deviation(line.median), line.pose) for line in table.lines
    ]
    notes = []
    if table.undetermined:
        notes.append(f"Not determined at most poses: {listed(table.undetermined, MOST_NAMED)}.")
    if table.exact:
        notes.append(f"Known exactly: {listed(table.exact, MOST_NAMED)}.")
    most = max((line.worst for line in table.lines if line.worst < math.inf), default=1.0)
    bars = tuple((min(line.worst / most, 1.0), min(line.median / most, 1.0)) for line in table.lines)
    columns = ("output", "worst", "median", "worst pose")
    return Table(f"Outputs in {table.unit}", columns, tuple(rows), tuple(notes), most=SHOWN, bars=bars)


def _readings(system: System) -> Table:
    """Table of what the sensors of a system read, by their type."""
    links = readings_by_link(system)
    rows = [row for row in system.rows if not row.is_dynamic]
    found = []
    for group in dict.fromkeys(row.equation.group for row in rows):
        own = [row.equation for row in rows if row.equation.group == group]
        read = sum(len(equation.components) for equation in own if equation.is_measured)
        known = sum(len(equation.components) for equation in own if not equation.is_measured)
        found.append((group.replace("_", " "), read, known, sum(group in link for link in links)))
    return Table("Sensors by type", ("type", "numbers read", "known without", "links"), tuple(found))


@dataclass(frozen=True, slots=True)
class PlacementPage:
    """All that the page says.

    Attributes:
        robot, candidates: their names.
        choice: what is said of the sensors.
        tree: the robot with them.
        swept: how exact the outputs are with them.
        poses: the poses at which they are known least.
        readings: what all sensors read, those that are there anyway among them.
        offered: what there was to choose from.
    """

    robot: str
    candidates: str
    choice: Choice
    tree: TreeDrawing
    swept: Swept
    poses: tuple[Table, ...]
    readings: Table
    offered: Table


def placement_page(found: Placement | Design) -> PlacementPage:
    """Make the page of chosen sensors."""
    bought = found.bought
    offered = tuple(
        (name, f"{cost:,g}", "yes" if name in found.chosen else "no") for name, cost in bought.offered.items()
    )
    return PlacementPage(
        robot=bought.system.tree.name,
        candidates=bought.name,
        choice=describe_placement(found) if isinstance(found, Placement) else describe_design(found),
        tree=tree_drawing(bought.system, chosen=bought.readings),
        swept=describe_sweep(bought.expected, int(bought.expected.ranks.max())),
        poses=tuple(list_swept_poses(bought.system.tree, bought.expected)),
        readings=_readings(bought.system),
        offered=Table("All candidates", ("candidate", "cost", "chosen"), offered, left=(0, 2)),
    )

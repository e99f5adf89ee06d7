"""What the page of an observability report says beside its findings; `templates/observability.html` lays it out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.report.failures import Failures, failures
from nori_dyn.report.findings import Findings, findings
from nori_dyn.report.link_marks import readings_by_link
from nori_dyn.report.margin_bars import Bar, margin_bars
from nori_dyn.report.pose_tables import PoseTable, list_special_poses, list_swept_poses
from nori_dyn.report.tree_drawing import TreeDrawing, tree_drawing
from nori_dyn.report.workspace import NO_SIGMA, DeviationTable, describe_margins, format_deviation, tabulate_deviations
from nori_dyn.system.builder import System
from nori_dyn.tables import listed

if TYPE_CHECKING:
    from nori_dyn.observe.redundancy import Redundancy

SHOWN = 8
"""Outputs of a unit that are shown at once, those that are known least."""

MOST_NAMED = 12
"""Most outputs that are named in a sentence."""


@dataclass(frozen=True, slots=True)
class DeviationRow:
    """The expected standard deviation of an output, as text.

    Attributes:
        output: its name.
        worst, median: over the configurations.
        pose: number of the worst.
        shares: worst and median, relative to the largest that is finite, from 0 to 1.
    """

    output: str
    worst: str
    median: str
    pose: str
    shares: tuple[float, float]


@dataclass(frozen=True, slots=True)
class DeviationSection:
    """The deviations of the outputs of one unit.

    Attributes:
        unit: their unit.
        first, others: the outputs, those that are known least first.
        notes: sentences about further ones.
    """

    unit: str
    first: tuple[DeviationRow, ...]
    others: tuple[DeviationRow, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Swept:
    """What was found over many configurations.

    Attributes:
        words: how near to singular they are.
        bars: how many have which margin.
        deviations: of the outputs, unit by unit.
        note: what stands instead where there are none.
    """

    words: str
    bars: tuple[Bar, ...]
    deviations: tuple[DeviationSection, ...]
    note: str


@dataclass(frozen=True, slots=True)
class SensorLine:
    """Sensors of one type: how many numbers they read, how many are known without, at how many links."""

    type: str
    read: int
    known: int
    links: int


@dataclass(frozen=True, slots=True)
class Page:
    """All that the page says."""

    robot: str
    sensors: str
    findings: Findings
    tree: TreeDrawing
    swept: Swept | None
    pose_tables: tuple[PoseTable, ...]
    failures: Failures | None
    sensor_lines: tuple[SensorLine, ...]


def observability_page(
    report: ObservabilityReport,
    conditioning: Conditioning | None = None,
    redundancy: Redundancy | None = None,
    outputs: Sequence[str] | None = None,
) -> Page:
    """Return what the page of a report says; equal reports give equal pages.

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
    return Page(
        robot=report.robot,
        sensors=report.sensors,
        findings=findings(report, conditioning),
        tree=tree_drawing(report.system, report),
        swept=swept,
        pose_tables=tuple(poses),
        failures=None if redundancy is None else failures(redundancy, outputs),
        sensor_lines=tuple(list_sensor_lines(report.system)),
    )


def describe_sweep(found: Conditioning, rank: int) -> Swept:
    """Return what was found over many configurations, where almost all have a rank."""
    return Swept(
        words=describe_margins(found.poses, found.ranks, found.smallest, rank, found.n_variables),
        bars=margin_bars(found.smallest) if rank == found.n_variables else (),
        deviations=tuple(map(_deviations, tabulate_deviations(found))),
        note=NO_SIGMA if found.sigma is None else "",
    )


def _deviations(table: DeviationTable) -> DeviationSection:
    most = max((line.worst for line in table.lines if line.worst < float("inf")), default=1.0)
    rows = tuple(
        DeviationRow(
            line.output,
            format_deviation(line.worst),
            format_deviation(line.median),
            str(line.pose),
            (min(line.worst / most, 1.0), min(line.median / most, 1.0)),
        )
        for line in table.lines
    )
    notes = []
    if table.undetermined:
        notes.append(f"Not determined at most poses: {listed(table.undetermined, MOST_NAMED)}.")
    if table.exact:
        notes.append(f"Known exactly: {listed(table.exact, MOST_NAMED)}.")
    return DeviationSection(table.unit, rows[:SHOWN], rows[SHOWN:], tuple(notes))


def list_sensor_lines(system: System) -> Iterator[SensorLine]:
    """Yield what the sensors of a system read, by their type."""
    links = readings_by_link(system)
    rows = [row for row in system.rows if not row.is_dynamic]
    for group in dict.fromkeys(row.equation.group for row in rows):
        own = [row.equation for row in rows if row.equation.group == group]
        yield SensorLine(
            group.replace("_", " "),
            sum(len(equation.components) for equation in own if equation.is_measured),
            sum(len(equation.components) for equation in own if not equation.is_measured),
            sum(group in link for link in links),
        )

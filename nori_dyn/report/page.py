"""The observability report as one HTML page that stands alone: no script, no font, nothing fetched from elsewhere.

What the page says is worked out here once; `templates/observability.html` only lays it out.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

import nori_dyn
from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.findings import Findings, few, findings
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.report.margin_histogram import Histogram, histogram, margin
from nori_dyn.report.tree_drawing import TreeDrawing, components_among, readings_by_link, tree_drawing
from nori_dyn.system.builder import System
from nori_dyn.tables import number
from nori_dyn.typing import Floats

if TYPE_CHECKING:
    from nori_dyn.observe.redundancy import Redundancy


POSES_SHOWN = 5
"""Most configurations whose numbers are listed."""

GENERATOR = f"nori_dyn {nori_dyn.__version__}"


@dataclass(frozen=True, slots=True)
class PoseTable:
    """Configurations side by side.

    Attributes:
        title: what they are.
        headings: what each is called.
        rows: for each number of q its name, its unit, and its value at each of them.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]


@dataclass(frozen=True, slots=True)
class Deviation:
    """The expected standard deviation of an output.

    Attributes:
        name: the output.
        median, worst: over the configurations, as text.
        share: the median, relative to the largest of its unit; None where the output is not determined.
    """

    name: str
    median: str
    worst: str
    share: float | None


@dataclass(frozen=True, slots=True)
class DeviationTable:
    """The deviations of the outputs of one unit, with a summary.

    Attributes:
        unit: their unit.
        typical: the median of the medians.
        least: the output that is known least, and its median.
        undetermined: how many are not determined at most configurations.
        rows: the outputs.
    """

    unit: str
    typical: str
    least: str
    undetermined: int
    rows: tuple[Deviation, ...]


@dataclass(frozen=True, slots=True)
class SensorLine:
    """Sensors of one type: how many numbers they read, how many are known without, at how many links."""

    type: str
    read: int
    known: int
    links: int


@dataclass(frozen=True, slots=True)
class Failures:
    """What the failure of sensors takes away.

    Attributes:
        words: the summary.
        critical: sensors whose failure alone takes something away, and what.
        sets: further sets whose failure together does.
    """

    words: str
    critical: tuple[tuple[str, str], ...]
    sets: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Page:
    """All that the page says."""

    robot: str
    sensors: str
    findings: Findings
    tree: TreeDrawing
    histogram: Histogram | None
    deviations: tuple[DeviationTable, ...]
    pose_tables: tuple[PoseTable, ...]
    failures: Failures | None
    sensor_lines: tuple[SensorLine, ...]
    facts: tuple[tuple[str, str], ...]
    generator: str


def observability_page(
    system: System,
    report: ObservabilityReport,
    conditioning: Conditioning | None = None,
    redundancy: Redundancy | None = None,
) -> str:
    """Return a report as an HTML page; equal reports give equal pages.

    Args:
        system: what the report is of.
        report: as `nori_dyn.observe` returns it.
        conditioning: margins and expected deviations over many configurations, where they were looked at.
        redundancy: what sensors may fail, where it was looked at.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined

    environment = Environment(
        loader=PackageLoader("nori_dyn.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = Page(
        robot=report.robot,
        sensors=report.sensors,
        findings=findings(report, conditioning, margin),
        tree=tree_drawing(system, report),
        histogram=None if conditioning is None else histogram(conditioning.smallest, len(conditioning.lacking)),
        deviations=() if conditioning is None else tuple(_deviations(conditioning)),
        pose_tables=tuple(_pose_tables(system.tree, report, conditioning)),
        failures=None if redundancy is None else _failures(system, redundancy),
        sensor_lines=tuple(_sensor_lines(system)),
        facts=tuple(_facts(system, report)),
        generator=GENERATOR,
    )
    text: str = environment.get_template("observability.html").render(page=page)
    return text


def _pose_tables(
    tree: KinematicTree, report: ObservabilityReport, conditioning: Conditioning | None
) -> Iterator[PoseTable]:
    if report.loses_rank:
        worst = [c.configurations[int(c.ranks.argmin())] for c in report.loses_rank]
        headings = [c.meaning for c in report.loses_rank]
        yield _pose_table(tree, "Where something is lost: one pose of each kind", headings, worst)
    if len(report.rank_at):
        order = np.lexsort((report.smallest_at, report.rank_at))[:POSES_SHOWN]
        headings = [_named(k, report.rank_at[k], report.smallest_at[k], report.n_variables) for k in order]
        yield _pose_table(tree, "The worst of the configurations given", headings, report.configurations[order])
    if conditioning is not None and len(conditioning.worst):
        order = conditioning.worst[:POSES_SHOWN]
        headings = [_named(k, conditioning.ranks[k], conditioning.smallest[k], conditioning.n_variables) for k in order]
        title = f"The worst of the {len(conditioning.ranks):,} configurations looked at"
        yield _pose_table(tree, title, headings, conditioning.configurations[order])


def _named(k: int, rank: int, smallest: float, n: int) -> str:
    return f"no. {k}, {n - rank} short" if rank < n else f"no. {k}, margin {margin(smallest)}"


def _pose_table(tree: KinematicTree, title: str, headings: Sequence[str], Q: Sequence[Floats] | Floats) -> PoseTable:
    rows = []
    names = _coordinate_names(tree)
    for k, (name, kind) in enumerate(names):
        scale = np.degrees(1.0) if kind == "angle" else 1.0
        digits = 1 if kind == "angle" else 3
        unit = {"angle": "°", "length": "m", "quaternion": ""}[kind]
        rows.append((name, unit, tuple(_signed(scale * q[k], digits) for q in Q)))
    return PoseTable(title, tuple(headings), tuple(rows))


def _signed(value: float, digits: int) -> str:
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


def _deviations(conditioning: Conditioning) -> Iterator[DeviationTable]:
    """Yield the expected deviations, unit by unit."""
    medians, worsts = conditioning.median_sigma, conditioning.worst_sigma
    if medians is None or worsts is None:
        return
    for unit in dict.fromkeys(conditioning.units):
        own = [k for k, its_unit in enumerate(conditioning.units) if its_unit == unit]
        finite = [k for k in own if np.isfinite(medians[k])]
        most = max((medians[k] for k in finite), default=0.0) or 1.0
        least = max(finite, key=medians.__getitem__, default=None)
        yield DeviationTable(
            unit=unit,
            typical=_figure(float(np.median(medians[finite]))) if finite else "not determined",
            least="" if least is None else f"{_figure(medians[least])} ({conditioning.outputs[least]})",
            undetermined=len(own) - len(finite),
            rows=tuple(
                Deviation(
                    conditioning.outputs[k],
                    _figure(medians[k]),
                    _figure(worsts[k]),
                    float(medians[k] / most) if np.isfinite(medians[k]) else None,
                )
                for k in own
            ),
        )


def _figure(value: float) -> str:
    return number(value) if np.isfinite(value) else "not determined"


def _failures(system: System, redundancy: Redundancy) -> Failures:
    n, critical = len(redundancy.sensors), redundancy.critical
    several = [failing for failing in redundancy.failing_sets if len(failing) > 1]
    if not redundancy.outputs:
        words = "None of the outputs looked at is determined, so none can be lost."
    elif not critical:
        words = f"Any one of the {n:,} sensors may fail: what they tell together is still determined."
    else:
        some = "1 is critical: if it fails" if len(critical) == 1 else f"{len(critical):,} are critical: if one fails"
        words = f"Of {n:,} sensors {some}, something is no longer determined."
    if redundancy.outputs and redundancy.size > 1:
        sets = "pairs" if redundancy.size == 2 else f"smallest sets of 2 to {redundancy.size}"
        words += f" Of the {sets} of others, {few(len(several))} are critical together."
    return Failures(
        words,
        tuple((name, _by_variable(system, redundancy.lost[name])) for name in critical),
        tuple(" and ".join(failing) for failing in several),
    )


def _by_variable(system: System, names: Sequence[str]) -> str:
    """Return numbers of d by their variables, with how many where there are several."""
    among = set(names)
    parts = {variable.name: len(components_among(variable, among)) for variable in system.variables}
    return ", ".join(f"{name} ({n})" if n > 1 else name for name, n in parts.items() if n)


def _sensor_lines(system: System) -> Iterator[SensorLine]:
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


def _facts(system: System, report: ObservabilityReport) -> Iterator[tuple[str, str]]:
    tree = system.tree
    yield "Robot", f"{report.robot}: {tree.n_links} links, {tree.nv} freedoms"
    yield "Sensors", f"{report.sensors}: {system.ny:,} numbers read"
    yield "Equations", f"{report.n_rows:,}"
    yield "Unknowns", f"{report.n_variables:,}"
    yield "Rank", f"{report.generic_rank:,}" + (f", {report.deficiency:,} short" if report.deficiency else ", full")
    yield "Rank that the pattern would allow", f"{report.structural_rank:,}"
    yield "Probability of error", f"{report.error:.0e} at most, of the verdict; special poses and margins are numerical"
    yield "Made with", GENERATOR

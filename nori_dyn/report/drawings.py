"""The drawings of a page: the tree of a robot with its sensors, and a Pareto front, as places and words.

The tree has one row a link. A link that is the only child of another stands below it; of several children the one that
carries most does, and the others stand one step to the right. So a drawing is as wide as the robot branches, and as
legible for a humanoid of a hundred links as for an arm. All lengths are in pixels.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np

from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import WORLD, KinematicTree
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.placement.design import ParetoFront, ParetoPoint
from nori_dyn.report.time_plots import SIZE, Scale, ticks
from nori_dyn.system.builder import System
from nori_dyn.system.variables import Kind, Variable, kind_in_words
from nori_dyn.tables import characters, number

Seen: TypeAlias = Literal["always", "sometimes", "never"]
"""Whether a number of d is determined: at every pose looked at, at all but special ones, or at none."""

NEVER: Seen = "never"
SOMETIMES: Seen = "sometimes"

Missing: TypeAlias = tuple[Seen, tuple[str, ...]]
"""Whether some components of a variable are determined, and which."""


@dataclass(slots=True)
class LinkReadings:
    """What sensors of one type read at a link: how many numbers, of known ones, and by which names."""

    read: int = 0
    known: int = 0
    names: tuple[str, ...] = ()


def readings_by_link(system: System) -> list[dict[str, LinkReadings]]:
    """Readings at each link, by the type of sensor."""
    at = positions(system.tree, system.tree.neutral_configuration())
    found: list[dict[str, LinkReadings]] = [{} for _ in range(system.tree.n_links)]
    for row in system.rows:
        if not row.is_sensor:
            continue
        n = len(row.equation.components)
        for body in sorted({key.body for key in row.equation.blocks(at)}):
            readings = found[body].setdefault(row.equation.group, LinkReadings())
            readings.read += n if row.equation.is_measured else 0
            readings.known += 0 if row.equation.is_measured else n
            readings.names += (row.name,)
    return found


def undetermined_by_link(system: System, report: ObservabilityReport) -> list[dict[Kind, Missing]]:
    """Undetermined components at each link by kind: at no pose, or else at special ones, and the components."""
    never = set(report.unobservable)
    vectors = [vector for c in report.loses_rank for part in c.unseen for vector in part.vectors]
    sometimes = {name for vector in vectors for name in vector.coefficients}
    found: list[dict[Kind, Missing]] = [{} for _ in range(system.tree.n_links)]
    for variable in system.variables:
        for names, seen in ((never, NEVER), (sometimes, SOMETIMES)):
            if parts := _components_among(variable, names):
                for link in _links_of(system, variable):
                    worst, others = found[link].get(variable.kind, (seen, ()))
                    found[link][variable.kind] = NEVER if NEVER in (worst, seen) else seen, (*others, *parts)
                break
    return found


def _links_of(system: System, variable: Variable) -> Iterable[int]:
    """The links at which a variable is marked: its own; of a component those on which it acts."""
    if not variable.key.component:
        return (variable.body,)
    acting = (part for part in system.parts if any(unknown.key == variable.key for unknown in part.unknowns))
    return dict.fromkeys(key.body for part in acting for key in part.acts_on) or (variable.body,)


def _components_among(variable: Variable, names: set[str]) -> tuple[str, ...]:
    """The components of a variable whose numbers are among some names; of what components add, in full."""
    called = variable.component_names if variable.key.component else variable.components
    pairs = zip(called, variable.component_names, strict=True)
    return tuple(component for component, name in pairs if name in names)


Point: TypeAlias = tuple[float, float]

ROW, STEP, COLUMN, MARGIN = 24, 18, 30, 12
CHARACTER, HEADING = 7.3, 6.6
SLANT = math.radians(50)
JOINTS = "moved by joint"
LONGEST = 24
"""Most characters of a name that are drawn."""


@dataclass(frozen=True, slots=True)
class Cell:
    """A mark in a column of the tree: what is read at a link, or not determined there.

    Attributes:
        x: its centre.
        mark: what it stands for.
        number: how many numbers.
        title: in words.
    """

    x: float
    mark: Literal["chosen", "reading", "known", "sometimes", "never"]
    number: int
    title: str


@dataclass(frozen=True, slots=True)
class LinkRow:
    """A link of the drawing, and the joint that carries it.

    Attributes:
        x, y: centre of its node.
        name, joint: their names, as long as there is room.
        title, joint_title: in full.
        seen: the worst of its numbers.
        stem, edge: the path from its parent, which others may share, and its own end.
        transmits: whether the wrench through the joint is determined.
        cells: its marks.
        parent: name of its parent.
        sensors, undetermined: its marks in words.
    """

    x: float
    y: float
    name: str
    joint: str
    title: str
    joint_title: str
    seen: Seen
    stem: str
    edge: str
    transmits: Seen
    cells: tuple[Cell, ...]
    parent: str
    sensors: str
    undetermined: str


@dataclass(frozen=True, slots=True)
class TreeDrawing:
    """A tree with its sensors and with what they do not determine.

    Attributes:
        width, height: of the drawing.
        top: where the rows begin.
        world: centre of the node of the world.
        rows: the links.
        ties: the loops and tendons between them: what each is, and the path between their nodes.
        sensors, undetermined: headings of their columns, slanted from their feet: words and places.
        joints: where the names of joints begin.
        joints_heading: what stands above them.
        marks: the marks that occur, for the legend.
        summary: in words.
    """

    width: int
    height: int
    top: float
    world: tuple[float, float]
    rows: tuple[LinkRow, ...]
    ties: tuple[tuple[str, str], ...]
    sensors: tuple[tuple[str, float], ...]
    undetermined: tuple[tuple[str, float], ...]
    joints: float
    joints_heading: str
    marks: frozenset[str]
    summary: str


@dataclass(frozen=True, slots=True)
class _Columns:
    """Where the columns right of the names stand, and how much room their headings take.

    Attributes:
        sensors: centre of the column of each type of sensor.
        undetermined: centre of the column of each kind of variable.
        joints: where the names of joints begin.
        rise, reach: how high the headings rise, and how far to the right they reach.
    """

    sensors: Mapping[str, float]
    undetermined: Mapping[Kind, float]
    joints: float
    rise: float
    reach: float

    @staticmethod
    def after(left: float, groups: Sequence[str], kinds: Sequence[Kind]) -> _Columns:
        """The columns right of a place."""
        middle = left + COLUMN * (len(groups) + 0.4)
        sensors = {group: left + COLUMN * (k + 0.8) for k, group in enumerate(groups)}
        undetermined = {kind: middle + COLUMN * (k + 0.8) for k, kind in enumerate(kinds)}
        joints = middle + COLUMN * (len(kinds) + 0.6)
        lengths = {x: HEADING * characters(_words(group)) for group, x in sensors.items()}
        lengths |= {x: HEADING * characters(kind_in_words(kind)) for kind, x in undetermined.items()}
        rise = max(lengths.values(), default=0.0) * math.sin(SLANT)
        reach = max((x + length * math.cos(SLANT) for x, length in lengths.items()), default=0.0)
        return _Columns(sensors, undetermined, joints, rise, max(reach, joints + HEADING * len(JOINTS)))


def tree_drawing(
    system: System, report: ObservabilityReport | None = None, chosen: frozenset[str] = frozenset()
) -> TreeDrawing:
    """The drawing of a system's tree with its sensors.

    Args:
        system: the robot with its sensors.
        report: what is not determined; that is left out when None.
        chosen: names of readings that are marked as chosen.
    """
    tree = system.tree
    places = {i: (MARGIN + STEP * step, k) for k, (i, step) in enumerate(_in_drawing_order(tree))}
    readings: list[dict[str, LinkReadings]] = readings_by_link(system)
    missing: list[dict[Kind, Missing]] = [{} for _ in range(tree.n_links)]
    if report is not None:
        missing = undetermined_by_link(system, report)
    columns = _Columns.after(
        max(places[i][0] + 14 + CHARACTER * characters(elided(name)) for i, name in enumerate(tree.names)),
        [*dict.fromkeys(group for link in readings for group in link)],
        [kind for kind in system.kinds if any(kind in link for link in missing)],
    )
    top = math.ceil(columns.rise) + 2 * MARGIN
    points = {i: (x, top + ROW * (k + 0.5)) for i, (x, k) in places.items()}
    rows = []
    for i in places:
        if i == WORLD:
            continue
        x, y = points[tree.parents[i]]
        sensors = tuple(_sensor_cells(readings[i], columns.sensors, chosen))
        undetermined = tuple(_missing_cells(missing[i], columns.undetermined))
        rows.append(
            LinkRow(
                *points[i],
                name=elided(tree.names[i]),
                joint=elided(tree.joint_names[i]),
                title=tree.names[i],
                joint_title=f"{tree.joint_names[i]}, {tree.joints[i].kind}",
                seen=_worst(missing[i].values()),
                stem=f"M{x:g} {y:g}V{points[i][1] - ROW / 2:g}",
                edge=_edge(points[tree.parents[i]], points[i]),
                transmits=_worst(parts for kind, parts in missing[i].items() if kind == "f"),
                cells=sensors + undetermined,
                parent="the world" if tree.is_root(i) else tree.names[tree.parents[i]],
                sensors="; ".join(cell.title for cell in sensors),
                undetermined="; ".join(cell.title for cell in undetermined),
            )
        )
    joints_end = columns.joints + HEADING * max(characters(row.joint) for row in rows)
    return TreeDrawing(
        width=math.ceil(max(joints_end, columns.reach) + MARGIN),
        height=math.ceil(top + ROW * len(places) + MARGIN / 2),
        top=top,
        world=points[WORLD],
        rows=tuple(rows),
        ties=tuple(_ties(system, points)),
        sensors=tuple((_words(group), x) for group, x in columns.sensors.items()),
        undetermined=tuple((kind_in_words(kind), x) for kind, x in columns.undetermined.items()),
        joints=columns.joints,
        joints_heading=JOINTS,
        marks=frozenset(cell.mark for row in rows for cell in row.cells),
        summary=_summary(tree, rows, report is not None),
    )


def _summary(tree: KinematicTree, rows: Sequence[LinkRow], has_report: bool) -> str:
    robot = f"The kinematic tree of {tree.name} with the sensors at each link."
    if not has_report:
        return f"{robot} The table below says the same."
    never, sometimes = (sum(row.seen == seen for row in rows) for seen in ("never", "sometimes"))
    return (
        f"{robot} Of {tree.n_links} links, something is not determined at {never}, and at special poses only at "
        f"{sometimes} more. The table below says the same."
    )


def _words(group: str) -> str:
    return group.replace("_", " ")


def elided(name: str) -> str:
    """A name, without its middle where it is long."""
    return name if len(name) <= LONGEST else f"{name[: LONGEST // 2 - 1]}…{name[-(LONGEST // 2) :]}"


def _in_drawing_order(tree: KinematicTree) -> Iterator[tuple[int, int]]:
    """Yield each body, the world first, and the column in which it stands."""
    sizes = [1] * tree.n_links
    children: dict[int, list[int]] = defaultdict(list)
    for i in reversed(range(tree.n_links)):
        children[tree.parents[i]].insert(0, i)
        if not tree.is_root(i):
            sizes[tree.parents[i]] += sizes[i]
    waiting = [(WORLD, 0)]
    while waiting:
        i, column = waiting.pop()
        yield i, column
        lightest_first = sorted(children[i], key=sizes.__getitem__)
        if lightest_first:
            *light, heaviest = lightest_first
            waiting.append((heaviest, column))
            waiting.extend((j, column + 1) for j in reversed(light))


def _ties(system: System, points: Mapping[int, Point]) -> Iterator[tuple[str, str]]:
    """Yield what acts between links, drawn from each link on which it acts to the next."""
    for part in system.parts:
        links = [key.body for key in part.acts_on if key.gives == "f"]
        ends = links if len(links) > 1 else [WORLD, *links]
        for first, second in pairwise(ends):
            names = ("the world" if i == WORLD else system.tree.names[i] for i in (first, second))
            yield f"{part.name}, between {' and '.join(names)}", _tie(points[first], points[second])


def _tie(start: Point, end: Point) -> str:
    """A path between two nodes that bends to the left of both."""
    left, middle = min(start[0], end[0]) - MARGIN, (start[1] + end[1]) / 2
    return f"M{start[0]:g} {start[1]:g}Q{left:g} {middle:g} {end[0]:g} {end[1]:g}"


def _edge(parent: Point, child: Point) -> str:
    """The end of the way from a parent, which is the joint's own."""
    start, end = f"M{parent[0]:g} {child[1] - ROW / 2:g}", f"V{child[1]:g}"
    return start + (end if parent[0] == child[0] else f"v4q0 8 8 8H{child[0]:g}")


def _sensor_cells(
    readings: Mapping[str, LinkReadings], x: Mapping[str, float], chosen: frozenset[str]
) -> Iterator[Cell]:
    for group, found in readings.items():
        mark: Literal["chosen", "reading", "known"] = "reading" if found.read else "known"
        if chosen.intersection(found.names):
            mark = "chosen"
        counts = ((found.read, "read"), (found.known, "known"))
        numbers = ", ".join(f"{n} {what}" for n, what in counts if n)
        title = f"{_words(group)}: {numbers} ({', '.join(dict.fromkeys(found.names))})"
        yield Cell(x[group], mark, found.read or found.known, f"chosen: {title}" if mark == "chosen" else title)


def _missing_cells(missing: Mapping[Kind, Missing], x: Mapping[Kind, float]) -> Iterator[Cell]:
    for kind, (seen, parts) in missing.items():
        mark: Literal["sometimes", "never"] = "never" if seen == "never" else "sometimes"
        where = "" if seen == "never" else ", at special poses"
        components = f" ({', '.join(parts)})" if all(parts) else ""
        yield Cell(x[kind], mark, len(parts), f"{kind_in_words(kind)}{components} not determined{where}")


def _worst(found: Iterable[Missing]) -> Seen:
    states = {seen for seen, _ in found}
    return "never" if "never" in states else "sometimes" if "sometimes" in states else "always"


WIDTH, HEIGHT = 560, 300
"""Size of what the axes of a front enclose, in units of the drawing."""


@dataclass(frozen=True, slots=True)
class FrontDrawing:
    """A Pareto front as it is drawn.

    Attributes:
        path: of the steps.
        points: the sets: where each is, what it is, and whether it is proven, "chosen" or "".
        xs, ys: labels of the axes, and where they are.
        unit: of deviations.
        summary: what it shows, in words.
    """

    path: str
    points: tuple[tuple[float, float, str, str], ...]
    xs: tuple[tuple[str, float], ...]
    ys: tuple[tuple[str, float], ...]
    unit: str
    summary: str

    width: int = WIDTH
    height: int = HEIGHT

    @staticmethod
    def of(front: ParetoFront) -> FrontDrawing:
        """The drawing of a front."""
        costs, deviations = np.array([(point.cost, point.deviation) for point in front.points]).T
        across, up = Scale.around(costs.min(), costs.max()), Scale.around(0.0, deviations.max())
        x = WIDTH * (costs - across.low) / (across.high - across.low)
        y = HEIGHT * up.at(deviations) / SIZE
        steps = "".join(f"H{a:.1f}V{b:.1f}" for a, b in zip(x[1:], y[1:], strict=True))
        labels = ticks(across.low, across.high, 5)
        points = zip(x.tolist(), y.tolist(), front.points, strict=True)
        return FrontDrawing(
            path=f"M{x[0]:.1f} {y[0]:.1f}{steps}",
            points=tuple((a, b, _title(p, front.unit), "chosen" if p.is_optimal else "") for a, b, p in points),
            xs=tuple((text, WIDTH * (at - across.low) / (across.high - across.low)) for text, at in labels),
            ys=tuple((text, HEIGHT * share) for text, share in up.ticks()),
            unit=front.unit,
            summary=f"{len(costs)} sets: {'; '.join(_title(point, front.unit) for point in front.points)}",
        )


def _title(point: ParetoPoint, unit: str) -> str:
    n = len(point.chosen)
    return f"{n} {'sensor' if n == 1 else 'sensors'} for {point.cost:,g}: {number(point.deviation)} {unit}".rstrip()

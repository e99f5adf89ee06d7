"""A log as a Rerun recording: the robot as it moves, contact wrenches, estimates and readings, residuals, suspects.

Entities: `robot/LINK` has where a link is in the world, `robot/LINK/fx/FRAME/force` and `moment` the wrench on a frame
of it; `estimates/PANEL/CURVE`, `residuals/PANEL/CURVE` and so on are the curves of the panels that a page has;
`said/...` are states: what was dropped, which sensors are suspects.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from nori_dyn.algebra.spatial import Transform
from nori_dyn.descriptions.urdf_shapes import Shape, urdf_shapes
from nori_dyn.io.files import write_bytes
from nori_dyn.model.joints import FORCE
from nori_dyn.model.kinematics import positions
from nori_dyn.report.log_page import PanelGroup, facts, log_panels, verdict
from nori_dyn.report.recorded import RecordedLog
from nori_dyn.report.skeleton import bone_ends, link_poses
from nori_dyn.report.time_plots import Bins, kept
from nori_dyn.tables import spaced
from nori_dyn.typing import Floats, Indices

ESTIMATED, MEASURED = (60, 155, 255), (255, 150, 60)
"""The colours of what is estimated, and of what was read."""

ROBOT = "robot"
"""The entity below which the links are."""

COLLADA = "model/vnd.collada+xml"

GREY = (150, 160, 170)

GLASS = 60
"""How opaque meshes are, of 255: arrows and suspects are within them."""


@dataclass(frozen=True, slots=True)
class Recording:
    """What is being written.

    Attributes:
        rr: the package rerun, which is optional.
        stream: the recording.
        log: what it is of.
        names: estimates to write as series; all when empty.
    """

    rr: Any
    stream: Any
    log: RecordedLog
    names: Sequence[str]

    def when(self, samples: Any) -> Any:
        """The times of some samples."""
        time = self.log.time[samples]
        if self.log.start is None:
            return self.rr.TimeColumn("sample", sequence=time.astype(np.int64))
        return self.rr.TimeColumn("time", duration=time)

    def at(self, sample: int) -> None:
        """Set the time of what is written next."""
        time = float(self.log.time[min(sample, len(self.log) - 1)])
        if self.log.start is None:
            self.stream.set_time("sample", sequence=int(time))
        else:
            self.stream.set_time("time", duration=time)

    def entity(self, *parts: str) -> str:
        """An entity whose parts may have any characters."""
        return str(self.rr.new_entity_path([spaced(part) for part in parts]))

    def link(self, link: str, *more: str) -> str:
        """The entity of a link, or of something on it."""
        return self.entity(ROBOT, link, *more)


def _placed(into: Recording, X: Transform, scale: Sequence[float] = (1.0, 1.0, 1.0)) -> Any:
    """Where a frame is in another, of the transform to it from there; and how far what is in it is stretched."""
    turn = np.asarray(X.E, dtype=float).T
    return into.rr.Transform3D(translation=np.asarray(X.r, dtype=float), mat3x3=turn @ np.diag(scale))


def write_poses(into: Recording, poses: Indices) -> None:
    """Write where the links are in the world at some samples."""
    tree = into.log.system.tree
    E, r = link_poses(tree, into.log.q[poses])
    for i, name in enumerate(tree.names):
        quaternions = Rotation.from_matrix(np.swapaxes(E[i], 1, 2)).as_quat()
        columns = into.rr.Transform3D.columns(translation=r[i], quaternion=quaternions)
        into.stream.send_columns(into.link(name), indexes=[into.when(poses)], columns=columns)


def write_shapes(into: Recording, shapes: Sequence[Shape], extent: float) -> int:
    """Write what the links look like, and return how many meshes were not found.

    Shapes of links that are lumped into others are on those. A link without any, or whose meshes are not all found, is
    drawn as capsules from its joint to those of its children.
    """
    tree = into.log.system.tree
    bare = set(tree.names)
    lost = 0
    by_body: dict[str, list[tuple[Transform, Shape]]] = {}
    for shape in shapes:
        if shape.link not in tree.names and shape.link not in tree.frames:
            continue
        frame = tree.frame(shape.link)
        body = "world" if frame.on_world else tree.names[frame.link]
        if shape.kind == "mesh" and shape.mesh is None:
            lost += 1
        else:
            by_body.setdefault(body, []).append((shape.X @ frame.X, shape))
    for body, own in by_body.items():
        bare.discard(body)
        for k, (X, shape) in enumerate(own):
            path = into.link(body, "shape", str(k))
            place = _placed(into, X, shape.size) if shape.kind == "mesh" else _placed(into, X)
            into.stream.log(path, place, *_seen(into.rr, shape), static=True)
    for name in bare:
        _write_bones(into, tree.link(name), extent)
    return lost


def _seen(rr: Any, shape: Shape) -> list[Any]:
    colour = None if shape.colour is None else [round(255 * min(max(x, 0.0), 1.0)) for x in shape.colour]
    if shape.mesh is not None:
        media = COLLADA if shape.mesh.suffix.lower() == ".dae" else None
        seen = [*(colour or [255, 255, 255])[:3], GLASS]
        return [rr.Asset3D(path=shape.mesh, media_type=media, albedo_factor=seen)]
    solid = {"colors": [colour or GREY], "fill_mode": "solid"}
    if shape.kind == "box":
        return [rr.Boxes3D(sizes=[shape.size], **solid)]
    if shape.kind == "sphere":
        return [rr.Ellipsoids3D(radii=[shape.size[0]], **solid)]
    return [rr.Cylinders3D(radii=[shape.size[0]], lengths=[shape.size[1]], **solid)]


def _write_bones(into: Recording, i: int, extent: float) -> None:
    """Write a link as capsules, see `bone_ends`; one that is too short for any as a ball."""
    rr, tree, radius = into.rr, into.log.system.tree, 0.015 * extent
    ends = [end for end in bone_ends(tree, i) if np.linalg.norm(end) > radius]
    path = into.link(tree.names[i], "shape")
    if not ends:
        into.stream.log(path, rr.Points3D([[0.0, 0.0, 0.0]], radii=[1.5 * radius], colors=[GREY]), static=True)
        return
    turns = [Rotation.align_vectors([end], [[0.0, 0.0, 1.0]])[0].as_quat() for end in ends]
    lengths = [float(np.linalg.norm(end)) for end in ends]
    n = len(ends)
    capsules = rr.Capsules3D(
        lengths=lengths,
        radii=[radius] * n,
        translations=np.zeros((n, 3)),
        quaternions=np.array(turns),
        colors=[GREY] * n,
        fill_mode="solid",
    )
    into.stream.log(path, capsules, static=True)


TURN = (210, 110, 255)
"""The colour of moments."""


def _components(numbers: Any, owner: str) -> list[Floats]:
    return [numbers[f"fx:{owner}.{component}"] for component in FORCE]


def write_wrenches(into: Recording, poses: Indices, longest: float) -> None:
    """Write the wrenches on links and frames as arrows: forces, and moments in another colour, at one scale each."""
    log, tree = into.log, into.log.system.tree
    drawn: list[tuple[str, str, str, Floats]] = []
    for owner in log.wrench_frames:
        frame = tree.frame(owner)
        link = tree.names[frame.link]
        if owner != link:
            into.stream.log(into.link(link, "fx", owner), _placed(into, frame.X), static=True)
        drawn.append((link, owner, "", np.column_stack(_components(log.estimates, owner))[poses]))
        if f"fx:{owner}.{FORCE[0]}" in log.predicted:
            drawn.append((link, owner, " measured", np.column_stack(_components(log.readings, owner))[poses]))
    for what, part, colour in (("moment", slice(0, 3), TURN), ("force", slice(3, 6), ESTIMATED)):
        sizes = (np.nanmax(np.linalg.norm(x[:, part], axis=1), initial=0.0) for *_, x in drawn)
        scale = longest / max((float(size) or 1.0 for size in sizes), default=1.0)
        for link, owner, measured, x in drawn:
            path = into.link(link, "fx", owner, what + measured)
            known = np.isfinite(x).all(axis=1)
            shown = list(MEASURED if measured else colour)
            arrows = into.rr.Arrows3D.from_fields(colors=[shown], radii=[0.04 * longest])
            into.stream.log(path, arrows, static=True)
            columns = into.rr.Arrows3D.columns(vectors=scale * x[known, part])
            into.stream.send_columns(path, indexes=[into.when(poses[known])], columns=columns)


MOST_VIEWS = 12
"""Plots of a tab that is open at once, at most."""


def write_panels(into: Recording, groups: Sequence[PanelGroup]) -> None:
    """Write the curves of panels as lines; an estimate beside what was read of it has its own colour."""
    panels = [(group, panel) for group in groups for panel in group.panels]
    n = sum(len(panel.curves) for _, panel in panels)
    bins = Bins.of(into.log.time, int(np.clip(MOST_NUMBERS / (2 * max(1, n)), 500, len(into.log))))
    for group, panel in panels:
        is_compared = len(panel.curves) == 2 and "measured" in panel.curves[0].mark
        colours = [[list(MEASURED)], [list(ESTIMATED)]] if is_compared else [None] * len(panel.curves)
        for curve, colour in zip(panel.curves, colours, strict=True):
            path, samples = into.entity(group.id, panel.title, curve.label), kept(bins, curve.x)
            into.stream.log(path, into.rr.SeriesLines(colors=colour, names=[spaced(curve.label)]), static=True)
            if len(samples):
                columns = into.rr.Scalars.columns(scalars=curve.x[samples])
                into.stream.send_columns(path, indexes=[into.when(samples)], columns=columns)


def blueprint(into: Recording, groups: Sequence[PanelGroup]) -> Any:
    """How a viewer lays it out: the robot and the verdict on the left, plots on the right, a tab a group and unit."""
    import rerun.blueprint as rrb

    log = into.log
    tabs: dict[str, list[Any]] = {}
    for group in groups:
        for panel in group.panels:
            tab = tabs.setdefault(f"{group.title} [{panel.unit}]" if panel.unit else group.title, [])
            tab.append(rrb.TimeSeriesView(origin=into.entity(group.id, panel.title), name=spaced(panel.title)))
    plots = [rrb.Grid(*views[:MOST_VIEWS], name=title) for title, views in tabs.items()]
    words = rrb.Tabs(
        rrb.TextDocumentView(origin="/verdict", name="verdict"),
        rrb.StateTimelineView(origin="/said", name="when"),
        rrb.TextLogView(origin="/suspects", name="suspects"),
        active_tab=0,
    )
    left = rrb.Vertical(rrb.Spatial3DView(origin=f"/{ROBOT}", name=log.system.tree.name), words, row_shares=[2, 1])
    return rrb.Blueprint(rrb.Horizontal(left, rrb.Tabs(*plots, active_tab=0), column_shares=[1, 1]) if plots else left)


FINE = "-"
"""The state of what is as it should be."""

SUSPECT = (200, 30, 30)
"""The colour of suspects."""


def write_states(into: Recording) -> None:
    """Write flags of samples as states that change."""
    for label, flag in into.log.flags.items():
        changes = np.flatnonzero(np.diff(flag, prepend=not flag[0])) if flag.any() else ()
        for k in map(int, changes):
            into.at(k)
            into.stream.log(into.entity("said", label), into.rr.StateChange(state="yes" if flag[k] else FINE))
    into.stream.reset_time()


def write_suspects(into: Recording, extent: float) -> None:
    """Write who is a suspect when: as a state, as a line of text, and as a red ball where it is the clearest."""
    rr, log, tree = into.rr, into.log, into.log.system.tree
    for sensor, own in log.suspects.items():
        body = log.body_of(sensor)
        ball = None if body is None else into.link(tree.names[body], "suspect", sensor)
        states: dict[int, str] = {0: FINE}
        for each in own:
            states[each.first] = "clearest" if each.is_first else "disturbed"
            states.setdefault(each.stop, FINE)
            if each.is_first:
                into.at(each.first)
                text = (
                    f"{sensor} does not fit the others: {each.fault.reading} is {each.strength:.1f} sigma off at most"
                )
                into.stream.log("suspects", rr.TextLog(text, level="WARN"))
        before = FINE
        for sample, state in sorted(states.items()):
            into.at(sample)
            into.stream.log(into.entity("said", "suspect", sensor), rr.StateChange(state=state))
            if ball is not None and (state == "clearest") != (before == "clearest"):
                balls = rr.Points3D([[0.0, 0.0, 0.0]], radii=[0.035 * extent], colors=[list(SUSPECT)], labels=[sensor])
                into.stream.log(ball, balls if state == "clearest" else rr.Clear(recursive=False))
            before = state
    into.stream.reset_time()


def write_words(into: Recording) -> None:
    """Write the verdict on the log, as a text."""
    found = verdict(into.log)
    lines = [f"# {found.heading}", *found.sentences, *(f"- {doubt.message}" for doubt in into.log.doubts)]
    lines += [f"- {name}: {words}" for name, words in facts(into.log)]
    text = spaced("\n\n".join(line for line in lines if line))
    into.stream.log("verdict", into.rr.TextDocument(text, media_type="text/markdown"), static=True)


POSES_PER_SECOND = 60.0
MOST_POSES = 20_000
"""Poses and arrows of a recording, at most; in between a viewer shows the last one."""

MOST_NUMBERS = 4_000_000
"""Numbers of all series, at most; of longer logs the smallest and largest of each of many bins are kept."""

ARROW = 0.4
"""Length of the longest arrow, as a share of how large the robot is."""


def save_recording(
    log: RecordedLog, path: str | Path, names: Sequence[str] = (), robot: str | Path | None = None
) -> tuple[str, ...]:
    """Write a recording for the Rerun viewer, whole or not at all.

    Args:
        log: the log, run through a plan.
        path: the file, .rrd.
        names: estimates to write as series, as for the page; all when empty.
        robot: the URDF with the meshes; without it links are drawn as capsules between joints.

    Returns:
        Notes on it: meshes that were not found.

    Raises:
        FileFormatError: the URDF cannot be read, or the file not written.
    """
    import rerun as rr

    shapes = () if robot is None else urdf_shapes(robot)
    with rr.RecordingStream("nori_dyn") as stream:
        held = stream.memory_recording()
        stream.send_recording_name(log.name)
        notes = _write(Recording(rr, stream, log, names), shapes)
        content = held.drain_as_bytes()
    write_bytes(path, content)
    return notes


def _write(into: Recording, shapes: Sequence[Shape]) -> tuple[str, ...]:
    stream, log = into.stream, into.log
    poses = _pose_samples(log)
    stream.log(ROBOT, into.rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    _, *origins = (np.asarray(X.r, dtype=float) for X in positions(log.system.tree, log.q[0]).X_0.values())
    extent = float(np.linalg.norm(np.ptp(origins, axis=0))) or 1.0  # of the links; the first was the world
    lost = write_shapes(into, shapes, extent)
    write_poses(into, poses)
    write_wrenches(into, poses, ARROW * extent)
    groups = log_panels(log, into.names)
    write_panels(into, groups)
    write_states(into)
    write_suspects(into, extent)
    write_words(into)
    stream.send_blueprint(blueprint(into, groups))
    return (f"{lost} meshes of the URDF were not found: such links are drawn as capsules.",) if lost else ()


def _pose_samples(log: RecordedLog) -> Indices:
    """The samples at which the robot is drawn: all, or every so many, as an eye can tell apart."""
    span = float(log.time[-1] - log.time[0])
    wanted = MOST_POSES if log.start is None else min(MOST_POSES, int(POSES_PER_SECOND * span) + 1)
    return np.arange(0, len(log), -(-len(log) // wanted))

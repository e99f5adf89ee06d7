"""A log as a Rerun recording: the robot as it moves, contact wrenches, estimates and readings, residuals, suspects.

Entities: `robot/LINK` has where a link is in the world, `robot/LINK/fx/FRAME/force` and `moment` the wrench on a frame
of it; `numbers/KIND/OWNER/COMPONENT/estimated` and `measured` are series, `residuals/sigma/SENSOR/COMPONENT/residual`
such in sigma; `said/...` are states: what was dropped, which sensors are suspects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from nori_dyn.descriptions.urdf_shapes import Shape, urdf_shapes
from nori_dyn.io.extras import needed
from nori_dyn.io.files import write_bytes
from nori_dyn.model.joints import FORCE
from nori_dyn.report.curves import Bins, kept
from nori_dyn.report.estimate_picture import HALVES
from nori_dyn.report.log_verdict import facts, verdict
from nori_dyn.report.recorded import RecordedLog, chosen
from nori_dyn.report.recording_robot import ROBOT, link_path, log_poses, log_shapes, placed, size
from nori_dyn.tables import spaced
from nori_dyn.typing import Floats, Indices

ESTIMATED, MEASURED = (60, 155, 255), (255, 150, 60)
"""The colours of what is estimated, and of what was read."""


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

    def writeseries(self, series: Series, samples: Any) -> None:
        """Write numbers at some samples as a line."""
        path = self.entity(*series.entity)
        colours = None if series.colour is None else [list(series.colour)]
        self.stream.log(path, self.rr.SeriesLines(colors=colours, names=[series.name]), static=True)
        if len(samples):
            columns = self.rr.Scalars.columns(scalars=series.x[samples])
            self.stream.send_columns(path, indexes=[self.when(samples)], columns=columns)


@dataclass(frozen=True, eq=False)
class Series:
    """Numbers that are drawn as a line.

    Attributes:
        entity: where it is; those that share all but the last two parts are drawn together.
        x: the numbers (N,).
        name: what the line is called.
        colour: None for one of the viewer's choice.
    """

    entity: tuple[str, ...]
    x: Floats
    name: str
    colour: tuple[int, int, int] | None = None


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
            into.stream.log(link_path(into.rr, link, "fx", owner), placed(into.rr, frame.X), static=True)
        drawn.append((link, owner, "", np.column_stack(_components(log.estimates, owner))[poses]))
        if f"fx:{owner}.{FORCE[0]}" in log.told:
            drawn.append((link, owner, " measured", np.column_stack(_components(log.readings, owner))[poses]))
    for what, part, colour in (("moment", slice(0, 3), TURN), ("force", slice(3, 6), ESTIMATED)):
        scale = longest / max((_largest(x[:, part]) for *_, x in drawn), default=1.0)
        for link, owner, measured, x in drawn:
            path = link_path(into.rr, link, "fx", owner, what + measured)
            known = np.isfinite(x).all(axis=1)
            shown = list(MEASURED if measured else colour)
            arrows = into.rr.Arrows3D.from_fields(colors=[shown], radii=[0.04 * longest])
            into.stream.log(path, arrows, static=True)
            columns = into.rr.Arrows3D.columns(vectors=scale * x[known, part])
            into.stream.send_columns(path, indexes=[into.when(poses[known])], columns=columns)


def _largest(x: Floats) -> float:
    sizes = np.linalg.norm(x, axis=1)
    return float(np.nanmax(sizes, initial=0.0)) or 1.0


MOST_VIEWS = 12
"""Plots of a tab that is open at once, at most."""


def series(into: Recording) -> Iterator[Series]:
    """Yield the series."""
    log = into.log
    for name in chosen(log.estimates, into.names):
        yield from compared(log, name, log.estimates[name])
    if log.diagnosis is None:
        return
    for name in () if into.names else log.told:
        if name not in log.estimates:
            yield from compared(log, name, log.told[name])
    z = log.diagnosis.normalised
    for k, (reading, sensor) in enumerate(zip(log.diagnosis.readings, log.diagnosis.sensors, strict=True)):
        if np.isfinite(z[:, k]).any():
            component = reading.removeprefix(sensor).removeprefix(".") or "residual"
            yield Series(("residuals", "sigma", sensor, component, "residual"), z[:, k], reading)
    yield Series(("fit", "p_value", "p", "p", "p_value"), np.asarray(log.diagnosis.p_value, dtype=float), "p_value")


def compared(log: RecordedLog, name: str, estimated: Floats) -> Iterator[Series]:
    """Yield what is estimated of a number, and what was read of it."""
    kind, _, rest = name.rpartition(":") if ":" in name else ("sensors", "", name)
    owner, _, component = rest.rpartition(".") if rest.rpartition(".")[2] in HALVES else (rest, "", "")
    entity = ("numbers", kind, owner or kind, component or "value")
    alone = not component
    read = log.measured(name)
    if read is not None:
        yield Series((*entity, "measured"), read, f"{name} measured", MEASURED if alone else None)
    yield Series((*entity, "estimated"), estimated, name, ESTIMATED if alone else None)


def blueprint(into: Recording, groups: Sequence[tuple[str, ...]]) -> Any:
    """How a viewer lays it out: the robot and what is said on the left, plots on the right."""
    import rerun.blueprint as rrb

    log = into.log
    tabs: dict[str, list[tuple[str, ...]]] = {}
    for group in sorted(groups, key=lambda group: (group[0] != "residuals", log.rank(group[2]))):
        tabs.setdefault("residuals" if group[0] == "residuals" else group[1], []).append(group)
    plots = [
        rrb.Grid(
            *(rrb.TimeSeriesView(origin=into.entity(*group), name=spaced(group[2])) for group in own[:MOST_VIEWS]),
            name=title,
        )
        for title, own in tabs.items()
    ]
    said = rrb.Tabs(
        rrb.TextDocumentView(origin="/verdict", name="verdict"),
        rrb.StateTimelineView(origin="/said", name="when"),
        rrb.TextLogView(origin="/suspects", name="suspects"),
        active_tab=0,
    )
    left = rrb.Vertical(rrb.Spatial3DView(origin=f"/{ROBOT}", name=log.system.tree.name), said, row_shares=[2, 1])
    return rrb.Blueprint(rrb.Horizontal(left, rrb.Tabs(*plots, active_tab=0), column_shares=[1, 1]) if plots else left)


FINE = "-"
"""The state of what is as it should be."""

SUSPECT = (200, 30, 30)
"""The colour of suspects."""


def write_states(into: Recording) -> None:
    """Write what is said of samples as states that change."""
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
        ball = None if body is None else link_path(rr, tree.names[body], "suspect", sensor)
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
    """Write what is said of the log, as a text."""
    said = verdict(into.log)
    lines = [f"# {said.heading}", *said.sentences, *(f"- {doubt.message}" for doubt in into.log.doubts)]
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


def check_rerun() -> None:
    """Check that recordings can be written.

    Raises:
        MissingExtraError: the extra is not installed.
    """
    needed("a Rerun recording", "rerun", "rerun")


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
        What is to be said of it: meshes that were not found.

    Raises:
        MissingExtraError: the extra `rerun` is not installed.
        FileFormatError: the URDF cannot be read, or the file not written.
    """
    check_rerun()
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
    rr, stream, log = into.rr, into.stream, into.log
    tree = log.system.tree
    poses = _pose_samples(log)
    stream.log(ROBOT, rr.ViewCoordinates.RIGHT_HAND_Z_UP, static=True)
    extent = size(tree, log.q[0])
    lost = log_shapes(rr, stream, tree, shapes, extent)
    log_poses(rr, stream, tree, log.q[poses], into.when(poses))
    write_wrenches(into, poses, ARROW * extent)
    lines = list(series(into))
    count = int(np.clip(MOST_NUMBERS / (2 * max(1, len(lines))), 500, len(log)))
    bins = Bins.of(log.time, count)
    for each in lines:
        into.writeseries(each, kept(bins, each.x))
    write_states(into)
    write_suspects(into, extent)
    write_words(into)
    stream.send_blueprint(blueprint(into, tuple(dict.fromkeys(each.entity[:-2] for each in lines))))
    return (f"{lost} meshes of the URDF were not found: such links are drawn as capsules.",) if lost else ()


def _pose_samples(log: RecordedLog) -> Indices:
    """The samples at which the robot is drawn: all, or every so many, as an eye can tell apart."""
    span = float(log.time[-1] - log.time[0])
    wanted = MOST_POSES if log.start is None else min(MOST_POSES, int(POSES_PER_SECOND * span) + 1)
    return np.arange(0, len(log), -(-len(log) // wanted))

"""A log as a Rerun recording: the robot as it moves, contact wrenches, estimates and readings, residuals, suspects.

Entities: `robot/LINK` has where a link is in the world, `robot/LINK/fx/FRAME/force` and `moment` the wrench on a frame
of it; `numbers/KIND/OWNER/COMPONENT/estimated` and `measured` are series, `residuals/sigma/SENSOR/COMPONENT/residual`
such in sigma; `said/...` are states: what was dropped, which sensors are suspects.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from nori_dyn.descriptions.urdf_shapes import Shape, urdf_shapes
from nori_dyn.errors import MissingExtraError
from nori_dyn.io.files import write_bytes
from nori_dyn.report.curves import Bins, kept
from nori_dyn.report.recorded import RecordedLog
from nori_dyn.report.recording_events import write_states, write_suspects, write_words
from nori_dyn.report.recording_robot import ROBOT, log_poses, log_shapes, size
from nori_dyn.report.recording_series import blueprint, series
from nori_dyn.report.recording_stream import Recording
from nori_dyn.report.recording_wrenches import write_wrenches
from nori_dyn.typing import Indices

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
    if importlib.util.find_spec("rerun") is None:
        raise MissingExtraError("a Rerun recording", "rerun")


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
    """Return the samples at which the robot is drawn: all, or every so many, as an eye can tell apart."""
    span = float(log.time[-1] - log.time[0])
    wanted = MOST_POSES if log.start is None else min(MOST_POSES, int(POSES_PER_SECOND * span) + 1)
    return np.arange(0, len(log), -(-len(log) // wanted))

"""Configurations side by side, as tables of a page: the worst ones, each number with its name and unit."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from nori_dyn.model.tree import KinematicTree
from nori_dyn.observe.conditioning import Conditioning
from nori_dyn.observe.report import ObservabilityReport
from nori_dyn.report.workspace import format_deviation, tabulate_deviations
from nori_dyn.tables import number
from nori_dyn.typing import Floats

POSES_SHOWN = 5
"""Most configurations whose numbers are listed."""


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


def list_special_poses(tree: KinematicTree, report: ObservabilityReport) -> Iterator[PoseTable]:
    """Yield the worst poses of a report: of each special kind, and of the configurations that were given."""
    if report.loses_rank:
        worst = [c.configurations[int(c.ranks.argmin())] for c in report.loses_rank]
        headings = [c.meaning for c in report.loses_rank]
        yield _pose_table(tree, "Where something is not determined: one pose of each kind", headings, worst)
    if len(report.rank_at):
        order = np.lexsort((report.smallest_at, report.rank_at))[:POSES_SHOWN]
        headings = [_name_pose(k, report.n_variables - report.rank_at[k], report.smallest_at[k]) for k in order]
        yield _pose_table(tree, "The worst of the configurations given", headings, report.configurations[order])


def list_swept_poses(tree: KinematicTree, found: Conditioning) -> Iterator[PoseTable]:
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


def _pose_table(tree: KinematicTree, title: str, headings: Sequence[str], Q: Sequence[Floats] | Floats) -> PoseTable:
    rows = []
    for k, (name, kind) in enumerate(_coordinate_names(tree)):
        scale = np.degrees(1.0) if kind == "angle" else 1.0
        digits = 1 if kind == "angle" else 3
        unit = {"angle": "°", "length": "m", "quaternion": ""}[kind]
        rows.append((name, unit, tuple(_format_signed(scale * q[k], digits) for q in Q)))
    return PoseTable(title, tuple(headings), tuple(rows))


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

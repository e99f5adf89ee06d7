"""Contact wrenches in a Rerun recording: arrows at their frames, as estimated and as they were read."""

from __future__ import annotations

from typing import Any

import numpy as np

from nori_dyn.model.joints import FORCE
from nori_dyn.report.recorded import RecordedLog
from nori_dyn.report.recording_robot import link_path, placed
from nori_dyn.report.recording_stream import ESTIMATED, MEASURED, Recording
from nori_dyn.report.time_plots import is_constant
from nori_dyn.typing import Floats, Indices

TURN = (210, 110, 255)
"""The colour of moments."""


def wrench_frames(log: RecordedLog) -> tuple[str, ...]:
    """Return the links and frames whose external wrench is estimated, but those that nothing can touch."""
    owners = dict.fromkeys(
        name.removeprefix("fx:").rpartition(".")[0] for name in log.estimates if name.startswith("fx:")
    )
    return tuple(each for each in owners if not all(is_constant(x) for x in _components(log.estimates, each)))


def _components(numbers: Any, owner: str) -> list[Floats]:
    return [numbers[f"fx:{owner}.{component}"] for component in FORCE]


def write_wrenches(into: Recording, poses: Indices, longest: float) -> None:
    """Write the wrenches on links and frames as arrows: forces, and moments in another colour, at one scale each."""
    log, tree = into.log, into.log.system.tree
    drawn: list[tuple[str, str, str, Floats]] = []
    for owner in wrench_frames(log):
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

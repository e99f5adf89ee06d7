"""Pictures of what was estimated and what was measured, for the page of the documentation."""

from __future__ import annotations

from pathlib import Path

from matplotlib.axes import Axes
from matplotlib.figure import Figure as Drawing

from benchmarks.real import icub_one_leg, icub_walking
from benchmarks.real.signals import runs

MEASURED, ESTIMATED, AIR = "#9aa5b1", "#c0392b", "#dfe8f1"
"""Colours: of what was measured, of what was estimated, of a foot in the air."""


def draw(data: Path, folder: Path) -> None:
    """Draw both pictures into a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, drawing in (("one_leg", one_leg(data)), ("walking", walking(data))):
        drawing.savefig(folder / f"{name}.png", dpi=90, metadata={"Software": None})


def one_leg(data: Path) -> Drawing:
    """What the sensor below the right hip should read, and what it does."""
    stand = icub_one_leg.estimated(data)
    leg = stand.sensors["right leg"]
    drawing = Drawing(figsize=(10, 4.6), layout="constrained")
    axes = drawing.subplots(2, 3, sharex=True)
    for k, (name, unit) in enumerate(zip(icub_one_leg.COMPONENTS, icub_one_leg.UNITS, strict=True)):
        at: Axes = axes.flat[k]
        at.axvspan(*icub_one_leg.TURNED, color=AIR, lw=0)
        at.plot(stand.t, leg.read[:, k] - leg.offset[k], color=MEASURED, lw=2.5, label="sensor, less its offset")
        at.plot(stand.t, leg.expected[:, k], color=ESTIMATED, lw=1, label="estimated from the joints")
        at.set_ylabel(f"{name} [{unit.replace(' ', ' ')}]")
    axes[0, 0].legend(frameon=False, fontsize="small")
    for at in axes[1]:
        at.set_xlabel("time [s]; shaded: the leg is turned out")
    return drawing


def walking(data: Path) -> Drawing:
    """The vertical force on each foot, estimated and measured, and when it was found to be in the air."""
    walk = icub_walking.estimated(data)
    drawing = Drawing(figsize=(10, 4.2), layout="constrained")
    axes = drawing.subplots(2, 1, sharex=True, sharey=True)
    for k, side in enumerate(("left", "right")):
        at: Axes = axes[k]
        in_air = walk.state == 1 - k
        for start, stop in runs(in_air):
            at.axvspan(walk.t[start], walk.t[stop - 1], color=AIR, lw=0)
        at.plot(walk.t, walk.measured[:, k], color=MEASURED, lw=2.5, label="force-torque sensor")
        at.plot(walk.t, walk.forces[:, k], color=ESTIMATED, lw=1, label="estimated from joints and IMU")
        at.set_ylabel(f"{side} foot [N]")
        at.set_ylim(-40, 460)
    axes[0].legend(frameon=False, fontsize="small", loc="upper left", ncols=2)
    axes[1].set_xlabel("time [s]; shaded: found to be in the air")
    return drawing

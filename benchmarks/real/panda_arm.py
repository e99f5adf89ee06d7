"""What the two Pandas have in common: the arm as it comes, without the hand."""

from __future__ import annotations

import tempfile
from pathlib import Path

from lxml import etree

import nori_dyn as nd
from benchmarks.robots import robot_file

JOINTS = tuple(f"joint {k}" for k in range(1, 8))


def bare_arm() -> nd.KinematicTree:
    """The Panda of example-robot-data without its hand.

    Raises:
        MissingExtraError: the package is not installed.
    """
    document = etree.parse(str(robot_file("panda")))
    root = document.getroot()
    for part in [*root.findall("link"), *root.findall("joint")]:
        if "hand" in part.get("name") or "finger" in part.get("name"):
            root.remove(part)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "panda.urdf"
        document.write(str(path))
        return nd.load_urdf(path)

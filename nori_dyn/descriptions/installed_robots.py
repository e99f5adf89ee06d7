"""Robots that come with installed packages, by name: nothing is downloaded, and none of these packages is imported."""

from __future__ import annotations

import sys
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

PACKAGES = {"icub-models": "iCub/robots", "example-robot-data": "example-robot-data/robots"}
"""The packages, as PyPI calls them, and their folder of robots under a folder `share`."""

SHORT = {
    "allegro": "allegro_right_hand",
    "anymal_c": "anymal_c_simple",
    "g1": "g1_29dof_rev_1_0",
    "hyq": "hyq_no_sensors",
    "icub": "iCubGenova04",
    "solo8": "solo",
    "talos": "talos_reduced",
    "talos_full": "talos_full_v2",
    "ur3": "ur3_robot",
    "ur5": "ur5_robot",
    "ur10": "ur10_robot",
}
"""What people call robots whose files are called otherwise."""


def installed_robots() -> dict[str, Path]:
    """Return the URDF of each robot of the installed packages, by its names.

    A robot is called as its file is, without the ending; where that is no name, or taken, as its folder is; and where
    that is taken too, PACKAGE:FILE. Files without a link, which xacro leaves where it was told nothing, are none.
    """
    found: dict[str, Path] = {}
    taken: dict[str, Path] = {}  # files whose name another robot has, by their whole name
    for package in PACKAGES:
        folder = robots_folder(package)
        if folder is None:
            continue
        for path in sorted(folder.rglob("*.urdf")):
            if b"<link" not in path.read_bytes():
                continue
            own = path.relative_to(folder).parts[0].removesuffix("_description")
            name = own if path.stem == "model" or path.stem in found else path.stem
            if found.setdefault(name, path) != path or name in SHORT:
                taken[f"{package}:{path.stem}"] = path
    known = {**found, **{short: found[name] for short, name in SHORT.items() if name in found}}
    return {**known, **{name: path for name, path in taken.items() if path not in known.values()}}


def robots_folder(package: str) -> Path | None:
    """Return a package's folder of robots; None where it is not installed.

    A wheel has it beside the modules, under cmeel's prefix, or in the folder of data; Conda in that of the environment.
    """
    shares = [Path(sys.prefix) / "share"]
    try:
        modules = Path(str(distribution(package).locate_file("")))
        shares = [modules / "cmeel.prefix" / "share", modules.parents[2] / "share", *shares]
    except PackageNotFoundError:
        pass
    return next((share / PACKAGES[package] for share in shares if (share / PACKAGES[package]).is_dir()), None)

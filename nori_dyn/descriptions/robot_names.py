"""Robots known by name, their packages and files.

To list them downloads nothing, and imports no module of a robot.
"""

from __future__ import annotations

import contextlib
import difflib
import importlib
import os
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from types import ModuleType

from nori_dyn.errors import ModelError
from nori_dyn.tables import Shown

DOWNLOADED = "robot_descriptions"
"""The package whose robots are downloaded when they are first used."""

EXTRA = "pip install 'nori_dyn[robots]'"
"""What brings the packages that know robots by name."""

MOST_SIMILAR = 5
"""Names that are proposed where one is not known."""

_PATHS = ("URDF_PATH", "MJCF_PATH", "XACRO_PATH")  # where a module of robot_descriptions says its file is


@dataclass(frozen=True, slots=True)
class NamedRobot:
    """A robot known by name.

    Attributes:
        name: the name that `nd.load_robot` takes.
        package: the package that it is from, as PyPI calls it.
        path: its file; None where it is downloaded when it is first used.
        aliases: its other names.
        about: the format; of one that is downloaded, before that who makes it and what it is.
    """

    name: str
    package: str
    path: Path | None
    aliases: tuple[str, ...] = ()
    about: str = ""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Robots(Shown, Mapping[str, NamedRobot]):
    """The robots known by name.

    Attributes:
        by_name: each robot, by all its names.
        absent: packages that may know more and are not installed.
    """

    by_name: Mapping[str, NamedRobot]
    absent: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> NamedRobot:
        return self.by_name[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.by_name)

    def __len__(self) -> int:
        return len(self.by_name)

    def __repr__(self) -> str:
        return f"Robots({len(self.robots):,} of {', '.join(self.packages) or 'no package'})"

    @property
    def robots(self) -> tuple[NamedRobot, ...]:
        """The robots, each once."""
        return tuple(dict.fromkeys(self.by_name.values()))

    @property
    def packages(self) -> tuple[str, ...]:
        """The packages that they are from."""
        return tuple(dict.fromkeys(robot.package for robot in self.robots))

    def similar(self, text: str) -> tuple[str, ...]:
        """Names that someone may have meant, the likeliest first: similar ones, then those that contain the text.

        Of robots that are downloaded, it may also be part of what they are called, or of who makes them.
        """
        wanted = text.casefold()
        names = {name.casefold(): name for name in reversed([*self])}
        near = [names[name] for name in difflib.get_close_matches(wanted, names, MOST_SIMILAR, cutoff=0.6)]
        parts = [name for name in self if wanted in name.casefold()]
        about = [robot.name for robot in self.robots if robot.path is None and wanted in robot.about.casefold()]
        return tuple(dict.fromkeys([*near, *parts, *about]))[:MOST_SIMILAR] if wanted else ()


def robots() -> Robots:
    """The robots that `nd.load_robot` knows by name, and the package of each.

    Those of icub-models and example-robot-data come with these packages; those of robot_descriptions are downloaded
    when they are first used, and not to be listed. The extra `robots` brings all three. `print` shows them as a table,
    as `nori-dyn robots` does.

    Returns:
        By its names, each robot: its `name`, `package`, `aliases`, `path` (None where it is to be downloaded), and what
        it is `about`. `.similar(text)` are the names that someone may have meant.

    Example:
        >>> known = nd.tools.robots()
        >>> "panda" in known, known["panda"].package  # doctest: +SKIP
        (True, 'example-robot-data')
        >>> known.similar("kuka")  # doctest: +SKIP
        ('iiwa14_description', 'iiwa14_mj_description', 'iiwa7_description', 'iiwa7_epfl_description')
    """
    described = _described_robots()
    absent = [package for package in PACKAGES if robots_folder(package) is None]
    by_name: dict[str, NamedRobot] = {}
    for robot in (*_installed(), *described):
        for name in (robot.name, *robot.aliases):
            by_name.setdefault(name, robot)
    return Robots(by_name, (*absent, *(() if described else (DOWNLOADED,))))


def robot_by_name(name: str) -> Path:
    """Path of a robot of an installed package, or of robot_descriptions, which downloads it when first used.

    Raises:
        ModelError: no such name, no package that has robots is installed, or the download fails.
    """
    if os.sep in name or name.endswith((".urdf", ".xml", ".mjcf")):
        raise ModelError(f"no such file: {name}.{_similar_file(name)}")
    known = robots()
    if name in known:
        return known[name].path or _downloaded(name)
    similar = [f"'{one}'" for one in known.similar(name)]
    proposed = " or ".join([", ".join(similar[:-1]), similar[-1]] if similar[1:] else similar)
    raise ModelError(
        f"no robot '{name}': there is no such file"
        + (f", and it is none of the robots of {', '.join(known.packages)}." if known else ".")
        + (f" Did you mean {proposed}?" if similar else " Give the path of a URDF or MJCF file, or a name.")
        + (" `nori-dyn robots` lists them." if known else "")
        + (f" Not installed, and so not searched: {', '.join(known.absent)} ({EXTRA})." if known.absent else "")
    )


def _installed() -> Iterator[NamedRobot]:
    """Yield the robots of installed packages, each with all its names."""
    names: dict[Path, list[str]] = {}
    for name, path in installed_robots().items():
        names.setdefault(path, []).append(name)
    for package in PACKAGES:
        folder = robots_folder(package)
        for path, (name, *others) in names.items():
            if folder is not None and path.is_relative_to(folder):
                yield NamedRobot(name, package, path, tuple(others), "URDF")


def _described_robots() -> tuple[NamedRobot, ...]:
    """Robots of robot_descriptions, from its table alone; none if it is not installed."""
    try:
        from robot_descriptions import DESCRIPTIONS
    except ImportError:
        return ()
    return tuple(NamedRobot(name, DOWNLOADED, None, (), _about(entry)) for name, entry in DESCRIPTIONS.items())


def _about(entry: object) -> str:
    """Maker, name and format of a robot of robot_descriptions; older versions give less."""
    maker_and_robot = " ".join(filter(None, (getattr(entry, "maker", None), getattr(entry, "robot", None))))
    formats = [form for form in ("URDF", "MJCF") if getattr(entry, f"has_{form.lower()}", False)]
    return ", ".join(filter(None, (maker_and_robot, *formats)))


def _downloaded(name: str) -> Path:
    """Path of a robot of robot_descriptions.

    Raises:
        ModelError: the download fails.
    """
    try:
        with contextlib.redirect_stdout(sys.stderr):  # it prints while it clones
            module = importlib.import_module(f"robot_descriptions.{name}")
            return _file_of(module)
    except Exception as error:  # git, network, disk, xacro: the robot is not here
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ModelError(
            f"robot '{name}': robot_descriptions could not provide it ({reason[:300]}). "
            "It clones a git repository on first use of a robot: check git and the network, or give a path."
        ) from error


def _file_of(module: ModuleType) -> Path:
    for attribute in _PATHS:
        if hasattr(module, attribute):
            if attribute == "XACRO_PATH":
                xacro = importlib.import_module("robot_descriptions._xacro")
                return Path(xacro.get_urdf_path(module))
            return Path(getattr(module, attribute))
    raise LookupError("it has neither a URDF nor an MJCF file")


def _similar_file(name: str) -> str:
    """A hint at a file with a similar name in the same folder, or ""."""
    folder = Path(name).parent
    if not folder.is_dir():
        return f" There is no folder {folder} either."
    close = difflib.get_close_matches(Path(name).name, [f.name for f in folder.iterdir()], n=1)
    return f" Did you mean '{folder / close[0]}'?" if close else ""


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
    """URDF of each robot of the installed packages, by its names.

    A robot is called as its file is, without the ending; where that is no name, or taken, as its folder is; and where
    that is taken too, PACKAGE:FILE. Files without a link, which xacro leaves where it was given nothing, are none.
    """
    found: dict[str, Path] = {}
    taken: dict[str, Path] = {}  # files whose name another robot has, by their whole name
    for package in PACKAGES:
        folder = robots_folder(package)
        if folder is None:
            continue
        for path in _files_of(folder):
            own = path.relative_to(folder).parts[0].removesuffix("_description")
            name = own if path.stem == "model" or path.stem in found else path.stem
            if found.setdefault(name, path) != path or name in SHORT:
                taken[f"{package}:{path.stem}"] = path
    known = {**found, **{short: found[name] for short, name in SHORT.items() if name in found}}
    return {**known, **{name: path for name, path in taken.items() if path not in known.values()}}


@cache
def _files_of(folder: Path) -> tuple[Path, ...]:
    """URDF files of a package that have links; the files of installed packages stay as they are."""
    return tuple(path for path in sorted(folder.rglob("*.urdf")) if b"<link" in path.read_bytes())


def robots_folder(package: str) -> Path | None:
    """Folder of robots of a package; None if it is not installed.

    A wheel has it beside the modules, under cmeel's prefix, or in the folder of data; Conda in that of the environment.
    """
    shares = [Path(sys.prefix) / "share"]
    try:
        modules = Path(str(distribution(package).locate_file("")))
        environments = [folder / "share" for folder in modules.parents[2:3]]  # a folder near the root has none
        shares = [modules / "cmeel.prefix" / "share", *environments, *shares]
    except PackageNotFoundError:
        pass
    return next((share / PACKAGES[package] for share in shares if (share / PACKAGES[package]).is_dir()), None)

"""A real UR10e on exciting trajectories: its torques, and the load that it carries.

Estimated: the torques of the joints, by inverse dynamics with the maker's inertias; then with friction, rotors and
offsets of the drives, fitted on one log and held against another; then the load, from what it adds to the torques on
a trajectory that was driven without and with it.

Held against: the currents of the motors times the gains of their drives.

Then all parameters are identified: from one exciting trajectory, held against another; with the load on a third log,
what it weighs and where; and with the load's mass known, the gains of the drives themselves.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.arms import ArmLog, JointTorques, fitted_drives, with_drives
from benchmarks.real.finding import Figure, Finding, held_against
from benchmarks.real.identified import judged, with_friction
from benchmarks.real.recording import beside
from nori_dyn.typing import Floats

DATA = "UR10e"
CUTOFF = 5.0
"""What is slower than this is compared [Hz]."""
WINDOW = 11
"""Samples over which velocities are differentiated."""
WIDTH = 0.02
"""Velocity over which friction changes its sign [rad/s]."""
EDGE = 100
"""Samples at both ends that the filter has touched."""
LATE = 150
"""Largest number of samples by which one start differs from the other."""

JOINTS = ("pan", "lift", "elbow", "wrist 1", "wrist 2", "wrist 3")
AGAINST = "currents times gains"

NARROW = 0.01
"""Velocity over which friction changes its sign where inertias are found with it [rad/s]."""
PRESLIDING: dict[str, float] = {}
"""How its joints move before they slide: as `nd.components.Friction` has it by default."""
MOVING = 0.02
"""Speed above which a joint moves [rad/s]."""
GAINS = 14.87, 13.26, 11.13, 10.62, 11.03, 11.47
"""Of the drives [N m/A], as De Luca's group has them, and the authors of the data take them."""
LOAD = 2.805
"""Mass of the load [kg], in `estimate_drive_gains.m` of the authors of the data."""
ALL = "inertias", "friction", "rotors", "offsets"


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    folder = data / "real" / "ur10e"
    tree = nd.load_urdf(folder / "ur10e.urdf")
    first, second, loaded = (
        ArmLog.of(folder / f"{name}.csv.gz", "ur10e.log.yaml", WINDOW, CUTOFF, EDGE)
        for name in ("exciting_1", "exciting_2", "exciting_2_load")
    )
    rigid = second.torques(tree)
    drives = fitted_drives(tree, first, WIDTH)
    driven = second.torques(with_drives(tree, drives, WIDTH)).expected + np.array([drive.offset for drive in drives])
    title = "torques, with friction and rotors fitted on another log"
    found: list[Finding | Figure] = [
        compared("torques, links alone", rigid.expected, rigid.measured),
        compared(title, driven, rigid.measured),
    ]
    empty = loaded.torques(tree)
    without, with_load = together(rigid, empty)
    added = empty.measured[with_load] - rigid.measured[without]

    def load(mass: float, moment: Floats) -> Floats:
        return (loaded.torques(carrying(tree, mass, moment)).expected - empty.expected)[with_load]

    mass, moment = fitted_load(load, added)
    carried = load(mass, moment)
    against = "currents with the load less those without"
    found.append(compared("what the load adds, a point mass fitted", carried, added, against))
    found.append(Figure(DATA, "mass of the load, a point mass", mass, "kg", LOAD))
    return [*found, *identified(data)]


def identified(data: Path) -> list[Finding | Figure]:
    """What all parameters found on one log explain of another, what the load is, and the gains of the drives."""
    folder = data / "real" / "ur10e"
    arm = with_friction(nd.load_urdf(folder / "ur10e.urdf"), NARROW, PRESLIDING)
    paths = [folder / f"{name}.csv.gz" for name in ("exciting_1", "exciting_2", "exciting_2_load")]
    first, second, loaded = (nd.read_log(path, beside("ur10e.log.yaml")) for path in paths)
    every = nd.identify(first, arm, ALL, held_out=second, cutoff=CUTOFF, differentiate=WINDOW)
    moved = nd.identify(first, arm, ALL, held_out=second, cutoff=CUTOFF, differentiate=WINDOW, moving=MOVING)
    found: list[Finding | Figure] = [
        judged(DATA, "torques, all parameters identified on another log", AGAINST, JOINTS, every),
        judged(DATA, "torques of joints that move, all identified on another log", AGAINST, JOINTS, moved),
        Figure(DATA, "combinations of parameters that are identifiable", moved.base.rank),
        Figure(DATA, "independent ones that the first log identifies", moved.n_identified),
    ]
    both = nd.identify(
        [first, second],
        arm,
        ALL,
        loaded=loaded,
        load_on="wrist_3_link",
        held_out=0,
        cutoff=CUTOFF,
        differentiate=WINDOW,
        moving=MOVING,
    )
    mass = both.load["m:load"]
    found.append(Figure(DATA, "mass of the load, by these gains", mass, "kg", LOAD, both.deviations["m:load"]))
    for axis in "xyz":
        name = f"mc:load.{axis}"
        at, off = both.load[name] / mass, both.deviations[name] / mass
        found.append(Figure(DATA, f"centre of the load in the frame of the last link, {axis}", at, "m", deviation=off))
    currents = [nd.read_log(path, beside("ur10e_currents.log.yaml")) for path in paths]
    driven = nd.identify(
        currents[:2],
        arm,
        [*ALL, "gains"],
        loaded=currents[2],
        load_on="wrist_3_link",
        known={"m:load": LOAD},
        held_out=0,
        cutoff=CUTOFF,
        differentiate=WINDOW,
        moving=MOVING,
    )
    for joint, (reading, gain), expected in zip(JOINTS, driven.gains.items(), GAINS, strict=True):
        off = driven.deviations[f"gain:{reading}"]
        found.append(Figure(DATA, f"gain of the drive, mass of the load known: {joint}", gain, "N m/A", expected, off))
    return found


def together(one: JointTorques, other: JointTorques) -> tuple[slice, slice]:
    """Which samples of two drives are of the same points of one trajectory, as long as both last."""
    n = min(len(one.t), len(other.t)) - 2 * LATE

    def apart(late: int) -> float:
        return float(np.abs(one.q[LATE + late : LATE + late + n] - other.q[LATE : LATE + n]).max())

    late = min(range(-LATE, LATE + 1), key=apart)
    return slice(LATE + late, LATE + late + n), slice(LATE, LATE + n)


def carrying(tree: nd.KinematicTree, mass: float, moment: Floats) -> nd.KinematicTree:
    """An arm with a mass at its last link, of a first moment (3,) [kg m], without extent."""
    x, y, z = moment
    cross = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    I = tree.I.copy()
    I[-1] += np.block([[np.zeros((3, 3)), cross], [cross.T, mass * np.eye(3)]])
    return tree.replace(I=I)


def fitted_load(load: Callable[[float, Floats], Floats], added: Floats) -> tuple[float, Floats]:
    """Mass [kg] and first moment (3,) [kg m] of the load that adds most nearly some torques (n, nv).

    Args:
        load: what a load of a mass and a first moment adds (n, nv).
        added: what was added.
    """
    units = [(1.0, np.zeros(3)), *((0.0, row) for row in np.eye(3))]
    columns = [load(*unit).ravel() for unit in units]
    mass, *moment = np.linalg.lstsq(np.stack(columns, axis=1), added.ravel(), rcond=None)[0].tolist()
    return mass, np.array(moment)


def compared(estimate: str, tau: Floats, measured: Floats, against: str = AGAINST) -> Finding:
    """How far torques are from those measured."""
    return held_against(DATA, estimate, against, JOINTS, ("N m",), tau, measured)

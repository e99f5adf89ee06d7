"""Logs in other units: what comes of them is right, or doubted by name, and never wrong in silence.

Arms move at random, and what they do is logged in units and under names at random: degrees, or some columns in degrees,
stamps in milliseconds, names that say a unit and mean it, or not. Each log is estimated from as it is, through the
mapping that `map` drafts, and identified from. What is right is told by Pinocchio's torques.
"""

import random
import re
import warnings
from functools import cache
from pathlib import Path
from typing import NamedTuple

import numpy as np

import nori_dyn as nd
from nori_dyn.errors import NoriError, NoriWarning
from nori_dyn.logs.drafts.draft import draft
from nori_dyn.logs.formats.registry import open_log
from nori_dyn.logs.mapping.record import ALWAYS, SampleRecord
from nori_dyn.model.tree import KinematicTree
from tests.peers import pin
from tests.robots import ROBOTS, load, pinocchio_model, to_pinocchio, velocity_map

LOGS = 60
"""Logs at scale 1."""

DEGREE = np.pi / 180
FACTORS = {"rad": 1.0, "deg": 1 / DEGREE}
TIMES = {"s": 1.0, "ms": 1e3, "us": 1e6, "ns": 1e9}

RIGHT = 1e-3
"""Share of the torques by which estimates may be off and are right: columns have ten digits."""

FITS = 0.1
"""Share of their spread by which identified torques may be off what was held out, and are right."""

ARMS = {"ur5": {}, "xarm7": {}, "panda": {"locked": ("panda_finger_joint1", "panda_finger_joint2")}}

NAMES = {
    "as they are called here": ("q[{k0}]", "qd[{k0}]", "qdd[{k0}]", "tau[{k0}]"),
    "by words": ("pos_{k1}", "vel_{k1}", "acc_{k1}", "torque_{k1}"),
    "by joints": ("{joint}_position", "{joint}_velocity", "{joint}_acceleration", "{joint}_effort"),
    "with units": ("pos_{unit}_{k1}", "vel_{unit}_{k1}", "acc_{unit}_{k1}", "torque_{k1}"),
}


UNITS = [
    *(("rad", "rad", "rad"), ("deg", "deg", "deg"), ("deg", "rad", "rad"), ("rad", "deg", "deg")),
    *(("rad", "rad", "deg"), ("deg", "deg", "rad"), ("rad", "deg", "rad")),
]


class Case(NamedTuple):
    """A log.

    Attributes:
        robot: the arm.
        names: how its columns are called.
        units: of q, qd and qdd.
        said: what names with units say, of each.
        time: the unit of its stamps.
        clock: what the column of stamps is called.
        seed: of the motion.
    """

    robot: str
    names: str
    units: tuple[str, str, str]
    said: tuple[str, str, str]
    time: str
    clock: str
    seed: int

    @staticmethod
    def drawn(rng: random.Random) -> "Case":
        units = rng.choice(UNITS)
        said = units if rng.random() < 0.6 else tuple(rng.choice(["rad", "deg"]) for _ in range(3))
        time = rng.choice(["s", "s", "ms", "us", "ns"])
        clock = rng.choice(["t", "time", "stamp", f"time_{time}"])
        return Case(rng.choice([*ARMS]), rng.choice([*NAMES]), units, said, time, clock, rng.randrange(10**6))


NAMED = re.compile(r"'\w+_joint\w*'|'joint\d'|\bevery joint|\bany joint|\blog\.csv|\btime goes on")
"""What a doubt names: joints, or the log, or its clock."""


class Moved(NamedTuple):
    """What an arm did, in SI."""

    t: np.ndarray
    q: np.ndarray
    qd: np.ndarray
    qdd: np.ndarray
    tau: np.ndarray


@cache
def arm(name: str) -> KinematicTree:
    return load(name, clean=False, **ARMS[name])


@cache
def plan(name: str) -> nd.Plan:
    return nd.plan(nd.System(arm(name), "inverse_dynamics"), outputs=["tau"])


def moved(case: Case) -> Moved:
    """A smooth motion about the middle of each joint's range, and Pinocchio's torques."""
    tree, model = arm(case.robot), pinocchio_model(ROBOTS[case.robot])
    rng = np.random.default_rng(case.seed)
    dt, n = rng.choice([0.002, 0.005, 0.01]), int(rng.integers(400, 1200))
    t = dt * np.arange(n)
    lower, upper = np.array([joint.limits for joint in tree.joints]).T
    size = np.minimum(rng.uniform(0.4, 1.2, tree.nv), 0.45 * (upper - lower))
    speed, phase = rng.uniform(1.0, 3.0, tree.nv), rng.uniform(0, 6, tree.nv)
    middle = np.clip(0.0, lower + size, upper - size)
    angle = np.outer(t, speed) + phase
    q, qd, qdd = middle + size * np.sin(angle), size * speed * np.cos(angle), -size * speed**2 * np.sin(angle)
    data, tau = model.createData(), []
    for one in zip(q, qd, qdd, strict=True):
        q_pin, v = to_pinocchio(tree, model, *one[:2])
        P = velocity_map(tree, model, one[0])
        tau.append(P.T @ pin.rnea(model, data, q_pin, v, P @ one[2]))
    return Moved(t, q, qd, qdd, np.array(tau))


def written(case: Case, of: Moved, path: Path) -> Path:
    """Write a log, in its units and under its names."""
    columns = {case.clock: TIMES[case.time] * of.t}
    arrays = zip(NAMES[case.names], (of.q, of.qd, of.qdd, of.tau), (*case.units, ""), (*case.said, ""), strict=True)
    for pattern, array, unit, said in arrays:
        for k, joint in enumerate(arm(case.robot).joint_names):
            columns[pattern.format(k0=k, k1=k + 1, joint=joint, unit=said)] = FACTORS.get(unit, 1.0) * array[:, k]
    table = np.column_stack(list(columns.values()))
    np.savetxt(path, table, delimiter=",", header=",".join(columns), comments="", fmt="%.12g")
    return path


def as_it_is(case: Case, of: Moved, path: Path) -> tuple[bool, list[str]]:
    """Estimate from a log as it is; return whether that is right, and what is doubted."""
    found = nd.estimate(path, plan(case.robot))
    return is_right(found["tau"], of), [each.message for each in found.report.doubts]


def by_a_draft(case: Case, of: Moved, path: Path) -> tuple[bool, list[str]]:
    """Estimate from a log through the mapping that is drafted for it."""
    with open_log(str(path)) as source:
        made = draft(source, SampleRecord.of({ALWAYS: plan(case.robot).system}))
    found = nd.estimate(nd.read_log(path, made.data()), plan(case.robot))
    return is_right(found["tau"], of), [each.message for each in found.report.doubts]


def identified(case: Case, of: Moved, path: Path) -> tuple[bool, list[str]]:
    """Identify friction from a log through the mapping that is drafted for it: what fits is right."""
    tree = arm(case.robot)
    with open_log(str(path)) as source:
        made = draft(source, SampleRecord.of({ALWAYS: nd.System(tree, "identification")}))
    found = nd.identify(nd.read_log(path, made.data()), tree, ["friction"], physical=False)
    return all(fit.held_out < FITS * fit.spread for fit in found.fits), [*found.doubts]


def is_right(tau: np.ndarray, of: Moved) -> bool:
    return bool(np.abs(tau - of.tau).max() < RIGHT * np.abs(of.tau).max())


WAYS = {"as it is": as_it_is, "by a draft": by_a_draft, "identified": identified}


def judged(case: Case, way: str, path: Path) -> str:
    """One of "right", "doubted" or "refused".

    Raises:
        AssertionError: it is wrong, and nothing is said, or not of what.
    """
    of, problem = moved(case), ""
    written(case, of, path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", NoriWarning)
        try:
            right, doubts = WAYS[way](case, of, path)
        except NoriError as error:
            right, doubts, problem = False, [str(error)], "refused"
    assert right or any(NAMED.search(each) for each in doubts), (case, way, doubts)
    return problem or ("right" if right else "doubted")


def test_other_units_are_right_or_doubted_by_name(attack_scale, attack_seed, attacked, tmp_path):
    for number in range(max(4, round(attack_scale * LOGS))):
        rng = random.Random(f"{attack_seed} {number}")
        case, way = Case.drawn(rng), rng.choice([*WAYS])
        if way == "as it is":
            case = case._replace(names="as they are called here", clock="t")
        judged(case, way, tmp_path / "log.csv")
        attacked("logs in other units", 1)

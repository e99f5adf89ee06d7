"""Bands of the torques from outside on a real UR10e that nothing touches: how often the truth, zero, is in them.

The model, its friction with the weight that joints carry, and the scatter of that are found on two logs. Then each log
is filtered: the torque from outside of each joint is an offset of its reading of which nothing is known beforehand.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

import nori_dyn as nd
from benchmarks.real.finding import Figure, Finding
from benchmarks.real.identified import judged, with_friction
from benchmarks.real.recording import beside
from benchmarks.real.ur10e import AGAINST, ALL, CUTOFF, DATA, JOINTS, MOVING, NARROW, PRESLIDING, WINDOW
from nori_dyn.typing import Booleans, Floats

LOGS = "exciting_1", "exciting_2", "one_joint_2", "one_joint_5"
"""All logs in which nothing touches the arm."""
FRICTION = "weight_friction", "quadratic_friction"
"""What is looked for of friction beside viscous and Coulomb's."""
FAST, STILL = 0.05, 0.002
"""Speed above which a joint is in motion, and up to which it stands still [rad/s]; between, it turns back."""
STANDSTILL = 25
"""Samples that a joint stands still for at the least, where that counts."""
UNKNOWN, LASTS = 100.0, 0.5
"""Deviation of a torque from outside, in that of the friction of a joint that moves, and how long it lasts [s]."""
HAND, STAYS = "wrist_3_link", 1e4
"""What carries the load, and for how long it does [s]."""
STARTS, ENDS = 1.7, 53.3
"""When the arm moves with it [s]."""
BEGINS = 50
"""Samples at the beginning of a log that do not count."""


def run(data: Path) -> list[Finding | Figure]:
    """What came of the data set."""
    folder = data / "real" / "ur10e"
    robot, logs, found, noise = identified(folder)
    title = "torques of joints that move, with friction by weight and squared velocity"
    results: list[Finding | Figure] = [judged(DATA, title, AGAINST, JOINTS, found)]
    scatter = np.array([fit.held_out for fit in found.fits])
    plan = nd.plan(nd.System(robot, sensors(robot, scatter, noise)), outputs=names(robot))
    counts = np.zeros(8)
    for log in logs.values():
        counts += counted(nd.smooth(log, plan, differentiate=WINDOW, causal=True), robot)
    moving, reversing, standing = counts[0] / counts[1], counts[2] / counts[3], counts[4]
    results += [
        Figure(DATA, "share of samples in motion with zero in the 95 % band of the torque from outside", moving),
        Figure(DATA, "share of samples at which joints turn back with zero in it", reversing),
        Figure(DATA, "standstills with their mean in it", standing, expected=counts[5]),
        Figure(DATA, "standstills with all of their samples in it", counts[6], expected=counts[5]),
        Figure(DATA, "half of the widest band at rest, by the largest friction there", counts[7] / len(logs)),
    ]
    loaded = nd.read_log(folder / "exciting_2_load.csv.gz", beside("ur10e.log.yaml"))
    both = nd.identify(
        [*list(logs.values())[:2]],
        with_friction(nd.load_urdf(folder / "ur10e.urdf"), NARROW, PRESLIDING),
        [*ALL, *FRICTION],
        loaded=loaded,
        load_on=HAND,
        held_out=0,
        cutoff=CUTOFF,
        differentiate=WINDOW,
        moving=MOVING,
    )
    return [*results, *lifted(robot, noise, loaded, both.load["m:load"])]


def identified(folder: Path) -> tuple[nd.KinematicTree, dict[str, nd.Log], nd.results.Identification, Floats]:
    """The arm with its friction, the logs in which nothing touches it, what was found, and noise at rest (n,) [N m]."""
    arm = with_friction(nd.load_urdf(folder / "ur10e.urdf"), NARROW, PRESLIDING)
    logs = {name: nd.read_log(folder / f"{name}.csv.gz", beside("ur10e.log.yaml")) for name in LOGS}
    how = {"held_out": logs["exciting_2"], "differentiate": WINDOW, "moving": MOVING, "cutoff": CUTOFF}
    found = nd.identify(logs["exciting_1"], arm, [*ALL, *FRICTION], **how)
    return found.with_stiction(), logs, found, np.array([fit.noise_at_rest for fit in found.fits])


def torque_rows(robot: nd.KinematicTree, noise: Floats) -> list[dict[str, object]]:
    """Sensors of an arm whose motion is known, which nothing touches, and whose torques have noise (n,) [N m]."""
    rows: list[dict[str, object]] = [
        {"type": "joint_acceleration", "joints": "all"},
        {"type": "external_wrench", "links": "all", "value": 0},
    ]
    each = zip(robot.joint_names, noise.tolist(), strict=True)
    return [*rows, *({"type": "joint_torque", "joints": name, "sigma": sigma} for name, sigma in each)]


def lifted(robot: nd.KinematicTree, noise: Floats, log: nd.Log, expected: float) -> list[Finding | Figure]:
    """The mass of the load [kg] tick by tick, and what it is by the whole log."""
    carrying = robot.replace(components=(*robot.components, nd.components.UnknownPayload(link=HAND, change=STAYS)))
    content = {"name": "lifting", "measurements": torque_rows(robot, noise), "memory": {"load": {"of": "payload"}}}
    plan = nd.plan(nd.System(carrying, nd.SensorSet.from_dict(content)), outputs=[f"payload:{HAND}"])
    found = nd.smooth(log, plan, differentiate=WINDOW, causal=True)
    mass, off = (each[f"payload:{HAND}"][:, 0] for each in (found.values, found.deviations))
    places = np.searchsorted(found.t - found.t[0], [STARTS + 10.0, ENDS]).tolist()
    return [
        Figure(
            DATA,
            f"mass of the load after {when} of motion, tick by tick; by whole logs",
            mass[k],
            "kg",
            expected,
            off[k],
        )
        for when, k in zip(("10 s", "all"), places, strict=True)
    ]


def names(robot: nd.KinematicTree) -> list[str]:
    """The torques from outside, as outputs."""
    return [f"offset:tau:{name}" for name in robot.joint_names]


def sensors(robot: nd.KinematicTree, scatter: Floats, noise: Floats) -> nd.SensorSet:
    """Torques of an arm with noise (n,) [N m], and from outside, of which nothing is known."""
    rows = torque_rows(robot, noise)
    known, acting = rows[: -robot.nv], rows[-robot.nv :]
    torques = [{**row, "offset": {"sigma": UNKNOWN * scatter[k]}} for k, row in enumerate(acting)]
    memory = {
        name: {"of": name, "walk": UNKNOWN * scatter[k] * np.sqrt(2 / LASTS), "time_constant": LASTS}
        for k, name in enumerate(names(robot))
    }
    return nd.SensorSet.from_dict({"name": "outside", "measurements": [*known, *torques], "memory": memory})


def counted(found: nd.results.LogHistory, robot: nd.KinematicTree) -> Floats:
    """How often zero is in the bands, of how many: in motion, turning back, standing, all along; and the widest."""
    counts = np.zeros(8)
    for name, qd, level in zip(names(robot), found.samples.qd.T, levels(robot, found.samples.q).T, strict=True):
        off, band = np.abs(found[name].ravel()), found.bands[name].ravel()
        speed, inside, counting = np.abs(qd), off < band, np.arange(len(qd)) >= BEGINS
        fast, slow = (speed > FAST) & counting, (speed > STILL) & (speed <= FAST) & counting
        counts[:4] += inside[fast].sum(), fast.sum(), inside[slow].sum(), slow.sum()
        for part in standstills(speed <= STILL):
            mean = np.abs(np.mean(found[name].ravel()[part]))
            counts[4:7] += mean < band[part].mean(), 1, inside[part].all()
            counts[7] = max(counts[7], float((band[part] / level[part]).max()))
    return counts


def levels(robot: nd.KinematicTree, q: Floats) -> Floats:
    """The largest torque (n, nv) that friction may have at rest."""
    rigid = robot.replace(components=())
    weight = np.abs(nd.compile(nd.rnea, rigid).batch(q, np.zeros_like(q), np.zeros_like(q)))
    frictions = [each for each in robot.components if isinstance(each, nd.components.Friction)]
    by_joint = {robot.joint_names[i]: each for each in frictions for i in each.joints_on(robot)}
    own = [by_joint[name] for name in robot.joint_names]
    return np.array([each.coulomb for each in own]) + np.array([each.mu for each in own]) * weight


def standstills(is_still: Booleans) -> list[slice]:
    """The stretches of samples during which a joint stands still."""
    ends = np.flatnonzero(np.diff(np.concatenate([[0], is_still.astype(int), [0]])))
    return [slice(a, b) for a, b in zip(ends[::2], ends[1::2], strict=True) if b - a >= STANDSTILL]

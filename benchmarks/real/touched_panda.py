"""A Panda in MuJoCo that is touched anywhere on its surface while it moves: link, force and point are known.

It follows slow sums of sines over most of its range by its dynamics, a spring and a damper a joint. Every .3 s a force
of 10 to 50 N pushes for .15 s at a random point of its collision meshes, where other links leave a centimetre of room,
into the surface, within 30 degrees of its normal. Joint positions, velocities and torques, and the wrench between its
base and its first link, are read with noise at 1 kHz. `python -m benchmarks.real.touched_panda` prints how often the
link is right, how far points are off, and what a tick takes; with the base's force-torque sensor and without. Without
it accelerations are read as well, as differences of velocities, which tell a touch from a motion at its first tick.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import nori_dyn as nd
from benchmarks.urdf_writer import link_name, to_urdf
from nori_dyn.descriptions.surfaces import CLEARANCE, OUTSIDE
from nori_dyn.io.extras import needed
from nori_dyn.model.kinematics import positions
from nori_dyn.tables import Document, Table
from nori_dyn.typing import Booleans, Floats

DT = 0.001
LOCKED = ("panda_finger_joint1", "panda_finger_joint2")

FREE, TOUCHED = 150, 150
"""Ticks between touches, and of each."""

LOOKS = (20, 50, 100, 149)
"""Ticks after which a touch is looked at."""

FORCES, CONE = (10.0, 50.0), np.deg2rad(30.0)

STIFFNESS = np.array([600.0, 600.0, 600.0, 600.0, 250.0, 150.0, 50.0])
DAMPING = np.array([30.0, 30.0, 30.0, 30.0, 10.0, 8.0, 4.0])
"""Of the joints [N m/rad, N m s/rad]: about what a Panda has by default."""

LOWEST = np.array([-2.5, -1.5, -2.5, -2.8, -2.5, 0.3, -2.5])
HIGHEST = np.array([2.5, 1.5, 2.5, -0.3, 2.5, 3.4, 2.5])

POSITION, VELOCITY, TORQUE = 4e-6, 1e-3, 0.05
"""Deviations of encoders, of velocities by them, and of joint torque sensors [rad, rad/s, N m]."""

BASE = [0.02, 0.02, 0.02, 0.2, 0.2, 0.2]
"""Deviation of a six-axis sensor of 1 kN, moments first [N m, N]."""

DIFFERENCES = 2.0
"""Deviation of accelerations by differences of velocities [rad/s^2], a little above theirs: velocities count twice."""


@dataclass(frozen=True, slots=True, eq=False)
class Touches:
    """What is read of a Panda that is touched, and what is true.

    Attributes:
        q, qd, tau: read, each (n, 7).
        base: wrench that is read between its base and its first link (n, 6).
        links, points, forces: of each touch, in link coordinates (m,), (m, 3), (m, 3).
    """

    q: Floats
    qd: Floats
    tau: Floats
    base: Floats
    links: list[int]
    points: Floats
    forces: Floats


def touched(
    tree: nd.KinematicTree, surfaces: list[nd.tools.Surface], n: int, seed: int = 0, vary: bool = False
) -> Touches:
    """What is read of a Panda that is touched n times.

    Args:
        tree: the robot.
        surfaces: of each link.
        n: number of touches.
        seed: of motion, touches and noise.
        vary: whether forces rise in 30 ms, and vary by 30 % five times a second.
    """
    rng, mujoco = np.random.default_rng(seed), needed("the simulation", "mjcf", "mujoco")
    model, bodies = _model(mujoco, tree)
    data = mujoco.MjData(model)
    steps = n * (FREE + TOUCHED)
    planned = _motion(np.arange(steps) * DT, rng)
    torques = nd.compile(nd.rnea, tree).batch(*planned)
    read = [np.empty((steps, size)) for size in (7, 7, 7, 6)]
    links: list[Any] = []
    points: list[Any] = []
    forces: list[Any] = []
    data.qpos[:], data.qvel[:] = planned[0][0], planned[1][0]
    for k in range(steps):
        at = k % (FREE + TOUCHED)
        if at == FREE:
            link, point, force = _touch(tree, surfaces, data.qpos.copy(), rng)
            for found, one in zip((links, points, forces), (link, point, force), strict=True):
                found.append(one)
        tau = torques[k] + STIFFNESS * (planned[0][k] - data.qpos) + DAMPING * (planned[1][k] - data.qvel)
        data.qfrc_applied[:], data.xfrc_applied[:] = tau, 0.0
        if at >= FREE:
            mujoco.mj_kinematics(model, data)
            mujoco.mj_comPos(model, data)
            body = bodies[links[-1]]
            R = data.xmat[body].reshape(3, 3)
            arm = data.xpos[body] + R @ points[-1] - data.xipos[body]
            t = (at - FREE + 1) * DT
            size = min(1.0, t / 0.03) * (1 + 0.3 * np.sin(10 * np.pi * t)) if vary else 1.0
            force = size * R @ forces[-1]
            data.xfrc_applied[body] = *force, *np.cross(arm, force)
        read[0][k], read[1][k], read[2][k] = data.qpos, data.qvel, tau
        mujoco.mj_step(model, data)  # reads sensors before it moves on
        read[3][k] = data.sensordata
    noise = POSITION, VELOCITY, TORQUE, BASE
    noisy = (x + s * rng.normal(size=x.shape) for x, s in zip(read, noise, strict=True))
    return Touches(*noisy, links, np.array(points), np.array(forces))


def _model(mujoco: Any, tree: nd.KinematicTree) -> tuple[Any, list[int]]:
    """The arm in MuJoCo, with the wrench on its first link as sensors, and its bodies."""
    spec = mujoco.MjSpec.from_string(to_urdf(tree))
    spec.compiler.fusestatic = spec.compiler.balanceinertia = False
    spec.compiler.boundmass = spec.compiler.boundinertia = 0.0
    spec.option.gravity, spec.option.timestep = tree.gravity, DT
    spec.body(link_name(tree.names[0])).add_site(name="base")
    for kind in (mujoco.mjtSensor.mjSENS_TORQUE, mujoco.mjtSensor.mjSENS_FORCE):
        spec.add_sensor(type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname="base")
    model = spec.compile()
    return model, [model.body(link_name(name)).id for name in tree.names]


def _motion(t: Floats, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    w, phase = 2 * np.pi * rng.uniform(0.05, 0.3, (4, 7)), rng.uniform(0, 2 * np.pi, (4, 7))
    size, at = (HIGHEST - LOWEST) / 2 / np.sqrt(8), np.multiply.outer(t, w) + phase
    q = (LOWEST + HIGHEST) / 2 + np.sum(size * np.sin(at), axis=1)
    return q, np.sum(size * w * np.cos(at), axis=1), -np.sum(size * w**2 * np.sin(at), axis=1)


def _touch(
    tree: nd.KinematicTree, surfaces: list[nd.tools.Surface], q: Floats, rng: np.random.Generator
) -> tuple[int, Floats, Floats]:
    """A link at random, a point on it that no other covers at a configuration, and a force into the surface."""
    poses = positions(tree, q).X_0
    while True:
        link = int(rng.integers(tree.n_links))
        one = nd.tools.Surface.of(surfaces[link].triangles, 0.05, int(rng.integers(2**31)))
        k = rng.integers(len(one.points))
        point, normal = one.points[k], one.normals[k]
        world = poses[link].E.T @ (point + CLEARANCE * normal) + poses[link].r
        others = (j for j in range(tree.n_links) if j != link)
        covered = any(surfaces[j].encloses((poses[j].E @ (world - poses[j].r))[None])[0] for j in others)
        if not covered and not surfaces[link].encloses((point + OUTSIDE * normal)[None])[0]:
            break
    across = np.cross(normal, rng.normal(size=3))
    angle = np.arccos(rng.uniform(np.cos(CONE), 1.0))
    direction = np.sin(angle) * across / np.linalg.norm(across) - np.cos(angle) * normal
    return link, point, rng.uniform(*FORCES) * direction


def sensors(with_base: bool) -> nd.SensorSet:
    """The sensors of the arm."""
    rows: list[dict[str, object]] = [{"type": "joint_torque", "joints": "all", "sigma": TORQUE}]
    if with_base:
        rows.append({"type": "force_torque", "joints": {"at": 0}, "sigma": BASE})
    else:
        rows.append({"type": "joint_acceleration", "joints": "all", "sigma": DIFFERENCES})
    memory = {"speed": {"of": "qd", "rate": "qdd", "noise": VELOCITY}}
    return nd.SensorSet.from_dict({"name": "touch", "measurements": rows, "memory": memory, "touch": {"links": "all"}})


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """What a localizer says of touches.

    Attributes:
        right: whether the likeliest link is the true one, by `LOOKS` (looks, m).
        said: the probability that it gave that link (looks, m).
        off: how far the point on the true link is off [m]; nan where that is not likely.
        alarms: the share of ticks without a touch at which there seems to be one, from .1 s after the last touch on.
        tick: median time of a tick [s].
    """

    right: Booleans
    said: Floats
    off: Floats
    alarms: float
    tick: float


def localized(tree: nd.KinematicTree, read: Touches, surfaces: dict[str, nd.tools.Surface], with_base: bool) -> Found:
    """What a localizer says of touches."""
    plan = nd.plan(tree, sensors(with_base), outputs=["fx"])
    localizer = nd.tools.ContactLocalizer(nd.Tracker(plan, DT, hypotheses=nd.Hypotheses(rate=0.5)), surfaces)
    differences = np.diff(read.qd, axis=0, append=read.qd[-1:]) / DT
    readings = np.hstack([read.tau, read.base if with_base else differences])
    right, said, off = (np.full((len(LOOKS), len(read.links)), np.nan) for _ in range(3))
    times, alarms = [], []
    for k, (q, qd, y) in enumerate(zip(read.q, read.qd, readings, strict=True)):
        begun = time.perf_counter()
        found = localizer.step(q, qd, y)
        times.append(time.perf_counter() - begun)
        touch, at = divmod(k, FREE + TOUCHED)
        if 100 <= at < FREE:
            alarms.append(found.link is not None)
        if at - FREE in LOOKS:
            look, true = LOOKS.index(at - FREE), tree.names[read.links[touch]]
            right[look, touch] = found.link == true
            said[look, touch] = found.contact.probability if found.contact else found.free
            own = next((one.point for one in found.links if one.link == true and one.point is not None), None)
            off[look, touch] = np.nan if own is None else np.linalg.norm(own - read.points[touch])
    return Found(right.astype(bool), said, off, float(np.mean(alarms)), float(np.median(times)))


def tables(tree: nd.KinematicTree, read: Touches, found: Found, localized: Collection[str]) -> Iterator[Table]:
    """Yield how often links are right and how far points are off, over time and by link."""
    rows = zip(LOOKS, found.right.mean(1), found.said.mean(1), np.nanmedian(found.off, axis=1), strict=True)
    columns = ("after [ms]", "link right [%]", "as probable [%]", "point off, median [cm]")
    notes = (
        f"{len(read.links)} touches; a tick takes {1e3 * found.tick:.2f} ms. "
        f"Without a touch {100 * found.alarms:.2g} % of ticks have one.",
    )
    yield Table("Over time", columns, tuple((k, 100 * r, 100 * p, 100 * off) for k, r, p, off in rows), notes)
    links, each = np.array(read.links), []
    for i, name in enumerate(tree.names):
        own = links == i
        off = 100 * np.nanmedian(found.off[-1, own])
        rank = "yes" if name in localized else "no"
        each.append((name, rank, int(own.sum()), 100 * found.right[-1, own].mean(), off))
    columns = ("link", "localized by rank", "touches", "link right [%]", "point off, median [cm]")
    yield Table("By the link that is touched, at its end", columns, tuple(each), left=(0, 1))


def main() -> None:
    """Print how often links are right and how far points are off, with a base sensor and without."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--touches", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--vary", action="store_true", help="forces that rise in 30 ms, and vary by 30 %%")
    given = parser.parse_args()
    tree = nd.load_robot("panda", locked=LOCKED)
    surfaces = nd.tools.surfaces("panda", tree)
    read = touched(tree, [surfaces[name] for name in tree.names], given.touches, given.seed, given.vary)
    for title, with_base in (("With a force-torque sensor at the base", True), ("Joint torques only", False)):
        known = nd.tools.touch_observability(tree, sensors(with_base)).localized
        found = localized(tree, read, surfaces, with_base)
        print(Document((title, *tables(tree, read, found, known))).text(120), end="\n\n")


if __name__ == "__main__":
    main()

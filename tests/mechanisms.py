"""Mechanisms with closed loops, built by hand: bars, a Delta robot, a Stewart platform, a sprung leg.

Each is closed at its neutral configuration. Its loops have independent rows, and its links
come depth first, which Pinocchio's algorithms on constraints ask for.
"""

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from nori_dyn.algebra.spatial import Transform, spatial_inertia
from nori_dyn.components import Component, Loop, Rotor, Spring
from nori_dyn.descriptions.sensor_configs import sensors
from nori_dyn.model.closure import closed
from nori_dyn.model.joints import Free, Joint, Prismatic, Revolute
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import WORLD, Frame, KinematicTree
from nori_dyn.system.builder import System
from tests.oracles import poses

Floats = NDArray[np.float64]

X_AXIS, Y_AXIS, Z_AXIS = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
DOWN = (0.0, -9.81, 0.0)
"""Gravity of mechanisms in the plane of x and y."""

CRANK, COUPLER, ROCKER, GROUND = 0.3, 1.0, 0.8, 0.9
"""Lengths of the bars of the four-bar linkage [m]; by Grashof's rule its crank turns fully."""


class Link(NamedTuple):
    """A link by hand.

    Attributes:
        name: of the link, and of its joint.
        parent: name of its parent; None on the world.
        joint: how it moves.
        position: of its joint in the parent's link frame [m].
        rotation: of its joint's axes in the parent's (3, 3).
        I: its spatial inertia (6, 6).
    """

    name: str
    parent: str | None
    joint: Joint
    position: Iterable[float]
    rotation: Floats
    I: Floats


def tree_of(
    name: str,
    links: Iterable[Link],
    frames: Mapping[str, tuple[str | None, Iterable[float]]],
    components: Iterable[Component] = (),
    **options: tuple[float, float, float],
) -> KinematicTree:
    """A robot of links, with frames by link and position, parallel to their links."""
    links = list(links)
    names = tuple(link.name for link in links)
    number = {None: WORLD} | {link: i for i, link in enumerate(names)}
    return KinematicTree(
        name,
        names,
        names,
        tuple(number[link.parent] for link in links),
        tuple(link.joint for link in links),
        tuple(Transform(link.rotation.T, np.array(link.position, dtype=float)) for link in links),
        np.array([link.I for link in links]),
        {key: Frame(number[link], shift(place)) for key, (link, place) in frames.items()},
        components=tuple(components),
        **options,
    )


def shift(place: Iterable[float]) -> Transform:
    """The transform to a parallel frame at a place."""
    return Transform(np.eye(3), np.array(place, dtype=float))


def bar(length: float, mass: float, along: int = 0) -> Floats:
    """The spatial inertia (6, 6) of a slender bar from the origin along an axis."""
    axis = np.eye(3)[along]
    return spatial_inertia(mass, length / 2 * axis, mass * length**2 / 12 * (np.eye(3) - np.outer(axis, axis)))


def turn(angle: float) -> Floats:
    """The rotation (3, 3) about z."""
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def leading(direction: Floats, along: int) -> Floats:
    """A rotation (3, 3) whose column `along` is a direction."""
    u = direction / np.linalg.norm(direction)
    v = np.cross(u, np.eye(3)[np.argmin(np.abs(u))])
    v /= np.linalg.norm(v)
    return np.roll(np.stack([u, v, np.cross(u, v)], axis=1), along, axis=1)


def in_plane(name: str, first: str, second: str, stabilisation: dict[str, float] | None = None) -> Loop:
    """A hinge about z that closes a loop in the plane: the two rows that say something."""
    return Loop(name=name, frames=[first, second], constrains=["fx", "fy"], stabilisation=stabilisation)


def meeting(first: Floats, r_1: float, second: Floats, r_2: float) -> Floats:
    """The point (2,) at distances r_1 and r_2 from two points, to the left of the way from one to the other."""
    way = second - first
    d = float(np.hypot(*way))
    along = (d * d + r_1 * r_1 - r_2 * r_2) / (2 * d)
    across = np.sqrt(r_1 * r_1 - along * along)
    u = way / d
    return first + along * u + across * np.array([-u[1], u[0]])


def planar_angle(start: Floats, end: Floats) -> float:
    """The angle of the way from one point to another [rad]."""
    return float(np.arctan2(*(end - start)[::-1]))


@lru_cache
def four_bar(theta: float = 0.7) -> KinematicTree:
    """A crank, a coupler and a rocker in the plane of x and y; q is zero where the crank is at an angle."""
    elbow = CRANK * np.array([np.cos(theta), np.sin(theta)])
    pivot = np.array([GROUND, 0.0])
    meet = meeting(elbow, COUPLER, pivot, ROCKER)
    phi, psi = planar_angle(elbow, meet), planar_angle(pivot, meet)
    links = [
        Link("crank", None, Revolute(), (0, 0, 0), turn(theta), bar(CRANK, 1.5)),
        Link("coupler", "crank", Revolute(), (CRANK, 0, 0), turn(phi - theta), bar(COUPLER, 2.0)),
        Link("rocker", None, Revolute(), (GROUND, 0, 0), turn(psi), bar(ROCKER, 1.2)),
    ]
    frames = {"coupler_end": ("coupler", (COUPLER, 0, 0)), "rocker_end": ("rocker", (ROCKER, 0, 0))}
    return tree_of("four_bar", links, frames, [in_plane("pin", "coupler_end", "rocker_end")], gravity=DOWN)


@lru_cache
def five_bar() -> KinematicTree:
    """Two cranks that carry two rods, which meet: two freedoms, in the plane of x and y."""
    left, right, cranks, rods = np.array([-0.2, 0.0]), np.array([0.2, 0.0]), 0.4, 0.5
    angles = -0.75 * np.pi, -0.25 * np.pi
    elbows = [p + cranks * np.array([np.cos(a), np.sin(a)]) for p, a in zip((left, right), angles, strict=True)]
    meet = meeting(elbows[1], rods, elbows[0], rods)
    links = []
    for side, place, angle, elbow, mass in zip(("l", "r"), (left, right), angles, elbows, (0.8, 1.1), strict=True):
        bend = planar_angle(elbow, meet) - angle
        links.append(Link(f"{side}_crank", None, Revolute(), (*place, 0), turn(angle), bar(cranks, mass)))
        links.append(Link(f"{side}_rod", f"{side}_crank", Revolute(), (cranks, 0, 0), turn(bend), bar(rods, mass / 2)))
    frames = {f"{side}_end": (f"{side}_rod", (rods, 0, 0)) for side in ("l", "r")}
    return tree_of("five_bar", links, frames, [in_plane("tip", "l_end", "r_end")], gravity=DOWN)


@lru_cache
def sprung_leg() -> KinematicTree:
    """A trunk on a vertical guide, its leg a four-bar linkage with a spring; two geared motors at the hip."""
    hip, crank = np.zeros(2), np.array([0.08, 0.0])
    knee, elbow = np.array([-0.15, -0.35]), np.array([-0.05, -0.33])
    heel = meeting(elbow, 0.12, knee, 0.16)
    thigh, shin = planar_angle(hip, knee), -0.25 * np.pi
    a, b = planar_angle(crank, elbow), planar_angle(elbow, heel)
    on_shin = turn(-shin)[:2, :2] @ (heel - knee)
    links = [
        Link("trunk", None, Prismatic(Y_AXIS), (0, 0.8, 0), np.eye(3), spatial_inertia(6.0, np.zeros(3), np.eye(3))),
        Link("thigh", "trunk", Revolute(), (0, 0, 0), turn(thigh), bar(float(np.hypot(*knee)), 1.0)),
        Link("shin", "thigh", Revolute(), (np.hypot(*knee), 0, 0), turn(shin - thigh), bar(0.4, 0.5)),
        Link("crank", "trunk", Revolute(), (*crank, 0), turn(a), bar(float(np.hypot(*(elbow - crank))), 0.3)),
        Link("rod", "crank", Revolute(), (np.hypot(*(elbow - crank)), 0, 0), turn(b - a), bar(0.12, 0.2)),
    ]
    frames = {"rod_end": ("rod", (0.12, 0, 0)), "heel": ("shin", (*on_shin, 0))}
    components = [
        in_plane("heel", "rod_end", "heel"),
        Spring(joints="rod", stiffness=40.0, reference=0.2),
        Rotor(joints=["thigh", "crank"], inertia=2e-5, gear=30.0),
    ]
    return tree_of("sprung_leg", links, frames, components, gravity=DOWN)


def on_universal(name: str, parent: str | None, position: Floats, rotation: Floats, I: Floats, axes) -> list[Link]:
    """A link on a universal joint, and the massless cross that it turns on."""
    first, second = axes
    return [
        Link(f"{name}_cross", parent, Revolute(first), position, rotation, np.zeros((6, 6))),
        Link(name, f"{name}_cross", Revolute(second), (0, 0, 0), np.eye(3), I),
    ]


DELTA_BASE, DELTA_ARM, DELTA_PLATFORM, DELTA_WIDTH = 0.2, 0.25, 0.06, 0.04
"""Radius of the base, length of an arm, radius of the platform, half the distance of a pair of rods [m]."""

DELTA_ARM_MASS, DELTA_PLATFORM_MASS = 0.4, 0.7
DELTA_AZIMUTHS = 2 * np.pi / 3 * np.arange(3)
DELTA_TILT, DELTA_REST = 0.4, np.array([0.0, 0.0, -0.55])


def delta_platform() -> Link:
    """The platform of a Delta robot."""
    I = spatial_inertia(DELTA_PLATFORM_MASS, np.zeros(3), 1e-3 * np.diag([1.0, 1.0, 2.0]))
    return Link("platform", None, Free(), DELTA_REST, np.eye(3), I)


def delta_arm(k: int) -> Link:
    """An arm of a Delta robot: it turns about y of its azimuth."""
    R = turn(DELTA_AZIMUTHS[k])
    c, s = np.cos(DELTA_TILT), np.sin(DELTA_TILT)
    tilt = np.array([[c, 0, s], [0, 1, 0], [-s, 0, c]])
    return Link(f"arm{k}", None, Revolute(Y_AXIS), R @ [DELTA_BASE, 0, 0], R @ tilt, bar(DELTA_ARM, DELTA_ARM_MASS))


def delta_frames() -> dict[str, tuple[str, Floats]]:
    """The ends of all rods, on the arms and on the platform."""
    frames: dict[str, tuple[str, Floats]] = {}
    for k, azimuth in enumerate(DELTA_AZIMUTHS):
        for side, y in (("l", DELTA_WIDTH), ("r", -DELTA_WIDTH)):
            frames[f"elbow{k}{side}"] = (f"arm{k}", np.array([DELTA_ARM, y, 0]))
            frames[f"ball{k}{side}"] = ("platform", turn(azimuth) @ [DELTA_PLATFORM, y, 0])
    return frames


def delta_rods() -> dict[str, Floats]:
    """Each rod by name: the way from the elbow to the platform's ball, in the axes of the arm."""
    bare = tree_of("bare", [delta_platform(), *map(delta_arm, range(3))], delta_frames())
    R, o = poses(bare, bare.neutral_configuration())

    def place(name: str) -> Floats:
        frame = bare.frame(name)
        return o[frame.link] + R[frame.link] @ frame.X.r

    return {
        f"{k}{side}": R[1 + k].T @ (place(f"ball{k}{side}") - place(f"elbow{k}{side}"))
        for k in range(3)
        for side in ("l", "r")
    }


@lru_cache
def delta() -> KinematicTree:
    """A Delta robot: three arms, six rods with mass on universal joints and balls, a platform."""
    links, components, frames = [delta_platform()], [], delta_frames()
    for k in range(3):
        links.append(delta_arm(k))
        for side in ("l", "r"):
            way, name = delta_rods()[f"{k}{side}"], f"rod{k}{side}"
            length = float(np.linalg.norm(way))
            at = frames[f"elbow{k}{side}"][1]
            links += on_universal(name, f"arm{k}", at, leading(way, 0), bar(length, 0.05), (Y_AXIS, Z_AXIS))
            frames[f"end{k}{side}"] = (name, np.array([length, 0, 0]))
            components.append(Loop(name=name, frames=[f"end{k}{side}", f"ball{k}{side}"], constrains="point"))
    return tree_of("delta", links, frames, components)


STEWART_REST, STEWART_MASS = np.array([0.0, 0.0, 0.8]), 4.0
STEWART_INERTIA = np.diag([0.11, 0.13, 0.2])
STEWART_COM = np.array([0.02, -0.01, 0.05])
BARREL, ROD = (0.25, 0.9), (0.3, 0.5)
"""Of the two parts of a leg the distance of the centre of mass from its joint or its tip [m], and the mass [kg]."""


def stewart_points() -> tuple[Floats, Floats]:
    """The ends of the six legs on the base and on the platform (6, 3), each in its own axes."""
    first, second = (
        np.repeat(2 * np.pi / 3 * np.arange(3), 2) + spread * np.tile([-1, 1], 3) for spread in (0.25, 0.8)
    )
    return (
        0.6 * np.stack([np.cos(first), np.sin(first), 0 * first], axis=1),
        0.35 * np.stack([np.cos(second), np.sin(second), 0 * second], axis=1),
    )


def slender(distance: float, mass: float) -> Floats:
    """The spatial inertia of a slender part along z whose centre of mass is at a distance from its origin."""
    return spatial_inertia(mass, np.array([0, 0, distance]), mass * distance**2 / 3 * np.diag([1.0, 1.0, 0.0]))


@lru_cache
def stewart() -> KinematicTree:
    """A Stewart platform: six legs that turn on universal joints, slide, and end in balls."""
    base, top = stewart_points()
    plate = spatial_inertia(STEWART_MASS, STEWART_COM, STEWART_INERTIA)
    links = [Link("platform", None, Free(), STEWART_REST, np.eye(3), plate)]
    frames, components = {}, []
    for k, (start, end) in enumerate(zip(base, top, strict=True)):
        way = end + STEWART_REST - start
        length = float(np.linalg.norm(way))
        links += on_universal(f"barrel{k}", None, start, leading(way, 2), slender(*BARREL), (X_AXIS, Y_AXIS))
        rod = slender(-ROD[0], ROD[1])
        links.append(Link(f"rod{k}", f"barrel{k}", Prismatic(Z_AXIS), (0, 0, length), np.eye(3), rod))
        frames |= {f"tip{k}": (f"rod{k}", (0, 0, 0)), f"ball{k}": ("platform", end)}
        components.append(Loop(name=f"leg{k}", frames=[f"tip{k}", f"ball{k}"], constrains="point"))
    return tree_of("stewart", links, frames, components)


CASSIE_REST = {"joint2": 1.01} | {
    f"{side}-{joint}": np.deg2rad(angle)
    for side in ("left", "right")
    for joint, angle in (("knee", -45), ("tarsus", 58))
}
"""Positions of Cassie's joints in the pose of its file, where its loops are closed: their `ref`."""


def at_rest(tree: KinematicTree) -> Floats:
    """The configuration (nq,) at which a mechanism was built closed."""
    q = tree.neutral_configuration()
    for name, position in CASSIE_REST.items():
        if name in tree.joint_names:
            q[tree.q_slices[tree.joint(name)]] = position
    return q


def closed_state(tree: KinematicTree, seed: int, spread: float = 0.15) -> tuple[Floats, Floats, Floats]:
    """A random closed state near that at rest, q (nq,) and qd (nv,), and forces of joints (nv,)."""
    rng = np.random.default_rng(seed)
    near = tree.integrate(at_rest(tree), spread * rng.normal(size=tree.nv))
    return *closed(tree, near, rng.normal(size=tree.nv)), 10 * rng.normal(size=tree.nv)


def welded_limbs(constrains: str, stabilisation: dict[str, float] | None = None) -> KinematicTree:
    """Two limbs of six joints on a base that turns, whose ends are held together."""
    tree = random_tree(13, seed=31, kinds=("revolute", "revolute", "prismatic"), chain=1.0)
    parents = (WORLD, 0, 1, 2, 3, 4, 5, 0, 7, 8, 9, 10, 11)
    tree = tree.replace(name="welded_limbs", parents=parents, frames={"l_hand": Frame(6, shift((0.1, 0.2, 0.3)))})
    R, o = poses(tree, tree.neutral_configuration())
    hand = tree.frame("l_hand")
    place = R[12].T @ (o[6] + R[6] @ hand.X.r - o[12])
    frames = {"l_hand": hand, "r_hand": Frame(12, Transform((R[12].T @ R[6]).T, place))}
    loop = Loop(name="grip", frames=["l_hand", "r_hand"], constrains=constrains, stabilisation=stabilisation)
    return tree.replace(frames=frames, components=(loop,))


def forward_dynamics(tree: KinematicTree, q: Floats, qd: Floats, tau: Floats) -> tuple[Floats, dict[str, Floats]]:
    """qdd (nv,), and all that components add by name, of forward dynamics: D d + b = 0 by plain sparse LU."""
    system = System(tree, sensors("forward_dynamics"))
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, tau))
    qdd = np.concatenate([d[v.slice] for v in system.variables if v.kind == "qdd"])
    return qdd, {v.name: d[v.slice] for v in system.variables if v.key.component}

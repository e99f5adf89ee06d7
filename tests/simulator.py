"""A humanoid and a quadruped that stand, shift their weight and step in MuJoCo, and what their sensors would read.

`walk("talos_reduced")` simulates a robot on its feet and returns a `Motion`: at chosen ticks the true configuration,
velocity, acceleration, joint torques and external wrenches, in the conventions of the tree; its methods are what
sensors read of them, without noise. Only the floor and the motors act on the robot.

The bodies are MuJoCo's own reading of the URDF, whose meshes are left out; the feet are boxes that lie in the plane of
the sole, or points. Joints have no armature, damping, friction or limits. The motors are servos with a feed-forward:
tau = ff + kp (q_ref - q) + kd (qd_ref - qd), where q_ref keeps the centre of mass over the feet that carry it, ff is
what q_ref needs by inverse dynamics, and a leg is stiff while it carries. Nothing else balances the robot: it is slow.

What is recorded belongs together: acceleration, contact forces and torques are those of one evaluation of the dynamics
at the recorded state, before the step. MuJoCo's contacts are soft; a foot that stands accelerates a little.

Signs of MuJoCo's sensors, found and tested: its force and torque sensors at a site read the wrench of the parent on the
body that has the site, in the site's axes and about its origin, which is f of Nori's (3f); its accelerometers read
proper acceleration, upwards at rest. Its contact forces act on the second geom of a pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np
from lxml import etree
from numpy.typing import NDArray
from scipy.interpolate import CubicSpline

from nori_dyn.algebra.spatial import Transform, cross_force, matvec
from nori_dyn.model.kinematics import Kinematics, velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.peers import mujoco
from tests.robots import ROBOTS, load

Floats = NDArray[np.float64]

TIMESTEP = 5e-4
"""Of the simulation [s]."""

KNOT = 0.02
"""Time between the poses that inverse kinematics finds [s]."""

SETTLE = 0.5
"""Time to settle on the floor, before time begins [s]."""

SOFT = 20.0
"""Natural frequency of a joint that carries its own links only [rad/s]."""

STIFF = 10.0
"""Stiffness of each joint of a leg that carries the robot, by m g h, at which it would topple."""

DAMP = 0.02
"""Damping of such a joint, by its stiffness [s]."""

LOADED = 3.0
"""A leg has its full stiffness from one part in so many of the robot's weight on."""

MOMENT = 0.03
"""How far from the middle of a sole its force may be, weighed against how it is shared among the feet [m]."""

KEPT = 0.15
"""Share of an even load that a flat foot keeps until it is lifted, so that it stays on the floor."""

POINT = 1e-4
"""Radius of a point foot [m], so small that the floor has next to no moment about the foot's frame."""


@dataclass(frozen=True)
class Sole:
    """A flat foot: a box in the plane of the sole.

    Attributes:
        centre: of the box, in the plane of the foot's frame (x forward) [m].
        size: of the box along x and y [m].
    """

    centre: tuple[float, float]
    size: tuple[float, float]


@dataclass(frozen=True)
class Robot:
    """A robot that can stand.

    Attributes:
        name: in tests.robots.ROBOTS.
        feet: frames that meet the floor, their z axis up.
        sole: the shape of flat feet; None for feet that are points.
        posture: joint angles to stay close to [rad], by a part of the joint's name; zero without.
        lift: how high feet are lifted [m].
        stride: how far a step goes [m].
    """

    name: str
    feet: tuple[str, ...]
    sole: Sole | None
    posture: Mapping[str, float]
    lift: float
    stride: float

    @property
    def tree(self) -> KinematicTree:
        """The robot with a floating base; the angles of its file as they are, which MuJoCo too takes as they are."""
        return load(self.name, "floating", clean=False)


WALKERS = {
    robot.name: robot
    for robot in (
        Robot(
            "talos_reduced",
            ("left_sole_link", "right_sole_link"),
            Sole((0.0, 0.0), (0.20, 0.12)),
            {f"leg_{side}_{k}": x for side in ("left", "right") for k, x in ((3, -0.45), (4, 0.9), (5, -0.45))}
            | {"arm_left_2": 0.3, "arm_right_2": -0.3, "arm_left_4": -1.2, "arm_right_4": -1.2},
            lift=0.03,
            stride=0.08,
        ),
        Robot(
            "iCubGenova04",
            ("l_sole", "r_sole"),
            Sole((0.035, 0.0), (0.17, 0.08)),
            {"hip_pitch": 0.35, "knee": -0.7, "ankle_pitch": -0.35, "shoulder_roll": 0.3, "elbow": 0.7},
            lift=0.02,
            stride=0.05,
        ),
        Robot(
            "go2",
            ("FL_foot", "FR_foot", "RL_foot", "RR_foot"),
            None,
            {"thigh": 0.8, "calf": -1.6},
            lift=0.04,
            stride=0.06,
        ),
    )
}


@dataclass(frozen=True)
class Segment:
    """A part of a walk.

    Attributes:
        phase: "stand": all feet carry; "shift": the weight moves from some to others, which may be all of it; "lift",
            "swing", "lower": one foot leaves the floor, is in the air, comes back to it.
        seconds: how long it takes.
        loads: the share of the weight on each foot at its end (n_feet,).
        places: where the feet are at its end (n_feet, 3) [m].
        foot: number of the foot that moves, -1 for none.
    """

    phase: str
    seconds: float
    loads: Floats
    places: Floats
    foot: int = -1


@dataclass(frozen=True)
class Motion:
    """What truly happened at N ticks of a simulation, and what sensors read of it.

    Attributes:
        robot: the robot.
        tree: its links and joints.
        time: [s] (N,).
        phase: of `Segment` (N,).
        foot: number of the foot that is in the air or on its way (N,), -1 for none.
        q: configuration (N, nq).
        qd: velocity (N, nv), the base's in body coordinates, angular first.
        qdd: acceleration (N, nv), the derivative of qd.
        tau: joint torques (N, nv), zero on the base.
        fx: external wrench on each link (N, n_links, 6), couple first, link coordinates.
        mujoco_accelerometers: by frame, the readings (N, 3) of MuJoCo's accelerometers, in axes of the frame.
        mujoco_wrenches: by joint, the readings (N, 6) of MuJoCo's torque and force sensors at the link it carries.
    """

    robot: Robot
    tree: KinematicTree
    time: Floats
    phase: NDArray[np.str_]
    foot: NDArray[np.intp]
    q: Floats
    qd: Floats
    qdd: Floats
    tau: Floats
    fx: Floats
    mujoco_accelerometers: Mapping[str, Floats] = field(repr=False)
    mujoco_wrenches: Mapping[str, Floats] = field(repr=False)

    def __len__(self) -> int:
        return len(self.time)

    def __getitem__(self, ticks: Any) -> Motion:
        """Return the ticks of a slice, a mask or a list of numbers."""
        if np.isscalar(ticks):
            raise TypeError("ticks of a motion are a slice, a mask or a list")
        names = ("time", "phase", "foot", "q", "qd", "qdd", "tau", "fx")
        arrays = {name: getattr(self, name)[ticks] for name in names}
        accelerometers = {name: y[ticks] for name, y in self.mujoco_accelerometers.items()}
        wrenches = {name: y[ticks] for name, y in self.mujoco_wrenches.items()}
        return replace(self, **arrays, mujoco_accelerometers=accelerometers, mujoco_wrenches=wrenches)

    def during(self, *phases: str) -> Motion:
        """Return the ticks in some phases."""
        return self[np.isin(self.phase, phases)]

    @property
    def feet(self) -> tuple[str, ...]:
        """The frames that meet the floor."""
        return self.robot.feet

    @cached_property
    def at(self) -> Kinematics:
        """Positions and velocities of the links, batch axis last."""
        return velocities(self.tree, self.q.T, self.qd.T)

    @cached_property
    def a(self) -> Floats:
        """Acceleration of Nori's (3a), gravity included (N, n_links, 6)."""
        tree, at = self.tree, self.at
        a: list[Floats] = []
        for i, parent in enumerate(tree.parents):
            a_0 = np.tile(-np.array([0.0, 0.0, 0.0, *tree.gravity])[:, None], len(self))
            push = matvec(at.S[i], self.qdd.T[tree.v_slices[i]]) + at.c[i]
            a.append(at.X_up[i].apply_motion(a_0 if tree.is_root(i) else a[parent]) + push)
        return np.moveaxis(np.array(a), -1, 0)

    @cached_property
    def f(self) -> Floats:
        """Wrench through the joint of each link, of the parent on the link (N, n_links, 6): Nori (3f)."""
        tree, at = self.tree, self.at
        f = []
        for i, I in enumerate(tree.I):
            momentum, rate = matvec(I, at.v[i]), matvec(I, self.a[:, i].T)
            f.append(rate + cross_force(at.v[i], momentum) - self.fx[:, i].T)
        for i in reversed(range(tree.n_links)):
            if not tree.is_root(i):
                f[tree.parents[i]] = f[tree.parents[i]] + at.X_up[i].force_to_parent(f[i])
        return np.moveaxis(np.array(f), -1, 0)

    def accelerometer(self, frame: str) -> Floats:
        """Return the proper acceleration (N, 3) of a frame's origin in its axes [m/s^2]: 9.81 upwards at rest."""
        a, v = (self._motion(frame, x) for x in (self.a, self._v))
        return a[:, 3:] + np.cross(v[:, :3], v[:, 3:])

    def angular_accelerometer(self, frame: str) -> Floats:
        """Return the angular acceleration (N, 3) of a frame in its axes [rad/s^2]."""
        return self._motion(frame, self.a)[:, :3]

    def force_torque(self, joint: str, frame: str | None = None) -> Floats:
        """Return the wrench (N, 6) through a joint, of the parent on the link that it carries, couple first [N m, N].

        Args:
            joint: its name.
            frame: a frame on that link, in whose coordinates and about whose origin it is; the link's own when None.
        """
        i = self.tree.joint(joint)
        return self.f[:, i] @ self._frame(frame or self.tree.names[i], i).force_matrix().T

    def wrench(self, frame: str) -> Floats:
        """Return the external wrench (N, 6) on the link of a frame, in its coordinates, couple first [N m, N]."""
        place = self.tree.frame(frame)
        return self.fx[:, place.link] @ place.X.force_matrix().T

    @property
    def loads(self) -> Floats:
        """Vertical force of the floor on each foot (N, n_feet) [N]."""
        return np.stack([self.contact_force(foot)[:, 2] for foot in self.feet], axis=1)

    def contact_force(self, frame: str) -> Floats:
        """Return the external force (N, 3) on the link of a frame, in world axes [N]."""
        return self.world_axes(frame, self.wrench(frame)[:, 3:])

    def d(self, system: System) -> Floats:
        """Return the true variables (N, columns) in the order of a system."""
        d = np.full((len(self), system.shape[1]), np.nan)
        for variable in system.variables:
            values = getattr(self, variable.kind)
            joint = variable.kind in ("tau", "qdd")
            d[:, variable.slice] = values[:, self.tree.v_slices[variable.body] if joint else variable.body]
        return d

    def readings(self, system: System) -> Floats:
        """Return Y (N, ny): what the sensors of a system read, each the y of D_Y d + b_Y - y = 0."""
        Y, d = np.empty((len(self), system.ny)), self.d(system).T
        for row in system.measurements:
            if row.y.start == row.y.stop:
                continue
            y = row.equation.bias(self.at, np.zeros((row.y.stop - row.y.start, len(self))))
            for key, block in row.equation.blocks(self.at).items():
                y = y + matvec(block, d[system.column(key.kind, key.body)])
            Y[:, row.y] = y.T
        return Y

    def world_axes(self, frame: str, vectors: Floats) -> Floats:
        """Return vectors (N, 3) from the axes of a frame to those of the world."""
        place = self.tree.frame(frame)
        i, force = place.link, place.X.force_to_parent(np.vstack([0 * vectors.T, vectors.T]))
        while True:
            force = self.at.X_up[i].force_to_parent(force)
            if self.tree.is_root(i):
                return np.array(force[3:].T)
            i = self.tree.parents[i]

    @property
    def _v(self) -> Floats:
        return np.moveaxis(np.array(self.at.v), -1, 0)

    def _motion(self, frame: str, of_links: Floats) -> Floats:
        place = self.tree.frame(frame)
        return of_links[:, place.link] @ place.X.motion_matrix().T

    def _frame(self, name: str, link: int) -> Transform:
        place = self.tree.frame(name)
        if place.link != link:
            raise ValueError(f"frame '{name}' is on '{self.tree.names[place.link]}', not '{self.tree.names[link]}'")
        return place.X


def noisy(readings: Floats, rng: np.random.Generator | int, sigma: float | Floats) -> Floats:
    """Return readings (N, n) with independent normal errors of some deviation, one or one for each column."""
    return readings + np.random.default_rng(rng).normal(size=readings.shape) * np.asarray(sigma)


def walk(name: str, *, steps: int | None = None, every: float = 0.02, stand: float = 0.6) -> Motion:
    """Return a walk of a robot: it stands, and for each foot in turn shifts its weight off it, and puts it forward.

    Args:
        name: in WALKERS.
        steps: number of steps; one with each foot when None, only standing when 0.
        every: time between recorded ticks [s], a multiple of the time step.
        stand: how long it stands at first [s].

    Raises:
        RuntimeError: the robot fell.
    """
    robot = WALKERS[name]
    tree = robot.tree
    model = mujoco_walker(robot, tree)
    start = standing_pose(robot, model)
    segments = list(schedule(robot, model, start, len(robot.feet) if steps is None else steps, stand))
    follow = references(robot, tree, model, start, segments)
    return simulate(robot, tree, model, segments, follow, every)


def mujoco_walker(robot: Robot, tree: KinematicTree) -> mujoco.MjModel:
    """Return MuJoCo's model of a robot on a floor: bodies of the URDF, feet, motors, and sensors at every joint."""
    spec = mujoco.MjSpec.from_string(_bare_urdf(ROBOTS[robot.name]))
    base = spec.worldbody.first_body()
    base.add_freejoint(name=tree.joint_names[0])
    spec.worldbody.add_geom(name="floor", type=mujoco.mjtGeom.mjGEOM_PLANE, size=[0, 0, 1], **_CONTACT)
    for joint in spec.joints:
        joint.armature, joint.damping, joint.frictionloss = 0.0, 0.0 * np.asarray(joint.damping), 0.0
        joint.limited = mujoco.mjtLimited.mjLIMITED_FALSE
    for name in dict.fromkeys((*tree.names, *robot.feet)):
        place = tree.frame(name)
        body = spec.body(tree.names[place.link])
        pose = {"pos": place.X.r, "quat": _quaternion(place.X.E.T)}
        body.add_site(name=name, **pose)
        _add_sensor(spec, f"accelerometer:{name}", mujoco.mjtSensor.mjSENS_ACCELEROMETER, name)
        if name in robot.feet:
            body.add_geom(name=name, **_CONTACT, **_foot(robot.sole, place.X))
    for joint, link in zip(tree.joint_names[1:], tree.names[1:], strict=True):
        _add_sensor(spec, f"torque:{joint}", mujoco.mjtSensor.mjSENS_TORQUE, link)
        _add_sensor(spec, f"force:{joint}", mujoco.mjtSensor.mjSENS_FORCE, link)
    for joint in tree.joint_names[1:]:
        motor = spec.add_actuator(name=joint, target=joint, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.gaintype, motor.biastype = mujoco.mjtGain.mjGAIN_FIXED, mujoco.mjtBias.mjBIAS_AFFINE
        motor.gainprm[0] = 1.0
    option = spec.option
    option.timestep, option.integrator = TIMESTEP, mujoco.mjtIntegrator.mjINT_IMPLICITFAST
    option.cone, option.impratio = mujoco.mjtCone.mjCONE_ELLIPTIC, 10.0
    option.solver, option.disableflags = mujoco.mjtSolver.mjSOL_NEWTON, mujoco.mjtDisableBit.mjDSBL_SENSOR
    option.gravity = tree.gravity
    return spec.compile()


_CONTACT: dict[str, Any] = {"friction": [0.9, 0.0, 0.0], "condim": 3, "solref": [0.01, 1.0]}
_LEFT_OUT = ("visual", "collision", "transmission", "gazebo", "mujoco", "material", "sensor")


def _bare_urdf(path: Any) -> str:
    root = etree.parse(str(path)).getroot()
    for tag in _LEFT_OUT:
        for element in list(root.iter(tag)):
            element.getparent().remove(element)
    options = {"fusestatic": "true", "inertiafromgeom": "false", "balanceinertia": "false"}
    etree.SubElement(etree.SubElement(root, "mujoco"), "compiler", options)
    text: str = etree.tostring(root, encoding="unicode")
    return text


def _foot(sole: Sole | None, X: Transform) -> dict[str, Any]:
    """Return a geom in link coordinates; feet meet the floor only."""
    if sole is None:
        return {"type": mujoco.mjtGeom.mjGEOM_SPHERE, "size": [POINT, 0, 0], "pos": X.r, "mass": 0.0} | _ONLY_FLOOR
    thickness = 0.02
    centre = X.r + X.E.T @ np.array([*sole.centre, thickness / 2])
    size = [sole.size[0] / 2, sole.size[1] / 2, thickness / 2]
    box = {"type": mujoco.mjtGeom.mjGEOM_BOX, "size": size, "pos": centre, "quat": _quaternion(X.E.T), "mass": 0.0}
    return box | _ONLY_FLOOR


_ONLY_FLOOR = {"contype": 2, "conaffinity": 1}


def _quaternion(R: Floats) -> Floats:
    quaternion = np.empty(4)
    mujoco.mju_mat2Quat(quaternion, np.ascontiguousarray(R).ravel())
    return quaternion


def _add_sensor(spec: mujoco.MjSpec, name: str, kind: Any, site: str) -> None:
    spec.add_sensor(name=name, type=kind, objtype=mujoco.mjtObj.mjOBJ_SITE, objname=site)


def _path(tree: KinematicTree, link: int) -> set[int]:
    """Return the links from one to the root."""
    path = {link}
    while not tree.is_root(link):
        link = tree.parents[link]
        path.add(link)
    return path


def standing_pose(robot: Robot, model: mujoco.MjModel) -> Floats:
    """Return qpos of a robot in its posture, its base upright, its soles flat on the floor and pointing forward."""
    data = mujoco.MjData(model)
    data.qpos[:] = model.qpos0
    data.qpos[:7] = 0, 0, 0, 1, 0, 0, 0
    for j in range(1, model.njnt):
        angles = [x for part, x in robot.posture.items() if part in model.joint(j).name]
        data.qpos[model.jnt_qposadr[j]] = sum(angles)
    mujoco.mj_kinematics(model, data)
    data.qpos[2] -= np.mean([data.site(foot).xpos[2] for foot in robot.feet])
    return np.array(data.qpos)


def schedule(robot: Robot, model: mujoco.MjModel, start: Floats, steps: int, stand: float) -> Iterator[Segment]:
    """Yield the segments of a walk."""
    data = _placed(model, start)
    n = len(robot.feet)
    places = np.array([data.site(foot).xpos for foot in robot.feet]) * [1, 1, 0]
    forward = np.sign(data.site(robot.feet[0]).xmat[0]) * np.array([robot.stride, 0, 0])
    even = np.full(n, 1 / n)
    yield Segment("stand", stand, even, places)
    # A hind foot first, then the fore foot of the same side; two feet: one after the other.
    order = [2, 0, 3, 1] if n == 4 else [1, 0]
    for k in (order[step % n] for step in range(steps)):
        if n == 4:  # towards the foot across, between the two others
            without = np.full(n, 0.38)
            without[k], without[3 - k] = 0.0, 0.24
        else:
            without = np.ones(n)
            without[k] = 0.0
        kept = KEPT if robot.sole else 0.0
        little = (1 - kept) * without + kept * even
        yield Segment("shift", 1.2, little, places)
        for phase, seconds, move, loads in (
            ("lift", 0.4, [0.0, 0.0, robot.lift], without),
            ("swing", 0.6, forward, without),
            ("lower", 0.4, [0.0, 0.0, -robot.lift], little),
        ):
            places = places.copy()
            places[k] += move
            yield Segment(phase, seconds, loads, places, k)
    if steps:
        yield Segment("shift", 1.2, even, places)
        yield Segment("stand", 0.6, even, places)


@dataclass(frozen=True)
class References:
    """What the motors do: tau = torques + kp (angles - q) + kd (rates - qd), at each knot.

    Attributes:
        start: qpos (nq,) at the beginning.
        times: of the knots (n,) [s].
        angles, rates, torques: (n, nu).
        kp, kd: gains (n, nu).
    """

    start: Floats
    times: Floats
    angles: Floats
    rates: Floats
    torques: Floats
    kp: Floats
    kd: Floats

    def motors(self, times: Floats) -> tuple[Floats, Floats, Floats]:
        """Return kp, kd and torques + kp angles + kd rates, each (m, nu), at times (m,)."""
        parts = (self.angles, self.rates, self.torques, self.kp, self.kd)
        angles, rates, torques, kp, kd = (CubicSpline(self.times, part)(times) for part in parts)
        return kp, kd, torques + kp * angles + kd * rates


def references(
    robot: Robot, tree: KinematicTree, model: mujoco.MjModel, start: Floats, segments: Sequence[Segment]
) -> References:
    """Return the poses of a walk by inverse kinematics, and the torques by inverse dynamics.

    The feet share the weight by the loads; of all wrenches at them that carry the robot, the least ones are asked for.
    """
    times = np.arange(0.0, sum(part.seconds for part in segments) + KNOT, KNOT)
    loads, places, coms = (np.array(x) for x in zip(*(_targets(segments, t) for t in times), strict=True))
    data = mujoco.MjData(model)
    qpos, poses = start, []
    for k in range(len(times)):
        for _ in range(20 if k == 0 else 2):
            qpos = _closer(robot, model, data, qpos, start, places[k], coms[k])
        poses.append(qpos)
    pairs = zip([poses[0], *poses[:-1]], [*poses[1:], poses[-1]], strict=True)
    rates = np.array([_difference(model, before, after) for before, after in pairs]) / (2 * KNOT)
    changes = np.gradient(rates, KNOT, axis=0)
    ticks = zip(poses, rates, changes, loads, strict=True)
    torques = np.array([_feed_forward(robot, model, data, *tick) for tick in ticks])
    gains = _gains(robot, tree, model, start, loads)
    return References(poses[0], times, np.array(poses)[:, 7:], rates[:, 6:], torques, *gains)


def _gains(
    robot: Robot, tree: KinematicTree, model: mujoco.MjModel, qpos: Floats, loads: Floats
) -> tuple[Floats, Floats]:
    """Return kp and kd (n, nu): stiff where a leg carries the robot, which would topple at m g h; soft elsewhere."""
    data = _placed(model, qpos)
    mujoco.mj_forward(model, data)
    H = np.empty((model.nv, model.nv))
    mujoco.mj_fullM(model, data, H)
    soft = np.diag(H)[6:]
    mass, height = model.body_mass.sum(), data.subtree_com[1][2]
    topples = mass * 9.81 * height
    kp, kd = np.tile(soft * SOFT**2, (len(loads), 1)), np.tile(soft * 2 * SOFT, (len(loads), 1))
    for foot, share in zip(robot.feet, loads.T, strict=True):
        leg = [i - 1 for i in _path(tree, tree.frame(foot).link) if i > 0]
        carries = np.minimum(1.0, LOADED * share)[:, None]
        stiff = STIFF * topples * (1.0 if robot.sole else 0.3)
        kp[:, leg] += carries * stiff
        kd[:, leg] += carries * stiff * DAMP
    return kp, kd


def _targets(segments: Sequence[Segment], t: float) -> tuple[Floats, Floats, Floats]:
    """Return loads (n_feet,), places (n_feet, 3) and centre of mass (2,) at a time, which rest where segments meet."""
    ends = list(accumulate(part.seconds for part in segments))
    k = min(int(np.searchsorted(ends, t)), len(segments) - 1)
    before, now = segments[max(k - 1, 0)], segments[k]
    x = np.clip(1 - (ends[k] - t) / now.seconds, 0, 1)
    s = x**3 * (10 - 15 * x + 6 * x**2)
    loads, places = ((1 - s) * getattr(before, what) + s * getattr(now, what) for what in ("loads", "places"))
    # The feet that carry nothing move, so that the loads at one of the ends do for both.
    com = (1 - s) * before.loads @ before.places + s * now.loads @ now.places
    return loads, places, com[:2]


def _placed(model: mujoco.MjModel, qpos: Floats, data: mujoco.MjData | None = None) -> mujoco.MjData:
    data = data or mujoco.MjData(model)
    data.qpos[:] = qpos
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    return data


def _difference(model: mujoco.MjModel, first: Floats, second: Floats) -> Floats:
    rate = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, rate, 1.0, first, second)
    return rate


def _closer(
    robot: Robot, model: mujoco.MjModel, data: mujoco.MjData, qpos: Floats, posture: Floats, places: Floats, com: Floats
) -> Floats:
    """Return qpos after a step of Gauss and Newton towards feet and centre of mass in their places."""
    _placed(model, qpos, data)
    rows, errors = [], []

    def aim(J: Floats, error: Floats, weight: float) -> None:
        rows.append(weight * J)
        errors.append(weight * error)

    linear, angular = np.zeros((3, model.nv)), np.zeros((3, model.nv))
    centre = np.array([*(robot.sole.centre if robot.sole else (0.0, 0.0)), 0.0])
    offset = np.zeros(3)
    for foot, place in zip(robot.feet, places, strict=True):
        site = data.site(foot)
        R = site.xmat.reshape(3, 3)
        mujoco.mj_jacSite(model, data, linear, angular, site.id)
        aim(linear.copy(), place - site.xpos, 100.0)
        offset += R @ centre / len(robot.feet)
        if robot.sole:
            yaw = np.sign(R[0, 0])
            target = np.diag([yaw, yaw, 1.0])
            aim(angular.copy(), np.cross(R, target, axis=0).sum(axis=1) / 2, 100.0)
    mujoco.mj_jacSubtreeCom(model, data, linear, 1)
    aim(linear[:2].copy(), com + offset[:2] - data.subtree_com[1][:2], 100.0)
    kept = _difference(model, qpos, posture)
    aim(np.eye(model.nv)[2:6], kept[2:6], 1.0)
    aim(np.eye(model.nv)[6:], kept[6:], 0.1)
    step = np.linalg.lstsq(np.vstack(rows), np.concatenate(errors), rcond=None)[0]
    closer = qpos.copy()
    mujoco.mj_integratePos(model, closer, step, 1.0)
    return closer


def _feed_forward(
    robot: Robot,
    model: mujoco.MjModel,
    data: mujoco.MjData,
    qpos: Floats,
    qvel: Floats,
    qacc: Floats,
    loads: Floats,
) -> Floats:
    """Return the torques (nu,) of a motion, the floor's wrenches the least that carry the base: J_b^T w = its part."""
    flags = model.opt.disableflags
    model.opt.disableflags |= mujoco.mjtDisableBit.mjDSBL_CONSTRAINT
    data.qpos[:], data.qvel[:], data.qacc[:] = qpos, qvel, qacc
    mujoco.mj_inverse(model, data)
    model.opt.disableflags = flags
    rows, weights = [], []
    for foot, share in zip(robot.feet, loads, strict=True):
        J = np.zeros((6, model.nv))
        site = data.site(foot)
        mujoco.mj_jacSite(model, data, J[:3], J[3:], site.id)
        if robot.sole:  # about the centre of the sole
            arm = site.xmat.reshape(3, 3) @ np.array([*robot.sole.centre, 0.0])
            J[:3] += np.cross(J[3:], arm, axis=0)
        n = 6 if robot.sole else 3
        rows.append(J[:n])
        weights += [*[share] * 3, *[share * MOMENT**2] * 3][:n]
    J_all, W = np.vstack(rows), np.array(weights)
    A = J_all[:, :6].T
    wrench = W * (A.T @ np.linalg.solve((A * W) @ A.T, data.qfrc_inverse[:6]))
    return np.asarray((data.qfrc_inverse - J_all.T @ wrench)[6:])


def simulate(
    robot: Robot,
    tree: KinematicTree,
    model: mujoco.MjModel,
    segments: Sequence[Segment],
    follow: References,
    every: float,
) -> Motion:
    """Return what happens, recorded at every so many seconds.

    Raises:
        RuntimeError: the height of the base changed by a third.
    """
    data = mujoco.MjData(model)
    data.qpos[:] = follow.start
    ends = np.cumsum([part.seconds for part in segments])
    n_steps, stride = round(ends[-1] / TIMESTEP), round(every / TIMESTEP)
    times = np.arange(n_steps) * TIMESTEP
    kp, kd, controls = follow.motors(times)
    data.ctrl[:] = controls[0]
    _set_gains(model, kp[0], kd[0])
    for _ in range(round(SETTLE / TIMESTEP)):
        mujoco.mj_step(model, data)
    recorder = _Recorder(robot, tree, model)
    for k in range(n_steps):
        data.ctrl[:] = controls[k]
        _set_gains(model, kp[k], kd[k])
        if k % stride == 0:
            _evaluate(model, data)
            part = segments[min(int(np.searchsorted(ends, times[k], side="right")), len(segments) - 1)]
            recorder.record(data, times[k], part)
        mujoco.mj_step(model, data)
        if not abs(data.qpos[2] - follow.start[2]) < follow.start[2] / 3:
            raise RuntimeError(f"{robot.name} fell at {times[k]:.2f} s.")
    return recorder.motion()


def _evaluate(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """Evaluate the dynamics, contact forces to the last digit, and the sensors."""
    tolerance = model.opt.tolerance
    model.opt.tolerance, model.opt.disableflags = 0.0, 0
    mujoco.mj_forward(model, data)
    model.opt.tolerance, model.opt.disableflags = tolerance, mujoco.mjtDisableBit.mjDSBL_SENSOR


def _set_gains(model: mujoco.MjModel, kp: Floats, kd: Floats) -> None:
    model.actuator_biasprm[:, 1], model.actuator_biasprm[:, 2] = -kp, -kd


def contact_wrenches(model: mujoco.MjModel, data: mujoco.MjData, bodies: Sequence[int]) -> Floats:
    """Return the wrenches (n, 6) of contacts on bodies, in their axes, about their origins, couple first."""
    fx, wrench, body_of = np.zeros((len(bodies), 6)), np.zeros(6), model.geom_bodyid
    for number in range(data.ncon):
        contact = data.contact[number]
        mujoco.mj_contactForce(model, data, number, wrench)
        pushes = wrench.reshape(2, 3) @ contact.frame.reshape(3, 3)  # its first axis points to the second geom
        for geom, sign in ((contact.geom1, -1.0), (contact.geom2, 1.0)):
            body = int(body_of[geom])
            if body == 0:  # the world
                continue
            force, couple = sign * pushes
            couple = couple + np.cross(contact.pos - data.xpos[body], force)
            fx[bodies.index(body)] += (np.array([couple, force]) @ data.xmat[body].reshape(3, 3)).ravel()
    return fx


class _Recorder:
    """Takes the truth out of MuJoCo's data, after mj_forward."""

    def __init__(self, robot: Robot, tree: KinematicTree, model: mujoco.MjModel) -> None:
        self.robot, self.tree, self.model = robot, tree, model
        self.ticks: list[dict[str, Any]] = []
        self.sensors: list[Floats] = []
        joints = [model.joint(name) for name in tree.joint_names[1:]]
        self.q_places = [joint.qposadr[0] for joint in joints]
        self.v_places = [joint.dofadr[0] for joint in joints]
        self.bodies = [model.body(name).id for name in tree.names]

    def record(self, data: mujoco.MjData, time: float, part: Segment) -> None:
        R = data.xmat[self.bodies[0]].reshape(3, 3)
        w, u = data.qvel[3:6], R.T @ data.qvel[:3]
        push = R.T @ data.qacc[:3] - np.cross(w, u)  # MuJoCo's velocity is in world axes, ours in the body's
        torques = data.qfrc_actuator[self.v_places]
        self.ticks.append(
            {
                "time": time,
                "phase": part.phase,
                "foot": part.foot,
                "q": np.concatenate([data.qpos[:3], data.qpos[4:7], data.qpos[3:4], data.qpos[self.q_places]]),
                "qd": np.concatenate([w, u, data.qvel[self.v_places]]),
                "qdd": np.concatenate([data.qacc[3:6], push, data.qacc[self.v_places]]),
                "tau": np.concatenate([np.zeros(6), torques]),
                "fx": contact_wrenches(self.model, data, self.bodies),
            }
        )
        self.sensors.append(data.sensordata.copy())

    def motion(self) -> Motion:
        columns = {name: np.array([tick[name] for tick in self.ticks]) for name in self.ticks[0]}
        readings = np.array(self.sensors)
        found: dict[str, dict[str, Floats]] = {"accelerometer": {}, "torque": {}, "force": {}}
        for s in range(self.model.nsensor):
            kind, name = self.model.sensor(s).name.split(":", 1)
            first = self.model.sensor_adr[s]
            found[kind][name] = readings[:, first : first + 3]
        wrenches = {name: np.hstack([torque, found["force"][name]]) for name, torque in found["torque"].items()}
        return Motion(
            robot=self.robot,
            tree=self.tree,
            **columns,
            mujoco_accelerometers=found["accelerometer"],
            mujoco_wrenches=wrenches,
        )

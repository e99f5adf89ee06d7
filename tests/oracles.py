"""Textbook mechanics in world coordinates; of the package it reads the model's data only.

Three-dimensional vectors throughout (angular velocity, acceleration of points, forces and moments), written
after Newton and Euler instead of RBDA, so that no formula is shared with what it judges.
"""

import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import factorial
from typing import Any

import numpy as np
import scipy.linalg as la
from numpy.typing import NDArray

from nori_dyn.algebra.expressions import Graph, Op
from nori_dyn.model.joints import Joint
from nori_dyn.model.kinematics import velocities
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System

Floats = NDArray[np.floating]

STENCIL = np.arange(-4, 5)[[0, 1, 2, 3, 5, 6, 7, 8]]
WEIGHTS = np.array([1 / 280, -4 / 105, 1 / 5, -4 / 5, 4 / 5, -1 / 5, 4 / 105, -1 / 280])
"""First derivative by central differences of order 8: sum of WEIGHTS f(x + STENCIL h) / h."""


def derivative(f, h: float = 1e-2) -> NDArray[np.float64]:
    """df/dt at 0 by central differences of order 8."""
    return sum(w * np.asarray(f(s * h)) for s, w in zip(STENCIL, WEIGHTS, strict=True)) / h


def hat(v: Floats) -> Floats:
    """The matrices (..., 3, 3) of v x for vectors (..., 3)."""
    M = np.zeros((*v.shape, 3), dtype=v.dtype)
    M[..., 0, 1], M[..., 0, 2], M[..., 1, 2] = -v[..., 2], v[..., 1], -v[..., 0]
    return M - np.swapaxes(M, -1, -2)


def rodrigues(axis: Floats, angle: Floats) -> Floats:
    """The rotation matrices (..., 3, 3) of turns about a unit axis, child to parent."""
    K = hat(np.asarray(axis, dtype=angle.dtype))
    return np.eye(3) + np.sin(angle)[..., None, None] * K + (1 - np.cos(angle))[..., None, None] * (K @ K)


def quaternion_matrix(q: Floats) -> Floats:
    """The rotation matrices of unit quaternions (x, y, z, w), child to parent."""
    v, w = q[..., :3], q[..., 3][..., None, None]
    square = np.sum(v * v, axis=-1)[..., None, None]
    return (w * w - square) * np.eye(3) + 2 * v[..., :, None] * v[..., None, :] + 2 * w * hat(v)


def joint_pose(joint: Joint, q: Floats) -> tuple[Floats, Floats]:
    """Rotation (..., 3, 3) and position (..., 3) of the child in the joint's frame on the parent."""
    if joint.kind == "spherical":
        return quaternion_matrix(q), np.zeros((*q.shape[:-1], 3), dtype=q.dtype)
    if joint.kind == "free":
        return quaternion_matrix(q[..., 3:]), q[..., :3]
    about, along, _ = freedoms(joint)
    axis = np.array(getattr(joint, "axis", (0.0, 0.0, 1.0)))
    return rodrigues(axis, q @ (axis @ about)), q @ along.T


def freedoms(joint: Joint) -> tuple[Floats, Floats, bool]:
    """What the freedoms turn about and move along (3, nv), and whether that is in the axes of the child."""
    eye, none = np.eye(3), np.zeros((3, 3))
    axis = np.array(getattr(joint, "axis", (0.0, 0.0, 1.0)))[:, None]
    match joint.kind:
        case "revolute" | "continuous":
            return axis, 0 * axis, False
        case "prismatic":
            return 0 * axis, axis, False
        case "helical":
            return axis, joint.pitch * axis, False
        case "cylindrical":
            return np.hstack([axis, 0 * axis]), np.hstack([0 * axis, axis]), False
        case "planar":
            return np.outer(eye[2], eye[0]), np.eye(3, k=1), False
        case "spherical":
            return eye, none, True
        case "free":
            return np.hstack([eye, none]), np.hstack([none, eye]), True
        case "fixed":
            return none[:, :0], none[:, :0], False
    raise AssertionError(f"the oracle does not know the joint {joint.kind}")


def poses(tree: KinematicTree, q: Floats) -> tuple[list[Floats], list[Floats]]:
    """Rotation (..., 3, 3) to the world and position (..., 3) of each body, at q (..., nq)."""
    rotations, origins = [], []
    for i, joint in enumerate(tree.joints):
        R, p = joint_pose(joint, q[..., tree.q_slices[i]])
        R_tree, p_tree = tree.X_tree[i].E.T, tree.X_tree[i].r
        if tree.parents[i] >= 0:
            p_tree = origins[tree.parents[i]] + rotations[tree.parents[i]] @ p_tree
            R_tree = rotations[tree.parents[i]] @ R_tree
        rotations.append(R_tree @ R)
        origins.append(p_tree + (R_tree @ p[..., None])[..., 0])
    return rotations, origins


@dataclass(frozen=True)
class Mass:
    """A body's mass, centre of mass and rotational inertia about it, in body axes."""

    mass: float
    com: Floats
    I_com: Floats


def masses(tree: KinematicTree) -> list[Mass]:
    """The inertial parameters of each body, read from its spatial inertia."""
    found = []
    for I in tree.I:
        mass = I[5, 5]
        moment = np.array([I[2, 4], I[0, 5], I[1, 3]])  # m c, from m c x
        com = moment / mass if mass else np.zeros(3)
        found.append(Mass(mass, com, I[:3, :3] - mass * (com @ com * np.eye(3) - np.outer(com, com))))
    return found


@dataclass(frozen=True)
class Truth:
    """A true motion: the variables of the system in body coordinates, and the kinetic energy."""

    a: Floats
    f: Floats
    tau: Floats
    fx: Floats
    qdd: Floats
    kinetic: float

    def d(self, system: System) -> NDArray[np.float64]:
        """The vector d in the layout of a system."""
        d = np.full(system.shape[1], np.nan)
        v_slices = system.tree.v_slices
        for variable in system.variables:
            values = getattr(self, variable.kind)
            at = v_slices[variable.body] if variable.kind in ("tau", "qdd") else variable.body
            d[variable.slice] = values[at]
        return d


def newton_euler(tree: KinematicTree, q: Floats, qd: Floats, qdd: Floats, fx: Floats) -> Truth:
    """The motion and forces of a tree by Newton's and Euler's laws in world coordinates.

    Args:
        tree: the robot.
        q: (nq,).
        qd: (nv,).
        qdd: (nv,).
        fx: external wrench on each body (n_links, 6), moment about its origin first, in its axes.
    """
    found = motion_of(tree, np.asarray(q)[None], np.asarray(qd)[None])
    z = np.concatenate([[1.0], qdd, np.ravel(fx)])
    a, f, tau = ([(part[0] @ z).astype(float) for part in found.of[kind]] for kind in ("a", "f", "tau"))
    kinetic = sum(v[0] @ I @ v[0] for v, I in zip(found.v, tree.I, strict=True)) / 2
    return Truth(np.array(a), np.array(f), np.concatenate(tau), fx, qdd, float(kinetic))


def inertia_matrix(tree: KinematicTree, q: Floats) -> Floats:
    """The inertia matrix (nv, nv): the torques of unit accelerations from rest, where nothing pulls."""
    weightless, still = tree.replace(gravity=(0.0, 0.0, 0.0)), np.zeros(tree.nv)
    no_wrench = np.zeros((tree.n_links, 6))
    return np.array([newton_euler(weightless, q, still, unit, no_wrench).tau for unit in np.eye(tree.nv)]).T


@dataclass(frozen=True)
class AffineMotion:
    """The variables of every body as affine functions of z: (N, size, 1 + nz), the constant term first.

    z is (joint accelerations, external wrenches, noise of the equations of motion). `of["a"][i]` and so on;
    `noise["3a"][i]` is where z has the noise of an equation of motion, `v[i]` is the velocity of a link (N, 6), and
    `gravity[i]` gravity in its axes.
    """

    of: Mapping[str, Sequence[Floats]]
    noise: Mapping[str, Sequence[slice]]
    v: Sequence[Floats]
    gravity: Sequence[Floats]


def motion_of(
    tree: KinematicTree, q: Floats, qd: Floats, known: Mapping[int, float] | None = None, noisy: Sequence[str] = ()
) -> AffineMotion:
    """The variables at N states, in extended precision.

    Args:
        tree: the robot.
        q, qd: (N, nq), (N, nv).
        known: links whose external wrench is a known constant in all six components: it is no unknown then.
        noisy: which of "3a", "3f", "3tau" have noise, and so an unknown each.
    """
    known, q, qd = known or {}, extended(q), extended(qd)
    N, n, ends = len(q), tree.n_links, [1]

    def take(size: int) -> slice:
        ends.append(ends[-1] + size)
        return slice(*ends[-2:])

    qdd = [take(joint.nv) for joint in tree.joints]
    fx = [None if i in known else take(6) for i in range(n)]
    noise = {law: [take(6 if law != "3tau" else joint.nv) for joint in tree.joints] for law in noisy}

    def unit(part: slice | None, rows: int) -> Floats:
        values = np.zeros((N, rows, ends[-1]), q.dtype)
        if part is not None:
            values[:, range(rows), range(part.start, part.stop)] = 1
        return values

    R, p = poses(tree, q)
    g = np.array(tree.gravity, np.longdouble)
    w, u, alpha, acc = [], [], [], []  # angular velocity, velocity, and their derivatives, of origins in world axes
    turns, moves = [], []  # of the freedoms of each joint
    spatial: list[Floats] = []
    for i, joint in enumerate(tree.joints):
        parent, axes, own = tree.parents[i], tree.X_tree[i].E.T, tree.v_slices[i]
        r, w_p, u_p, alpha_p, acc_p = 0 * p[i], 0 * p[i], 0 * p[i], unit(None, 3), unit(None, 3)
        if parent >= 0:
            r, w_p, u_p, alpha_p, acc_p = p[i] - p[parent], w[parent], u[parent], alpha[parent], acc[parent]
            axes = R[parent] @ axes
        about, along, in_body = freedoms(joint)
        axes = R[i] if in_body else axes
        turns.append(axes @ about)
        moves.append(axes @ along)
        rate, speed = ((S[i] @ qd[:, own, None])[..., 0] for S in (turns, moves))
        w_i, unknown = w_p + rate, unit(qdd[i], joint.nv)
        alpha_i = alpha_p + turns[i] @ unknown
        alpha_i[..., 0] += np.cross(w_p, rate)
        acc_i = acc_p - hat(r) @ alpha_p + moves[i] @ unknown
        acc_i[..., 0] += np.cross(w_p, np.cross(w_p, r) + 2 * speed)
        if joint.kind == "free":  # qd[3:] is in body axes, which turn
            acc_i[..., 0] += np.cross(rate, speed)
        if "3a" in noise:
            extra = unit(noise["3a"][i], 6)
            alpha_i, acc_i = alpha_i + R[i] @ extra[:, :3], acc_i + R[i] @ extra[:, 3:]
        w.append(w_i)
        u.append(u_p + np.cross(w_p, r) + speed)
        alpha.append(alpha_i)
        acc.append(acc_i)
        linear = acc_i.copy()
        linear[..., 0] -= g + np.cross(w_i, u[i])  # with a_0 = -a_g, in Plücker coordinates
        spatial.append(np.concatenate([_turned_back(R[i], alpha_i), _turned_back(R[i], linear)], axis=1))

    net, external = [], []
    for i in range(n):
        I = tree.I[i].astype(np.longdouble)
        w_l = _turned_back(R[i], w[i][..., None])[..., 0]
        first = np.array([I[2, 4], I[0, 5], I[1, 3]])
        felt = acc[i].copy()
        felt[..., 0] -= g
        alpha_l, felt = _turned_back(R[i], alpha[i]), _turned_back(R[i], felt)
        moment = I[:3, :3] @ alpha_l + hat(first) @ felt
        moment[..., 0] += np.cross(w_l, w_l @ I[:3, :3].T)
        force = I[3, 3] * felt - hat(first) @ alpha_l
        force[..., 0] += np.cross(w_l, np.cross(w_l, first))
        net.append(np.concatenate([moment, force], axis=1))
        wrench = unit(fx[i], 6)
        wrench[..., 0] += np.longdouble(known.get(i, 0.0))
        external.append(wrench)

    f, tau = [net[i] - external[i] for i in range(n)], []
    for i in reversed(range(n)):
        if "3f" in noise:
            f[i] = f[i] + unit(noise["3f"][i], 6)
        parent = tree.parents[i]
        if parent >= 0:
            moment, force = R[i] @ f[i][:, :3], R[i] @ f[i][:, 3:]
            moment = moment + hat(p[i] - p[parent]) @ force
            f[parent] = f[parent] + np.concatenate([_turned_back(R[parent], x) for x in (moment, force)], axis=1)
    for i, joint in enumerate(tree.joints):  # the power by each freedom
        torque = _turned_back(turns[i], R[i] @ f[i][:, :3]) + _turned_back(moves[i], R[i] @ f[i][:, 3:])
        tau.append(torque + unit(noise["3tau"][i], joint.nv) if "3tau" in noise else torque)
    of = {"a": spatial, "f": f, "tau": tau, "fx": external, "qdd": [unit(part, part.stop - part.start) for part in qdd]}
    v = [np.concatenate([_turned_back(R[i], x[i][..., None])[..., 0] for x in (w, u)], axis=1) for i in range(n)]
    return AffineMotion(
        of, noise, v, [_turned_back(R[i], np.broadcast_to(g[:, None], (N, 3, 1)))[..., 0] for i in range(n)]
    )


def extended(array: NDArray[Any]) -> Floats:
    """An array in extended precision; one of complex numbers stays one of complex numbers."""
    return np.asarray(array).astype(np.result_type(array, np.longdouble))


def _turned_back(R: Floats, x: Floats) -> Floats:
    return np.swapaxes(R, -1, -2) @ x


def _exponential(w: Floats, u: Floats) -> tuple[Floats, Floats]:
    """The quaternion and displacement of the constant body velocity (w, u) in unit time, by series."""
    square = np.sum(w * w, axis=-1, keepdims=True)

    def series(first: int, scale: int) -> Floats:
        terms = [(-square) ** k / (scale**k * factorial(2 * k + first)) for k in range(10)]
        return np.sum(terms, axis=0)

    quaternion = np.concatenate([w / 2 * series(1, 4), series(0, 4)], axis=-1)
    turned = np.cross(w, u)
    return quaternion, u + series(2, 1) * turned + series(3, 1) * np.cross(w, turned)


def _quaternion_product(a: Floats, b: Floats) -> Floats:
    u, s, v, t = a[..., :3], a[..., 3:], b[..., :3], b[..., 3:]
    vector = s * v + t * u + np.cross(u, v)
    return np.concatenate([vector, s * t - np.sum(u * v, axis=-1, keepdims=True)], axis=-1)


def chart(tree: KinematicTree, q: Floats, x: Floats) -> Floats:
    """The configurations (..., nq) with coordinates x (..., nv) around q: one-parameter motions from q.

    At x = 0 the velocity and acceleration of x are qd and qdd, for constant body velocities are straight lines.
    """
    parts = []
    for joint, s, v in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True):
        step, start = x[..., v], q[s].astype(x.dtype)
        if joint.kind == "spherical":
            turn, _ = _exponential(step, 0 * step)
            part = _quaternion_product(start, turn)
        elif joint.kind == "free":
            turn, shift = _exponential(step[..., :3], step[..., 3:])
            R = quaternion_matrix(start[3:])
            part = np.concatenate([start[:3] + shift @ R.T, _quaternion_product(start[3:], turn)], axis=-1)
        else:
            part = start + step
        parts.append(part)
    return np.concatenate(parts, axis=-1)


OPERATIONS = {
    Op.ADD: operator.add,
    Op.SUB: operator.sub,
    Op.MUL: operator.mul,
    Op.NEG: lambda x, _: -x,
    Op.RECIPROCAL: lambda x, _: 1 / x,
    Op.SQRT: lambda x, _: x**0.5,
}


def evaluate(graph: Graph, inputs: dict[int, object], sin=np.sin, cos=np.cos) -> list[object]:
    """The value of every node, given those of the inputs by index: a walk in topological order."""
    operations = OPERATIONS | {Op.SIN: lambda x, _: sin(x), Op.COS: lambda x, _: cos(x)}
    values: list[object] = []
    for i, op in enumerate(graph.ops):
        if op in (Op.CONSTANT, Op.INPUT):
            values.append(graph.values[i] if op is Op.CONSTANT else inputs[i])
        else:
            values.append(operations[op](*(values[k] if k >= 0 else None for k in (graph.left[i], graph.right[i]))))
    return values


def inputs_of(graph: Graph, **values: Floats) -> tuple[list[NDArray[np.object_]], dict[int, float]]:
    """Arrays of inputs of a graph, one for each array of numbers, and the numbers by the inputs' indices."""
    arrays, at = [], {}
    for label, x in values.items():
        array = np.empty(x.shape, dtype=object)
        for place, value in np.ndenumerate(x):
            array[place] = graph.input(f"{label}{place}")
            at[array[place].index] = value
        arrays.append(array)
    return arrays, at


def extended_rows(system: System, q: Floats, qd: Floats, y: Floats) -> tuple[Floats, Floats]:
    """D and b of D d + b = 0 at one state, put together in extended precision."""
    q, qd, y = (np.asarray(x, dtype=np.longdouble) for x in (q, qd, y))
    at, D = velocities(system.tree, q, qd), np.zeros(system.shape, dtype=np.longdouble)
    for rows, columns, block in system.blocks(at):
        D[rows, columns] = block
    return D, np.concatenate(system.bias(at, y))


def refined_solution(system: System, q: Floats, qd: Floats, y: Floats, steps: int = 8) -> Floats:
    """The unknowns of one state of as many rows: freshly pivoted, then refined in extended precision."""
    D, b = extended_rows(system, q, qd, y)
    scale = 1 / np.abs(D).max(axis=1)
    D, b = scale[:, None] * D, scale * b
    factors, d = la.lu_factor(D.astype(float)), np.zeros(len(b), dtype=np.longdouble)
    for _ in range(steps):
        d = d - la.lu_solve(factors, (D @ d + b).astype(float))
    return d

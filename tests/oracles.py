"""Textbook mechanics in world coordinates; of the package it reads the model's data only.

Three-dimensional vectors throughout (angular velocity, acceleration of points, forces and moments), written
after Newton, Euler and Lagrange instead of RBDA, so that no formula is shared with what it judges.
"""

import operator
from dataclasses import dataclass
from math import factorial

import numpy as np
import scipy.sparse.linalg as spla
from numpy.typing import NDArray

from nori_dyn.algebra.expressions import Graph, Op
from nori_dyn.model.joints import Joint
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
    n = tree.n_links
    g = np.array(tree.gravity)
    R, o = poses(tree, q)
    w, alpha, v, acc = (np.zeros((n, 3)) for _ in range(4))
    turns, moves = [], []
    for i, joint in enumerate(tree.joints):
        p, axes = tree.parents[i], tree.X_tree[i].E.T
        if p >= 0:
            axes = R[p] @ axes
            w_p, alpha_p, v_p, acc_p, o_p = w[p], alpha[p], v[p], acc[p], o[p]
        else:
            w_p = alpha_p = v_p = acc_p = o_p = np.zeros(3)
        about, along, in_body = freedoms(joint)
        if in_body:
            axes = R[i]
        turns.append(axes @ about)
        moves.append(axes @ along)
        own = tree.v_slices[i]
        rate, speed, turn, push = turns[i] @ qd[own], moves[i] @ qd[own], turns[i] @ qdd[own], moves[i] @ qdd[own]
        if joint.kind == "free":  # qd[3:] is in body axes, which turn
            push = push + np.cross(rate, speed)
        arm = o[i] - o_p
        w[i] = w_p + rate
        alpha[i] = alpha_p + turn + np.cross(w_p, rate)
        v[i] = v_p + np.cross(w_p, arm) + speed
        acc[i] = acc_p + np.cross(alpha_p, arm) + np.cross(w_p, np.cross(w_p, arm)) + 2 * np.cross(w_p, speed) + push
    F, N = np.zeros((n, 3)), np.zeros((n, 3))
    kinetic = 0.0
    tau = np.zeros(tree.nv)
    bodies = masses(tree)
    for i in reversed(range(n)):
        body = bodies[i]
        c, I = R[i] @ body.com, R[i] @ body.I_com @ R[i].T
        acc_com = acc[i] + np.cross(alpha[i], c) + np.cross(w[i], np.cross(w[i], c))
        inertial = body.mass * (acc_com - g)
        moment_x, force_x = R[i] @ fx[i, :3], R[i] @ fx[i, 3:]
        F[i] += inertial - force_x
        N[i] += I @ alpha[i] + np.cross(w[i], I @ w[i]) + np.cross(c, inertial) - moment_x
        tau[tree.v_slices[i]] = turns[i].T @ N[i] + moves[i].T @ F[i]  # the power by each freedom
        if tree.parents[i] >= 0:
            p = tree.parents[i]
            F[p] += F[i]
            N[p] += N[i] + np.cross(o[i] - o[p], F[i])
        speed_com = v[i] + np.cross(w[i], c)
        kinetic += body.mass * speed_com @ speed_com / 2 + w[i] @ I @ w[i] / 2
    a, f = [], []
    for i in range(n):
        apparent = acc[i] - g - np.cross(w[i], v[i])  # with a_0 = -a_g, in Plücker coordinates
        a.append(np.concatenate([R[i].T @ alpha[i], R[i].T @ apparent]))
        f.append(np.concatenate([R[i].T @ N[i], R[i].T @ F[i]]))
    return Truth(np.array(a), np.array(f), tau, fx, qdd, kinetic)


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


class Lagrangian:
    """Lagrange's equations by differences of positions in extended precision: no velocity has a formula here.

    Args:
        tree: the robot.
        q: where its coordinates x are centred (nq,).
    """

    STEP = 1e-3

    def __init__(self, tree: KinematicTree, q: Floats) -> None:
        self.tree = tree
        self.q = q.astype(np.longdouble)
        self.masses = masses(tree)
        self.basis = np.eye(tree.nv, dtype=np.longdouble)
        self.steps = STENCIL.astype(np.longdouble) * self.STEP
        left = np.array([1, -4, 1, -4], dtype=np.longdouble) / [280, 105, 5, 5]
        self.weights = np.concatenate([left, -left[::-1]]) / self.STEP

    def _places(self, x: Floats) -> tuple[Floats, Floats]:
        """Rotations (..., n, 3, 3) and centres of mass (..., n, 3)."""
        R, o = poses(self.tree, chart(self.tree, self.q, x))
        c = [p + M @ body.com for p, M, body in zip(o, R, self.masses, strict=True)]
        return np.stack(R, axis=-3), np.stack(c, axis=-2)

    def _velocities(self, x: Floats, u: Floats) -> tuple[Floats, Floats]:
        """Angular velocities in body axes and velocities of the centres of mass (..., n, 3)."""
        R, c = self._places(x[..., None, :] + self.steps[:, None] * u[..., None, :])
        R_0, _ = self._places(x)
        Rd = np.einsum("s,...sbij->...bij", self.weights, R)
        W = np.swapaxes(R_0, -1, -2) @ Rd
        return np.stack([W[..., 2, 1], W[..., 0, 2], W[..., 1, 0]], axis=-1), np.einsum(
            "s,...sbi->...bi", self.weights, c
        )

    def _product(self, first: tuple[Floats, Floats], second: tuple[Floats, Floats]) -> Floats:
        """The kinetic inner product of two velocities of all bodies."""
        mass = np.array([body.mass for body in self.masses])
        I = np.array([body.I_com for body in self.masses])
        linear = np.einsum("b,...bi,...bi->...", mass, first[1], second[1])
        return linear + np.einsum("bij,...bi,...bj->...", I, first[0], second[0])

    def kinetic(self, x: Floats, u: Floats) -> Floats:
        """The kinetic energy (...) at coordinates x with velocities u (..., nv)."""
        v = self._velocities(x, u)
        return self._product(v, v) / 2

    def potential(self, x: Floats) -> Floats:
        """The potential energy (...)."""
        mass = np.array([body.mass for body in self.masses])
        return -np.einsum("b,...bi,i->...", mass, self._places(x)[1], np.array(self.tree.gravity))

    def momentum(self, x: Floats, u: Floats) -> Floats:
        """dT/du (nv,), the kinetic inner product of u with each coordinate's velocity."""
        columns = self._velocities(np.broadcast_to(x, (self.tree.nv, self.tree.nv)), self.basis)
        w, v = self._velocities(x, u)
        return self._product(columns, (w[None], v[None]))

    def H(self) -> NDArray[np.float64]:
        """The inertia matrix (nv, nv)."""
        zero = 0 * self.basis
        w, v = self._velocities(zero, self.basis)
        return self._product((w[:, None], v[:, None]), (w[None], v[None])).astype(float)

    def gravity(self) -> NDArray[np.float64]:
        """The gradient of the potential energy (nv,)."""
        x = self.steps[:, None] * self.basis[:, None, :]
        return np.einsum("s,ks->k", self.weights, self.potential(x)).astype(float)

    def torques(self, qd: Floats, qdd: Floats) -> NDArray[np.float64]:
        """d/dt dT/du - dT/dx + dV/dx (nv,), Lagrange's second equation."""
        qd, zero = qd.astype(np.longdouble), np.zeros(self.tree.nv, dtype=np.longdouble)
        inertial = self.momentum(zero, qdd.astype(np.longdouble))
        changing = sum(
            weight * self.momentum(step * qd, qd) for step, weight in zip(self.steps, self.weights, strict=True)
        )
        x = self.steps[:, None] * self.basis[:, None, :]
        gradient = np.einsum("s,ks->k", self.weights, self.kinetic(x, np.broadcast_to(qd, x.shape)))
        return (inertial + changing - gradient).astype(float) + self.gravity()


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


def refined_solution(system: System, q: np.ndarray, qd: np.ndarray, y: np.ndarray, steps: int = 3) -> np.ndarray:
    """The unknowns of one state: freshly pivoted, then refined with residuals in extended precision."""
    D, b = system.D(q), system.b(q, qd, y)
    lu = spla.splu(D)
    d = lu.solve(-b).astype(np.longdouble)
    exact = D.toarray().astype(np.longdouble)
    for _ in range(steps):
        d = d - lu.solve((exact @ d + b).astype(float))
    return d.astype(float)

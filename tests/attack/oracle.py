"""The variables of a robot by the laws of mechanics in the axes of the world, in extended precision, for many states.

Every variable is an affine function of z = (joint accelerations, external wrenches, noise of the equations of motion).
Nothing of the package computes here: of a tree only its data are read (parents, placements, inertias, axes), and a set
of sensors is the entries of its config. What sensors determine is then a least-squares problem in z, solved by
orthogonal matrices, rows in the order of their weights.

Source: Newton's and Euler's laws; Björck, Numerical Methods for Least Squares Problems, ch. 4.4 (order of rows and
columns) and 5.1.3 (null-space method).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from nori_dyn.model.tree import KinematicTree
from tests.oracles import hat, poses, rodrigues

Extended = NDArray[np.longdouble]

MOTION = ("wx", "wy", "wz", "ax", "ay", "az")
FORCE = ("mx", "my", "mz", "fx", "fy", "fz")


class States(NamedTuple):
    """N states: q (N, nq), qd (N, nv), readings y (N, ny), weights (N, n_weights)."""

    q: NDArray[np.float64]
    qd: NDArray[np.float64]
    y: NDArray[np.float64]
    weights: NDArray[np.float64]

    def __getitem__(self, which: Any) -> States:  # type: ignore[override]
        return States(*(array[which] for array in tuple(self)))


@dataclass(frozen=True)
class Variables:
    """The variables of every body as affine functions of z: (N, size, 1 + nz), the constant term first.

    `of["a"][i]` and so on; `noise["3a"][i]` is where z has the noise of an equation of motion, `v[i]` is the velocity
    of a link (N, 6), and `gravity[i]` gravity in its axes.
    """

    of: Mapping[str, Sequence[Extended]]
    noise: Mapping[str, Sequence[slice]]
    v: Sequence[Extended]
    gravity: Sequence[Extended]


def variables(tree: KinematicTree, states: States, known: Mapping[int, float], noisy: Sequence[str]) -> Variables:
    """Return the variables at some states.

    Args:
        tree: the robot.
        states: the states; only q and qd are read.
        known: links whose external wrench is a known constant in all six components: it is no unknown then.
        noisy: which of "3a", "3f", "3tau" have noise, and so an unknown each.
    """
    q, qd = _extended(states.q), _extended(states.qd)
    N, n = len(q), tree.n_links
    columns = _Columns(1)
    qdd = [columns.take(joint.nv) for joint in tree.joints]
    fx = [None if i in known else columns.take(6) for i in range(n)]
    noise = {law: [columns.take(6 if law != "3tau" else joint.nv) for joint in tree.joints] for law in noisy}
    size = columns.count

    def unit(part: slice | None, rows: int) -> Extended:
        values = np.zeros((N, rows, size), q.dtype)
        if part is not None:
            values[:, range(rows), range(part.start, part.stop)] = 1
        return values

    R, p = poses(tree, q)
    g = np.array(tree.gravity, np.longdouble)
    w, u, alpha, acc = [], [], [], []  # angular velocity, velocity, and their derivatives, of origins in world axes
    spatial: list[Extended] = []
    for i, joint in enumerate(tree.joints):
        parent, rates = tree.parents[i], qd[:, tree.v_slices[i]]
        S_w, S_u, bias = _subspace(joint, q[:, tree.q_slices[i]], rates)
        w_J, u_J = (_turned(R[i], (S @ rates[..., None])[..., 0]) for S in (S_w, S_u))
        if parent >= 0:
            r, w_p, u_p, alpha_p, acc_p = p[i] - p[parent], w[parent], u[parent], alpha[parent], acc[parent]
        else:
            r, w_p, u_p = p[i] * 0, p[i] * 0, p[i] * 0
            alpha_p, acc_p = unit(None, 3), unit(None, 3)
        w_i = w_p + w_J
        unknown = unit(qdd[i], joint.nv)
        alpha_i = alpha_p + (R[i] @ S_w) @ unknown
        alpha_i[..., 0] += np.cross(w_p, w_J)
        acc_i = acc_p - hat(r) @ alpha_p + (R[i] @ S_u) @ unknown
        acc_i[..., 0] += np.cross(w_p, np.cross(w_p, r)) + np.cross(w_p, u_J) + np.cross(w_i, u_J) + _turned(R[i], bias)
        if "3a" in noise:
            extra = unit(noise["3a"][i], 6)
            alpha_i, acc_i = alpha_i + R[i] @ extra[:, :3], acc_i + R[i] @ extra[:, 3:]
        w.append(w_i)
        u.append(u_p + np.cross(w_p, r) + u_J)
        alpha.append(alpha_i)
        acc.append(acc_i)
        E = np.swapaxes(R[i], -1, -2)
        linear = acc_i.copy()
        linear[..., 0] -= g + np.cross(w_i, u[i])
        spatial.append(np.concatenate([E @ alpha_i, E @ linear], axis=1))

    net, external = [], []
    for i in range(n):
        I = tree.I[i].astype(np.longdouble)
        E = np.swapaxes(R[i], -1, -2)
        w_l = _turned(E, w[i])
        first = np.array([I[2, 4], I[0, 5], I[1, 3]])
        felt = acc[i].copy()
        felt[..., 0] -= g
        alpha_l, felt = E @ alpha[i], E @ felt
        moment = I[:3, :3] @ alpha_l + hat(first) @ felt
        moment[..., 0] += np.cross(w_l, w_l @ I[:3, :3].T)
        force = I[3, 3] * felt - hat(first) @ alpha_l
        force[..., 0] += np.cross(w_l, np.cross(w_l, first))
        net.append(np.concatenate([moment, force], axis=1))
        wrench = unit(fx[i], 6)
        wrench[..., 0] += np.longdouble(known.get(i, 0.0))
        external.append(wrench)

    f = [net[i] - external[i] for i in range(n)]
    for i in reversed(range(n)):
        if "3f" in noise:
            f[i] = f[i] + unit(noise["3f"][i], 6)
        parent = tree.parents[i]
        if parent >= 0:
            turn = np.swapaxes(R[parent], -1, -2) @ R[i]
            arm = _turned(np.swapaxes(R[parent], -1, -2), p[i] - p[parent])
            force = turn @ f[i][:, 3:]
            f[parent] = f[parent] + np.concatenate([turn @ f[i][:, :3] + hat(arm) @ force, force], axis=1)
    tau = []
    for i, joint in enumerate(tree.joints):
        S_w, S_u, _ = _subspace(joint, q[:, tree.q_slices[i]], qd[:, tree.v_slices[i]])
        torque = np.swapaxes(np.concatenate([S_w, S_u], axis=1), -1, -2) @ f[i]
        tau.append(torque + unit(noise["3tau"][i], joint.nv) if "3tau" in noise else torque)
    of = {"a": spatial, "f": f, "tau": tau, "fx": external, "qdd": [unit(part, part.stop - part.start) for part in qdd]}
    turned = [np.swapaxes(R[i], -1, -2) for i in range(n)]
    v = [np.concatenate([_turned(turned[i], w[i]), _turned(turned[i], u[i])], axis=1) for i in range(n)]
    return Variables(of, noise, v, [_turned(E, np.broadcast_to(g, (N, 3))) for E in turned])


class _Columns:
    def __init__(self, count: int) -> None:
        self.count = count

    def take(self, size: int) -> slice:
        self.count += size
        return slice(self.count - size, self.count)


def _extended(array: NDArray[Any]) -> Extended:
    """Return an array in extended precision; one of complex numbers stays one of complex numbers."""
    return array.astype(np.result_type(array, np.longdouble))


def _turned(R: Extended, v: Extended) -> Extended:
    return (R @ v[..., None])[..., 0]


def _subspace(joint: Any, q: Extended, qd: Extended) -> tuple[Extended, Extended, Extended]:
    """Return, in the child's axes, what turns and what shifts it (N, 3, nv), and what the second's own rate adds."""
    N, nv = len(q), joint.nv
    S_w, S_u = np.zeros((N, 3, nv), q.dtype), np.zeros((N, 3, nv), q.dtype)
    still = np.zeros((N, 3), q.dtype)
    axis = np.array(getattr(joint, "axis", (0.0, 0.0, 1.0)), np.longdouble)
    match joint.kind:
        case "revolute" | "continuous":
            S_w[..., 0] = axis
        case "prismatic":
            S_u[..., 0] = axis
        case "helical":
            S_w[..., 0], S_u[..., 0] = axis, axis * joint.pitch
        case "cylindrical":
            S_w[..., 0], S_u[..., 1] = axis, axis
        case "spherical":
            S_w[:] = np.eye(3)
        case "free":
            S_w[..., :3], S_u[..., 3:] = np.eye(3), np.eye(3)
        case "planar":  # x and y are axes of the joint's frame on the parent, which do not turn with the child
            E = np.swapaxes(rodrigues(axis, q[:, 0]), -1, -2)
            S_w[..., 0], S_u[..., 1:] = axis, E[..., :2]
            still = -np.cross(axis * qd[:, :1], (S_u @ qd[..., None])[..., 0])
        case "fixed":
            pass
        case _:
            raise AssertionError(f"the oracle does not know the joint {joint.kind}")
    return S_w, S_u, still


class Row(NamedTuple):
    """Rows of one reading: affine in z (N, rows, 1 + nz), less what is read; and their weights (N, rows) or None."""

    values: Extended
    weights: Extended | None


@dataclass(frozen=True)
class Reading:
    """One reading of a config that has been resolved to a place by whoever made it, so that nothing is looked up.

    Attributes:
        type: as in the config.
        body: the link, or the link that the joint carries.
        xyz, rpy: the pose of its frame on the link.
        components: places among the six numbers of a spatial vector; of a joint's reading, all of its freedoms.
        value: known value, or None where it takes readings.
        is_exact: whether it has no sigma.
        n_weights: how many weights it has: 1, or one a component.
    """

    type: str
    body: int
    xyz: tuple[float, float, float]
    rpy: tuple[float, float, float]
    components: tuple[int, ...]
    value: float | None
    is_exact: bool
    n_weights: int


def rows(found: Variables, readings: Sequence[Reading], states: States) -> Iterator[Row]:
    """Yield the rows of noisy equations of motion, then of the readings; y and weights are used up in this order."""
    y, W = _extended(states.y), _extended(states.weights)
    at_y = at_w = 0
    for i, a in enumerate(found.of["a"]):
        for parts in found.noise.values():
            if count := parts[i].stop - parts[i].start:
                values = np.zeros((len(y), count, a.shape[-1]), a.dtype)
                values[:, range(count), range(parts[i].start, parts[i].stop)] = 1
                yield Row(values, np.broadcast_to(W[:, at_w : at_w + 1], (len(y), count)))
                at_w += 1
    for reading in readings:
        values = _read(found, reading)
        count = values.shape[1]
        if reading.value is None:
            values[..., 0] -= y[:, at_y : at_y + count]
            at_y += count
        else:
            values[..., 0] -= np.longdouble(reading.value)
        if reading.is_exact:
            yield Row(values, None)
        else:
            own = reading.n_weights
            yield Row(values, np.broadcast_to(W[:, at_w : at_w + own], (len(y), count)))
            at_w += own


def _read(found: Variables, reading: Reading) -> Extended:
    i, kinds = reading.body, {"joint_acceleration": "qdd", "joint_torque": "tau"}
    if reading.type in kinds:
        return found.of[kinds[reading.type]][i].copy()
    E = _rotation(reading.rpy).T
    r = np.array(reading.xyz, np.longdouble)
    pick = list(reading.components)
    match reading.type:
        case "external_wrench" | "force_torque":
            wrench = found.of["fx" if reading.type == "external_wrench" else "f"][i]
            couple = wrench[:, :3] - hat(r) @ wrench[:, 3:]
            return np.concatenate([E @ couple, E @ wrench[:, 3:]], axis=1)[:, pick]
        case "link_acceleration" | "angular_accelerometer":
            a = found.of["a"][i]
            return np.concatenate([E @ a[:, :3], E @ (a[:, 3:] - hat(r) @ a[:, :3])], axis=1)[:, pick]
        case "accelerometer" | "rigid_contact":
            a, w, u = found.of["a"][i], found.v[i][:, :3], found.v[i][:, 3:]
            linear = a[:, 3:] - hat(r) @ a[:, :3]
            linear[..., 0] += np.cross(w, u) + np.cross(w, np.cross(w, r))
            if reading.type == "rigid_contact":
                linear[..., 0] += found.gravity[i]
            return np.concatenate([E @ a[:, :3], E @ linear], axis=1)[:, pick]
    raise AssertionError(f"the oracle does not know the sensor {reading.type}")


def _rotation(rpy: Sequence[float]) -> Extended:
    """Return R = Rz(yaw) Ry(pitch) Rx(roll); a quarter turn is exact, as it is in configs."""
    x, y, z = np.eye(3)
    R = np.eye(3, dtype=np.longdouble)
    for axis, angle in zip((z, y, x), rpy[::-1], strict=True):
        R = R @ rodrigues(axis.astype(np.longdouble), np.longdouble(angle))
    return R


def solve(found: Sequence[Row]) -> Extended:
    """Return the z (N, nz) that minimises the weighed rows where the exact ones hold."""
    exact = np.concatenate([row.values for row in found if row.weights is None] or [found[0].values[:, :0]], axis=1)
    soft = np.concatenate([row.values for row in found if row.weights is not None] or [exact[:, :0]], axis=1)
    weights = np.concatenate([row.weights for row in found if row.weights is not None] or [exact[:, :0, 0]], axis=1)
    N, n_exact, n = exact.shape[0], exact.shape[1], exact.shape[2] - 1
    C, c = exact[..., 1:], exact[..., 0]
    z = np.zeros((N, n), np.longdouble)
    basis = np.broadcast_to(np.eye(n, dtype=np.longdouble), (N, n, n))
    if n_exact:
        length = np.sqrt(np.sum(C * C, axis=2))
        length[length == 0] = 1
        scaled = np.swapaxes(C / length[..., None], 1, 2)
        R, Q, order = _qr(scaled, basis)
        right = np.take_along_axis(-c / length, order, axis=1)
        first = _forward(R, right)
        z = (Q[:, :, :n_exact] @ first[..., None])[..., 0]
        basis = Q[:, :, n_exact:]
    if basis.shape[2]:
        root = np.sqrt(weights)
        A = root[..., None] * (soft[..., 1:] @ basis)
        b = root * (soft[..., 0] + (soft[..., 1:] @ z[..., None])[..., 0])
        heavy = np.argsort(-np.abs(A).max(axis=2), axis=1, kind="stable")
        A, b = np.take_along_axis(A, heavy[..., None], axis=1), np.take_along_axis(b, heavy, axis=1)
        scale = np.sqrt(np.sum(A * A, axis=1))
        scale[scale == 0] = 1
        R, QTb, order = _qr(A / scale[:, None, :], -b[..., None], transpose=True)
        t = np.empty((N, basis.shape[2]), np.longdouble)
        np.put_along_axis(t, order, _backward(R, QTb[:, : basis.shape[2], 0]), axis=1)
        z = z + (basis @ (t / scale)[..., None])[..., 0]
    return z


def _qr(A: Extended, X: Extended, transpose: bool = False) -> tuple[Extended, Extended, NDArray[np.intp]]:
    """Return R of A P = Q R (N, m, n), X Q or, transposed, Q^T X, and P as the order of the columns."""
    A, X = A.copy(), X.copy()
    N, m, n = A.shape
    order = np.tile(np.arange(n), (N, 1))
    each = np.arange(N)
    for k in range(n):
        best = k + np.argmax(np.sum(A[:, k:, k:] ** 2, axis=1), axis=1)
        A[each, :, k], A[each, :, best] = A[each, :, best], A[each, :, k].copy()
        order[each, k], order[each, best] = order[each, best], order[each, k].copy()
        if k >= m:
            continue
        # heavy rows first: of those left, the largest of the column becomes the pivot's row
        x = A[:, k:, k]
        size = np.sqrt(np.sum(x * x, axis=1))
        v = x.copy()
        v[:, 0] += np.where(x[:, 0] < 0, -size, size)
        square = np.sum(v * v, axis=1)
        factor = np.where(square > 0, 2 / np.where(square > 0, square, 1), 0)
        A[:, k:, k:] -= (factor[:, None] * v)[..., None] * (v[:, None, :] @ A[:, k:, k:])
        if transpose:
            X[:, k:] -= (factor[:, None] * v)[..., None] * (v[:, None, :] @ X[:, k:])
        else:
            X[:, :, k:] -= (X[:, :, k:] @ v[..., None]) * (factor[:, None] * v)[:, None, :]
    return A[:, :n], X, order


def _backward(R: Extended, b: Extended) -> Extended:
    x = b.copy()
    with np.errstate(all="ignore"):
        for k in reversed(range(b.shape[1])):
            x[:, k] = x[:, k] / R[:, k, k]
            x[:, :k] -= R[:, :k, k] * x[:, k : k + 1]
    return x


def _forward(R: Extended, b: Extended) -> Extended:
    """Return the solution of R^T x = b."""
    x = b.copy()
    with np.errstate(all="ignore"):
        for k in range(b.shape[1]):
            x[:, k] = x[:, k] / R[:, k, k]
            x[:, k + 1 :] -= R[:, k, k + 1 :] * x[:, k : k + 1]
    return x

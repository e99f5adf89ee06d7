"""Random mixed trees against checks that nobody here wrote.

Lagrange's equations by differences of positions in extended precision, the balance of power, Newton's and Euler's
laws in world coordinates, MuJoCo and Pinocchio.
"""

from __future__ import annotations

import functools

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.algebra.spatial import Transform
from nori_dyn.measurements.sensor_set import SensorSet
from nori_dyn.model.joints import JOINTS, Free
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.system.builder import System
from tests.oracles import Lagrangian, derivative, masses, newton_euler, poses
from tests.peers import mujoco, pin
from tests.tolerances import (
    DIFFERENCES,
    EXTENDED,
    QUADRATURE,
    RECURSION,
    SOLVED,
    assert_close,
)
from tests.trees import TREES, random_state

MIXED = {f"{n} bodies": random_tree(n, seed=50 + n) for n in (2, 3, 5, 8, 13, 20)}
SINGLE = {kind: random_tree(3, seed=60, kinds=(kind,)) for kind in JOINTS if kind != "fixed"}
LARGE = {"40 bodies": random_tree(40, seed=90), "chain of 40": random_tree(40, seed=91, chain=1.0)}
SMALL = {name: tree for name, tree in TREES.items() if name != "massless"} | MIXED | SINGLE
ALL = SMALL | LARGE


def every(trees: dict[str, KinematicTree]):
    return pytest.mark.parametrize("tree", trees.values(), ids=trees)


def system(tree: KinematicTree, known: str) -> System:
    rows = [{"type": known, "joints": "all"}, {"type": "external_wrench", "links": "all"}]
    return System(tree, SensorSet.from_dict({"name": known, "measurements": rows}))


def solve(bound: System, q, qd, y) -> np.ndarray:
    """Return d of D d + b = 0."""
    return spla.spsolve(bound.D(q).tocsc(), -bound.b(q, qd, y))


def gather(bound: System, d: np.ndarray, kind: str) -> np.ndarray:
    return np.concatenate([d[v.slice] for v in bound.variables if v.kind == kind])


def inverse(tree: KinematicTree, q, qd, qdd, fx=None) -> np.ndarray:
    """Return tau (nv,) of the system with known joint accelerations."""
    bound, fx = system(tree, "joint_acceleration"), np.zeros((tree.n_links, 6)) if fx is None else fx
    return gather(bound, solve(bound, q, qd, np.r_[qdd, fx.ravel()]), "tau")


def forward(tree: KinematicTree, q, qd, tau, fx=None) -> np.ndarray:
    """Return qdd (nv,) of the system with known joint torques."""
    bound, fx = system(tree, "joint_torque"), np.zeros((tree.n_links, 6)) if fx is None else fx
    return gather(bound, solve(bound, q, qd, np.r_[tau, fx.ravel()]), "qdd")


def inertia_by_columns(tree: KinematicTree, q) -> np.ndarray:
    """Return H (nv, nv): the torques of unit accelerations, without velocity and gravity."""
    floating = tree.replace(gravity=(0.0, 0.0, 0.0))
    bound, zero = system(floating, "joint_acceleration"), np.zeros(tree.nv)
    Y = np.r_[np.eye(tree.nv), np.zeros((6 * tree.n_links, tree.nv))]
    B = np.column_stack([bound.b(q, zero, y) for y in Y.T])
    d = spla.splu(bound.D(q).tocsc()).solve(-B)
    return np.array([gather(bound, column, "tau") for column in d.T]).T


@functools.cache
def lagrangian(tree: KinematicTree, seed: int) -> Lagrangian:
    return Lagrangian(tree, random_state(tree, seed)[0])


@every(ALL)
def test_torques_are_those_of_lagranges_equations(tree):
    q, qd, qdd, _ = random_state(tree, 1)
    assert_close(inverse(tree, q, qd, qdd), lagrangian(tree, 1).torques(qd, qdd), EXTENDED)


@every(SMALL)
def test_torques_at_rest_are_the_gradient_of_the_potential(tree):
    q, qd, *_ = random_state(tree, 1)
    assert_close(inverse(tree, q, 0 * qd, 0 * qd), lagrangian(tree, 1).gravity(), EXTENDED)


@every(SMALL)
def test_inertia_matrix_is_that_of_the_kinetic_energy(tree):
    q, qd, *_ = random_state(tree, 1)
    H = inertia_by_columns(tree, q)
    assert_close(H, lagrangian(tree, 1).H(), EXTENDED)
    assert_close(H, H.T, RECURSION)
    assert np.linalg.eigvalsh((H + H.T) / 2).min() > 0
    kinetic = newton_euler(tree, q, qd, 0 * qd, np.zeros((tree.n_links, 6))).kinetic
    assert qd @ H @ qd / 2 == pytest.approx(kinetic, rel=RECURSION.value)


@every(ALL)
def test_all_variables_are_those_of_newton_and_euler_in_the_world(tree):
    q, qd, qdd, fx = random_state(tree, 2)
    truth = newton_euler(tree, q, qd, qdd, fx)
    bound = system(tree, "joint_acceleration")
    assert_close(solve(bound, q, qd, np.r_[qdd, fx.ravel()]), truth.d(bound), RECURSION)


def test_a_massless_link_is_fine_for_inverse_dynamics():
    tree = TREES["massless"]
    q, qd, qdd, fx = random_state(tree, 3)
    assert_close(inverse(tree, q, qd, qdd, fx), newton_euler(tree, q, qd, qdd, fx).tau, RECURSION)


@every(ALL)
def test_forward_and_inverse_dynamics_undo_each_other(tree):
    q, qd, qdd, fx = random_state(tree, 4)
    tau = inverse(tree, q, qd, qdd, fx)
    found = forward(tree, q, qd, tau, fx)
    assert_close(inverse(tree, q, qd, found, fx), tau, RECURSION)
    assert_close(found, qdd, SOLVED)


@every(ALL)
def test_forward_dynamics_solves_the_equation_of_motion(tree):
    """H qdd + C = tau, H by columns and C by inverse dynamics of the same system: backward error."""
    q, qd, tau, fx = random_state(tree, 5)
    qdd = forward(tree, q, qd, tau, fx)
    H, C = inertia_by_columns(tree, q), inverse(tree, q, qd, 0 * qd, fx)
    scale = np.abs(H).sum(axis=1).max() * np.abs(qdd).max() + np.abs(C).max()
    assert np.abs(H @ qdd + C - tau).max() <= RECURSION.value * scale


@every(SMALL)
def test_power_is_the_rate_of_energy(tree):
    """d/dt (T + V) = tau . qd + sum fx . v, along the motion that forward dynamics gives."""
    q, qd, tau, fx = random_state(tree, 6)
    qdd = forward(tree, q, qd, tau, fx)

    def energy(t: float) -> float:
        state = tree.integrate(q, qd, t), qd + t * qdd
        moment = newton_euler(tree, *state, 0 * qd, 0 * fx)
        return moment.kinetic + moment.potential

    now = newton_euler(tree, q, qd, qdd, fx)
    rate = float(derivative(energy, 1e-2 / max(1.0, np.abs(qdd).max())))
    size = np.abs(tau * qd).sum() + abs(now.power) + abs(energy(0.0)) * max(1.0, np.abs(qdd).max())
    assert abs(rate - now.power) <= DIFFERENCES.value * size


def test_energy_is_kept_along_an_integrated_motion():
    tree = TREES["two_roots"]
    q, qd, *_ = random_state(tree, 7)
    tau, zero, h = np.zeros(tree.nv), np.zeros((tree.n_links, 6)), 2e-3

    def energy() -> float:
        state = newton_euler(tree, q, qd, tau, zero)
        return state.kinetic + state.potential

    start = energy()
    for _ in range(100):
        # Runge and Kutta in the chart around q; its Jacobian differs from 1 by half a bracket of the step.
        k = [(qd, forward(tree, q, qd, tau))]
        for part in (0.5, 0.5, 1.0):
            x, speed = part * h * k[-1][0], qd + part * h * k[-1][1]
            k.append((_chart_rate(tree, x, speed), forward(tree, tree.integrate(q, x), speed, tau)))
        x, dv = (h / 6 * (a + 2 * b + 2 * c + d) for a, b, c, d in zip(*k, strict=True))
        q, qd = tree.integrate(q, x), qd + dv
    assert abs(energy() - start) <= QUADRATURE.value * max(1.0, abs(start))


def _chart_rate(tree: KinematicTree, x, qd) -> np.ndarray:
    """Return the rate of the coordinates x of `integrate`, to third order: qd + [x, qd]/2 + [x, [x, qd]]/12."""

    def bracket(u, v):
        result = np.zeros_like(u)
        for joint, s in zip(tree.joints, tree.v_slices, strict=True):
            if joint.kind == "spherical":
                result[s] = np.cross(u[s], v[s])
            elif joint.kind == "free":
                w, n, a, b = u[s][:3], u[s][3:], v[s][:3], v[s][3:]
                result[s] = np.r_[np.cross(w, a), np.cross(n, a) + np.cross(w, b)]
        return result

    once = bracket(x, qd)
    return qd + once / 2 + bracket(x, once) / 12


# MuJoCo: hinge, slide, ball, and free joints on the world.


def for_mujoco(n: int, seed: int, floating: bool) -> KinematicTree:
    tree = random_tree(n, seed, kinds=("revolute", "prismatic", "spherical"))
    if floating:
        X_tree = (Transform.identity(), *tree.X_tree[1:])
        tree = tree.replace(joints=(Free(), *tree.joints[1:]), X_tree=X_tree)
    return tree


def numbers(values) -> str:
    return " ".join(f"{float(value)!r}" for value in np.ravel(values))


def wxyz(E: np.ndarray) -> np.ndarray:
    x, y, z, w = pin.Quaternion(np.ascontiguousarray(E.T)).coeffs()
    return np.array([w, x, y, z])


def mjcf(tree: KinematicTree) -> str:
    bodies = masses(tree)

    def body(i: int) -> str:
        X, (mass, com, I) = tree.X_tree[i], (bodies[i].mass, bodies[i].com, bodies[i].I_com)
        full = numbers([I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2]])
        kind = {"revolute": "hinge", "prismatic": "slide", "spherical": "ball", "free": "free"}[tree.joints[i].kind]
        axis = f'axis="{numbers(tree.joints[i].axis)}"' if kind in ("hinge", "slide") else ""
        return (
            f'<body name="{tree.names[i]}" pos="{numbers(X.r)}" quat="{numbers(wxyz(X.E))}">'
            f'<joint type="{kind}" {axis} armature="0" damping="0" frictionloss="0" stiffness="0" limited="false"/>'
            f'<inertial pos="{numbers(com)}" mass="{numbers(mass)}" fullinertia="{full}"/>'
            + "".join(map(body, tree.children[i]))
            + "</body>"
        )

    roots = "".join(body(i) for i in range(tree.n_links) if tree.is_root(i))
    return (
        f'<mujoco><compiler angle="radian"/><option gravity="{numbers(tree.gravity)}"/>'
        f"<worldbody>{roots}</worldbody></mujoco>"
    )


class MuJoCo:
    """MuJoCo's model of a tree, taking and giving our coordinates.

    The free joint's linear velocity is that of its origin in world axes; quaternions are scalar first.
    """

    def __init__(self, tree: KinematicTree) -> None:
        self.tree = tree
        self.model = mujoco.MjModel.from_xml_string(mjcf(tree))
        self.data = mujoco.MjData(self.model)
        self.bodies = [self.model.body(name).id for name in tree.names]

    def joint_addresses(self, i: int) -> tuple[int, int]:
        joint = self.model.body_jntadr[self.bodies[i]]
        return self.model.jnt_qposadr[joint], self.model.jnt_dofadr[joint]

    def inverse(self, q, qd, qdd, fx) -> np.ndarray:
        tree, data = self.tree, self.data
        R, o = poses(tree, q)
        for i, joint in enumerate(tree.joints):
            p, v = self.joint_addresses(i)
            x, rate, accel = q[tree.q_slices[i]], qd[tree.v_slices[i]], qdd[tree.v_slices[i]]
            if joint.kind == "free":
                data.qpos[p : p + 7] = np.r_[x[:3], x[6], x[3:6]]
                data.qvel[v : v + 6] = np.r_[R[i] @ rate[3:], rate[:3]]
                data.qacc[v : v + 6] = np.r_[R[i] @ (accel[3:] + np.cross(rate[:3], rate[3:])), accel[:3]]
            elif joint.kind == "spherical":
                data.qpos[p : p + 4] = np.r_[x[3], x[:3]]
                data.qvel[v : v + 3], data.qacc[v : v + 3] = rate, accel
            else:
                data.qpos[p], data.qvel[v], data.qacc[v] = x[0], rate[0], accel[0]
        mujoco.mj_inverse(self.model, data)
        force = data.qfrc_inverse.copy()
        for i, body in enumerate(self.bodies):
            pushed = np.zeros(self.model.nv)
            mujoco.mj_applyFT(self.model, data, R[i] @ fx[i, 3:], R[i] @ fx[i, :3], o[i], body, pushed)
            force -= pushed
        tau = np.empty(tree.nv)
        for i, joint in enumerate(tree.joints):
            _, v = self.joint_addresses(i)
            own = force[v : v + joint.nv]
            tau[tree.v_slices[i]] = np.r_[own[3:], R[i].T @ own[:3]] if joint.kind == "free" else own
        return tau


@pytest.mark.parametrize("floating", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize("n", [1, 2, 4, 8, 16, 40])
def test_inverse_dynamics_equals_mujoco(n, floating):
    tree = for_mujoco(n, seed=70 + n, floating=floating)
    peer = MuJoCo(tree)
    for seed in range(5):
        q, qd, qdd, fx = random_state(tree, seed)
        assert_close(inverse(tree, q, qd, qdd, fx), peer.inverse(q, qd, qdd, fx), RECURSION)


# Pinocchio: every joint; planar and cylindrical ones are composites of its own.

FLIP = np.r_[3:6, 0:3]


def in_pinocchio(tree: KinematicTree):
    """Return Pinocchio's model, where each body is in it, and the places of its coordinates and freedoms in ours.

    What is on a fixed joint is part of the body that carries it.
    """
    model, q_order, v_order = pin.Model(), [], []
    model.gravity.linear = np.array(tree.gravity)
    places: list[tuple[int, pin.SE3]] = []
    for i, (joint, body) in enumerate(zip(tree.joints, masses(tree), strict=True)):
        axis = np.array(getattr(joint, "axis", (0.0, 0.0, 1.0)))
        q_own, v_own = np.arange(joint.nq), np.arange(joint.nv)
        match joint.kind:
            case "revolute" | "continuous":
                theirs = pin.JointModelRevoluteUnaligned(axis)
            case "prismatic":
                theirs = pin.JointModelPrismaticUnaligned(axis)
            case "helical":
                theirs = pin.JointModelHelicalUnaligned(axis, joint.pitch)
            case "cylindrical":
                theirs = pin.JointModelComposite()
                theirs.addJoint(pin.JointModelRevoluteUnaligned(axis))
                theirs.addJoint(pin.JointModelPrismaticUnaligned(axis))
            case "planar":
                theirs = pin.JointModelComposite()
                for part in (pin.JointModelPX(), pin.JointModelPY(), pin.JointModelRZ()):
                    theirs.addJoint(part)
                q_own = v_own = np.array([1, 2, 0])
            case "spherical":
                theirs = pin.JointModelSpherical()
            case "free":
                theirs, v_own = pin.JointModelFreeFlyer(), FLIP
            case "fixed":
                theirs = None
        X = tree.X_tree[i]
        parent, carrier = (0, pin.SE3.Identity()) if tree.is_root(i) else places[tree.parents[i]]
        place = carrier * pin.SE3(X.E.T, X.r)
        if theirs is None:
            places.append((parent, place))
        else:
            places.append((model.addJoint(parent, theirs, place, tree.joint_names[i]), pin.SE3.Identity()))
        number, place = places[i]
        model.appendBodyToJoint(number, pin.Inertia(body.mass, body.com, body.I_com), place)
        q_order.append(tree.q_slices[i].start + q_own)
        v_order.append(tree.v_slices[i].start + v_own)
    return model, places, np.concatenate(q_order), np.concatenate(v_order)


@every(ALL)
def test_inverse_and_forward_dynamics_equal_pinocchio(tree):
    model, places, q_order, v_order = in_pinocchio(tree)
    # Its crba is left out: it asks for numbers by depth first, where these trees need not have them.
    data = model.createData()
    for seed in range(3):
        q, qd, qdd, fx = random_state(tree, seed)
        forces = pin.StdVec_Force()
        forces.extend([pin.Force.Zero()] * model.njoints)
        for i, (k, place) in enumerate(places):
            forces[k] = forces[k] + place.act(pin.Force(fx[i][FLIP]))
        tau = np.empty(tree.nv)
        tau[v_order] = pin.rnea(model, data, q[q_order], qd[v_order], qdd[v_order], forces)
        assert_close(inverse(tree, q, qd, qdd, fx), tau, RECURSION)
        found = np.empty(tree.nv)
        found[v_order] = pin.aba(model, data, q[q_order], qd[v_order], tau[v_order], forces)
        assert_close(forward(tree, q, qd, tau, fx), found, SOLVED)

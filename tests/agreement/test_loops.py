"""Mechanisms with closed loops and coupled joints, against Pinocchio and against equations by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.components import Coupling, Loop
from nori_dyn.model.closure import closed
from nori_dyn.model.synthetic import random_tree
from nori_dyn.model.tree import KinematicTree
from nori_dyn.recursions import bias_force, crba
from nori_dyn.system.builder import System
from tests.cassie import CASSIE_SPRINGS, cassie, mjcf_model
from tests.in_pinocchio import PROXIMAL, constrained_dynamics
from tests.mechanisms import (
    BARREL,
    COUPLER,
    CRANK,
    DELTA_ARM,
    DELTA_ARM_MASS,
    DELTA_AZIMUTHS,
    DELTA_BASE,
    DELTA_PLATFORM,
    DELTA_PLATFORM_MASS,
    DELTA_REST,
    DELTA_TILT,
    GROUND,
    ROCKER,
    ROD,
    STEWART_COM,
    STEWART_INERTIA,
    STEWART_MASS,
    STEWART_REST,
    closed_state,
    delta,
    five_bar,
    forward_dynamics,
    four_bar,
    light_delta,
    sprung_leg,
    stewart,
    stewart_points,
    turn,
    welded_limbs,
)
from tests.oracles import derivative, masses, quaternion_matrix
from tests.peers import pin
from tests.systems import sensor_set
from tests.tolerances import SOLVED, assert_close

MECHANISMS = {make.__name__: make for make in (five_bar, sprung_leg, delta, stewart)}
LONG = {make.__name__: pytest.param(make, marks=pytest.mark.long) for make in (four_bar, cassie)}
every_mechanism = pytest.mark.parametrize("make", (MECHANISMS | LONG).values(), ids=MECHANISMS | LONG)


def check_against_pinocchio(tree: KinematicTree, q, qd, tau) -> None:
    qdd, forces = forward_dynamics(tree, q, qd, tau)
    expected, wrenches = constrained_dynamics(tree, q, qd, tau)
    assert_close(qdd, expected, SOLVED)
    for loop in tree.components:
        if isinstance(loop, Loop):
            assert_close(forces[f"loop:{loop.name}"], loop.subspace()[0].T @ wrenches[loop.name], SOLVED)


@every_mechanism
def test_forward_dynamics_and_wrenches_of_loops_equal_pinocchio(make):
    tree = make()
    for seed in range(2):
        check_against_pinocchio(tree, *closed_state(tree, seed))


BAUMGARTE = {"position": 60.0, "velocity": 12.0}


@pytest.mark.parametrize("constrains", ["point", "pose"])
def test_welded_limbs_equal_pinocchio(constrains):
    """Closed, and with correctors off the closed configurations by a gap, and by a velocity that widens it."""
    rng = np.random.default_rng(3)
    for seed, (stabilisation, gap) in enumerate([(None, 0.0), *((BAUMGARTE, gap) for gap in (0.0, 1e-6, 0.05))]):
        tree = welded_limbs(constrains, stabilisation)
        q, qd, tau = closed_state(tree, seed)
        q = tree.integrate(q, gap * rng.normal(size=tree.nv))
        check_against_pinocchio(tree, q, qd + gap * rng.normal(size=tree.nv), tau)


def test_cassie_equals_pinocchios_own_reading_of_its_file():
    """Loops, inertias of rotors and joints as Pinocchio reads them from the MJCF; springs it leaves out."""
    tree = cassie()
    model, loops = pin.buildModelAndLegacyConstraintsFromMJCF(str(mjcf_model("cassie.xml")))
    for seed in range(2):
        q, qd, tau = closed_state(tree, seed)
        without = tau.copy()
        for i, name in enumerate(tree.joint_names):
            stiffness = CASSIE_SPRINGS.get(name.partition("-")[2], 0.0)
            without[tree.v_slices[i]] -= stiffness * q[tree.q_slices[i]][: tree.joints[i].nv]
        data, datas = model.createData(), pin.StdVec_RigidConstraintData()
        datas.extend([loop.createData() for loop in loops])
        pin.initConstraintDynamics(model, data, loops, datas)
        expected = pin.constraintDynamics(model, data, q, qd, without, loops, datas, pin.ProximalSettings(*PROXIMAL))
        found, forces = forward_dynamics(tree, q, qd, tau)
        assert_close(found, expected, SOLVED)
        for loop, theirs in zip(loops, datas, strict=True):
            z = forces[f"loop:{model.names[loop.joint1_id]}"]
            assert_close(z, theirs.contact_force.linear[: len(z)], SOLVED)


Position = Callable[[np.ndarray], float]


def mimic(q) -> float:
    return 0.3 - 1.4 * q[1]


def curve(q) -> float:
    return 0.1 + 0.5 * q[1] - 0.3 * q[1] ** 2 + 0.2 * q[1] ** 3


def differential(q) -> float:
    return 0.5 * q[2] - 0.5 * q[5]


def nonlinear_sum(q) -> float:
    return -0.2 * q[0] + 0.4 * q[2] ** 2


COUPLED: dict[int, tuple[Position, Coupling]] = {
    7: (mimic, Coupling(name="mimic", joint="joint8", of={"joint2": -1.4}, offset=0.3)),
    6: (differential, Coupling(name="differential", joint="joint7", of={"joint3": 0.5, "joint6": -0.5})),
    4: (nonlinear_sum, Coupling(name="sum", joint="joint5", of={"joint1": -0.2, "joint3": [0.0, 0.4]})),
    3: (curve, Coupling(name="curve", joint="joint4", of={"joint2": [0.5, -0.3, 0.2]}, offset=0.1)),
}
"""What joints follow, by the number of their freedom."""


def test_coupled_joints_move_as_in_reduced_coordinates():
    """G^T H G x'' + G^T (C + H G' x') = G^T tau, q = g(x) and G its slope by differences."""
    bare = random_tree(8, seed=41, kinds=("revolute", "prismatic", "revolute"), chain=0.6)
    tree = bare.replace(components=tuple(coupling for _, coupling in COUPLED.values()))
    free = [k for k in range(tree.nv) if k not in COUPLED]

    def whole(x) -> np.ndarray:
        q = np.zeros(tree.nv)
        q[free] = x
        for k, (position, _) in COUPLED.items():
            q[k] = position(q)
        return q

    rng = np.random.default_rng(0)
    x, dx, tau = rng.normal(size=len(free)), rng.normal(size=len(free)), 10 * rng.normal(size=tree.nv)
    G = np.array([derivative(lambda t, e=e: whole(x + t * e)) for e in np.eye(len(free))]).T
    bend = derivative(lambda s: derivative(lambda t: whole(x + (s + t) * dx)))
    q, qd = whole(x), G @ dx
    H, C = crba(bare, q), bias_force(bare, q, qd)
    qdd = G @ np.linalg.solve(G.T @ H @ G, G.T @ (tau - C - H @ bend)) + bend
    found, forces = forward_dynamics(tree, q, qd, tau)
    assert_close(found, qdd, SOLVED)
    held = H @ qdd + C - tau
    found = np.concatenate([forces[f"coupling:{coupling.name}"] for _, coupling in COUPLED.values()])
    assert_close(found, held[list(COUPLED)], SOLVED)


class Bars(NamedTuple):
    """A four-bar linkage at an angle of its crank: angles and centres of mass (as complex numbers) of its three bars.

    a e^(i theta) + b e^(i phi) = d + c e^(i psi), and its two derivatives after theta.
    """

    angles: np.ndarray
    rates: np.ndarray
    bends: np.ndarray
    centres: np.ndarray
    centres_rate: np.ndarray
    centres_bend: np.ndarray

    @staticmethod
    def at(theta: float) -> Bars:
        elbow, pivot = CRANK * np.exp(1j * theta), complex(GROUND)
        way = pivot - elbow
        d = abs(way)
        along = (d * d + COUPLER**2 - ROCKER**2) / (2 * d)
        meet = elbow + way / d * (along + 1j * np.sqrt(COUPLER**2 - along * along))
        angles = np.array([theta, np.angle(meet - elbow), np.angle(meet - pivot)])
        u = np.array([CRANK, COUPLER, ROCKER]) * np.exp(1j * angles)

        def others(right: complex) -> np.ndarray:
            """Solve phi' b e^(i phi) - psi' c e^(i psi) = right."""
            M = np.array([[u[1].real, -u[2].real], [u[1].imag, -u[2].imag]])
            return np.linalg.solve(M, [right.real, right.imag])

        first = np.array([1.0, *others(-u[0])])
        second = np.array([0.0, *others(-1j * (u[0] + first[1] ** 2 * u[1] - first[2] ** 2 * u[2]))])
        turned, bent = 1j * first * u, (1j * second - first**2) * u
        return Bars(
            angles,
            first,
            second,
            np.array([u[0] / 2, u[0] + u[1] / 2, GROUND + u[2] / 2]),
            np.array([turned[0] / 2, turned[0] + turned[1] / 2, turned[2] / 2]),
            np.array([bent[0] / 2, bent[0] + bent[1] / 2, bent[2] / 2]),
        )


def test_four_bar_linkage_equals_lagranges_equations_by_hand():
    """M(theta) theta'' + M'(theta) theta'^2 / 2 + V'(theta) = Q, with one generalised coordinate."""
    for theta in (0.7, 2.0, -2.5, 0.0):
        tree, bars, speed = four_bar(theta), Bars.at(theta), 1.7
        tau = np.array([3.0, -2.0, 1.0])
        mass, lengths = np.array([body.mass for body in masses(tree)]), np.array([CRANK, COUPLER, ROCKER])
        I = mass * lengths**2 / 12
        M = mass @ np.abs(bars.centres_rate) ** 2 + I @ bars.rates**2
        half = mass @ (bars.centres_rate.conj() * bars.centres_bend).real + I @ (bars.rates * bars.bends)
        relative = np.array([[1, 0, 0], [-1, 1, 0], [0, 0, 1]])  # the coupler's joint angle is against the crank
        Q = tau @ relative @ bars.rates
        thetadd = (Q - half * speed**2 - 9.81 * mass @ bars.centres_rate.imag) / M
        qd, qdd = relative @ bars.rates * speed, relative @ (bars.rates * thetadd + bars.bends * speed**2)
        assert_close(forward_dynamics(tree, np.zeros(3), qd, tau)[0], qdd, SOLVED)


def test_light_delta_robot_equals_its_equations_by_hand():
    """A platform that is only shifted, and arms; each pair of rods pushes with lambda along both."""
    tree, L = light_delta(), DELTA_ARM
    for seed in range(3):
        q, qd, tau = closed_state(tree, seed)
        tau[:6] = 0
        p, v = q[:3] + DELTA_REST, quaternion_matrix(q[3:7]) @ qd[3:6]
        A, right = np.zeros((9, 9)), np.zeros(9)  # of p'', t'' of the arms, and lambda
        A[:3, :3], right[:3] = DELTA_PLATFORM_MASS * np.eye(3), [0, 0, -9.81 * DELTA_PLATFORM_MASS]
        for k, azimuth in enumerate(DELTA_AZIMUTHS):
            t, rate = DELTA_TILT + q[7 + k], qd[6 + k]
            R, c, s = turn(azimuth), np.cos(t), np.sin(t)
            e, e_1, e_2 = R @ [DELTA_BASE + L * c, 0, -L * s], R @ [-L * s, 0, -L * c], R @ [-L * c, 0, L * s]
            u = p + R @ [DELTA_PLATFORM, 0, 0] - e
            n, apart = u / np.linalg.norm(u), v - e_1 * rate
            A[:3, 6 + k], A[3 + k, 3 + k], A[3 + k, 6 + k] = -n, DELTA_ARM_MASS * L**2 / 3, n @ e_1
            right[3 + k] = tau[6 + k] + DELTA_ARM_MASS * 9.81 * L / 2 * c
            A[6 + k, :3], A[6 + k, 3 + k] = u, -u @ e_1
            right[6 + k] = u @ e_2 * rate**2 - apart @ apart
        x = np.linalg.solve(A, right)
        qdd, forces = forward_dynamics(tree, q, qd, tau)
        assert_close(quaternion_matrix(q[3:7]) @ (qdd[3:6] + np.cross(qd[:3], qd[3:6])), x[:3], SOLVED)
        assert_close(qdd[6:], x[3:6], SOLVED)
        pairs = [forces[f"tendon:rod{k}l"] + forces[f"tendon:rod{k}r"] for k in range(3)]
        assert_close(np.concatenate(pairs), x[6:], SOLVED)


def test_forces_of_a_stewart_platforms_legs_equal_their_closed_form():
    """Each leg alone gives the force on its ball across it; along it a 6 x 6 system of the platform does."""
    tree, g = stewart(), np.array([0, 0, -9.81])
    passive = ["platform", *(f"barrel{k}{part}" for k in range(6) for part in ("_cross", ""))]
    system = System(
        tree,
        sensor_set(
            {"type": "joint_acceleration", "joints": "platform"},
            {"type": "joint_torque", "joints": passive, "value": 0},
            {"type": "external_wrench", "links": "all", "value": 0},
        ),
    )
    base, top = stewart_points()
    for seed in range(3):
        rng = np.random.default_rng(seed)
        near = tree.integrate(tree.neutral_configuration(), np.r_[0.15 * rng.normal(size=6), np.zeros(18)])
        legs = [name for name in tree.joint_names if name != "platform"]
        q, qd = closed(tree, near, np.r_[rng.normal(size=6), np.zeros(18)], free=legs)
        qdd = rng.normal(size=6)
        d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, qdd))
        tau = np.concatenate([d[system.column("tau", tree.link(f"rod{k}"))] for k in range(6)])

        R, w, v, alpha, push = quaternion_matrix(q[3:7]), qd[:3], qd[3:6], qdd[:3], qdd[3:]

        def moving(r, R=R, w=w, v=v, alpha=alpha, push=push):
            """Return velocity and acceleration of a point of the platform."""
            return R @ (v + np.cross(w, r)), R @ (
                push + np.cross(w, v) + np.cross(alpha, r) + np.cross(w, np.cross(w, r))
            )

        W, along = np.zeros((6, 6)), np.zeros(6)
        c, com = R @ STEWART_COM, moving(STEWART_COM)[1]
        I = R @ STEWART_INERTIA @ R.T
        wanted = np.r_[STEWART_MASS * (com - g), I @ R @ alpha + np.cross(R @ w, I @ R @ w)]
        for k in range(6):
            r = R @ top[k]
            p = q[:3] + STEWART_REST + r - base[k]
            dp, ddp = moving(top[k])
            length = np.linalg.norm(p)
            s = p / length
            rate = s @ dp
            ds = (dp - rate * s) / length
            dds = (ddp - (s @ ddp + ds @ dp) * s - 2 * rate * ds) / length
            moment = np.zeros(3)  # that of the leg's motion, less that of its weight, about its foot
            for x, ddx, distance, mass in (
                (BARREL[0] * s, BARREL[0] * dds, *BARREL),
                (p - ROD[0] * s, ddp - ROD[0] * dds, *ROD),
            ):
                moment += mass * np.cross(x, ddx - g) + mass * distance**2 / 3 * np.cross(s, dds)
            side = np.cross(moment, s) / length
            W[:, k] = np.r_[s, np.cross(r - c, s)]
            wanted += np.r_[side, np.cross(r - c, side)]
            along[k] = ROD[1] * s @ (ddp - ROD[0] * dds - g)
        assert_close(tau, np.linalg.solve(W, wanted) + along, SOLVED)

"""Mechanisms with closed loops against equations by hand: a four-bar linkage, a Delta robot, a Stewart platform."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import scipy.sparse.linalg as spla

from nori_dyn.model.closure import closed
from nori_dyn.system.builder import System
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
    forward_dynamics,
    four_bar,
    light_delta,
    stewart,
    stewart_points,
    turn,
)
from tests.oracles import masses, quaternion_matrix
from tests.systems import sensor_set
from tests.tolerances import SOLVED, assert_close


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

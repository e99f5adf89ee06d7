"""Mechanisms with closed loops that move: energy without friction, and MuJoCo's own simulation."""

from __future__ import annotations

import numpy as np

from nori_dyn.api.plan import plan
from nori_dyn.api.system import System
from nori_dyn.components import Rotor, Spring
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.measurements.selectors import select_joints
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.solver import Solver
from tests.oracles import newton_euler

SECONDS = 10.0


def energy(tree: KinematicTree, q, qd) -> float:
    """Return the energy of bodies, by Newton and Euler in the world, and of rotors and springs [J]."""
    state = newton_euler(tree, q, qd, 0 * qd, np.zeros((tree.n_links, 6)))
    total = state.kinetic + state.potential
    for component in tree.components:
        if isinstance(component, Rotor | Spring):
            for i in select_joints(tree, component.joints):
                if isinstance(component, Rotor):
                    total += component.gear**2 * component.inertia * (qd[tree.v_slices[i]] ** 2).sum() / 2
                else:
                    total += component.stiffness * ((q[tree.q_slices[i]] - component.reference) ** 2).sum() / 2
    return float(total)


def forward_solver(tree: KinematicTree) -> Solver:
    """Return a solver of forward dynamics."""
    return plan(System(tree, sensors("forward_dynamics")), outputs=["qdd"], ordering="recursive").solver()


def trajectory(tree: KinematicTree, solver: Solver, q, qd, step: float, every: float):
    """Yield the states at the times of a grid of a robot without torques, by Runge's and Kutta's method of order 4."""
    inputs, qdd = solver.inputs, solver.outputs.qdd
    inputs.y[:] = 0
    moving = [(joint, a, b) for joint, a, b in zip(tree.joints, tree.q_slices, tree.v_slices, strict=True)]
    straight = tree.nq == tree.nv

    def rates(x):
        inputs.q[:], inputs.qd[:] = x[: tree.nq], x[tree.nq :]
        solver.tick()
        if straight:
            return np.concatenate([inputs.qd, qdd])
        dq = [joint.rates(x[a], inputs.qd[b]) for joint, a, b in moving]
        return np.concatenate([*dq, qdd])

    x = np.concatenate([q, qd])
    steps = round(every / step)
    for _ in range(round(SECONDS / every)):
        for _ in range(steps):
            k_1 = rates(x)
            k_2 = rates(x + step / 2 * k_1)
            k_3 = rates(x + step / 2 * k_2)
            k_4 = rates(x + step * k_3)
            x = x + step / 6 * (k_1 + 2 * k_2 + 2 * k_3 + k_4)
        yield x[: tree.nq], x[tree.nq :]

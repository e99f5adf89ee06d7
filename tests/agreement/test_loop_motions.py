"""Mechanisms with closed loops that move: their energy, without friction."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import pytest

from nori_dyn.api.plan import plan
from nori_dyn.api.system import System
from nori_dyn.components import Rotor, Spring
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.measurements.selectors import select_joints
from nori_dyn.model.closure import gaps
from nori_dyn.model.joints import Revolute
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.solver import Solver
from tests.cassie import cassie_leg
from tests.mechanisms import CASSIE_REST, closed_state, delta, five_bar, four_bar, sprung_leg, stewart
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


def with_springs(tree: KinematicTree, *springs: Spring) -> KinematicTree:
    """Return a mechanism that springs keep from falling through its singular configurations."""
    return tree.replace(components=(*tree.components, *springs))


def hanging_leg() -> KinematicTree:
    """Return Cassie's leg with soft springs in its joints, and without their limits."""
    tree = cassie_leg()
    tree = tree.replace(joints=tuple(Revolute(j.axis) if j.kind == "revolute" else j for j in tree.joints))
    return with_springs(
        tree,
        Spring(joints={"match": "left-hip-.*"}, stiffness=60.0),
        Spring(joints="left-knee", stiffness=60.0, reference=CASSIE_REST["left-knee"]),
        Spring(joints="left-foot", stiffness=20.0),
    )


class Case(NamedTuple):
    """A mechanism, steps of which the second is finer, how its motion starts, and by how much less it drifts then."""

    make: Callable[[], KinematicTree]
    steps: tuple[float, float] = (4e-3, 2e-3)
    spread: float = 0.15
    speed: float = 1.0
    less: float = 10.0


MOVING = {
    "four_bar": Case(four_bar),
    "five_bar": Case(five_bar),
    "sprung_leg": Case(sprung_leg),
    "delta": Case(lambda: with_springs(delta(), Spring(joints={"match": "arm."}, stiffness=8.0))),
    "stewart": Case(lambda: with_springs(stewart(), Spring(joints={"match": "rod."}, stiffness=2000.0))),
    "cassie_leg": Case(hanging_leg, (1e-3, 2.5e-4), 0.01, 0.3, 100.0),
}
"""The leaf springs of Cassie's leg are stiff, and a millisecond is long for them."""


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[] if name in ("four_bar", "sprung_leg") else pytest.mark.long) for name in MOVING],
)
def test_energy_drifts_at_the_order_of_the_integrator(name):
    """Over 10 s, without stabilisation and projection: at half the step 16 times less, at a quarter 256 times."""
    make, steps, spread, speed, less = MOVING[name]
    tree = make()
    solver = forward_solver(tree)
    q, qd, _ = closed_state(tree, 1, spread)
    qd = speed * qd
    start, drifts, apart = energy(tree, q, qd), [], []
    for step in steps:
        states = list(trajectory(tree, solver, q, qd, step, every=0.2))
        drifts.append(max(abs(energy(tree, *state) - start) for state in states))
        apart.append(max(np.abs(gaps(positions(tree, x))).max() for x, _ in states))
    assert drifts[0] > less * drifts[1]
    assert apart[0] > less * apart[1]
    assert drifts[1] < 1e-2 / less
    assert apart[1] < 1e-2 / less

"""Mechanisms with closed loops that move: energy without friction, and MuJoCo's own simulation."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.api.plan import plan
from nori_dyn.api.system import System
from nori_dyn.components import Rotor, Spring
from nori_dyn.io.sensor_configs import sensors
from nori_dyn.measurements.selectors import select_joints
from nori_dyn.model.closure import closed, gaps
from nori_dyn.model.joints import Revolute
from nori_dyn.model.kinematics import positions
from nori_dyn.model.tree import KinematicTree
from nori_dyn.solve.solver import Solver
from tests.cassie import cassie_leg
from tests.mechanisms import CASSIE_REST, COUPLER, closed_state, delta, five_bar, four_bar, sprung_leg, stewart
from tests.oracles import masses, newton_euler
from tests.peers import mujoco

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


MOVING = {
    "four_bar": four_bar,
    "five_bar": five_bar,
    "sprung_leg": sprung_leg,
    "delta": lambda: with_springs(delta(), Spring(joints={"match": "arm."}, stiffness=8.0)),
    "stewart": lambda: with_springs(stewart(), Spring(joints={"match": "rod."}, stiffness=2000.0)),
}


def drifts(tree: KinematicTree, steps: tuple[float, ...], spread: float, speed: float) -> list[tuple[float, float]]:
    """Return for each step by how much energy drifts [J], and how far loops come apart, without stabilisation."""
    solver = forward_solver(tree)
    q, qd, _ = closed_state(tree, 1, spread)
    qd = speed * qd
    start, found = energy(tree, q, qd), []
    for step in steps:
        states = list(trajectory(tree, solver, q, qd, step, every=0.2))
        drift = max(abs(energy(tree, *state) - start) for state in states)
        found.append((drift, max(np.abs(gaps(positions(tree, x))).max() for x, _ in states)))
    return found


@pytest.mark.parametrize("make", MOVING.values(), ids=MOVING)
def test_energy_drifts_at_the_order_of_the_integrator(make):
    """Over 10 s, without stabilisation and without projection: at half the step, 16 times less."""
    (drift, gap), (finer_drift, finer_gap) = drifts(make(), (4e-3, 2e-3), spread=0.15, speed=1.0)
    assert drift > 10 * finer_drift
    assert gap > 10 * finer_gap
    assert finer_drift < 1e-3
    assert finer_gap < 1e-3


def test_energy_of_cassies_leg_drifts_at_the_order_of_the_integrator():
    """Its leaf springs are stiff, and a millisecond is long for them: at a quarter of it, 256 times less."""
    (drift, gap), (finer_drift, finer_gap) = drifts(hanging_leg(), (1e-3, 2.5e-4), spread=0.01, speed=0.3)
    assert drift > 100 * finer_drift
    assert gap > 100 * finer_gap
    assert finer_drift < 1e-4


STIFF = """
<mujoco><compiler angle="radian"/><option gravity="0 -9.81 0" timestep="2e-4" integrator="RK4"/>
<worldbody>{bodies}</worldbody>
<equality><connect body1="coupler" body2="rocker" anchor="{reach} 0 0" solref="5e-4 1" solimp="0.9999 0.9999 1e-3"/>
</equality></mujoco>"""


def stiff_four_bar() -> str:
    """Return the four-bar linkage as MJCF, closed at rest, its bars as MuJoCo has them."""
    tree = four_bar()

    def body(i: int) -> str:
        X, mass = tree.X_tree[i], masses(tree)[i]
        angle = float(np.arctan2(X.E[0, 1], X.E[0, 0]))
        place, com = (" ".join(map(repr, map(float, v))) for v in (X.r, mass.com))
        inside = "".join(body(k) for k in tree.children[i])
        inertia = " ".join(repr(float(max(x, 1e-9))) for x in np.diag(mass.I_com))
        return (
            f'<body name="{tree.names[i]}" pos="{place}" euler="0 0 {angle!r}"><joint axis="0 0 1"/>'
            f'<inertial pos="{com}" mass="{mass.mass}" diaginertia="{inertia}"/>{inside}</body>'
        )

    return STIFF.format(bodies="".join(body(i) for i in range(3) if tree.is_root(i)), reach=COUPLER)


def test_four_bar_linkage_stays_close_to_mujocos_own_simulation():
    """Its constraint is a stiff spring and damper, so it gives way a little: a second of motion, then 1e-3 rad."""
    tree = four_bar()
    model = mujoco.MjModel.from_xml_string(stiff_four_bar())
    data = mujoco.MjData(model)
    q, qd = np.zeros(3), closed(tree, np.zeros(3), np.array([2.0, 0.0, 0.0]))[1]
    data.qpos[:], data.qvel[:] = q, qd
    for x, speed in trajectory(tree, forward_solver(tree), q, qd, 1e-3, every=0.1):
        for _ in range(round(0.1 / model.opt.timestep)):
            mujoco.mj_step(model, data)
        if data.time > 1.0 + 1e-6:
            break
        np.testing.assert_allclose(data.qpos, x, atol=1e-3)
        np.testing.assert_allclose(data.qvel, speed, atol=1e-2)

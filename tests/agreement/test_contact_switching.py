"""Robots whose contacts come and go, against each state's own plan, MuJoCo's truth over a walk, and ABA in the air."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from tests.systems import sensor_set
from tests.tolerances import SOLVED, assert_close
from tests.walking import SIDES, Walk, walk

OUTPUTS = ("fx", "tau", "qdd")


def ankles() -> nd.SensorSet:
    """A set that is exact in every state: a force-torque sensor above a foot counts while it stands.

    While a foot is in the air nothing acts on it, and the sensor is not needed.
    """
    feet = {side: f"{side}_foot" for side in SIDES}
    return sensor_set(
        {"type": "joint_acceleration", "joints": "actuated"},
        {"type": "accelerometer", "links": "base"},
        {"type": "angular_accelerometer", "links": "base"},
        {"type": "external_wrench", "links": {"except": list(feet.values())}, "value": 0},
        name="ankles",
        contacts={
            side: {
                "closed": [{"type": "force_torque", "joints": f"{side}_ankle_x", "measures": "child_on_parent"}],
                "open": [{"type": "external_wrench", "links": foot, "value": 0}],
            }
            for side, foot in feet.items()
        },
    )


def points() -> nd.SensorSet:
    """The shipped set of quadrupeds, but with the moment on links that stand read, as it is not zero."""
    content = nd.sensors("quadruped_contacts").to_dict()
    for contact in content["contacts"].values():
        contact["closed"][0]["value"] = None
    return nd.SensorSet.from_dict(content)


SETS = {
    "ankles": ("biped", ankles),
    "biped_contacts": ("biped", lambda: nd.sensors("biped_contacts")),
    "points": ("quadruped", points),
}
FEET = {"l": 0, "l_foot": 0, "r": 1, "r_foot": 1, "fore_left": 0, "fore_right": 1, "hind_left": 2, "hind_right": 3}
every_set = pytest.mark.parametrize(
    "name", ["ankles", *(pytest.param(name, marks=pytest.mark.long) for name in ("points", "biped_contacts"))]
)


@cache
def recorded(name: str) -> Walk:
    """Every twentieth tick of the walk that a set is for."""
    return walk(SETS[name][0])[::20]


def closed(name: str) -> list[tuple[str, ...]]:
    """At each tick the contacts on whose feet the floor acts."""
    names = SETS[name][1]().contact_names
    return [tuple(contact for contact in names if foot[FEET[contact]]) for foot in recorded(name).touching]


@cache
def planned(name: str) -> nd.Plan:
    """The plans of the states that occur in the walk, and of those in the air and on all feet."""
    sensors = SETS[name][1]()
    states = {*closed(name), (), sensors.contact_names}
    return nd.plan(recorded(name).tree, sensors, outputs=OUTPUTS, states=states)


def readings(plan_set: nd.Plan, motion: Walk) -> np.ndarray:
    """What the sensors of all states read (N, ny)."""
    Y = np.full((motion.n, len(plan_set.measurement_names)), np.nan)
    where = {reading: k for k, reading in enumerate(plan_set.measurement_names)}
    for plan in plan_set.plans.values():
        Y[:, [where[reading] for reading in plan.system.measurement_names]] = motion.readings(plan.system)
    assert np.isfinite(Y).all()
    return Y


@pytest.mark.parametrize("name", ["ankles", pytest.param("points", marks=pytest.mark.long)])
def test_a_walk_is_estimated_as_it_was(name):
    """Noise-free readings, contacts that switch as the feet touch the floor: the wrenches and torques of MuJoCo."""
    plan_set, motion, contacts = planned(name), recorded(name), closed(name)
    assert len(set(contacts)) >= 3
    solver = plan_set.solver("numpy")
    Y = readings(plan_set, motion)
    batch = solver.solve_batch(motion.q, motion.qd, Y, contacts)
    true = {"fx": motion.wrenches, "tau": motion.tau, "qdd": motion.qdd}
    for output in OUTPUTS:
        assert_close(batch[output], true[output], SOLVED)
    changes = [k for k in range(1, motion.n) if contacts[k] != contacts[k - 1]]
    assert len(changes) >= 4
    for k in sorted({j for change in changes for j in (change - 1, change)}):
        solver.switch(contacts[k])
        solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = motion.q[k], motion.qd[k], Y[k]
        solver.tick().raise_for_status()
        for output in OUTPUTS:
            assert_close(getattr(solver.outputs, output), true[output][k], SOLVED)


@every_set
def test_in_the_air_it_is_forward_dynamics(name):
    """A jump: nothing touches the robot, and its motion is that of the torques, by ABA."""
    plan_set, tree = planned(name), planned(name).tree
    rng = np.random.default_rng(2)
    q, qd, tau = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    tau[:6] = 0
    qdd, record = nd.aba(tree, q, qd, tau), recorded(name)
    jump = replace(record[:1], q=q[None], qd=qd[None], qdd=qdd[None], tau=tau[None], fx=0 * record.fx[:1])
    found = plan_set.solver("numpy").solve(q, qd, readings(plan_set, jump)[0], ())
    for output, expected in (("tau", tau), ("qdd", qdd), ("fx", jump.wrenches[0])):
        assert_close(found[output], expected, SOLVED)

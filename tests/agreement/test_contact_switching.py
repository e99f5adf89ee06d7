"""Robots whose contacts come and go, against each state's own plan, MuJoCo's truth over a walk, and ABA in the air."""

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import nori_dyn as nd
from tests.agreement.test_simulator import recorded
from tests.compilers import needs_compiler
from tests.robots import load
from tests.simulator import Motion
from tests.tolerances import SOLVED, assert_close

OUTPUTS = ("fx", "tau", "qdd")
EASY = {"ordering": "recursive"}


def ankles(tree: nd.KinematicTree) -> nd.SensorSet:
    """Return a set that is exact in every state: a force-torque sensor above a foot counts while it stands.

    While a foot is in the air nothing acts on it, and the sensor is not needed.
    """
    feet = {"left": "left_sole_link", "right": "right_sole_link"}
    links = [tree.names[tree.frame(foot).link] for foot in feet.values()]
    return nd.SensorSet.from_dict(
        {
            "name": "ankles",
            "measurements": [
                {"type": "joint_acceleration", "joints": "actuated"},
                {"type": "accelerometer", "links": tree.names[0]},
                {"type": "angular_accelerometer", "links": tree.names[0]},
                {"type": "external_wrench", "links": {"except": links}, "value": 0},
            ],
            "contacts": {
                side: {
                    "closed": [
                        {"type": "force_torque", "joints": f"leg_{side}_6_joint", "measures": "child_on_parent"}
                    ],
                    "open": [{"type": "external_wrench", "links": foot, "value": 0}],
                }
                for side, foot in feet.items()
            },
        }
    )


def points(tree: nd.KinematicTree) -> nd.SensorSet:
    """Return the shipped set of quadrupeds, but with the little moment on feet that stand read, as it is not zero."""
    content = nd.sensors("quadruped_contacts").to_dict()
    for contact in content["contacts"].values():
        contact["closed"][0]["value"] = None
    return nd.SensorSet.from_dict(content)


SETS = {
    "ankles": ("talos_reduced", ankles),
    "biped_contacts": ("talos_reduced", lambda tree: nd.sensors("biped_contacts")),
    "points": ("go2", points),
}
FEET = {"talos_reduced": {"left": 0, "l_foot": 0, "right": 1, "r_foot": 1}}
FEET["go2"] = {"fore_left": 0, "fore_right": 1, "hind_left": 2, "hind_right": 3}
every_set = pytest.mark.parametrize(
    "name", ["ankles", *(pytest.param(name, marks=pytest.mark.long) for name in ("points", "biped_contacts"))]
)


def closed(name: str, motion: Motion) -> list[tuple[str, ...]]:
    """Return at each tick the contacts on whose feet the floor acts."""
    robot, sensors = SETS[name]
    touches = np.stack([motion.wrench(foot).any(axis=1) for foot in motion.feet], axis=1)
    names = sensors(motion.tree).contact_names
    return [tuple(contact for contact in names if touch[FEET[robot][contact]]) for touch in touches]


@cache
def planned(name: str) -> nd.PlanSet:
    """Return the plans of the states that occur in the walk, and of those in the air and on all feet."""
    motion = recorded(SETS[name][0])
    sensors = SETS[name][1](motion.tree)
    states = {*closed(name, motion), (), sensors.contact_names}
    return nd.plan_set(motion.tree, sensors, outputs=OUTPUTS, states=states, **EASY)


def readings(plan_set: nd.PlanSet, motion: Motion) -> np.ndarray:
    """Return what the sensors of all states read (N, ny)."""
    Y = np.full((len(motion), len(plan_set.measurement_names)), np.nan)
    where = {reading: k for k, reading in enumerate(plan_set.measurement_names)}
    for plan in plan_set.plans.values():
        Y[:, [where[reading] for reading in plan.system.measurement_names]] = motion.readings(plan.system)
    assert np.isfinite(Y).all()
    return Y


@pytest.mark.parametrize("name", ["ankles", pytest.param("points", marks=pytest.mark.long)])
def test_a_walk_is_estimated_as_it_was(name):
    """Noise-free readings, contacts that switch as the feet touch the floor: the wrenches and torques of MuJoCo."""
    plan_set, motion = planned(name), recorded(SETS[name][0])
    contacts = closed(name, motion)
    assert len(set(contacts)) >= 3
    solver = plan_set.solver("numpy")
    Y = readings(plan_set, motion)
    batch = solver.solve_batch(motion.q, motion.qd, Y, contacts)
    for output in OUTPUTS:
        assert_close(batch[output], getattr(motion, output), SOLVED)
    changes = [k for k in range(1, len(motion)) if contacts[k] != contacts[k - 1]]
    assert len(changes) >= 4
    for k in sorted({j for change in changes for j in (change - 1, change)}):
        solver.switch(contacts[k])
        solver.inputs.q[:], solver.inputs.qd[:], solver.inputs.y[:] = motion.q[k], motion.qd[k], Y[k]
        solver.tick().raise_for_status()
        for output in OUTPUTS:
            assert_close(getattr(solver.outputs, output), getattr(motion, output)[k], SOLVED)


@every_set
def test_a_wrong_state_is_not_the_truth(name):
    """The states differ: one foot that stands, taken to be in the air, makes another estimate."""
    plan_set, motion = planned(name), recorded(SETS[name][0])
    contacts = closed(name, motion)
    k = next(k for k, state in enumerate(contacts) if len(state) < len(plan_set.contact_names))
    solver, Y = plan_set.solver("numpy"), readings(plan_set, motion)
    wrong = solver.solve(motion.q[k], motion.qd[k], Y[k], ())
    assert np.abs(wrong.fx - motion.fx[k]).max() > 10


@needs_compiler
@pytest.mark.parametrize("name", ["points", pytest.param("ankles", marks=pytest.mark.long)])
def test_each_state_gives_the_very_numbers_of_its_own_plan(name):
    plan_set = planned(name)
    solver, tree = plan_set.solver("native"), plan_set.tree
    where = {reading: k for k, reading in enumerate(plan_set.measurement_names)}
    rng = np.random.default_rng(0)
    for state in (*plan_set.states, *plan_set.states[::-1]):
        plain = plan_set[state].solver("native")
        q, qd, y = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=len(where))
        for one, values in ((solver, y), (plain, y[[where[name] for name in plain.system.measurement_names]])):
            one.inputs.q[:], one.inputs.qd[:], one.inputs.y[:] = q, qd, values
        solver.contacts = state[::-1]
        assert solver.tick().ok
        assert plain.tick().ok
        for output in OUTPUTS:
            np.testing.assert_array_equal(getattr(solver.outputs, output), getattr(plain.outputs, output))


@every_set
def test_in_the_air_it_is_forward_dynamics(name):
    """A jump: nothing touches the robot, and its motion is that of the torques, by ABA."""
    plan_set, tree = planned(name), planned(name).tree
    rng = np.random.default_rng(2)
    q, qd, tau = tree.random_configuration(rng), rng.normal(size=tree.nv), rng.normal(size=tree.nv)
    tau[:6] = 0
    qdd, fx = nd.aba(tree, q, qd, tau), np.zeros((tree.n_links, 6))
    jump = replace(recorded(SETS[name][0])[:1], q=q[None], qd=qd[None], qdd=qdd[None], tau=tau[None], fx=fx[None])
    found = plan_set.solver("numpy").solve(q, qd, readings(plan_set, jump)[0], ())
    for output, expected in (("tau", tau), ("qdd", qdd), ("fx", fx)):
        assert_close(found[output], expected, SOLVED)


@pytest.mark.parametrize("name", ["iCubGenova04", pytest.param("talos_reduced", marks=pytest.mark.long)])
def test_the_shipped_set_of_bipeds_is_well_posed_in_every_state(name):
    tree, known = load(name, "floating"), nd.sensors("biped_contacts")
    rng = np.random.default_rng(3)
    for state in ((), ("l_foot",), ("r_foot",), ("l_foot", "r_foot")):
        system = nd.System(tree, known.in_contact(*state))
        for q in (tree.neutral_configuration(), tree.random_configuration(rng)):
            values = np.linalg.svd(system.D(q).toarray(), compute_uv=False)
            assert values[-1] > 1e-6 * values[0]

"""Sensors of motors, gears and rods: what they read is what Newton's and Euler's laws, or the loop's own force, say."""

import numpy as np
import pytest
import scipy.sparse.linalg as spla

import nori_dyn as nd
from nori_dyn.algebra.spatial import Transform
from nori_dyn.errors import SensorConfigError
from nori_dyn.model.tree import Frame
from tests.systems import FORWARD, WRENCHES, sensor_set
from tests.tolerances import RECURSION, ROUNDING, SOLVED, assert_close

BARE = nd.autotree(3, skew=0.6)
ARM = BARE.replace(
    components=(
        nd.components.Rotor(joints="all", inertia=2e-4, gear=100),
        nd.components.Friction(joints="all", viscous=0.3, coulomb=1.0),
    )
)
MOTOR_SIDE = {"type": "joint_torque", "joints": "all"}
LINK_SIDE = {"type": "joint_torque", "joints": "all", "side": "link"}
UNLOADED = {**WRENCHES, "value": 0}


def solved(system: nd.System, q: np.ndarray, qd: np.ndarray, y: np.ndarray) -> dict[str, np.ndarray]:
    """Return the variables by name, from the system's equations as they stand."""
    d = spla.spsolve(system.D(q).tocsc(), -system.b(q, qd, y))
    return {variable.name: d[variable.slice] for variable in system.variables}


def state() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, qd, qdd = np.random.default_rng(6).normal(size=(3, 3))
    return q, qd, qdd


def test_a_sensor_behind_the_gear_reads_what_rotor_and_friction_leave():
    q, qd, qdd = state()
    system = nd.System(ARM, sensor_set(LINK_SIDE, UNLOADED))
    assert system.measurement_names == ("tau_J:joint1", "tau_J:joint2", "tau_J:joint3")
    found = solved(system, q, qd, nd.rnea(BARE, q, qd, qdd))
    assert_close(np.concatenate([found[f"qdd:joint{k}"] for k in (1, 2, 3)]), qdd, SOLVED)
    assert_close(np.concatenate([found[f"tau:joint{k}"] for k in (1, 2, 3)]), nd.rnea(ARM, q, qd, qdd), SOLVED)


def test_a_side_is_motor_or_link_which_are_one_without_motors():
    q, *_ = state()
    link_side, motor_side = (nd.System(BARE, sensor_set(entry, UNLOADED)) for entry in (LINK_SIDE, MOTOR_SIDE))
    assert link_side.measurement_names == ("tau_J:joint1", "tau_J:joint2", "tau_J:joint3")
    assert_close(link_side.D(q).toarray(), motor_side.D(q).toarray(), ROUNDING)
    both = nd.System(BARE, sensor_set({**LINK_SIDE, "sigma": 0.1}, {**MOTOR_SIDE, "sigma": 0.1}))
    assert both.ny == 6
    entry = sensor_set(LINK_SIDE).measurements[0]
    assert [[e.name for e in one.on(ARM)] for one in entry.each(ARM)] == [[f"tau_J:joint{k}"] for k in (1, 2, 3)]
    with pytest.raises(SensorConfigError, match="'motor' or 'link'"):
        sensor_set({**LINK_SIDE, "side": "gear"})


def test_an_encoder_on_the_motor_reads_the_joint_through_the_gear():
    q, qd, qdd = state()
    encoders = [
        {"type": "linear_relation", "name": f"encoder{k}", "terms": {f"qdd:joint{k}": -50}, "value": None}
        for k in (1, 2, 3)
    ]
    system = nd.System(ARM, sensor_set(*encoders, UNLOADED))
    found = solved(system, q, qd, -50 * qdd)
    assert_close(np.concatenate([found[f"tau:joint{k}"] for k in (1, 2, 3)]), nd.rnea(ARM, q, qd, qdd), RECURSION)


def test_a_load_cell_in_a_rod_tells_the_torque_of_its_motor_as_a_sensor_in_the_loop_does():
    """On a planar four-bar: crank, rod and rocker of length 1, in the plane of x and y."""
    tip, pivot = (Transform(np.eye(3), np.array(place)) for place in ([1.0, 0.0, 0.0], [1.4, 0.3, 0.0]))
    rod = nd.components.Loop(name="rod", frames=["tip", "pivot"], constrains=["fx", "fy"])
    tree = nd.autotree(3).replace(
        gravity=(0.0, -9.81, 0.0), frames={"tip": Frame(2, tip), "pivot": Frame(-1, pivot)}, components=(rod,)
    )
    q, qd = nd.closed(tree, np.array([1.2, -1.5, -0.8]), np.array([1.0, -0.5, 0.2]))
    truth = solved(nd.System(tree, FORWARD), q, qd, np.concatenate([[3.0, 0.5, -1.0], np.zeros(18)]))
    cell = {"type": "linear_relation", "name": "cell", "terms": {"loop:rod.fx": 1}, "value": None}
    accelerated = {"type": "joint_acceleration", "joints": "joint1"}
    torques = {"type": "joint_torque", "joints": ["joint2", "joint3"]}
    for known, reading in ((cell, truth["loop:rod"][0]), (accelerated, truth["qdd:joint1"][0])):
        system = nd.System(tree, sensor_set(known, torques, UNLOADED))
        found = solved(system, q, qd, np.array([reading, 0.5, -1.0]))
        assert_close(found["tau:joint1"], np.array([3.0]), SOLVED)
        assert_close(found["loop:rod"], truth["loop:rod"], SOLVED)

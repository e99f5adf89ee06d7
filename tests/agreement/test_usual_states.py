"""Usual states of weighed systems, which are not refined: as right as others, at poses where digits may be lost."""

from functools import lru_cache

import numpy as np
import pytest

import nori_dyn as nd
from nori_dyn.program.backends.base import STEP_LIMIT
from nori_dyn.program.backends.native import NativeBackend
from nori_dyn.program.backends.usual import LARGEST_READING
from tests.agreement.test_weighted import PLACED, reference, unknowns
from tests.systems import sensor_set
from tests.trees import TREES

WRENCHES = {"type": "external_wrench", "links": "all", "sigma": 1}
SYSTEMS = {
    "accelerations": (
        nd.autotree(4, branching=2, skew=0.4),
        (
            {"type": "joint_acceleration", "joints": "all", "sigma": 100},
            {"type": "accelerometer", "links": "all", "sigma": 0.01, **PLACED},
            WRENCHES,
        ),
    ),
    "torques": (
        nd.autotree(3, skew=0.2),
        (
            {"type": "joint_torque", "joints": "all", "sigma": 0.01},
            {"type": "accelerometer", "links": "all", "sigma": 1, **PLACED},
            {"type": "external_wrench", "links": "all", "sigma": 0.1},
        ),
    ),
    "prior": (
        TREES["three_children"],
        (
            {"type": "force_torque", "joints": "actuated", "sigma": 0.01, **PLACED},
            {"type": "prior", "variables": "all", "sigma": 10},
            WRENCHES,
        ),
    ),
}
NEAR = (0.0, 1e-9, 1e-6, 1e-3)
"""How far from coordinate poses, at which axes are parallel and planes meet [rad]."""


@lru_cache
def backend(name):
    tree, entries = SYSTEMS[name]
    return NativeBackend(nd.plan(nd.System(tree, sensor_set(*entries))))


def ranges(made):
    """Return the least and the largest inputs of usual states."""
    record, system = made._record, made._plan.system
    n = sum(system.input_sizes.values())
    limits = np.array(record.limits)[len(record.guards) + len(made._columns) :]
    return limits[:n], limits[n : 2 * n]


@pytest.mark.parametrize("name", SYSTEMS)
def test_usual_states_are_right_at_coordinate_poses_and_at_the_ends_of_the_weights(name):
    made = backend(name)
    system, rng = made._plan.system, np.random.default_rng(1)
    low, high = (end[len(end) - system.n_weights :] for end in ranges(made))
    assert (low < system.weights).all()
    assert (system.weights < high).all()
    for near in NEAR:
        q = system.tree.random_configuration(rng)
        for joint, part in zip(system.tree.joints, system.tree.q_slices, strict=True):
            if len(joint.coordinates) == 1:
                q[part] = rng.integers(-2, 3) * np.pi / 2 + rng.choice([-near, near])
        weights = np.where(rng.random(len(low)) < 0.5, low, high)
        state = q, rng.normal(size=system.tree.nv), 10 * rng.normal(size=system.ny), weights
        right = np.asarray(reference(system, *state).d, dtype=float)[made._columns]
        found = made.solve(*state).values
        assert np.abs(found - right).max() <= STEP_LIMIT * max(1.0, np.abs(right).max())


def test_a_system_whose_weights_differ_by_decades_has_no_usual_states():
    tree = nd.autotree(2, skew=0.6)
    exact = {"type": "external_wrench", "links": "all", "value": 0}
    spread = [
        {"type": "joint_acceleration", "joints": "all", "sigma": 1e3},
        {"type": "joint_torque", "joints": "all", "sigma": 1e-3},
    ]
    low, high = ranges(NativeBackend(nd.plan(nd.System(tree, sensor_set(*spread, exact)))))
    assert (low > high).all()


@pytest.mark.parametrize("beyond", ["weight", "reading", "none"])
def test_states_that_are_not_usual_are_refined_and_others_are_not(beyond):
    """Beside the program of NumPy, which refines always."""
    made = backend("prior")
    plan, rng = made._plan, np.random.default_rng(3)
    system = plan.system
    refined = plan.solver("numpy")
    last = 0.0
    for _ in range(5):
        q, qd, y = system.tree.random_configuration(rng), rng.normal(size=system.tree.nv), rng.normal(size=system.ny)
        weights = system.weights.copy()
        if beyond == "weight":
            weights[0] *= 1e3
        if beyond == "reading":
            y[0] = 2 * LARGEST_READING
        found = made.solve(q, qd, y, weights).values
        expected = unknowns(system, refined.solve(q, qd, y, weights))[made._columns]
        last = max(last, np.abs(found - expected).max() / np.abs(expected).max())
        batch = made.solve_batch(q[None], qd[None], y[None], weights[None]).values[0]
        assert np.abs(batch - expected).max() <= 1e-9 * np.abs(expected).max()
    assert last <= 1e-9
    if beyond != "none":
        assert last <= 1e-15

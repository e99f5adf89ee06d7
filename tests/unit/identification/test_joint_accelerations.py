"""Joint accelerations: as they are read, or from accelerometers."""

import numpy as np

import nori_dyn as nd
from nori_dyn.identification.log_reader import joint_accelerations
from tests.robots import load
from tests.systems import ACCELERATIONS, TORQUES, sensor_set


def system(tree: nd.KinematicTree, *measurements: dict) -> nd.System:
    return nd.System(tree, sensor_set({**TORQUES, "joints": "actuated"}, *measurements))


def test_a_floating_base_is_determined_by_its_accelerometer():
    tree = load("solo12", base="floating")
    base = tree.names[0]
    own = system(tree, {**ACCELERATIONS, "joints": "actuated"}, {"type": "link_acceleration", "links": base})
    rng = np.random.default_rng(1)
    q = tree.random_configurations(6, rng)
    qd, qdd = rng.normal(size=(2, 6, tree.nv))
    forward = nd.plan(nd.System(tree, "inverse_dynamics"), outputs=[f"a:{base}"])
    a = forward.solver("numpy").solve_batch(q, qd, qdd)[f"a:{base}"]
    n = tree.nv - 6
    y = np.concatenate([np.zeros((6, n)), qdd[:, 6:], a], axis=1)
    assert own.ny == y.shape[1]
    np.testing.assert_allclose(joint_accelerations(own)(q, qd, y), qdd, atol=1e-9)

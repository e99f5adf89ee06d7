"""What holds of every weighted estimate."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nori_dyn as nd
from tests.properties.strategies import drawn, seeds, trees
from tests.systems import sensor_set
from tests.tolerances import SOLVED, assert_close

REDUNDANT = sensor_set(
    {"type": "joint_acceleration", "joints": "all", "sigma": 0.3},
    {"type": "joint_torque", "joints": "all", "sigma": 2.0},
    {"type": "external_wrench", "links": "all", "sigma": 0.1},
)


@drawn
@given(trees.filter(lambda tree: tree.n_links <= 4), seeds, st.floats(-6, 6))
def test_only_ratios_of_weights_matter_and_readings_without_noise_give_the_truth_whatever_they_are(tree, seed, decades):
    found = nd.plan(nd.System(tree, REDUNDANT), ordering="recursive").solver("numpy")
    rng = np.random.default_rng(seed)
    q, qd, qdd = tree.random_configuration(rng), *rng.normal(size=(2, tree.nv))
    fx = rng.normal(size=(tree.n_links, 6))
    tau = nd.rnea(tree, q, qd, qdd, fx)
    y = np.concatenate([qdd, tau, fx.ravel()])
    weights = 10.0 ** rng.uniform(-3, 3, size=found.system.n_weights)
    assert_close(found.solve(q, qd, y, weights).tau, tau, SOLVED)
    y = y + rng.normal(size=y.shape)
    one, two = (found.solve(q, qd, y, found.system.weights * scale) for scale in (1.0, 10.0**decades))
    assert_close(two.tau, one.tau, SOLVED)
    assert_close(two.qdd, one.qdd, SOLVED)

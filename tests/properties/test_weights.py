"""What holds of every weighted estimate."""

from __future__ import annotations

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


def redundant(tree, seed):
    """Return a solver for more readings than needed, a state, and true readings of it."""
    found = nd.plan(nd.System(tree, REDUNDANT)).solver("numpy")
    rng = np.random.default_rng(seed)
    q, qd, qdd = tree.random_configuration(rng), *rng.normal(size=(2, tree.nv))
    fx = rng.normal(size=(tree.n_links, 6))
    tau = nd.rnea(tree, q, qd, qdd, fx)
    return found, q, qd, np.concatenate([qdd, tau, fx.ravel()]), tau, rng


@drawn
@given(trees.filter(lambda tree: tree.n_links <= 4), seeds, st.floats(-6, 6))
def test_only_ratios_of_weights_matter(tree, seed, decades):
    found, q, qd, y, _, rng = redundant(tree, seed)
    y = y + rng.normal(size=y.shape)
    weights = found.system.weights
    one, two = (found.solve(q, qd, y, weights * scale) for scale in (1.0, 10.0**decades))
    assert_close(two.tau, one.tau, SOLVED)
    assert_close(two.qdd, one.qdd, SOLVED)


@drawn
@given(trees.filter(lambda tree: tree.n_links <= 4), seeds)
def test_readings_without_noise_give_the_truth_whatever_the_weights(tree, seed):
    found, q, qd, y, tau, rng = redundant(tree, seed)
    weights = 10.0 ** rng.uniform(-3, 3, size=found.system.n_weights)
    assert_close(found.solve(q, qd, y, weights).tau, tau, SOLVED)

"""What holds of every system: its pattern, its linearity, and the inertia matrix in it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import nori_dyn as nd
from tests.properties.strategies import drawn, entries_of, kinds, seeds, trees
from tests.systems import FORWARD, INVERSE, sensor_set
from tests.tolerances import RECURSION, SOLVED, assert_close


def solver(tree, sensors):
    """Return a solver that needs no compiler."""
    return nd.plan(nd.System(tree, sensors), ordering="markowitz").solver("numpy")


@drawn
@given(trees, kinds, seeds, st.floats(-3, 3))
def test_the_pattern_holds_every_nonzero_and_estimates_are_affine_in_the_readings(tree, kind, seed, share):
    found = solver(tree, sensor_set(*entries_of(tree, kind, seed)))
    rng = np.random.default_rng(seed)
    for _ in range(5):
        D = found.system.D(tree.random_configuration(rng))
        assert found.plan.pattern.toarray()[D.toarray() != 0].all()
    q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
    y, z = rng.normal(size=(2, found.system.ny))
    one, two, between = (found.solve(q, qd, x) for x in (y, z, y + share * (z - y)))
    for name in ("tau", "qdd", "a", "f"):
        first, second = getattr(one, name), getattr(two, name)
        assert_close(getattr(between, name), first + share * (second - first), SOLVED)


@drawn
@given(trees, seeds)
def test_inverse_dynamics_holds_the_inertia_matrix_and_forward_dynamics_undoes_it(tree, seed):
    """tau(qdd) - tau(0) = H qdd, with H symmetric and positive definite."""
    inverse = solver(tree, INVERSE)
    rng = np.random.default_rng(seed)
    q, qd, qdd = tree.random_configuration(rng), *rng.normal(size=(2, tree.nv))
    N = tree.nv + 1
    Y = np.hstack([np.vstack([np.zeros(tree.nv), np.eye(tree.nv)]), np.zeros((N, 6 * tree.n_links))])
    tau = inverse.solve_batch(np.tile(q, (N, 1)), np.tile(qd, (N, 1)), Y).tau
    H = (tau[1:] - tau[0]).T
    assert_close(H, H.T, RECURSION)
    assert_close(H, nd.crba(tree, q), RECURSION)
    assert np.linalg.eigvalsh(H).min() > 0
    fx = rng.normal(size=6 * tree.n_links)
    tau = inverse.solve(q, qd, np.concatenate([qdd, fx])).tau
    assert_close(solver(tree, FORWARD).solve(q, qd, np.concatenate([tau, fx])).qdd, qdd, SOLVED)

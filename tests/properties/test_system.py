"""What holds of every system: pattern, linearity, its inertia matrix; any numbering, any order, any weights."""

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

import nori_dyn as nd
from nori_dyn.model.synthetic import random_tree
from tests.properties.strategies import drawn, entries_of, kinds, renumbered, reordered, seeds, trees
from tests.systems import ACCELERATIONS, TORQUES, WRENCHES, sensor_set
from tests.tolerances import SOLVED, assert_close


def solver(tree, sensors):
    """A solver that needs no compiler."""
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


REDUNDANT = sensor_set(ACCELERATIONS | {"sigma": 0.3}, TORQUES | {"sigma": 2.0}, WRENCHES | {"sigma": 0.1})


@drawn
@given(trees.filter(lambda tree: tree.n_links <= 4), seeds, st.floats(-6, 6))
def test_only_ratios_of_weights_matter_and_readings_without_noise_give_the_truth_whatever_they_are(tree, seed, decades):
    found = nd.plan(nd.System(tree, REDUNDANT)).solver("numpy")
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


def estimate(tree, entries, q, qd, readings):
    """What a solver finds from readings by name."""
    plan = nd.plan(nd.System(tree, sensor_set(*entries)), ordering="markowitz")
    names = plan.system.measurement_names
    return plan.solver("numpy").solve(q, qd, np.array([readings[name] for name in names]))


def state_and_readings(tree, entries, seed):
    """q, qd, and readings by name."""
    rng = np.random.default_rng(seed)
    q, qd = tree.random_configuration(rng), rng.normal(size=tree.nv)
    names = nd.System(tree, sensor_set(*entries)).measurement_names
    return q, qd, dict(zip(names, rng.normal(size=len(names)), strict=True))


@drawn
@example(random_tree(3, seed=0, aligned=0.0), "hybrid", 139)  # the order of the recursions costs far more here
@given(trees, kinds, seeds)
def test_links_may_have_other_numbers_and_sensors_another_order(tree, kind, seed):
    entries = entries_of(tree, kind, seed)
    q, qd, readings = state_and_readings(tree, entries, seed)
    found = estimate(tree, entries, q, qd, readings)
    other, order = renumbered(tree, seed)
    nqs, nvs = [joint.nq for joint in tree.joints], [joint.nv for joint in tree.joints]
    again = estimate(other, entries, reordered(q, nqs, order), reordered(qd, nvs, order), readings)
    assert_close(again.tau, reordered(found.tau, nvs, order), SOLVED)
    assert_close(again.qdd, reordered(found.qdd, nvs, order), SOLVED)
    assert_close(again.a, found.a[order], SOLVED)
    assert_close(again.f, found.f[order], SOLVED)
    again = estimate(tree, entries[::-1], q, qd, readings)
    assert_close(again.tau, found.tau, SOLVED)
    assert_close(again.qdd, found.qdd, SOLVED)
    assert_close(again.f, found.f, SOLVED)


@drawn
@given(trees, kinds, seeds)
def test_the_rank_depends_on_neither(tree, kind, seed):
    entries = entries_of(tree, kind, seed)
    if seed % 2:
        entries = entries[:-1]  # without the external wrenches, some of d is not determined
    report = nd.observability(nd.System(tree, sensor_set(*entries)), where=None)
    other, _ = renumbered(tree, seed)
    again = nd.observability(nd.System(other, sensor_set(*entries[::-1])), where=None)
    assert again.generic_rank == report.generic_rank
    assert set(again.unobservable) == set(report.unobservable)

"""What does not depend on the numbers of the links, or on the order of the sensors."""

import numpy as np
from hypothesis import example, given

import nori_dyn as nd
from nori_dyn.model.synthetic import random_tree
from tests.properties.strategies import drawn, entries_of, kinds, renumbered, reordered, seeds, trees
from tests.systems import sensor_set
from tests.tolerances import SOLVED, assert_close


def estimate(tree, entries, q, qd, readings):
    """Return what a solver finds from readings by name."""
    plan = nd.plan(nd.System(tree, sensor_set(*entries)), ordering="markowitz")
    names = plan.system.measurement_names
    return plan.solver("numpy").solve(q, qd, np.array([readings[name] for name in names]))


def state_and_readings(tree, entries, seed):
    """Return q, qd, and readings by name."""
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

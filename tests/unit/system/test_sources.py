"""A system over its sources is the same system: its solutions, its rank, and what it takes to zero."""

import numpy as np
import pytest

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.system.builder import System
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.sources import natural_sizes, over_sources
from tests.systems import FORWARD, INVERSE
from tests.tolerances import SOLVED, assert_close
from tests.trees import TREES


@pytest.mark.parametrize("name", ["one_body", "massless", "two_roots", "fixed_joints", "autotree_branched", "mixed_8"])
def test_solutions_are_those_of_the_whole_system(name):
    system = System(TREES[name], INVERSE)
    rng = np.random.default_rng(1)
    q, qd, y = system.tree.random_configuration(rng), rng.normal(size=system.tree.nv), rng.normal(size=system.ny)
    D, b = system.D(q), system.b(q, qd, y)
    sizes = natural_sizes(system)
    at = over_sources(system, sizes, D, b)
    s = rng.normal(size=at.X.shape[1])
    d = at.X @ s + at.x
    left = D @ d + b
    dynamics = np.setdiff1d(np.arange(len(left)), at.rows)
    assert_close(left[dynamics], np.zeros(len(dynamics)), SOLVED)
    assert_close(left[at.rows], sizes.rows[at.rows] * (at.M @ s + at.m), SOLVED)
    solved = at.X @ np.linalg.solve(at.M, -at.m) + at.x
    assert_close(solved, np.linalg.solve(D.toarray(), -b), SOLVED)


def test_rows_that_need_not_hold_have_errors_of_their_own():
    system = System(TREES["mixed_8"], INVERSE)
    rng = np.random.default_rng(2)
    q = system.tree.random_configuration(rng)
    free = numbers_in([system.row(NewtonEuler("f", 1)).slice])
    sizes, D = natural_sizes(system), system.D(q)
    at = over_sources(system, sizes, D, free=free)
    assert at.X.shape[1] == over_sources(system, sizes, D).X.shape[1] + len(free)
    s = rng.normal(size=at.X.shape[1])
    left = D @ (at.X @ s)
    holds = np.setdiff1d(np.arange(len(left)), [*at.rows, *free])
    assert_close(left[holds], np.zeros(len(holds)), SOLVED)
    assert_close(-left[free], sizes.rows[free] * s[-len(free) :], SOLVED)


def test_natural_units_do_not_know_how_heavy_a_robot_is():
    tree = TREES["mixed_8"]
    q = tree.random_configuration(3)

    def values(robot):
        system = System(robot, FORWARD)
        return np.linalg.svd(over_sources(system, natural_sizes(system), system.D(q)).M, compute_uv=False)

    expected = values(tree)
    for grams in (1e-6, 1e6):
        assert_close(values(tree.replace(I=tree.I * grams)) / expected, np.ones(len(expected)), SOLVED)

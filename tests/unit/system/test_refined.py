"""The refined system holds the solution of that as given; the sources from which all its unknowns follow."""

import numpy as np
import pytest
import scipy.sparse.linalg as spla

from nori_dyn.algebra.ranges import numbers_in
from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from nori_dyn.system.rows import NewtonEuler
from nori_dyn.system.sources import natural_sizes, over_sources
from tests.covering import covering
from tests.systems import FORWARD, INVERSE, PROBLEMS, hybrid, random_states, values_at
from tests.tolerances import SOLVED, assert_close
from tests.trees import TREES


@covering(name=TREES.keys(), kind=["inverse", "forward", "hybrid"], regroup=[False, True])
def test_its_solution_holds_that_of_the_system_as_given(name, kind, regroup):
    if name == "massless":  # what drives a link without mass?
        kind = "inverse"
    tree = TREES[name]
    system = System(tree, PROBLEMS.get(kind) or hybrid(tree, seed=3))
    refined = refine(system, seed=1, regroup=regroup)
    states = random_states(tree, 2, seed=7)
    for q, qd in zip(states.q, states.qd, strict=True):
        y = np.random.default_rng(2).normal(size=system.ny)
        d = np.linalg.solve(system.D(q).toarray(), -system.b(q, qd, y))
        D, b = values_at(refined.symbolic, q, qd, y)
        assert_close(spla.splu(D).solve(-b)[: len(d)], d, SOLVED)


def test_every_unknown_but_the_bodies_own_is_defined_by_a_row():
    for tree in TREES.values():
        system = System(tree, FORWARD)
        refined = refine(system)
        symbolic, n = refined.symbolic, system.shape[1]
        places = zip(symbolic.rows.tolist(), symbolic.columns.tolist(), strict=True)
        entries = dict(zip(places, symbolic.entries, strict=True))
        assert symbolic.shape[0] == symbolic.shape[1]
        assert set(symbolic.rows.tolist()) == set(symbolic.columns.tolist()) == set(range(symbolic.shape[0]))
        for column, row in refined.definitions.items():
            assert entries[row, column].value == -1
        assert len(set(refined.definitions.values())) == len(refined.definitions)
        free = set(range(n, symbolic.shape[1])) - refined.definitions.keys()
        assert free == {column for block in (*refined.a, *refined.f) for column in block}


def test_turns_are_rotations_in_a_plane():
    refined = refine(System(TREES["mixed_12"], FORWARD))
    assert refined.turns
    for turn in refined.turns:
        assert (turn.c * turn.c + turn.s * turn.s).fingerprint == 1
        assert 0 <= turn.plane[0] < turn.plane[1] <= 2


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

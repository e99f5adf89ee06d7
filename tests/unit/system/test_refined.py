"""The refined system: its solution holds that of the system as given, for every joint and every set of sensors."""

import numpy as np
import scipy.sparse.linalg as spla

from nori_dyn.system.builder import System
from nori_dyn.system.refined import refine
from tests.covering import covering
from tests.systems import FORWARD, PROBLEMS, hybrid, random_states, values_at
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

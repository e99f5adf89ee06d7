"""The symbolic elimination, against LU of dense matrices; the queue of the greedy orders."""

import numpy as np
import pytest

from nori_dyn.algebra.prime_field import PRIME
from nori_dyn.planning.elimination import FIELD, Elimination
from nori_dyn.planning.orderings.greedy import Heap
from nori_dyn.planning.orderings.problem import ordering_problem
from nori_dyn.planning.orderings.registry import ORDERINGS
from nori_dyn.system.builder import System
from nori_dyn.system.trace import SymbolicSystem, trace
from tests.covering import covering
from tests.matrices import symbolic_matrix
from tests.systems import FORWARD, INVERSE
from tests.trees import TREES

ARROW = [["x0", "x1", "x2", "x3"], ["x4", "x5", 0, 0], ["x6", 0, "x7", 0], ["x8", 0, 0, "x9"]]


def dense_steps(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
    """L, U and the entries that each step creates, of a dense matrix over the field, without pivoting."""
    U, L = matrix.copy(), np.eye(len(matrix), dtype=object)
    fill_in = []
    for k in range(len(U)):
        before = U[k + 1 :, k + 1 :] != 0
        L[k + 1 :, k] = U[k + 1 :, k] * pow(int(U[k, k]), -1, PRIME) % PRIME
        U[k + 1 :] = (U[k + 1 :] - np.outer(L[k + 1 :, k], U[k])) % PRIME
        fill_in.append(int((U[k + 1 :, k + 1 :].astype(bool) & ~before).sum()))
    return L, U, fill_in


def pattern(work: Elimination) -> tuple[np.ndarray, np.ndarray]:
    """Where L and U are nonzero, in the permuted matrix."""
    L, U = np.eye(work.n, dtype=bool), np.eye(work.n, dtype=bool)
    for k, step in enumerate(work.pivots):
        l, u = work.permuted(step)
        L[list(l), k] = True
        U[k, list(u)] = True
    return L, U


def test_arrow_fills_in_from_its_head_and_not_from_its_tail():
    symbolic = symbolic_matrix(ARROW)
    assert Elimination(symbolic, FIELD).run(range(4), range(4)).fill_in == 6
    done = Elimination(symbolic, FIELD).run([1, 2, 3, 0], [1, 2, 3, 0])
    assert done.fill_in == 0
    assert done.nonzeros == 10
    assert [len(step.l) for step in done.pivots] == [1, 1, 1, 0]


def test_an_entry_that_cancels_leaves_the_pattern_and_is_no_pivot():
    done = Elimination(symbolic_matrix([["x0", "x0", 1], ["x1", "x1", "x2"], [0, 1, "x3"]]), FIELD)
    step = done.pivot(0, 0)
    assert step.l.keys() == {1}
    assert 1 not in done.rows[1]  # x1 - (x1 / x0) x0
    assert done.columns[1] == {2}
    assert step.fill_in == 0
    work = Elimination(symbolic_matrix([["x0", "x0", 0], ["x1", "x1", 1], [0, "x2", "x3"]]), FIELD)
    work.pivot(0, 0)
    with pytest.raises(ZeroDivisionError, match=r"entry \(1, 1\) is zero for all q"):
        work.pivot(1, 1)


def test_units_are_those_of_the_matrix_as_given():
    work = Elimination(symbolic_matrix([[1, "x0", -1], ["x1", "x2", 1], [-1, 0, "x3"]]), FIELD)
    first = work.pivot(0, 0)
    assert first.is_unit
    assert first.value == 1
    assert first.l[2] == PRIME - 1
    assert first.l_units == {2}
    assert first.u_units == {2}
    second = work.pivot(1, 2)  # 1 + x1: touched
    assert not second.is_unit
    assert second.fill_in == 0
    assert first.fill_in == 1  # row 2 had no entry in column 1


def test_right_hand_side_is_eliminated_along():
    work = Elimination(symbolic_matrix([["x0", 0], ["x1", "x2"]], [["x3"], [0]]), FIELD)
    assert work.rhs_nonzeros == 1
    first = work.pivot(0, 0)
    assert first.rhs
    assert first.rhs_fill_in == 1
    assert work.pivot(1, 1).rhs
    assert all(work.solution().values())
    dead = Elimination(symbolic_matrix([["x0", 0], [0, "x2"]], [["x3"], [0]]), FIELD).run([0, 1], [0, 1])
    assert dead.solution()[0]
    assert dead.solution()[1] == 0


CASES = {
    "inverse mixed_8": ("mixed_8", INVERSE),
    **{f"forward {tree}": (tree, FORWARD) for tree in ("mixed_8", "two_roots", "autotree_branched", "three_children")},
}


@covering(strength=1, case=CASES, ordering=list(ORDERINGS))
def test_factors_are_those_of_dense_lu_pattern_and_fill_in_included(case, ordering):
    """Dense LU at another point of the field finds the same zeros: they are zeros for all q, not of the point."""
    if ordering == "umfpack":
        pytest.importorskip("scikits.umfpack", reason="the extra 'umfpack' is not installed")
    system = System(TREES[case[0]], case[1])
    symbolic = trace(system)
    order = ORDERINGS[ordering](ordering_problem(system, symbolic, seed=0))
    work = Elimination(symbolic, FIELD).run(order.rows, order.columns)
    np.testing.assert_array_equal(product(work), field_matrix(symbolic)[np.ix_(order.rows, order.columns)])
    elsewhere = field_matrix(trace(system, seed=17))[np.ix_(order.rows, order.columns)]
    L, U, fill_in = dense_steps(elsewhere)
    structural_L, structural_U = pattern(work)
    np.testing.assert_array_equal(structural_L, L != 0)
    np.testing.assert_array_equal(structural_U, U != 0)
    assert [step.fill_in for step in work.pivots] == fill_in
    assert work.nonzeros == np.count_nonzero(L) + np.count_nonzero(U) - work.n


def field_matrix(symbolic: SymbolicSystem) -> np.ndarray:
    D = np.zeros(symbolic.shape, dtype=object)
    D[symbolic.rows, symbolic.columns] = [entry.fingerprint for entry in symbolic.entries]
    return D


def product(work: Elimination[int]) -> np.ndarray:
    """L U in the field."""
    n = work.n
    result = np.zeros((n, n), dtype=object)
    for k, step in enumerate(work.pivots):
        l, u = work.permuted(step)
        for i, left in [(k, 1), *l.items()]:
            for j, right in [(k, step.value), *u.items()]:
                result[i, j] = (result[i, j] + left * right) % PRIME
    return result


def test_an_entry_that_changes_its_sign_vanishes_somewhere():
    symbolic = symbolic_matrix([["x0", 1], ["x1", "x2"]])
    work = Elimination(symbolic, FIELD, samples(symbolic, {"x0": (2, -4, 1), "x1": (1, 8, 2), "x2": (-5, -5, -5)}))
    assert work.changes_sign(0, 0)
    assert not any(work.changes_sign(*place) for place in ((0, 1), (1, 0), (1, 1)))
    work.pivot(0, 1)
    np.testing.assert_allclose(work.sampled(1, 0), [1 + 10, 8 - 20, 2 + 5], rtol=1e-15)
    assert not Elimination(symbolic, FIELD).changes_sign(0, 0)  # without samples there is no telling


def test_growth_is_the_largest_update_by_the_largest_entry_of_its_row_or_column():
    symbolic = symbolic_matrix([["x0", "x1"], ["x2", "x3"]])
    work = Elimination(symbolic, FIELD, samples(symbolic, {"x0": (0.5,), "x1": (3.0,), "x2": (4.0,), "x3": (6.0,)}))
    assert work.growth(0, 0) == pytest.approx(3.0 * 4.0 / 0.5 / 6.0)
    assert work.growth(1, 1) == pytest.approx(3.0 * 4.0 / 6.0 / 4.0)
    assert work.pivot(0, 0).growth == pytest.approx(4.0)
    assert Elimination(symbolic, FIELD).growth(0, 0) == 0.0


def test_nothing_grows_on_the_diagonal_of_a_positive_definite_matrix():
    symbolic = symbolic_matrix([[f"x{6 * i + j}" for j in range(6)] for i in range(6)])
    for seed in range(3):
        rng = np.random.default_rng(seed)
        factor = rng.normal(size=(6, 6)) * 10.0 ** rng.uniform(-4, 4, size=(6, 1))  # however small its pivots are
        values = {f"x{k}": (x,) for k, x in enumerate((factor @ factor.T).flat)}
        work = Elimination(symbolic, FIELD, samples(symbolic, values))
        for k in rng.permutation(6).tolist():
            assert work.pivot(k, k).growth <= 1 + 1e-9


def samples(symbolic: SymbolicSystem, values: dict[str, tuple[float, ...]]) -> np.ndarray:
    """The entries of a matrix of names at some states (states, nnz); constants are as they are."""
    n = len(next(iter(values.values())))
    of = {x.index: values[symbolic.graph.labels[x.index]] for x in symbolic.q}
    columns = [of[e.index] if e.index in of else (e.value,) * n for e in symbolic.entries]
    return np.array(columns, dtype=float).T


def test_samples_follow_the_elimination():
    system = System(TREES["three_children"], FORWARD)
    symbolic = trace(system)
    problem = ordering_problem(system, symbolic, seed=0)
    order = ORDERINGS["markowitz"](problem)
    work = Elimination(symbolic, FIELD, problem.samples)
    matrices = [problem.matrix(k).toarray() for k in range(len(problem.samples))]
    for row, column in zip(order.rows[:60].tolist(), order.columns[:60].tolist(), strict=True):
        work.pivot(row, column)
        for D in matrices:
            l = D[:, column] / D[row, column]
            l[row] = 0
            D -= np.outer(l, D[row])
            D[row] = D[:, column] = 0
    for i, entries in enumerate(work.rows):
        for j in entries:
            values = work.sampled(i, j)
            np.testing.assert_allclose(values, [D[i, j] for D in matrices], rtol=1e-6, atol=1e-9)


def test_an_entry_waits_once_and_comes_up_by_the_key_that_it_has():
    keys = {(0, 0): 3, (0, 1): 1, (1, 0): 2}
    rows = [{0: 1, 1: 1}, {0: 1}]
    heap = Heap(lambda i, j: (0, keys[i, j], False, False, 0, i, j), list(keys))
    keys[0, 1] = 4  # grown: put back when its turn comes
    keys[0, 0] = 0  # less: comes up at once, and once only
    heap.put([(0, 0)])
    heap.put([(0, 0)])
    del rows[1][0]  # gone
    assert [heap.pop(rows) for _ in range(3)] == [(0, 0), (0, 1), None]
    heap.put([(0, 0)])  # one that was taken may come again
    assert heap.pop(rows) == (0, 0)

"""LTL and LTDL factorisations of matrices with branch-induced sparsity, against numpy, and counted."""

from __future__ import annotations

import numpy as np
import pytest

from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import InputError, NotPositiveDefiniteError
from nori_dyn.recursions import factorisation as fac
from nori_dyn.recursions.factorisation import LTDL, ltdl, ltl
from nori_dyn.recursions.sparsity import inertia_pattern
from tests.tolerances import EXACT, RECURSION, ROUNDING, assert_close

N = 4


def random_parents(rng, n):
    return tuple(int(rng.integers(-1, k)) for k in range(n))


def random_factor(rng, parents, batch=()):
    """Return a lower triangular L (n, n, ...) with positive diagonal, zero where the tree has no path."""
    n = len(parents)
    L = rng.normal(size=(n, n, *batch)) / 2
    L[range(n), range(n)] = rng.uniform(1.0, 2.0, size=(n, *batch))
    lower = np.tril(inertia_pattern(parents))
    return np.where(lower.reshape((n, n) + (1,) * len(batch)), L, 0.0)


def product(L):
    """Return L^T L of (n, n, ...)."""
    return np.einsum("ki...,kj...->ij...", L, L)


def random_tree_matrix(seed, n=None, batch=()):
    """Return parents and an H with exactly their sparsity, symmetric to the last bit."""
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, n or int(rng.integers(1, 13)))
    H = product(random_factor(rng, parents, batch))
    return parents, (H + np.swapaxes(H, 0, 1)) / 2


def random_unit_factor(rng, parents):
    L = random_factor(rng, parents)
    np.fill_diagonal(L, 1.0)
    return L


@pytest.mark.parametrize("decade", range(20))
def test_factors_of_random_trees(decade):
    for seed in range(10 * decade, 10 * decade + 10):
        parents, H = random_tree_matrix(seed)
        outside = ~np.tril(inertia_pattern(parents))
        L = ltl(H, parents)
        assert_close(L.T @ L, H, RECURSION)
        assert (L[outside] == 0).all()
        assert (np.diag(L) > 0).all()
        L, D = ltdl(H, parents)
        assert_close(L.T @ np.diag(D) @ L, H, RECURSION)
        assert (L[outside] == 0).all()
        assert (np.diag(L) == 1).all()
        assert (D > 0).all()


@pytest.mark.parametrize("in_place", [fac.ltl_in_place, fac.ltdl_in_place])
def test_no_branch_induced_zero_and_nothing_above_the_diagonal_is_touched(in_place):
    for seed in range(50):
        parents, H = random_tree_matrix(seed)
        outside = ~np.tril(inertia_pattern(parents))
        poisoned = np.where(outside, np.nan, H)
        in_place(poisoned, parents)
        assert np.isnan(poisoned[outside]).all()
        assert np.isfinite(poisoned[~outside]).all()
        in_place(H, parents)
        assert_close(poisoned[~outside], H[~outside], EXACT)


def test_the_upper_triangle_is_not_read():
    parents, H = random_tree_matrix(3, n=8)
    L = ltl(H, parents)
    b = np.arange(8.0)
    poisoned = np.where(np.tril(inertia_pattern(parents)), H, np.nan)
    assert_close(fac.times_H(poisoned, parents, b), H @ b, RECURSION)
    poisoned = np.where(np.tril(inertia_pattern(parents)), L, np.nan)
    assert_close(fac.solve_ltl(poisoned, parents, b), np.linalg.solve(H, b), RECURSION)


@pytest.mark.parametrize("n", [1, 2, 5, 9])
def test_a_chain_is_the_cholesky_factor_of_the_reversed_matrix(n):
    rng = np.random.default_rng(n)
    A = rng.normal(size=(n, n))
    H, parents = A @ A.T + np.eye(n), tuple(range(-1, n - 1))
    G = np.linalg.cholesky(H[::-1, ::-1])
    expected = G.T[::-1, ::-1]
    assert_close(ltl(H, parents), expected, RECURSION)
    L, D = ltdl(H, parents)
    assert_close(D, np.diag(expected) ** 2, RECURSION)
    assert_close(L, expected / np.diag(expected)[:, None], RECURSION)


def test_given_matrices_are_not_changed():
    parents, H = random_tree_matrix(5, n=6)
    before = H.copy()
    L = ltl(H, parents)
    factors = ltdl(H, parents)
    b = np.ones(6)
    fac.solve_ltl(L, parents, b)
    fac.solve_ltdl(factors, parents, b)
    fac.times_L(L, parents, b)
    fac.times_H(H, parents, b)
    fac.inverse(H)
    assert_close(H, before, EXACT)
    assert_close(b, np.ones(6), EXACT)


# name: (ours, the same by numpy)
PRODUCTS = {
    "times_L": (fac.times_L, lambda L, x: L @ x),
    "times_L_transpose": (fac.times_L_transpose, lambda L, x: L.T @ x),
    "solve_L": (fac.solve_L, np.linalg.solve),
    "solve_L_transpose": (fac.solve_L_transpose, lambda L, x: np.linalg.solve(L.T, x)),
}


@pytest.mark.parametrize("columns", [(), (1,), (3,)])
@pytest.mark.parametrize("unit", [False, True])
@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_solves_with_a_factor(name, unit, columns):
    ours, theirs = PRODUCTS[name]
    for seed in range(20):
        rng = np.random.default_rng(seed)
        parents = random_parents(rng, 9)
        L = random_unit_factor(rng, parents) if unit else random_factor(rng, parents)
        x = rng.normal(size=(9, *columns))
        given = np.where(np.tril(inertia_pattern(parents), -1 if unit else 0), L, np.nan)  # all that may be read
        assert_close(ours(given, parents, x, unit=unit), theirs(L, x), RECURSION)


@pytest.mark.parametrize("columns", [(), (3,)])
def test_products_and_solves_with_the_matrix(columns):
    for seed in range(20):
        parents, H = random_tree_matrix(seed, n=9)
        b = np.random.default_rng(seed).normal(size=(9, *columns))
        assert_close(fac.times_H(H, parents, b), H @ b, RECURSION)
        assert_close(fac.solve_ltl(ltl(H, parents), parents, b), np.linalg.solve(H, b), RECURSION)
        assert_close(fac.solve_ltdl(ltdl(H, parents), parents, b), np.linalg.solve(H, b), RECURSION)
        assert_close(fac.inverse(H), np.linalg.inv(H), RECURSION)


def test_right_hand_sides_of_integers():
    parents, H = random_tree_matrix(2, n=5)
    L, x = ltl(H, parents), np.arange(5)
    for solve, factors in ((fac.solve_ltl, L), (fac.solve_ltdl, ltdl(H, parents))):
        assert_close(solve(factors, parents, x), np.linalg.solve(H, x), RECURSION)
    assert_close(fac.times_H(H, parents, x), H @ x, RECURSION)
    for ours, theirs in PRODUCTS.values():
        assert_close(ours(L, parents, x), theirs(L, x), RECURSION)


def test_a_matrix_of_integers_as_a_list():
    assert_close(ltl([[2, 2], [2, 4]], (-1, 0)), [[1.0, 0.0], [1.0, 2.0]], ROUNDING)
    L, D = ltdl([[2, 2], [2, 4]], (-1, 0))
    assert_close(L, [[1.0, 0.0], [0.5, 1.0]], ROUNDING)
    assert_close(D, [1.0, 4.0], ROUNDING)


@pytest.mark.parametrize("batch", [(N,), (2, 3)])
def test_a_batch_is_each_one(batch):
    parents, H = random_tree_matrix(6, n=7, batch=batch)
    rng = np.random.default_rng(1)
    b, B = rng.normal(size=(7, *batch)), rng.normal(size=(7, 2, *batch))
    L, (unit_L, D) = ltl(H, parents), ltdl(H, parents)
    solved, solved_unit = fac.solve_ltl(L, parents, b), fac.solve_ltdl(LTDL(unit_L, D), parents, b)
    columns, inverse, H_b = fac.solve_ltl(L, parents, B), fac.inverse(H), fac.times_H(H, parents, b)
    assert D.shape == (7, *batch)
    for place in np.ndindex(*batch):
        k = (..., *place)
        assert_close(L[k], ltl(H[k], parents), EXACT)
        assert_close(unit_L[k], ltdl(H[k], parents).L, EXACT)
        assert_close(D[k], ltdl(H[k], parents).D, EXACT)
        assert_close(solved[k], fac.solve_ltl(L[k], parents, b[k]), EXACT)
        assert_close(solved_unit[k], fac.solve_ltdl(ltdl(H[k], parents), parents, b[k]), EXACT)
        assert_close(columns[k], fac.solve_ltl(L[k], parents, B[k]), EXACT)
        assert_close(inverse[k], fac.inverse(H[k]), EXACT)
        assert_close(H_b[k], fac.times_H(H[k], parents, b[k]), EXACT)


class Counted:
    """A number that counts what is done with it."""

    tally: dict[str, int]

    def __init__(self, value):
        self.value = value

    def _made(self, what, value):
        Counted.tally[what] += 1
        return Counted(value)

    def __add__(self, other):
        return self._made("additions", self.value + other.value)

    def __sub__(self, other):
        return self._made("additions", self.value - other.value)

    def __mul__(self, other):
        return self._made("multiplications", self.value * other.value)

    def __truediv__(self, other):
        return self._made("divisions", self.value / other.value)

    def sqrt(self):
        return self._made("square_roots", self.value**0.5)


def counted(array):
    found = np.empty(array.shape, dtype=object)
    for place, value in np.ndenumerate(array):
        found[place] = Counted(value)
    return found


def operations(function, *args, **options):
    """Return the operations of a function of arrays, counted one by one, and its result as floats."""
    Counted.tally = dict.fromkeys(("additions", "multiplications", "divisions", "square_roots"), 0)
    result = function(*args, **options)
    return Cost(**Counted.tally), result


def numbers(array):
    return np.array([getattr(x, "value", x) for x in array.ravel()], dtype=float).reshape(array.shape)


def test_costs_are_the_operations_counted():
    for seed in range(30):
        parents, H = random_tree_matrix(seed)
        objects = counted(H)
        cost, L = operations(ltl, objects, parents)
        assert cost == fac.ltl_cost(parents)
        assert_close(numbers(L), ltl(H, parents), ROUNDING)
        cost, (unit_L, D) = operations(ltdl, objects, parents)
        assert cost == fac.ltdl_cost(parents)
        assert_close(numbers(unit_L), ltdl(H, parents).L, ROUNDING)
        assert_close(numbers(D), ltdl(H, parents).D, ROUNDING)
        b = np.random.default_rng(seed).normal(size=len(H))
        cost, y = operations(fac.times_H, objects, parents, counted(b))
        assert cost == fac.times_H_cost(parents)
        assert_close(numbers(y), H @ b, RECURSION)
        for unit in (False, True):
            for times in (fac.times_L, fac.times_L_transpose):
                cost, _ = operations(times, L, parents, counted(b), unit=unit)
                assert cost == fac.times_L_cost(parents, unit)
            for solve in (fac.solve_L, fac.solve_L_transpose):
                cost, _ = operations(solve, L, parents, counted(b), unit=unit)
                assert cost == fac.solve_L_cost(parents, unit)


def test_costs_of_a_chain_are_those_of_cholesky():
    n = 7
    parents = tuple(range(-1, n - 1))
    assert fac.ltl_cost(parents) == Cost((n**3 - n) // 6, (n**3 - n) // 6, (n**2 - n) // 2, n)
    assert fac.times_H_cost(parents) == Cost(n**2 - n, n**2)


CHAIN = (-1, 0, 1)
BRANCHES = (-1, 0, 0)
GOOD = np.diag([3.0, 2.0, 1.0])


def changed(*entries):
    """Return GOOD with some entries (i, j, value)."""
    H = GOOD.copy()
    for i, j, value in entries:
        H[i, j] = value
    return H


BAD = {
    "not symmetric": (
        changed((2, 1, 0.5), (1, 2, 0.4)),
        CHAIN,
        r"H\[1, 2\] is 0\.4, but 0\.5 across the diagonal: .*symmetric",
    ),
    "NaN": (changed((2, 1, np.nan)), CHAIN, r"H\[2, 1\] is nan: values must be finite"),
    "infinite": (changed((0, 0, np.inf)), CHAIN, r"H\[0, 0\] is inf: values must be finite"),
    "other branch": (changed((2, 1, 0.1), (1, 2, 0.1)), BRANCHES, r"freedoms 1 and 2 lie on different branches"),
    "negative": (changed((1, 1, -2.0)), CHAIN, r"not positive definite: the pivot of freedom 1 is -2"),
    "zero": (changed((2, 2, 0.0)), CHAIN, r"not positive definite: the pivot of freedom 2 is 0"),
    "indefinite": (
        changed((1, 0, 3.0), (0, 1, 3.0)),
        CHAIN,
        r"not positive definite: the pivot of freedom 0 is -1\.5",
    ),
    "more parents": (GOOD, (-1, 0, 1, 2), r"H has shape \(3, 3\), but there are 4 parents: expected \(4, 4\)"),
    "a vector": (np.ones(3), CHAIN, r"H has shape \(3,\)"),
    "not square": (np.ones((3, 2)), CHAIN, r"H has shape \(3, 2\)"),
    "later parent": (GOOD, (-1, 2, 0), r"parents\[1\] is 2: expected the number of an earlier freedom"),
    "own parent": (GOOD, (0, 0, 0), r"parents\[0\] is 0"),
    "parent below the world": (GOOD, (-2, 0, 0), r"parents\[0\] is -2"),
    "parent that is no integer": (GOOD, (-1, 0.0, 1), r"parents\[1\] is 0\.0"),
    "parent that is a name": (GOOD, (-1, "base", 1), r"parents\[1\] is 'base'"),
}


@pytest.mark.parametrize("factorise", [ltl, ltdl])
@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_named(factorise, name):
    H, parents, message = BAD[name]
    with pytest.raises(InputError, match=message):
        factorise(H, parents)


@pytest.mark.parametrize("factorise", [ltl, ltdl])
def test_one_bad_matrix_of_a_batch_is_refused(factorise):
    good = np.repeat(GOOD[..., None], N, axis=-1)
    for place, value, message in (
        ((1, 1, 2), -2.0, "pivot of freedom 1 is -2"),
        ((2, 1, 3), 0.5, "H must be symmetric"),
        ((2, 0, 1), np.nan, "values must be finite"),
    ):
        H = good.copy()
        H[place] = value
        with pytest.raises(InputError, match=message):
            factorise(H, CHAIN)
    both = good.copy()
    both[1, 2, 0] = both[2, 1, 0] = 0.1
    with pytest.raises(InputError, match="different branches"):
        factorise(both, BRANCHES)


def test_the_freedom_that_fails_is_told_to_programs():
    with pytest.raises(NotPositiveDefiniteError) as raised:
        ltl(changed((1, 1, -2.0)), CHAIN)
    assert raised.value.freedom == 1
    with pytest.raises(NotPositiveDefiniteError) as raised:
        fac.inverse(changed((2, 2, 0.0)))
    assert raised.value.freedom == 2


def test_rounding_is_no_asymmetry():
    parents, H = random_tree_matrix(8, n=6)
    noise = 1e-14 * np.random.default_rng(0).normal(size=H.shape)
    assert_close(ltl(H + noise, parents), ltl(H, parents), RECURSION)


def test_parents_may_be_numbers_of_numpy():
    parents, H = random_tree_matrix(9, n=6)
    assert_close(ltl(H, np.array(parents)), ltl(H, parents), EXACT)

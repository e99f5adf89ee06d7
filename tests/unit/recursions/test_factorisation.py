"""LTL and LTDL of matrices with branch-induced sparsity, against numpy, and counted; that sparsity."""

import operator
from itertools import product

import numpy as np
import pytest

from nori_dyn.algebra.counting import Cost
from nori_dyn.errors import InputError, NotPositiveDefiniteError
from nori_dyn.model.joints import Revolute, Spherical
from nori_dyn.model.synthetic import random_tree
from nori_dyn.recursions import factorisation as fac
from nori_dyn.recursions.crba import crba
from nori_dyn.recursions.factorisation import ltdl, ltl
from nori_dyn.recursions.sparsity import ancestors, depth_sums, expanded_parents, inertia_pattern
from tests.tolerances import EXACT, RECURSION, ROUNDING, assert_close
from tests.trees import TREES


def random_parents(rng, n):
    return tuple(int(rng.integers(-1, k)) for k in range(n))


def random_factor(rng, parents, batch=()):
    """A lower triangular L (n, n, ...) with positive diagonal, zero where the tree has no path."""
    n = len(parents)
    L = rng.normal(size=(n, n, *batch)) / 2
    L[range(n), range(n)] = rng.uniform(1.0, 2.0, size=(n, *batch))
    lower = np.tril(inertia_pattern(parents))
    return np.where(lower.reshape((n, n) + (1,) * len(batch)), L, 0.0)


def random_tree_matrix(seed, n=None, batch=()):
    """Parents and an H with exactly their sparsity, symmetric to the last bit."""
    rng = np.random.default_rng(seed)
    parents = random_parents(rng, n or int(rng.integers(1, 13)))
    L = random_factor(rng, parents, batch)
    H = np.einsum("ki...,kj...->ij...", L, L)
    return parents, (H + np.swapaxes(H, 0, 1)) / 2


def test_factors_of_random_trees():
    for seed in range(100):
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


# name: (ours, the same by numpy)
PRODUCTS = {
    "times_L": (fac.times_L, lambda L, x: L @ x),
    "times_L_transpose": (fac.times_L_transpose, lambda L, x: L.T @ x),
    "solve_L": (fac.solve_L, np.linalg.solve),
    "solve_L_transpose": (fac.solve_L_transpose, lambda L, x: np.linalg.solve(L.T, x)),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_and_solves_with_a_factor(name):
    ours, theirs = PRODUCTS[name]
    for seed, unit, columns in product(range(5), (False, True), ((), (1,), (3,))):
        rng = np.random.default_rng(seed)
        parents = random_parents(rng, 9)
        L = random_factor(rng, parents)
        if unit:
            np.fill_diagonal(L, 1.0)
        x = rng.normal(size=(9, *columns))
        given = np.where(np.tril(inertia_pattern(parents), -1 if unit else 0), L, np.nan)  # all that may be read
        assert_close(ours(given, parents, x, unit=unit), theirs(L, x), RECURSION)


def test_products_and_solves_with_the_matrix():
    """The upper triangle is not read."""
    for seed, columns in product(range(10), ((), (3,))):
        parents, H = random_tree_matrix(seed, n=9)
        b = np.random.default_rng(seed).normal(size=(9, *columns))
        lower = np.tril(inertia_pattern(parents))
        L, (unit_L, D) = ltl(H, parents), ltdl(H, parents)
        assert_close(fac.times_H(np.where(lower, H, np.nan), parents, b), H @ b, RECURSION)
        solved = np.linalg.solve(H, b)
        assert_close(fac.solve_ltl(np.where(lower, L, np.nan), parents, b), solved, RECURSION)
        assert_close(fac.solve_ltdl((unit_L, D), parents, b), solved, RECURSION)
        assert_close(fac.inverse(H), np.linalg.inv(H), RECURSION)


def test_integers_are_numbers():
    assert_close(ltl([[2, 2], [2, 4]], (-1, 0)), [[1.0, 0.0], [1.0, 2.0]], ROUNDING)
    L, D = ltdl([[2, 2], [2, 4]], (-1, 0))
    assert_close(L, [[1.0, 0.0], [0.5, 1.0]], ROUNDING)
    assert_close(D, [1.0, 4.0], ROUNDING)


def results(H, parents, b, B):
    """What all functions make of a matrix and of one and of two columns."""
    L, factors = ltl(H, parents), ltdl(H, parents)
    solved = [fac.solve_ltl(L, parents, b), fac.solve_ltl(L, parents, B), fac.solve_ltdl(factors, parents, b)]
    return [L, *factors, *solved, fac.inverse(H), fac.times_H(H, parents, b), fac.times_L(L, parents, b)]


@pytest.mark.parametrize("batch", [(4,), (2, 3)])
def test_a_batch_is_each_one_and_arguments_are_not_changed(batch):
    parents, H = random_tree_matrix(6, n=7, batch=batch)
    rng = np.random.default_rng(1)
    b, B = rng.normal(size=(7, *batch)), rng.normal(size=(7, 2, *batch))
    before = H.copy(), b.copy()
    found = results(H, parents, b, B)
    assert_close(H, before[0], EXACT)
    assert_close(b, before[1], EXACT)
    for place in np.ndindex(*batch):
        k = (..., *place)
        for whole, one in zip(found, results(H[k], parents, b[k], B[k]), strict=True):
            assert_close(whole[k], one, EXACT)


class Counted:
    """A number that counts what is done with it."""

    tally: dict[str, int]

    def __init__(self, value):
        self.value = value

    def sqrt(self):
        Counted.tally["square_roots"] += 1
        return Counted(self.value**0.5)


def counting(what, operation):
    """An operation of two numbers that counts itself."""

    def counted_one(self, other):
        Counted.tally[what] += 1
        return Counted(operation(self.value, other.value))

    return counted_one


for _name, _what in (("add", "additions"), ("sub", "additions"), ("mul", "multiplications"), ("truediv", "divisions")):
    setattr(Counted, f"__{_name}__", counting(_what, getattr(operator, _name)))


counted = np.vectorize(Counted, otypes=[object])
numbers = np.vectorize(lambda x: getattr(x, "value", x), otypes=[float])


def operations(function, *args, **options):
    """The operations of a function of arrays, counted one by one, and its result as floats."""
    Counted.tally = dict.fromkeys(("additions", "multiplications", "divisions", "square_roots"), 0)
    result = function(*args, **options)
    return Cost(**Counted.tally), result


def costs(parents, unit=False):
    """The operations of each algorithm by RBDA table 6.6; `unit` is of a factor whose diagonal is 1."""
    D_1, D_2 = depth_sums(parents)
    n = len(parents)
    return {
        "ltl": Cost(D_2, D_2, D_1, n),
        "ltdl": Cost(D_2, D_2, D_1),
        "times_H": Cost(2 * D_1, 2 * D_1 + n),
        "times": Cost(D_1, D_1 if unit else D_1 + n),
        "solve": Cost(D_1, D_1, 0 if unit else n),
    }


def test_costs_are_the_operations_counted():
    for seed in range(30):
        parents, H = random_tree_matrix(seed)
        b = np.random.default_rng(seed).normal(size=len(H))
        objects, columns = counted(H), counted(b)
        cost, L = operations(ltl, objects, parents)
        assert cost == costs(parents)["ltl"]
        assert_close(numbers(L), ltl(H, parents), ROUNDING)
        cost, factors = operations(ltdl, objects, parents)
        assert cost == costs(parents)["ltdl"] == fac.ltdl_cost(parents)
        for ours, expected in zip(factors, ltdl(H, parents), strict=True):
            assert_close(numbers(ours), expected, ROUNDING)
        cost, y = operations(fac.times_H, objects, parents, columns)
        assert cost == costs(parents)["times_H"]
        assert_close(numbers(y), H @ b, RECURSION)
        for (name, (function, _)), unit in product(PRODUCTS.items(), (False, True)):
            cost, _ = operations(function, L, parents, columns, unit=unit)
            assert cost == costs(parents, unit)[name[:5]], name


CHAIN = (-1, 0, 1)
BRANCHES = (-1, 0, 0)
GOOD = np.diag([3.0, 2.0, 1.0])


def changed(*entries):
    """GOOD with some entries (i, j, value)."""
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
    "indefinite": (changed((1, 0, 3.0), (0, 1, 3.0)), CHAIN, r"not positive definite: the pivot of freedom 0 is -1\.5"),
    "more parents": (GOOD, (-1, 0, 1, 2), r"H has shape \(3, 3\), but there are 4 parents: expected \(4, 4\)"),
    "a vector": (np.ones(3), CHAIN, r"H has shape \(3,\)"),
    "not square": (np.ones((3, 2)), CHAIN, r"H has shape \(3, 2\)"),
    "later parent": (GOOD, (-1, 2, 0), r"parents\[1\] is 2: expected the number of an earlier freedom"),
}


def test_bad_input_is_named():
    for (H, parents, message), factorise in product(BAD.values(), (ltl, ltdl)):
        with pytest.raises(InputError, match=message) as raised:
            factorise(H, parents)
        if "pivot" in message:  # told to programs
            assert isinstance(raised.value, NotPositiveDefiniteError)
            assert f"of freedom {raised.value.freedom} is" in message
    with pytest.raises(NotPositiveDefiniteError) as raised:
        fac.inverse(BAD["zero"][0])
    assert raised.value.freedom == 2


def test_one_bad_matrix_of_a_batch_is_refused():
    for parents, places, value, message in (
        (CHAIN, [(1, 1, 2)], -2.0, "pivot of freedom 1 is -2"),
        (CHAIN, [(2, 1, 3)], 0.5, "H must be symmetric"),
        (CHAIN, [(2, 0, 1)], np.nan, "values must be finite"),
        (BRANCHES, [(1, 2, 0), (2, 1, 0)], 0.1, "different branches"),
    ):
        H = np.repeat(GOOD[..., None], 4, axis=-1)
        for place in places:
            H[place] = value
        for factorise in (ltl, ltdl):
            with pytest.raises(InputError, match=message):
                factorise(H, parents)


def test_rounding_is_no_asymmetry_and_parents_may_be_numbers_of_numpy():
    parents, H = random_tree_matrix(8, n=6)
    assert_close(ltl(H, np.array(parents)), ltl(H, parents), EXACT)
    noise = 1e-14 * np.random.default_rng(0).normal(size=H.shape)
    assert_close(ltl(H + noise, parents), ltl(H, parents), RECURSION)


def example():
    """The tree of the example of RBDA table 6.4: its second joint has three freedoms."""
    joints = (Revolute(), Spherical(), *(Revolute() for _ in range(4)))
    return random_tree(6, seed=1).replace(parents=(-1, 0, 0, 1, 1, 2), joints=joints)


def test_expanded_parents_and_ancestors():
    parents = expanded_parents(example())
    assert parents == (-1, 0, 1, 2, 0, 3, 3, 4)
    assert [[*ancestors(parents, k)] for k in (7, 6, 0)] == [[4, 0], [3, 2, 1, 0], []]  # parent first
    single = random_tree(9, seed=2, kinds=("revolute", "prismatic", "helical"))
    assert expanded_parents(single) == single.parents
    assert expanded_parents(TREES["two_roots"]) == (-1, 0, 1, 2, 3, 4, 5, -1, 7, 8, 9, 10, 11, 12)
    assert expanded_parents(TREES["one_free_body"]) == (-1, 0, 1, 2, 3, 4)


def test_pattern_of_the_book():
    rows = ["10000000", "11000000", "11100000", "11110000", "10001000", "11110100", "11110010", "10001001"]
    lower = np.array([[entry == "1" for entry in row] for row in rows])
    assert (inertia_pattern(expanded_parents(example())) == (lower | lower.T)).all()


def test_the_inertia_matrix_of_a_generic_tree_has_the_pattern():
    for seed in range(5):
        tree = random_tree(8, seed=seed, kinds=("revolute", "helical", "planar"), aligned=0.0, chain=0.3)
        H = crba(tree, tree.random_configuration(seed))
        pattern = inertia_pattern(expanded_parents(tree))
        at_one_joint = np.zeros_like(pattern)
        for v in tree.v_slices:
            at_one_joint[v, v] = True  # where a planar joint has zeros of its own
        assert ((H != 0) == pattern)[~at_one_joint].all(), seed


def test_parents_of_no_tree_are_refused():
    for parents in ((0,), (-1, 1), (-1, 5), (-2,), (-1, "a"), (-1, 0.5), (-1, None)):
        k = len(parents) - 1
        with pytest.raises(InputError, match=rf"parents\[{k}\] is {parents[k]!r}"):
            inertia_pattern(parents)

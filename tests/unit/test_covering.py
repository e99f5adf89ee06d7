"""What tests rely on: covering arrays, faults put into the code, least squares in extended precision."""

import shutil
from collections import Counter
from itertools import combinations, product

import mpmath as mp
import numpy as np
import pytest

from tests import covering
from tests.least_squares import constrained_least_squares, orthogonal_factors
from tests.mutants.drawn import drawn
from tests.mutants.sites import sites, sites_of_c


@pytest.mark.parametrize(
    ("sizes", "strength"), [([6, 3, 3], 2), ([23, 10, 5], 2), ([2, 3, 4, 5], 3), ([7, 2], 1), ([4], 2)]
)
def test_each_combination_comes_at_least_once(sizes, strength):
    rows = covering.covering_array(sizes, strength)
    for columns in combinations(range(len(sizes)), min(strength, len(sizes))):
        found = {tuple(row[column] for column in columns) for row in rows}
        assert found == set(product(*(range(sizes[column]) for column in columns)))


def test_it_is_little_larger_than_the_two_largest_sizes_multiplied():
    assert 230 <= len(covering.covering_array([23, 10, 5], 2)) <= 280
    assert len(covering.covering_array([34, 3, 3], 1)) <= 36


def test_the_whole_product_where_all_is_asked_for(monkeypatch):
    axes = {"letter": {"a": 1, "b": 2, "c": 3}, "number": [4, 5], "sign": [-1, 1]}
    assert 6 <= len(covering.covering(**axes).args[1]) < 12
    monkeypatch.setattr(covering, "ALL", True)
    names, cases = covering.covering(**axes).args
    assert names == ("letter", "number", "sign")
    assert len(cases) == 12
    assert (cases[0].id, cases[0].values) == ("a-4--1", (1, 4, -1))


SOURCE = '''
"""Not here: 1 + 1."""
def f(a: "1 - 1", b, *c):
    if a is None:
        raise ValueError(f"{a + 1}")
    if a < b and not c:
        return -a[1]
    return g(a, b) if c else range(b) + 2.0 * True
'''


def test_changes_are_of_every_kind_and_each_is_one():
    found: dict[str, dict[str, str]] = {}
    for site in sites(SOURCE):
        found.setdefault(site.kind, {})[SOURCE[site.start : site.end]] = site.text
    assert found == {
        "guard left out": {"a is None": "False", "a < b and not c": "False"},
        "bound": {"is": "is not", "<": "<=", "b": "b - 1"},
        "logic": {"and": "or", "not c": "c", "c": "not (c)"},
        "sign": {"-a[1]": "a[1]"},
        "index": {"1": "2"},
        "swapped arguments": {"a, b": "b, a"},
        "operator": {"+": "-", "*": "/"},
        "constant": {"2.0": "4.0", "True": "False"},
    }
    assert all(site.changes(SOURCE) for site in sites(SOURCE))
    of_c = "/* a < b */\n#define N (a + b)\nint f(int a) { return a < b ? a + 1 : -a; }\n"
    assert [(of_c[one.start : one.end], one.text, one.line) for one in sites_of_c(of_c)] == [
        ("<", "<=", 3),
        ("+", "-", 3),
    ]


def test_they_are_drawn_in_every_room_each_of_another_place(tmp_path, monkeypatch):
    for name in ("nori_dyn/tables", "nori_dyn/program/c", "nori_dyn/solve"):
        shutil.copytree(name, tmp_path / name)
    shutil.copy("nori_dyn/errors.py", tmp_path / "nori_dyn")
    monkeypatch.chdir(tmp_path)
    mutants = drawn(60, seed=3)
    assert len(mutants) == len({(mutant.path, mutant.site.start) for mutant in mutants})
    rooms = Counter(mutant.room for mutant in mutants)
    assert rooms.keys() == {"(root)", "C", "solve", "tables"}
    assert 4 <= rooms["tables"] < rooms["solve"]
    assert all(mutant.site.changes(mutant.path.read_text()) for mutant in mutants)


def exact(D, b, Y, c, w):
    """d and P of the same problem from its KKT matrix [H D^T; D 0], H = Y^T W Y, in 60 digits."""
    with mp.workdps(60):
        m, n = D.shape
        Y, c = mp.matrix(Y.tolist()), mp.matrix(c.tolist())
        WY = mp.diag([mp.mpf(x) for x in w]) * Y
        K = mp.zeros(n + m)
        K[:n, :n] = Y.T * WY
        right = mp.matrix(n + m, 1)
        right[:n, 0] = -(WY.T * c)
        if m:
            D = mp.matrix(D.tolist())
            K[n:, :n], K[:n, n:], right[n:, 0] = D, D.T, -mp.matrix(b.tolist())
        inverse = K**-1
        solution = inverse * right
        numbers = np.array([np.longdouble(mp.nstr(x, 25)) for x in solution])
        P = np.array([[np.longdouble(mp.nstr(inverse[i, j], 25)) for j in range(n)] for i in range(n)])
        return numbers[:n], numbers[n:], P


@pytest.mark.parametrize(("n", "m", "k"), [(5, 0, 9), (8, 3, 5), (14, 6, 25), (34, 33, 5)])
def test_it_is_the_exact_minimiser(n, m, k):
    """With weights over 1e-3..1e6: nineteen digits are carried, and at most four are lost."""
    rng = np.random.default_rng(n)
    D, b = rng.normal(size=(m, n)), rng.normal(size=m)
    Y, c = rng.normal(size=(k, n)), rng.normal(size=k)
    w = 10 ** rng.uniform(-3, 6, k)
    found = constrained_least_squares(D, b, Y, c, w)
    d, multipliers, P = exact(D, b, Y, c, w)
    assert np.linalg.norm(found.d - d) <= 1e-15 * np.linalg.norm(d)
    gradient_terms = np.abs(Y.T) @ (w * (np.abs(Y) @ np.abs(d) + np.abs(c)))
    assert np.linalg.norm(found.multipliers - multipliers) <= 1e-14 * np.linalg.norm(gradient_terms)
    assert np.linalg.norm(found.covariance - P) <= 1e-14 * np.linalg.norm(P)
    np.testing.assert_allclose(found.residual, Y @ d + c, rtol=0, atol=1e-14 * np.abs(c).max() * np.abs(Y).max() * 100)


def test_a_column_of_small_consequence_keeps_its_digits():
    """Nearly dependent rows: condition 1e8, whose square is beyond the normal equations in double precision."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.normal(size=(s, 12)))[0] for s in (30, 12))
    Y = U * np.logspace(0, -8, 12) @ V.T
    D, b, w = rng.normal(size=(2, 12)), rng.normal(size=2), np.ones(30)
    c = Y @ rng.normal(size=12) + 1e-8 * rng.normal(size=30)
    d, _, _ = exact(D, b, Y, c, w)
    assert np.linalg.norm(constrained_least_squares(D, b, Y, c, w).d - d) <= 1e-9 * np.linalg.norm(d)


def test_factors():
    """A P = Q R with an orthogonal Q, over more than one block of reflectors."""
    A = np.random.default_rng(1).normal(size=(90, 70))
    factors = orthogonal_factors(A)
    Q = factors.Q_times(np.eye(90, dtype=np.longdouble))
    np.testing.assert_allclose((Q.T @ Q).astype(float), np.eye(90), atol=1e-17)
    np.testing.assert_allclose((Q[:, :70] @ factors.R - A[:, factors.order]).astype(float), 0, atol=1e-16)
    np.testing.assert_allclose(factors.QT_times(Q).astype(float), np.eye(90), atol=1e-17)
    assert factors.rank == 70


def test_what_is_not_determined_is_refused():
    rng = np.random.default_rng(2)
    Y, c = rng.normal(size=(8, 6)), np.zeros(8)
    with pytest.raises(np.linalg.LinAlgError, match="2 constraints of rank 1"):
        constrained_least_squares(np.ones((2, 6)), np.zeros(2), Y, c, np.ones(8))
    Y[:, 0] = Y[:, 1]
    with pytest.raises(np.linalg.LinAlgError, match="determine 5 of the 6"):
        constrained_least_squares(np.zeros((0, 6)), np.zeros(0), Y, c, np.ones(8))

"""The oracle of estimation: least squares in extended precision, against mpmath."""

import mpmath as mp
import numpy as np
import pytest

from tests.least_squares import constrained_least_squares, orthogonal_factors


def exact(D, b, Y, c, w):
    """Return d and P of the same problem from its KKT matrix [H D^T; D 0], H = Y^T W Y, in 60 digits."""
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

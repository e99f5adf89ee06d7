"""Parameters found after unknown wrenches are taken out are those of least squares over both."""

import numpy as np
import pytest

from nori_dyn.identification.elimination import annihilator


def together(W: np.ndarray, N: np.ndarray, c: np.ndarray, is_exact: np.ndarray) -> np.ndarray:
    """The parameters by one problem over them and the wrenches of all samples, exact rows by KKT."""
    n, rows, p = W.shape
    k = N.shape[2]
    A = np.zeros((n * rows, p + n * k))
    for i in range(n):
        A[i * rows : (i + 1) * rows, :p] = W[i]
        A[i * rows : (i + 1) * rows, p + i * k : p + (i + 1) * k] = N[i]
    exact = np.tile(is_exact, n)
    E, F, b = A[exact], A[~exact], -c.reshape(-1)
    m = int(exact.sum())
    KKT = np.block([[F.T @ F, E.T], [E, np.zeros((m, m))]])
    return np.linalg.lstsq(KKT, np.concatenate([F.T @ b[~exact], b[exact]]), rcond=1e-13)[0][:p]


@pytest.mark.parametrize(("exact", "unknowns"), [(0, 2), (3, 2), (3, 5), (2, 2)])
def test_equals_one_problem_over_parameters_and_wrenches(exact, unknowns):
    rng = np.random.default_rng(exact + unknowns)
    n, rows, p = 12, 8, 4
    is_exact = np.arange(rows) < exact
    W, N = rng.normal(size=(n, rows, p)), rng.normal(size=(n, rows, unknowns))
    truth = rng.normal(size=p)
    w = rng.normal(size=(n, unknowns))
    c = -(W @ truth) - np.einsum("nij,nj->ni", N, w)
    c[:, ~is_exact] += 0.1 * rng.normal(size=(n, rows - exact))
    A = annihilator(N, is_exact)
    np.testing.assert_allclose(A @ N, 0, atol=1e-12)
    left = A @ np.concatenate([W, c[:, :, None]], axis=2)
    if exact > unknowns:  # what exact rows say of the parameters alone is not noisy: it counts as the others here
        exactly = left[:, is_exact]
        np.testing.assert_allclose(exactly[:, :, :p] @ truth + exactly[:, :, p], 0, atol=1e-12)
        return
    left = left.reshape(-1, p + 1)
    found = np.linalg.lstsq(left[:, :p], -left[:, p], rcond=None)[0]
    np.testing.assert_allclose(found, together(W, N, c, is_exact), rtol=1e-9)


def test_what_is_left_of_rows_is_as_many_as_wrenches_leave():
    """Residuals of noise 1 vary as the shares of their rows, whose sum is the number of rows less that of wrenches."""
    rng = np.random.default_rng(1)
    N = rng.normal(size=(1, 6, 2)).repeat(20_000, axis=0)
    A = annihilator(N, np.zeros(6, dtype=bool))
    shares = np.sum(A[0] ** 2, axis=1)
    assert shares.sum() == pytest.approx(4.0)
    residuals = (A @ rng.normal(size=(20_000, 6, 1)))[:, :, 0]
    np.testing.assert_allclose(residuals.var(axis=0), shares, rtol=0.05)


def test_wrenches_that_no_row_feels_and_that_repeat_others_take_nothing():
    rng = np.random.default_rng(5)
    N = np.zeros((4, 6, 4))
    np.testing.assert_array_equal(annihilator(N, np.zeros(6, dtype=bool)), np.eye(6) + np.zeros((4, 1, 1)))
    N[:2, :, 0] = rng.normal(size=(2, 6))
    N[:2, :, 1] = -3.0 * N[:2, :, 0]  # at some samples, as in a singular pose
    for is_exact in (np.zeros(6, dtype=bool), np.arange(6) < 2):
        shares = np.trace(annihilator(N, is_exact), axis1=1, axis2=2)
        np.testing.assert_allclose(shares, [5, 5, 6, 6], atol=1e-12)

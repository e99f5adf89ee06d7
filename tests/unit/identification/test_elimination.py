"""Parameters found after unknown wrenches are taken out are those of least squares over both."""

import numpy as np
import pytest

from nori_dyn.identification.elimination import without_unknowns


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
    if exact > unknowns:  # what exact rows say of the parameters alone is not noisy: it counts as the others here
        left = without_unknowns(np.concatenate([W, c[:, :, None]], axis=2), N, is_exact)
        assert left.shape[1] == rows - unknowns
        exactly = left[:, : exact - unknowns]
        np.testing.assert_allclose(exactly[:, :, :p] @ truth + exactly[:, :, p], 0, atol=1e-12)
        return
    left = without_unknowns(np.concatenate([W, c[:, :, None]], axis=2), N, is_exact).reshape(-1, p + 1)
    assert len(left) == n * (rows - unknowns)
    found = np.linalg.lstsq(left[:, :p], -left[:, p], rcond=None)[0]
    np.testing.assert_allclose(found, together(W, N, c, is_exact), rtol=1e-9)


def test_wrenches_that_no_row_feels_take_nothing():
    rng = np.random.default_rng(5)
    W, N = rng.normal(size=(4, 6, 3)), np.zeros((4, 6, 2))
    left = without_unknowns(W, N, np.zeros(6, dtype=bool))
    np.testing.assert_allclose(np.swapaxes(left, 1, 2) @ left, np.swapaxes(W, 1, 2) @ W, atol=1e-12)

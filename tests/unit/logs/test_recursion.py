import numpy as np

from nori_dyn.logs.recursion import linear_recursion


def test_it_is_that_of_a_loop():
    for n_samples in (0, 1, 2, 7, 100, 101):
        rng = np.random.default_rng(n_samples)
        A, before = rng.normal(scale=0.4, size=(2, 3, 3)), rng.normal(size=(2, 3))
        u = rng.normal(size=(n_samples, 2, 3))
        found, x = linear_recursion(A, u, before), before
        assert found.shape == u.shape
        for k in range(n_samples):
            x = np.einsum("nij,nj->ni", A, x) + u[k]
            np.testing.assert_allclose(found[k], x, rtol=1e-12, atol=1e-13)

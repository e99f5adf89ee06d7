"""Parameters that bodies can have against SciPy's minimum over products of triangles, and where the answer is known."""

import numpy as np
import pytest
from scipy.optimize import minimize

import nori_dyn as nd
from nori_dyn.errors import InputError, UnknownNameError
from nori_dyn.identification import consistent as module
from nori_dyn.identification.parameters import Parameters
from nori_dyn.identification.physical import is_physical, mended_prior
from nori_dyn.model.inertia import inertia_of_ten
from tests.tolerances import SOLVED, assert_close
from tests.unit.identification.inertias import pseudo_inertia_of, random_body, ten_of_pseudo_inertia

LOWER = np.tril_indices(4)
VAGUE = {"viscous": 1e2, "coulomb": 1e2, "rotor": 1e1, "stiffness": 1e4, "preload": 1e4, "offset": 1e3, "gain": 1e1}


def consistent(R, z, parameters: Parameters, sigma=None, **options) -> module.ConsistentFit:
    """The fit, with deviations of what is no inertia that are vague unless they are given."""
    vague = np.array([VAGUE.get(each.kind, 1.0) for each in parameters.each])
    return module.consistent(R, z, parameters, vague if sigma is None else sigma, **options)


def bodies(n: int, seed: int, wanted=("inertias", "friction")) -> Parameters:
    rng = np.random.default_rng(seed)
    return Parameters.of(
        nd.autotree(n).replace(I=np.array([inertia_of_ten(random_body(rng)) for _ in range(n)])), wanted
    )


def log(parameters: Parameters, seed: int, share: float = 0.7, size: float = 20.0) -> tuple[np.ndarray, np.ndarray]:
    """Fewer rows than parameters, of values that no robot has."""
    rng = np.random.default_rng(seed)
    n = len(parameters)
    R = size * rng.normal(size=(int(share * n), n)) / np.maximum(np.abs(parameters.prior), 0.01)
    return R, R @ (parameters.prior * (1 + rng.normal(size=n)) + 0.1 * rng.normal(size=n) * (parameters.prior == 0))


class Reference:
    """The same objective, over triangles L of P = L L^T with logarithms of the diagonal, and roots of friction."""

    def __init__(self, R, z, parameters, gamma):
        self.R, self.z = R, z
        self.prior = parameters.prior
        self.n_links = len(parameters.tree.names)
        self.gammas = gamma
        assert parameters.names[: 10 * self.n_links] == Parameters.of(parameters.tree, ["inertias"]).names
        self.P0 = [pseudo_inertia_of(ten) for ten in self.prior[: 10 * self.n_links].reshape(-1, 10)]
        self.sigma = np.array([VAGUE[each.kind] for each in parameters.each[10 * self.n_links :]])
        self.start = np.concatenate([np.zeros(10 * self.n_links), np.full(len(self.sigma), 0.1)])

    def values(self, s):
        """The parameters of what SciPy varies, over complex numbers as well."""
        found = []
        for P0, given in zip(self.P0, s[: 10 * self.n_links].reshape(-1, 10), strict=True):
            L = np.zeros((4, 4), dtype=s.dtype)
            L[LOWER] = given
            L[np.diag_indices(4)] = np.exp(np.diag(L))
            root = np.linalg.cholesky(P0)
            found += [*ten_of_pseudo_inertia(root @ L @ L.T @ root.T)]
        return np.concatenate([np.array(found), s[10 * self.n_links :] ** 2])

    def objective(self, values):
        misfit = self.R @ values - self.z
        others = (values - self.prior)[10 * self.n_links :] / self.sigma
        total = np.sum(misfit**2) / 2 + np.sum(others**2) / 2
        tens = values[: 10 * self.n_links].reshape(-1, 10)
        for P0, ten, gamma in zip(self.P0, tens, self.gammas, strict=True):
            X = np.linalg.solve(P0, pseudo_inertia_of(ten))
            total = total + gamma * (np.trace(X) - np.log(np.linalg.det(X)) - 4)
        return total

    def gradient(self, s):
        """The derivatives, by complex steps."""
        steps = s + 1e-30j * np.eye(len(s))
        return np.array([self.objective(self.values(step)).imag for step in steps]) / 1e-30

    def least(self):
        s = self.start
        for _ in range(2):
            options = {"gtol": 1e-9, "maxiter": 3000}
            s = minimize(lambda s: self.objective(self.values(s)), s, jac=self.gradient, options=options).x
        return self.values(s)


@pytest.mark.parametrize(
    ("n", "seed", "gamma"), [(1, 0, [1.0]), (2, 1, [0.3, 0.3]), (3, 2, [5.0] * 3), (2, 1, [2.0, 0.04])]
)
def test_it_is_the_minimum_that_scipy_finds(n, seed, gamma):
    """Links whose inertias are less sure are held less."""
    parameters = bodies(n, seed)
    R, z = log(parameters, seed, size=0.3)
    found = consistent(R, z, parameters, wider=dict(zip(parameters.tree.names, np.array(gamma) ** -0.5, strict=True)))
    reference = Reference(R, z, parameters, gamma)
    expected = reference.least()
    assert reference.objective(found.values) == pytest.approx(reference.objective(expected), rel=1e-9)
    assert np.abs(found.values - expected).max() < 1e-6 * np.abs(expected).max()
    assert found.excess < 1e-4
    assert found.notes == ()


@pytest.mark.parametrize("size", [1.0, 1e3])
def test_rows_that_ask_for_a_negative_mass_get_a_small_one(size):
    parameters = bodies(2, 0, ("inertias",))
    R, z = np.zeros((1, 20)), np.array([-size])
    R[0, parameters.place["m:link1"]] = size
    found = consistent(R, z, parameters, wider=dict.fromkeys(parameters.tree.names, 10.0))
    mass = found.values[parameters.place["m:link1"]]
    assert 0 < mass < 0.2 * parameters.prior[parameters.place["m:link1"]]
    assert is_physical(parameters, found.values)
    for ten in found.values.reshape(-1, 10):
        assert np.linalg.eigvalsh(pseudo_inertia_of(ten))[0] > 0


def test_friction_that_would_be_negative_is_none():
    parameters = bodies(2, 0, ("m:*", "friction", "rotors", "springs"))
    R = 100 * np.eye(len(parameters))
    target = parameters.prior.copy()
    target[parameters.of_kinds("viscous")] = -0.5
    target[parameters.of_kinds("coulomb")], target[parameters.of_kinds("preload")] = 0.2, -0.3
    found = consistent(R, R @ target, parameters)
    assert set(found.at_bounds) >= {"viscous:joint1", "viscous:joint2"}
    assert (found.values[parameters.of_kinds("viscous")] == 0).all()
    assert (found.values[parameters.of_kinds("rotor", "stiffness")] >= 0).all()
    assert found.values[parameters.of_kinds("coulomb")] == pytest.approx(0.2, abs=1e-4)
    assert found.values[parameters.of_kinds("preload")] == pytest.approx(-0.3, abs=1e-4)


def test_gains_stay_positive_and_offsets_may_be_negative():
    tree = nd.autotree(2)
    parameters = Parameters.of(tree, ["gains", "offsets"], {"tau:joint1": "N m", "tau:joint2": "N m"})
    R = 10 * np.eye(4)
    target = np.array([-2.0, 0.5, -1.0, 1.2])
    found = consistent(R, R @ target, parameters)
    assert found.values == pytest.approx([-2.0, 0.5, 1e-3, 1.2], abs=1e-3)  # the prior is vague, not absent
    assert found.at_bounds == ("gain:tau:joint1",)


def test_prior_deviations_hold_what_rows_do_not_see():
    parameters = bodies(1, 0, ("friction",))
    R = np.array([[3.0, 4.0]])
    found = consistent(R, np.array([25.0]), parameters, sigma=np.ones(2))
    information = np.eye(2) + R.T @ R
    assert_close(found.values, np.linalg.solve(information, R.T @ [25.0]), SOLVED)


BOX = np.array([[x, y, z] for x in (0.0, 0.1) for y in (-0.1, 0.1) for z in (-0.1, 0.1)])


def test_centres_of_mass_are_in_their_hulls():
    parameters = bodies(2, 0, ("inertias",))
    R = np.zeros((4, 20))
    R[:, [parameters.place[name] for name in ("m:link1", "mc:link1.x", "mc:link1.y", "mc:link1.z")]] = 1e3 * np.eye(4)
    z = R @ np.concatenate([[2.0, 1.0, 0.1, 0.0], np.zeros(16)])
    free = consistent(R, z, parameters).values
    bound = consistent(R, z, parameters, hulls={"link1": BOX})
    assert free[1] / free[0] == pytest.approx(0.5, abs=1e-3)
    assert bound.values[1] / bound.values[0] == pytest.approx(0.1, abs=1e-6)
    assert abs(bound.values[2] / bound.values[0]) < 0.1
    assert bound.excess < 1e-2
    wide = consistent(R, z, parameters, hulls={"link1": 20 * (BOX - 0.05)}).values
    assert np.abs(wide - free).max() < 1e-4
    point = consistent(R, z, parameters, hulls={"link1": [[0.02, 0.03, 0.04]]}).values
    assert point[1:4] / point[0] == pytest.approx([0.02, 0.03, 0.04], abs=1e-6)


def test_of_a_link_only_some_may_be_looked_for():
    parameters = bodies(2, 0, ("m:link1", "mc:link1.x"))
    R, z = np.array([[30.0, 0.0]]), np.array([30.0 * 7.0])
    found = consistent(R, z, parameters).values
    ten, P0 = bodies(2, 0).prior[:10].copy(), pseudo_inertia_of(bodies(2, 0).prior[:10])

    def objective(s):
        ten[:2] = s
        X = np.linalg.solve(P0, pseudo_inertia_of(ten))
        if np.linalg.det(X) <= 0:
            return np.inf
        return np.sum((R @ s - z) ** 2) / 2 + np.trace(X) - np.log(np.linalg.det(X)) - 4

    expected = minimize(objective, ten[:2].copy(), method="Nelder-Mead", options={"xatol": 1e-9, "fatol": 1e-12}).x
    assert found == pytest.approx(expected, rel=1e-4)
    assert is_physical(parameters, found)


def test_a_prior_that_no_body_has_is_mended_and_said():
    parameters = bodies(2, 0, ("inertias",))
    I = parameters.tree.I.copy()
    I[0] = 0.0
    massless = Parameters.of(parameters.tree.replace(I=I), ["inertias"])
    found = consistent(np.zeros((0, 20)), np.zeros(0), massless)
    assert len(found.notes) == 1
    assert "'link1'" in found.notes[0]
    assert np.abs(found.values - mended_prior(massless)[0]).max() < 1e-5
    R = 1e5 * np.eye(20)
    heavy = consistent(R, R @ parameters.prior, massless).values
    assert np.abs(heavy - parameters.prior).max() < 1e-2


def test_a_humanoid_is_solved():
    parameters = Parameters.of(nd.load_robot("talos"), ["inertias", "friction"])
    rng = np.random.default_rng(0)
    n = len(parameters)
    truth = np.where(parameters.prior == 0, 0.1, parameters.prior)
    R = 100 * rng.normal(size=(n // 2, n)) * rng.lognormal(size=n)
    found = consistent(R, R @ truth + rng.normal(size=n // 2), parameters)
    assert found.excess < 1e-4
    assert is_physical(parameters, found.values)


def test_hulls_must_be_of_links_that_move():
    parameters = bodies(2, 0, ("m:link1", "I:link2.xx"))
    with pytest.raises(UnknownNameError, match="link1"):
        consistent(np.zeros((0, 2)), np.zeros(0), parameters, hulls={"link_1": BOX})
    with pytest.raises(InputError, match="hull of 'link2' bounds nothing"):
        consistent(np.zeros((0, 2)), np.zeros(0), parameters, hulls={"link2": BOX})
    for points in ([1.0, 2.0, 3.0], np.zeros((0, 3))):
        with pytest.raises(InputError, match="expected finite points"):
            consistent(np.zeros((0, 2)), np.zeros(0), parameters, hulls={"link1": points})
    with pytest.raises(InputError, match="widen the hull"):
        consistent(np.zeros((0, 2)), np.zeros(0), parameters, hulls={"link1": BOX + 50.0})


def test_what_nothing_says_is_named():
    parameters = bodies(1, 0, ("inertias", "viscous:*"))
    with pytest.raises(InputError, match="determine viscous:joint1"):
        consistent(np.zeros((0, 11)), np.zeros(0), parameters, sigma=np.full(11, np.inf))

"""Inertias that bodies can have are those of clouds of points; the metric is the divergence's second derivative."""

import numpy as np
import pytest
from scipy.optimize import minimize

import nori_dyn as nd
from nori_dyn.identification.parameters import Parameters
from nori_dyn.identification.physical import (
    is_physical,
    mended_prior,
    pseudo_inertia,
    pull_back,
    relative_inertias,
    symmetric,
    ten_numbers,
    ten_of_pseudo_inertia,
    with_known,
)
from nori_dyn.model.inertia import inertia_of_ten
from nori_dyn.model.tree import KinematicTree
from tests.tolerances import PEER, ROUNDING, assert_close
from tests.unit.identification.inertias import cloud, divergence, pseudo_inertia_of, random_body

ONE = Parameters.of(nd.autotree(1), ["inertias"])


def with_inertias(tree: KinematicTree, *tens: np.ndarray) -> KinematicTree:
    return tree.replace(I=np.array([inertia_of_ten(ten) for ten in tens]))


def test_it_is_the_second_moment_of_the_mass_in_homogeneous_coordinates():
    rng = np.random.default_rng(0)
    ten, P = cloud(rng.uniform(0, 1, 9), rng.normal(size=(9, 3)))
    assert_close(pseudo_inertia(ten), P, ROUNDING)
    assert_close(ten_of_pseudo_inertia(P), ten, ROUNDING)
    batch = np.column_stack([ten, 2 * ten])
    assert_close(pseudo_inertia(batch)[..., 1], 2 * P, ROUNDING)


def test_ten_numbers_keep_scalar_products():
    rng = np.random.default_rng(0)
    A, B = (X + X.T for X in rng.normal(size=(2, 4, 4)))
    assert_close(ten_numbers(A) @ ten_numbers(B), np.trace(A @ B), ROUNDING)
    assert_close(symmetric(ten_numbers(A)), A, ROUNDING)


def test_clouds_of_points_are_bodies():
    rng = np.random.default_rng(0)
    for n_points in [0, 1, 2, 3, 4, 30] * 10:
        ten, _ = cloud(rng.uniform(0.1, 1, n_points), rng.normal(size=(n_points, 3)))
        assert is_physical(ONE, ten), n_points


def test_clouds_with_a_negative_mass_are_not_where_their_pseudo_inertia_is_indefinite():
    odd = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        masses = rng.uniform(0.1, 1, 6)
        masses[0] *= -1
        ten, P = cloud(masses, rng.normal(size=(6, 3)))
        assert is_physical(ONE, ten) == (np.linalg.eigvalsh(P)[0] >= 0)
        odd += not is_physical(ONE, ten)
    assert odd > 30


def test_what_no_body_has_is_not_physical():
    ten = random_body(np.random.default_rng(0))
    below, empty, flat = ten.copy(), ten.copy(), ten.copy()
    below[0], empty[0] = -0.3, 0.0
    flat[4:] = [0.1, 0, 0.1, 0, 0, 0.9]
    assert is_physical(ONE, ten)
    assert not any(is_physical(ONE, each) for each in (below, empty, flat, ten * np.nan))


def test_only_links_looked_for_are_judged():
    odd = with_inertias(nd.autotree(2), -np.ones(10), random_body(np.random.default_rng(0)))
    assert is_physical(Parameters.of(odd, ["*link2*", "friction"]), Parameters.of(odd, ["*link2*", "friction"]).prior)
    assert not is_physical(Parameters.of(odd, ["m:link1"]), np.array([1.0]))


@pytest.mark.parametrize("wanted", [["inertias", "friction"], ["m:*", "mc:*"], ["viscous:*", "I:link2.xx", "m:link3"]])
def test_the_metric_is_the_second_derivative_of_the_divergence(wanted):
    rng = np.random.default_rng(3)
    tree = with_inertias(nd.autotree(3), *(random_body(rng) for _ in range(3)))
    parameters = Parameters.of(tree, wanted)
    B = pull_back(parameters)
    P0 = [pseudo_inertia_of(ten) for ten in (tens(parameters, parameters.prior))]

    def total(values: np.ndarray) -> float:
        return sum(divergence(pseudo_inertia_of(ten), P) for ten, P in zip(tens(parameters, values), P0, strict=True))

    for _ in range(10):
        direction = rng.normal(size=len(parameters))
        direction *= 1e-2 / max(np.linalg.norm(B @ direction), 1e-12)
        second = total(parameters.prior + direction) + total(parameters.prior - direction)
        assert second == pytest.approx(np.sum((B @ direction) ** 2), rel=1e-3)
    others = parameters.of_kinds("viscous", "coulomb")
    assert not B[:, others].any()


def tens(parameters: Parameters, values: np.ndarray) -> list[np.ndarray]:
    """The ten parameters of each link, read off its spatial inertia."""
    found = []
    for I in parameters.inertias(values):
        h = [I[2, 4], I[0, 5], I[1, 3]]
        found.append(np.array([I[5, 5], *h, I[0, 0], I[0, 1], I[1, 1], I[0, 2], I[1, 2], I[2, 2]]))
    return found


def test_inertias_relative_to_the_prior_are_congruent():
    rng = np.random.default_rng(1)
    tree = with_inertias(nd.autotree(2), random_body(rng), random_body(rng))
    parameters = Parameters.of(tree, ["inertias"])
    values = np.concatenate([random_body(rng), random_body(rng)])
    for k, body in enumerate(relative_inertias(parameters)):
        P, P0 = (pseudo_inertia_of(each[10 * k : 10 * (k + 1)]) for each in (values, parameters.prior))
        assert_close(np.sort(np.linalg.eigvals(np.linalg.solve(P0, P)).real), np.linalg.eigvalsh(body.of(values)), PEER)


PLANAR = np.array([1.0, 0.1, 0, 0, 0, 0, 0, 0, 0, 0.3])


def test_priors_that_no_body_with_extent_has_are_mended():
    point, rotor = cloud(np.ones(1), np.ones((1, 3)))[0], np.array([0.0, 0, 0, 0, 1, 0, 1, 0, 0, 1])
    for ten in (np.zeros(10), PLANAR, point, rotor, -PLANAR):
        tree = with_inertias(nd.autotree(2), ten, random_body(np.random.default_rng(0)))
        parameters = Parameters.of(tree, ["inertias"])
        values, (note,) = mended_prior(parameters)
        assert "'link1'" in note, ten
        assert "'link2'" not in note, ten
        assert np.linalg.eigvalsh(pseudo_inertia_of(values[:10]))[0] > 0, ten
        assert (values[10:] == parameters.prior[10:]).all(), ten
        assert is_physical(parameters, values), ten
        if ten[0] > 0:
            assert_close(values[:4], ten[:4], ROUNDING)


@pytest.mark.parametrize(
    "known",
    [
        ["m:link1"],
        ["m:link1", "mc:link1.x"],
        ["mc:link1.y", "I:link1.xy", "I:link1.zz"],
        ["I:link1.xx", "I:link1.yy", "I:link1.zz"],
    ],
)
def test_what_is_known_makes_the_nearest_body_that_has_it(known):
    """Against SciPy's least divergence over products of triangles, with what is known as constraints."""
    rng = np.random.default_rng(len(known))
    model, other = random_body(rng), random_body(rng)
    parameters = Parameters.of(with_inertias(nd.autotree(1), model), ["inertias"])
    places = [parameters.place[name] for name in known]
    found, impossible = with_known(parameters, dict(zip(known, other[places], strict=True)))
    assert not impossible
    assert_close(found[places], other[places], ROUNDING)

    def body(s):
        L = np.zeros((4, 4))
        L[np.tril_indices(4)] = s
        return L @ L.T

    def far(s):
        return divergence(body(s), pseudo_inertia_of(model))

    start = np.linalg.cholesky(pseudo_inertia_of(other))[np.tril_indices(4)]
    equal = {"type": "eq", "fun": lambda s: ten_of_pseudo_inertia(body(s))[places] - other[places]}
    least = minimize(far, start, constraints=equal, options={"ftol": 1e-14, "maxiter": 2000})
    assert divergence(pseudo_inertia_of(found), pseudo_inertia_of(model)) == pytest.approx(least.fun, rel=1e-6)
    assert np.abs(pseudo_inertia_of(found) - body(least.x)).max() < 1e-3 * np.abs(found).max()


@pytest.mark.parametrize("stretch", [0.0, 2.0])
def test_what_another_body_has_is_what_some_body_has(stretch):
    """Values of a body that is larger or smaller by up to two orders in each direction: a tenth of them was refused."""
    rng = np.random.default_rng(5)
    for case in range(100):
        axes = np.linalg.qr(rng.normal(size=(4, 4)))[0]
        T = axes * 10.0 ** rng.uniform(-stretch, stretch, 4) @ axes.T
        model, other = random_body(rng), ten_of_pseudo_inertia(T @ pseudo_inertia_of(random_body(rng)) @ T.T)
        parameters = Parameters.of(with_inertias(nd.autotree(1), model), ["inertias"])
        known = rng.choice(10, size=int(rng.integers(1, 10)), replace=False)
        found, impossible = with_known(parameters, {parameters.names[k]: float(other[k]) for k in known})
        assert not impossible, (case, known)
        assert (found[known] == other[known]).all()
        eigenvalues = np.linalg.eigvalsh(pseudo_inertia_of(found))
        assert eigenvalues[0] > -1e-14 * eigenvalues[-1], (case, known)


@pytest.mark.parametrize(
    "known",
    [
        {"m:link1": -1.0},
        {"m:link1": 0.0},
        {"I:link1.xx": -0.1},
        {"I:link1.xx": 1, "I:link1.yy": 1, "I:link1.zz": 3},
        {"I:link1.xx": 0.0, "I:link1.xy": -0.1},
        {"m:link1": 1.0, "mc:link1.x": 1.0, "I:link1.yy": 1.0},
    ],
)
def test_what_no_body_has_is_named(known):
    parameters = Parameters.of(with_inertias(nd.autotree(1), random_body(np.random.default_rng(4))), ["inertias"])
    values, impossible = with_known(parameters, known)
    assert impossible == {"link1": sorted(known, key=parameters.place.get)}
    assert [values[parameters.place[name]] for name in known] == [*known.values()]


def test_priors_of_a_real_robot_stay():
    parameters = Parameters.of(nd.load_robot("panda", mimic="coupled"), ["inertias"])
    values, notes = mended_prior(parameters)
    assert notes == ()
    assert (values == parameters.prior).all()

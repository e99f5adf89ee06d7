"""What an answer is judged by: derivatives against differences, and a bound that holds at every answer."""

import dataclasses
import math

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.identification import convex
from nori_dyn.identification.convex import Answer, Body, MaxdetProblem, excess, solved
from nori_dyn.identification.physical import ten_numbers
from tests.covering import covering

CORNERS = np.vstack([np.array([[1.0, 1, -1, 0], [0, 1, 0, 1], [0, 0, 1, 1]]), np.ones(4)])


def random_problem(seed: int, gamma: float = 0.5, hull: bool = False) -> MaxdetProblem:
    """A problem of two bodies, whose distances count once and four times, and three bounded coordinates."""
    rng = np.random.default_rng(seed)
    n = 23
    bodies = []
    for k in range(2):
        C, M = np.zeros((10, n)), np.zeros((4, n))
        C[:, 10 * k : 10 * (k + 1)] = np.linalg.qr(rng.normal(size=(10, 10)))[0]
        M[:, 10 * k : 10 * (k + 1)] = rng.normal(size=(4, 10))
        m = np.array([0.2, 0.3, 0.3, 1.0])
        corners = CORNERS if hull and k == 0 else None
        bodies.append(Body(f"link{k}", C, ten_numbers(np.eye(4)), M, m, corners, gamma * (1 + 3 * k)))
    G = np.eye(n)[20:]
    A = rng.normal(size=(15, n))
    return MaxdetProblem(A, 3 * rng.normal(size=15), tuple(bodies), G, np.zeros(3), G.T, np.zeros(A.shape[1]))


def interior(problem: MaxdetProblem, rng: np.random.Generator) -> np.ndarray:
    """Coordinates at which the bodies are definite and the bounds hold."""
    v = 0.2 * rng.normal(size=problem.A.shape[1])
    v[20:] = np.abs(v[20:])
    return v


def test_derivatives_are_those_of_differences():
    problem = random_problem(0)
    v, step = interior(problem, np.random.default_rng(0)), 1e-5
    slope, H = problem.derivatives(v)
    for k, e in enumerate(np.eye(len(v))):
        change = problem.objective(v + step * e) - problem.objective(v - step * e)
        assert change / (2 * step) == pytest.approx(slope[k], abs=1e-6 * np.abs(slope).max())
        column = (problem.derivatives(v + step * e)[0] - problem.derivatives(v - step * e)[0]) / (2 * step)
        assert np.abs(column - H[:, k]).max() < 1e-6 * np.abs(H).max()


@covering(hull=[False, True], seed=range(2))
def test_nothing_found_nearby_is_better_by_more_than_the_excess(hull, seed):
    problem = random_problem(seed, hull=hull)
    answer, above = solved(problem)
    assert above < 1e-5
    least = problem.objective(answer.v)
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(50):
            v = answer.v + size * rng.normal(size=23)
            v[20:] = np.maximum(v[20:], 0.0)
            if not hull:
                definite = min(np.linalg.eigvalsh(body.relative(v))[0] for body in problem.bodies)
                assert definite <= 0.0 or problem.objective(v) >= least - above
            bound = excess(problem, dataclasses.replace(answer, v=v))
            assert hull or bound >= problem.objective(v) - least - 1e-9


def test_wrong_multipliers_make_the_bound_weaker_never_wrong():
    problem = random_problem(1)
    answer, _ = solved(problem)
    least = problem.objective(answer.v)
    rng = np.random.default_rng(0)
    for _ in range(30):
        v = interior(problem, rng)
        wrong = Answer(v, np.abs(rng.normal(size=3)), {}, np.zeros(3, bool))
        assert excess(problem, wrong) >= problem.objective(v) - least - 1e-9
        assert excess(problem, wrong) > 1e-3


def test_what_is_not_definite_has_no_bound():
    problem = random_problem(0)
    answer, _ = solved(problem)
    v = answer.v.copy()
    v[:10] -= 5 * problem.bodies[0].C[:, :10].T @ ten_numbers(np.eye(4))
    assert excess(problem, dataclasses.replace(answer, v=v)) == math.inf
    assert problem.objective(v) == math.inf


@pytest.mark.parametrize("wrong", ["nothing", "the prior"])
def test_an_answer_that_is_not_the_least_is_refused(monkeypatch, wrong):
    problem = random_problem(0)
    prior = Answer(np.zeros(23), np.zeros(3), {}, np.zeros(3, bool))
    monkeypatch.setattr(convex, "_answer", lambda *_: None if wrong == "nothing" else prior)
    with pytest.raises(InputError, match="Clarabel does not solve"):
        solved(problem)

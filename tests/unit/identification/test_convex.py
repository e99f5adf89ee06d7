"""What an answer is judged by: derivatives against differences, and a bound that holds at every answer."""

import math

import numpy as np
import pytest

from nori_dyn.errors import InputError
from nori_dyn.identification import convex
from nori_dyn.identification.convex import Body, MaxdetProblem, excess, solved
from nori_dyn.identification.physical import ten_numbers


def random_problem(seed: int, gamma: float = 0.5) -> MaxdetProblem:
    """A problem of two bodies, whose distances count once and four times, and three bounded coordinates."""
    rng = np.random.default_rng(seed)
    n = 23
    bodies = []
    for k in range(2):
        C = np.zeros((10, n))
        C[:, 10 * k : 10 * (k + 1)] = np.linalg.qr(rng.normal(size=(10, 10)))[0]
        bodies.append(Body(C, ten_numbers(np.eye(4)), gamma * (1 + 3 * k)))
    A = rng.normal(size=(15, n))
    return MaxdetProblem(A, 3 * rng.normal(size=15), tuple(bodies), np.eye(n)[20:], np.zeros(3), np.zeros(n))


def interior(problem: MaxdetProblem, rng: np.random.Generator) -> np.ndarray:
    """Coordinates at which the bodies are definite and the bounds hold."""
    v = 0.2 * rng.normal(size=problem.A.shape[1])
    v[20:] = np.abs(v[20:])
    return v


def test_derivatives_are_those_of_differences():
    problem = random_problem(0)
    v, step = interior(problem, np.random.default_rng(0)), 1e-5
    J, r = problem.rows(v)
    slope, H = J.T @ r, J.T @ J
    for k, e in enumerate(np.eye(len(v))):
        change = problem.objective(v + step * e) - problem.objective(v - step * e)
        assert change / (2 * step) == pytest.approx(slope[k], abs=1e-6 * np.abs(slope).max())
        (J_after, after), (J_before, before) = problem.rows(v + step * e), problem.rows(v - step * e)
        column = (J_after.T @ after - J_before.T @ before) / (2 * step)
        assert np.abs(column - H[:, k]).max() < 1e-6 * np.abs(H).max()


@pytest.mark.parametrize("seed", range(2))
def test_nothing_found_nearby_is_better_by_more_than_the_excess(seed):
    problem = random_problem(seed)
    best, y, above = solved(problem)
    assert above < 1e-5
    least = problem.objective(best)
    rng = np.random.default_rng(seed)
    for size in (1e-4, 1e-2, 0.3):
        for _ in range(50):
            v = best + size * rng.normal(size=23)
            v[20:] = np.maximum(v[20:], 0.0)
            assert problem.objective(v) >= least - above
            assert excess(problem, v, y) >= problem.objective(v) - least - 1e-9


def test_wrong_multipliers_make_the_bound_weaker_never_wrong():
    problem = random_problem(1)
    least = problem.objective(solved(problem)[0])
    rng = np.random.default_rng(0)
    for _ in range(30):
        v = interior(problem, rng)
        bound = excess(problem, v, np.abs(rng.normal(size=3)))
        assert bound >= problem.objective(v) - least - 1e-9
        assert bound > 1e-3


def test_what_is_not_definite_has_no_bound():
    problem = random_problem(0)
    v, y, _ = solved(problem)
    v[:10] -= 5 * problem.bodies[0].C[:, :10].T @ ten_numbers(np.eye(4))
    assert excess(problem, v, y) == math.inf
    assert problem.objective(v) == math.inf


def test_an_answer_that_is_not_the_least_is_refused(monkeypatch):
    monkeypatch.setattr(convex, "STEPS", 3)
    with pytest.raises(InputError, match="larger deviations help"):
        solved(random_problem(0))

"""The hidden Markov chain over contact states, against all paths one by one and a matrix exponential."""

from itertools import pairwise, product

import numpy as np
from scipy.linalg import expm

from nori_dyn.filtering.markov import distances, looked_back_over, transitions, weighed

STATES = [("l", "r"), ("l",), ("r",), ()]
RATE, DT = 40.0, 0.01
T = transitions(distances(STATES), 2, RATE, DT)


def test_transitions_are_those_of_contacts_that_switch_by_themselves():
    one = RATE * np.array([[-1.0, 1.0], [1.0, -1.0]])
    both = np.kron(one, np.eye(2)) + np.kron(np.eye(2), one)
    np.testing.assert_allclose(T, expm(both * DT), atol=1e-14)


def test_transitions_of_some_states_sum_to_one():
    apart = distances([STATES[0], STATES[3]])
    np.testing.assert_allclose(transitions(apart, 2, RATE, DT).sum(axis=1), 1)


def test_probabilities_are_those_of_all_paths():
    rng = np.random.default_rng(3)
    logs, ticks = rng.normal(size=(4, len(STATES))) * 3, 4
    first = np.full(len(STATES), 0.25)
    paths = np.zeros((len(STATES),) * ticks)
    for path in product(range(len(STATES)), repeat=ticks):
        p = first[path[0]] * np.exp(sum(logs[t, state] for t, state in enumerate(path)))
        paths[path] = p * np.prod([T[a, b] for a, b in pairwise(path)])
    found, evidence, expected = [], 0.0, first
    for log in logs:
        p, density = weighed(expected, log)
        found.append(p)
        evidence, expected = evidence + density, p @ T
    np.testing.assert_allclose(evidence, np.log(paths.sum()))
    smoothed = looked_back_over(np.array(found), np.ones(ticks - 1), lambda time: T)
    for t in range(ticks):
        others = tuple(k for k in range(ticks) if k != t)
        np.testing.assert_allclose(smoothed[t], paths.sum(axis=others) / paths.sum())


def test_a_state_that_is_not_judged_has_no_part():
    p, _ = weighed(np.array([0.5, 0.5]), np.array([-3.0, -np.inf]))
    np.testing.assert_array_equal(p, [1, 0])

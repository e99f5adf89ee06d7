"""Smoothers against that of Rauch, Tung and Striebel in extended precision, and one least-squares problem."""

import numpy as np
import pytest

from nori_dyn.filtering.history import History
from nori_dyn.system.side_by_side import SideBySide
from tests.agreement.test_filter import hard
from tests.kalman import all_at_once, filtered, smoothed
from tests.observers import observer
from tests.tolerances import SOLVED, assert_close

ROBOTS = ["arm", *(pytest.param(name, marks=pytest.mark.long) for name in ("quadruped", "humanoid"))]
TICKS = {"arm": 100, "quadruped": 120, "humanoid": 120}
AT_ONCE = {"arm": 100, "quadruped": 30, "humanoid": 30}


def over(name: str, ticks: int) -> History:
    """Return the estimates of the first ticks of a run by all their readings."""
    ran, observing = hard(name, TICKS[name]), observer(name)
    filter_ = observing.filter("native")
    systems = [plan.system for plan in filter_.plans.values()]
    together = SideBySide(systems, "all")
    states = [observing.states[k] for k in ran.drawn.which[:ticks]]
    Y, W = np.zeros((ticks, together.ny)), np.tile(together.weights, (ticks, 1))
    for k, state in enumerate(states):
        number = list(filter_.plans).index(state)
        Y[k, together.y_places[number]] = ran.drawn.y[k]
        W[k, together.weight_places[number]] = ran.weights[k]
    T = np.cumsum(ran.drawn.dt[:ticks])
    q, qd = ran.drawn.q[:ticks], ran.drawn.qd[:ticks]
    return filter_.over(T, q, qd, Y, states if len(systems) > 1 else None, W, causal=False)


@pytest.mark.parametrize("name", ROBOTS)
def test_memory_and_outputs_are_those_of_a_textbook_smoother(name):
    ran, found = hard(name, TICKS[name]), over(name, TICKS[name])
    every = filtered(ran.instants)
    for k, (known, (u, P, d)) in enumerate(zip(every, smoothed(every), strict=True)):
        assert_close(found.memory.mean[k], u[known.n_s :], SOLVED)
        deviations = np.sqrt(np.diagonal(P)[known.n_s :]).astype(float)
        assert_close(found.memory.deviations[k] / deviations, np.ones(len(deviations)), SOLVED)
        for output in ran.observer.outputs:
            columns = ran.columns(k, output)
            assert_close(found[output][k].ravel(), d[columns], SOLVED)
            C = known.C[columns]
            assert_close(found.deviations[output][k].ravel(), np.sqrt(np.sum((C @ P) * C, axis=1)), SOLVED)


@pytest.mark.parametrize("name", ROBOTS)
def test_every_tick_is_that_of_one_least_squares_problem(name):
    n = AT_ONCE[name]
    ran, found = hard(name, TICKS[name]), over(name, n)
    whole = all_at_once(ran.instants[:n])
    for k in range(n):
        part = ran.drawn.parts[ran.drawn.which[k]]
        assert_close(found.memory.mean[k], whole.d[k][part.memory], SOLVED)
        for output in ran.observer.outputs:
            assert_close(found[output][k].ravel(), whole.d[k][ran.columns(k, output)], SOLVED)
    for k in (0, n // 2, n - 1):
        part = ran.drawn.parts[ran.drawn.which[k]]
        variances = np.diagonal(whole.covariance(k, part.memory))
        assert_close(found.memory.deviations[k] / np.sqrt(variances), np.ones(len(variances)), SOLVED)

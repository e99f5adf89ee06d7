"""Runs that take turns: what is timed, what is compared, and who is left out."""

import time

import numpy as np
import pytest

from nori_dyn.bench.measure import Budget, Run, difference, timed
from nori_dyn.bench.peers.base import Peer, runs_of
from nori_dyn.bench.records import compare, quartiles
from nori_dyn.bench.robots import Robot, random_states
from nori_dyn.model.synthetic import autotree

BUDGET = Budget(3, 1e-4)
ANSWER = np.array([1.0, -2.0])


def run(off=0.0):
    return Run(lambda: None, lambda: ANSWER + off)


def test_another_answer_is_reported_and_not_timed():
    calls = []
    wrong = Run(lambda: calls.append(1), lambda: ANSWER + 1e-3)
    record = compare({"robot": "x"}, {}, {"ours": run()}, {"right": run(1e-9), "wrong": wrong}, {}, BUDGET)
    assert set(record.seconds) == {"ours", "right"}
    assert record.wrong == {"wrong": pytest.approx(1e-3 / 2)}
    assert not calls


@pytest.mark.parametrize("answer", [np.array([np.nan, 0.0]), np.zeros(3)])
def test_an_answer_that_is_none_is_wrong(answer):
    record = compare({}, {}, {"ours": run()}, {"peer": Run(lambda: None, lambda: answer)}, {}, BUDGET)
    assert record.wrong == {"peer": np.inf}


def test_a_peer_that_is_not_installed_or_fails_is_left_out_by_name():
    def fail(robot, states):
        raise RuntimeError("it does not like\n this robot")

    peers = [
        Peer("Absent", "absent-package", "no_such_module.inside", {"task": fail}),
        Peer("Fails", "numpy", "numpy", {"task": fail}),
        Peer("Cannot", "numpy", "numpy", {"another": fail}),
        Peer("Works", "numpy", "numpy", {"task": lambda robot, states: run()}),
    ]
    tree = autotree(2)
    runs, skipped = runs_of(peers, "task", Robot("x", "fixed", tree), random_states(tree, 1, 0))
    assert set(runs) == {"Works"}
    assert skipped == {"Absent": "absent-package is not installed", "Fails": "it does not like this robot"}


def test_what_the_first_call_costs_does_not_set_the_number_of_calls():
    calls = []

    def slow_at_first():
        calls.append(1)
        if len(calls) == 1:
            time.sleep(0.02)

    seconds = timed({"run": Run(slow_at_first)}, Budget(2, 0.004))
    assert len(calls) > 100
    assert max(seconds["run"]) < 1e-3


def test_times_are_those_of_a_state():
    seconds = timed({"batch": Run(lambda: time.sleep(0.001), states=100)}, Budget(2, 1e-4))
    assert all(1e-5 <= second < 1e-4 for second in seconds["batch"])


def test_ratios_are_taken_round_by_round():
    record = compare({}, {}, {"ours": run()}, {"peer": run()}, {}, BUDGET)
    record.seconds["ours"][:], record.seconds["peer"][:] = [1.0, 2.0, 4.0], [3.0, 6.0, 12.0]
    assert record.ratio("peer") == (3.0, 3.0, 3.0)
    assert record.time("ours") == quartiles([1.0, 2.0, 4.0]) == (1.5, 2.0, 3.0)


def test_difference_is_relative_to_the_largest_number():
    assert difference(np.array([100.0, 1.0]), np.array([100.0, 2.0])) == pytest.approx(0.01)
    assert difference(np.zeros(2), np.zeros(2)) == 0

"""Runs that take turns: what is timed (by a clock that calls move), compared and printed, and who is left out."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
import pytest

import nori_dyn as nd
from benchmarks.baseline import BAND, RegressionError, baseline_of
from benchmarks.measure import Budget, Run, difference, timed, timed_once
from benchmarks.peers.base import Peer, runs_of
from benchmarks.records import Record, compare, quartiles
from benchmarks.report import Report, UnknownSuiteError, suites
from benchmarks.robots import Robot, random_states
from benchmarks.stages import STAGES, ways
from benchmarks.suites import counts, scaling
from benchmarks.suites.base import Options
from benchmarks.tables import figure_tables, timing_tables
from nori_dyn.interop.urdf import to_urdf
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


@dataclass
class Clock:
    """A clock that stands still but for calls that take some time.

    Attributes:
        now: what it shows [s].
        called: the names of calls, in turn.
    """

    now: float = 0.0
    called: str = ""

    def call(self, name, *seconds):
        """Return a call that takes these times in turn, then the last of them."""
        left = list(seconds)

        def take():
            self.now += left.pop(0) if len(left) > 1 else left[0]
            self.called += name

        return take


@pytest.fixture
def clock(monkeypatch):
    made = Clock()
    monkeypatch.setattr("benchmarks.measure.time", SimpleNamespace(perf_counter=lambda: made.now))
    return made


def test_runs_take_turns_for_a_time_each_and_times_are_those_of_a_state(clock):
    """The first call warms up, four fill a quarter of the budget, and 16 then fill it."""
    runs = {"a": Run(clock.call("a", 100.0, 1.0)), "b": Run(clock.call("b", 2.0), states=10)}
    assert timed(runs, Budget(2, 16.0)) == {"a": [1.0, 1.0], "b": [0.2, 0.2]}
    assert clock.called == "a" * 6 + "b" * 6 + 2 * ("a" * 16 + "b" * 8)


def test_what_is_done_once_is_timed_from_its_first_call(clock):
    found = timed_once({"a": clock.call("a", 3.0, 1.0), "b": clock.call("b", 2.0)}, 2)
    assert (found, clock.called) == ({"a": [3.0, 1.0], "b": [2.0, 2.0]}, "abab")


MADE_UP = Record(
    {"robot": "an_arm", "n": 3},
    counts={"operations": 1234},
    seconds={"ours": [1e-6, 2e-6, 4e-6], "peer": [3e-6, 3e-6, 4e-6]},
    own="ours",
    figures={"planning": 0.25, "compiling": 2.0, "megabytes": 64.0},
    differences={"peer": 2e-13},
    wrong={"other": 0.5},
)


def test_what_is_printed_are_medians_ratios_and_their_quartiles():
    (table,) = timing_tables("A tick", [MADE_UP])
    assert table.title == "A tick: an arm, n 3; operations 1,234"
    assert table.rows == (
        ("ours", "2", "", "", ""),
        ("peer", "3", "1.50", "1.25 - 2.25", "2e-13"),
        ("other", "not timed", "", "", "0.5"),
    )
    (table,) = figure_tables("Once", [MADE_UP, Record({})])
    assert table.columns == ("case", "operations", "ours [s]", "peer [s]", "planning", "compiling", "megabytes")
    assert table.rows == (("an arm, n 3", "1,234", "2e-6", "3e-6", "0.250", "2", "64"),)
    (table,) = scaling.tables("Links", [MADE_UP])
    assert table.rows == (("an arm, n 3", "411", "0.250", "2", "64", "2", "667", "1.50"),)


def test_a_baseline_has_counts_and_the_medians_of_ratios_which_may_fall_by_a_band():
    report = Report(Options(quick=True), {"tick": [MADE_UP]})
    before = baseline_of(report)
    assert before.counts == {"tick": {"an arm, n 3: operations": 1234}}
    assert before.ratios == {"tick": {"an arm, n 3: peer over ours": 1.5}}
    compared = before.compare(report)
    assert (compared.counts, compared.ratios) == (1, 1)
    for factor in (0.1, 0.99 * BAND, 1.01 * BAND, 100.0):
        changed = before.model_copy(update={"ratios": {"tick": {"an arm, n 3: peer over ours": 1.5 * factor}}})
        if factor < BAND:
            changed.compare(report)
            continue
        with pytest.raises(RegressionError, match=r"peer over ours: \d+(\.\d+)? times faster before, 1\.5 now"):
            changed.compare(report)


def test_formulas_are_those_of_the_literature_and_suites_go_by_name():
    n = 7
    assert counts.formula_rnea(n) == (93 * n - 69) + (81 * n - 66)  # multiplications and additions
    assert counts.formula_aba(n) == 2496  # 429 n - 507
    assert [suite.name for suite in suites(["tick"])] == ["tick"]
    assert {suite.name for suite in suites(["all"])} > {"tick", "batch", "counts"}
    with pytest.raises(UnknownSuiteError, match="unknown suite 'tik'"):
        suites(["tick", "tik"])


def test_ratios_are_taken_round_by_round():
    record = compare({}, {}, {"ours": run()}, {"peer": run()}, {}, BUDGET)
    record.seconds["ours"][:], record.seconds["peer"][:] = [1.0, 2.0, 4.0], [3.0, 6.0, 12.0]
    assert record.ratio("peer") == (3.0, 3.0, 3.0)
    assert record.time("ours") == quartiles([1.0, 2.0, 4.0]) == (1.5, 2.0, 3.0)


def test_difference_is_relative_to_the_largest_number():
    assert difference(np.array([100.0, 1.0]), np.array([100.0, 2.0])) == pytest.approx(0.01)
    assert difference(np.zeros(2), np.zeros(2)) == 0


def test_every_stage_takes_some_time_cold_and_warm(tmp_path):
    path = tmp_path / "arm.urdf"
    path.write_text(to_urdf(nd.autotree(2)))
    found = ways(path, "fixed", "forward_dynamics")
    assert list(found) == ["cold", "warm"]
    for seconds in found.values():
        assert tuple(seconds) == STAGES
        assert all(x >= 0 for x in seconds.values())
